/* Sums start from 0 and run in the order of the inputs, as mergekit's do, so
 * that zeros of either sign add up to the same. */
#include "merge/linear.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "merge/rows.h"

const bal_param bal_linear_params[] = {
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
        .name = "normalize",
        .type = BAL_PARAM_BOOL,
        .fallback = "true",
        .low = 0,
        .high = 1,
        .mergekit = "normalize",
        .help = "divide by the sum of the weights",
    },
    { 0 },
};

static double sum_of(const double *weights, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    return sum;
}

/* ---- precise ------------------------------------------------------------ */

static void merge_precise(double *out, const bal_tile *tile, bool normalize)
{
    const bal_kernels *kernels = bal_kernels_use();

    memset(out, 0, tile->n * sizeof(*out));
    for (size_t i = 0; i < tile->count; i++)
        kernels->axpy64(out, tile->weights[i], tile->inputs[i], tile->n);
    if (!normalize)
        return;
    double sum = sum_of(tile->weights, tile->count);
    bal_op_over(tile->arith, out, out, sum, tile->n);
}

/* ---- mergekit ----------------------------------------------------------- */

static void add_f64(double *sum, double weight, const double *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        sum[k] = fma(x[k], weight, sum[k]);
}

static void merge_mergekit(double *out, const bal_tile *tile, bool normalize)
{
    const bal_arith single = bal_arith_single(tile->arith);
    bal_sum weights;

    memset(out, 0, tile->n * sizeof(*out));
    bal_sum_init(&weights, &single, BAL_FOLD_SUM, tile->count);
    for (size_t i = 0; i < tile->count; i++) {
        double weight = bal_arith_f32(&single, tile->weights[i]);
        bal_sum_add(&weights, &weight, NULL, 1);
        if (single.work == BAL_F64)
            add_f64(out, weight, tile->inputs[i], tile->n);
        else
            bal_kernels_use()->fma_f32(out, weight, tile->inputs[i], tile->n);
    }
    if (normalize)
        bal_op_over(&single, out, out, bal_sum_end(&weights), tile->n);
    bal_arith_round(tile->arith, out, tile->n);
}

/* ---- the row's functions ------------------------------------------------ */

int bal_linear_merge(double *out, const bal_tile *tile,
                     const bal_values *values, bal_error *err)
{
    bool normalize = bal_value_bool(values, "normalize");
    (void)err;

    if (tile->arith->mergekit)
        merge_mergekit(out, tile, normalize);
    else
        merge_precise(out, tile, normalize);
    return 0;
}

int bal_linear_check(const double *weights, size_t count,
                     const bal_values *values, bal_error *err)
{
    if (!bal_value_bool(values, "normalize") || bal_value_mergekit(values))
        return 0;
    return bal_weights_divisible(weights, count, "--no-normalize", err);
}

bool bal_linear_same(double weight, const bal_values *values)
{
    /* mergekit adds to 0, which makes +0 of -0, and divides. */
    if (bal_value_mergekit(values))
        return false;
    return weight == 1 || (bal_value_bool(values, "normalize") && weight != 0);
}

double bal_linear_share(const double *weights, size_t count, size_t i,
                        const bal_values *values)
{
    if (!bal_value_bool(values, "normalize"))
        return weights[i];
    return weights[i] / sum_of(weights, count);
}
