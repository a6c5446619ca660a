/* The factor B of an adapter as another wants it: times a number, filled up
 * with zeros, its rows in another order. */
#ifndef MODEL_SCALED_H
#define MODEL_SCALED_H

#include "model/model.h"

typedef struct bal_scaled {
    size_t entry;        /* [out, rank], of floats */
    uint64_t rank, wide; /* columns that it has, and is to have */
    double factor;
    bal_dtype dtype; /* of the result */
    /* Not 0: so many heads. Rows of each come in pairs: the first of its first
     * half, the first of its second half, the second of the first, … */
    uint64_t heads;
} bal_scaled;

/* Elements [start, start + n) of it, each rounded once. */
BAL_CHECK int bal_scaled_read(const bal_scaled *self, bal_model *model,
                              uint64_t start, size_t n, void *to,
                              bal_error *err);
/* The largest part of a value that rounding takes or adds, 0: exact.
 * EUNSUPPORTED: a value that is not finite, or a column whose largest value
 * is too small to be rounded alone. */
BAL_CHECK int bal_scaled_loss(const bal_scaled *self, bal_model *model,
                              double *out, bal_error *err);

#endif
