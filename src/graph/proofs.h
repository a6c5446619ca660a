/* Proofs of deletion, the log they are appended to (leaves by their hashes, the
 * tree is core/merkle.h's), and tombstones: what was forgotten, by id, so that
 * "was deleted" can be told from "never was". */
#ifndef GRAPH_PROOFS_H
#define GRAPH_PROOFS_H

#include "core/sha256.h"
#include "graph/graph.h"

typedef struct bal_proof_row {
    bal_sha256 attestation;
    uint64_t index; /* in the log */
    bal_sha256 leaf;
    const char *tenant;
    bal_bytes envelope;     /* DSSE, JSON */
    const char *checkpoint; /* of the log that ends with it, signed; NULL: it
                               was not signed by a pair */
    uint64_t epoch;         /* of the deletion */
    int64_t completed_at;
} bal_proof_row;

/* How many entries the log has; the next index. ECORRUPT: fewer are there than
 * were appended. */
BAL_CHECK int bal_graph_log_size(bal_graph *self, uint64_t *size,
                                 bal_error *err);
/* Was any of its heads signed by a pair? */
BAL_CHECK int bal_graph_log_signed(bal_graph *self, bool *any, bal_error *err);
/* Append the first `size` leaf hashes, 32 bytes each; ECORRUPT where an index
 * is missing. */
BAL_CHECK int bal_graph_log_leaves(bal_graph *self, uint64_t size, bal_buf *to,
                                   bal_error *err);
/* ECONFLICT unless row->index is the log's size. */
BAL_CHECK int bal_graph_proof_put(bal_graph *self, const bal_proof_row *row,
                                  bal_error *err);
typedef int bal_proof_row_fn(void *ctx, const bal_proof_row *row,
                             bal_error *err);
/* Calls fn once; ENOTFOUND. */
BAL_CHECK int bal_graph_proof(bal_graph *self, const bal_sha256 *attestation,
                              bal_proof_row_fn *fn, void *ctx, bal_error *err);
/* In the order of the log. tenant NULL: all. */
BAL_CHECK int bal_graph_proofs(bal_graph *self, const char *tenant,
                               bal_proof_row_fn *fn, void *ctx, bal_error *err);

typedef enum bal_tomb {
    BAL_TOMB_COMMIT,
    BAL_TOMB_MANIFEST,
} bal_tomb;
typedef struct bal_tombstone {
    const char *tenant;
    bal_tomb kind;
    bal_id id;
    bal_sha256 attestation;
} bal_tombstone;
/* One id may have several, of one deletion each. Put with the proof; or, of
 * what was forgotten in the store that its children were transferred from, with
 * the id itself in the attestation's place: its proof is there, and none here.
 */
BAL_CHECK int bal_graph_tombstone_put(bal_graph *self,
                                      const bal_tombstone *stone,
                                      bal_error *err);
/* *there: just this one. */
BAL_CHECK int bal_graph_tombstone(bal_graph *self, const bal_tombstone *stone,
                                  bool *there, bal_error *err);
/* Was it forgotten, or is its deletion in the journal? */
BAL_CHECK int bal_graph_forgotten(bal_graph *self, const char *tenant,
                                  bal_tomb kind, const bal_id *id,
                                  bool *forgotten, bal_error *err);
/* When content that is there was committed: the newest epoch and time of the
 * commits that use a block (or have a manifest, or are the commit). *there
 * false: no commit does. */
typedef struct bal_presence {
    bool row;        /* a row names it */
    bool there;      /* a commit has it */
    uint64_t oldest; /* epoch of the oldest such commit */
    int64_t since;   /* time of the oldest such commit */
} bal_presence;
typedef enum bal_presence_of {
    BAL_PRESENCE_COMMIT,
    BAL_PRESENCE_MANIFEST,
    BAL_PRESENCE_BLOCK,
} bal_presence_of;
BAL_CHECK int bal_graph_presence(bal_graph *self, const char *tenant,
                                 bal_presence_of what, const bal_id *id,
                                 bal_presence *out, bal_error *err);

#endif
