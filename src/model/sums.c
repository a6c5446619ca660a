/* Nodes wait on a stack for their right neighbours, as the bits of a counter
 * wait for a carry: one for each bit of the number of leaves. */
#include "model/sums.h"

#include <assert.h>
#include <math.h>

#include "core/arith.h"
#include "kernel/dtype.h"
#include "kernel/kernels.h"

enum { LANES = 16 };

void bal_tree_add(bal_tree *self, unsigned level, double node)
{
    uint64_t bit = (uint64_t)1 << level;

    assert(level < BAL_TREE_DEPTH && !(self->count & (bit - 1)));
    for (uint64_t at = bit; self->count & at; at <<= 1)
        node = self->nodes[--self->depth] + node;
    self->nodes[self->depth++] = node;
    self->count += bit;
}

double bal_tree_sum(const bal_tree *self)
{
    unsigned i = self->depth;
    double sum = i ? self->nodes[--i] : 0;

    while (i)
        sum = self->nodes[--i] + sum;
    return sum;
}

bool bal_tree_level(unsigned *level, uint64_t values)
{
    uint64_t leaves = values / BAL_LEAF;

    if (values % BAL_LEAF || !leaves || (leaves & (leaves - 1)) ||
        leaves >> BAL_TREE_DEPTH)
        return false;
    *level = (unsigned)__builtin_ctzll(leaves);
    return true;
}

static double leaf_of(bal_dtype dtype, const void *data, size_t n)
{
    double lanes[LANES] = { 0 };
    double sum = 0;

    bal_kernels_use()->squares[dtype](lanes, data, n);
    for (size_t i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

bool bal_squares(double *out, bal_dtype dtype, bal_bytes data)
{
    bal_tree tree = { .depth = 0 };
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t n = data.len / width;

    for (size_t at = 0; at < n; at += BAL_LEAF)
        bal_tree_add(&tree, 0,
                     leaf_of(dtype, (const uint8_t *)data.data + at * width,
                             (size_t)bal_min(n - at, BAL_LEAF)));
    *out = bal_tree_sum(&tree);
    return isfinite(*out);
}

bool bal_squares_kept(unsigned *level, bal_dtype dtype, uint64_t block_size)
{
    unsigned bits = bal_dtype_bits(dtype);

    return bal_dtype_row_of(dtype)->class_of == BAL_CLASS_FLOAT &&
           bal_tree_level(level, block_size * 8 / bits);
}
