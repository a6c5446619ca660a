/* Sums: in mergekit's arithmetic to the bit what torch's are (sum_rows.h), in
 * precise near what exact addition gives; and cutting never shows. */
#include <math.h>
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"
#include "unit/sum_rows.h"

enum { MOST = 600011, COLUMNS = 128, INPUTS = 300 };
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const bal_arith precise = { 0 };

/* From -1 to 1, of 52 bits, some of them smaller by powers of 2. */
static double number(uint64_t which, uint64_t i)
{
    uint32_t hash = (uint32_t)((i + which * 1000003) * 2654435761u + 12345);

    hash ^= hash >> 15;
    hash *= 2246822519u;
    hash ^= hash >> 13;
    double high = (double)(hash >> 8) - 0x1p23;
    double low = (double)(hash * 3266489917u >> 4) * 0x1p-28;
    return ldexp(high + low, -23 - (int)(hash & 7));
}

static void numbers(double *out, const bal_arith *arith, uint64_t which,
                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = number(which, i);
    bal_arith_round(arith, out, n);
}

/* In pieces of 1, 2, … 700 elements. */
static void fill(bal_sum *sum, const double *x, const double *y, size_t n)
{
    size_t piece = 1;

    for (size_t at = 0; at < n;) {
        size_t count = piece < n - at ? piece : n - at;
        bal_sum_add(sum, x + at, y + at, count);
        at += count;
        piece = piece % 700 + 1;
    }
}

static bool same(double a, double b)
{
    return !memcmp(&a, &b, sizeof(a));
}

static double x[MOST], y[MOST];

static void runs_are_summed_in_the_order_of_torch(void)
{
    static const bal_fold folds[] = { BAL_FOLD_SUM, BAL_FOLD_ABS, BAL_FOLD_DOT,
                                      BAL_FOLD_NORM };

    for (size_t i = 0; i < COUNT(run_rows); i++) {
        bal_arith arith = { true, run_rows[i].dtype };
        size_t n = run_rows[i].n;
        const double want[] = { run_rows[i].sum, run_rows[i].abs,
                                run_rows[i].dot, run_rows[i].norm };
        check_row(bal_dtype_name(arith.work));
        numbers(x, &arith, 0, n);
        numbers(y, &arith, 1, n);
        for (size_t k = 0; k < COUNT(folds); k++) {
            bal_sum whole;
            bal_sum cut;
            bal_sum_init(&whole, &arith, folds[k], n);
            bal_sum_add(&whole, x, y, n);
            CHECK(same(bal_sum_end(&whole), want[k]));
            bal_sum_init(&cut, &arith, folds[k], n);
            fill(&cut, x, y, n);
            CHECK(same(bal_sum_end(&cut), want[k]));
        }
    }
}

static uint64_t digest(const double *values, size_t n)
{
    const unsigned char *bytes = (const void *)values;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < n * sizeof(*values); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static const double *const *inputs_of(const bal_arith *arith, size_t n,
                                      size_t skip)
{
    static double rows[INPUTS][COLUMNS];
    static const double *at[INPUTS];

    for (size_t i = 0; i < INPUTS; i++) {
        numbers(rows[i], arith, 2 + i, n);
        at[i] = rows[i] + skip;
    }
    return at;
}

static void columns_are_summed_in_the_order_of_torch(void)
{
    double sums[COLUMNS];

    for (size_t i = 0; i < COUNT(column_rows); i++) {
        bal_arith arith = { true, column_rows[i].dtype };
        size_t n = column_rows[i].n;
        size_t count = column_rows[i].count;
        check_row(bal_dtype_name(arith.work));
        bal_range all = { 0, n, n };
        bal_op_sum(&arith, sums, inputs_of(&arith, n, 0), count, &all);
        CHECK(digest(sums, n) == column_rows[i].want);
        const double *const *in = inputs_of(&arith, n, 0);
        memcpy(sums, in[1], n * sizeof(*sums));
        const double *rows[INPUTS] = { in[0], sums };
        for (size_t k = 2; k < count; k++)
            rows[k] = in[k];
        bal_op_sum(&arith, sums, rows, count, &all);
        CHECK(digest(sums, n) == column_rows[i].want);
        for (size_t k = 0; k < n; k++) {
            bal_range one = { k, n, 1 };
            double again;
            bal_op_sum(&arith, &again, inputs_of(&arith, n, k), count, &one);
            CHECK(same(again, sums[k]));
        }
    }
}

static void precise_columns_are_summed_in_double_in_order(void)
{
    double sums[COLUMNS];
    bal_range all = { 0, COLUMNS, COLUMNS };
    const double *const *in = inputs_of(&precise, COLUMNS, 0);

    bal_op_sum(&precise, sums, in, INPUTS, &all);
    for (size_t k = 0; k < COLUMNS; k++) {
        double want = 0;
        for (size_t i = 0; i < INPUTS; i++)
            want += in[i][k];
        CHECK(same(sums[k], want));
    }
}

/* long double has at least 11 bits more where it is more than double. */
static void precise_runs_are_near_the_exact_sum(void)
{
    long double want[4] = { 0 };

    numbers(x, &precise, 0, MOST);
    numbers(y, &precise, 1, MOST);
    for (size_t i = 0; i < MOST; i++) {
        want[BAL_FOLD_SUM] += (long double)x[i];
        want[BAL_FOLD_ABS] += fabsl((long double)x[i]);
        want[BAL_FOLD_DOT] += (long double)x[i] * (long double)y[i];
        want[BAL_FOLD_NORM] += (long double)x[i] * (long double)x[i];
    }
    want[BAL_FOLD_NORM] = sqrtl(want[BAL_FOLD_NORM]);
    for (size_t k = 0; k < 4; k++) {
        bal_sum whole;
        bal_sum cut;
        bal_sum_init(&whole, &precise, (bal_fold)k, MOST);
        bal_sum_add(&whole, x, y, MOST);
        bal_sum_init(&cut, &precise, (bal_fold)k, MOST);
        fill(&cut, x, y, MOST);
        CHECK(same(bal_sum_end(&whole), bal_sum_end(&cut)));
        CHECK(same(bal_sum_f32(&whole), bal_sum_end(&whole)));
        double got = bal_sum_end(&whole);
        CHECK(fabsl((long double)got - want[k]) <
              want[BAL_FOLD_ABS] * 0x1p-48L);
    }
}

static void a_sum_of_nothing_is_zero(void)
{
    for (size_t k = 0; k < 8; k++) {
        bal_arith arith = { k >= 4, BAL_BF16 };
        bal_sum sum;
        bal_sum_init(&sum, &arith, (bal_fold)(k % 4), 0);
        CHECK(same(bal_sum_end(&sum), 0));
    }
}

static void a_nan_makes_the_sum_one_fixed_nan(void)
{
    for (size_t k = 0; k < 8; k++) {
        bal_arith arith = { k >= 4, BAL_F32 };
        double values[40] = { 1, -(double)NAN, (double)INFINITY };
        bal_sum sum;
        bal_sum_init(&sum, &arith, (bal_fold)(k % 4), 40);
        bal_sum_add(&sum, values, values, 40);
        CHECK(same(bal_sum_end(&sum), (double)NAN));
    }
}

static const check_test tests[] = {
    { TEST(runs_are_summed_in_the_order_of_torch) },
    { TEST(columns_are_summed_in_the_order_of_torch) },
    { TEST(precise_columns_are_summed_in_double_in_order) },
    { TEST(precise_runs_are_near_the_exact_sum) },
    { TEST(a_sum_of_nothing_is_zero) },
    { TEST(a_nan_makes_the_sum_one_fixed_nan) },
};

CHECK_MAIN(tests)
