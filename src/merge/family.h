/* The task vectors' family: differences are made sparse, weighted, added,
 * with signs elected or not. Rows of methods.c tell which. */
#ifndef MERGE_FAMILY_H
#define MERGE_FAMILY_H

#include "merge/sparsify.h"

extern const bal_param bal_task_params[];
extern const bal_param bal_ties_params[];
extern const bal_param bal_dare_params[];
extern const bal_param bal_breadcrumbs_params[];
extern const bal_param bal_della_params[];
extern const bal_param bal_della_linear_params[];

/* Rows of scratch: where signs are elected, of magprune, and for each input. */
enum {
    BAL_FAMILY_ELECT = 3,
    BAL_FAMILY_MAGPRUNE = 4,
    BAL_FAMILY_EACH = 1,
    BAL_FAMILY_ELECT_EACH = 2,
};

/* bal_sparse of each input (bal_sparse_find). */
BAL_CHECK int bal_family_prepare(void **out, bal_walk *walk,
                                 const bal_tile *tile, const bal_values *values,
                                 bal_error *err);
/* Differences, sparse where the method has a way, times their weights, are
 * added in the order of inputs. With consensus an input counts in an element
 * only where its share has the sign of the sum of all (that of 0 is +; a share
 * of 0 has no sign). "normalize" divides by the sum of weights, with consensus
 * of those that count: by 1 where that is 0 (without consensus: less than 1e-8;
 * in precise with consensus: what rounding left of 0). Then "lambda".
 *
 * An input that lacks a tensor is a difference of zeros, whose weight counts in
 * the divisor; of whole models it is left out. */
BAL_CHECK int bal_family_merge(double *out, const bal_tile *tile,
                               const bal_values *values, bal_error *err);
/* EINVAL: a density and an epsilon that make no probability. */
BAL_CHECK int bal_della_check(const double *weights, size_t count,
                              const bal_values *values, bal_error *err);
/* One number an element where something is left to chance: with density less
 * than 1, and in della more than 0. */
uint64_t bal_dare_draws(const bal_extent *extent, size_t input,
                        const bal_values *values);
uint64_t bal_della_draws(const bal_extent *extent, size_t input,
                         const bal_values *values);
/* Of task_arithmetic: w lambda, or w lambda / Σ w. */
bool bal_task_same(double weight, const bal_values *values);
double bal_task_share(const double *weights, size_t count, size_t i,
                      const bal_values *values);

#endif
