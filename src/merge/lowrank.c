/* b = Q1 R1 and a = Q2 R2, so M = Q1 (R1 R2') Q2', and what is in the brackets
 * is small: its singular values are M's. */
#include "merge/lowrank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/dense.h"
#include "model/elements.h"

/* Of the sum of the terms' norms. A double has 2^-53, and errors of thousands
 * of operations add up like the root of their number. */
static const double rounding = 0x1p-44;

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "a map of low rank");
}

/* Zeroed. NULL: no memory, or more than can be counted. */
static double *room(size_t columns, size_t length)
{
    uint64_t count;

    if (!bal_mul(&count, columns, length) || count > SIZE_MAX / sizeof(double))
        return NULL;
    return calloc(count + 1, sizeof(double));
}

int bal_lowrank_init(bal_lowrank *out, size_t m, size_t n, size_t r,
                     bal_error *err)
{
    *out = (bal_lowrank){ m, n, r, room(r, m), room(r, n) };
    if (out->b && out->a)
        return 0;
    bal_lowrank_done(out);
    return no_memory(err);
}

void bal_lowrank_done(bal_lowrank *self)
{
    free(self->b);
    free(self->a);
    *self = (bal_lowrank){ 0 };
}

/* B is stored by rows. */
static int read_b(double *to, size_t m, bal_model *adapter,
                  const bal_lora *lora, bal_error *err)
{
    enum { PIECE = 64 * 1024 };
    size_t rank = (size_t)lora->rank;
    size_t most = bal_max(PIECE / rank, 1);
    double *rows = malloc(most * rank * sizeof(*rows));
    int rc = rows ? 0 : no_memory(err);

    for (size_t i = 0; i < m && !rc; i += most) {
        size_t n = bal_min(m - i, most);
        rc = bal_elements_read(rows, adapter, lora->b, i * rank, n * rank, err);
        for (size_t at = 0; at < n * rank && !rc; at++)
            to[at % rank * m + i + at / rank] = rows[at];
    }
    free(rows);
    return rc;
}

int bal_lowrank_read(bal_lowrank *self, size_t at, double factor,
                     bal_model *adapter, const bal_lora *lora, bal_error *err)
{
    size_t rank = (size_t)lora->rank;
    double *b = self->b + at * self->m;
    double *a = self->a + at * self->n;
    int rc = read_b(b, self->m, adapter, lora, err);

    if (!rc)
        rc = bal_elements_read(a, adapter, lora->a, 0, rank * self->n, err);
    if (rc)
        return rc;
    bal_kernels_use()->scale(b, factor * lora->scale, rank * self->m);
    return 0;
}

/* ---- the spectrum ------------------------------------------------------- */

void bal_spectrum_done(bal_spectrum *self)
{
    bal_lowrank_done(&self->parts);
    free(self->tau[0]);
    free(self->tau[1]);
    free(self->u);
    free(self->v);
    free(self->sigma);
    free(self->order);
    *self = (bal_spectrum){ 0 };
}

/* Make both columns of a term as long as each other, to within 2, by a power of
 * 2, which is exact: else a short one could drown in the rounding of a long one
 * that its partner makes up for. Gives the term's norm. */
static double balance(double *b, size_t m, double *a, size_t n)
{
    double left = sqrt(bal_dot(b, b, m));
    double right = sqrt(bal_dot(a, a, n));
    int e;
    int f;

    if (!isfinite(left) || !isfinite(right))
        return (double)NAN;
    if (left == 0 || right == 0) {
        memset(b, 0, m * sizeof(*b));
        memset(a, 0, n * sizeof(*a));
        return 0;
    }
    frexp(left, &e);
    frexp(right, &f);
    bal_kernels_use()->scale(b, ldexp(1, (f - e) / 2), m);
    bal_kernels_use()->scale(a, ldexp(1, -((f - e) / 2)), n);
    return left * right;
}

/* One side's R, of whose rows and columns there are min(length, r) and r. */
typedef struct side {
    const double *x;
    size_t length, rows;
} side;

/* g = R1 R2', by columns. */
static void multiply(double *g, const side *one, const side *two, size_t r)
{
    for (size_t k = 0; k < r; k++) {
        size_t n = bal_min(k + 1, one->rows);
        for (size_t j = 0; j <= k && j < two->rows; j++)
            bal_kernels_use()->axpy64(g + j * one->rows,
                                      two->x[k * two->length + j],
                                      one->x + k * one->length, n);
    }
}

/* Largest first; of equal ones the first. */
static void sort(bal_spectrum *self, const double *squares, double least)
{
    for (size_t i = 0; i < self->columns; i++) {
        double sigma = sqrt(squares[i]);
        size_t at = self->count;

        if (sigma <= least)
            continue;
        for (; at && self->sigma[at - 1] < sigma; at--) {
            self->sigma[at] = self->sigma[at - 1];
            self->order[at] = self->order[at - 1];
        }
        self->sigma[at] = sigma;
        self->order[at] = i;
        self->count++;
    }
}

static int decompose(bal_spectrum *self, double least, bal_error *err)
{
    const bal_lowrank *parts = &self->parts;
    const side b = { parts->b, parts->m, bal_min(parts->m, parts->r) };
    const side a = { parts->a, parts->n, bal_min(parts->n, parts->r) };

    self->swapped = b.rows < a.rows;
    const side *tall = self->swapped ? &a : &b;
    const side *other = self->swapped ? &b : &a;
    self->rows = tall->rows;
    self->columns = other->rows;
    double *squares = room(1, self->columns);
    self->u = room(self->columns, self->rows);
    self->v = room(self->columns, self->columns);
    self->sigma = room(1, self->columns);
    self->order = calloc(self->columns + 1, sizeof(*self->order));
    bool there = squares && self->u && self->v && self->sigma && self->order;
    if (there) {
        multiply(self->u, tall, other, parts->r);
        bal_jacobi(self->u, self->v, squares, self->rows, self->columns);
        sort(self, squares, least);
    }
    free(squares);
    return there ? 0 : no_memory(err);
}

int bal_spectrum_init(bal_spectrum *out, bal_lowrank *of, bal_error *err)
{
    BAL_LOCAL(bal_spectrum) self = { .parts = *of };
    bal_lowrank *parts = &self.parts;
    double terms = 0;

    *of = (bal_lowrank){ 0 };
    for (size_t k = 0; k < parts->r; k++)
        terms += balance(parts->b + k * parts->m, parts->m,
                         parts->a + k * parts->n, parts->n);
    if (!isfinite(terms))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a factor that is not finite has no nearest of lower "
                        "rank");
    self.tau[0] = room(1, parts->r);
    self.tau[1] = room(1, parts->r);
    if (!self.tau[0] || !self.tau[1])
        return no_memory(err);
    bal_qr(parts->b, self.tau[0], parts->m, parts->r);
    bal_qr(parts->a, self.tau[1], parts->n, parts->r);
    int rc = decompose(&self, terms * rounding, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_spectrum){ 0 };
    return 0;
}

/* The sum of squares of values from .. count, the least first. */
static double squares_from(const bal_spectrum *self, size_t from)
{
    double sum = 0;

    for (size_t i = self->count; i-- > from;)
        sum += self->sigma[i] * self->sigma[i];
    return sum;
}

size_t bal_spectrum_rank(const bal_spectrum *self, double energy)
{
    double all = squares_from(self, 0);
    double kept = 0;
    size_t rank = 0;

    while (rank < self->count && kept < energy * all) {
        kept += self->sigma[rank] * self->sigma[rank];
        rank++;
    }
    return rank;
}

double bal_spectrum_norm(const bal_spectrum *self)
{
    return sqrt(squares_from(self, 0));
}

/* Columns of Q times those of a side of the core, each times what `by` says. */
static void expand(double *to, const bal_spectrum *self, bool of_b, size_t rank,
                   const double *by)
{
    const bal_lowrank *parts = &self->parts;
    size_t length = of_b ? parts->m : parts->n;
    bool tall = of_b != self->swapped;
    const double *from = tall ? self->u : self->v;
    size_t rows = tall ? self->rows : self->columns;

    for (size_t i = 0; i < rank; i++) {
        double *column = to + i * length;
        memcpy(column, from + self->order[i] * rows, rows * sizeof(*column));
        bal_kernels_use()->scale(column, by[i], rows);
    }
    bal_qr_times(of_b ? parts->b : parts->a, self->tau[!of_b], length,
                 bal_min(length, parts->r), to, rank);
}

int bal_spectrum_cut(bal_lowrank *out, const bal_spectrum *self, size_t rank,
                     bal_error *err)
{
    size_t kept = bal_min(rank, self->count);
    double *up = room(1, kept);   /* U S to U root(S) */
    double *down = room(1, kept); /* V to V root(S) */
    int rc = up && down ? bal_lowrank_init(out, self->parts.m, self->parts.n,
                                           rank, err)
                        : no_memory(err);

    for (size_t i = 0; i < kept && !rc; i++) {
        down[i] = sqrt(self->sigma[i]);
        up[i] = 1 / down[i];
    }
    if (!rc) {
        expand(out->b, self, true, kept, self->swapped ? down : up);
        expand(out->a, self, false, kept, self->swapped ? up : down);
    }
    free(up);
    free(down);
    return rc;
}
