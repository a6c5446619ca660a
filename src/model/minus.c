/* tuned - base as a model. Listing it takes the first pass over both models
 * (minus_scan.c); reading it is the second, range by range, with nothing kept:
 * what a difference takes is two reads and a subtraction. */
#include <string.h>

#include "core/error.h"
#include "kernel/kernels.h"
#include "model/arithmetic.h"
#include "model/minus_scan.h"
#include "model/wide.h"

/* A RESIDUAL has the tag of its DIFFERENCE: the number of their pair. */
typedef struct minus {
    bal_model model;
    bal_model *tuned, *base;
    bool proves;
    bal_pairs pairs; /* a: in tuned, b: in base */
} minus;

/* ---- reading ------------------------------------------------------------ */

/* Dtypes of a pair that is subtracted. */
typedef struct twin {
    bal_dtype of, base, wide;
} twin;

static twin twin_of(const minus *self, size_t tag)
{
    const bal_pair *pair = &self->pairs.rows[tag];
    bal_dtype of = bal_model_at(self->tuned, pair->a)->dtype;
    bal_dtype base = bal_model_at(self->base, pair->b)->dtype;

    return (twin){ of, base, bal_wide_of(of, base) };
}

/* Of every chunk, source 0 is tuned and source 1 is base. */
static void difference_chunk(const bal_chunk *chunk, void *ctx)
{
    const twin *self = ctx;
    const bal_kernels *kernels = bal_kernels_use();

    if (self->of == self->base && kernels->diff[self->of]) {
        kernels->diff[self->of](chunk->to, chunk->raw[0], chunk->raw[1],
                                chunk->n);
        return;
    }
    const void *tuned = bal_widened(self->wide, chunk->room[0], self->of,
                                    chunk->raw[0], chunk->n);
    const void *base = bal_widened(self->wide, chunk->room[1], self->base,
                                   chunk->raw[1], chunk->n);

    bal_wide_sub(self->wide, chunk->to, tuned, base, chunk->n);
}

static void residual_chunk(const bal_chunk *chunk, void *ctx)
{
    const twin *self = ctx;
    const void *tuned = bal_widened(self->wide, chunk->room[0], self->of,
                                    chunk->raw[0], chunk->n);
    const void *base = bal_widened(self->wide, chunk->room[1], self->base,
                                   chunk->raw[1], chunk->n);
    void *sum = chunk->room[0];
    void *back = chunk->room[2];

    bal_wide_sub(self->wide, sum, tuned, base, chunk->n);
    bal_wide_add(self->wide, sum, base, sum, chunk->n);
    bal_narrow(self->of, back, self->wide, sum, chunk->n);
    bal_residual_sub(self->of, chunk->to, chunk->raw[0], back, chunk->n);
}

static int minus_read(bal_model *model, size_t i, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    minus *self = (minus *)model;
    const bal_tensor *entry = bal_model_at(model, i);
    size_t tag = bal_model_tag(model, i);
    const bal_pair *pair = &self->pairs.rows[tag];
    size_t width = bal_dtype_bits(entry->dtype) / 8;

    if (entry->form == BAL_FORM_WHOLE)
        return bal_model_read(self->tuned, pair->a, offset, to, len, err);
    twin both = twin_of(self, tag);
    bal_wide_job job = {
        .sources = { { self->tuned, pair->a, bal_dtype_bits(both.of) / 8 },
                     { self->base, pair->b, bal_dtype_bits(both.base) / 8 } },
        .count = 2,
        .width = width,
        .fn = entry->form == BAL_FORM_RESIDUAL ? residual_chunk
                                               : difference_chunk,
        .ctx = &both,
    };
    return bal_wide_run(&job, offset / width, len / width, to, err);
}

static void minus_free(bal_model *model)
{
    minus *self = (minus *)model;

    bal_model_free(self->tuned);
    bal_model_free(self->base);
    bal_pairs_done(&self->pairs);
}

static bal_model *minus_source(bal_model *model, size_t *i)
{
    minus *self = (minus *)model;

    if (bal_model_at(model, *i)->form != BAL_FORM_WHOLE)
        return NULL;
    *i = self->pairs.rows[bal_model_tag(model, *i)].a;
    return self->tuned;
}

static const bal_model_ops ops = {
    .read = minus_read,
    .free = minus_free,
    .source = minus_source,
};

/* ---- listing ------------------------------------------------------------ */

static int add_difference(minus *self, size_t n, bal_tensor *entry,
                          unsigned flags, bal_error *err)
{
    twin both = twin_of(self, n);

    entry->form = BAL_FORM_DIFFERENCE;
    entry->dtype = both.wide;
    int rc = bal_model_add(&self->model, entry, n, err);
    if (rc || !(flags & BAL_FOUND_RESIDUAL))
        return rc;
    entry->form = BAL_FORM_RESIDUAL;
    entry->dtype = bal_dtype_row_of(both.of)->bits_as;
    entry->base = NULL;
    entry->tuned = NULL;
    return bal_model_add(&self->model, entry, n, err);
}

static int add_entry(minus *self, size_t n, const bal_found *found,
                     bal_error *err)
{
    const bal_pair *pair = &self->pairs.rows[n];
    bool in_tuned = pair->a != BAL_NONE;
    bool in_base = pair->b != BAL_NONE;

    if (!in_tuned && !in_base)
        return 0;
    bal_tensor entry = in_tuned ? *bal_model_at(self->tuned, pair->a)
                                : *bal_model_at(self->base, pair->b);
    bool subtracts = bal_pair_subtracts(pair, self->tuned, self->base);
    bool known = self->proves || !subtracts;
    entry.tuned = in_tuned && known ? &found->tuned[n] : NULL;
    entry.base = in_base && known ? &found->base[n] : NULL;
    entry.of = entry.dtype;
    entry.form = in_tuned ? BAL_FORM_WHOLE : BAL_FORM_REMOVED;
    if (in_tuned && in_base && !(found->flags[n] & BAL_FOUND_UNEQUAL))
        entry.form = BAL_FORM_SAME;
    else if (subtracts)
        return add_difference(self, n, &entry, found->flags[n], err);
    return bal_model_add(&self->model, &entry, n, err);
}

/* Headers are taken from tuned as they are. */
static void drop_base_headers(minus *self)
{
    for (size_t n = 0; n < self->pairs.count; n++) {
        bal_pair *pair = &self->pairs.rows[n];
        if (pair->b != BAL_NONE &&
            bal_model_at(self->base, pair->b)->part == BAL_PART_HEADER)
            pair->b = BAL_NONE;
    }
}

static int list(minus *self, bal_work *work, bal_error *err)
{
    BAL_LOCAL(bal_found) found = { 0 };

    int rc = bal_pairs_join(&self->pairs, self->tuned, self->base, err);
    if (rc)
        return rc;
    drop_base_headers(self);
    rc = bal_minus_scan(&found, &self->pairs, self->tuned, self->base,
                        self->proves, work, err);
    if (rc)
        return rc;
    for (size_t n = 0; n < self->pairs.count; n++) {
        rc = add_entry(self, n, &found, err);
        if (rc)
            return rc;
    }
    return bal_model_ready(&self->model, err);
}

static int tell(minus *self, bal_error *err)
{
    const bal_facts *base = bal_model_facts(self->base);
    bal_facts facts = {
        .kind = BAL_KIND_DELTA,
        .name = bal_model_facts(self->tuned)->name,
        .base_model = base->base_model ? base->base_model : base->name,
        .revision = base->revision,
    };

    return bal_model_tell(&self->model, &facts, err);
}

static int check_alone(const bal_model *model, bal_error *err)
{
    const char *name = bal_model_facts(model)->name;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        if (bal_model_at(model, i)->form != BAL_FORM_WHOLE)
            return bal_fail(err, BAL_EINVAL,
                            "'%s' is a difference to a base itself: a delta "
                            "is made of whole models",
                            name ? name : "model");
    }
    return 0;
}

static int open_minus(bal_model **out, bal_model *tuned, bal_model *base,
                      bool proves, bal_work *work, bal_error *err)
{
    int rc = check_alone(tuned, err);
    if (rc)
        return rc;
    rc = check_alone(base, err);
    if (rc)
        return rc;
    minus *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "comparing two models");
    BAL_OWN(bal_model) model = &self->model;
    self->tuned = bal_model_ref(tuned);
    self->base = bal_model_ref(base);
    self->proves = proves;
    rc = tell(self, err);
    if (rc)
        return rc;
    rc = list(self, work, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(model);
    return 0;
}

int bal_model_minus(bal_model **out, bal_model *tuned, bal_model *base,
                    bal_work *work, bal_error *err)
{
    return open_minus(out, tuned, base, true, work, err);
}

int bal_minus_unproved(bal_model **out, bal_model *tuned, bal_model *base,
                       bal_work *work, bal_error *err)
{
    return open_minus(out, tuned, base, false, work, err);
}

/* ---- counting ----------------------------------------------------------- */

/* Where a base had the tensor too and no difference could be taken: floats were
 * of another shape; of others, nothing tells a new shape from new values. */
static uint64_t *count_of(bal_minus_report *out, const bal_tensor *entry)
{
    uint64_t *const counts[] = {
        [BAL_FORM_WHOLE] = &out->changed,
        [BAL_FORM_DIFFERENCE] = &out->changed,
        [BAL_FORM_RESIDUAL] = NULL,
        [BAL_FORM_SAME] = &out->unchanged,
        [BAL_FORM_REMOVED] = &out->removed,
    };

    if (entry->form == BAL_FORM_WHOLE && !entry->base)
        return &out->added;
    if (entry->form == BAL_FORM_WHOLE && bal_tensor_float(entry))
        return &out->reshaped;
    return counts[entry->form];
}

void bal_minus_count(bal_minus_report *out, const bal_model *delta)
{
    *out = (bal_minus_report){ 0 };
    for (size_t i = 0; i < bal_model_count(delta); i++) {
        const bal_tensor *entry = bal_model_at(delta, i);
        uint64_t *count = count_of(out, entry);
        if (entry->part == BAL_PART_TENSOR && count)
            ++*count;
    }
}
