/* Sums are taken in registers of F32, file after file, as deltatensors takes
 * them, and rounded to the base's dtype once. */
#include "wdelta/chain.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "wdelta/lossless.h"
#include "wdelta/reader.h"
#include "wdelta/widen.h"

/* Entries have their index in the base as tag. */
typedef struct chain {
    bal_model model;
    bal_model *base;
    bal_wdelta **files;
    size_t count;
    unsigned flags;
} chain;

/* ---- reading ------------------------------------------------------------ */

/* One call's buffers, and a reader a file that has the tensor. */
typedef struct sum {
    bal_wd_reader *readers;
    size_t count;
    float *x;
    uint8_t *raw;
    void *memory;
} sum;

static void sum_done(sum *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_wd_reader_done(&self->readers[i]);
    free(self->readers);
    free(self->memory);
}

static const bal_wd_tensor *tensor_of(const bal_wdelta *file, const char *name)
{
    size_t i = bal_map_find(&file->names, name, strlen(name));

    return i == BAL_NONE ? NULL : &file->tensors[i];
}

static int sum_open(sum *out, const chain *self, const bal_tensor *entry,
                    uint64_t at, uint64_t n, bal_error *err)
{
    size_t some = (size_t)bal_min(n, BAL_WD_CHUNK);

    out->readers = calloc(self->count + 1, sizeof(*out->readers));
    out->memory = malloc(some * (sizeof(float) + 8) + BAL_PAGE);
    if (!out->readers || !out->memory)
        return bal_fail_memory(err, "reading a .wdelta file");
    out->raw = bal_page_start(out->memory);
    out->x = (float *)(void *)(out->raw + 8 * some);
    for (size_t i = 0; i < self->count; i++) {
        const bal_wd_tensor *tensor = tensor_of(self->files[i], entry->name);
        if (!tensor)
            continue;
        int rc = bal_wd_reader_open(&out->readers[out->count++], self->files[i],
                                    tensor, at, n, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_sum(const chain *self, const bal_tensor *entry, size_t from,
                    uint64_t at, void *to, uint64_t n, bal_error *err)
{
    BAL_LOCAL(sum) parts = { 0 };
    bal_dtype dtype = bal_model_at(self->base, from)->dtype;
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t out_width = bal_dtype_bits(entry->dtype) / 8;
    uint8_t *out = to;
    int rc = sum_open(&parts, self, entry, at, n, err);

    while (n && !rc) {
        size_t some = (size_t)bal_min(n, BAL_WD_CHUNK);
        rc = bal_model_read(self->base, from, at * width, parts.raw,
                            some * width, err);
        if (rc)
            return rc;
        bal_wd_widen(parts.x, dtype, parts.raw, some);
        for (size_t i = 0; i < parts.count && !rc; i++)
            rc = bal_wd_reader_add(&parts.readers[i], parts.x, some, err);
        bal_wd_narrow(entry->dtype, out, parts.x, some);
        at += some;
        n -= some;
        out += some * out_width;
    }
    return rc;
}

static bool covered(const chain *self, const bal_tensor *entry)
{
    if (entry->part != BAL_PART_TENSOR)
        return false;
    if (self->flags & BAL_WD_RAW && bal_wd_widens(entry->of))
        return true;
    for (size_t i = 0; i < self->count; i++) {
        if (tensor_of(self->files[i], entry->name))
            return true;
    }
    return false;
}

static int chain_read(bal_model *model, size_t i, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    const chain *self = (chain *)model;
    const bal_tensor *entry = bal_model_at(model, i);
    size_t from = bal_model_tag(model, i);
    size_t width = bal_dtype_bits(entry->dtype) / 8;

    if (!covered(self, entry))
        return bal_model_read(self->base, from, offset, to, len, err);
    int rc = read_sum(self, entry, from, offset / width, to, len / width, err);
    return rc ? bal_within(err, rc, "tensor '%.200s'", entry->name) : 0;
}

static void chain_free(bal_model *model)
{
    chain *self = (chain *)model;

    bal_model_free(self->base);
    free(self->files);
}

static const bal_model_ops ops = { .read = chain_read, .free = chain_free };

/* ---- listing ------------------------------------------------------------ */

static int add_entry(chain *self, size_t i, bal_error *err)
{
    bal_tensor entry = *bal_model_at(self->base, i);

    if (entry.form != BAL_FORM_WHOLE)
        return bal_fail(err, BAL_EINVAL,
                        "a base that is a difference to a base itself");
    if (covered(self, &entry)) {
        entry.tuned = NULL;
        if (!bal_wd_widens(entry.dtype))
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%.200s': no differences of %s in a "
                            ".wdelta file but by 'lossless'",
                            entry.name, bal_dtype_name(entry.dtype));
        if (self->flags & BAL_WD_RAW)
            entry.dtype = BAL_F32;
    }
    return bal_model_add(&self->model, &entry, i, err);
}

static bool same_shape(const bal_wd_tensor *tensor, const bal_tensor *entry)
{
    return tensor->rank == entry->rank &&
           (!entry->rank || !memcmp(tensor->shape, entry->shape,
                                    entry->rank * sizeof(*entry->shape)));
}

static int check_file(const bal_model *base, const bal_wdelta *file,
                      bal_error *err)
{
    const char *name = bal_model_facts(base)->name;

    for (size_t i = 0; i < file->count; i++) {
        const bal_wd_tensor *tensor = &file->tensors[i];
        size_t at = bal_model_find(base, BAL_PART_TENSOR, tensor->name);
        if (at != BAL_NONE && same_shape(tensor, bal_model_at(base, at)))
            continue;
        return bal_fail(err, BAL_ECORRUPT,
                        "'%s' is not the base of '%s': it has %s tensor "
                        "'%.200s'",
                        name ? name : "base", file->file->path,
                        at == BAL_NONE ? "no" : "another shape of",
                        tensor->name);
    }
    return 0;
}

static int list(chain *self, bal_error *err)
{
    bal_facts facts = *bal_model_facts(self->base);

    facts.kind = BAL_KIND_WEIGHTS;
    int rc = bal_model_tell(&self->model, &facts, err);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = check_file(self->base, self->files[i], err);
    for (size_t i = 0; i < bal_model_count(self->base) && !rc; i++)
        rc = add_entry(self, i, err);
    return rc ? rc : bal_model_ready(&self->model, err);
}

/* Files that are added up in F32, and rounded once. */
static int sum_up(bal_model **out, bal_model *base, bal_wdelta *const *files,
                  size_t count, unsigned flags, bal_error *err)
{
    chain *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "reading a .wdelta file");
    BAL_OWN(bal_model) model = &self->model;

    self->base = bal_model_ref(base);
    self->flags = flags;
    self->files = calloc(count + 1, sizeof(bal_wdelta *));
    if (!self->files)
        return bal_fail_memory(err, "reading a .wdelta file");
    for (size_t i = 0; i < count; i++)
        self->files[i] = files[i];
    self->count = count;
    int rc = list(self, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(model);
    return 0;
}

/* How many files from `at` on are added up together. */
static size_t run_of(bal_wdelta *const *files, size_t count, size_t at)
{
    size_t end = at;

    while (end < count && !bal_wd_exact(files[end]))
        end++;
    return end - at;
}

/* What is stored without loss is a model of its own, and the base of what
 * follows. */
int bal_wd_chain(bal_model **out, bal_model *base, bal_wdelta *const *files,
                 size_t count, unsigned flags, bal_error *err)
{
    BAL_OWN(bal_model) model = bal_model_ref(base);
    size_t at = 0;

    while (at < count) {
        BAL_OWN(bal_model) before = BAL_TAKE(model);
        size_t run = run_of(files, count, at);
        bool last = at + run == count;
        int rc =
            run ? sum_up(&model, before, files + at, run, last ? flags : 0, err)
                : bal_wd_lossless(&model, before, files[at], err);
        if (rc)
            return rc;
        at += bal_max(run, 1);
    }
    if (flags && (!count || bal_wd_exact(files[count - 1])))
        return sum_up(out, model, NULL, 0, flags, err);
    *out = BAL_TAKE(model);
    return 0;
}

int bal_model_from_wdelta(bal_model **out, bal_model *base,
                          bal_wdelta *const *files, size_t count,
                          bal_error *err)
{
    return bal_wd_chain(out, base, files, count, 0, err);
}
