/* Which tensors of a delta an adapter can stand for: what extract.c and
 * extract_distance.c share. */
#ifndef MERGE_EXTRACT_H
#define MERGE_EXTRACT_H

#include "model/model.h"

/* The module whose weight the tensor is, a difference in two dimensions, in out
 * (cleared first). False: it is not one. */
BAL_CHECK int bal_extract_module(bool *is, bal_buf *out,
                                 const bal_tensor *tensor, bal_error *err);
/* Rows of a difference, as a bal_rows_fn. */
typedef struct bal_difference {
    bal_model *delta;
    size_t entry;
    size_t columns;
} bal_difference;
BAL_CHECK int bal_difference_rows(double *to, void *ctx, size_t start,
                                  size_t count, bal_error *err);

#endif
