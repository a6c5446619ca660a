/* The tree of RFC 6962 without a tree: its shape follows from the number of
 * leaves, so roots, paths and checks walk the bits of indexes and counts. */
#include "core/merkle.h"

#include <string.h>

#include "core/error.h"

int bal_merkle_leaf(bal_sha256 *out, bal_bytes data, bal_error *err)
{
    const bal_bytes parts[] = { { "\0", 1 }, data };

    return bal_sha256_of(out, parts, 2, err);
}

/* SHA-256(0x01 ‖ left ‖ right); out may be either. */
static int join(bal_sha256 *out, const bal_sha256 *left,
                const bal_sha256 *right, bal_error *err)
{
    const bal_bytes parts[] = {
        { "\1", 1 },
        { left->bytes, sizeof(left->bytes) },
        { right->bytes, sizeof(right->bytes) },
    };

    return bal_sha256_of(out, parts, 3, err);
}

/* Full subtrees wait as on a stack; a leaf carries like adding 1 does. */
int bal_merkle_add(bal_merkle_tree *self, const bal_sha256 *leaf,
                   bal_error *err)
{
    size_t top = (size_t)__builtin_popcountll(self->size);
    bal_sha256 node = *leaf;

    for (uint64_t carry = self->size; carry & 1; carry >>= 1) {
        int rc = join(&node, &self->full[--top], &node, err);
        if (rc)
            return rc;
    }
    self->full[top] = node;
    self->size++;
    return 0;
}

int bal_merkle_tree_root(bal_sha256 *out, const bal_merkle_tree *self,
                         bal_error *err)
{
    size_t top = (size_t)__builtin_popcountll(self->size);

    if (!top)
        return bal_sha256_of(out, NULL, 0, err);
    bal_sha256 root = self->full[--top];
    while (top) {
        int rc = join(&root, &self->full[--top], &root, err);
        if (rc)
            return rc;
    }
    *out = root;
    return 0;
}

int bal_merkle_root(bal_sha256 *out, const bal_sha256 *leaves, size_t count,
                    bal_error *err)
{
    bal_merkle_tree tree = { .size = 0 };

    for (size_t i = 0; i < count; i++) {
        int rc = bal_merkle_add(&tree, &leaves[i], err);
        if (rc)
            return rc;
    }
    return bal_merkle_tree_root(out, &tree, err);
}

/* The largest power of two below count, which is 2 or more. */
static size_t split_of(size_t count)
{
    size_t split = 1;

    while (split < count - split)
        split *= 2;
    return split;
}

/* Paths are found from the root down, and told from the leaf up. */
static void turn_round(bal_merkle_path *path)
{
    for (size_t i = 0; i < path->count / 2; i++) {
        bal_sha256 one = path->hashes[i];
        path->hashes[i] = path->hashes[path->count - 1 - i];
        path->hashes[path->count - 1 - i] = one;
    }
}

int bal_merkle_inclusion(bal_merkle_path *out, const bal_sha256 *leaves,
                         size_t count, size_t index, bal_error *err)
{
    bal_merkle_path path = { .count = 0 };

    if (index >= count)
        return bal_fail(err, BAL_EINVAL, "no leaf %zu in a tree of %zu", index,
                        count);
    while (count > 1) {
        size_t split = split_of(count);
        bool left = index < split;
        const bal_sha256 *others = left ? leaves + split : leaves;
        int rc = bal_merkle_root(&path.hashes[path.count++], others,
                                 left ? count - split : split, err);
        if (rc)
            return rc;
        leaves += left ? 0 : split;
        index -= left ? 0 : split;
        count = left ? split : count - split;
    }
    turn_round(&path);
    *out = path;
    return 0;
}

int bal_merkle_consistency(bal_merkle_path *out, const bal_sha256 *leaves,
                           size_t count, size_t from, bal_error *err)
{
    bal_merkle_path path = { .count = 0 };
    bool known = true; /* whoever checks has the root of the first `from` */
    int rc = 0;

    if (!from || from > count)
        return bal_fail(err, BAL_EINVAL, "no proof from %zu leaves to %zu",
                        from, count);
    while (from != count) {
        size_t split = split_of(count);
        bool left = from <= split;
        const bal_sha256 *others = left ? leaves + split : leaves;
        rc = bal_merkle_root(&path.hashes[path.count++], others,
                             left ? count - split : split, err);
        if (rc)
            return rc;
        known = known && left;
        leaves += left ? 0 : split;
        from -= left ? 0 : split;
        count = left ? split : count - split;
    }
    if (!known)
        rc = bal_merkle_root(&path.hashes[path.count++], leaves, count, err);
    if (rc)
        return rc;
    turn_round(&path);
    *out = path;
    return 0;
}

/* ---- checking --------------------------------------------------------------
 */

/* Where a check stands: the node on the path, and the last node of its level.
 * (fn and sn of RFC 9162.) */
typedef struct place {
    uint64_t node;
    uint64_t last;
} place;

/* Up to a level where the node is a right child: what is at the right edge of
 * the tree has no sibling on the levels between. */
static void climb(place *self)
{
    while (!(self->node & 1) && self->node) {
        self->node >>= 1;
        self->last >>= 1;
    }
}

/* True if the next hash of the path is to the left. */
static bool is_right(const place *self)
{
    return (self->node & 1) || self->node == self->last;
}

static void step(place *self, bool right)
{
    if (right)
        climb(self);
    self->node >>= 1;
    self->last >>= 1;
}

int bal_merkle_check_inclusion(const bal_merkle_path *path,
                               const bal_sha256 *leaf, uint64_t index,
                               const bal_merkle_head *head, bool *good,
                               bal_error *err)
{
    place at = { .node = index, .last = head->size - 1 };
    bal_sha256 root = *leaf;

    *good = false;
    if (index >= head->size || path->count > BAL_MERKLE_PATH)
        return 0;
    for (size_t i = 0; i < path->count; i++) {
        const bal_sha256 *other = &path->hashes[i];
        bool right = is_right(&at);
        if (!at.last)
            return 0;
        int rc = right ? join(&root, other, &root, err)
                       : join(&root, &root, other, err);
        if (rc)
            return rc;
        step(&at, right);
    }
    *good = !at.last && bal_sha256_equal(&root, &head->root);
    return 0;
}

/* What needs no path, and must have none: the empty tree, with which every tree
 * begins, or twice the same tree. */
static int check_ends(const bal_merkle_path *path, const bal_merkle_head *from,
                      const bal_merkle_head *to, bool *good, bal_error *err)
{
    bal_sha256 empty;
    int rc = bal_merkle_root(&empty, NULL, 0, err);
    if (rc)
        return rc;

    const bal_sha256 *want = from->size ? &to->root : &empty;
    *good = !path->count && bal_sha256_equal(&from->root, want) &&
            (to->size || bal_sha256_equal(&to->root, &empty));
    return 0;
}

/* The roots that the path leads to: old must be from's, new must be to's. */
typedef struct roots {
    bal_sha256 old;
    bal_sha256 new;
} roots;

static int add_hash(roots *self, const bal_sha256 *hash, bool right,
                    bal_error *err)
{
    if (!right)
        return join(&self->new, &self->new, hash, err);
    int rc = join(&self->old, hash, &self->old, err);
    if (rc)
        return rc;
    return join(&self->new, hash, &self->new, err);
}

int bal_merkle_check_consistency(const bal_merkle_path *path,
                                 const bal_merkle_head *from,
                                 const bal_merkle_head *to, bool *good,
                                 bal_error *err)
{
    place at = { .node = from->size - 1, .last = to->size - 1 };
    bool whole = !(from->size & (from->size - 1));
    size_t i = whole ? 0 : 1;

    *good = false;
    if (from->size > to->size || path->count > BAL_MERKLE_PATH)
        return 0;
    if (!from->size || from->size == to->size)
        return check_ends(path, from, to, good, err);
    if (!path->count)
        return 0;
    /* A full tree is a node of the larger one, and left out of the path. */
    const bal_sha256 *first = whole ? &from->root : &path->hashes[0];
    roots found = { .old = *first, .new = *first };
    while (at.node & 1) {
        at.node >>= 1;
        at.last >>= 1;
    }
    for (; i < path->count; i++) {
        bool right = is_right(&at);
        if (!at.last)
            return 0;
        int rc = add_hash(&found, &path->hashes[i], right, err);
        if (rc)
            return rc;
        step(&at, right);
    }
    *good = !at.last && bal_sha256_equal(&found.old, &from->root) &&
            bal_sha256_equal(&found.new, &to->root);
    return 0;
}
