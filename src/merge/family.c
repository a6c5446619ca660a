#include "merge/family.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "merge/rows.h"
#include "merge/values.h"

/* ---- parameters --------------------------------------------------------- */

#define PER_INPUT(NAME, FALLBACK, LOW, HIGH, HELP)                             \
    {                                                                          \
        .name = (NAME), .type = BAL_PARAM_FLOAT, .fallback = (FALLBACK),       \
        .low = (LOW), .high = (HIGH), .per_input = true, .mergekit = (NAME),   \
        .help = (HELP),                                                        \
    }
#define SWITCH(NAME, FALLBACK, HELP)                                           \
    {                                                                          \
        .name = (NAME), .type = BAL_PARAM_BOOL, .fallback = (FALLBACK),        \
        .low = 0, .high = 1, .mergekit = (NAME), .help = (HELP),               \
    }

#define WEIGHT                                                                 \
    PER_INPUT("weight", "1", -HUGE_VAL, HUGE_VAL,                              \
              "how much of an input goes "                                     \
              "in")
#define DENSITY                                                                \
    PER_INPUT("density", "1", 0, HUGE_VAL,                                     \
              "part of a difference's elements that is kept, all from 1 on")
#define NORMALIZE(FALLBACK)                                                    \
    SWITCH("normalize", FALLBACK, "divide by the sum of the weights")
#define RESCALE(FALLBACK)                                                      \
    SWITCH("rescale", FALLBACK,                                                \
           "scale what is kept to the sum of magnitudes before")
#define MASK                                                                   \
    SWITCH("int8_mask", "false", "without effect, taken for mergekit's sake")
#define LAMBDA                                                                 \
    {                                                                          \
        .name = "lambda", .type = BAL_PARAM_FLOAT, .fallback = "1",            \
        .low = -HUGE_VAL, .high = HUGE_VAL, .mergekit = "lambda",              \
        .help = "what the merged difference is multiplied by",                 \
    }
#define EPSILON                                                                \
    PER_INPUT("epsilon", "0.15", -1, 1,                                        \
              "largest distance of a probability from density")

const bal_param bal_task_params[] = {
    WEIGHT,
    PER_INPUT("density", "1", 0, HUGE_VAL,
              "without effect, taken for mergekit's sake"),
    NORMALIZE("false"),
    SWITCH("rescale", "false", "without effect, taken for mergekit's sake"),
    MASK,
    LAMBDA,
    { 0 },
};

const bal_param bal_ties_params[] = {
    WEIGHT, DENSITY, NORMALIZE("true"), RESCALE("false"), MASK, LAMBDA, { 0 },
};

const bal_param bal_dare_params[] = {
    WEIGHT, DENSITY, NORMALIZE("false"), RESCALE("true"), MASK, LAMBDA, { 0 },
};

const bal_param bal_breadcrumbs_params[] = {
    WEIGHT,
    DENSITY,
    PER_INPUT("gamma", "0.01", 0, 1,
              "part of a difference's elements, the largest, that is dropped"),
    NORMALIZE("false"),
    RESCALE("false"),
    MASK,
    LAMBDA,
    { 0 },
};

const bal_param bal_della_params[] = {
    WEIGHT,          DENSITY, EPSILON, NORMALIZE("true"),
    RESCALE("true"), MASK,    LAMBDA,  { 0 },
};

const bal_param bal_della_linear_params[] = {
    WEIGHT,          DENSITY, EPSILON, NORMALIZE("false"),
    RESCALE("true"), MASK,    LAMBDA,  { 0 },
};

/* ---- merging ------------------------------------------------------------ */

/* Below this a sum of weights is none to divide by. */
static const double least_sum = 1e-8;

/* A tile's shares: each input's difference times its weight, and with
 * consensus its weight where it counts. */
typedef struct shares {
    const bal_tile *tile;
    const double **values;
    const double **weights;
    bal_range range;
} shares;

static void shares_done(shares *self)
{
    free(self->values);
    free(self->weights);
}

/* Scratch: what is common to all inputs, then every input's values, then every
 * input's weights. */
static double *common_row(const bal_tile *tile, size_t r)
{
    return tile->scratch + r * tile->n;
}

static double *values_of(const bal_tile *tile, size_t i)
{
    return common_row(tile, tile->method->scratch + i);
}

static double *weights_of(const bal_tile *tile, size_t i)
{
    return common_row(tile, tile->method->scratch + tile->count + i);
}

static double weight_of(const bal_tile *tile, size_t i)
{
    return bal_arith_round1(tile->arith, tile->weights[i]);
}

static int shares_init(shares *self, const bal_tile *tile, bal_error *err)
{
    const bal_sparse *sparse = tile->prepared;

    self->tile = tile;
    self->range = bal_tile_range(tile);
    int rc = bal_rows_new(&self->values, values_of(tile, 0), tile->count,
                          tile->n, err);
    if (!rc && tile->method->consensus)
        rc = bal_rows_new(&self->weights, weights_of(tile, 0), tile->count,
                          tile->n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < tile->count; i++) {
        double *row = values_of(tile, i);
        const double *from = tile->inputs[i];

        if (tile->method->sparsify)
            from = bal_sparse_take(row, &sparse[i], tile, i);
        bal_op_scale(tile->arith, row, from, weight_of(tile, i), tile->n);
    }
    return 0;
}

/* Leave 0 of what has not the elected sign: values, and the weights beside. */
static void elect(const shares *self)
{
    const bal_tile *tile = self->tile;
    double *majority = common_row(tile, 0);

    bal_op_sum(tile->arith, majority, self->values, tile->count, &self->range);
    for (size_t i = 0; i < tile->count; i++) {
        double *values = values_of(tile, i);
        double *weights = weights_of(tile, i);
        double weight = weight_of(tile, i);

        for (size_t k = 0; k < tile->n; k++) {
            bool counts = majority[k] >= 0 ? values[k] > 0 : values[k] < 0;

            /* Products, so that infinities and NaNs are not silenced. */
            values[k] *= counts;
            weights[k] = counts ? weight : 0;
        }
    }
}

/* The divisor of each element. mergekit's stays as it is unless it is 0; of
 * weights 0.1, 0.2 and -0.3 that would be 5.6e-17. */
static void divisors(double *out, const shares *self)
{
    const bal_tile *tile = self->tile;
    double *size = common_row(tile, 2);
    double least = tile->arith->mergekit ? 0 : bal_rounded_zero;

    bal_op_sum(tile->arith, out, self->weights, tile->count, &self->range);
    for (size_t k = 0; k < tile->n; k++)
        size[k] = 0;
    for (size_t i = 0; i < tile->count; i++) {
        for (size_t k = 0; k < tile->n; k++)
            size[k] += fabs(self->weights[i][k]);
    }
    for (size_t k = 0; k < tile->n; k++)
        out[k] = fabs(out[k]) <= least * size[k] ? 1 : out[k];
}

static double sum_of_weights(const bal_tile *tile)
{
    bal_sum sum;

    bal_sum_init(&sum, tile->arith, BAL_FOLD_SUM, tile->count);
    for (size_t i = 0; i < tile->count; i++) {
        double weight = weight_of(tile, i);
        bal_sum_add(&sum, &weight, NULL, 1);
    }
    double all = bal_sum_end(&sum);
    return fabs(all) < bal_arith_term(tile->arith, least_sum) ? 1 : all;
}

static void normalize(double *out, const shares *self)
{
    const bal_tile *tile = self->tile;
    double *divisor = common_row(tile, 1);

    if (!tile->method->consensus) {
        bal_op_over(tile->arith, out, out, sum_of_weights(tile), tile->n);
        return;
    }
    divisors(divisor, self);
    bal_op_div(tile->arith, out, out, divisor, tile->n);
}

int bal_family_merge(double *out, const bal_tile *tile,
                     const bal_values *values, bal_error *err)
{
    BAL_LOCAL(shares) self = { 0 };
    double lambda = bal_value_float(values, "lambda");
    int rc = shares_init(&self, tile, err);
    if (rc)
        return rc;

    if (tile->method->consensus)
        elect(&self);
    bal_op_sum(tile->arith, out, self.values, tile->count, &self.range);
    if (bal_value_bool(values, "normalize"))
        normalize(out, &self);
    if (lambda != 1)
        bal_op_scale(tile->arith, out, out, lambda, tile->n);
    return 0;
}

int bal_family_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                       const bal_values *values, bal_error *err)
{
    bal_sparse *sparse = NULL;
    int rc = bal_sparse_find(&sparse, walk, tile, values, err);

    if (!rc)
        *out = sparse;
    return rc;
}

int bal_della_check(const double *weights, size_t count,
                    const bal_values *values, bal_error *err)
{
    (void)weights;
    (void)count;
    for (size_t i = 0; i < values->count; i++) {
        int rc = bal_magprune_check(bal_value_input(values, i, "density"),
                                    bal_value_input(values, i, "epsilon"), err);
        if (rc)
            return bal_within(err, rc, "input %zu", i + 1);
    }
    return 0;
}

uint64_t bal_dare_draws(const bal_extent *extent, size_t input,
                        const bal_values *values)
{
    return bal_value_input(values, input, "density") < 1 ? extent->total : 0;
}

uint64_t bal_della_draws(const bal_extent *extent, size_t input,
                         const bal_values *values)
{
    bool some = bal_value_input(values, input, "density") > 0;

    return some ? bal_dare_draws(extent, input, values) : 0;
}

/* ---- task_arithmetic ---------------------------------------------------- */

bool bal_task_same(double weight, const bal_values *values)
{
    /* mergekit adds the difference to the base again, and rounds. */
    return weight == 1 && bal_value_float(values, "lambda") == 1 &&
           !bal_value_mergekit(values);
}

double bal_task_share(const double *weights, size_t count, size_t i,
                      const bal_values *values)
{
    double share = weights[i] * bal_value_float(values, "lambda");
    double sum = 0;

    for (size_t k = 0; k < count; k++)
        sum += weights[k];
    if (!bal_value_bool(values, "normalize") || fabs(sum) < least_sum)
        return share;
    return share / sum;
}
