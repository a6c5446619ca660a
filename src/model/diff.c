/* Two models side by side. Sums are added up in the order of a tree over a
 * tensor's values (sums.h), so they do not depend on threads, on what dtype
 * holds the values, or on what of them had to be read.
 *
 * Of two deltas, differences are compared with differences: a tensor that one
 * of them does not change is zero there. Where a delta replaces a tensor as a
 * whole (integers, new shapes), the other's value is not at hand unless it
 * replaces it, too: then the tensor counts as changed from zero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "model/alike.h"
#include "model/pairs.h"
#include "model/values.h"

/* Rows of which nothing is read are settled when they are planned. */
typedef struct diff_plan {
    bal_change change;
    bool hidden;    /* no row: neither model has the tensor */
    bool reads;     /* values are compared */
    bool alike;     /* one dtype: bits can be compared */
    bool unequal;   /* changed, whatever the values say */
    bool of_differ; /* the models' own dtypes differ */
    bool opaque;    /* there are no numbers to be had */
    size_t a, b;    /* entries to be read, BAL_NONE: zeros */
    uint64_t count; /* of values */
} diff_plan;

typedef struct diff_slot {
    bal_compared sums;
    bool unequal; /* in bits where alike, in values elsewhere */
} diff_slot;

typedef struct diff_job {
    bal_model *a, *b;
    bal_pairs pairs;
    diff_plan *plans; /* by pair */
    diff_slot *slots; /* by piece */
} diff_job;

static void diff_job_done(diff_job *self)
{
    bal_pairs_done(&self->pairs);
    free(self->plans);
    free(self->slots);
}

/* ---- planning ----------------------------------------------------------- */

static const bal_tensor *entry_of(const bal_model *model, size_t i)
{
    return i == BAL_NONE ? NULL : bal_model_at(model, i);
}

static bool is_form(const bal_tensor *entry, bal_form form)
{
    return entry && entry->form == form;
}

/* True if the entry has bytes. */
static bool has_values(const bal_tensor *entry)
{
    return is_form(entry, BAL_FORM_WHOLE) ||
           is_form(entry, BAL_FORM_DIFFERENCE);
}

/* In a model that stands alone a tensor is there if it is listed; of a delta
 * one can only say that it adds it or removes it. */
static bool is_absent(const bal_tensor *entry, const bal_tensor *other,
                      bool delta)
{
    if (!delta)
        return !entry;
    bool added = is_form(other, BAL_FORM_WHOLE) && !other->base;
    return is_form(entry, BAL_FORM_REMOVED) || (!entry && added);
}

static uint64_t values_in(const bal_tensor *entry)
{
    return entry->size / bal_values_of(entry->dtype)->width;
}

static diff_plan plan_values(const bal_pair *pair, const bal_tensor *a,
                             const bal_tensor *b)
{
    diff_plan out = { .change = BAL_UNCHANGED, .a = BAL_NONE, .b = BAL_NONE };
    bool in_a = has_values(a);
    bool in_b = has_values(b);

    /* What is on top of another base is another tensor, whatever is on top. */
    if (a && b && a->base && b->base && a->form != BAL_FORM_WHOLE &&
        b->form != BAL_FORM_WHOLE && !bal_id_equal(a->base, b->base))
        return (diff_plan){ .change = BAL_CHANGED, .opaque = true };
    if (!in_a && !in_b)
        return out;
    if (in_a && in_b && !bal_tensor_same_shape(a, b))
        return (diff_plan){ .change = BAL_RESHAPED };
    out.reads = true;
    out.a = in_a ? pair->a : BAL_NONE;
    out.b = in_b ? pair->b : BAL_NONE;
    out.alike = !in_a || !in_b || a->dtype == b->dtype;
    out.of_differ = in_a && in_b && a->of != b->of;
    out.count = values_in(in_a ? a : b);
    bool whole = (in_a ? a : b)->form == BAL_FORM_WHOLE;
    out.unequal = in_a && in_b ? a->form != b->form : whole;
    if (in_a && in_b && a->tuned && b->tuned)
        out.unequal |= !out.of_differ && !bal_id_equal(a->tuned, b->tuned);
    return out;
}

static diff_plan plan_pair(const diff_job *job, const bal_pair *pair)
{
    const bal_tensor *a = entry_of(job->a, pair->a);
    const bal_tensor *b = entry_of(job->b, pair->b);
    bool delta = bal_model_facts(job->a)->kind == BAL_KIND_DELTA;
    bool no_a = is_absent(a, b, delta);
    bool no_b = is_absent(b, a, delta);

    if (no_a && no_b)
        return (diff_plan){ .hidden = true };
    if (no_a)
        return (diff_plan){ .change = BAL_ADDED };
    if (no_b)
        return (diff_plan){ .change = BAL_REMOVED };
    return plan_values(pair, a, b);
}

/* Values of two dtypes can be compared if both have values. */
static void settle(diff_plan *self, const diff_job *job)
{
    if (!self->reads)
        return;
    const bal_tensor *a = entry_of(job->a, self->a);
    const bal_tensor *b = entry_of(job->b, self->b);
    const bal_values_row *row = bal_values_of((a ? a : b)->dtype);
    const bal_values_row *other = bal_values_of((b ? b : a)->dtype);
    self->opaque = !row->read || !other->read || row->each != other->each;
    if (self->alike || !self->opaque)
        return;
    self->reads = false;
    self->unequal = true;
}

static int make_plans(diff_job *job, bal_error *err)
{
    size_t tensors = 0;

    int rc = bal_pairs_join(&job->pairs, job->a, job->b, err);
    if (rc)
        return rc;
    job->plans = calloc(job->pairs.count + 1, sizeof(*job->plans));
    if (!job->plans)
        return bal_fail_memory(err, "comparing two models");
    for (size_t i = 0; i < job->pairs.count; i++) {
        bal_pair *pair = &job->pairs.rows[i];
        const bal_tensor *a = entry_of(job->a, pair->a);
        const bal_tensor *b = entry_of(job->b, pair->b);
        const bal_tensor *some = a ? a : b;
        if (!some || some->part != BAL_PART_TENSOR)
            break;
        diff_plan *self = &job->plans[tensors++];
        *self = plan_pair(job, pair);
        settle(self, job);
        pair->pieces =
            self->reads
                ? (size_t)bal_max(1, (self->count + BAL_ALIKE_PIECE - 1) /
                                         BAL_ALIKE_PIECE)
                : 1;
        pair->bytes = 0;
        if (self->reads)
            pair->bytes = (a ? a->size : 0) + (b ? b->size : 0);
    }
    job->pairs.count = tensors;
    rc = bal_pairs_plan(&job->pairs, err);
    if (rc)
        return rc;
    job->slots = calloc(job->pairs.pieces + 1, sizeof(*job->slots));
    return job->slots ? 0 : bal_fail_memory(err, "comparing two models");
}

/* ---- comparing ---------------------------------------------------------- */

/* Where a side is not there, it is zeros of the other's dtype. */
static bal_dtype dtype_of(const diff_job *job, const diff_plan *plan, bool of_b)
{
    bool from_b = of_b ? plan->b != BAL_NONE : plan->a == BAL_NONE;

    return from_b ? bal_model_at(job->b, plan->b)->dtype
                  : bal_model_at(job->a, plan->a)->dtype;
}

static int compare_piece(const bal_pair *pair, size_t piece, void *ctx,
                         bal_error *err)
{
    diff_job *job = ctx;
    const diff_plan *plan = &job->plans[pair - job->pairs.rows];
    diff_slot *slot = &job->slots[pair->first + piece];
    uint64_t at = (uint64_t)piece * BAL_ALIKE_PIECE;

    if (!plan->reads || at >= plan->count)
        return 0;
    const bal_alike both = {
        .sides = { { plan->a == BAL_NONE ? NULL : job->a, plan->a,
                     dtype_of(job, plan, false) },
                   { plan->b == BAL_NONE ? NULL : job->b, plan->b,
                     dtype_of(job, plan, true) } },
        .bits = plan->alike,
        .opaque = plan->opaque,
    };
    return bal_alike_run(&slot->sums, &slot->unequal, &both, at,
                         bal_min(BAL_ALIKE_PIECE, plan->count - at), err);
}

/* ---- telling ------------------------------------------------------------ */

static bal_change change_of(const diff_plan *plan, const bal_compared *sums,
                            bool unequal)
{
    if (plan->change != BAL_UNCHANGED)
        return plan->change;
    if (unequal || plan->unequal || sums->wrong)
        return BAL_CHANGED;
    return plan->of_differ ? BAL_DTYPE_CHANGED : BAL_UNCHANGED;
}

/* A change that no number tells is infinite. */
static double relative_of(const diff_plan *plan, const bal_diff_row *row)
{
    if (row->change != BAL_CHANGED)
        return 0;
    if (!row->finite || plan->opaque)
        return (double)INFINITY;
    if (isinf(row->diff2) || isinf(row->norm2))
        return (double)INFINITY;
    if (row->diff2 > 0 && row->norm2 > 0)
        return sqrt(row->diff2) / sqrt(row->norm2);
    /* Squares may vanish where what is squared does not. */
    return row->diff2 > 0 || row->max_abs > 0 ? (double)INFINITY : 0;
}

static bal_diff_row row_of(const diff_job *job, size_t n, const char *name)
{
    const bal_pair *pair = &job->pairs.rows[n];
    const diff_plan *plan = &job->plans[n];
    bal_compared sums = { 0 };
    bal_tree diff2 = { .depth = 0 };
    bal_tree norm2 = { .depth = 0 };
    bool unequal = false;

    for (size_t i = 0; i < pair->pieces; i++) {
        const diff_slot *slot = &job->slots[pair->first + i];
        bal_tree_add(&diff2, BAL_ALIKE_LEVEL, slot->sums.diff2);
        bal_tree_add(&norm2, BAL_ALIKE_LEVEL, slot->sums.norm2);
        sums.max_abs = slot->sums.max_abs > sums.max_abs ? slot->sums.max_abs
                                                         : sums.max_abs;
        sums.wrong += slot->sums.wrong;
        unequal = unequal || slot->unequal;
    }

    bal_diff_row row = {
        .name = name,
        .change = change_of(plan, &sums, unequal),
        .dtype_changed = plan->of_differ,
        .finite = !sums.wrong,
        .same_bits = plan->alike && plan->reads && !unequal && !plan->unequal,
        .max_abs = sums.wrong ? (double)INFINITY : sums.max_abs,
        .diff2 = bal_tree_sum(&diff2),
        .norm2 = bal_tree_sum(&norm2),
    };
    row.relative = relative_of(plan, &row);
    return row;
}

int bal_diff(bal_model *a, bal_model *b, bal_work *work, bal_diff_fn *fn,
             void *ctx, bal_error *err)
{
    BAL_LOCAL(diff_job) job = { .a = a, .b = b };
    bool delta_a = bal_model_facts(a)->kind == BAL_KIND_DELTA;
    bool delta_b = bal_model_facts(b)->kind == BAL_KIND_DELTA;

    if (delta_a != delta_b)
        return bal_fail(err, BAL_EINVAL,
                        "a delta is compared with a delta, not with %s",
                        bal_kind_name(bal_model_facts(delta_a ? b : a)->kind));
    int rc = make_plans(&job, err);
    if (rc)
        return rc;
    rc = bal_pairs_run(&job.pairs, work, compare_piece, &job, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < job.pairs.count; i++) {
        const bal_pair *pair = &job.pairs.rows[i];
        const bal_tensor *entry = pair->a == BAL_NONE
                                      ? bal_model_at(b, pair->b)
                                      : bal_model_at(a, pair->a);
        if (job.plans[i].hidden)
            continue;
        bal_diff_row row = row_of(&job, i, entry->name);
        if (fn(ctx, &row))
            return 0;
    }
    return 0;
}
