/* Each number needs the one before it for the whole tensor, so there is a walk
 * for each: norms, the mean's norm, what each unit has along the mean, the
 * tangent's norm. */
#include "merge/multislerp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/rows.h"
#include "merge/vectors.h"

const bal_param bal_multislerp_params[] = {
    {
        .name = "weight",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .per_input = true,
        .mergekit = "weight",
        .help = "how much of an input goes in",
    },
    {
        .name = "normalize_weights",
        .type = BAL_PARAM_BOOL,
        .fallback = "true",
        .low = 0,
        .high = 1,
        .mergekit = "normalize_weights",
        .help = "divide the weights by their sum",
    },
    {
        .name = "eps",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1e-8",
        .low = 0,
        .high = HUGE_VAL,
        .mergekit = "eps",
        .help = "added to norms that are divided by",
    },
    { 0 },
};

/* The walks in order; a tile is computed as far as the walk needs it. */
typedef enum stage { NORMS, MEAN, ALONG, TANGENT } stage;

typedef struct multislerp {
    bool sum; /* there is no mean direction */
    double mean;
    double cosine, sine; /* of the tangent's length, sine by that length */
    double size;         /* of the result */
    double *weights, *norms, *along; /* of each input */
    double numbers[];
} multislerp;

typedef struct measuring {
    multislerp *self;
    bal_lines lines;
    bal_sums *sums; /* one for each input, or one */
    size_t count;
    stage stage;
    double eps;
} measuring;

static double *row_of(const bal_tile *tile, size_t i)
{
    return tile->scratch + i * tile->n;
}

/* The rows of scratch: the products that are summed, then these. */
static double *mean_row(const bal_tile *tile)
{
    return row_of(tile, tile->count);
}

static double *tangent_row(const bal_tile *tile)
{
    return row_of(tile, tile->count + 1);
}

static double *spare_row(const bal_tile *tile)
{
    return row_of(tile, tile->count + 2);
}

/* ---- a tile ------------------------------------------------------------- */

static int sum_products(double *out, const bal_tile *tile, bal_error *err)
{
    bal_range range = bal_tile_range(tile);
    const double **rows;
    int rc = bal_rows_new(&rows, tile->scratch, tile->count, tile->n, err);
    if (rc)
        return rc;
    bal_op_sum(tile->arith, out, rows, tile->count, &range);
    free(rows);
    return 0;
}

static void unit(const multislerp *self, const bal_tile *tile, size_t i,
                 double *out)
{
    bal_op_over(tile->arith, out, tile->inputs[i], self->norms[i], tile->n);
}

/* r(Σ r(U w)), not yet of length 1. */
static int mean_of(const multislerp *self, const bal_tile *tile, bal_error *err)
{
    for (size_t i = 0; i < tile->count; i++) {
        unit(self, tile, i, row_of(tile, i));
        bal_op_scale(tile->arith, row_of(tile, i), row_of(tile, i),
                     self->weights[i], tile->n);
    }
    return sum_products(mean_row(tile), tile, err);
}

/* The tangent, of a mean of length 1. */
static int tangent_of(const multislerp *self, const bal_tile *tile,
                      bal_error *err)
{
    for (size_t i = 0; i < tile->count; i++) {
        double *to = row_of(tile, i);

        unit(self, tile, i, to);
        bal_op_scale(tile->arith, spare_row(tile), mean_row(tile),
                     self->along[i], tile->n);
        bal_op_sub(tile->arith, to, to, spare_row(tile), tile->n);
        bal_op_scale(tile->arith, to, to, self->weights[i], tile->n);
    }
    return sum_products(tangent_row(tile), tile, err);
}

/* Σ w X, where there is no direction. */
static int plain_sum(double *out, const multislerp *self, const bal_tile *tile,
                     bal_error *err)
{
    for (size_t i = 0; i < tile->count; i++)
        bal_op_scale(tile->arith, row_of(tile, i), tile->inputs[i],
                     self->weights[i], tile->n);
    if (tile->count > 2)
        return sum_products(out, tile, err);
    bal_op_add(tile->arith, out, row_of(tile, 0), row_of(tile, 1), tile->n);
    return 0;
}

static int measure_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    measuring *job = ctx;
    const multislerp *self = job->self;
    double *mean = mean_row(tile);

    for (size_t i = 0; job->stage == NORMS && i < tile->count; i++)
        bal_sums_add(&job->sums[i], tile->start, tile->inputs[i], NULL,
                     tile->n);
    if (job->stage == NORMS)
        return 0;
    int rc = mean_of(self, tile, err);
    if (rc)
        return rc;
    if (job->stage == MEAN) {
        bal_sums_add(job->sums, tile->start, mean, NULL, tile->n);
        return 0;
    }
    bal_op_over(tile->arith, mean, mean, self->mean, tile->n);
    for (size_t i = 0; job->stage == ALONG && i < tile->count; i++) {
        unit(self, tile, i, row_of(tile, i));
        bal_sums_add(&job->sums[i], tile->start, row_of(tile, i), mean,
                     tile->n);
    }
    if (job->stage == ALONG)
        return 0;
    rc = tangent_of(self, tile, err);
    if (!rc)
        bal_sums_add(job->sums, tile->start, tangent_row(tile), NULL, tile->n);
    return rc;
}

/* ---- the tensor --------------------------------------------------------- */

static void measuring_done(measuring *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_sums_done(&self->sums[i]);
    free(self->sums);
    self->sums = NULL;
}

/* count sums of a stage, to out. */
static int walk_stage(measuring *self, bal_walk *walk, const bal_tile *tile,
                      size_t count, double *out, bal_error *err)
{
    bal_fold fold = self->stage == ALONG ? BAL_FOLD_DOT : BAL_FOLD_NORM;
    int rc = 0;

    self->count = 0;
    self->sums = calloc(count, sizeof(*self->sums));
    if (!self->sums)
        return bal_fail_memory(err, "the norms of a tensor");
    self->count = count;
    for (size_t i = 0; !rc && i < count; i++)
        rc = bal_sums_init(&self->sums[i], &self->lines, tile->arith, fold,
                           out + i, err);
    if (!rc)
        rc = bal_view_tiles(walk, measure_tile, self, err);
    for (size_t i = 0; !rc && i < count; i++)
        bal_sums_end(&self->sums[i]);
    measuring_done(self);
    return rc;
}

static double sum_of(const bal_arith *arith, const double *x, size_t count)
{
    bal_sum sum;

    bal_sum_init(&sum, arith, BAL_FOLD_SUM, count);
    bal_sum_add(&sum, x, NULL, count);
    return bal_sum_end(&sum);
}

static void set_weights(multislerp *self, const bal_tile *tile, bool normalize)
{
    const bal_arith *arith = tile->arith;

    for (size_t i = 0; i < tile->count; i++)
        self->weights[i] = bal_arith_round1(arith, tile->weights[i]);
    if (!normalize)
        return;
    double sum = sum_of(arith, self->weights, tile->count);
    bal_op_over(arith, self->weights, self->weights, sum, tile->count);
}

/* The result's norm, and what the inputs are divided by. */
static void set_norms(multislerp *self, const bal_tile *tile, double eps)
{
    const bal_arith *arith = tile->arith;

    for (size_t i = 0; i < tile->count; i++)
        self->along[i] =
            bal_arith_round1(arith, self->norms[i] * self->weights[i]);
    self->size = sum_of(arith, self->along, tile->count);
    bal_op_plus(arith, self->norms, self->norms, eps, tile->count);
    for (size_t i = 0; !arith->mergekit && i < tile->count; i++)
        self->norms[i] = self->norms[i] == 0 ? 1 : self->norms[i];
}

static void set_tangent(multislerp *self, const bal_arith *arith, double norm,
                        double eps)
{
    double length;

    bal_op_plus(arith, &length, &norm, eps, 1);
    self->cosine = bal_arith_round1(arith, bal_fn_cos(arith, length));
    self->sine = bal_arith_round1(arith, bal_fn_sin(arith, length));
    self->sine = bal_arith_round1(arith, self->sine / length);
    if (!arith->mergekit && length == 0)
        self->sine = 1;
}

/* False: there is no mean direction. */
static bool has_mean(const multislerp *self, const bal_arith *arith, double eps)
{
    if (!arith->mergekit && self->mean == 0)
        return false;
    return !(self->mean < bal_arith_term(arith, eps));
}

static int measure(multislerp *self, bal_walk *walk, const bal_tile *tile,
                   double eps, bal_error *err)
{
    measuring job = {
        .self = self,
        .lines = bal_lines_whole(tile->extent),
    };
    double norm;
    int rc = walk_stage(&job, walk, tile, tile->count, self->norms, err);
    if (rc)
        return rc;
    set_norms(self, tile, eps);
    job.stage = MEAN;
    rc = walk_stage(&job, walk, tile, 1, &self->mean, err);
    if (rc)
        return rc;
    self->sum = !has_mean(self, tile->arith, eps);
    if (self->sum && tile->count > 2 && tile->arith->mergekit)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "the inputs' directions sum to zero, and "
                                 "mergekit's multislerp has no mean of them"),
                        "--arithmetic precise takes their weighted sum");
    if (self->sum)
        return 0;
    job.stage = ALONG;
    rc = walk_stage(&job, walk, tile, tile->count, self->along, err);
    if (rc)
        return rc;
    job.stage = TANGENT;
    rc = walk_stage(&job, walk, tile, 1, &norm, err);
    if (!rc)
        set_tangent(self, tile->arith, norm, eps);
    return rc;
}

int bal_multislerp_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                           const bal_values *values, bal_error *err)
{
    size_t count = tile->count;

    *out = NULL;
    if (count < 2)
        return 0;
    multislerp *self = calloc(1, sizeof(*self) + 3 * count * sizeof(double));
    if (!self)
        return bal_fail_memory(err, "preparing a merge");
    self->weights = self->numbers;
    self->norms = self->weights + count;
    self->along = self->norms + count;
    set_weights(self, tile, bal_value_bool(values, "normalize_weights"));
    int rc = measure(self, walk, tile, bal_value_float(values, "eps"), err);
    if (rc) {
        free(self);
        return rc;
    }
    *out = self;
    return 0;
}

int bal_multislerp_merge(double *out, const bal_tile *tile,
                         const bal_values *values, bal_error *err)
{
    const multislerp *self = tile->prepared;
    const bal_arith *arith = tile->arith;
    double *mean = mean_row(tile), *tangent = tangent_row(tile);
    (void)values;

    if (tile->count < 2) {
        memcpy(out, tile->inputs[0], tile->n * sizeof(*out));
        return 0;
    }
    if (self->sum)
        return plain_sum(out, self, tile, err);
    int rc = mean_of(self, tile, err);
    if (rc)
        return rc;
    bal_op_over(arith, mean, mean, self->mean, tile->n);
    rc = tangent_of(self, tile, err);
    if (rc)
        return rc;
    bal_op_scale(arith, mean, mean, self->cosine, tile->n);
    bal_op_scale(arith, tangent, tangent, self->sine, tile->n);
    bal_op_add(arith, out, mean, tangent, tile->n);
    bal_op_scale(arith, out, out, self->size, tile->n);
    return 0;
}

int bal_multislerp_check(const double *weights, size_t count,
                         const bal_values *values, bal_error *err)
{
    if (!bal_value_bool(values, "normalize_weights") ||
        bal_value_mergekit(values))
        return 0;
    return bal_weights_divisible(weights, count, "--no-normalize-weights", err);
}

bool bal_multislerp_same(double weight, const bal_values *values)
{
    (void)weight;
    (void)values;
    return true;
}
