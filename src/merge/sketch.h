/* The leading part of a large map that is read by rows, many times over rather
 * than kept: randomised subspace iteration (Halko, Martinsson, Tropp,
 * arXiv:0909.4061, algorithm 4.4), seeded, the same bits everywhere. */
#ifndef MERGE_SKETCH_H
#define MERGE_SKETCH_H

#include "merge/lowrank.h"

/* Rows [start, start + count) of n doubles. */
typedef int bal_rows_fn(double *to, void *ctx, size_t start, size_t count,
                        bal_error *err);

typedef struct bal_sketch {
    size_t m, n;
    bal_rows_fn *rows;
    void *ctx;
    uint64_t seed;
    const char *name; /* what the numbers that are drawn are keyed by, too */
} bal_sketch;

/* A spectrum whose first `rank` values, or as many as keep the share `energy`
 * of all squares (rank 0), are those of the map: no map of that rank is nearer
 * by more than about 1e-6. *rank is told then, 1 at least. EUNSUPPORTED: not
 * finite. */
BAL_CHECK int bal_sketch_run(bal_spectrum *out, const bal_sketch *self,
                             size_t *rank, double energy, bal_error *err);

#endif
