/* Rows that go, and the journal by which a deletion that was killed is
 * finished. The steps (store/forget.h): one transaction takes the rows that
 * make things readable and leaves a journal row with the plan; bytes are
 * removed; a second transaction takes the block rows and the journal row and
 * puts the proof. */
#ifndef GRAPH_FORGETS_H
#define GRAPH_FORGETS_H

#include "graph/grants.h"

/* ---- planning (inside a transaction) ------------------------------------ */

/* The blocks that no manifest of the tenant's would use any more if those in
 * gone (NULL: all) went, those that none uses now included; by id. */
BAL_CHECK int bal_graph_doomed(bal_graph *self, int64_t tenant,
                               const bal_id *gone, size_t count,
                               bal_graph_block_fn *fn, void *ctx,
                               bal_error *err);
/* Blocks that manifest uses and others use too, with one of those others. */
typedef int bal_kept_fn(void *ctx, const bal_id *block, const bal_id *by,
                        bal_error *err);
BAL_CHECK int bal_graph_kept(bal_graph *self, int64_t tenant,
                             const bal_id *manifest, bal_kept_fn *fn, void *ctx,
                             bal_error *err);
/* Commits of a tenant that have a manifest, oldest first. */
BAL_CHECK int bal_graph_commits_of(bal_graph *self, int64_t tenant,
                                   const bal_id *manifest, bal_graph_id_fn *fn,
                                   void *ctx, bal_error *err);
/* Refs that are at a commit. */
BAL_CHECK int bal_graph_refs_at(bal_graph *self, int64_t tenant,
                                const bal_id *commit, bal_graph_ref_fn *fn,
                                void *ctx, bal_error *err);

/* ---- taking rows (inside the same write transaction) -------------------- */

/* One commit: its children go on from its parent, keeping their ids and what
 * they were made on; the messages of moves to it are emptied; its row goes.
 * Refs must have been moved off it (bal_graph_move; ECONFLICT otherwise). Its
 * manifest goes with the commit if no other commit has it (*manifest_too
 * tells), with what it uses and its inputs; block rows stay. */
BAL_CHECK int bal_graph_commit_forget(bal_graph *self, int64_t tenant,
                                      const bal_id *commit, bool *manifest_too,
                                      bal_error *err);
/* Every move of a ref that is no more, and with them its name: also where
 * others were reset to it, of which the message is emptied. ECONFLICT: it is
 * still there. */
BAL_CHECK int bal_graph_moves_forget(bal_graph *self, int64_t tenant,
                                     const char *ref, bal_error *err);
/* Every row of a tenant but its block rows and its number: commits, manifests,
 * refs, moves, exports, what servers loaded, fingerprints and their probes,
 * what it intends, grants given and received. The number stays with the name
 * and is never another tenant's, so that a handle that is still open finds
 * nothing. */
BAL_CHECK int bal_graph_tenant_forget(bal_graph *self, int64_t tenant,
                                      bal_error *err);
/* Delete the live and revoked grants of a manifest, or of and to a tenant
 * (manifest NULL). fn is told of each live one first. */
BAL_CHECK int bal_graph_grants_forget(bal_graph *self, const char *tenant,
                                      const bal_id *manifest,
                                      bal_graph_grant_fn *fn, void *ctx,
                                      bal_error *err);
/* Delete block rows; ids that have none are passed over. */
BAL_CHECK int bal_graph_blocks_forget(bal_graph *self, int64_t tenant,
                                      const bal_id *ids, size_t count,
                                      bal_error *err);

/* ---- the journal -------------------------------------------------------- */

typedef enum bal_journal_state {
    BAL_JOURNAL_PLANNED,  /* rows are gone, bytes may be there */
    BAL_JOURNAL_REMOVED,  /* bytes and block rows are gone */
    BAL_JOURNAL_SCRUBBED, /* and what they left in the database: wants
                             signing */
} bal_journal_state;
typedef struct bal_journal_row {
    int64_t number;
    const char *tenant;
    bal_journal_state state;
    const char *plan; /* store/forget_finish.h says of what form */
    bool sealed; /* else something else has written to it: a plan that somebody
                    changed must not be carried out. The texts are "" then */
} bal_journal_row;
BAL_CHECK int bal_graph_journal_put(bal_graph *self, const char *tenant,
                                    const char *plan, int64_t *number,
                                    bal_error *err);
/* By number. */
typedef int bal_journal_fn(void *ctx, const bal_journal_row *row,
                           bal_error *err);
BAL_CHECK int bal_graph_journal(bal_graph *self, bal_journal_fn *fn, void *ctx,
                                bal_error *err);
BAL_CHECK int bal_graph_journal_state(bal_graph *self, int64_t number,
                                      bal_journal_state state, bal_error *err);
BAL_CHECK int bal_graph_journal_done(bal_graph *self, int64_t number,
                                     bal_error *err);
/* Is anything in it? One probe, at every opening. */
BAL_CHECK int bal_graph_journal_any(bal_graph *self, bool *any, bal_error *err);

/* Nothing of deleted rows is left in the database's file, in its free pages, in
 * gaps within pages or in its log: the file is written anew (VACUUM, for
 * secure_delete does not reach what moving cells leaves in a page), the log
 * copied and truncated. Not inside a transaction. EBUSY: a reader holds the
 * log. flags: bal_scrub_flags. A vtable op of bal_db. */
BAL_CHECK int bal_graph_scrub(bal_graph *self, unsigned flags, bal_error *err);

/* ---- exports ------------------------------------------------------------ */

typedef struct bal_export_row {
    bal_id commit;
    const char *path;
    int64_t at;
} bal_export_row;
/* The same commit and path again: the time is renewed. */
BAL_CHECK int bal_graph_export_put(bal_graph *self, int64_t tenant,
                                   const bal_export_row *row, bal_error *err);
/* commit NULL: of any. By time. */
typedef int bal_export_fn(void *ctx, const bal_export_row *row, bal_error *err);
BAL_CHECK int bal_graph_exports(bal_graph *self, int64_t tenant,
                                const bal_id *commit, bal_export_fn *fn,
                                void *ctx, bal_error *err);
BAL_CHECK int bal_graph_exports_forget(bal_graph *self, int64_t tenant,
                                       const bal_id *commit, bal_error *err);

#endif
