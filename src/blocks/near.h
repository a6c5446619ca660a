/* A backend that is far away, and copies of what was read of it in a folder of
 * this machine.
 *
 *   DIR/<tenant>:<x>:<block>   a run, its name's slashes as colons
 *   DIR/.epoch                 the epoch that all of them are of, as text
 *   DIR/.lock                  shared by who adds one, exclusive for who
 * empties
 *
 * Whoever reads has the store's epoch asked first. Where it has grown since the
 * copies were made (something was deleted or taken back, on whatever machine),
 * all of them go before anything is read. Nothing is synced: a copy that a
 * crash has torn is found by its block's hash, and taken away (drop_near). Who
 * checks the store, and who writes, asks the backend itself. */
#ifndef BLOCKS_NEAR_H
#define BLOCKS_NEAR_H

#include "blocks/backend.h"

typedef int bal_near_epoch_fn(void *ctx, uint64_t *epoch, bal_error *err);

typedef struct bal_near_options {
    const char *dir; /* made if need be, for the user alone */
    uint64_t most;   /* bytes; the copies that were used longest ago go first */
    /* The store's epoch now. Any thread. */
    bal_near_epoch_fn *epoch;
    void *ctx;
} bal_near_options;

/* Takes inner, unless it fails. A folder that cannot be used is told of by a
 * warning, once, and everything is read from where it is. */
BAL_CHECK int bal_near_open(bal_backend **out, bal_backend *inner,
                            const bal_near_options *options, bal_error *err);

#endif
