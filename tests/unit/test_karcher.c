/* karcher. Numbers of the small cases are NumPy's,
 * in float64, from the formulas in docs/methods.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/merge_case.h"

enum { SMALL = 12 };

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
static const double zeros[SMALL] = { 0 };

static const struct {
    const char *name;
    merge_case merge;
    double want[SMALL];
} rows[] = {
    { "three inputs",
      { .method = "karcher", .inputs = { x0, x1, away } },
      { 0.6987368242575356, -1.0118077659896618, 1.6443553743315429,
        1.5523912171834144, 1.6694799093692978, 0.44488327067037087,
        1.4871365553141351, -1.206073287468308, 0.592450423466982,
        -2.0016938593803832, -0.37446000520989675, 0.19663265574096228 } },
    { "four inputs",
      { .method = "karcher", .inputs = { x0, x1, x2, away } },
      { 0.6123030430954087, -1.1706747681114225, 1.6729900407715195,
        1.714762491388907, 1.3312060844900198, 0.2644954372613893,
        1.6585262372338825, -1.1187799108319203, 0.3862566626185043,
        -2.319249604234218, -0.041314695570963615, 0.09300554143407061 } },
    { "one step",
      { .method = "karcher",
        .settings = { { "max_iter", "1" } },
        .inputs = { x0, x1, away } },
      { 0.698979488201406, -1.012032008132773, 1.6440046410378926,
        1.5527634035415574, 1.6689165238937014, 0.44459189095088153,
        1.4876460125952855, -1.2056799674870065, 0.5922769939473405,
        -2.0020859299309297, -0.37389175782382816, 0.19622189892346234 } },
    { "no step",
      { .method = "karcher",
        .settings = { { "max_iter", "0" } },
        .inputs = { x0, x1, away } },
      { 0.7440430543283404, -1.0887639214068416, 1.5479527418694259,
        1.6477324479767728, 1.5304419935801457, 0.37312407864470365,
        1.60216085472847, -1.116397212806227, 0.5366611242105294,
        -2.0799121342557547, -0.21395613358936216, 0.0948881297913053 } },
    { "a tolerance that is soon met",
      { .method = "karcher",
        .settings = { { "max_iter", "20" }, { "tol", "0.01" } },
        .inputs = { x0, x1, away } },
      { 0.698979488201406, -1.012032008132773, 1.6440046410378926,
        1.5527634035415574, 1.6689165238937014, 0.44459189095088153,
        1.4876460125952855, -1.2056799674870065, 0.5922769939473405,
        -2.0020859299309297, -0.37389175782382816, 0.19622189892346234 } },
    { "zeros count in the size alone",
      { .method = "karcher", .inputs = { x0, zeros } },
      { 0.37500000000000006, -0.8750000000000001, 0.37500000000000006, 1.0625,
        0.31250000000000006, -0.03125, 1.0, -0.31250000000000006, 0.0, -1.0625,
        0.5, -0.25 } },
    { "a base is one more input",
      { .method = "karcher", .inputs = { x0, x1 }, .base = away },
      { 0.6987368242575356, -1.0118077659896618, 1.6443553743315429,
        1.5523912171834144, 1.6694799093692978, 0.44488327067037087,
        1.4871365553141351, -1.206073287468308, 0.592450423466982,
        -2.0016938593803832, -0.37446000520989675, 0.19663265574096228 } },
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

/* Of units that are opposite but for rounding. */
static void opposite_inputs_give_a_finite_mean(void)
{
    static const struct {
        const char *name;
        double sizes[3]; /* of inputs that are multiples of one, 0 ends them */
        double want;
    } rows_of[] = {
        { "a pair is its first", { 1, -1 }, 1 },
        { "a pair of two sizes", { 1, -1.7 }, 1.35 },
        { "two against one", { -0.3, 1.1, -0.7 }, -0.7 },
        { "one against two", { 1.3, 0.1, -0.1 }, 0.5 },
    };

    for (size_t r = 0; r < sizeof(rows_of) / sizeof(rows_of[0]); r++) {
        double in[3][SMALL], got[SMALL], want[SMALL];
        merge_case one = {
            .method = "karcher",
            .dtype = BAL_F64,
            .rank = 1,
            .shape = { SMALL },
        };

        for (size_t k = 0; k < 3 * SMALL; k++) {
            double size = rows_of[r].sizes[k / SMALL];
            in[k / SMALL][k % SMALL] = size * away[k % SMALL];
            one.inputs[k / SMALL] = size != 0 ? in[k / SMALL] : NULL;
            want[k % SMALL] = rows_of[r].want * away[k % SMALL];
        }
        check_row(rows_of[r].name);
        CHECK(merge_case_run(got, &one) == BAL_F64);
        CHECK(merge_case_near(got, want, SMALL, 1e-13));
    }
}

/* What torch 2.13 computes in bfloat16 by the same steps. The second is of x
 * and -x, whose mean is zero. */
static void each_step_is_rounded_as_torch_does(void)
{
    static const double three[SMALL] = {
        -0.0189208984375, -0.75390625, 1.2890625,   -0.5625,
        0.73828125,       0.9296875,   -1.375,      0.09619140625,
        2.078125,         1.640625,    0.302734375, -0.59375
    };
    static const double first[SMALL] = { 0.08203125, -1.703125,  0.9765625,
                                         0.87109375, 0.515625,   -0.6640625,
                                         -0.25,      1.09375,    1.3671875,
                                         -1.359375,  -1.7578125, 0.09375 };
    double in[3][SMALL], got[SMALL];
    merge_case one = {
        .method = "karcher",
        .mergekit = true,
        .dtype = BAL_BF16,
        .rank = 1,
        .shape = { SMALL },
        .inputs = { in[0], in[1], in[2] },
    };

    for (size_t i = 0; i < 3; i++)
        merge_case_fill(in[i], SMALL, 10 + i);
    CHECK(merge_case_run(got, &one) == BAL_BF16);
    CHECK(!memcmp(got, three, sizeof(three)));

    merge_case_fill(in[0], SMALL, 1);
    for (size_t k = 0; k < SMALL; k++)
        in[1][k] = -in[0][k];
    one.inputs[2] = NULL;
    CHECK(merge_case_run(got, &one) == BAL_BF16);
    CHECK(!memcmp(got, first, sizeof(first)));
}

static void inputs_without_a_direction_give_zeros(void)
{
    static const double small[SMALL] = { 1e-6, -1e-6 };

    for (int mergekit = 0; mergekit < 2; mergekit++) {
        merge_case one = {
            .method = "karcher",
            .mergekit = mergekit,
            .dtype = BAL_F32,
            .rank = 1,
            .shape = { SMALL },
            .inputs = { zeros, small },
        };
        double got[SMALL];

        CHECK(merge_case_run(got, &one) == BAL_F32);
        CHECK(!memcmp(got, zeros, sizeof(zeros)));
    }
}

/* The steps of both are the same but for rounding, and for norms that are
 * summed in F32. */
static void both_arithmetics_agree_on_floats(void)
{
    enum { LONG = 70001 };
    double *in[4], *got[2];

    for (size_t i = 0; i < 4; i++) {
        in[i] = malloc(LONG * sizeof(double));
        merge_case_fill(in[i], LONG, i + 1);
    }
    for (size_t i = 0; i < 2; i++) {
        merge_case one = {
            .method = "karcher",
            .mergekit = i,
            .dtype = BAL_F32,
            .settings = { { "max_iter", "3" } },
            .rank = 1,
            .shape = { LONG },
            .inputs = { in[0], in[1], in[2], in[3] },
        };
        got[i] = malloc(LONG * sizeof(double));
        CHECK(merge_case_run(got[i], &one) == BAL_F32);
    }
    for (size_t k = 0; k < LONG; k++) {
        if (fabs(got[0][k] - got[1][k]) > 2e-5)
            CHECK(false && "near");
    }
    for (size_t i = 0; i < 4; i++)
        free(in[i]);
    free(got[0]);
    free(got[1]);
}

static const check_test tests[] = {
    { TEST(small_tensors_come_out_as_numpy_has_them) },
    { TEST(opposite_inputs_give_a_finite_mean) },
    { TEST(each_step_is_rounded_as_torch_does) },
    { TEST(inputs_without_a_direction_give_zeros) },
    { TEST(both_arithmetics_agree_on_floats) },
};

CHECK_MAIN(tests)
