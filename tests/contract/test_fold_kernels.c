/* The loops of folding: against plain ones, and every table against base. */
#include <math.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"

enum { TERMS = 5, MOST = 200 };

/* Numbers that do not add up exactly, so that another order shows. */
static void fill(double *to, size_t n, double seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = sin(seed + (double)i) * 3;
}

/* Bit by bit. */
static bool same(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t left;
        uint64_t right;

        memcpy(&left, a + i, sizeof(left));
        memcpy(&right, b + i, sizeof(right));
        if (left != right)
            return false;
    }
    return true;
}

static void add_plainly(double *y, const double *b, const double *a, size_t n)
{
    for (size_t i = 0; i < n * TERMS; i++)
        y[i / TERMS] += b[i % TERMS] * a[i % TERMS * n + i / TERMS];
}

static void terms_are_added_one_after_the_other(void)
{
    double a[TERMS * MOST];
    double b[TERMS];
    double want[MOST];
    double got[MOST];

    fill(b, TERMS, 0.5);
    for (size_t t = 0; t < bal_kernels_count(); t++) {
        const bal_kernels *kernels = bal_kernels_at(t);

        check_row(kernels->isa);
        for (size_t n = 0; n <= MOST; n += 1 + n / 7) {
            fill(a, TERMS * n, 1);
            fill(want, n, 2);
            memcpy(got, want, sizeof(got));
            add_plainly(want, b, a, n);
            kernels->terms(got, b, a, TERMS, n);
            CHECK(same(got, want, n));
        }
    }
}

static void a_sum_that_is_no_number_is_one_nan(void)
{
    static const double a[2] = { (double)INFINITY, (double)INFINITY };
    static const double b[2] = { 1, -1 };
    static const uint64_t nan = (uint64_t)0x7ff8 << 48;
    double want;

    memcpy(&want, &nan, sizeof(want));
    for (size_t t = 0; t < bal_kernels_count(); t++) {
        double got = 0;

        bal_kernels_at(t)->terms(&got, b, a, 2, 1);
        CHECK(same(&got, &want, 1));
    }
}

static void what_is_0_after_scaling_leaves_what_it_is_added_to(void)
{
    static const double values[] = { 0, -0.0, 2, -3, 0x1p-1074 };
    static const double weights[] = { 0, -0.0, 1.5, -0.0, -0.0 };
    static const double want[] = { 0, -0.0, 2.5, -1.5, -0.0 };

    for (size_t t = 0; t < bal_kernels_count(); t++) {
        double x[5];

        memcpy(x, values, sizeof(x));
        bal_kernels_at(t)->scale_or_keep(x, 0.5, 5);
        bal_kernels_at(t)->add_f64(x, x, weights, 5);
        CHECK(same(x, want, 5));
    }
}

static void one_that_is_not_below_is_found_anywhere(void)
{
    static const double others[] = { 4, -4, (double)INFINITY, -(double)INFINITY,
                                     (double)NAN };
    double x[37];

    for (size_t t = 0; t < bal_kernels_count(); t++) {
        const bal_kernels *kernels = bal_kernels_at(t);

        fill(x, 37, 1);
        CHECK(kernels->all_below(x, 4, 37) && kernels->all_below(x, 4, 0));
        for (size_t i = 0; i < 37; i++) {
            double was = x[i];

            x[i] = others[i % 5];
            CHECK(!kernels->all_below(x, 4, 37));
            x[i] = was;
        }
    }
}

static const check_test tests[] = {
    { TEST(terms_are_added_one_after_the_other) },
    { TEST(a_sum_that_is_no_number_is_one_nan) },
    { TEST(what_is_0_after_scaling_leaves_what_it_is_added_to) },
    { TEST(one_that_is_not_below_is_found_anywhere) },
};

CHECK_MAIN(tests)
