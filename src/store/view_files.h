/* The view cache on disk: one file a block, below <root>/cache.
 *
 *   cache/.epoch                      the epoch that all of it is of, as text
 *   cache/<tenant>/<manifest>/<n>     block n of a resolved view
 *   cache/.tmp/<tenant>:<manifest>:…  one that is being written
 *
 * A file: magic (8 bytes), manifest (32), n, block size of the packing, length
 * of what follows (8 each, little-endian), BLAKE3-256 of all that and of the
 * bytes (32), the bytes. Nothing is synced: a file that a crash has torn does
 * not have its hash. */
#ifndef STORE_VIEW_FILES_H
#define STORE_VIEW_FILES_H

#include "store/store.h"

typedef struct bal_view_block {
    const char *tenant;
    bal_id manifest;
    uint64_t number;
    uint64_t block_size;
    uint64_t size; /* of the block itself */
} bal_view_block;

/* "<root>/cache", "…/<tenant>" and "…/<manifest>": as much as is given (NULL:
 * no more). */
BAL_CHECK int bal_view_path(bal_buf *out, const bal_store *self,
                            const char *tenant, const bal_id *manifest,
                            bal_error *err);
/* *there: the file was there and is the block; one that is not is removed. No
 * failure to read is one of the caller. */
void bal_view_file_read(bool *there, const bal_store *self,
                        const bal_view_block *block, uint8_t *to);
/* The caller holds the store's lock, shared. */
BAL_CHECK int bal_view_file_write(const bal_store *self,
                                  const bal_view_block *block,
                                  const uint8_t *data, bal_error *err);
/* Is the file at path an entry of that manifest and number? */
bool bal_view_file_whole(const char *path, const bal_id *manifest,
                         uint64_t number);

/* The epoch of the cache. *there is false where nothing says; *any where there
 * is a cache at all. */
typedef struct bal_view_epoch {
    bool any;
    bool there;
    uint64_t epoch;
} bal_view_epoch;
BAL_CHECK int bal_view_epoch_read(bal_view_epoch *out, const bal_store *self,
                                  bal_error *err);
BAL_CHECK int bal_view_epoch_write(const bal_store *self, uint64_t epoch,
                                   bal_error *err);
/* All of the cache goes; the lock is held alone. */
BAL_CHECK int bal_view_wipe(const bal_store *self, bal_error *err);

/* Bytes in the cache. Where they are more than cap, the views that were opened
 * longest ago go until they are not, but for one. */
BAL_CHECK int bal_view_trim(uint64_t *held, const bal_store *self, uint64_t cap,
                            const char *tenant, const bal_id *manifest,
                            bal_error *err);
/* The store's lock, if it is free at once; EBUSY. */
BAL_CHECK int bal_view_lock(bal_db_lock **out, const bal_store *self,
                            enum bal_lock_mode mode, bal_error *err);
/* What killed writers left; the lock is held alone. */
BAL_CHECK int bal_view_sweep(const bal_store *self, bal_error *err);

#endif
