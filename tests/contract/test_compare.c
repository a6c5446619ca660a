/* Sums over pairs: the same bits from every table and every compiler. */
#include <math.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/strange.h"

enum { MANY = 1 << 16 };

static void every_table_compares_as_base_does(void)
{
    static double a[MANY], b[MANY];
    const bal_kernels *base = bal_kernels_at(0);
    uint64_t state = 42;

    strange_fill(a, sizeof(a), BAL_F64, &state);
    memcpy(b, a, sizeof(a));
    for (size_t i = 0; i < MANY; i += 3)
        b[i] = (double)i * 1e-3;
    for (size_t i = 0; i < 40 * bal_kernels_count(); i++) {
        const bal_kernels *other = bal_kernels_at(i / 40);
        size_t n = i % 40 ? i % 40 : MANY;
        bal_compare want = { 0 };
        bal_compare got = { 0 };
        check_row(other->isa);
        base->compare[BAL_F64](&want, a, b, n);
        base->compare[BAL_F64](&want, b, a, n / 2);
        other->compare[BAL_F64](&got, a, b, n);
        other->compare[BAL_F64](&got, b, a, n / 2);
        CHECK(!memcmp(&want, &got, sizeof(got)));
    }
}

static const bal_dtype dtypes[] = { BAL_BF16, BAL_F16, BAL_F32, BAL_F64 };

/* Strange bits are infinities and NaNs too, small ones are numbers only. */
static void every_dtype_is_compared_as_its_doubles_are(void)
{
    static uint8_t a[8 * MANY], b[8 * MANY];
    static double wide[2][MANY];
    uint64_t state = 4;

    for (size_t i = 0; i < 8 * bal_kernels_count(); i++) {
        const bal_kernels *table = bal_kernels_at(i / 8);
        bal_dtype dtype = dtypes[i % 4];
        size_t width = bal_dtype_bits(dtype) / 8;
        size_t n = MANY - 7;
        bal_compare want = { 0 };
        bal_compare got = { 0 };
        strange_fill(a, sizeof(a), dtype, &state);
        strange_fill(b, sizeof(b), dtype, &state);
        for (size_t k = 0; i % 8 < 4 && k < MANY; k++) {
            a[k * width + width - 1] &= 0x3f;
            b[k * width + width - 1] &= 0xbf;
        }
        check_row(table->isa);
        table->to_f64[dtype](wide[0], a, n);
        table->to_f64[dtype](wide[1], b, n);
        bal_kernels_at(0)->compare[BAL_F64](&want, wide[0], wide[1], n);
        table->compare[dtype](&got, a, b, n);
        CHECK(!memcmp(&want, &got, sizeof(got)));
    }
}

static void squares_are_the_norms_of_comparing(void)
{
    static uint8_t a[8 * MANY];
    uint64_t state = 5;

    for (size_t i = 0; i < 4 * bal_kernels_count(); i++) {
        const bal_kernels *table = bal_kernels_at(i / 4);
        bal_dtype dtype = dtypes[i % 4];
        size_t width = bal_dtype_bits(dtype) / 8;
        bal_compare want = { 0 };
        double lanes[16] = { 0 };
        size_t part = 16 * 100;
        strange_fill(a, sizeof(a), dtype, &state);
        for (size_t k = 0; k < MANY; k++)
            a[k * width + width - 1] &= 0x3f;
        check_row(table->isa);
        bal_kernels_at(0)->compare[dtype](&want, a, a, MANY - 3);
        table->squares[dtype](lanes, a, part);
        table->squares[dtype](lanes, a + part * width, MANY - 3 - part);
        CHECK(!want.wrong && !memcmp(lanes, want.norm2, sizeof(lanes)));
        memset(a + 100 * width, 0xff, width);
        memset(lanes, 0, sizeof(lanes));
        table->squares[dtype](lanes, a, MANY);
        CHECK(isnan(lanes[100 % 16]));
    }
}

static void comparing_sums_what_is_finite(void)
{
    static const double inf = (double)INFINITY;
    static const double nan = (double)NAN;
    static const double a[] = { 1, 2, inf, nan, 3, nan, 0, -inf, 1e308 };
    static const double b[] = { 1, 4, inf, nan, nan, 0, -0.0, inf, -1e308 };
    bal_compare sums = { 0 };
    bal_compared fold;

    bal_kernels_use()->compare[BAL_F64](&sums, a, b, 9);
    bal_compare_fold(&fold, &sums);
    CHECK(fold.diff2 == 4 && fold.norm2 == 5 && fold.max_abs == 2);
    CHECK(fold.wrong == 6);
    CHECK(fold.unequal == 5);
}

static void sums_are_near_those_of_long_doubles(void)
{
    static double a[MANY], b[MANY];
    bal_compare sums = { 0 };
    bal_compared fold;
    long double diff2 = 0;
    long double norm2 = 0;
    uint64_t state = 7;

    for (size_t i = 0; i < MANY; i++) {
        a[i] = (double)(int64_t)strange_bits(&state) * 1e-19;
        b[i] = a[i] + (double)(int64_t)strange_bits(&state) * 1e-22;
        diff2 += (long double)(b[i] - a[i]) * (long double)(b[i] - a[i]);
        norm2 += (long double)a[i] * (long double)a[i];
    }
    bal_kernels_use()->compare[BAL_F64](&sums, a, b, MANY);
    bal_compare_fold(&fold, &sums);
    CHECK(fabsl((long double)fold.diff2 - diff2) < 1e-13L * diff2);
    CHECK(fabsl((long double)fold.norm2 - norm2) < 1e-13L * norm2);
}

/* Computed by Python, lane by lane: a compiler that adds in another order, or
 * fuses, gives other bits. */
static void sums_are_those_of_every_compiler(void)
{
    static double a[MANY], b[MANY];
    bal_compare sums = { 0 };
    bal_compared fold;
    uint64_t state = 11;

    for (size_t i = 0; i < MANY; i++) {
        a[i] = (double)(int64_t)strange_bits(&state) * 0x1p-63;
        b[i] = (double)(int64_t)strange_bits(&state) * 0x1p-63;
    }
    bal_kernels_use()->compare[BAL_F64](&sums, a, b, MANY);
    bal_compare_fold(&fold, &sums);
    CHECK(fold.diff2 == 0x1.538fc000eaa62p+15 &&
          fold.norm2 == 0x1.53716f520fb20p+14);
}

static const check_test tests[] = {
    { TEST(every_table_compares_as_base_does) },
    { TEST(every_dtype_is_compared_as_its_doubles_are) },
    { TEST(squares_are_the_norms_of_comparing) },
    { TEST(comparing_sums_what_is_finite) },
    { TEST(sums_are_near_those_of_long_doubles) },
    { TEST(sums_are_those_of_every_compiler) },
};

CHECK_MAIN(tests)
