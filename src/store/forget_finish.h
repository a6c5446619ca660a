/* The second half of a deletion, from what the journal has. */
#ifndef STORE_FORGET_FINISH_H
#define STORE_FORGET_FINISH_H

#include "core/key.h"
#include "core/sha256.h"
#include "graph/forgets.h"
#include "store/forget.h"

/* A journal row, taken out of the query that found it. */
typedef struct bal_pending {
    int64_t number;
    bal_journal_state state;
    json_t *plan;
} bal_pending;

typedef struct bal_pendings {
    bal_pending *rows;
    size_t count, room;
} bal_pendings;

/* Append a plan as the journal keeps it: its ids as they are, so that the graph
 * finds them, the rest in base64: names of refs and paths are not to be found
 * in what a deleted row leaves in a database's log. */
BAL_CHECK int bal_pending_write(bal_buf *to, const json_t *plan,
                                bal_error *err);
/* All that the journal has, oldest first. */
BAL_CHECK int bal_pendings_load(bal_pendings *out, bal_graph *graph,
                                bal_error *err);
void bal_pendings_done(bal_pendings *self);

/* Steps 2 and 3: bytes, caches and temporaries go, the backend is listed, the
 * database scrubbed, block rows go, the row is REMOVED. EIO: something is still
 * listed. EBUSY: a reader holds the database. The store's lock is held alone,
 * here and below. */
BAL_CHECK int bal_pending_erase(bal_store *self, bal_pending *row,
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
/* As bal_forget_resume_locked, with a key that may be the one asked for. */
BAL_CHECK int bal_forget_resume_with(bal_store *self, const bal_key *offered,
                                     bal_error *err);

#endif
