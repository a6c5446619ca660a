/* The model of a reshaped adapter: factors are filled up and multiplied while
 * they are read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/lora_shape.h"
#include "model/scaled.h"

/* A tag is an index and, in its last digit to this base, what it is of. */
typedef enum part { PART_A, PART_B, PART_CONFIG, PART_FILE, PARTS } part;

typedef struct shaped {
    bal_model model;
    bal_model *adapter;
    bal_lora_shape shape;
} shaped;

typedef int read_fn(shaped *self, size_t index, uint64_t offset, char *to,
                    size_t len, bal_error *err);

static int read_a(shaped *self, size_t index, uint64_t offset, char *to,
                  size_t len, bal_error *err)
{
    size_t entry = self->shape.rows[index].a;
    uint64_t has =
        entry == BAL_NONE ? 0 : bal_model_at(self->adapter, entry)->size;
    size_t some = offset < has ? (size_t)bal_min(has - offset, len) : 0;

    memset(to + some, 0, len - some);
    return some ? bal_model_read(self->adapter, entry, offset, to, some, err)
                : 0;
}

static int read_b(shaped *self, size_t index, uint64_t offset, char *to,
                  size_t len, bal_error *err)
{
    const bal_shaped *row = &self->shape.rows[index];
    size_t width = bal_dtype_bits(row->dtypes[1]) / 8;
    const bal_scaled b = {
        row->b, row->rank, self->shape.rank, row->factor, row->dtypes[1], 0,
    };

    if (row->b != BAL_NONE)
        return bal_scaled_read(&b, self->adapter, offset / width, len / width,
                               to, err);
    memset(to, 0, len);
    return 0;
}

static int read_config(shaped *self, size_t index, uint64_t offset, char *to,
                       size_t len, bal_error *err)
{
    (void)index;
    (void)err;
    memcpy(to, self->shape.config.data + offset, len);
    return 0;
}

static int read_file(shaped *self, size_t index, uint64_t offset, char *to,
                     size_t len, bal_error *err)
{
    return bal_model_read(self->adapter, index, offset, to, len, err);
}

static read_fn *const readers[PARTS] = {
    [PART_A] = read_a,
    [PART_B] = read_b,
    [PART_CONFIG] = read_config,
    [PART_FILE] = read_file,
};

static int shaped_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    size_t tag = bal_model_tag(model, i);

    return readers[tag % PARTS]((shaped *)model, tag / PARTS, offset, to, len,
                                err);
}

/* Factors that are as they were are the adapter's own. */
static bal_model *shaped_source(bal_model *model, size_t *i)
{
    shaped *self = (shaped *)model;
    size_t tag = bal_model_tag(model, *i);
    size_t index = tag / PARTS;
    part what = (part)(tag % PARTS);

    if (what == PART_FILE) {
        *i = index;
        return self->adapter;
    }
    if (what == PART_CONFIG)
        return NULL;
    const bal_shaped *row = &self->shape.rows[index];
    if (row->a == BAL_NONE || row->rank != self->shape.rank ||
        (what == PART_B && fabs(row->factor - 1) > 0))
        return NULL;
    *i = what == PART_A ? row->a : row->b;
    return self->adapter;
}

static void shaped_free(bal_model *model)
{
    shaped *self = (shaped *)model;

    bal_lora_shape_done(&self->shape);
    bal_model_free(self->adapter);
}

static const bal_model_ops ops = {
    .read = shaped_read,
    .free = shaped_free,
    .source = shaped_source,
};

static int add_factor(shaped *self, size_t i, part what, bal_error *err)
{
    const bal_shaped *row = &self->shape.rows[i];
    bool a = what == PART_A;
    uint64_t shape[2] = { a ? self->shape.rank : row->out,
                          a ? row->in : self->shape.rank };
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%s%s.lora_%s%c%s", BAL_PEFT_PREFIX,
                            row->module, row->embedding ? "embedding_" : "",
                            a ? 'A' : 'B', row->embedding ? "" : ".weight");
    if (rc)
        return rc;
    bal_tensor entry = {
        .name = bal_buf_string(&name),
        .dtype = row->dtypes[a ? 0 : 1],
        .of = row->dtypes[a ? 0 : 1],
        .rank = 2,
        .shape = shape,
    };
    return bal_model_add(&self->model, &entry, i * PARTS + (size_t)what, err);
}

static int add_files(shaped *self, bal_error *err)
{
    uint64_t size = self->shape.config.len;
    bal_tensor config = {
        .name = BAL_PEFT_CONFIG,
        .part = BAL_PART_FILE,
        .dtype = BAL_U8,
        .of = BAL_U8,
        .rank = 1,
        .shape = &size,
        .size = size,
    };
    int rc = bal_model_add(&self->model, &config, PART_CONFIG, err);

    for (size_t i = 0; i < bal_model_count(self->adapter) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(self->adapter, i);

        if (entry->part == BAL_PART_FILE &&
            strcmp(entry->name, BAL_PEFT_CONFIG) != 0)
            rc = bal_model_add(&self->model, entry, i * PARTS + PART_FILE, err);
    }
    return rc;
}

int bal_lora_shaped(bal_model **out, bal_model *adapter, bal_lora_shape *shape,
                    bal_error *err)
{
    shaped *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "an adapter");
    BAL_OWN(bal_model) model = &self->model;

    self->adapter = bal_model_ref(adapter);
    self->shape = *shape;
    *shape = (bal_lora_shape){ 0 };
    int rc = bal_model_tell(model, bal_model_facts(adapter), err);
    for (size_t i = 0; i < self->shape.count && !rc; i++) {
        rc = add_factor(self, i, PART_A, err);
        if (!rc)
            rc = add_factor(self, i, PART_B, err);
    }
    if (!rc)
        rc = add_files(self, err);
    if (!rc)
        rc = bal_model_ready(model, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
