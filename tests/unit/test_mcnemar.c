/* The exact test against whole numbers: the sums of binomial coefficients as
 * Python's integers, from 3000 pairs on the largest term by Stirling's series
 * with 60 digits. scipy.stats.binomtest agrees to the 13 digits that it has. */
#include <math.h>

#include "probe/compare.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void the_tail_is_right_to_twelve_digits(void)
{
    static const struct {
        uint64_t a, b;
        double p;
    } rows[] = {
        { 0, 1, 1.0 },
        { 0, 5, 0.0625 },
        { 1, 0, 1.0 },
        { 3, 3, 1.0 },
        { 2, 3, 1.0 },
        { 10, 25, 0.01667384780012071 },
        { 0, 16, 3.0517578125e-05 },
        { 5, 6, 1.0 },
        { 40, 80, 0.0003304000183913207 },
        { 499, 501, 0.9747749818216392 },
        { 450, 550, 0.0017305360849763176 },
        { 400, 600, 2.7284641560660184e-10 },
        { 0, 1000, 1.8665272370064378e-301 },
        { 15, 1100, 1.6221238479493583e-302 },
        { 16, 1040, 2.6821492901907073e-283 },
        { 100, 1000, 2.3274498138259826e-187 },
        { 600, 700, 0.0060157938610449525 },
        { 7000, 7400, 0.0008835717603852425 },
        { 20000, 20700, 0.0005304435788066994 },
        { 100000, 101000, 0.02586239243973432 },
        { 500000, 503000, 0.0027488282039780623 },
        { 499999990, 500000010, 0.9995206048496996 },
        { 499950000, 500050000, 0.0015655722610838075 },
        { 499900000, 500100000, 2.5401483597545663e-10 },
        { 499500000, 500500000, 1.7974815135757235e-219 },
        { 0, 1000000000, 0.0 },
        { 12, 100000, 0.0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[64];
        double p = bal_mcnemar(rows[i].a, rows[i].b);
        snprintf(name, sizeof(name), "%zu", i);
        check_row(name);
        CHECK(fabs(p - rows[i].p) <= 1e-12 * rows[i].p);
        double turned = bal_mcnemar(rows[i].b, rows[i].a);
        CHECK(!(turned < p) && !(turned > p));
    }
}

static void nothing_is_no_difference(void)
{
    CHECK(!(bal_mcnemar(0, 0) < 1));
    CHECK(!(bal_mcnemar(UINT64_MAX, UINT64_MAX) < 1));
}

static void counts_past_all_reason_come_back(void)
{
    CHECK(!(bal_mcnemar(0, UINT64_MAX) > 0));
    double near = bal_mcnemar((UINT64_C(1) << 62) - (UINT64_C(1) << 30),
                              (UINT64_C(1) << 62) + (UINT64_C(1) << 30));
    /* 2^30 off where the standard deviation is 2^30.5: erfc(1/2). */
    CHECK(fabs(near - 0.4795001221869535) < 1e-6);
}

static const check_test tests[] = {
    { TEST(the_tail_is_right_to_twelve_digits) },
    { TEST(nothing_is_no_difference) },
    { TEST(counts_past_all_reason_come_back) },
};

CHECK_MAIN(tests)
