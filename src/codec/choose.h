/* Inside codec/ only: which codec a block is for. */
#ifndef CODEC_CHOOSE_H
#define CODEC_CHOOSE_H

#include "codec/coder.h"

/* A codec that knows no base, and what it will take, about. */
typedef struct bal_guess {
    bal_codec_id id;
    uint64_t size;
} bal_guess;

bal_guess bal_guess_plain(bal_coder *coder, bal_bytes from,
                          const bal_grain *grain);

/* Append what changed from the base (without `difference`, where it has the
 * same bytes) or from the one value that is most often seen. */
BAL_CHECK int bal_sparse_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                                const bal_grain *grain, bool *gains,
                                bal_error *err);
/* Does a payload of BAL_CODEC_SPARSE need a base? */
bool bal_sparse_based(bal_bytes payload);
/* Is there a chance, by a sample? And what it will take, about. */
bool bal_sparse_guess(uint64_t *size, bal_bytes from, const bal_grain *grain);

#endif
