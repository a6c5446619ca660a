/* Tensors are too large to be sorted, or to keep a mask of: what is kept is
 * told by a threshold (bal_ranking) or by draws that can be repeated (Philox),
 * so a mask is made anew with every tile. mergekit's own
 * draws (torch_stream.h) can be repeated as well, at the cost of going there.
 */
#include "merge/sparsify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/rank_walk.h"
#include "merge/values.h"

enum {
    TOGETHER = 16,   /* inputs that are looked at in one walk */
    DRAWN = 2048,    /* numbers drawn at once */
    PIECE = 512,     /* elements that stay in a core's first cache */
    NOTES = 2 << 20, /* about equal elements, of all inputs together */
};

/* ---- by magnitude ------------------------------------------------------- */

/* int(part * n) of Python; part is finite and not negative. */
static uint64_t part_of(double part, uint64_t n)
{
    double count = part * (double)n;

    return count < (double)n ? (uint64_t)count : n;
}

static int plan_magnitude(bal_sparse *self, const bal_tile *tile, size_t input,
                          const bal_values *values, bal_error *err)
{
    uint64_t n = tile->extent->total;
    uint64_t count = bal_max(part_of(self->density, n), 1);
    (void)input;
    (void)values;
    (void)err;

    self->low = n - count;
    self->high = n;
    self->descending = true;
    return 0;
}

static int plan_outliers(bal_sparse *self, const bal_tile *tile, size_t input,
                         const bal_values *values, bal_error *err)
{
    uint64_t n = tile->extent->total;
    uint64_t count = part_of(self->density, n);
    uint64_t top = part_of(bal_value_input(values, input, "gamma"), n);
    (void)err;

    if (!count)
        self->kept = BAL_KEPT_NONE;
    self->low = n - count - bal_min(top, n - count);
    self->high = self->low + count;
    return 0;
}

static void keep_ranked(double *mask, const bal_sparse *self,
                        const bal_tile *tile, size_t i)
{
    bal_ranked_keep(&self->ranked, tile->start, tile->inputs[i], mask, tile->n);
}

/* ---- at random ---------------------------------------------------------- */

/* The same of mergekit's numbers, of which one is drawn for each element. */
static void draw_torch(double *mask, const bal_tile *tile, size_t i)
{
    uint64_t first = tile->drawn[i] + tile->start;
    uint32_t drawn[DRAWN];

    for (size_t at = 0; at < tile->n; at += DRAWN) {
        size_t n = bal_min(tile->n - at, DRAWN);

        bal_torch_stream_take(tile->stream, first + at, drawn, n);
        bal_kernels_use()->below_torch(mask + at, drawn, n);
    }
}

/* mask holds probabilities, and then what was drawn by them. */
static void draw(double *mask, const bal_tile *tile, size_t i)
{
    bal_draws draws;
    float drawn[DRAWN];

    if (tile->stream) {
        draw_torch(mask, tile, i);
        return;
    }
    bal_draws_init(&draws, tile->seed, tile->which[i], tile->tensor);
    for (size_t at = 0; at < tile->n; at += DRAWN) {
        size_t n = bal_min(tile->n - at, DRAWN);

        bal_draws_take(&draws, tile->start + at, drawn, n);
        bal_kernels_use()->below(mask + at, drawn, n);
    }
}

static int plan_bernoulli(bal_sparse *self, const bal_tile *tile, size_t input,
                          const bal_values *values, bal_error *err)
{
    (void)tile;
    (void)input;
    (void)values;
    (void)err;

    self->density = bal_arith_round1(&self->work, self->density);
    return 0;
}

static void keep_bernoulli(double *mask, const bal_sparse *self,
                           const bal_tile *tile, size_t i)
{
    for (size_t k = 0; k < tile->n; k++)
        mask[k] = self->density;
    draw(mask, tile, i);
}

static void keep_magprune(double *mask, const bal_sparse *self,
                          const bal_tile *tile, size_t i)
{
    bal_magprune_chances(mask, self, tile, i);
    draw(mask, tile, i);
}

const bal_sparsify bal_sparsify_magnitude = {
    .plan = plan_magnitude,
    .keep = keep_ranked,
};

const bal_sparsify bal_sparsify_outliers = {
    .plan = plan_outliers,
    .keep = keep_ranked,
};

const bal_sparsify bal_sparsify_bernoulli = {
    .wide = true,
    .plan = plan_bernoulli,
    .keep = keep_bernoulli,
};

const bal_sparsify bal_sparsify_magprune = {
    .wide = true,
    .plan = bal_magprune_plan,
    .keep = keep_magprune,
};

/* ---- a tensor's inputs -------------------------------------------------- */

static int plan(bal_sparse *self, const bal_tile *tile, size_t i,
                const bal_values *values, bal_error *err)
{
    const bal_sparsify *by = tile->method->sparsify;
    size_t input = tile->which[i];

    *self = (bal_sparse){ .by = by, .work = *tile->arith, .factor = 1 };
    if (by->wide && self->work.work == BAL_F16)
        self->work.work = BAL_F32;
    self->density = bal_value_input(values, input, "density");
    if (self->density >= 1)
        return 0;
    self->kept = BAL_KEPT_NONE;
    if (self->density <= 0 || !tile->extent->total)
        return 0;
    self->kept = BAL_KEPT_SOME;
    return by->plan(self, tile, input, values, err);
}

/* Inputs [first, end) of a walk, and what is found out about each. */
typedef struct search {
    bal_sparse *sparse;
    size_t first, end;
    bal_ranking *rankings[TOGETHER]; /* NULL: no pass is wanted */
    bal_sum *before, *after;         /* sums of magnitudes */
} search;

static void search_done(search *self)
{
    for (size_t i = 0; i < TOGETHER; i++)
        bal_ranking_free(self->rankings[i]);
    free(self->before);
    free(self->after);
}

static int rank_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    search *self = ctx;
    (void)err;

    for (size_t i = self->first; i < self->end; i++) {
        bal_ranking *ranking = self->rankings[i - self->first];

        if (ranking)
            bal_ranking_see(ranking, tile->start, tile->inputs[i], tile->n);
    }
    return 0;
}

static int rankings_new(search *self, const bal_tile *tile, bool *more,
                        bal_error *err)
{
    size_t notes = NOTES / (2 * (self->end - self->first));

    for (size_t i = self->first; i < self->end; i++) {
        const bal_sparse *sparse = &self->sparse[i];

        if (sparse->kept != BAL_KEPT_SOME || sparse->low == sparse->high)
            continue;
        int rc = bal_ranking_new(&self->rankings[i - self->first],
                                 tile->extent->total, sparse->low, sparse->high,
                                 sparse->descending, err);
        if (rc)
            return rc;
        bal_ranking_ask(self->rankings[i - self->first], BAL_RANK_ENDS_OPEN);
        bal_ranking_notes(self->rankings[i - self->first], notes);
        *more = true;
    }
    return 0;
}

/* After a pass: true if another one is wanted. */
static bool rankings_next(search *self)
{
    bool more = false;

    for (size_t i = self->first; i < self->end; i++) {
        bal_ranking **ranking = &self->rankings[i - self->first];

        if (!*ranking)
            continue;
        if (bal_ranking_next(*ranking)) {
            more = true;
            continue;
        }
        bal_ranking_end(*ranking, &self->sparse[i].ranked);
        bal_ranking_free(*ranking);
        *ranking = NULL;
    }
    return more;
}

static int find_ranks(search *self, bal_walk *walk, const bal_tile *tile,
                      bal_error *err)
{
    bool more = false;
    int rc = rankings_new(self, tile, &more, err);

    while (!rc && more) {
        rc = bal_rank_walk(walk, self->rankings, self->end - self->first,
                           rank_tile, self, err);
        if (!rc)
            more = rankings_next(self);
    }
    return rc;
}

static int sum_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    search *self = ctx;
    const bal_method *method = tile->method;
    (void)err;

    for (size_t i = self->first; i < self->end; i++) {
        const bal_sparse *sparse = &self->sparse[i];
        double *to = tile->scratch + (method->scratch + i) * tile->n;

        if (sparse->kept != BAL_KEPT_SOME)
            continue;
        const double *kept = bal_sparse_take(to, sparse, tile, i);
        bal_sum_add(&self->before[i - self->first], tile->inputs[i], NULL,
                    tile->n);
        bal_sum_add(&self->after[i - self->first], kept, NULL, tile->n);
    }
    return 0;
}

static double factor_of(const bal_arith *arith, const bal_sum *before,
                        const bal_sum *after)
{
    double least = bal_arith_term(arith, 1e-7);
    double was = bal_sum_end(before);
    double is = bal_sum_end(after);

    if (was < least || is < least)
        return 1;
    double factor = bal_arith_round1(arith, was / is);
    return arith->mergekit || isfinite(factor) ? factor : 1;
}

static int find_factors(search *self, bal_walk *walk, const bal_tile *tile,
                        bal_error *err)
{
    size_t count = self->end - self->first;
    bool wanted = false;

    self->before = calloc(count, sizeof(*self->before));
    self->after = calloc(count, sizeof(*self->after));
    if (!self->before || !self->after)
        return bal_fail_memory(err, "a merge's sums");
    for (size_t i = 0; i < count; i++) {
        const bal_sparse *sparse = &self->sparse[self->first + i];

        wanted |= sparse->kept == BAL_KEPT_SOME;
        bal_sum_init(&self->before[i], &sparse->work, BAL_FOLD_ABS,
                     tile->extent->total);
        self->after[i] = self->before[i];
    }
    if (!wanted)
        return 0;
    int rc = bal_view_tiles(walk, sum_tile, self, err);
    for (size_t i = 0; !rc && i < count; i++) {
        bal_sparse *sparse = &self->sparse[self->first + i];

        if (sparse->kept == BAL_KEPT_SOME)
            sparse->factor =
                factor_of(&sparse->work, &self->before[i], &self->after[i]);
    }
    return rc;
}

static bool rescales(const bal_method *method, const bal_values *values)
{
    static const char name[] = "rescale";

    return bal_param_find(method->info.params, name) &&
           bal_value_bool(values, name);
}

static int find_some(bal_sparse *sparse, size_t first, bal_walk *walk,
                     const bal_tile *tile, const bal_values *values,
                     bal_error *err)
{
    BAL_LOCAL(search) self = { .sparse = sparse, .first = first };
    int rc = 0;

    self.end = bal_min(first + TOGETHER, tile->count);
    for (size_t i = first; !rc && i < self.end; i++) {
        rc = plan(&sparse[i], tile, i, values, err);
        if (rc)
            rc = bal_within(err, rc, "input %zu", tile->which[i] + 1);
    }
    if (!rc)
        rc = find_ranks(&self, walk, tile, err);
    if (rc || !rescales(tile->method, values))
        return rc;
    return find_factors(&self, walk, tile, err);
}

int bal_sparse_find(bal_sparse **out, bal_walk *walk, const bal_tile *tile,
                    const bal_values *values, bal_error *err)
{
    bal_sparse *self = calloc(tile->count + 1, sizeof(*self));
    int rc = 0;

    if (!self)
        return bal_fail_memory(err, "a merge's thresholds");
    for (size_t first = 0; !rc && first < tile->count; first += TOGETHER)
        rc = find_some(self, first, walk, tile, values, err);
    if (!rc)
        *out = BAL_TAKE(self);
    free(self);
    return rc;
}

/* A product of 1 or 0 needs no rounding. */
static void mask(double *to, const bal_sparse *self, const bal_arith *arith,
                 const double *x, size_t n)
{
    bal_kernels_use()->op[BAL_F64](BAL_OP_MUL, to, x, to, n);
    if (self->factor == 1)
        return;
    bal_op_scale(&self->work, to, to, self->factor, n);
    bal_arith_round(arith, to, n);
}

const double *bal_sparse_take(double *to, const bal_sparse *self,
                              const bal_tile *tile, size_t i)
{
    if (self->kept == BAL_KEPT_ALL)
        return tile->inputs[i];
    if (self->kept == BAL_KEPT_NONE) {
        memset(to, 0, tile->n * sizeof(*to));
        return to;
    }
    self->by->keep(to, self, tile, i);
    for (size_t at = 0; at < tile->n; at += PIECE)
        mask(to + at, self, tile->arith, tile->inputs[i] + at,
             bal_min(tile->n - at, PIECE));
    return to;
}
