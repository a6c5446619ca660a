/* Resolved views, kept: <root>/cache/<tenant>/<manifest of the view>/<n>, where
 * n is a block of the packing that a commit of the view's result would have
 * (store/pack.h). A file describes itself and has a hash over all of it; what
 * does not fit is passed over, removed and made again. It is never asked before
 * the graph (store/guard.h), it is written only while no deletion is at work
 * (the store's lock, shared) and only at the epoch that the reader was admitted
 * at, so that nothing lands in it that a deletion has just taken out. Processes
 * share it. A root whose cache is of an older epoch than the database (another
 * root has revoked or deleted) empties it before it is used. */
#ifndef STORE_VIEW_CACHE_H
#define STORE_VIEW_CACHE_H

#include "model/model.h"
#include "store/store.h"

/* Takes view, on failure too: the model of a view's manifest as it resolves.
 * Reading a range resolves its whole block once. Where the cache is off
 * (BAL_OPEN_NO_CACHE, view_cache 0), the result is larger than half of its cap,
 * or the folder cannot be written, *out is view itself. */
BAL_CHECK int bal_view_cached(bal_model **out, bal_tenant *tenant,
                              const bal_id *manifest, uint64_t epoch,
                              bal_model *view, bal_error *err);
/* Remove what there is of one view (manifest NULL: of a tenant), durably; the
 * lock is held. *bytes is added to. */
BAL_CHECK int bal_view_cache_forget(bal_store *self, const char *tenant,
                                    const bal_id *manifest, uint64_t *bytes,
                                    bal_error *err);
/* Everything that is not of this epoch goes; the lock is held. Called after
 * rows went and views were forgotten, it also notes the new epoch. */
BAL_CHECK int bal_view_cache_settle(bal_store *self, uint64_t epoch,
                                    bal_error *err);
/* All of it goes, whoever's and whatever it stood on: what a deletion takes may
 * be in views that nobody has noted to stand on it. The lock is held alone. */
BAL_CHECK int bal_view_cache_wipe(bal_store *self, bal_error *err);
/* A cache of another epoch goes: nobody may read it, and what was taken back is
 * in it still, where the revocation was killed. The lock is held alone. */
BAL_CHECK int bal_view_cache_expire(bal_store *self, bal_error *err);
/* Is there anything of a view (manifest NULL: of a tenant)? */
BAL_CHECK int bal_view_cache_has(bal_store *self, const char *tenant,
                                 const bal_id *manifest, bool *there,
                                 bal_error *err);
/* For fsck: each thing in the cache. manifest is NULL for what is no entry;
 * whole tells whether its bytes are what they should be. */
typedef struct bal_cache_entry {
    const char *tenant;
    const bal_id *manifest;
    const char *path; /* below the root */
    uint64_t bytes;
    bool whole;
} bal_cache_entry;
typedef int bal_cache_entry_fn(void *ctx, const bal_cache_entry *entry,
                               bal_error *err);
BAL_CHECK int bal_view_cache_each(bal_store *self, bal_cache_entry_fn *fn,
                                  void *ctx, bal_error *err);

#endif
