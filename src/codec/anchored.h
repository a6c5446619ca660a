/* Inside codec/ only: what the choice wants to know before it is made. */
#ifndef CODEC_ANCHORED_H
#define CODEC_ANCHORED_H

#include "codec/difference.h"

/* A block measured: counted, and its tables fit. */
typedef struct bal_measured {
    bal_anchor anchor;
    const bal_number_row *kind; /* of the base; NULL: cannot be anchored */
    bal_recovered recovered;
    size_t count;    /* elements */
    uint64_t size;   /* bytes that it will take, about */
    uint64_t sparse; /* the same, if only what changed were coded */
} bal_measured;

void bal_measured_done(bal_measured *self);
/* Does this grain have a base that this many bytes can be coded against? */
bool bal_anchored_fits(const bal_grain *grain, size_t len);
/* The coder's tables are of this block then, and of no other. */
BAL_CHECK int bal_anchored_measure(bal_coder *coder, bal_measured *out,
                                   bal_bytes from, const bal_grain *grain,
                                   bal_error *err);
/* Append what was measured. */
BAL_CHECK int bal_anchored_append(bal_coder *coder, bal_buf *to,
                                  const bal_measured *measured, bal_bytes from,
                                  const bal_grain *grain, bool *gains,
                                  bal_error *err);

#endif
