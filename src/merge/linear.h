/* linear: Σ w x, or Σ w x / Σ w. */
#ifndef MERGE_LINEAR_H
#define MERGE_LINEAR_H

#include "merge/merge.h"

/* weight and normalize. */
extern const bal_param bal_linear_params[];
/* Each element is summed in double from 0 in the order of the inputs, then,
 * with normalize, divided by the sum of the weights. mergekit's arithmetic: in
 * F32, a product and its addition rounded as one (fused multiply-add), and to D
 * at the end. In delta space an input that lacks a tensor counts as a
 * difference of zeros, and its weight counts in the divisor; of whole models it
 * is left out of both sums, as mergekit does it. A weight of 0 does not silence
 * an infinity or NaN. */
BAL_CHECK int bal_linear_merge(double *out, const bal_tile *tile,
                               const bal_values *values, bal_error *err);
/* EINVAL: normalize, and the weights sum to zero but for rounding. mergekit
 * divides by zero instead. */
BAL_CHECK int bal_linear_check(const double *weights, size_t count,
                               const bal_values *values, bal_error *err);
/* w x / w is x; w x is x for a weight of 1. */
bool bal_linear_same(double weight, const bal_values *values);
/* w, or w / Σ w. */
double bal_linear_share(const double *weights, size_t count, size_t i,
                        const bal_values *values);

#endif
