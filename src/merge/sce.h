/* sce: select the elements that vary most among the inputs, calculate weights
 * from how large each input's differences are, erase the signs of the minority
 * (FuseChat, arXiv:2408.07990, as mergekit does it). */
#ifndef MERGE_SCE_H
#define MERGE_SCE_H

#include "merge/merge.h"

/* select_topk, int8_mask. */
extern const bal_param bal_sce_params[];
/* Of the whole tensor: which elements are selected, and each input's mean
 * square over that of all. Below 1e-6 in all, which is where the differences of
 * most tuned models are, the weights are equal ones: so mergekit has it, and it
 * goes for both arithmetics. Of equal variances at the cut the lower index is
 * selected. */
BAL_CHECK int bal_sce_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                              const bal_values *values, bal_error *err);
/* The weighted mean of the selected differences whose sign is that of their
 * sum; 0 where none is. */
BAL_CHECK int bal_sce_merge(double *out, const bal_tile *tile,
                            const bal_values *values, bal_error *err);

#endif
