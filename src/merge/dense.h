/* Small dense linear algebra in double: what the bits of a view depend on must
 * not depend on which LAPACK there is. Matrices are stored by columns, every
 * operation and every sum has its place in one order, and there is no FMA, so
 * that the result is the same on every machine. */
#ifndef MERGE_DENSE_H
#define MERGE_DENSE_H

#include <stddef.h>

double bal_dot(const double *x, const double *y, size_t n);

/* Householder: x (m x n) becomes min(m, n) reflectors, below the diagonal and
 * 1 on it, and R on the diagonal and above. tau: min(m, n). */
void bal_qr(double *x, double *tau, size_t m, size_t n);
/* y (m x k) = Q y, of `count` reflectors. */
void bal_qr_times(const double *x, const double *tau, size_t m, size_t count,
                  double *y, size_t k);

/* One-sided Jacobi: g (m x n) becomes g V, whose columns are orthogonal and
 * have the singular values as their norms, in no order; v (n x n) becomes V.
 * Columns that are nothing but rounding beside the others are left as they
 * are. squares: room for n. */
void bal_jacobi(double *g, double *v, double *squares, size_t m, size_t n);

#endif
