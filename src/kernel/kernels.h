/* Loops over floats, once in kernels.inc and compiled for several instruction
 * sets: every table gives the same bits (no FMA, fixed lanes, fixed order of
 * sums, NaN results canonical), so what is computed does not depend on where.
 * Rounding is to nearest, ties to even. Widening is exact. Narrowing a NaN
 * keeps its sign and the top bits of its payload, and keeps it a NaN. */
#ifndef KERNEL_KERNELS_H
#define KERNEL_KERNELS_H

#include "kernel/dtype.h"

/* Running sums over 16 lanes; folded by bal_compare_fold in a fixed order. */
typedef struct bal_compare {
    double diff2[16];   /* (b - a)^2 */
    double norm2[16];   /* a^2 */
    double max_abs[16]; /* |b - a| */
    uint64_t wrong;     /* pairs whose difference is not finite */
    uint64_t unequal;   /* pairs with b != a as values, or a NaN on one side */
} bal_compare;

typedef struct bal_kernels {
    const char *isa; /* base v3 v4 */

    /* Widen n elements of dtype BF16 F16 F32 F64 to f32 (F64 is rounded) or
     * f64; narrow from them with one rounding. Rows by dtype; NULL for the
     * others. from and to may be unaligned, not overlapping. */
    void (*to_f32[BAL_DTYPES])(float *to, const void *from, size_t n);
    void (*to_f64[BAL_DTYPES])(double *to, const void *from, size_t n);
    void (*from_f32[BAL_DTYPES])(void *to, const float *from, size_t n);
    void (*from_f64[BAL_DTYPES])(void *to, const double *from, size_t n);

    /* out = a - b, a + b, a * b, a / b, one rounding; a NaN result is
     * 0x7fc00000 (0x7ff8000000000000), whatever NaNs went in. out may be a or
     * b. */
    void (*sub_f32)(float *out, const float *a, const float *b, size_t n);
    void (*add_f32)(float *out, const float *a, const float *b, size_t n);
    void (*sub_f64)(double *out, const double *a, const double *b, size_t n);
    void (*add_f64)(double *out, const double *a, const double *b, size_t n);
    void (*mul_f64)(double *out, const double *a, const double *b, size_t n);
    void (*div_f64)(double *out, const double *a, const double *b, size_t n);
    /* The same through memory once, for tensors of one dtype; rows BF16 F16
     * F32. diff: a - b as f32. sum: a + b, narrowed. regains: is b + (a - b),
     * narrowed, a bit for bit? Nothing overlaps. */
    void (*diff[BAL_DTYPES])(float *out, const void *a, const void *b,
                             size_t n);
    void (*sum[BAL_DTYPES])(void *out, const void *a, const float *b, size_t n);
    bool (*regains[BAL_DTYPES])(const void *a, const void *b, size_t n);
    /* y += a * x, product and sum in double. */
    void (*axpy)(double *y, double a, const float *x, size_t n);
    void (*axpy64)(double *y, double a, const double *x, size_t n);
    void (*scale)(double *y, double a, size_t n);
    /* Doubles to the nearest F32 and from there to the dtype, in place; rows
     * BF16 F16 F32. NaNs as above. */
    void (*round[BAL_DTYPES])(double *x, size_t n);

    /* Bit patterns of width 1, 2, 4, 8 bytes as unsigned integers, wrapping:
     * index 0 … 3 is log2(width). */
    void (*sub_bits[4])(void *out, const void *a, const void *b, size_t n);
    void (*add_bits[4])(void *out, const void *a, const void *b, size_t n);
    bool (*zero)(const void *data, size_t len); /* every byte is 0 */

    void (*compare)(bal_compare *sums, const double *a, const double *b,
                    size_t n);
} bal_kernels;

/* The best table this CPU runs (BALLAST_ISA=base v3 v4 overrides), chosen
 * once. */
const bal_kernels *bal_kernels_use(void);
/* Every table this build has; those that the CPU cannot run are left out. */
size_t bal_kernels_count(void);
const bal_kernels *bal_kernels_at(size_t i);

typedef struct bal_compared {
    double diff2, norm2, max_abs;
    uint64_t wrong, unequal;
} bal_compared;
void bal_compare_fold(bal_compared *out, const bal_compare *sums);

#endif
