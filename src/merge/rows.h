/* What methods that sum over their inputs share. */
#ifndef MERGE_ROWS_H
#define MERGE_ROWS_H

#include "merge/merge.h"

/* Pointers to count rows of n doubles that lie one after another, as
 * bal_op_sum takes them; free() them. ENOMEM. */
BAL_CHECK int bal_rows_new(const double ***out, const double *first,
                           size_t count, size_t n, bal_error *err);
/* Weights that are to be divided by their sum: EINVAL if it is too large, or is
 * nothing but what rounding left of 0 (hint: how to do without). */
BAL_CHECK int bal_weights_divisible(const double *weights, size_t count,
                                    const char *hint, bal_error *err);
/* Below this part of the sum of magnitudes a sum is what rounding left of 0. */
extern const double bal_rounded_zero;
/* The arithmetic of what mergekit computes in F32 and does not round to D in
 * between (for D of F64 in F64). precise stays precise. */
bal_arith bal_arith_single(const bal_arith *self);
/* Where a tile is in its tensor. */
bal_range bal_tile_range(const bal_tile *tile);

#endif
