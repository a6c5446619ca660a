/* slerp: along the arc from the base to the other model. */
#ifndef MERGE_SLERP_H
#define MERGE_SLERP_H

#include "merge/merge.h"

/* t. */
extern const bal_param bal_slerp_params[];
/* Both tensors as one vector each, angle θ between them: sin((1-t)θ)/sinθ of
 * the base and sin(tθ)/sinθ of the other; 1-t and t where they lie almost on
 * one line (|cosθ| > 0.9995), opposite ones too. A tensor of zeros counts as at
 * a right angle to any, in both arithmetics. mergekit works in F32 throughout
 * and rounds once; norms of more than 1 Mi elements are norms of norms. */
BAL_CHECK int bal_slerp_prepare(void **out, bal_walk *walk,
                                const bal_tile *tile, const bal_values *values,
                                bal_error *err);
BAL_CHECK int bal_slerp_merge(double *out, const bal_tile *tile,
                              const bal_values *values, bal_error *err);

#endif
