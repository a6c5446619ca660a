/* Sums start from 0 and run in the order of the inputs, as mergekit's do, so
 * that zeros of either sign add up to the same. */
#include "merge/linear.h"

#include <math.h>
#include <string.h>

#include "core/error.h"

/* Below this part of the sum of magnitudes a sum is what rounding left of 0. */
static const double nothing = 1e-12;

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

int bal_linear_merge(double *out, const bal_tile *tile,
                     const bal_values *values, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    (void)err;

    memset(out, 0, tile->n * sizeof(*out));
    for (size_t i = 0; i < tile->count; i++)
        kernels->axpy64(out, tile->weights[i], tile->inputs[i], tile->n);
    if (!bal_value_bool(values, "normalize"))
        return 0;
    double sum = sum_of(tile->weights, tile->count);
    for (size_t k = 0; k < tile->n; k++)
        out[k] /= sum;
    return 0;
}

int bal_linear_check(const double *weights, size_t count,
                     const bal_values *values, bal_error *err)
{
    double size = 0;

    if (!bal_value_bool(values, "normalize"))
        return 0;
    for (size_t i = 0; i < count; i++)
        size += fabs(weights[i]);
    if (!isfinite(size))
        return bal_fail(err, BAL_EINVAL,
                        "weights whose sum is too large cannot be normalized");
    if (fabs(sum_of(weights, count)) > nothing * size)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "weights that sum to zero cannot be normalized"),
                    "--no-normalize");
}

bool bal_linear_same(double weight, const bal_values *values)
{
    return weight == 1 || (bal_value_bool(values, "normalize") && weight != 0);
}

double bal_linear_share(const double *weights, size_t count, size_t i,
                        const bal_values *values)
{
    if (!bal_value_bool(values, "normalize"))
        return weights[i];
    return weights[i] / sum_of(weights, count);
}
