/* Tensors stored without loss: pieces of 2^20 elements, each coded by itself
 * against the same elements of the base, so that any can be read alone. */
#ifndef WDELTA_LOSSLESS_H
#define WDELTA_LOSSLESS_H

#include "codec/codec.h"
#include "wdelta/file.h"

/* How elements of a dtype are coded against base, which may be empty. */
bal_grain bal_wd_grain(bal_dtype dtype, bal_bytes base);
/* Bytes of a piece of a tensor of n elements that begins at element `at`, and
 * of all of it. */
size_t bal_wd_piece_bytes(bal_dtype dtype, uint64_t n, uint64_t at);

/* base with a file's tensors, which are what they were, in place of its own.
 * Entries have their digests as `tuned`. ECORRUPT: base is another one. */
BAL_CHECK int bal_wd_lossless(bal_model **out, bal_model *base,
                              const bal_wdelta *file, bal_error *err);

#endif
