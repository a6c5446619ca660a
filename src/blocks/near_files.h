/* The folder of copies: see near.h. */
#ifndef BLOCKS_NEAR_FILES_H
#define BLOCKS_NEAR_FILES_H

#include "core/file.h"

/* ENOTFOUND: there is no copy. Appends it, and notes that it was used. */
BAL_CHECK int bal_near_read(const char *dir, const char *name, bal_buf *to,
                            bal_error *err);
/* Whole or not at all, not synced. *size: bytes that it takes. */
BAL_CHECK int bal_near_write(const char *dir, const char *name, bal_bytes bytes,
                             bal_error *err);
/* Absent is fine. */
BAL_CHECK int bal_near_drop(const char *dir, const char *name, bal_error *err);
/* Copies that were used longest ago go until the others have `most` bytes, and
 * temporaries of a day ago; *held: what is left. */
BAL_CHECK int bal_near_trim(const char *dir, uint64_t most, uint64_t *held,
                            bal_error *err);
/* All copies go. */
BAL_CHECK int bal_near_empty(const char *dir, bal_error *err);
/* *there is false where nothing says, or nothing that can be read. */
BAL_CHECK int bal_near_epoch(const char *dir, uint64_t *epoch, bool *there,
                             bal_error *err);
BAL_CHECK int bal_near_set_epoch(const char *dir, uint64_t epoch,
                                 bal_error *err);
/* DIR/.lock */
BAL_CHECK int bal_near_lock(bal_lock **out, const char *dir,
                            enum bal_lock_mode mode, double wait,
                            bal_error *err);

#endif
