/* base + adapter as a model: what an adapter makes of each weight, computed as
 * it is read. Part of what bal_model_plus does; docs/lora.md has the formulas.
 */
#ifndef MODEL_FOLD_H
#define MODEL_FOLD_H

#include "model/model.h"

/* An adapted weight is, element by element, what its kind's formula gives, with
 * products and sums in double, k rising, and one rounding to W's dtype at the
 * end; NaN results are canonical. A whole tensor of the adapter
 * (modules_to_save, a bias) replaces the base's of that name, rounded to the
 * base's dtype; rows of tokens replace rows. Where the base's head is its
 * embedding and the adapter changes one of them, the head becomes a tensor of
 * its own and config.json says so; where it has more rows, that too. All else
 * is the base's own, bytes and files.
 *
 * Keeps references on both. Reads the adapter through once, and with DoRA the
 * weights that it adapts. ECORRUPT names a module that the base lacks or that
 * does not fit it, and numbers that are none; EUNSUPPORTED what cannot be had
 * from the tensors alone (bal_adapter_read has the list), weights that are not
 * of floats, and what could be meant in two ways. */
BAL_CHECK int bal_fold_open(bal_model **out, bal_model *base,
                            bal_model *adapter, bal_work *work, bal_error *err);

/* What that does to the base, as a delta, for who merges it with other deltas:
 * of a weight that a formula changes the DIFFERENCE that it adds, and of one
 * that is replaced by a tensor of its shape what is between them, in F32 (F64
 * where the base is), rounded once and not by way of the base's dtype; by way
 * of that where both happen to a tensor, or rows of tokens are replaced. WHOLE
 * is what the base has not or has in another shape, and config.json where it
 * changes. The rest is SAME. No digests: of the base no more
 * is read than folding takes. Keeps references on both; errors as above. */
BAL_CHECK int bal_fold_minus(bal_model **out, bal_model *base,
                             bal_model *adapter, bal_work *work,
                             bal_error *err);

#endif
