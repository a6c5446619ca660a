/* Which elements of a task vector are kept: the ways, as rows, and what is
 * found out about a tensor's inputs before the first tile. */
#ifndef MERGE_SPARSIFY_H
#define MERGE_SPARSIFY_H

#include "merge/merge.h"

typedef struct bal_sparsify bal_sparsify;

typedef enum bal_kept {
    BAL_KEPT_ALL, /* as it is: neither drawn for nor rescaled */
    BAL_KEPT_SOME,
    BAL_KEPT_NONE, /* zeros */
} bal_kept;

/* One input of one tensor. */
typedef struct bal_sparse {
    const bal_sparsify *by;
    bal_arith work; /* what it is computed in */
    bal_kept kept;
    double density, epsilon;
    uint64_t low, high; /* ranks wanted, none if equal */
    bool descending;    /* of equal magnitudes the first are the largest */
    bal_ranked ranked;
    double factor; /* what is kept is multiplied by; 1: it is not rescaled */
} bal_sparse;

struct bal_sparsify {
    bool wide; /* F16 is worked on in F32, as mergekit does where it draws */
    /* From density and what else the way takes, of a tensor of elements, with
     * 0 < density < 1. EINVAL: values that make no probability. */
    int (*plan)(bal_sparse *self, const bal_tile *tile, size_t input,
                const bal_values *values, bal_error *err);
    /* mask[k] = 1 or 0 for the elements of tile->inputs[i]. */
    void (*keep)(double *mask, const bal_sparse *self, const bal_tile *tile,
                 size_t i);
};

/* The largest max(1, int(density * n)) of n magnitudes. Of equal ones the
 * lower index is kept (arXiv:2306.01708). */
extern const bal_sparsify bal_sparsify_magnitude;
/* int(density * n) of them, below the largest int(gamma * n), or fewer of these
 * where not enough would be left. Equal ones are ordered by index, ascending
 * (arXiv:2312.06795). */
extern const bal_sparsify bal_sparsify_outliers;
/* Each with probability density (arXiv:2311.03099). */
extern const bal_sparsify bal_sparsify_bernoulli;
/* Each with a probability that grows with its rank by magnitude among its row,
 * from density - epsilon to density + epsilon (arXiv:2406.11617). Rows run
 * along axis 1; of one axis or none, the tensor is one row. EINVAL: density -
 * epsilon or density + epsilon is outside 0 … 1, ends excluded. A row of one
 * element has no ranks: mergekit refuses it (EINVAL), precise keeps it with
 * probability density. */
extern const bal_sparsify bal_sparsify_magprune;

/* Elements of a run that holds whole rows of bal_sparsify_magprune: the ranges
 * that its tiles begin and end with. */
uint64_t bal_magprune_align(const bal_extent *extent);
/* EINVAL as above. */
BAL_CHECK int bal_magprune_check(double density, double epsilon,
                                 bal_error *err);
int bal_magprune_plan(bal_sparse *self, const bal_tile *tile, size_t input,
                      const bal_values *values, bal_error *err);
/* The probability that each of the tile's elements is kept with. Uses four rows
 * of scratch. */
void bal_magprune_chances(double *out, const bal_sparse *self,
                          const bal_tile *tile, size_t i);

/* For each of the tile's inputs (a whole tensor's, as prepare gets it), by
 * tile->method->sparsify: thresholds, and with "rescale" the factor that makes
 * the sum of magnitudes what it was; it is left out (1) where that is less than
 * 1e-7 before or after, and in precise where it would not be finite. Freed with
 * free(). */
BAL_CHECK int bal_sparse_find(bal_sparse **out, bal_walk *walk,
                              const bal_tile *tile, const bal_values *values,
                              bal_error *err);
/* What is kept of tile->inputs[i], the rest 0: in to (tile->n elements), or the
 * input itself. A product, so that 0 does not silence an infinity or NaN. */
const double *bal_sparse_take(double *to, const bal_sparse *self,
                              const bal_tile *tile, size_t i);

#endif
