/* Two models side by side: which entries go together, and the work of looking
 * at all of them cut into pieces, so that one large tensor keeps every thread
 * busy and a million small ones do not cost a million hand-overs. */
#ifndef MODEL_PAIRS_H
#define MODEL_PAIRS_H

#include "model/model.h"

typedef struct bal_pair {
    size_t a, b;    /* entries; BAL_NONE: only the other model has it */
    size_t pieces;  /* set by the caller between join and plan; at least 1 */
    size_t first;   /* the pair's pieces are first … first + pieces - 1 */
    uint64_t bytes; /* to be read, of all pieces; set by the caller */
} bal_pair;

typedef struct bal_pairs {
    bal_pair *rows; /* by part, then name */
    size_t count;
    size_t pieces; /* of all pairs */
    struct bal_pairs_batch *batches;
    size_t batch_count;
} bal_pairs;

/* Entries of the same part and name, one row for each that either model has.
 * A RESIDUAL is left out: it lies behind its DIFFERENCE. */
BAL_CHECK int bal_pairs_join(bal_pairs *out, const bal_model *a,
                             const bal_model *b, bal_error *err);
/* Number the pieces, and put small ones together. */
BAL_CHECK int bal_pairs_plan(bal_pairs *self, bal_error *err);
/* Called with piece 0 … pieces - 1 of every row, by any thread; slot first +
 * piece is its own. */
typedef int bal_piece_fn(const bal_pair *pair, size_t piece, void *ctx,
                         bal_error *err);
BAL_CHECK int bal_pairs_run(const bal_pairs *self, bal_work *work,
                            bal_piece_fn *fn, void *ctx, bal_error *err);
void bal_pairs_done(bal_pairs *self);

#endif
