/* base + adapter as a model: W + s B A for each module that a plain LoRA
 * adapts, computed as it is read. Part of what bal_model_plus does. */
#ifndef MODEL_FOLD_H
#define MODEL_FOLD_H

#include "model/model.h"

/* An adapted weight is, element by element, W + s (sum over k of B[r,k] A[k,c])
 * with products and sums in double, k rising, and one rounding to W's dtype at
 * the end; NaN results are canonical. A whole tensor of the adapter
 * (modules_to_save, a bias) replaces the base's of that name, rounded to the
 * base's dtype. All else is the base's own, bytes and files.
 *
 * Keeps references on both. ECORRUPT names a module that the base lacks or that
 * does not fit it; EUNSUPPORTED what is more than plain LoRA on linear modules
 * (bal_loras_read has the list), weights that are stored transposed (Conv1D),
 * that are not floats, and tied embeddings that would have to come apart. */
BAL_CHECK int bal_fold_open(bal_model **out, bal_model *base,
                            bal_model *adapter, bal_work *work, bal_error *err);

#endif
