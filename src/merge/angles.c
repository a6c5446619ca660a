/* The cosines of the principal angles are the singular values of Q1' Q2, of
 * orthonormal bases. */
#include "merge/angles.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/dense.h"

/* Of the largest singular value; factors in F32 have no smaller ones of their
 * own. */
static const double least = 0x1p-20;

typedef struct basis {
    const double *columns;
    size_t length, count;
} basis;

/* Orthonormal columns on both sides, of as many directions as count. */
static int bases_of(bal_lowrank *out, const bal_spectrum *spectrum,
                    bal_error *err)
{
    size_t rank = 0;

    while (rank < spectrum->count &&
           spectrum->sigma[rank] > least * spectrum->sigma[0])
        rank++;
    int rc = bal_spectrum_cut(out, spectrum, rank, err);
    for (size_t i = 0; i < rank && !rc; i++) {
        double by = 1 / sqrt(spectrum->sigma[i]);
        bal_kernels_use()->scale(out->b + i * out->m, by, out->m);
        bal_kernels_use()->scale(out->a + i * out->n, by, out->n);
    }
    return rc;
}

static bal_angles sum_up(const double *squares, size_t count)
{
    bal_angles out = { 0 };

    for (size_t i = 0; i < count; i++) {
        double square = squares[i] < 1 ? squares[i] : 1;
        double angle = acos(sqrt(square)) * (180 / 3.14159265358979323846);
        out.overlap += square / (double)count;
        out.largest = angle > out.largest ? angle : out.largest;
    }
    return out;
}

static int angles(bal_angles *out, const basis *one, const basis *two,
                  bal_error *err)
{
    bool turned = one->count < two->count;
    const basis *tall = turned ? two : one;
    const basis *other = turned ? one : two;
    size_t m = tall->count;
    size_t n = other->count;

    *out = (bal_angles){ (double)NAN, (double)NAN };
    if (!n)
        return 0;
    double *g = calloc(m * n, sizeof(*g));
    double *v = calloc(n * n, sizeof(*v));
    double *squares = calloc(n, sizeof(*squares));
    bool there = g && v && squares;
    if (there) {
        for (size_t k = 0; k < n; k++) {
            for (size_t i = 0; i < m; i++)
                g[k * m + i] =
                    bal_dot(tall->columns + i * tall->length,
                            other->columns + k * other->length, tall->length);
        }
        bal_jacobi(g, v, squares, m, n);
        *out = sum_up(squares, n);
    }
    free(g);
    free(v);
    free(squares);
    return there ? 0 : bal_fail_memory(err, "comparing adapters");
}

int bal_angles_between(bal_angles *columns, bal_angles *rows,
                       const bal_spectrum *one, const bal_spectrum *two,
                       bal_error *err)
{
    BAL_LOCAL(bal_lowrank) first = { 0 };
    BAL_LOCAL(bal_lowrank) second = { 0 };
    int rc = bases_of(&first, one, err);
    if (!rc)
        rc = bases_of(&second, two, err);
    if (rc)
        return rc;

    const basis b[] = { { first.b, first.m, first.r },
                        { second.b, second.m, second.r } };
    const basis a[] = { { first.a, first.n, first.r },
                        { second.a, second.n, second.r } };
    rc = angles(columns, &b[0], &b[1], err);
    return rc ? rc : angles(rows, &a[0], &a[1], err);
}
