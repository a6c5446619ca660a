/* model_stock: from the base towards the average, as far as the inputs agree.
 */
#ifndef MERGE_MODEL_STOCK_H
#define MERGE_MODEL_STOCK_H

#include "merge/merge.h"

/* filter_wise. */
extern const bal_param bal_model_stock_params[];
/* t avg + (1 - t) base, avg of the N inputs, t = N c / (1 + (N - 1) c), where c
 * is the mean over all pairs of the cosine between what two inputs differ from
 * the base by (norms whose product is below 1e-6 count as that much): of the
 * whole tensor, or with filter_wise of each row (last axis). The paper takes c
 * for positive; t is not clamped, so that inputs that disagree (c < 0) give t <
 * 0, in both arithmetics. Opposite inputs, 1 + (N - 1) c < 1e-6, give the base.
 */
BAL_CHECK int bal_model_stock_prepare(void **out, bal_walk *walk,
                                      const bal_tile *tile,
                                      const bal_values *values, bal_error *err);
BAL_CHECK int bal_model_stock_merge(double *out, const bal_tile *tile,
                                    const bal_values *values, bal_error *err);

#endif
