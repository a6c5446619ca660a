/* Every operation is one loop of the kernel and one of rounding, a piece at a
 * time, so that the second finds in cache what the first left. */
#include "merge/arith.h"

#include <math.h>

#include "core/arith.h"

enum { PIECE = 512 };

typedef void bal_binary(double *out, const double *a, const double *b,
                        size_t n);

/* Is there anything to round? In F64 and in precise there is not. */
static bool rounds(const bal_arith *self)
{
    return self->mergekit && self->work != BAL_F64;
}

void bal_arith_round(const bal_arith *self, double *x, size_t n)
{
    if (rounds(self))
        bal_kernels_use()->round[self->work](x, n);
}

double bal_arith_round1(const bal_arith *self, double x)
{
    bal_arith_round(self, &x, 1);
    return x;
}

double bal_arith_f32(const bal_arith *self, double x)
{
    return rounds(self) ? (double)(float)x : x;
}

double bal_arith_factor(const bal_arith *self, double s)
{
    return bal_arith_f32(self, s);
}

double bal_arith_term(const bal_arith *self, double s)
{
    return bal_arith_round1(self, s);
}

/* ---- element by element -------------------------------------------------- */

static void apply(const bal_arith *self, bal_binary *op, double *out,
                  const double *a, const double *b, size_t n)
{
    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = (size_t)bal_min(n - at, PIECE);
        op(out + at, a + at, b + at, count);
        bal_arith_round(self, out + at, count);
    }
}

static void apply_number(const bal_arith *self, bal_binary *op, double *out,
                         const double *a, double s, size_t n)
{
    double same[PIECE];

    for (size_t i = 0; i < PIECE && i < n; i++)
        same[i] = s;
    for (size_t at = 0; at < n; at += PIECE)
        apply(self, op, out + at, a + at, same, (size_t)bal_min(n - at, PIECE));
}

void bal_op_add(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, bal_kernels_use()->add_f64, out, a, b, n);
}

void bal_op_sub(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, bal_kernels_use()->sub_f64, out, a, b, n);
}

void bal_op_mul(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, bal_kernels_use()->mul_f64, out, a, b, n);
}

void bal_op_div(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, bal_kernels_use()->div_f64, out, a, b, n);
}

void bal_op_scale(const bal_arith *self, double *out, const double *a, double s,
                  size_t n)
{
    apply_number(self, bal_kernels_use()->mul_f64, out, a,
                 bal_arith_factor(self, s), n);
}

void bal_op_over(const bal_arith *self, double *out, const double *a, double s,
                 size_t n)
{
    apply_number(self, bal_kernels_use()->div_f64, out, a,
                 bal_arith_factor(self, s), n);
}

void bal_op_plus(const bal_arith *self, double *out, const double *a, double s,
                 size_t n)
{
    apply_number(self, bal_kernels_use()->add_f64, out, a,
                 bal_arith_term(self, s), n);
}
