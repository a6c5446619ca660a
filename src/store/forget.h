/* Deletion in steps, each of which may be the last before the process dies:
 *
 *  1. one transaction: the plan is made from the rows, the rows that make
 * things readable go, the epoch grows, the plan goes into the journal;
 *  2. the bytes go: blocks, what the view cache has of it, temporaries; the
 *     backend is listed, and nothing of the plan may be left;
 *  3. the database is scrubbed (graph/forgets.h); one transaction: block rows
 *     go, the journal row says so;
 *  4. one transaction: the statement is signed and appended to the log, the
 *     journal row goes.
 *
 * The store's lock is held alone from before 1 until after 4. Whoever opens the
 * store, or is about to write to it, finishes what the journal has. */
#ifndef STORE_FORGET_H
#define STORE_FORGET_H

#include "core/json.h"
#include "store/store.h"

/* What is to go: JSON, made inside a transaction. Also what the journal keeps
 * and the statement says, but for its member "private" (where the key is, whose
 * caches go that nobody is told of). */
BAL_CHECK int bal_forget_plan(json_t **out, bal_tenant *tenant,
                              const bal_forget_options *options,
                              bal_error *err);
/* Finish what the journal has: steps 2 to 4 of each row. Without a key that a
 * row asks for, its step 4 waits: the log sink is told, and the call succeeds.
 * EBUSY: another process is at work. Nothing in the journal: one probe. */
BAL_CHECK int bal_forget_resume(bal_store *self, bal_error *err);
/* The same with the lock held alone. */
BAL_CHECK int bal_forget_resume_locked(bal_store *self, bal_error *err);
/* Is there one whose bytes may not all be gone? */
BAL_CHECK int bal_forget_unfinished(bal_store *self, bool *unfinished,
                                    bal_error *err);

#endif
