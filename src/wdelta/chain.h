/* A base and the .wdelta files on it as a model. bal_model_from_wdelta and
 * bal_wdelta_verify of ballast.h are here, too. */
#ifndef WDELTA_CHAIN_H
#define WDELTA_CHAIN_H

#include "core/sha256.h"
#include "wdelta/file.h"

enum bal_wd_chain_flags {
    BAL_WD_RAW = 1, /* F32 as it was computed, what deltatensors' load gives;
                       else rounded to the base's dtypes */
};

/* base + files, the oldest first; none is fine. Tensors that no file covers,
 * side files and headers are the base's. The files must outlive it. ECORRUPT:
 * base lacks a tensor, or has it in another shape. */
BAL_CHECK int bal_wd_chain(bal_model **out, bal_model *base,
                           bal_wdelta *const *files, size_t count,
                           unsigned flags, bal_error *err);

/* SHA-256 of each entry's name and bytes. */
BAL_CHECK int bal_wd_hash(bal_sha256 *out, bal_model *model,
                          const size_t *entries, size_t count, bal_work *work,
                          bal_error *err);
/* Of the first `size` bytes of a file. */
BAL_CHECK int bal_wd_hash_file(bal_sha256 *out, const bal_file *file,
                               uint64_t size, bal_work *work, bal_error *err);

#endif
