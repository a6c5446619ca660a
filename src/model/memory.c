/* Arrays that somebody else has in memory, as a model. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "model/model.h"
#include "model/path.h"

typedef struct memory {
    bal_model model;
    const void **data; /* by tag; in the arena */
    void (*release)(void *ctx);
    void *ctx;
} memory;

static int memory_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    const memory *self = (const memory *)model;
    const char *data = self->data[bal_model_tag(model, i)];

    (void)err;
    if (len)
        memcpy(to, data + offset, len);
    return 0;
}

static void memory_free(bal_model *model)
{
    memory *self = (memory *)model;

    if (self->release)
        self->release(self->ctx);
}

static const bal_model_ops ops = { .read = memory_read, .free = memory_free };

/* ---- what may be in it -------------------------------------------------- */

static int check_tensor(const bal_array *row, bal_error *err)
{
    uint64_t elements = 0;
    uint64_t size = 0;

    if ((unsigned)row->dtype >= BAL_DTYPES || row->rank > BAL_MAX_RANK ||
        (row->rank && !row->shape))
        return bal_fail(err, BAL_EINVAL, "tensor '%.200s' has no such shape",
                        row->name);
    if (!bal_shape_size(&elements, &size, row->dtype, row->shape, row->rank) ||
        size != row->size)
        return bal_fail(err, BAL_EINVAL,
                        "tensor '%.200s' has another size than its shape takes",
                        row->name);
    return 0;
}

static int check(const bal_array *row, bal_error *err)
{
    if (!row->name || !row->name[0] ||
        !bal_utf8_valid(row->name, strlen(row->name)))
        return bal_fail(err, BAL_EINVAL, "an array without a name");
    if (row->size && !row->data)
        return bal_fail(err, BAL_EINVAL, "'%.200s' has no bytes", row->name);
    if (row->part == BAL_PART_TENSOR)
        return check_tensor(row, err);
    if (row->part != BAL_PART_FILE || !bal_side_name_valid(row->name))
        return bal_fail(err, BAL_EINVAL, "'%.200s' is no name for a side file",
                        row->name);
    return 0;
}

static int add(memory *self, const bal_array *row, size_t n, bal_error *err)
{
    bool file = row->part == BAL_PART_FILE;
    const bal_tensor entry = {
        .name = row->name,
        .part = row->part,
        .dtype = file ? BAL_U8 : row->dtype,
        .of = file ? BAL_U8 : row->dtype,
        .rank = file ? 1 : row->rank,
        .shape = file ? &row->size : row->shape,
        .size = row->size,
    };
    int rc = check(row, err);
    if (!rc)
        rc = bal_model_add(&self->model, &entry, n, err);
    if (rc == BAL_ECORRUPT)
        return bal_fail(err, BAL_EINVAL, "'%.200s' is there twice", row->name);
    self->data[n] = row->data;
    return rc;
}

int bal_model_from_arrays(bal_model **out, const bal_arrays *arrays,
                          bal_error *err)
{
    memory *self = bal_model_alloc(sizeof(*self), &ops);
    BAL_OWN(bal_model) model = self ? &self->model : NULL;
    const bal_facts facts = {
        .kind = arrays->kind,
        .name = arrays->name ? arrays->name : "arrays",
        .base_model = arrays->base_model,
    };

    if (!self)
        return bal_fail_memory(err, "a model");
    if (arrays->kind != BAL_KIND_WEIGHTS && arrays->kind != BAL_KIND_ADAPTER)
        return bal_fail(err, BAL_EINVAL, "arrays are weights or an adapter");
    int rc = bal_model_tell(model, &facts, err);
    self->data = bal_arena_alloc(&model->arena,
                                 (arrays->count + 1) * sizeof(*self->data));
    if (!rc && !self->data)
        rc = bal_fail_memory(err, "a model");
    for (size_t i = 0; i < arrays->count && !rc; i++)
        rc = add(self, &arrays->rows[i], i, err);
    if (!rc)
        rc = bal_model_ready(model, err);
    if (rc)
        return rc;
    self->release = arrays->release;
    self->ctx = arrays->ctx;
    *out = BAL_TAKE(model);
    return 0;
}
