/* t / d is 1 / d times t: that is how torch divides a number by a tensor. */
#include "merge/nearswap.h"

#include <math.h>

static const double nearest = 1e-6;

const bal_param bal_nearswap_params[] = {
    {
        .name = "t",
        .type = BAL_PARAM_FLOAT,
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .mergekit = "t",
        .help = "distance below which the other model's value is taken",
    },
    { 0 },
};

/* w = t / distance, with NaNs kept. */
static void weigh(double *w, const bal_tile *tile, double t)
{
    const bal_arith *arith = tile->arith;
    double least = bal_arith_term(arith, nearest);

    bal_op_sub(arith, w, tile->base, tile->inputs[0], tile->n);
    for (size_t k = 0; k < tile->n; k++) {
        double distance = fabs(w[k]);
        w[k] = 1 / (distance < least ? least : distance);
    }
    bal_arith_round(arith, w, tile->n);
    bal_op_scale(arith, w, w, t, tile->n);
    for (size_t k = 0; k < tile->n; k++) {
        if (w[k] < 0)
            w[k] = 0;
        if (w[k] > 1)
            w[k] = 1;
    }
}

int bal_nearswap_merge(double *out, const bal_tile *tile,
                       const bal_values *values, bal_error *err)
{
    const bal_arith *arith = tile->arith;
    double *w = tile->scratch;
    (void)err;

    weigh(w, tile, bal_value_float(values, "t"));
    bal_op_mul(arith, out, w, tile->inputs[0], tile->n);
    for (size_t k = 0; k < tile->n; k++)
        w[k] = 1 - w[k];
    bal_arith_round(arith, w, tile->n);
    bal_op_mul(arith, w, w, tile->base, tile->n);
    bal_op_add(arith, out, out, w, tile->n);
    return 0;
}
