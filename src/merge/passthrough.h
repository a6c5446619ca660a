/* passthrough: the one input, as it is or scaled. */
#ifndef MERGE_PASSTHROUGH_H
#define MERGE_PASSTHROUGH_H

#include "merge/merge.h"

/* scale. */
extern const bal_param bal_passthrough_params[];
/* r(x * scale). */
BAL_CHECK int bal_passthrough_merge(double *out, const bal_tile *tile,
                                    const bal_values *values, bal_error *err);
/* A scale of 1. */
bool bal_passthrough_same(double weight, const bal_values *values);
/* The scale. */
double bal_passthrough_share(const double *weights, size_t count, size_t i,
                             const bal_values *values);

#endif
