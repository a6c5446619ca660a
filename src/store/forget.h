/* Deletion in steps, each of which may be the last before the process dies:
 *
 *  0. blocks that stay and are coded by some that go are stored anew;
 *  1. one transaction: the plan is made from the rows, the rows that make
 *     things readable go, the epoch grows, the plan goes into the journal,
 *     signed by whoever deletes, whose key is the store's from then on;
 *  2. the bytes go: blocks, the view cache, temporaries; the backend is listed,
 *     and nothing of the plan may be left. One transaction: block rows go, the
 *     journal row says so;
 *  3. the database is scrubbed (graph/forgets.h), the journal row says so;
 *  4. one transaction: the statement is signed and appended to the log, the
 *     journal row goes.
 *
 * The store's lock is held alone from before 1 until after 4. Whoever opens the
 * store, or is about to write to it, finishes what the journal has, if it is
 * what whoever deleted has signed. From 2 on, others do not wait for 3 and 4:
 * one who reads the database for long, or a key that is away, holds up the
 * proof and nothing else. */
#ifndef STORE_FORGET_H
#define STORE_FORGET_H

#include "core/json.h"
#include "store/store.h"

/* What is to go: JSON, made inside a transaction. Also what the journal keeps
 * and the statement says, but for its member "private" (which store it is of,
 * where the key is). anew: ids of the blocks that stay and were coded by some
 * that go; if it is empty, or NULL, they are looked for, and appended to it.
 * ECORRUPT: what a manifest uses is not what its text says. */
BAL_CHECK int bal_forget_plan(json_t **out, bal_tenant *tenant,
                              const bal_forget_options *options, bal_buf *anew,
                              bal_error *err);
/* Finish what the journal has: steps 2 to 4 of each row. Where a reader holds
 * the database, 3 is not waited for; without a key that a row asks for, 4
 * waits: the log sink is told, and the call succeeds. ECORRUPT, naming the row:
 * its plan is not one that whoever it names has signed; nothing of it is done.
 * EBUSY: another process is at work, or the secret is not at hand that a plan's
 * signature is checked with. Nothing in the journal: one probe. */
BAL_CHECK int bal_forget_resume(bal_store *self, bal_error *err);
/* The same with the lock held alone. */
BAL_CHECK int bal_forget_resume_locked(bal_store *self, bal_error *err);
/* Is there one whose bytes may not all be gone? */
BAL_CHECK int bal_forget_unfinished(bal_store *self, bool *unfinished,
                                    bal_error *err);

#endif
