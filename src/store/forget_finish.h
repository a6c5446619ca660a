/* The second half of a deletion, from what the journal has. */
#ifndef STORE_FORGET_FINISH_H
#define STORE_FORGET_FINISH_H

#include "core/dsse.h"
#include "core/sha256.h"
#include "graph/forgets.h"
#include "store/forget.h"

/* DSSE's payloadType of a plan. */
#define BAL_PLAN_PAYLOAD "application/vnd.ballast.plan+json"

/* A journal row, taken out of the query that found it. */
typedef struct bal_pending {
    int64_t number;
    bal_journal_state state;
    json_t *plan;  /* NULL: there is none that can be carried out, and */
    bal_error why; /* this is why */
    bal_dsse dsse; /* who has signed the plan */
} bal_pending;

typedef struct bal_pendings {
    bal_pending *rows;
    size_t count, room;
} bal_pendings;

/* Append a plan as the journal keeps it: a DSSE envelope that key (NULL:
 * nobody) signs, so that whoever finishes the deletion can tell whose it is.
 * Beside it, the ids of commits and manifests as they are, so that the graph
 * finds them; the rest is in base64: names of refs and paths are not to be
 * found in what a deleted row leaves in a database's log. */
BAL_CHECK int bal_pending_write(bal_buf *to, const json_t *plan,
                                const bal_key *key, bal_error *err);
/* All that the journal has, oldest first. What of a plan becomes a path or an
 * id is checked; a row whose plan is not one is told with its `why`. */
BAL_CHECK int bal_pendings_load(bal_pendings *out, bal_graph *graph,
                                bal_error *err);
void bal_pending_done(bal_pending *self);
void bal_pendings_done(bal_pendings *self);
/* Of its plan; "" and 0 without one. */
const char *bal_pending_tenant(const bal_pending *row);
uint64_t bal_pending_epoch(const bal_pending *row);

/* ECORRUPT, with the row's number and a hint: it has no plan, or another
 * store's; the key that it names has not signed it, or is not one that the
 * store trusts; nobody has, and the store trusts a key; or there is a proof of
 * it already. *waits: only a shared secret that is not at hand can tell.
 * offered (may be NULL): a key at hand. */
BAL_CHECK int bal_pending_believe(bal_store *self, const bal_pending *row,
                                  const bal_key *offered, bool *waits,
                                  bal_error *err);

/* Step 2 of a row that is PLANNED: bytes, the view cache and temporaries go,
 * the backend is listed, block rows go, the row is REMOVED. EIO: something is
 * still listed. The store's lock is held alone, here and below. */
BAL_CHECK int bal_pending_erase(bal_store *self, bal_pending *row,
                                bal_error *err);
/* Step 3 of one that is REMOVED: the database is scrubbed, the row is SCRUBBED.
 * flags: bal_scrub_flags. EBUSY: a reader holds the database. */
BAL_CHECK int bal_pending_scrub(bal_store *self, bal_pending *row,
                                unsigned flags, bal_error *err);
/* ECORRUPT: a block of the plan is listed that nothing which was committed
 * since has. What a row says of its state, anybody can have written. */
BAL_CHECK int bal_pending_look(bal_store *self, const bal_pending *row,
                               bal_error *err);
/* Step 4: signed with key (NULL: by nobody) and put into the log. */
BAL_CHECK int bal_pending_sign(bal_store *self, const bal_pending *row,
                               const bal_key *key, bal_sha256 *attestation,
                               bal_error *err);
/* The key that a row asks for: offered (may be NULL) if that is it, else the
 * file that the plan names, else the environment's. *found false: none of them
 * is; *out NULL with *found: it asks for none. */
BAL_CHECK int bal_pending_key(bal_key **out, bool *found,
                              const bal_pending *row, const bal_key *offered,
                              bal_error *err);
/* As bal_forget_resume_locked, with a key that may be the one asked for. flags:
 * 0, where a reader of the database is waited for, or BAL_SCRUB_NOW. */
BAL_CHECK int bal_forget_resume_with(bal_store *self, const bal_key *offered,
                                     unsigned flags, bal_error *err);

#endif
