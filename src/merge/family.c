#include "merge/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
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

/* A tile is merged by pieces that stay in a core's first cache: many steps go
 * over them. */
enum { PIECE = 512 };

/* A piece's shares: each input's difference times its weight, and with
 * consensus its weight where it counts. tile: the whole, n and start those of
 * the piece, scratch of its own. */
typedef struct shares {
    bal_tile tile;
    const double **taken; /* of the whole tile: what is kept of each input */
    const double **values;
    const double **weights;
    double *memory;
    bal_range range;
} shares;

static void shares_done(shares *self)
{
    free(self->taken);
    free(self->values);
    free(self->weights);
    free(self->memory);
}

/* Scratch: what is common to all inputs, then every input's values, then every
 * input's weights. */
static double *row_at(const bal_tile *tile, size_t r)
{
    return tile->scratch + r * tile->n;
}

static double *common_row(const shares *self, size_t r)
{
    return self->memory + r * PIECE;
}

static double *values_of(const shares *self, size_t i)
{
    return common_row(self, self->tile.method->scratch + i);
}

static double *weights_of(const shares *self, size_t i)
{
    return common_row(self, self->tile.method->scratch + self->tile.count + i);
}

static double weight_of(const bal_tile *tile, size_t i)
{
    return bal_arith_round1(tile->arith, tile->weights[i]);
}

/* Of the whole tile, since numbers are drawn and rows ranked in one go. */
static void take_all(const double **taken, const bal_tile *tile)
{
    const bal_sparse *sparse = tile->prepared;

    for (size_t i = 0; i < tile->count; i++) {
        double *row = row_at(tile, tile->method->scratch + i);

        taken[i] = tile->method->sparsify
                       ? bal_sparse_take(row, &sparse[i], tile, i)
                       : tile->inputs[i];
    }
}

static int shares_init(shares *self, const bal_tile *tile, bal_error *err)
{
    const bal_method *method = tile->method;
    size_t rows = method->scratch + method->scratch_each * tile->count;

    self->tile = *tile;
    self->taken = calloc(tile->count + 1, sizeof(*self->taken));
    self->memory = malloc((rows + 1) * PIECE * sizeof(*self->memory));
    if (!self->taken || !self->memory)
        return bal_fail_memory(err, "merging");
    int rc = bal_rows_new(&self->values, values_of(self, 0), tile->count, PIECE,
                          err);
    if (!rc && method->consensus)
        rc = bal_rows_new(&self->weights, weights_of(self, 0), tile->count,
                          PIECE, err);
    if (!rc)
        take_all(self->taken, tile);
    return rc;
}

static void share(shares *self, size_t at, size_t n)
{
    const bal_tile *tile = &self->tile;

    self->tile.n = n;
    self->range = bal_tile_range(tile);
    self->range.start += at;
    for (size_t i = 0; i < tile->count; i++)
        bal_op_scale(tile->arith, values_of(self, i), self->taken[i] + at,
                     weight_of(tile, i), n);
}

/* Leave 0 of what has not the elected sign: values, and the weights beside. */
static void elect(const shares *self)
{
    const bal_tile *tile = &self->tile;
    double *majority = common_row(self, 0);

    bal_op_sum(tile->arith, majority, self->values, tile->count, &self->range);
    for (size_t i = 0; i < tile->count; i++)
        bal_kernels_use()->elect(values_of(self, i), weights_of(self, i),
                                 majority, weight_of(tile, i), tile->n);
}

/* The divisor of each element. mergekit's stays as it is unless it is 0; of
 * weights 0.1, 0.2 and -0.3 that would be 5.6e-17. */
static void divisors(double *out, const shares *self)
{
    const bal_tile *tile = &self->tile;
    double *size = common_row(self, 2);
    double least = tile->arith->mergekit ? 0 : bal_rounded_zero;
    const bal_kernels *kernels = bal_kernels_use();

    bal_op_sum(tile->arith, out, self->weights, tile->count, &self->range);
    memset(size, 0, tile->n * sizeof(*size));
    for (size_t i = 0; i < tile->count; i++)
        kernels->add_sizes(size, self->weights[i], tile->n);
    kernels->divisors(out, size, least, tile->n);
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
    const bal_tile *tile = &self->tile;
    double *divisor = common_row(self, 1);

    if (!tile->method->consensus) {
        bal_op_over(tile->arith, out, out, sum_of_weights(tile), tile->n);
        return;
    }
    divisors(divisor, self);
    bal_op_div(tile->arith, out, out, divisor, tile->n);
}

static void merge_piece(double *out, const shares *self, bool normal,
                        double lambda)
{
    const bal_tile *tile = &self->tile;

    if (tile->method->consensus)
        elect(self);
    bal_op_sum(tile->arith, out, self->values, tile->count, &self->range);
    if (normal)
        normalize(out, self);
    if (lambda != 1)
        bal_op_scale(tile->arith, out, out, lambda, tile->n);
}

int bal_family_merge(double *out, const bal_tile *tile,
                     const bal_values *values, bal_error *err)
{
    bool normal = bal_value_bool(values, "normalize");
    double lambda = bal_value_float(values, "lambda");
    BAL_LOCAL(shares) self = { 0 };
    int rc = shares_init(&self, tile, err);

    for (size_t at = 0; !rc && at < tile->n; at += PIECE) {
        share(&self, at, bal_min(tile->n - at, PIECE));
        merge_piece(out + at, &self, normal, lambda);
    }
    return rc;
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
