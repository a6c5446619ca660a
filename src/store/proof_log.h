/* The store's log as a Merkle tree, and its heads. */
#ifndef STORE_PROOF_LOG_H
#define STORE_PROOF_LOG_H

#include "core/key.h"
#include "store/proof.h"

/* Roots of a tree that grows leaf by leaf, in one pass. */
typedef struct bal_tree {
    bal_sha256 nodes[64]; /* of full subtrees, the largest first */
    uint64_t size;
} bal_tree;

BAL_CHECK int bal_tree_add(bal_tree *self, const bal_sha256 *leaf,
                           bal_error *err);
BAL_CHECK int bal_tree_root(bal_sha256 *out, const bal_tree *self,
                            bal_error *err);

/* A log as it is now. */
typedef struct bal_log_state {
    bal_buf store;  /* its id */
    bal_buf origin; /* the log's name */
    bal_buf leaves;
    uint64_t size;
} bal_log_state;

BAL_CHECK int bal_log_state_load(bal_log_state *out, bal_store *store,
                                 bal_error *err);
void bal_log_state_done(bal_log_state *self);
const bal_sha256 *bal_log_leaves(const bal_log_state *self);

#endif
