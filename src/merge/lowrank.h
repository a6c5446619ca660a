/* Maps of low rank: M = b_1 a_1' + … + b_r a_r', of columns of m and of n. All
 * that is asked of M is computed of the columns: M itself, m x n, never is. */
#ifndef MERGE_LOWRANK_H
#define MERGE_LOWRANK_H

#include "core/own.h"
#include "model/peft.h"

typedef struct bal_lowrank {
    size_t m, n, r;
    double *b; /* r columns of m */
    double *a; /* r columns of n */
} bal_lowrank;

/* Columns of zeros. */
BAL_CHECK int bal_lowrank_init(bal_lowrank *out, size_t m, size_t n, size_t r,
                               bal_error *err);
void bal_lowrank_done(bal_lowrank *self);
/* Columns at, at + 1, … become those of factor times s B A, of an adapter's
 * module. EUNSUPPORTED: one is not finite. */
BAL_CHECK int bal_lowrank_read(bal_lowrank *self, size_t at, double factor,
                               bal_model *adapter, const bal_lora *lora,
                               bal_error *err);

/* M as U S V'. What is less than the rounding of the terms counts as 0, so that
 * terms which cancel leave exactly nothing. */
typedef struct bal_spectrum {
    bal_lowrank parts;    /* the columns' QR */
    double *tau[2];       /* of b, of a */
    double *u, *v;        /* of the core, U S and V by columns */
    double *sigma;        /* singular values, falling, count of them */
    size_t *order;        /* which columns of u and v they are of */
    size_t rows, columns; /* of u, of v */
    size_t count;
    bool swapped; /* the core was turned over: u is a's */
} bal_spectrum;

/* Takes the columns of `of`, which is empty then. EUNSUPPORTED: not finite. */
BAL_CHECK int bal_spectrum_init(bal_spectrum *out, bal_lowrank *of,
                                bal_error *err);
void bal_spectrum_done(bal_spectrum *self);
/* The least rank that keeps this share of the sum of squares. */
size_t bal_spectrum_rank(const bal_spectrum *self, double energy);
/* |M| in Frobenius' norm. */
double bal_spectrum_norm(const bal_spectrum *self);
/* The nearest map of that rank: b = U root(S), a = V root(S), in falling order;
 * zeros behind what M's own rank is. */
BAL_CHECK int bal_spectrum_cut(bal_lowrank *out, const bal_spectrum *self,
                               size_t rank, bal_error *err);

#endif
