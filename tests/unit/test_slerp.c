/* slerp, nuslerp, multislerp. Numbers of the small cases are NumPy's,
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
static const double zeros[SMALL] = { 0 };
static const double turned[SMALL] = { -1, 2.5,  -1.5, -4, 0.25, -0.0,
                                      -3, 1.25, -0.5, 5,  -2,   0.75 };
static const double against[SMALL] = { -1.125,  2.625,   -1.125, -3.1875,
                                       -0.9375, 0.09375, -3,     0.9375,
                                       -0.0,    3.1875,  -1.5,   0.75 };

static const struct {
    const char *name;
    merge_case merge;
    double want[SMALL];
} rows[] = {
    { "slerp",
      { .method = "slerp",
        .settings = { { "t", "0.35" } },
        .inputs = { x0 },
        .base = base },
      { 0.5924769212178489, -1.4369850201788292, 0.7560935332293941,
        2.0604567048108438, 0.1392281083231928, -0.02210364143289654,
        1.6890161979219604, -0.6300779443578284, 0.1636166120115452,
        -2.3876899288339346, 1.0081247109725253, -0.4222540494804901 } },
    { "slerp over a wide angle",
      { .method = "slerp",
        .settings = { { "t", "0.25" } },
        .inputs = { away },
        .base = base },
      { 0.3857317319905674, -1.018890485409927, 1.506137240355496,
        1.7611715496963039, 0.8583872870887572, 0.43648924346806817,
        1.1571951959717024, -1.2733014187740828, 0.6293551094633519,
        -2.4197090588544135, 0.11672959877903254, 0.17447102219189692 } },
    { "slerp beyond the other",
      { .method = "slerp",
        .settings = { { "t", "1.5" } },
        .inputs = { away },
        .base = base },
      { -0.5141068966635336, 1.2254636021437317, 0.24550152676144038,
        -1.817213028593725, 1.1750904156801751, 0.4784291161208192,
        -1.5423206899906008, -0.2245191521395677, 0.22137566778905238,
        2.0323017276817468, -1.745857467508296, 0.8939111083760206 } },
    { "slerp of opposite tensors is on the line",
      { .method = "slerp",
        .settings = { { "t", "0.25" } },
        .inputs = { turned },
        .base = base },
      { 0.125, -0.3125, 0.1875, 0.5, -0.03125, 0.0, 0.375, -0.15625, 0.0625,
        -0.625, 0.25, -0.09375 } },
    { "slerp to zeros is at a right angle",
      { .method = "slerp",
        .settings = { { "t", "0.5" } },
        .inputs = { zeros },
        .base = base },
      { 0.35355339059327373, -0.8838834764831843, 0.5303300858899106,
        1.414213562373095, -0.08838834764831843, 0.0, 1.0606601717798212,
        -0.44194173824159216, 0.17677669529663687, -1.7677669529663687,
        0.7071067811865475, -0.2651650429449553 } },
    { "nuslerp",
      { .method = "nuslerp", .weights = { 0.4, 0.7 }, .inputs = { x0, away } },
      { 0.2202378465260865, -0.5889531291265269, 2.021793540101884,
        0.8116692832380572, 2.3979437454586563, 0.8636584877693103,
        0.5122361035039058, -1.7223603603677322, 0.7881806159394114,
        -1.1494609757835192, -1.2076459492783824, 0.8290174363361659 } },
    { "nuslerp without a base needs none",
      { .method = "nuslerp",
        .settings = { { "nuslerp_row_wise", "true" } },
        .weights = { 0.4, 0.7 },
        .inputs = { x0, away } },
      { 0.2202378465260865, -0.5889531291265269, 2.021793540101884,
        0.8116692832380572, 2.3979437454586563, 0.8636584877693103,
        0.5122361035039058, -1.7223603603677322, 0.7881806159394114,
        -1.1494609757835192, -1.2076459492783824, 0.8290174363361659 } },
    { "nuslerp by row",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" } },
        .weights = { 0.4, 0.7 },
        .inputs = { x0, away } },
      { 0.21862047015418953, -0.5848621424538264, 2.0125655604114123,
        0.8062939456719976, 2.1242832716700826, 0.7715944461745342,
        0.4115994913318049, -1.5218203492160771, 0.9641723805485596,
        -1.515565123140282, -1.425797156041714, 0.9883764010347312 } },
    { "nuslerp by column",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" },
                      { "nuslerp_row_wise", "true" } },
        .weights = { 0.4, 0.7 },
        .inputs = { x0, away } },
      { 0.1423505591982514, -0.7313608086494724, 2.253622535619262,
        0.8182221608112538, 1.8666603791545868, 0.9864676726359626,
        0.613906991244155, -1.7319197749175925, 0.6221819182419818,
        -1.3851694899485951, -1.3117724355000857, 0.8327226499009212 } },
    { "nuslerp by row of three axes",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" } },
        .weights = { 0.4, 0.7 },
        .rank = 3,
        .shape = { 2, 3, 2 },
        .inputs = { x0, away } },
      { 7.56582940130982, -18.965609730695405, 1.8291611996973818,
        0.7004153227844768, 1.70727257593236, 0.6301047978826361,
        0.5153303376568616, -1.7284321694117781, 0.7836322751863816,
        -1.1401702415584143, -10.245494141219108, 7.583106125708101 } },
    { "nuslerp by column of three axes",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" },
                      { "nuslerp_row_wise", "true" } },
        .weights = { 0.4, 0.7 },
        .rank = 3,
        .shape = { 2, 3, 2 },
        .inputs = { x0, away } },
      { 12.109071112505754, -0.517893014013631, 1.4192928098603588,
        2.3813333489216193, 2.415242242175233, 1.8094890609534686,
        30.221316765656926, -1.5849682580893443, 0.5689405630171798,
        -3.107601996104075, -1.2144046176987193, 1.6093972762641497 } },
    { "nuslerp of one axis by row",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" } },
        .weights = { 0.4, 0.7 },
        .rank = 1,
        .shape = { 12 },
        .inputs = { x0, away } },
      { 0.2202378465260865, -0.5889531291265269, 2.021793540101884,
        0.8116692832380572, 2.3979437454586563, 0.8636584877693103,
        0.5122361035039058, -1.7223603603677322, 0.7881806159394114,
        -1.1494609757835192, -1.2076459492783824, 0.8290174363361659 } },
    { "nuslerp of one axis by column",
      { .method = "nuslerp",
        .settings = { { "nuslerp_flatten", "false" },
                      { "nuslerp_row_wise", "true" } },
        .weights = { 0.4, 0.7 },
        .rank = 1,
        .shape = { 12 },
        .inputs = { x0, away } },
      { 0.2202378465260865, -0.5889531291265269, 2.021793540101884,
        0.8116692832380572, 2.3979437454586563, 0.8636584877693103,
        0.5122361035039058, -1.7223603603677322, 0.7881806159394114,
        -1.1494609757835192, -1.2076459492783824, 0.8290174363361659 } },
    { "nuslerp of differences",
      { .method = "nuslerp",
        .weights = { 0.4, 0.7 },
        .inputs = { x0, x1 },
        .base = base },
      { 0.9611800407511996, -1.2853803450423444, 0.75, 1.875798125791578,
        0.548956333085555, -0.11529501018779989, 2.0675681869183773,
        -0.35890607906198363, 0.14361185383282227, -2.1630218334572224,
        0.6452081054159782, -0.5168920467295943 } },
    { "nuslerp of weights that cancel is half way",
      { .method = "nuslerp", .weights = { -0.5, 0.5 }, .inputs = { x0, away } },
      { 0.384251221298321, -0.9606280532458027, 1.9212561064916054,
        1.2488164692195434, 2.209444522465346, 0.720471039934352,
        0.9606280532458028, -1.6330676905178645, 0.6724396372720619,
        -1.5370048851932843, -0.7685024425966421, 0.5763768319474817 } },
    { "nuslerp of a negative weight",
      { .method = "nuslerp", .weights = { 1.3, -0.3 }, .inputs = { x0, away } },
      { 0.7193704895731283, -1.636815973768987, -0.2817935560663797,
        1.9339284657030817, -0.6311220647876217, -0.5501007714754365,
        1.9600364740966552, 0.25568554767280605, -0.4380092699672848,
        -1.7462102071456742, 1.7934640241304278, -1.0218775177701525 } },
    { "nuslerp of opposite tensors is on the line",
      { .method = "nuslerp",
        .weights = { 0.4, 0.7 },
        .inputs = { x0, against } },
      { -0.443181818181818, 1.0340909090909087, -0.443181818181818,
        -1.2556818181818175, -0.3693181818181816, 0.03693181818181816,
        -1.1818181818181812, 0.3693181818181816, 0.0, 1.2556818181818175,
        -0.5909090909090906, 0.2954545454545453 } },
    { "multislerp",
      { .method = "multislerp",
        .weights = { 0.5, 0.35, 0.2 },
        .inputs = { x0, x1, away } },
      { 0.8226586471572128, -1.3398367121542212, 1.1755796840505497,
        1.8925726709923674, 1.0514824894367671, 0.14050212708911378,
        1.8748282284509956, -0.8208496308163606, 0.3158752254311433,
        -2.2044640398733812, 0.33474176172514514, -0.22154322103631052 } },
    { "multislerp of differences",
      { .method = "multislerp",
        .weights = { 0.5, 0.35, -0.2 },
        .inputs = { x0, x1, x2 },
        .base = base },
      { 0.9678109639019725, -1.4087121159709914, 0.5644720352255107,
        1.9639577094681924, 0.5901149749207387, -0.01491236034952402,
        1.9615933940692132, -0.43645376799599134, 0.2191119768778616,
        -1.9940201407200393, 0.7486050239946551, -0.54605673794965 } },
    { "multislerp of weights as they are",
      { .method = "multislerp",
        .settings = { { "normalize_weights", "false" }, { "eps", "1e-3" } },
        .weights = { 0.5, 0.35, 0.2 },
        .inputs = { x0, x1, away } },
      { 0.863788070757588, -1.40683070487796, 1.234360826359589,
        1.98720003187964, 1.1040618095384875, 0.14752968340947076,
        1.9685652205033095, -0.8618968543307577, 0.3316687200551989,
        -2.3146828531974637, 0.3514774082133092, -0.232617281513384 } },
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

/* cos is -0.99996: mergekit's factors are a hundred times the weights here. */
static void nearly_opposite_vectors_are_joined_by_a_line(void)
{
    static const double a[2] = { 1, 0.0625 }, b[2] = { -2, -0.109375 };
    static const double line[2] = { 0.25, 0.01953125 };
    static const merge_case precise = {
        .method = "nuslerp",
        .dtype = BAL_F64,
        .weights = { 0.75, 0.25 },
        .rank = 1,
        .shape = { 2 },
        .inputs = { a, b },
    };
    merge_case mergekit = precise;
    double got[2];

    CHECK(merge_case_run(got, &precise) == BAL_F64);
    CHECK(merge_case_near(got, line, 2, 0));
    mergekit.mergekit = true;
    CHECK(merge_case_run(got, &mergekit) == BAL_F64);
    CHECK(fabs(got[0]) > 10);
}

/* Directions at 120 degrees to each other, but for the last one's length. */
static void directions_that_cancel_have_a_sum_but_no_mean(void)
{
    static const double a[3] = { 1, 0, -1 }, b[3] = { 0, -1, 1 },
                        c[3] = { -2, 2, 0 };
    static const double sum[3] = { -1.0 / 3, 1.0 / 3, 0 };
    static const merge_case precise = {
        .method = "multislerp",
        .dtype = BAL_F64,
        .rank = 1,
        .shape = { 3 },
        .inputs = { a, b, c },
    };
    merge_case mergekit = precise;
    BAL_OWN(bal_model) view = NULL;
    double got[3];

    CHECK(merge_case_run(got, &precise) == BAL_F64);
    CHECK(merge_case_near(got, sum, 3, 4e-16));
    mergekit.mergekit = true;
    CHECK_OK(merge_case_open(&view, &mergekit));
    CHECK_RC(BAL_EINVAL, bal_model_read(view, 0, 0, got, 24, &check_err));
    CHECK(strstr(check_err.text, "tensor 'w'") != NULL);
}

static void inputs_that_change_nothing_give_the_base(void)
{
    static const char *const methods[] = { "nuslerp", "multislerp" };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        merge_case one = {
            .method = methods[i],
            .dtype = BAL_F64,
            .rank = 1,
            .shape = { SMALL },
            .inputs = { base, base },
            .base = base,
        };
        double got[SMALL];

        check_row(methods[i]);
        CHECK(merge_case_run(got, &one) == BAL_F64);
        CHECK(!memcmp(got, base, sizeof(base)));
    }
}

static void divisors_of_zero_are_passed_over(void)
{
    static const merge_case one = {
        .method = "multislerp",
        .dtype = BAL_F64,
        .settings = { { "eps", "0" } },
        .weights = { 0.75, 0.25 },
        .rank = 1,
        .shape = { SMALL },
        .inputs = { x0, zeros },
    };
    double got[SMALL];

    CHECK(merge_case_run(got, &one) == BAL_F64);
    for (size_t k = 0; k < SMALL; k++)
        CHECK(fabs(got[k] - 0.75 * x0[k]) <= 1e-15);
}

static void opposite_inputs_have_no_mean_without_eps_either(void)
{
    static const merge_case one = {
        .method = "multislerp",
        .dtype = BAL_F64,
        .settings = { { "eps", "0" } },
        .rank = 1,
        .shape = { SMALL },
        .inputs = { base, turned },
    };
    double got[SMALL];

    CHECK(merge_case_run(got, &one) == BAL_F64);
    for (size_t k = 0; k < SMALL; k++)
        CHECK(got[k] == -base[k] / 2);
}

static void one_input_comes_out_as_it_went_in(void)
{
    static const char *const methods[] = { "multislerp", "karcher" };
    double values[SMALL], got[SMALL];

    merge_case_fill(values, SMALL, 5);
    for (size_t i = 0; i < 2; i++) {
        for (int mergekit = 0; mergekit < 2; mergekit++) {
            merge_case one = {
                .method = methods[i],
                .mergekit = mergekit,
                .dtype = BAL_F32,
                .weights = { 0.3 },
                .rank = 1,
                .shape = { SMALL },
                .inputs = { values },
                .base = i ? NULL : base,
            };

            if (i)
                one.weights[0] = 0;
            check_row(methods[i]);
            CHECK(merge_case_run(got, &one) == BAL_F32);
            CHECK(!memcmp(got, values, sizeof(values)));
        }
    }
}

static void weights_that_cancel_cannot_be_normalized(void)
{
    static const struct {
        const char *name, *normalize;
        bool mergekit;
        int rc;
    } rows_of[] = {
        { "precise", "true", false, BAL_EINVAL },
        { "not normalized", "false", false, 0 },
        { "mergekit does not look", "true", true, 0 },
    };

    for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++) {
        merge_case one = {
            .method = "multislerp",
            .mergekit = rows_of[i].mergekit,
            .dtype = BAL_F32,
            .settings = { { "normalize_weights", rows_of[i].normalize } },
            .weights = { 0.3, -0.1, -0.2 },
            .rank = 1,
            .shape = { SMALL },
            .inputs = { x0, x1, x2 },
        };
        BAL_OWN(bal_model) view = NULL;

        check_row(rows_of[i].name);
        CHECK_RC(rows_of[i].rc, merge_case_open(&view, &one));
    }
}

static const check_test tests[] = {
    { TEST(small_tensors_come_out_as_numpy_has_them) },
    { TEST(nearly_opposite_vectors_are_joined_by_a_line) },
    { TEST(directions_that_cancel_have_a_sum_but_no_mean) },
    { TEST(inputs_that_change_nothing_give_the_base) },
    { TEST(divisors_of_zero_are_passed_over) },
    { TEST(opposite_inputs_have_no_mean_without_eps_either) },
    { TEST(one_input_comes_out_as_it_went_in) },
    { TEST(weights_that_cancel_cannot_be_normalized) },
};

CHECK_MAIN(tests)
