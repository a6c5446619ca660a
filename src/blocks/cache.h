/* Decoded blocks that were needed in part, so that several tensors in one
 * block, or several tiles of one tensor, decode it once. */
#ifndef BLOCKS_CACHE_H
#define BLOCKS_CACHE_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_cache bal_cache;

/* Whose block: the same bytes of another tenant are another entry. */
typedef struct bal_cache_key {
    char tenant[64 + 1]; /* zero behind the name */
    bal_id id;
} bal_cache_key;

/* Verified bytes, borrowed until given back. */
typedef struct bal_cached {
    const uint8_t *data;
    size_t size;
} bal_cached;

/* Make the size bytes at `to`. Called without a lock. */
typedef int bal_cache_fill_fn(void *ctx, uint8_t *to, size_t size,
                              bal_error *err);

/* cap: bytes kept while nobody uses them. */
BAL_CHECK int bal_cache_new(bal_cache **out, size_t cap, bal_error *err);
/* From now on what is pushed out of memory is kept on disk, in the folder, as
 * far as there is room: blocks of at most `block` bytes, all together at most
 * `most`. Once; where it cannot be had nothing changes. */
void bal_cache_spill(bal_cache *self, const char *folder, size_t block,
                     size_t most);
/* Another cap, if it is higher. */
void bal_cache_widen(bal_cache *self, size_t cap);
/* Nothing may be borrowed. */
void bal_cache_free(bal_cache *self);
BAL_OWNABLE(bal_cache)

/* The entry, filled by the first who asks while all others wait for it; they
 * share its failure. To be given back. */
BAL_CHECK int bal_cache_take(bal_cache *self, const bal_cached **out,
                             const bal_cache_key *key, size_t size,
                             bal_cache_fill_fn *fill, void *ctx,
                             bal_error *err);
void bal_cache_give(bal_cache *self, const bal_cached *cached);
/* Forget it: gone now, or when the last who uses it gives it back. */
void bal_cache_forget(bal_cache *self, const bal_cache_key *key);
/* It will not be asked for before long: it goes before all others. */
void bal_cache_pass(bal_cache *self, const bal_cache_key *key);
/* Bytes held, in use or not. */
size_t bal_cache_held(bal_cache *self);

#endif
