/* A range of two entries, compared: what is known to be the same on both sides
 * is read once, and not at all where its norm is known. */
#ifndef MODEL_ALIKE_H
#define MODEL_ALIKE_H

#include "kernel/kernels.h"
#include "model/sums.h"

/* Values that are compared as one item of work: a node of the sums. */
enum { BAL_ALIKE_PIECE = 1 << 21, BAL_ALIKE_LEVEL = 9 };
_Static_assert((uint64_t)BAL_LEAF << BAL_ALIKE_LEVEL == BAL_ALIKE_PIECE,
               "a piece is a node");

typedef struct bal_alike_side {
    bal_model *model; /* NULL: zeros */
    size_t entry;
    bal_dtype dtype;
} bal_alike_side;

typedef struct bal_alike {
    bal_alike_side sides[2]; /* a, b */
    bool bits;               /* one dtype: bits are compared, not values */
    bool opaque;             /* there are no numbers: bits alone */
} bal_alike;

/* Values [at, at + n) of both, n at most a piece and at a multiple of one:
 * *unequal in bits where these are compared, in values elsewhere. */
BAL_CHECK int bal_alike_run(bal_compared *out, bool *unequal,
                            const bal_alike *self, uint64_t at, uint64_t n,
                            bal_error *err);

#endif
