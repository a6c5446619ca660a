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

/* What `below` finds: of the elements that count, how many there are, and the
 * least and the greatest as integers in the order of floats: a negative float
 * with all bits but the sign turned round. Begin with INT32_MAX, INT32_MIN. */
typedef struct bal_below {
    int32_t low, high;
    uint64_t count;
} bal_below;

/* What `beyond` counts: magnitudes over a limit, and equal to it, of those the
 * negative ones. */
typedef struct bal_beyond {
    uint64_t over, same, minus;
} bal_beyond;

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

    /* ---- of .wdelta files. A magnitude is a float's bits but for the sign.
     * tally counts by the upper 16 of its 31 bits, in 65536 bins; below looks
     * at magnitudes less than limit, beyond at the others; pick writes the
     * places of those of `least` and more, and gives how many there are (`to`
     * has room for one more than n). */
    void (*tally)(uint64_t *bins, const float *x, size_t n);
    void (*below)(bal_below *sums, const float *x, size_t n, uint32_t limit);
    void (*beyond)(bal_beyond *sums, const float *x, size_t n, uint32_t limit);
    size_t (*pick)(uint32_t *to, const float *x, size_t n, uint32_t least);
    /* (x - low) / range * 15, rounded to the nearest of 0 … 15, ties to even;
     * pairs of such codes as bytes, the first in the upper half; and bytes as
     * two floats each out of a table of 256 pairs. */
    void (*codes4)(uint8_t *to, const float *x, size_t n, float low,
                   float range);
    void (*pack4)(uint8_t *to, const uint8_t *codes, size_t pairs);
    void (*unpack4)(float *to, const uint8_t *packed, size_t pairs,
                    const float *table);
    /* Bits, the first of 8 the highest: is x >= 0? And back: 1 or -1. */
    void (*signs)(uint8_t *to, const float *x, size_t groups);
    void (*spread)(float *to, const uint8_t *bits, size_t groups);
    /* The sum of n magnitudes, 8 <= n <= 128, in the order in which numpy
     * takes it. */
    float (*sum_block)(const float *x, size_t n);
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
