/* karcher: the mean on the sphere (Karcher, 1977) of any number of inputs. */
#ifndef MERGE_KARCHER_H
#define MERGE_KARCHER_H

#include "merge/merge.h"

/* max_iter, tol. */
extern const bal_param bal_karcher_params[];
/* Units of the inputs with norms above tol; from their mean, at most max_iter
 * steps along the mean of the arcs to them, until a step is shorter than tol;
 * times the mean norm of all inputs. A base is one more input. None above tol:
 * zeros. One input comes out as it went in.
 * precise: steps are taken on the units' dot products, and the result is a
 * weighted sum; an input that is opposite to the mean, so that no arc to it is
 * the shortest, is left out of the step. mergekit: each step is computed again
 * for each tile, in its roundings, from numbers of the tensor that the steps
 * before left. */
BAL_CHECK int bal_karcher_prepare(void **out, bal_walk *walk,
                                  const bal_tile *tile,
                                  const bal_values *values, bal_error *err);
BAL_CHECK int bal_karcher_merge(double *out, const bal_tile *tile,
                                const bal_values *values, bal_error *err);
bool bal_karcher_same(double weight, const bal_values *values);

#endif
