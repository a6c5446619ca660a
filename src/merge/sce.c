#include "merge/sce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/rank_walk.h"
#include "merge/rows.h"

/* mergekit's: means that are less in all weigh the same, and the least that a
 * sum of weights divides by. */
static const double least = 1e-6;

const bal_param bal_sce_params[] = {
    {
        .name = "select_topk",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = 0,
        .high = 1,
        .mergekit = "select_topk",
        .help = "part of the elements that differ between inputs to take, "
                "those that vary most",
    },
    {
        .name = "int8_mask",
        .type = BAL_PARAM_BOOL,
        .fallback = "false",
        .low = 0,
        .high = 1,
        .mergekit = "int8_mask",
        .help = "without effect, for mergekit's configurations",
    },
    { 0 },
};

/* What prepare leaves. */
typedef struct choice {
    bool all;  /* select_topk is 1 */
    bool none; /* nothing varies, or nothing is wanted */
    bal_ranked ranked;
    double weights[]; /* of each input */
} choice;

/* Rows of scratch: two, one for each input masked, one for each weighted. */
static double *masked_rows(const bal_tile *tile)
{
    return tile->scratch + 2 * tile->n;
}

static double *weighted_rows(const bal_tile *tile)
{
    return masked_rows(tile) + tile->count * tile->n;
}

/* ---- selecting ---------------------------------------------------------- */

/* The variance among the inputs of each element, by Welford's steps, which give
 * 0 where all are equal. The second row of scratch is written over. */
static void variance(double *out, const bal_tile *tile)
{
    const bal_kernels *kernels = bal_kernels_use();
    double *mean = tile->scratch + tile->n;

    memset(out, 0, tile->n * sizeof(*out));
    memset(mean, 0, tile->n * sizeof(*mean));
    for (size_t i = 0; i < tile->count; i++) {
        kernels->spread(mean, out, tile->inputs[i], (double)(i + 1), tile->n);
    }
    kernels->number[BAL_F64](BAL_OP_DIV, out, out, (double)tile->count,
                             tile->n);
    bal_arith_round(tile->arith, out, tile->n);
}

/* The inputs as they count: in rows of scratch without what is not selected, or
 * where they are. rows is freed by the caller. */
static int select_rows(const double ***rows, const choice *self,
                       const bal_tile *tile, bal_error *err)
{
    double *first = masked_rows(tile);
    double *keep = tile->scratch + tile->n;
    size_t n = tile->n;
    int rc = bal_rows_new(rows, first, tile->count, n, err);
    if (rc)
        return rc;

    if (self->all) {
        memcpy(*rows, tile->inputs, tile->count * sizeof(**rows));
        return 0;
    }
    variance(tile->scratch, tile);
    bal_ranked_keep(&self->ranked, tile->start, tile->scratch, keep, n);
    for (size_t i = 0; i < tile->count; i++)
        bal_op_mul(tile->arith, first + i * n, tile->inputs[i], keep, n);
    return 0;
}

/* ---- the whole tensor --------------------------------------------------- */

typedef struct choosing {
    const choice *self;
    bal_ranking *ranking;
    bal_sum *sums; /* for each input */
} choosing;

static int rank_variance(void *ctx, const bal_tile *tile, bal_error *err)
{
    choosing *job = ctx;
    (void)err;

    variance(tile->scratch, tile);
    bal_ranking_see(job->ranking, tile->start, tile->scratch, tile->n);
    return 0;
}

/* How many are taken: a part of those that vary. */
static uint64_t wanted_of(const bal_arith *arith, uint64_t varying, double part)
{
    double count = bal_arith_f32(arith, (double)varying);

    return (uint64_t)bal_arith_f32(arith, count * bal_arith_f32(arith, part));
}

/* What varies is known when all is counted once, which is early enough. */
static int select_most(choice *self, bal_walk *walk, const bal_tile *tile,
                       double part, bal_error *err)
{
    uint64_t total = tile->extent->total;
    BAL_OWN(bal_ranking) ranking = NULL;
    choosing job = { 0 };

    self->all = part >= 1;
    self->none = part <= 0;
    if (self->all || self->none)
        return 0;
    int rc = bal_ranking_new(&ranking, total, 0, total, true, err);
    if (rc)
        return rc;
    bal_ranking_ask(ranking, BAL_RANK_ENDS_OPEN);
    job.ranking = ranking;
    rc = bal_view_tiles(walk, rank_variance, &job, err);
    if (rc)
        return rc;
    uint64_t varying = total - bal_ranking_zeros(ranking);
    uint64_t most = bal_min(wanted_of(tile->arith, varying, part), total);
    self->none = !most;
    bal_ranking_want(ranking, total - most, total);
    while (!rc && bal_ranking_next(ranking))
        rc = bal_rank_walk(walk, &job.ranking, 1, rank_variance, &job, err);
    if (!rc)
        bal_ranking_end(ranking, &self->ranked);
    return rc;
}

static int sum_squares(void *ctx, const bal_tile *tile, bal_error *err)
{
    choosing *job = ctx;
    const double **rows = NULL;
    int rc = select_rows(&rows, job->self, tile, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < tile->count; i++)
        bal_sum_add(&job->sums[i], rows[i], rows[i], tile->n);
    free(rows);
    return 0;
}

/* Mean squares over their sum. */
static void set_weights(choice *self, const bal_tile *tile, const bal_sum *sums)
{
    const bal_arith *arith = tile->arith;
    double total = bal_arith_f32(arith, (double)tile->extent->total);
    bal_sum all;

    bal_sum_init(&all, arith, BAL_FOLD_SUM, tile->count);
    for (size_t i = 0; i < tile->count; i++) {
        double mean = bal_arith_f32(arith, bal_sum_f32(&sums[i]) / total);
        self->weights[i] = bal_arith_round1(arith, mean);
        bal_sum_add(&all, &self->weights[i], NULL, 1);
    }
    double sum = bal_sum_end(&all);
    bool equal = fabs(sum) < least;
    if (equal)
        bal_trace("merge", "tensor=%s sce=equal-weights", tile->tensor);
    for (size_t i = 0; i < tile->count; i++) {
        double *weight = &self->weights[i];
        if (equal)
            *weight = bal_arith_round1(arith, 1 / (double)tile->count);
        else
            bal_op_over(arith, weight, weight, sum, 1);
    }
}

static int weigh(choice *self, bal_walk *walk, const bal_tile *tile,
                 bal_error *err)
{
    choosing job = { .self = self };

    job.sums = malloc(tile->count * sizeof(*job.sums));
    if (!job.sums)
        return bal_fail_memory(err, "weighing inputs");
    for (size_t i = 0; i < tile->count; i++)
        bal_sum_init(&job.sums[i], tile->arith, BAL_FOLD_DOT,
                     tile->extent->total);
    int rc = bal_view_tiles(walk, sum_squares, &job, err);
    if (!rc)
        set_weights(self, tile, job.sums);
    free(job.sums);
    return rc;
}

int bal_sce_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                    const bal_values *values, bal_error *err)
{
    choice *self =
        calloc(1, sizeof(*self) + tile->count * sizeof(self->weights[0]));
    if (!self)
        return bal_fail_memory(err, "selecting elements");

    int rc = select_most(self, walk, tile,
                         bal_value_float(values, "select_topk"), err);
    if (!rc && !self->none && tile->count)
        rc = weigh(self, walk, tile, err);
    if (rc)
        free(self);
    else
        *out = self;
    return rc;
}

/* ---- merging ------------------------------------------------------------ */

/* Each input's weight where its sign is that of the sum: the sign of 0 is
 * neither. */
static void elect(const bal_tile *tile, const double *const *rows,
                  const double *weights)
{
    const double *sum = tile->scratch;

    for (size_t i = 0; i < tile->count; i++) {
        double *to = weighted_rows(tile) + i * tile->n;

        bal_kernels_use()->agree(to, rows[i], sum, weights[i], tile->n);
    }
}

static void mean_of(double *out, const bal_tile *tile,
                    const double *const *rows, const double *const *weighted,
                    const double *weights)
{
    const bal_arith *arith = tile->arith;
    bal_range range = bal_tile_range(tile);
    double floor = bal_arith_term(arith, least);
    double *sum = tile->scratch;
    size_t n = tile->n;

    bal_op_sum(arith, sum, rows, tile->count, &range);
    elect(tile, rows, weights);
    bal_op_sum(arith, sum, weighted, tile->count, &range);
    for (size_t i = 0; i < tile->count; i++) {
        double *row = weighted_rows(tile) + i * n;
        bal_op_mul(arith, row, rows[i], row, n);
    }
    bal_op_sum(arith, out, weighted, tile->count, &range);
    bal_kernels_use()->at_least(sum, floor, n);
    bal_op_div(arith, out, out, sum, n);
}

int bal_sce_merge(double *out, const bal_tile *tile, const bal_values *values,
                  bal_error *err)
{
    const choice *self = tile->prepared;
    const double **rows = NULL;
    const double **weighted = NULL;
    (void)values;

    if (self->none || !tile->count) {
        memset(out, 0, tile->n * sizeof(*out));
        return 0;
    }
    int rc = select_rows(&rows, self, tile, err);
    if (!rc)
        rc = bal_rows_new(&weighted, weighted_rows(tile), tile->count, tile->n,
                          err);
    if (!rc)
        mean_of(out, tile, rows, weighted, self->weights);
    free(weighted);
    free(rows);
    return rc;
}
