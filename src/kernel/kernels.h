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

typedef enum bal_op { BAL_OP_ADD, BAL_OP_SUB, BAL_OP_MUL, BAL_OP_DIV } bal_op;

/* Columns [at, at + n) of count rows. */
typedef struct bal_columns {
    size_t count, at, n;
} bal_columns;

/* Magnitudes as integers, in their order; a NaN is one more than infinity. Bins
 * of them: 0, then one for each exponent of F32 (the tiny ones too) and 7 bits
 * of fraction. */
#define BAL_KEY_INF  ((uint64_t)0x7ff << 52)
#define BAL_KEY_NAN  (BAL_KEY_INF + 1)
#define BAL_KEY_TINY ((uint64_t)(1023 - 149) << 52) /* 2^-149, F32's least */
#define BAL_KEY_HUGE                                                           \
    ((uint64_t)(1023 + 128) << 52) /* 2^128, above its most                    \
                                    */
enum { BAL_KEY_SHIFT = 45, BAL_BIN_FIRST = 2 };
/* What `below_limit` finds: of the elements that count, how many there are, and
 * the least and the greatest as integers in the order of floats: a negative
 * float with all bits but the sign turned round. Begin with INT32_MAX,
 * INT32_MIN. */
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
    /* y[i] += b[k] * a[k * n + i] for each of count k, in their order, products
     * and sums in double. */
    void (*terms)(double *y, const double *b, const double *a, size_t count,
                  size_t n);
    /* x *= by, but what is 0 then is -0.0: added to anything, it leaves all its
     * bits. */
    void (*scale_or_keep)(double *x, double by, size_t n);
    /* True if every |x| < limit; a NaN is not. */
    bool (*all_below)(const double *x, double limit, size_t n);
    /* Doubles to the nearest F32 and from there to the dtype, in place; rows
     * BF16 F16 F32. NaNs as above. */
    void (*round[BAL_DTYPES])(double *x, size_t n);

    /* Bit patterns of width 1, 2, 4, 8 bytes as unsigned integers, wrapping:
     * index 0 … 3 is log2(width). */
    void (*sub_bits[4])(void *out, const void *a, const void *b, size_t n);
    void (*add_bits[4])(void *out, const void *a, const void *b, size_t n);
    bool (*zero)(const void *data, size_t len); /* every byte is 0 */

    /* Of values of one dtype, rows BF16 F16 F32 F64. squares adds x^2 to 16
     * lanes: norm2 of compare, bit for bit, where all that is compared is
     * finite; else some lane is not finite. n is a multiple of 16, but for the
     * last of several calls. */
    void (*compare[BAL_DTYPES])(bal_compare *sums, const void *a, const void *b,
                                size_t n);
    void (*squares[BAL_DTYPES])(double *lanes, const void *x, size_t n);

    /* ---- of merges ------------------------------------------------------ */

    /* out = a op b, or a op s, rounded to F32 and from there to the dtype; rows
     * BF16 F16 F32 F64 (which is not rounded). NaNs as above. out may be a or
     * b. */
    void (*op[BAL_DTYPES])(bal_op op, double *out, const double *a,
                           const double *b, size_t n);
    void (*number[BAL_DTYPES])(bal_op op, double *out, const double *a,
                               double s, size_t n);
    /* out[k] = 0 + the columns of one row and more, in order, each sum rounded
     * to F32 and the last to the dtype. out may be what is read. */
    void (*rows[BAL_DTYPES])(double *out, const double *const *rows,
                             const bal_columns *which);
    /* sum = fmaf(weight, x, sum), all of them F32 in doubles. */
    void (*fma_f32)(double *sum, double weight, const double *x, size_t n);
    /* An x agrees with a sum >= 0 if it is > 0, with another if it is < 0.
     * weights: weight where it does, else 0; elect: values times 1 or 0. */
    void (*elect)(double *values, double *weights, const double *sum,
                  double weight, size_t n);
    void (*agree)(double *weights, const double *x, const double *sum,
                  double weight, size_t n);
    /* 1 for an x of |x| <= least * sizes. */
    void (*divisors)(double *x, const double *sizes, double least, size_t n);
    void (*at_least)(double *x, double floor, size_t n);
    /* A step of Welford's: the seen-th x. */
    void (*spread)(double *mean, double *squares, const double *x, double seen,
                   size_t n);
    void (*sizes)(double *out, const double *x, size_t n);       /* |x| */
    void (*add_sizes)(double *sizes, const double *x, size_t n); /* += |x| */

    /* Element i to lane i mod 16, 32, 8; n a multiple of it. lanes_f32,
     * squares_f32: of F32 values in F32, squares_f32 their squares. halves: n a
     * multiple of 64, elements k and k + 8 of each 16 are added first. */
    void (*lanes16)(double *lanes, const double *x, size_t n);
    void (*lanes_f32)(double *lanes, const double *x, size_t n);
    void (*lanes_halves)(double *lanes, const double *x, size_t n);
    void (*squares_f32)(double *lanes, const double *x, size_t n);

    /* 1 where the key of x is low … high, else 0. */
    void (*keep)(double *mask, const double *x, uint64_t low, uint64_t high,
                 size_t n);
    /* Bins of keys of TINY … HUGE - 1 and of 0, and all bits of the keys
     * together; false if there is another key. */
    bool (*bins)(uint32_t *bin, uint64_t *bits, const double *x, size_t n);
    /* Which of the x have a key low … high, in order; gives their number.
     * places has room for n + 1. */
    size_t (*within)(uint32_t *places, const double *x, uint64_t low,
                     uint64_t high, size_t n);

    /* Of the bits of |x|: the least that is not 0 (2^63 - 1: none is), the
     * greatest, all together; and, as n uint32_t at out, 0 for 0, else 1 more
     * than what the bits are above least, shifted. */
    void (*extent)(uint64_t *least, uint64_t *most, uint64_t *bits,
                   const double *x, size_t n);
    void (*digits)(void *out, const double *x, uint64_t least, unsigned shift,
                   size_t n);

    /* Philox4x32-10: the words of counters first … first + 63, of which stream
     * is the upper half; and the upper 24 bits of words as numbers in [0, 1).
     */
    void (*philox)(uint32_t out[256], const uint32_t key[2],
                   const uint32_t stream[2], uint64_t first);
    void (*upper24)(float *out, const uint32_t *words, size_t n);
    /* MT19937: the next block of numbers, and numbers as given out. */
    void (*twist)(uint32_t words[624]);
    void (*temper)(uint32_t *out, const uint32_t *in, size_t n);
    /* 1 where what was drawn is below a chance, else 0. torch: the lower 24
     * bits of what was drawn. */
    void (*below)(double *chances, const float *drawn, size_t n);
    void (*below_torch)(double *chances, const uint32_t *drawn, size_t n);
    /* ---- of .wdelta files. A magnitude is a float's bits but for the sign.
     * tally counts by the upper 16 of its 31 bits, in 65536 bins; below looks
     * at magnitudes less than limit, beyond at the others; pick writes the
     * places of those of `least` and more, and gives how many there are (`to`
     * has room for one more than n). */
    void (*tally)(uint64_t *bins, const float *x, size_t n);
    void (*below_limit)(bal_below *sums, const float *x, size_t n,
                        uint32_t limit);
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
    void (*spread_signs)(float *to, const uint8_t *bits, size_t groups);
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
