#include "merge/passthrough.h"

#include <math.h>

const bal_param bal_passthrough_params[] = {
    {
        .name = "scale",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .per_input = true,
        .mergekit = "scale",
        .help = "what every element is multiplied by",
    },
    { 0 },
};

int bal_passthrough_merge(double *out, const bal_tile *tile,
                          const bal_values *values, bal_error *err)
{
    double scale = bal_value_input(values, tile->which[0], "scale");
    (void)err;

    bal_op_scale(tile->arith, out, tile->inputs[0], scale, tile->n);
    return 0;
}

bool bal_passthrough_same(double weight, const bal_values *values)
{
    (void)weight;
    return bal_value_input(values, 0, "scale") == 1;
}

double bal_passthrough_share(const double *weights, size_t count, size_t i,
                             const bal_values *values)
{
    (void)weights;
    (void)count;
    return bal_value_input(values, i, "scale");
}
