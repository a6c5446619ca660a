/* Which tensors of a delta an adapter can stand for: what extract.c and
 * extract_distance.c share. */
#ifndef MERGE_EXTRACT_H
#define MERGE_EXTRACT_H

#include <jansson.h>

#include "model/peft.h"

/* An adapter of the maps nearest to a delta's differences. */
typedef struct bal_extract {
    uint64_t rank; /* of every module; 0: what energy says, of each */
    double energy;
    const json_t *ranks; /* what it said before, NULL: to be found out */
    bal_dtype dtype;
    uint64_t seed;
    /* Of maps of adapters (merge/maps.h) these adapters: the config is made of
     * theirs. Else the config is a new one, and linear modules are told by
     * names. */
    const bal_loras *like;
    size_t like_count;
    bal_model *files;           /* the first of them, whose files come along */
    const char *base_model;     /* NULL: the delta's */
    const char *const *targets; /* the ends of names; none: all */
    size_t target_count;
} bal_extract;
/* Keeps a reference on the delta. work is used before it returns alone, and
 * may be NULL where ranks are told. EINVAL: no module, a target that names
 * none; EUNSUPPORTED: Conv1D, values that are not finite; ECORRUPT: ranks that
 * do not tell. */
BAL_CHECK int bal_extract_open(bal_model **out, bal_model *delta,
                               const bal_extract *how, bal_work *work,
                               bal_error *err);

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
