/* minus and plus: exact differences as models. bal_model_minus, bal_model_plus
 * and bal_model_cast of ballast.h are here.
 *
 * For a changed tensor of two float dtypes and one shape, minus lists a
 * DIFFERENCE in F32 (F64 if either is F64), one rounding, and where base +
 * difference, rounded to the tuned dtype, is not the tuned tensor bit for bit,
 * a RESIDUAL: the wrapping integer difference of the bit patterns, of the
 * unsigned dtype of the tuned width. Everything else that changed is WHOLE.
 * Tensors equal in bits, dtype and shape are SAME. What base has and tuned has
 * not is REMOVED. Files go by the same rules without differences. HEADER
 * entries are those of tuned, WHOLE.
 *
 * minus reads both models twice: first to learn which entries changed, take the
 * digests of both sides and prove the identity; then as it is read itself. */
#ifndef MODEL_ARITHMETIC_H
#define MODEL_ARITHMETIC_H

#include "model/model.h"

/* minus for who merges differences and has no use for a proof of each: a pair
 * of floats of one shape is a DIFFERENCE, changed or not, without RESIDUAL and
 * digests, and is not read before it is asked for. */
BAL_CHECK int bal_minus_unproved(bal_model **out, bal_model *tuned,
                                 bal_model *base, bal_work *work,
                                 bal_error *err);

/* What minus found, by tensors. */
typedef struct bal_minus_report {
    uint64_t changed, unchanged, added, removed, reshaped;
} bal_minus_report;

/* Counts from the entries of any delta. Which of shape and values changed can
 * be told of floats only: other tensors with a base count as changed. */
void bal_minus_count(bal_minus_report *out, const bal_model *delta);

/* Append to `differ` the names of base's identity files (tokenizer, template)
 * whose digest is not the one that change recorded, one a line. plus warns of
 * them where the tensors are as recorded. */
BAL_CHECK int bal_base_files_differ(bal_buf *differ, bal_model *base,
                                    bal_model *change, bal_work *work,
                                    bal_error *err);

#endif
