/* nuslerp: along the arc between two inputs, vector by vector. */
#ifndef MERGE_NUSLERP_H
#define MERGE_NUSLERP_H

#include "merge/merge.h"

/* weight, nuslerp_flatten, nuslerp_row_wise. */
extern const bal_param bal_nuslerp_params[];
/* t is the second weight's part of both, 0.5 where they sum to zero. The tensor
 * is one vector; without nuslerp_flatten each of its rows (last axis) is one,
 * with nuslerp_row_wise each column (first axis): the names are mergekit's.
 * sin((1-t)θ)/sinθ of the first and sin(tθ)/sinθ of the second, 1-t and t where
 * they lie on one line; a vector of zeros counts as at a right angle to any.
 * precise takes 1-t and t for all that are nearly opposite too (cosθ <
 * -0.9995), where the arc is as good as unknown and mergekit's factors grow
 * without bound. */
BAL_CHECK int bal_nuslerp_prepare(void **out, bal_walk *walk,
                                  const bal_tile *tile,
                                  const bal_values *values, bal_error *err);
BAL_CHECK int bal_nuslerp_merge(double *out, const bal_tile *tile,
                                const bal_values *values, bal_error *err);
/* Always: between one and nothing there is no way. */
bool bal_nuslerp_same(double weight, const bal_values *values);

#endif
