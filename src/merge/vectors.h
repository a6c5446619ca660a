/* Tensors as vectors: norms and dot products of a whole tensor, of its rows or
 * of its columns, summed while it streams by. */
#ifndef MERGE_VECTORS_H
#define MERGE_VECTORS_H

#include "merge/merge.h"

/* How a tensor is cut into vectors. */
typedef struct bal_lines {
    uint64_t total;  /* elements of the tensor */
    uint64_t count;  /* vectors */
    uint64_t length; /* elements of each; runs: the last may be shorter */
    bool across;     /* element i is of vector i mod count, else i / length */
} bal_lines;

/* One vector; runs of so many elements; along the last axis (a tensor of one
 * axis is one row); along the first. */
bal_lines bal_lines_whole(const bal_extent *extent);
bal_lines bal_lines_runs(const bal_extent *extent, uint64_t length);
bal_lines bal_lines_rows(const bal_extent *extent);
bal_lines bal_lines_across(const bal_extent *extent);

/* Elements from some start that are of one vector, or, across, of n vectors in
 * order. */
typedef struct bal_stretch {
    size_t vector;
    size_t n;
} bal_stretch;
/* The first stretch of elements [start, start + n). */
bal_stretch bal_lines_at(const bal_lines *self, uint64_t start, size_t n);

/* A number for each vector, and each element of a tile times (by) that of its
 * vector: out = r(a * s), r(a / s). out may be a. */
void bal_lines_scale(const bal_lines *self, const bal_tile *tile, double *out,
                     const double *a, const double *s);
void bal_lines_over(const bal_lines *self, const bal_tile *tile, double *out,
                    const double *a, const double *s);

/* A sum for each vector. precise: lanes of double along a vector, in order
 * across. mergekit: the order of torch's CPU kernels; across, chains of four
 * levels in F32, four of them interleaved for the columns that are left when
 * they are taken 32 at once. */
typedef struct bal_sums {
    bal_lines lines;
    const bal_arith *arith;
    bal_fold fold;
    bool unrounded; /* do not round the sums to D */
    double *out;    /* one for each vector */
    bal_sum run;    /* the vector that is being summed */
    double *levels; /* across: 4 of each vector */
    double *chains; /* across, columns left over: 4 by 4 of each */
    uint64_t block; /* columns taken at once */
    unsigned power, chains_power; /* values of a level, as powers of 2 */
} bal_sums;

/* Sums go to out, as bal_sum_end has them. ENOMEM. */
BAL_CHECK int bal_sums_init(bal_sums *self, const bal_lines *lines,
                            const bal_arith *arith, bal_fold fold, double *out,
                            bal_error *err);
/* Elements [start, start + n), which follow those before. y as bal_sum_add. */
void bal_sums_add(bal_sums *self, uint64_t start, const double *x,
                  const double *y, size_t n);
/* Once all are added: out is complete. */
void bal_sums_end(bal_sums *self);
void bal_sums_done(bal_sums *self);

/* ---- every two inputs --------------------------------------------------- */

/* dots has one for each vector, of inputs i < j. */
typedef int bal_pair_fn(void *ctx, size_t i, size_t j, const double *dots,
                        bal_error *err);

/* The norms of all inputs and the dot products of every two, where there is a
 * base of its differences to them; pairs in order (0 1, 0 2, … 1 2, …). */
typedef struct bal_pairs {
    bal_lines lines;
    const bal_arith *arith;
    size_t count;
    double *norms;   /* out: lines.count for each input */
    bal_pair_fn *fn; /* norms are complete when it is called; NULL: norms are
                        all that is wanted */
    void *ctx;
} bal_pairs;
/* A walk, or a few where there are many inputs. The method's scratch_each is at
 * least 1. */
BAL_CHECK int bal_pairs_walk(const bal_pairs *self, bal_walk *walk,
                             bal_error *err);
/* How many pairs there are. */
uint64_t bal_pairs_count(size_t count);

/* -1 … 1; a NaN stays one. */
double bal_cosine(double x);

#endif
