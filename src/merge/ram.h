/* ram, ramplus_tl: differences that one input alone makes are taken whole, what
 * several make is averaged among them (Reinforced Agent Merging,
 * arXiv:2601.13572). An input is active where its difference is above epsilon
 * in magnitude; a NaN is not. */
#ifndef MERGE_RAM_H
#define MERGE_RAM_H

#include "merge/merge.h"

/* epsilon. */
extern const bal_param bal_ram_params[];
/* r, alpha, epsilon. */
extern const bal_param bal_ramplus_params[];
/* The sum over the active inputs of r(difference / how many are active). */
BAL_CHECK int bal_ram_merge(double *out, const bal_tile *tile,
                            const bal_values *values, bal_error *err);
/* For each input, 1 + r * (its shared elements / its unique ones, at most
 * alpha), of the whole tensor. Without unique ones epsilon divides, so that it
 * is alpha, or 0 where nothing is shared either. */
BAL_CHECK int bal_ramplus_prepare(void **out, bal_walk *walk,
                                  const bal_tile *tile,
                                  const bal_values *values, bal_error *err);
/* As ram, with what is unique times that number of its input. The sum is of
 * F32 in mergekit's arithmetic. */
BAL_CHECK int bal_ramplus_merge(double *out, const bal_tile *tile,
                                const bal_values *values, bal_error *err);

#endif
