/* Sums in the order of a binary tree whose leaves are BAL_LEAF values each,
 * counted from a tensor's start: what a range of 2^k leaves at a multiple of
 * itself sums up to is a node of the tree, whether it was added up now or years
 * ago. So sums have the same bits whatever they are taken in: threads, blocks,
 * reads. */
#ifndef MODEL_SUMS_H
#define MODEL_SUMS_H

#include "model/model.h"
#include "model/wide.h"

enum {
    BAL_LEAF = BAL_CHUNK, /* values */
    BAL_TREE_DEPTH = 52,  /* 2^52 leaves are more than there are bytes */
};

/* Zero is an empty one. */
typedef struct bal_tree {
    double nodes[BAL_TREE_DEPTH + 1]; /* one for each bit of count */
    unsigned depth;
    uint64_t count; /* leaves */
} bal_tree;

/* The node of 2^level leaves that comes next. The last of all may be cut. */
void bal_tree_add(bal_tree *self, unsigned level, double node);
double bal_tree_sum(const bal_tree *self);
/* True if `values` are 2^level leaves. */
bool bal_tree_level(unsigned *level, uint64_t values);

/* The sum of the squares of all elements of a float dtype, from the first leaf
 * on; false if it is not finite. data is aligned to an element. */
bool bal_squares(double *out, bal_dtype dtype, bal_bytes data);
/* True if blocks of block_size bytes of a tensor of the dtype are nodes: then
 * what the squares of each sum up to is worth keeping. */
bool bal_squares_kept(unsigned *level, bal_dtype dtype, uint64_t block_size);

#endif
