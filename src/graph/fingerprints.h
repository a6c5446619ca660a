/* Sets of probes, and what commits answered to them. They hold people's words,
 * so they belong to a tenant and go with it; an answer goes with its commit, a
 * set with the last fingerprint of it. */
#ifndef GRAPH_FINGERPRINTS_H
#define GRAPH_FINGERPRINTS_H

#include "graph/graph.h"

typedef struct bal_probes_row {
    bal_id id;
    uint64_t probes;
    uint64_t fingerprints; /* of it; set by the graph, ignored by put */
    bal_bytes body;        /* canonical JSON; empty in lists */
    int64_t created_at;
} bal_probes_row;

typedef struct bal_fingerprint_row {
    bal_id commit;
    bal_id probes;
    const char *terms; /* canonical JSON */
    uint64_t answers;
    bal_bytes body; /* probe/fingerprint.h; empty in lists */
    int64_t created_at;
} bal_fingerprint_row;

/* The set's row if it is new, and the fingerprint's, in the place of one with
 * the same commit, set and terms. ENOTFOUND: no such commit. ECONFLICT: that
 * one has more answers. One transaction, or the caller's. */
BAL_CHECK int bal_graph_fingerprint_put(bal_graph *self, int64_t tenant,
                                        const bal_probes_row *probes,
                                        const bal_fingerprint_row *row,
                                        bal_error *err);
typedef int bal_fingerprint_row_fn(void *ctx, const bal_fingerprint_row *row,
                                   bal_error *err);
/* Without bodies, the latest first; commit NULL: of any; probes NULL, or none
 * without a commit: of any. */
BAL_CHECK int bal_graph_fingerprints(bal_graph *self, int64_t tenant,
                                     const bal_id *commit, const bal_id *probes,
                                     bal_fingerprint_row_fn *fn, void *ctx,
                                     bal_error *err);
/* The latest of a commit and a set, with its body; terms NULL: on any. Calls fn
 * once; ENOTFOUND; ECORRUPT: something else has written to it. */
typedef struct bal_fingerprint_key {
    const bal_id *commit;
    const bal_id *probes;
    const char *terms;
} bal_fingerprint_key;
BAL_CHECK int bal_graph_fingerprint(bal_graph *self, int64_t tenant,
                                    const bal_fingerprint_key *key,
                                    bal_fingerprint_row_fn *fn, void *ctx,
                                    bal_error *err);
typedef int bal_probes_row_fn(void *ctx, const bal_probes_row *row,
                              bal_error *err);
/* Without bodies, the latest first. */
BAL_CHECK int bal_graph_probe_sets(bal_graph *self, int64_t tenant,
                                   bal_probes_row_fn *fn, void *ctx,
                                   bal_error *err);
/* Calls fn once, with the body; ENOTFOUND. */
BAL_CHECK int bal_graph_probe_set(bal_graph *self, int64_t tenant,
                                  const bal_id *id, bal_probes_row_fn *fn,
                                  void *ctx, bal_error *err);
/* Ids of sets with a prefix of 4 … 64 hex digits, by id, limit at most. */
BAL_CHECK int bal_graph_probe_prefix(bal_graph *self, int64_t tenant,
                                     const char *prefix, uint64_t limit,
                                     bal_graph_id_fn *fn, void *ctx,
                                     bal_error *err);

/* ---- taking rows -------------------------------------------------------- */

/* Sets that only fingerprints of this commit are of; NULL: all. */
BAL_CHECK int bal_graph_probes_only_of(bal_graph *self, int64_t tenant,
                                       const bal_id *commit,
                                       bal_graph_id_fn *fn, void *ctx,
                                       bal_error *err);
/* A commit's fingerprints, and the sets that are of no other. */
BAL_CHECK int bal_graph_fingerprints_forget(bal_graph *self, int64_t tenant,
                                            const bal_id *commit,
                                            bal_error *err);
/* A set with all fingerprints of it; *fingerprints: how many. ENOTFOUND. Notes
 * that the database is to be scrubbed. */
BAL_CHECK int bal_graph_probes_forget(bal_graph *self, int64_t tenant,
                                      const bal_id *id, uint64_t *fingerprints,
                                      bal_error *err);
/* *due: rows went, and what they left in the database's file has not been
 * scrubbed since. */
BAL_CHECK int bal_graph_scrub_due(bal_graph *self, bool *due, bal_error *err);
BAL_CHECK int bal_graph_scrub_done(bal_graph *self, bal_error *err);

#endif
