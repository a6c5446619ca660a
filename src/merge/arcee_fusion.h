/* arcee_fusion: the other model where it matters, the base elsewhere. How much
 * an element matters is its change times the Kullback-Leibler divergence of its
 * row, a row being what softmax makes of the last axis. What is at least the
 * median and 1.5 times the distance of the quartiles above it, of the whole
 * tensor, is taken. */
#ifndef MERGE_ARCEE_FUSION_H
#define MERGE_ARCEE_FUSION_H

#include "merge/merge.h"

/* None. */
extern const bal_param bal_arcee_params[];
/* A row: softmax is of it all. */
uint64_t bal_arcee_align(const bal_extent *extent);
/* Of a tensor of more than a million elements mergekit draws a million samples,
 * with replacement. */
uint64_t bal_arcee_draws(const bal_extent *extent, size_t input,
                         const bal_values *values);
/* The threshold. Quantiles are those of all elements, whatever their number,
 * but where mergekit's random numbers were asked for: then of its samples. */
BAL_CHECK int bal_arcee_prepare(void **out, bal_walk *walk,
                                const bal_tile *tile, const bal_values *values,
                                bal_error *err);
/* base + r(x - base), or base. The divergence of two rows that are nearly the
 * same is what rounding left, of either sign: in mergekit's arithmetic that is
 * so of most fine-tuned models, and which elements are taken with it. Rows that
 * are not finite are the base's, but that mergekit makes NaN of what is not
 * finite itself. */
BAL_CHECK int bal_arcee_merge(double *out, const bal_tile *tile,
                              const bal_values *values, bal_error *err);

#endif
