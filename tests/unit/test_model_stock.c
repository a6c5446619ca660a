/* model_stock, nearswap. Numbers of the small cases are NumPy's,
 * in float64, from the formulas in docs/methods.md. */
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
/* At more than a right angle to the others. */
static const double away[SMALL] = { -0.25, 0.5,  1.75,  -0.5,  2.25, 1.0,
                                    -0.75, -1.5, 0.875, 0.125, -2.0, 1.25 };

static const struct {
    const char *name;
    merge_case merge;
    double want[SMALL];
} rows[] = {
    { "two inputs",
      { .method = "model_stock", .inputs = { x0, x1 }, .base = base },
      { 0.7573046037513242, -1.3357682012504415, 0.75, 1.9571158993747793,
        0.3038410062522071, -0.06432615093783106, 1.8430728050017657,
        -0.4963476981243379, 0.16423179874955857, -2.2855794968738965,
        0.8284635974991171, -0.46076820125044143 } },
    { "three inputs",
      { .method = "model_stock", .inputs = { x0, x1, x2 }, .base = base },
      { 0.6297500572358405, -1.3538000457886725, 0.8797500572358404,
        1.974049988552832, 0.18640013736601718, -0.1038000457886724,
        1.8114001373660171, -0.5471499656584957, 0.09429993131699141,
        -2.448099977105664, 0.8961999542113276, -0.41392501717075214 } },
    { "inputs that disagree lead away from their average",
      { .method = "model_stock", .inputs = { x0, away }, .base = base },
      { 0.5105083986202633, -1.2762709965506582, 0.7289832027594735,
        2.049914893446251, -0.19067749137664564, -0.019703247412993688,
        1.5367793951709217, -0.6066103024145392, 0.24211870103480254,
        -2.5630503917215797, 1.06305039172158, -0.40652519586078995 } },
    { "by row",
      { .method = "model_stock",
        .settings = { { "filter_wise", "true" } },
        .inputs = { x0, x1, x2 },
        .base = base },
      { 0.46574429115201316, -1.2225954329216107, 0.7157442911520131,
        2.0068511417695976, 0.34036603045752234, -0.15512201015250746,
        1.9653660304575227, -0.5086584923856194, 0.23879689013452385,
        -2.496265630044841, 0.9925312600896825, -0.37780077746636903 } },
    { "by row of three axes",
      { .method = "model_stock",
        .settings = { { "filter_wise", "true" } },
        .rank = 3,
        .shape = { 2, 3, 2 },
        .inputs = { x0, x1, x2 },
        .base = base },
      { 0.45192307692307687, -1.2115384615384615, 0.125, 2.125,
        0.34160679821825546, -0.15553559940608516, 1.975609756097561,
        -0.5060975609756098, 0.21050436473762707, -2.4868347882458757, 1.5,
        -0.1875 } },
    { "of one axis by row",
      { .method = "model_stock",
        .settings = { { "filter_wise", "true" } },
        .rank = 1,
        .shape = { 12 },
        .inputs = { x0, x1, x2 },
        .base = base },
      { 0.6297500572358405, -1.3538000457886725, 0.8797500572358404,
        1.974049988552832, 0.18640013736601718, -0.1038000457886724,
        1.8114001373660171, -0.5471499656584957, 0.09429993131699141,
        -2.448099977105664, 0.8961999542113276, -0.41392501717075214 } },
    { "nearswap",
      { .method = "nearswap",
        .settings = { { "t", "0.1" } },
        .inputs = { x0 },
        .base = base },
      { 0.6000000000000001, -1.35, 0.75, 2.1, -0.02500000000000001, -0.0625,
        1.6, -0.625, 0.15, -2.4000000000000004, 1.0, -0.475 } },
    { "nearswap of 0 is the base",
      { .method = "nearswap",
        .settings = { { "t", "0" } },
        .inputs = { x0 },
        .base = base },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25, -2.5, 1.0,
        -0.375 } },
    { "nearswap of less is the base",
      { .method = "nearswap",
        .settings = { { "t", "-1" } },
        .inputs = { x0 },
        .base = base },
      { 0.5, -1.25, 0.75, 2.0, -0.125, 0.0, 1.5, -0.625, 0.25, -2.5, 1.0,
        -0.375 } },
    { "nearswap of much is the other",
      { .method = "nearswap",
        .settings = { { "t", "10" } },
        .inputs = { x0 },
        .base = base },
      { 0.75, -1.75, 0.75, 2.125, 0.625, -0.0625, 2.0, -0.625, 0.0, -2.125, 1.0,
        -0.5 } },
};

static void small_tensors_come_out_as_numpy_has_them(void)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        merge_case one = rows[r].merge;
        double got[SMALL];

        check_row(rows[r].name);
        one.dtype = BAL_F64;
        if (!one.rank) {
            one.rank = 2;
            one.shape[0] = 3;
            one.shape[1] = 4;
        }
        CHECK(merge_case_run(got, &one) == BAL_F64);
        CHECK(merge_case_near(got, rows[r].want, SMALL, 1e-13));
    }
}

static void inputs_that_tell_no_way_give_the_base(void)
{
    static const struct {
        const char *name;
        double by[2]; /* what the inputs differ by, times a direction */
    } rows_of[] = {
        { "no difference", { 0, 0 } },
        { "opposite differences", { 1, -1 } },
        { "opposite differences of two sizes", { 0.5, -2 } },
    };

    for (size_t r = 0; r < sizeof(rows_of) / sizeof(rows_of[0]); r++) {
        double in[2][SMALL], got[SMALL];
        merge_case one = {
            .method = "model_stock",
            .dtype = BAL_F64,
            .rank = 1,
            .shape = { SMALL },
            .inputs = { in[0], in[1] },
            .base = base,
        };

        for (size_t k = 0; k < SMALL; k++) {
            in[0][k] = base[k] + rows_of[r].by[0] * away[k];
            in[1][k] = base[k] + rows_of[r].by[1] * away[k];
        }
        check_row(rows_of[r].name);
        CHECK(merge_case_run(got, &one) == BAL_F64);
        CHECK(!memcmp(got, base, sizeof(base)));
    }
}

static void inputs_that_are_one_are_their_average(void)
{
    static const merge_case one = {
        .method = "model_stock",
        .dtype = BAL_F64,
        .rank = 1,
        .shape = { SMALL },
        .inputs = { x0, x0, x0 },
        .base = base,
    };
    double got[SMALL];

    CHECK(merge_case_run(got, &one) == BAL_F64);
    for (size_t k = 0; k < SMALL; k++)
        CHECK(fabs(got[k] - x0[k]) <= 1e-14);
}

/* So many that not all pairs of inputs are looked at in one walk. */
enum { ROWS = 300000, ROW = 2, INPUTS = 4 };

static double ratio_of(double *const *in, const double *from, size_t row)
{
    double sum = 0;

    for (size_t i = 0; i < INPUTS; i++) {
        for (size_t j = i + 1; j < INPUTS; j++) {
            const double *a = in[i] + row * ROW, *b = in[j] + row * ROW;
            const double *o = from + row * ROW;
            double x = hypot(a[0] - o[0], a[1] - o[1]);
            double y = hypot(b[0] - o[0], b[1] - o[1]);

            sum += ((a[0] - o[0]) * (b[0] - o[0]) +
                    (a[1] - o[1]) * (b[1] - o[1])) /
                   fmax(x * y, 1e-6);
        }
    }
    double cosine = sum / (INPUTS * (INPUTS - 1) / 2);
    double under = 1 + (INPUTS - 1) * cosine;
    return fabs(under) < 1e-6 ? 0 : INPUTS * cosine / under;
}

static void rows_of_a_tall_tensor_each_have_their_ratio(void)
{
    double *all[INPUTS + 1];
    double *got = malloc(ROWS * ROW * sizeof(double));
    merge_case one = {
        .method = "model_stock",
        .dtype = BAL_F64,
        .settings = { { "filter_wise", "true" } },
        .rank = 2,
        .shape = { ROWS, ROW },
    };

    for (size_t i = 0; i <= INPUTS; i++) {
        all[i] = malloc(ROWS * ROW * sizeof(double));
        merge_case_fill(all[i], ROWS * ROW, i + 1);
        if (i < INPUTS)
            one.inputs[i] = all[i];
    }
    one.base = all[INPUTS];
    CHECK(merge_case_run(got, &one) == BAL_F64);
    for (size_t k = 0; k < ROWS * ROW; k++) {
        double t = ratio_of(all, one.base, k / ROW);
        double mean = (all[0][k] + all[1][k] + all[2][k] + all[3][k]) / INPUTS;
        double want = t * mean + (1 - t) * one.base[k];

        if (fabs(got[k] - want) > 1e-11 * (1 + t * t))
            CHECK(false && "near");
    }
    for (size_t i = 0; i <= INPUTS; i++)
        free(all[i]);
    free(got);
}

/* 1 / 1e-6 is infinite in F16, and no number of F16 can be less. */
static void nearswap_in_f16_overflows_as_mergekit_does(void)
{
    merge_case one = {
        .method = "nearswap",
        .mergekit = true,
        .dtype = BAL_F16,
        .settings = { { "t", "0" } },
        .rank = 1,
        .shape = { SMALL },
        .inputs = { x0 },
        .base = base,
    };
    double got[SMALL];

    CHECK(merge_case_run(got, &one) == BAL_F16);
    for (size_t k = 0; k < SMALL; k++)
        CHECK(x0[k] == base[k] ? isnan(got[k]) : got[k] == base[k]);
    one.mergekit = false;
    CHECK(merge_case_run(got, &one) == BAL_F16);
    CHECK(!memcmp(got, base, sizeof(base)));
}

static const check_test tests[] = {
    { TEST(small_tensors_come_out_as_numpy_has_them) },
    { TEST(inputs_that_tell_no_way_give_the_base) },
    { TEST(inputs_that_are_one_are_their_average) },
    { TEST(rows_of_a_tall_tensor_each_have_their_ratio) },
    { TEST(nearswap_in_f16_overflows_as_mergekit_does) },
};

CHECK_MAIN(tests)
