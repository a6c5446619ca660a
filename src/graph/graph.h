/* Facts at rest: tenants, manifests, blocks, commits, refs and how they moved.
 * Knows no model and no byte of a block. Every call that takes several
 * statements is one transaction, or joins the caller's (graph_begin). */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "core/buf.h"
#include "graph/db.h"

typedef struct bal_graph bal_graph;

#define BAL_SCHEMA_VERSION 5

/* Takes the database, on failure too, and brings its schema to this version,
 * under a lock. A newer one is EUNSUPPORTED. ENOTFOUND if it is empty and flags
 * lack CREATE. */
BAL_CHECK int bal_graph_open(bal_graph **out, bal_db *db, unsigned flags,
                             bal_error *err);
void bal_graph_free(bal_graph *self);
BAL_OWNABLE(bal_graph)
/* See lock of bal_db_ops. */
BAL_CHECK int bal_graph_lock(bal_db_lock **out, bal_graph *self,
                             enum bal_lock_mode mode, double wait,
                             bal_error *err);
/* See held of bal_db_ops. */
BAL_CHECK int bal_graph_locks_held(bal_graph *self, bal_error *err);
/* See changes of bal_db_ops. */
BAL_CHECK int bal_graph_changes(bal_graph *self, uint64_t *out, bal_error *err);
/* A transaction over several calls; see bal_tx. */
BAL_CHECK int bal_graph_begin(bal_tx *tx, bal_graph *self, unsigned flags,
                              bal_error *err);

/* ---- settings ---------------------------------------------------------- */

/* See bal_db_place. */
BAL_CHECK int bal_graph_place(bal_graph *self, bal_buf *to, bal_error *err);

/* Appends the value; ENOTFOUND. */
BAL_CHECK int bal_graph_setting(bal_graph *self, const char *key, bal_buf *to,
                                bal_error *err);
/* Each, by its key; one question to the database. */
typedef int bal_graph_setting_fn(void *ctx, const char *key, const char *value,
                                 bal_error *err);
BAL_CHECK int bal_graph_settings(bal_graph *self, bal_graph_setting_fn *fn,
                                 void *ctx, bal_error *err);
/* value NULL removes it. */
BAL_CHECK int bal_graph_set(bal_graph *self, const char *key, const char *value,
                            bal_error *err);

/* ---- tenants: a number inside, a name outside --------------------------- */

/* ENOTFOUND; with BAL_DB_CREATE in flags it is made. */
BAL_CHECK int bal_graph_tenant(bal_graph *self, int64_t *tenant,
                               const char *name, unsigned flags,
                               bal_error *err);
typedef int bal_graph_name_fn(void *ctx, const char *name, bal_error *err);
/* Each that has a commit, by name. */
BAL_CHECK int bal_graph_tenants(bal_graph *self, bal_graph_name_fn *fn,
                                void *ctx, bal_error *err);
/* Those without as well: not begun yet, or forgotten. */
BAL_CHECK int bal_graph_tenants_all(bal_graph *self, bal_graph_name_fn *fn,
                                    void *ctx, bal_error *err);

/* ---- blocks and manifests ---------------------------------------------- */

typedef struct bal_block_row {
    bal_id id;
    uint64_t size;   /* logical bytes */
    uint64_t stored; /* at rest */
    unsigned codec;
    bal_id check;   /* its header's, which covers every byte at rest */
    bool has_check; /* false: the row is older than that */
    /* Put, and not filled when read: distinct blocks that it is coded by, */
    const bal_id *bases;
    size_t base_count;
    /* and the sum of the squares of its elements, if it is one tensor's. */
    const char *dtype; /* NULL: it is not known */
    double squares;
} bal_block_row;

/* *there tells; row (may be NULL) is filled then. */
BAL_CHECK int bal_graph_block(bal_graph *self, int64_t tenant, const bal_id *id,
                              bal_block_row *row, bool *there, bal_error *err);
/* Each block row of a tenant, by id. */
typedef int bal_graph_block_fn(void *ctx, const bal_block_row *row,
                               bal_error *err);
BAL_CHECK int bal_graph_blocks(bal_graph *self, int64_t tenant,
                               bal_graph_block_fn *fn, void *ctx,
                               bal_error *err);
/* Each block row that no manifest uses, and no block is coded by. */
BAL_CHECK int bal_graph_unused(bal_graph *self, int64_t tenant,
                               bal_graph_block_fn *fn, void *ctx,
                               bal_error *err);
BAL_CHECK int bal_graph_block_forget(bal_graph *self, int64_t tenant,
                                     const bal_id *id, bal_error *err);
/* Rows of blocks that were written again: sizes, codec, check and bases follow.
 * ECONFLICT: a base has no row. */
BAL_CHECK int bal_graph_block_renew(bal_graph *self, int64_t tenant,
                                    const bal_block_row *row, bal_error *err);

/* The sum of the squares of a block's elements, as that dtype; *there: it is
 * known, a number, and what was put. */
BAL_CHECK int bal_graph_norm(bal_graph *self, int64_t tenant, const bal_id *id,
                             const char *dtype, double *squares, bool *there,
                             bal_error *err);

/* Each block with each block that it is coded by, by the block's id. */
typedef int bal_graph_base_fn(void *ctx, const bal_id *block,
                              const bal_id *base, bal_error *err);
BAL_CHECK int bal_graph_bases(bal_graph *self, int64_t tenant,
                              bal_graph_base_fn *fn, void *ctx, bal_error *err);

/* *any: some block of the tenant is coded by another. */
BAL_CHECK int bal_graph_bases_any(bal_graph *self, int64_t tenant, bool *any,
                                  bal_error *err);
/* *is: some block of the tenant is coded by this one. */
BAL_CHECK int bal_graph_is_base(bal_graph *self, int64_t tenant,
                                const bal_id *id, bool *is, bal_error *err);

/* What a view's recipe names. */
typedef struct bal_input_row {
    const char *tenant;
    bal_id commit;
    bal_id manifest;
} bal_input_row;

typedef struct bal_manifest_row {
    bal_id id;
    const char *kind;
    bal_bytes body;     /* canonical JSON */
    uint64_t logical;   /* bytes of all its entries */
    const bal_id *uses; /* every block it uses, without repetition */
    size_t use_count;
    const bal_input_row *inputs; /* of a view, in order */
    size_t input_count;
} bal_manifest_row;

/* Insert rows for blocks that are new, the manifest and what it uses; one that
 * is there already is left as it is. ECONFLICT: a block that it uses has no
 * row. */
BAL_CHECK int bal_graph_manifest_put(bal_graph *self, int64_t tenant,
                                     const bal_manifest_row *row,
                                     const bal_block_row *blocks,
                                     size_t block_count, bal_error *err);
/* Appends the body, and to kind (NULL: not asked for) the word that the row was
 * put with; ENOTFOUND. */
BAL_CHECK int bal_graph_manifest(bal_graph *self, int64_t tenant,
                                 const bal_id *id, bal_buf *kind, bal_buf *body,
                                 bal_error *err);
typedef int bal_graph_id_fn(void *ctx, const bal_id *id, bal_error *err);
BAL_CHECK int bal_graph_manifests(bal_graph *self, int64_t tenant,
                                  bal_graph_id_fn *fn, void *ctx,
                                  bal_error *err);
/* Manifests of a kind that commits have, the latest commit first or last,
 * `most` at most: those whose entries have `least` to `largest` bytes. Only so
 * many commits are looked at, the latest or the oldest, so that it takes no
 * longer in a long history. */
#define BAL_RECENT_AMONG 1024
typedef struct bal_recent {
    const char *kind;
    uint64_t least, largest;
    uint64_t most;
    bool oldest; /* the latest last */
} bal_recent;
typedef int bal_graph_recent_fn(void *ctx, const bal_id *manifest,
                                const bal_id *commit, bal_error *err);
BAL_CHECK int bal_graph_recent(bal_graph *self, int64_t tenant,
                               const bal_recent *which, bal_graph_recent_fn *fn,
                               void *ctx, bal_error *err);
/* Manifests that commits have, in the order of the first that has each. */
BAL_CHECK int bal_graph_committed(bal_graph *self, int64_t tenant,
                                  bal_graph_id_fn *fn, void *ctx,
                                  bal_error *err);
/* Note more blocks that a block is coded by, beside those that are noted. */
BAL_CHECK int bal_graph_bases_add(bal_graph *self, int64_t tenant,
                                  const bal_block_row *row, bal_error *err);
/* The blocks that a manifest's rows name, by id. */
BAL_CHECK int bal_graph_uses(bal_graph *self, int64_t tenant,
                             const bal_id *manifest, bal_graph_id_fn *fn,
                             void *ctx, bal_error *err);

/* ---- commits ----------------------------------------------------------- */

typedef struct bal_commit_row {
    bal_id id;
    bal_id manifest;
    bal_id parent; /* where history goes on from here now */
    bool has_parent;
    bal_id made_on; /* the parent it was made with, which its id covers */
    bool has_made_on;
    const char *kind; /* of its manifest */
    const char *message;
    const char *author;
    const char *base_model; /* NULL: not told */
    const char *metadata;   /* canonical JSON object */
    int64_t created_at;
    uint64_t epoch; /* it was made in; set by the graph, ignored by put */
} bal_commit_row;

typedef int bal_commit_row_fn(void *ctx, const bal_commit_row *row,
                              bal_error *err);
BAL_CHECK int bal_graph_commit_put(bal_graph *self, int64_t tenant,
                                   const bal_commit_row *row, bal_error *err);
/* Calls fn once; ENOTFOUND. */
BAL_CHECK int bal_graph_commit(bal_graph *self, int64_t tenant,
                               const bal_id *id, bal_commit_row_fn *fn,
                               void *ctx, bal_error *err);
/* From id back along parents, limit of them at most (0: all); one query. */
BAL_CHECK int bal_graph_history(bal_graph *self, int64_t tenant,
                                const bal_id *from, uint64_t limit,
                                bal_commit_row_fn *fn, void *ctx,
                                bal_error *err);
/* Each commit of a tenant, oldest first. */
BAL_CHECK int bal_graph_commits(bal_graph *self, int64_t tenant,
                                bal_commit_row_fn *fn, void *ctx,
                                bal_error *err);
/* Ids with a prefix of 1 … 64 hex digits, by id, limit at most (an index range,
 * not a scan). */
BAL_CHECK int bal_graph_prefix(bal_graph *self, int64_t tenant,
                               const char *prefix, uint64_t limit,
                               bal_graph_id_fn *fn, void *ctx, bal_error *err);

/* ---- refs -------------------------------------------------------------- */

/* *there tells. */
BAL_CHECK int bal_graph_ref(bal_graph *self, int64_t tenant, const char *name,
                            bal_id *commit, bool *there, bal_error *err);
typedef int bal_graph_ref_fn(void *ctx, const char *name, const bal_id *commit,
                             bal_error *err);
BAL_CHECK int bal_graph_refs(bal_graph *self, int64_t tenant,
                             bal_graph_ref_fn *fn, void *ctx, bal_error *err);

typedef struct bal_move_row {
    const char *ref;
    uint64_t n; /* 0 is the newest; ignored by move */
    const char *op;
    bal_id old, now;
    bool has_old, has_now;
    int64_t at;
    const char *message;
} bal_move_row;
/* Compare and swap: the ref must be at row->old (or absent without has_old),
 * else ECONFLICT; the move goes into the reflog in the same transaction. */
BAL_CHECK int bal_graph_move(bal_graph *self, int64_t tenant,
                             const bal_move_row *row, bal_error *err);
typedef int bal_move_row_fn(void *ctx, const bal_move_row *row, bal_error *err);
/* Newest first; ref NULL: of every ref (n counts within each ref). */
BAL_CHECK int bal_graph_reflog(bal_graph *self, int64_t tenant, const char *ref,
                               bal_move_row_fn *fn, void *ctx, bal_error *err);

/* ---- what a writer is about to publish ---------------------------------- */

/* Noted, durably, before the blocks can be seen under their names, and removed
 * in the transaction that names them: what a killed writer published without
 * naming it is known. session is a name of the writer's own. */
BAL_CHECK int bal_graph_intend(bal_graph *self, int64_t tenant,
                               const char *session, const bal_id *ids,
                               size_t count, bal_error *err);
/* session NULL: of every session. */
BAL_CHECK int bal_graph_intended_done(bal_graph *self, const char *session,
                                      bal_error *err);
/* Every intended block that has no block row, or every one that has, of any
 * session but `except` (NULL: of any). */
typedef int bal_intended_fn(void *ctx, const char *session, const char *tenant,
                            const bal_id *id, bal_error *err);
BAL_CHECK int bal_graph_intended(bal_graph *self, const char *except,
                                 bool named, bal_intended_fn *fn, void *ctx,
                                 bal_error *err);

/* Take norms away that something else has written to: whoever wants one reads
 * the block. */
BAL_CHECK int bal_graph_norms_mend(bal_graph *self, bal_error *err);

/* ---- counting ---------------------------------------------------------- */

/* Blocks by codec: how many, bytes decoded and at rest. tenant 0: of all. */
typedef int bal_graph_codec_fn(void *ctx, unsigned codec, uint64_t blocks,
                               uint64_t bytes, uint64_t stored, bal_error *err);
BAL_CHECK int bal_graph_codecs(bal_graph *self, int64_t tenant,
                               bal_graph_codec_fn *fn, void *ctx,
                               bal_error *err);
/* tenant 0: all. */
BAL_CHECK int bal_graph_stats(bal_graph *self, int64_t tenant, bal_stats *out,
                              bal_error *err);
/* What the database itself finds wrong with itself; rows that point nowhere:
 * refs, parents, manifests, uses, reflog against refs, grants, tombstones; rows
 * that something else has written to (graph/seal.h); deletions that are not
 * done yet, which are no fault. */
#define BAL_FAULT_PENDING "pending-deletion"
typedef int bal_graph_fault_fn(void *ctx, const char *kind, const char *what,
                               const char *detail, bal_error *err);
enum bal_check_flags {
    BAL_CHECK_FAST = 1, /* no index against its table, no seals of blocks */
};
BAL_CHECK int bal_graph_check(bal_graph *self, unsigned flags,
                              bal_graph_fault_fn *fn, void *ctx,
                              bal_error *err);

#endif
