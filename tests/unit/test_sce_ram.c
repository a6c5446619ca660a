/* sce, ram, ramplus_tl. Numbers of the small cases are NumPy's, in float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/merge_case.h"

enum { SMALL = 12 };

static const double base[SMALL] = { 0.5, -1.25,  0.75, 2.0,  -0.125, 0.0,
                                    1.5, -0.625, 0.25, -2.5, 1.0,    -0.375 };
static const double x0[SMALL] = { 0.75, -1.75,  0.75, 2.125,  0.625, -0.0625,
                                  2.0,  -0.625, 0.0,  -2.125, 1.0,   -0.5 };
static const double x1[SMALL] = { 1.0, -1.0,  0.75, 1.75,  0.375, -0.125,
                                  2.0, -0.25, 0.25, -2.25, 0.5,   -0.5 };
static const double x2[SMALL] = {
    0.375, -1.5,   1.375, 2.0,    0.125, -0.3125,
    2.0,   -0.625, -0.25, -2.875, 1.0,   -0.3125
};

static const struct {
    const char *name;
    merge_case merge;
    double want[SMALL];
} rows[] = {
    { "sce of all elements",
      { .method = "sce", .inputs = { x0, x1, x2 } },
      { 0.8748206599713055, -1.6292592592592592, 1.375, 1.75,
        0.38062072336265884, -0.1634286412512219, 2.0, -0.25,
        -0.12074074074074076, -2.187410329985653, 0.5, -0.5 } },
    { "sce of half of what varies: 5 of 11",
      { .method = "sce",
        .settings = { { "select_topk", "0.5" } },
        .inputs = { x0, x1, x2 } },
      { 0.894927536231884, -1.6066176470588236, 1.375, 2.0, -0.125, 0.0, 1.5,
        -0.625, 0.25, -2.197463768115942, 0.5, -0.375 } },
    { "sce where elements 4 and 8 vary the same takes 4",
      { .method = "sce",
        .settings = { { "select_topk", "0.6" }, { "int8_mask", "true" } },
        .inputs = { x0, x1, x2 } },
      { 0.8657024793388429, -1.650462962962963, 1.375, 2.0, 0.4085365853658536,
        0.0, 1.5, -0.625, 0.25, -2.1828512396694215, 0.5, -0.375 } },
    { "sce of one element",
      { .method = "sce",
        .settings = { { "select_topk", "0.1" } },
        .inputs = { x0, x1, x2 } },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25,
        -2.1634615384615383, 1.0, -0.375 } },
    { "sce of less than one element is the base",
      { .method = "sce",
        .settings = { { "select_topk", "0.05" } },
        .inputs = { x0, x1, x2 } },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25, -2.5, 1.0,
        -0.375 } },
    { "sce of nothing is the base",
      { .method = "sce",
        .settings = { { "select_topk", "0" } },
        .inputs = { x0, x1, x2 } },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25, -2.5, 1.0,
        -0.375 } },
    { "sce of one input, which varies from nothing, is the base",
      { .method = "sce",
        .settings = { { "select_topk", "0.9" } },
        .inputs = { x1 } },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25, -2.5, 1.0,
        -0.375 } },
    { "ram",
      { .method = "ram", .inputs = { x0, x1, x2 } },
      { 0.7083333333333334, -1.4166666666666667, 1.375, 1.9375, 0.375,
        -0.16666666666666666, 2.0, -0.25, -0.125, -2.4166666666666665, 0.5,
        -0.4375 } },
    { "ram where changes of 0.25 do not count, and what is above does",
      { .method = "ram",
        .settings = { { "epsilon", "0.25" } },
        .inputs = { x0, x1, x2 } },
      { 1.0, -1.75, 1.375, 2.0, 0.5, -0.3125, 2.0, -0.25, -0.25, -2.5, 0.5,
        -0.375 } },
    { "ramplus_tl",
      { .method = "ramplus_tl", .inputs = { x0, x1, x2 } },
      { 0.7083333333333334, -1.4166666666666667, 1.3875, 1.9375, 0.375,
        -0.16666666666666669, 2.0, -0.2425, -0.125, -2.4166666666666665, 0.49,
        -0.4375 } },
    { "ramplus_tl of inputs that have little of their own",
      { .method = "ramplus_tl",
        .settings = { { "r", "0.25" }, { "alpha", "3" }, { "epsilon", "0" } },
        .inputs = { x0, x1, x2 } },
      { 0.7083333333333334, -1.4166666666666667, 1.84375, 1.9375, 0.375,
        -0.16666666666666669, 2.0, 0.03125, -0.125, -2.4166666666666665, 0.125,
        -0.4375 } },
    { "ramplus_tl of inputs that have much of their own",
      { .method = "ramplus_tl",
        .settings = { { "r", "0.25" },
                      { "alpha", "3" },
                      { "epsilon", "0.25" } },
        .inputs = { x0, x1, x2 } },
      { 1.0833333333333335, -2.125, 1.4791666666666667, 2.0, 0.5,
        -0.36458333333333337, 2.0, -0.1875, -0.33333333333333337, -2.5,
        0.41666666666666663, -0.375 } },
};

static void small_tensors_come_out_as_numpy_has_them(void)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        merge_case one = rows[r].merge;
        double got[SMALL];

        check_row(rows[r].name);
        one.dtype = BAL_F64;
        one.rank = 2;
        one.shape[0] = 3;
        one.shape[1] = 4;
        one.base = base;
        CHECK(merge_case_run(got, &one) == BAL_F64);
        CHECK(merge_case_near(got, rows[r].want, SMALL, 4e-16));
    }
}

/* Means of squares below 1e-6 are not told apart. */
static void small_differences_weigh_the_same_under_sce(void)
{
    static const double want[SMALL] = {
        9.1552734375e-05,  -9.1552734375e-05, 0.000152587890625,
        -6.103515625e-05,  0.0001220703125,   -4.0690104166666664e-05,
        0.0001220703125,   9.1552734375e-05,  -9.1552734375e-05,
        7.62939453125e-05, -0.0001220703125,  -3.0517578125e-05
    };
    static const double *const whole[] = { x0, x1, x2 };
    static const double zeros[SMALL];
    double small[3][SMALL];
    double got[SMALL];
    merge_case one = { .method = "sce",
                       .dtype = BAL_F64,
                       .rank = 1,
                       .shape = { SMALL },
                       .inputs = { small[0], small[1], small[2] },
                       .base = zeros };

    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < SMALL; k++)
            small[i][k] = ldexp(whole[i][k] - base[k], -12);
    }
    merge_case_run(got, &one);
    CHECK(merge_case_near(got, want, SMALL, 4e-16));
}

static void ramplus_tl_gives_f32_and_ram_the_dtype_that_goes_in(void)
{
    static const struct {
        const char *method;
        bool mergekit;
        bal_dtype want;
    } cases[] = {
        { "ram", true, BAL_BF16 },
        { "sce", true, BAL_BF16 },
        { "ramplus_tl", true, BAL_F32 },
        { "ramplus_tl", false, BAL_BF16 },
    };
    double got[SMALL];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        merge_case one = { .method = cases[i].method,
                           .mergekit = cases[i].mergekit,
                           .dtype = BAL_BF16,
                           .rank = 1,
                           .shape = { SMALL },
                           .inputs = { x0, x1 },
                           .base = base };
        check_row(cases[i].method);
        CHECK(merge_case_run(got, &one) == cases[i].want);
    }
}

/* ---- tensors of many tiles ---------------------------------------------- */

enum { LONG = 150001, INPUTS = 3 };

typedef struct ranked {
    double variance;
    size_t index;
} ranked;

static int larger_first(const void *a, const void *b)
{
    const ranked *x = a;
    const ranked *y = b;

    if (x->variance != y->variance)
        return x->variance > y->variance ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* The inputs are multiples of 2^-6 between -2 and 2, three of them: sums and
 * squares are exact, and many variances the same. */
static void select_plainly(bool *keep, double *const *x, double part)
{
    ranked *all = malloc(LONG * sizeof(*all));
    size_t varying = 0;

    CHECK(all != NULL);
    for (size_t k = 0; k < LONG; k++) {
        double sum = x[0][k] + x[1][k] + x[2][k];
        double squares = 0;

        for (size_t i = 0; i < INPUTS; i++)
            squares += x[i][k] * x[i][k];
        all[k] = (ranked){ squares * INPUTS - sum * sum, k };
        varying += all[k].variance != 0;
        keep[k] = false;
    }
    qsort(all, LONG, sizeof(*all), larger_first);
    for (size_t r = 0; r < (size_t)((double)varying * part); r++)
        keep[all[r].index] = true;
    free(all);
}

static void mean_plainly(double *out, double *const *x, const bool *keep)
{
    double weights[INPUTS] = { 0 };
    double all = 0;

    for (size_t i = 0; i < INPUTS; i++) {
        for (size_t k = 0; k < LONG; k++)
            weights[i] += keep[k] ? x[i][k] * x[i][k] : 0;
        all += weights[i];
    }
    for (size_t k = 0; k < LONG; k++) {
        double sign = x[0][k] + x[1][k] + x[2][k] >= 0 ? 1 : -1;
        double sum = 0;
        double weight = 0;

        for (size_t i = 0; i < INPUTS; i++) {
            if (!keep[k] || !(x[i][k] * sign > 0))
                continue;
            sum += x[i][k] * weights[i] / all;
            weight += weights[i] / all;
        }
        out[k] = weight > 0 ? sum / weight : 0;
    }
}

static void sce_selects_over_the_whole_of_a_long_tensor(void)
{
    double *x[INPUTS];
    double *want = malloc(LONG * sizeof(*want));
    double *got = malloc(LONG * sizeof(*got));
    double *zeros = calloc(LONG, sizeof(*zeros));
    bool *keep = malloc(LONG * sizeof(*keep));
    merge_case one = { .method = "sce",
                       .dtype = BAL_F64,
                       .settings = { { "select_topk", "0.3" } },
                       .rank = 1,
                       .shape = { LONG },
                       .base = zeros };

    CHECK(want && got && zeros && keep);
    for (size_t i = 0; i < INPUTS; i++) {
        one.inputs[i] = x[i] = malloc(LONG * sizeof(*x[i]));
        CHECK(x[i] != NULL);
        merge_case_fill(x[i], LONG, i + 1);
        for (size_t k = 0; k < LONG; k++)
            x[i][k] = k % 7 ? rint(x[i][k] * 64) / 64 : 0.25;
    }
    select_plainly(keep, x, 0.3);
    mean_plainly(want, x, keep);
    merge_case_run(got, &one);
    CHECK(merge_case_near(got, want, LONG, 1e-13));
    for (size_t i = 0; i < INPUTS; i++)
        free(x[i]);
    free(want);
    free(got);
    free(zeros);
    free(keep);
}

/* Input 0 changes every element, input 1 every fourth, and nothing else: of n
 * elements, n / 4 are shared, and input 0's others are its own. */
static void ramplus_tl_counts_over_the_whole_of_a_long_tensor(void)
{
    enum { N = 120000 };
    double *x0s = malloc(N * sizeof(double));
    double *x1s = malloc(N * sizeof(double));
    double *got = malloc(N * sizeof(double));
    double *zeros = calloc(N, sizeof(double));
    merge_case one = { .method = "ramplus_tl",
                       .dtype = BAL_F64,
                       .settings = { { "r", "0.5" }, { "alpha", "1" } },
                       .rank = 1,
                       .shape = { N },
                       .inputs = { x0s, x1s },
                       .base = zeros };
    const double boost = 1 + 0.5 * (1.0 / 3);
    bool right = true;

    CHECK(x0s && x1s && got && zeros);
    for (size_t k = 0; k < N; k++) {
        x0s[k] = 0.75;
        x1s[k] = k % 4 ? 0 : -0.25;
    }
    merge_case_run(got, &one);
    for (size_t k = 0; k < N; k++)
        right = right && fabs(got[k] - (k % 4 ? 0.75 * boost : 0.25)) < 1e-15;
    CHECK(right);
    free(x0s);
    free(x1s);
    free(got);
    free(zeros);
}

/* ---- odd values --------------------------------------------------------- */

static void ram_passes_over_nan_and_takes_infinity(void)
{
    static const double origin[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const double nan = (double)NAN;
    const double inf = (double)INFINITY;
    const double a[8] = { nan, nan, inf, inf, 1, 2, 1, 1 };
    const double b[8] = { 1, 3, 1, 1, nan, nan, 1, 1 };
    static const double want[8] = { 1, 3, HUGE_VAL, HUGE_VAL, 1, 2, 1, 1 };
    double got[8];
    merge_case one = { .method = "ram",
                       .dtype = BAL_F32,
                       .rank = 1,
                       .shape = { 8 },
                       .inputs = { a, b },
                       .base = origin };

    for (int mergekit = 0; mergekit < 2; mergekit++) {
        one.mergekit = mergekit == 1;
        merge_case_run(got, &one);
        CHECK(!memcmp(got, want, sizeof(want)));
    }
}

static const check_test tests[] = {
    { TEST(small_tensors_come_out_as_numpy_has_them) },
    { TEST(small_differences_weigh_the_same_under_sce) },
    { TEST(ramplus_tl_gives_f32_and_ram_the_dtype_that_goes_in) },
    { TEST(sce_selects_over_the_whole_of_a_long_tensor) },
    { TEST(ramplus_tl_counts_over_the_whole_of_a_long_tensor) },
    { TEST(ram_passes_over_nan_and_takes_infinity) },
};

CHECK_MAIN(tests)
