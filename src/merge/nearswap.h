/* nearswap: the other model where it is near the base. */
#ifndef MERGE_NEARSWAP_H
#define MERGE_NEARSWAP_H

#include "merge/merge.h"

/* t. */
extern const bal_param bal_nearswap_params[];
/* w x + (1 - w) base with w = t / |base - x|, at least 0 and at most 1, for
 * each element; distances below 1e-6 count as that. mergekit in F16: 1 / 1e-6
 * is infinite, so that a t of 0 gives NaN where both are the same. */
BAL_CHECK int bal_nearswap_merge(double *out, const bal_tile *tile,
                                 const bal_values *values, bal_error *err);

#endif
