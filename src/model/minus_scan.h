/* The first pass of minus: both models read through once, side by side. */
#ifndef MODEL_MINUS_SCAN_H
#define MODEL_MINUS_SCAN_H

#include "model/pairs.h"

enum bal_found_flags {
    BAL_FOUND_UNEQUAL = 1,  /* bits, dtype or shape differ */
    BAL_FOUND_RESIDUAL = 2, /* base + difference is not tuned, bit for bit */
};

/* By pair; a digest is set where the pair has that side. */
typedef struct bal_found {
    bal_id *tuned, *base;
    uint8_t *flags;
} bal_found;

/* True if a pair's difference is arithmetic: two float dtypes, one shape. */
bool bal_pair_subtracts(const bal_pair *pair, const bal_model *tuned,
                        const bal_model *base);
/* Plans the pairs and runs through them. A pair without either side (headers of
 * the base) is passed over. Without `proves` a pair that subtracts is not read:
 * it counts as unequal, and has no digests. */
BAL_CHECK int bal_minus_scan(bal_found *out, bal_pairs *pairs, bal_model *tuned,
                             bal_model *base, bool proves, bal_work *work,
                             bal_error *err);
void bal_found_done(bal_found *self);

#endif
