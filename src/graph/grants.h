/* Who may build views over what, and which views stand on what. A grant is one
 * manifest of an owner, for one grantee; it is looked up at every hop of a
 * view, so it is one index probe. */
#ifndef GRAPH_GRANTS_H
#define GRAPH_GRANTS_H

#include "graph/graph.h"

/* Makes the grant live, whether it is new or was revoked; `info->owner` is the
 * tenant's own name. */
BAL_CHECK int bal_graph_grant(bal_graph *self, int64_t owner,
                              const bal_grant_info *info, bal_error *err);
/* manifest NULL: every one. *revoked: how many were live. */
BAL_CHECK int bal_graph_revoke(bal_graph *self, int64_t owner,
                               const bal_id *manifest, const char *grantee,
                               int64_t at, uint64_t *revoked, bal_error *err);
/* Is it live? */
BAL_CHECK int bal_graph_granted(bal_graph *self, const char *owner,
                                const bal_id *manifest, const char *grantee,
                                bool *live, bal_error *err);
typedef int bal_graph_grant_fn(void *ctx, const bal_grant_info *grant,
                               bal_error *err);
/* Given and received by a tenant, live ones first, then by time. */
BAL_CHECK int bal_graph_grants(bal_graph *self, const char *tenant,
                               bal_graph_grant_fn *fn, void *ctx,
                               bal_error *err);

/* What a grantee may see of an owner: the commits whose manifest is granted to
 * it. One query each, which does the same whether there is nothing or nothing
 * that is granted. *there tells. */
BAL_CHECK int bal_graph_granted_ref(bal_graph *self, const char *owner,
                                    const char *grantee, const char *ref,
                                    bal_id *commit, bool *there,
                                    bal_error *err);
/* Ids with a prefix of 4 … 64 hex digits, by id. */
BAL_CHECK int bal_graph_granted_prefix(bal_graph *self, const char *owner,
                                       const char *grantee, const char *prefix,
                                       bal_graph_id_fn *fn, void *ctx,
                                       bal_error *err);

/* ---- what views stand on ------------------------------------------------ */

typedef int bal_graph_input_fn(void *ctx, const bal_input_row *input,
                               bal_error *err);
/* The inputs that a view's manifest was put with, in order. */
BAL_CHECK int bal_graph_inputs(bal_graph *self, int64_t tenant,
                               const bal_id *manifest, bal_graph_input_fn *fn,
                               void *ctx, bal_error *err);

/* A view that stands, directly or over other views, on something. */
typedef struct bal_dependent {
    const char *tenant;
    bal_id manifest;
    bal_id commit; /* one that has the manifest; a manifest with several
                      commits is told for each */
} bal_dependent;
typedef int bal_dependent_fn(void *ctx, const bal_dependent *view,
                             bal_error *err);
/* On one commit of a tenant (commit NULL: on any of it, told by views of other
 * tenants only). Each once. */
BAL_CHECK int bal_graph_dependents(bal_graph *self, const char *tenant,
                                   const bal_id *commit, bal_dependent_fn *fn,
                                   void *ctx, bal_error *err);
/* Starting from views of grantee that name the owner's manifest (NULL: any
 * manifest of the owner); then whatever stands on them. */
BAL_CHECK int bal_graph_dependents_granted(bal_graph *self, const char *owner,
                                           const bal_id *manifest,
                                           const char *grantee,
                                           bal_dependent_fn *fn, void *ctx,
                                           bal_error *err);

/* ---- the epoch ---------------------------------------------------------- */

/* A number that grows with every revocation and deletion: who has checked what
 * it reads needs not check again while it is the same. Commits carry the epoch
 * they were made in. */
BAL_CHECK int bal_graph_epoch(bal_graph *self, uint64_t *epoch, bal_error *err);
/* Add one, inside a write transaction; *epoch: the new one. */
BAL_CHECK int bal_graph_epoch_next(bal_graph *self, uint64_t *epoch,
                                   bal_error *err);

#endif
