/* The Merkle tree of RFC 6962, section 2.1: roots, audit paths, consistency
 * proofs. Leaves are given by their hashes, in order. */
#ifndef CORE_MERKLE_H
#define CORE_MERKLE_H

#include "core/sha256.h"

/* No proof is longer: one hash a level and two at the edge. */
#define BAL_MERKLE_PATH 130

typedef struct bal_merkle_path {
    bal_sha256 hashes[BAL_MERKLE_PATH];
    size_t count;
} bal_merkle_path;

/* SHA-256(0x00 ‖ data). */
BAL_CHECK int bal_merkle_leaf(bal_sha256 *out, bal_bytes data, bal_error *err);
/* A tree that grows leaf by leaf and is never held: its full subtrees, as the
 * ones in the binary number of its size. Zero has no leaves. */
typedef struct bal_merkle_tree {
    bal_sha256 full[64]; /* the largest first */
    uint64_t size;
} bal_merkle_tree;

/* O(log n), one hash on average. A failure leaves the tree as it was. */
BAL_CHECK int bal_merkle_add(bal_merkle_tree *self, const bal_sha256 *leaf,
                             bal_error *err);
/* MTH of the leaves so far, in O(log n). */
BAL_CHECK int bal_merkle_tree_root(bal_sha256 *out, const bal_merkle_tree *self,
                                   bal_error *err);
/* MTH of count leaves; of none, SHA-256(""). */
BAL_CHECK int bal_merkle_root(bal_sha256 *out, const bal_sha256 *leaves,
                              size_t count, bal_error *err);
/* PATH(index, leaves). EINVAL: index is not below count. */
BAL_CHECK int bal_merkle_inclusion(bal_merkle_path *out,
                                   const bal_sha256 *leaves, size_t count,
                                   size_t index, bal_error *err);
/* PROOF(from, leaves): that the tree of the first `from` is the beginning of
 * the tree of all count. EINVAL: from is 0 or more than count. */
BAL_CHECK int bal_merkle_consistency(bal_merkle_path *out,
                                     const bal_sha256 *leaves, size_t count,
                                     size_t from, bal_error *err);

/* The verifiers of RFC 9162, 2.1.3.2 and 2.1.4.2: with the hashes alone. Every
 * tree begins with the empty one, and that needs an empty path. */
typedef struct bal_merkle_head {
    uint64_t size;
    bal_sha256 root;
} bal_merkle_head;
BAL_CHECK int bal_merkle_check_inclusion(const bal_merkle_path *path,
                                         const bal_sha256 *leaf, uint64_t index,
                                         const bal_merkle_head *head,
                                         bool *good, bal_error *err);
BAL_CHECK int bal_merkle_check_consistency(const bal_merkle_path *path,
                                           const bal_merkle_head *from,
                                           const bal_merkle_head *to,
                                           bool *good, bal_error *err);

#endif
