/* base + change as a model. The list says of each entry where its bytes come
 * from: the base, the change, or the sum of both. */
#include <string.h>

#include "core/error.h"
#include "kernel/kernels.h"
#include "model/arithmetic.h"
#include "model/fold.h"
#include "model/index.h"
#include "model/layout.h"
#include "model/pairs.h"
#include "model/verify.h"
#include "model/wide.h"

typedef enum source {
    FROM_BASE,
    FROM_CHANGE,
    FROM_SUM,
    SOURCES,
} source;

/* Entries have the number of their pair as tag: a in base, b in change. */
typedef struct plus {
    bal_model model;
    bal_model *base, *change;
    bal_pairs pairs;
    source *sources; /* by pair */
} plus;

/* ---- reading ------------------------------------------------------------ */

/* Of every chunk, source 0 is the base, 1 the difference, 2 the residual. */
typedef struct sum {
    bal_dtype base, change, of, wide;
    bool residual;
} sum;

static void sum_chunk(const bal_chunk *chunk, void *ctx)
{
    const sum *self = ctx;
    const bal_kernels *kernels = bal_kernels_use();

    if (!self->residual && self->of == self->base && self->change == BAL_F32 &&
        kernels->sum[self->of]) {
        kernels->sum[self->of](chunk->to, chunk->raw[0], chunk->raw[1],
                               chunk->n);
        return;
    }
    const void *base = bal_widened(self->wide, chunk->room[0], self->base,
                                   chunk->raw[0], chunk->n);
    const void *change = bal_widened(self->wide, chunk->room[1], self->change,
                                     chunk->raw[1], chunk->n);

    bal_wide_add(self->wide, chunk->room[2], base, change, chunk->n);
    bal_narrow(self->of, chunk->to, self->wide, chunk->room[2], chunk->n);
    if (self->residual)
        bal_residual_add(self->of, chunk->to, chunk->to, chunk->raw[2],
                         chunk->n);
}

static bool has_residual(const bal_model *change, size_t i)
{
    return i + 1 < bal_model_count(change) &&
           bal_model_at(change, i + 1)->form == BAL_FORM_RESIDUAL;
}

static int read_base(const plus *self, const bal_pair *pair, uint64_t offset,
                     void *to, size_t len, bal_error *err)
{
    return bal_model_read(self->base, pair->a, offset, to, len, err);
}

static int read_change(const plus *self, const bal_pair *pair, uint64_t offset,
                       void *to, size_t len, bal_error *err)
{
    return bal_model_read(self->change, pair->b, offset, to, len, err);
}

static int read_sum(const plus *self, const bal_pair *pair, uint64_t offset,
                    void *to, size_t len, bal_error *err)
{
    const bal_tensor *base = bal_model_at(self->base, pair->a);
    const bal_tensor *change = bal_model_at(self->change, pair->b);
    bal_dtype wide = bal_wide_of(base->dtype, change->dtype);
    size_t width = bal_dtype_bits(change->of) / 8;
    bool residual = has_residual(self->change, pair->b);
    sum dtypes = { base->dtype, change->dtype, change->of, wide, residual };
    bal_wide_job job = {
        .sources = { { self->base, pair->a, bal_dtype_bits(base->dtype) / 8 },
                     { self->change, pair->b,
                       bal_dtype_bits(change->dtype) / 8 },
                     { self->change, pair->b + 1, width } },
        .count = residual ? 3 : 2,
        .width = width,
        .fn = sum_chunk,
        .ctx = &dtypes,
    };

    return bal_wide_run(&job, offset / width, len / width, to, err);
}

static int plus_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    static int (*const readers[SOURCES])(const plus *, const bal_pair *,
                                         uint64_t, void *, size_t,
                                         bal_error *) = {
        [FROM_BASE] = read_base,
        [FROM_CHANGE] = read_change,
        [FROM_SUM] = read_sum,
    };
    const plus *self = (plus *)model;
    size_t tag = bal_model_tag(model, i);

    return readers[self->sources[tag]](self, &self->pairs.rows[tag], offset, to,
                                       len, err);
}

static void plus_free(bal_model *model)
{
    plus *self = (plus *)model;

    bal_model_free(self->base);
    bal_model_free(self->change);
    bal_pairs_done(&self->pairs);
    free(self->sources);
}

static bal_model *plus_source(bal_model *model, size_t *i)
{
    const plus *self = (plus *)model;
    size_t tag = bal_model_tag(model, *i);
    const bal_pair *pair = &self->pairs.rows[tag];
    source from = self->sources[tag];

    if (from == FROM_SUM)
        return NULL;
    *i = from == FROM_BASE ? pair->a : pair->b;
    return from == FROM_BASE ? self->base : self->change;
}

static const bal_model_ops ops = {
    .read = plus_read,
    .free = plus_free,
    .source = plus_source,
};

/* ---- listing ------------------------------------------------------------ */

/* entry: what the result is like; its digest is in `tuned` where known. */
static int add(plus *self, size_t n, source from, const bal_tensor *entry,
               bal_error *err)
{
    bal_tensor copy = *entry;

    copy.form = BAL_FORM_WHOLE;
    copy.base = NULL;
    self->sources[n] = from;
    return bal_model_add(&self->model, &copy, n, err);
}

static int add_base(plus *self, size_t n, bal_error *err)
{
    bal_tensor entry = *bal_model_at(self->base, self->pairs.rows[n].a);

    entry.tuned = NULL;
    return add(self, n, FROM_BASE, &entry, err);
}

/* What a stored change says of its residual is not to be believed unseen. */
static bool residual_fits(const bal_model *change, size_t i)
{
    const bal_tensor *entry = bal_model_at(change, i);

    if (!has_residual(change, i))
        return true;
    const bal_tensor *residual = bal_model_at(change, i + 1);
    return residual->dtype == bal_dtype_row_of(entry->of)->bits_as &&
           bal_tensor_same_shape(entry, residual);
}

static int add_sum(plus *self, size_t n, bal_error *err)
{
    const bal_pair *pair = &self->pairs.rows[n];
    bal_tensor entry = *bal_model_at(self->change, pair->b);

    if (pair->a == BAL_NONE)
        return bal_base_differs(entry.name, err);
    const bal_tensor *base = bal_model_at(self->base, pair->a);
    if (!bal_tensor_float(base) || !bal_tensor_same_shape(base, &entry))
        return bal_base_differs(entry.name, err);
    if (!bal_tensor_float(&entry) || (unsigned)entry.of >= BAL_DTYPES ||
        bal_dtype_row_of(entry.of)->class_of != BAL_CLASS_FLOAT ||
        !residual_fits(self->change, pair->b))
        return bal_fail(err, BAL_ECORRUPT,
                        "tensor '%.200s': a difference that no float tensor "
                        "has",
                        entry.name);
    entry.dtype = entry.of;
    return add(self, n, FROM_SUM, &entry, err);
}

static int add_same(plus *self, size_t n, bal_error *err)
{
    const bal_pair *pair = &self->pairs.rows[n];
    const bal_tensor *entry = bal_model_at(self->change, pair->b);

    if (pair->a != BAL_NONE)
        return add_base(self, n, err);
    if (entry->part == BAL_PART_TENSOR)
        return bal_base_differs(entry->name, err);
    return 0;
}

static int add_change(plus *self, size_t n, bal_error *err)
{
    return add(self, n, FROM_CHANGE,
               bal_model_at(self->change, self->pairs.rows[n].b), err);
}

static int add_none(plus *self, size_t n, bal_error *err)
{
    (void)self;
    (void)n;
    (void)err;
    return 0;
}

static int add_header(plus *self, size_t n, const bal_layout *layout,
                      bal_error *err)
{
    const bal_pair *pair = &self->pairs.rows[n];

    if (pair->b != BAL_NONE && layout->change[pair->b])
        return add_change(self, n, err);
    if (pair->a != BAL_NONE && layout->base[pair->a])
        return add_base(self, n, err);
    return 0;
}

/* The index goes with the layout. */
static bool keeps_index(const bal_tensor *entry, const bal_layout *layout)
{
    return !layout->changed && entry->part == BAL_PART_FILE &&
           !strcmp(entry->name, BAL_INDEX_NAME);
}

static int add_pair(plus *self, size_t n, const bal_layout *layout, bool whole,
                    bal_error *err)
{
    static int (*const adders[])(plus *, size_t, bal_error *) = {
        [BAL_FORM_WHOLE] = add_change,  [BAL_FORM_DIFFERENCE] = add_sum,
        [BAL_FORM_RESIDUAL] = add_none, [BAL_FORM_SAME] = add_same,
        [BAL_FORM_REMOVED] = add_none,
    };
    const bal_pair *pair = &self->pairs.rows[n];
    const bal_tensor *base =
        pair->a == BAL_NONE ? NULL : bal_model_at(self->base, pair->a);
    const bal_tensor *change =
        pair->b == BAL_NONE ? NULL : bal_model_at(self->change, pair->b);

    const bal_tensor *some = base ? base : change;
    if (!some)
        return 0;
    if (some->part == BAL_PART_HEADER)
        return add_header(self, n, layout, err);
    bool kept = !change || keeps_index(some, layout);
    if (!kept)
        return adders[change->form](self, n, err);
    if (!base || (whole && base->part == BAL_PART_TENSOR))
        return 0;
    return add_base(self, n, err);
}

/* whole: what change lacks, the result lacks. */
static int list(plus *self, bool whole, bal_error *err)
{
    BAL_LOCAL(bal_layout) layout = { 0 };

    int rc = whole ? bal_layout_of_whole(&layout, self->base, self->change, err)
                   : bal_layout_choose(&layout, self->base, self->change, err);
    if (rc)
        return rc;
    rc = bal_pairs_join(&self->pairs, self->base, self->change, err);
    if (rc)
        return rc;
    self->sources = calloc(self->pairs.count + 1, sizeof(*self->sources));
    if (!self->sources)
        return bal_fail_memory(err, "applying a change");
    for (size_t n = 0; n < self->pairs.count; n++) {
        rc = add_pair(self, n, &layout, whole, err);
        if (rc)
            return rc;
    }
    return bal_model_ready(&self->model, err);
}

/* True if every tensor of a model stands for itself. */
static bool is_whole(const bal_model *model)
{
    for (size_t i = 0; i < bal_model_count(model); i++) {
        if (bal_model_at(model, i)->form != BAL_FORM_WHOLE)
            return false;
    }
    return true;
}

static int tell(plus *self, bal_error *err)
{
    const bal_facts *base = bal_model_facts(self->base);
    const bal_facts *change = bal_model_facts(self->change);
    bal_facts facts = {
        .kind = BAL_KIND_WEIGHTS,
        .name = change->name,
        .base_model = base->base_model ? base->base_model : base->name,
        .revision = base->revision,
        .report = change->report,
    };

    return bal_model_tell(&self->model, &facts, err);
}

static int plus_open(bal_model **out, bal_model *base, bal_model *change,
                     bal_error *err)
{
    plus *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "applying a change");
    BAL_OWN(bal_model) model = &self->model;
    bool whole =
        bal_model_facts(change)->kind != BAL_KIND_DELTA && is_whole(change);

    self->base = bal_model_ref(base);
    self->change = bal_model_ref(change);
    int rc = tell(self, err);
    if (rc)
        return rc;
    rc = list(self, whole, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(model);
    return 0;
}

/* The tensors are those of the base, yet a tokenizer or template may be
 * another: the result loads, and reads and writes text in another way. */
static int warn_of_files(bal_model *base, bal_model *change, bal_work *work,
                         bal_error *err)
{
    BAL_LOCAL(bal_buf) differ = { 0 };

    int rc = bal_base_files_differ(&differ, base, change, work, err);
    if (rc || !differ.len)
        return rc;
    differ.len--;
    for (size_t i = 0; i < differ.len; i++) {
        if (differ.data[i] == '\n')
            differ.data[i] = ',';
    }
    bal_warn("base",
             "base-files-differ=%.*s why=\"others than the change was made "
             "with; the tensors are the same\"",
             (int)differ.len, differ.data);
    return 0;
}

int bal_model_plus(bal_model **out, bal_model *base, bal_model *change,
                   unsigned flags, bal_work *work, bal_error *err)
{
    const char *name = bal_model_facts(base)->name;

    if (!is_whole(base))
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is a difference to a base itself: it cannot be "
                        "one",
                        name ? name : "base");
    if (bal_model_facts(change)->kind == BAL_KIND_ADAPTER)
        return bal_fold_open(out, base, change, work, err);
    if (!(flags & BAL_PLUS_ANY_BASE)) {
        int rc = bal_base_verify(base, change, work, err);
        if (rc)
            return rc;
        rc = warn_of_files(base, change, work, err);
        if (rc)
            return rc;
    }
    return plus_open(out, base, change, err);
}
