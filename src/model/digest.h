/* What a delta remembers of its base: a digest an entry, made of the hashes of
 * its 4 MiB tiles, so that tiles may be hashed in any order.
 *
 * digest = BLAKE3(name of the dtype, NUL, rank as u32 LE, each dimension as u64
 * LE, then BLAKE3 of each tile). A file is hashed as U8 of its length. */
#ifndef MODEL_DIGEST_H
#define MODEL_DIGEST_H

#include "model/model.h"

/* tiles: bal_tiles(tensor->size) hashes, of BAL_TILE bytes each but the last.
 */
void bal_digest_of_tiles(bal_id *out, const bal_tensor *tensor,
                         const bal_id *tiles);
/* The digests of all entries of a model that stands alone, read through in
 * parallel: out has bal_model_count(model) ids. HEADER entries too. */
BAL_CHECK int bal_digest_model(bal_id *out, bal_model *model, bal_work *work,
                               bal_error *err);
/* Of some of its entries: out has count ids. */
BAL_CHECK int bal_digest_entries(bal_id *out, bal_model *model,
                                 const size_t *entries, size_t count,
                                 bal_work *work, bal_error *err);

#endif
