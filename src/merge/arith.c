/* Every operation is one loop of the kernel, rounding included. */
#include "merge/arith.h"

#include <math.h>

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

static bal_dtype rounds_to(const bal_arith *self)
{
    return rounds(self) ? self->work : BAL_F64;
}

static void apply(const bal_arith *self, bal_op op, double *out,
                  const double *a, const double *b, size_t n)
{
    bal_kernels_use()->op[rounds_to(self)](op, out, a, b, n);
}

static void apply_number(const bal_arith *self, bal_op op, double *out,
                         const double *a, double s, size_t n)
{
    bal_kernels_use()->number[rounds_to(self)](op, out, a, s, n);
}

void bal_op_add(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, BAL_OP_ADD, out, a, b, n);
}

void bal_op_sub(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, BAL_OP_SUB, out, a, b, n);
}

void bal_op_mul(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, BAL_OP_MUL, out, a, b, n);
}

void bal_op_div(const bal_arith *self, double *out, const double *a,
                const double *b, size_t n)
{
    apply(self, BAL_OP_DIV, out, a, b, n);
}

void bal_op_scale(const bal_arith *self, double *out, const double *a, double s,
                  size_t n)
{
    apply_number(self, BAL_OP_MUL, out, a, bal_arith_factor(self, s), n);
}

void bal_op_over(const bal_arith *self, double *out, const double *a, double s,
                 size_t n)
{
    apply_number(self, BAL_OP_DIV, out, a, bal_arith_factor(self, s), n);
}

void bal_op_plus(const bal_arith *self, double *out, const double *a, double s,
                 size_t n)
{
    apply_number(self, BAL_OP_ADD, out, a, bal_arith_term(self, s), n);
}
