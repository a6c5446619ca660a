/* QR by Householder reflectors, SVD by one-sided Jacobi: of the ways there are
 * these need the fewest decisions, and both are backward stable. Textbook:
 * Golub, Van Loan, Matrix Computations, 5.1, 5.2, 8.6. */
#include "merge/dense.h"

#include <math.h>
#include <string.h>

#include "kernel/kernels.h"

enum { LANES = 16, SWEEPS_MOST = 60 };

/* Of two columns' norms: cosines below it are right angles. */
static const double right_angle = 0x1p-52;
/* Of all columns' norm: what is less is rounding. */
static const double rounding = 0x1p-50;

static double fold(const double *lanes)
{
    double sums[LANES];

    memcpy(sums, lanes, sizeof(sums));
    for (size_t step = LANES / 2; step; step /= 2) {
        for (size_t i = 0; i < step; i++)
            sums[i] += sums[i + step];
    }
    return sums[0];
}

double bal_dot(const double *x, const double *y, size_t n)
{
    double lanes[LANES] = { 0 };
    size_t at = 0;

    for (; at + LANES <= n; at += LANES) {
        for (size_t i = 0; i < LANES; i++)
            lanes[i] += x[at + i] * y[at + i];
    }
    for (size_t i = 0; at + i < n; i++)
        lanes[i] += x[at + i] * y[at + i];
    return fold(lanes);
}

/* ---- QR ----------------------------------------------------------------- */

/* The reflector that turns x into (its norm, 0, 0, …), which takes the place of
 * x's head; gives tau, 0 where there is nothing to turn. */
static double reflector(double *x, size_t n)
{
    double rest = bal_dot(x + 1, x + 1, n - 1);
    double head = x[0];

    if (rest == 0)
        return 0;
    double norm = sqrt(head * head + rest);
    double turned = head > 0 ? -norm : norm;
    bal_kernels_use()->scale(x + 1, 1 / (head - turned), n - 1);
    x[0] = turned;
    return (turned - head) / turned;
}

/* y = (I - tau v v') y, where v is 1 and then tail. */
static void reflect(double *y, const double *tail, double tau, size_t n)
{
    double by = tau * (y[0] + bal_dot(tail, y + 1, n - 1));

    y[0] -= by;
    bal_kernels_use()->axpy64(y + 1, -by, tail, n - 1);
}

void bal_qr(double *x, double *tau, size_t m, size_t n)
{
    for (size_t k = 0; k < n && k < m; k++) {
        double *column = x + k * m + k;

        tau[k] = reflector(column, m - k);
        for (size_t j = k + 1; j < n && tau[k] != 0; j++)
            reflect(x + j * m + k, column + 1, tau[k], m - k);
    }
}

void bal_qr_times(const double *x, const double *tau, size_t m, size_t count,
                  double *y, size_t k)
{
    for (size_t i = count; i--;) {
        for (size_t j = 0; j < k && tau[i] != 0; j++)
            reflect(y + j * m + i, x + i * m + i + 1, tau[i], m - i);
    }
}

/* ---- Jacobi ------------------------------------------------------------- */

static void rotate(double *restrict x, double *restrict y, double c, double s,
                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double left = x[i];
        double right = y[i];
        x[i] = c * left - s * right;
        y[i] = s * left + c * right;
    }
}

typedef struct jacobi {
    double *g, *v, *squares;
    size_t m, n;
    double least; /* a square that is rounding */
} jacobi;

/* Make two columns orthogonal; false: they were. */
static bool turn(const jacobi *self, size_t p, size_t q)
{
    double *x = self->g + p * self->m;
    double *y = self->g + q * self->m;
    double *squares = self->squares;

    if (squares[p] <= self->least || squares[q] <= self->least)
        return false;
    double both = bal_dot(x, y, self->m);
    if (fabs(both) <= right_angle * sqrt(squares[p]) * sqrt(squares[q]))
        return false;
    double zeta = (squares[q] - squares[p]) / (2 * both);
    double size = fabs(zeta) + sqrt(1 + zeta * zeta);
    double t = zeta < 0 ? -1 / size : 1 / size;
    double c = 1 / sqrt(1 + t * t);

    rotate(x, y, c, c * t, self->m);
    rotate(self->v + p * self->n, self->v + q * self->n, c, c * t, self->n);
    squares[p] -= t * both;
    squares[q] += t * both;
    return true;
}

/* Squares that were carried along are taken anew, before rounding adds up. */
static void measure(jacobi *self)
{
    double all = 0;

    for (size_t i = 0; i < self->n; i++) {
        const double *x = self->g + i * self->m;
        self->squares[i] = bal_dot(x, x, self->m);
        all += self->squares[i];
    }
    self->least = all * rounding * rounding;
}

void bal_jacobi(double *g, double *v, double *squares, size_t m, size_t n)
{
    jacobi self = { g, v, squares, m, n, 0 };
    bool turned = true;

    memset(v, 0, n * n * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[i * n + i] = 1;
    for (int sweep = 0; sweep < SWEEPS_MOST && turned; sweep++) {
        turned = false;
        measure(&self);
        for (size_t p = 0; p + 1 < n; p++) {
            for (size_t q = p + 1; q < n; q++)
                turned = turn(&self, p, q) || turned;
        }
    }
    measure(&self);
}
