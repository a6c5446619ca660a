/* multislerp: the mean direction of several inputs, in the plane that touches
 * the sphere at their weighted sum, times their mean norm. */
#ifndef MERGE_MULTISLERP_H
#define MERGE_MULTISLERP_H

#include "merge/merge.h"

/* weight, normalize_weights, eps. */
extern const bal_param bal_multislerp_params[];
/* Units U of the inputs, m the direction of Σ w U; each unit less its part
 * along m, τ = Σ w of these, mapped back: cos|τ| m + sin|τ| τ/|τ|, times Σ w of
 * the norms. One input comes out as it went in.
 * Where Σ w U is nearly zero (below eps: opposite inputs, or all without a
 * difference) there is no mean direction: two inputs, and in precise any number
 * of them, give the weighted sum Σ w X instead; more are refused in mergekit's
 * arithmetic, as mergekit does (EINVAL, when the tensor is read). precise with
 * an eps of 0 leaves vectors of zeros out. */
BAL_CHECK int bal_multislerp_prepare(void **out, bal_walk *walk,
                                     const bal_tile *tile,
                                     const bal_values *values, bal_error *err);
BAL_CHECK int bal_multislerp_merge(double *out, const bal_tile *tile,
                                   const bal_values *values, bal_error *err);
/* EINVAL: normalize_weights, and the weights sum to zero but for rounding.
 * mergekit divides by that, and so does its arithmetic here. */
BAL_CHECK int bal_multislerp_check(const double *weights, size_t count,
                                   const bal_values *values, bal_error *err);
bool bal_multislerp_same(double weight, const bal_values *values);

#endif
