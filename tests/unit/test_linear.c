/* linear in mergekit's arithmetic, against the C library's fused multiply-add;
 * passthrough. linear in precise is in test_view.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/made_model.h"
#include "support/merge_case.h"

enum { LONG = 100003, INPUTS = 6 };

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

/* Floats of any significand whose exponents are near together, so that sums
 * lose digits, cancel and tie; some subnormal, some near the largest. */
static void fill(double *out, size_t n, uint64_t seed)
{
    uint64_t state = seed;

    for (size_t k = 0; k < n; k++) {
        static const int places[] = { 0, 0, 0, 12, -12, -24, -148, 103 };
        int place = places[k % 8];
        int32_t significand = (int32_t)(next(&state) & 0x1ffffff) - 0x1000000;

        if (next(&state) % 4 == 0)
            significand &= ~0xfff;
        out[k] = (double)ldexpf((float)significand, place);
    }
}

typedef struct weighting {
    const char *normalize;
    double weights[INPUTS];
    size_t count;
} weighting;

static const weighting weightings[] = {
    { "false", { 0.3, 0.9 }, 2 },
    { "true", { 0.3, 0.9 }, 2 },
    { "false", { 1.0 / 3, -1.0 / 3, 0.1 }, 3 },
    { "true", { 0.5, 0.35, -0.2, 1e-3 }, 4 },
    { "false", { 0.1, 0.3, 0.25, 0.7, 0.45, -0.05 }, 6 },
    { "false", { 1e-30, 1e-38 }, 2 },
    { "true", { 1, -1 }, 2 },
    { "true", { 0.7 }, 1 },
};

static void expect(double *out, double *const *x, const weighting *row)
{
    for (size_t k = 0; k < LONG; k++) {
        float sum = 0;
        float weight = 0;

        for (size_t i = 0; i < row->count; i++) {
            sum = fmaf((float)x[i][k], (float)row->weights[i], sum);
            weight += (float)row->weights[i];
        }
        out[k] = (double)(row->normalize[0] == 't' ? sum / weight : sum);
    }
}

static bool same_values(const double *a, const double *b, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        bool both = isnan(a[k]) && isnan(b[k]);
        if (!both && memcmp(&a[k], &b[k], sizeof(a[k])) != 0) {
            printf("element %zu: %a, not %a\n", k, a[k], b[k]);
            return false;
        }
    }
    return true;
}

/* Also where weights sum to zero: mergekit divides by it. */
static void products_and_sums_of_f32_are_rounded_as_one(void)
{
    double *x[INPUTS];
    double *want = malloc(LONG * sizeof(*want));
    double *got = malloc(LONG * sizeof(*got));

    CHECK(want && got);
    for (size_t i = 0; i < INPUTS; i++) {
        x[i] = malloc(LONG * sizeof(*x[i]));
        CHECK(x[i] != NULL);
        fill(x[i], LONG, i + 1);
    }
    for (size_t r = 0; r < sizeof(weightings) / sizeof(weightings[0]); r++) {
        const weighting *row = &weightings[r];
        merge_case one = { .method = "linear",
                           .mergekit = true,
                           .dtype = BAL_F32,
                           .settings = { { "normalize", row->normalize } },
                           .rank = 1,
                           .shape = { LONG } };

        check_row(row->normalize);
        for (size_t i = 0; i < row->count; i++) {
            one.inputs[i] = x[i];
            one.weights[i] = row->weights[i];
        }
        expect(want, x, row);
        CHECK(merge_case_run(got, &one) == BAL_F32);
        CHECK(same_values(got, want, LONG));
    }
    for (size_t i = 0; i < INPUTS; i++)
        free(x[i]);
    free(want);
    free(got);
}

/* 2^-24 (1 + 2^-36) and 2^-24 (1 - 2^-46) are products of two floats. Added to
 * a float they leave it next to the middle of two, and a double holds the
 * middle itself: whoever rounds twice goes to the wrong one. */
static void sums_next_to_the_middle_of_two_floats_round_the_right_way(void)
{
    static const double factors[][2] = {
        { 0x1.001p0, 0x1.ffe002p-25 },
        { 0x1.000002p0, 0x1.fffffcp-25 },
        { 0x1.4fd43p0, 0x1.864b46p-25 },
    };
    static const double sums[] = { 1, 0x1.000002p0, 0x1.000004p0, 0x1p60 };
    size_t twice = 0; /* where rounding twice is wrong */

    for (size_t r = 0; r < 3 * sizeof(sums) / sizeof(sums[0]); r++) {
        double weight = factors[r % 3][0];
        double small = factors[r % 3][1];
        double sum = sums[r / 3];
        const double x[8] = { sum, sum, -sum, -sum };
        const double y[8] = { small, -small, small, -small };
        double got[8];
        merge_case one = { .method = "linear",
                           .mergekit = true,
                           .dtype = BAL_F32,
                           .settings = { { "normalize", "false" } },
                           .weights = { 1, weight },
                           .rank = 1,
                           .shape = { 8 },
                           .inputs = { x, y } };

        merge_case_run(got, &one);
        for (size_t k = 0; k < 4; k++) {
            float want = fmaf((float)y[k], (float)weight, (float)x[k]);
            CHECK(got[k] == (double)want);
            twice += (float)(x[k] + y[k] * weight) != want;
        }
    }
    CHECK(twice >= 4);
}

static void bf16_is_summed_in_f32_and_rounded_once(void)
{
    enum { N = 4096 };
    uint16_t bits[N];
    double x[2][N];
    double got[N];
    merge_case one = { .method = "linear",
                       .mergekit = true,
                       .dtype = BAL_BF16,
                       .weights = { 0.3, 0.9 },
                       .rank = 2,
                       .shape = { 64, 64 },
                       .inputs = { x[0], x[1] } };

    for (unsigned i = 0; i < 2; i++) {
        made_bf16(bits, N, i + 1);
        for (size_t k = 0; k < N; k++)
            x[i][k] = (double)bf16_value(bits[k]);
    }
    CHECK(merge_case_run(got, &one) == BAL_BF16);
    for (size_t k = 0; k < N; k++) {
        float sum = fmaf((float)x[0][k], 0.3F, 0);
        sum = fmaf((float)x[1][k], 0.9F, sum) / (0.3F + 0.9F);
        CHECK(got[k] == (double)bf16_value(bf16_round((double)sum)));
    }
}

static void weights_that_sum_to_zero_are_refused_in_precise(void)
{
    static const double x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    BAL_OWN(bal_model) view = NULL;
    merge_case one = { .method = "linear",
                       .dtype = BAL_F32,
                       .weights = { 1, -1 },
                       .rank = 1,
                       .shape = { 8 },
                       .inputs = { x, x } };

    CHECK_RC(BAL_EINVAL, merge_case_open(&view, &one));
}

/* ---- passthrough -------------------------------------------------------- */

/* mergekit multiplies by the scale as F32 and rounds to BF16, precise by the
 * scale itself. */
static const struct {
    const char *scale;
    bool mergekit;
    bal_dtype dtype;
    double in, out;
} scalings[] = {
    { NULL, false, BAL_F32, (double)0.1F, (double)0.1F },
    { NULL, true, BAL_BF16, 0.40625, 0.40625 },
    { "1", true, BAL_F16, -0.0, -0.0 },
    { "0", true, BAL_F32, -3, -0.0 },
    { "-1.7", true, BAL_F32, 3, -0x1.466668p+2 },
    { "-1.7", true, BAL_BF16, 3, -5.09375 },
    { "0.3", false, BAL_F64, 3, 0.3 * 3 },
    { "0.3", true, BAL_F32, 5, 1.5 },
    { "1e39", true, BAL_F32, 0, (double)NAN },
    { "1e39", false, BAL_F32, 0, 0 },
};

static void passthrough_multiplies_its_one_input(void)
{
    for (size_t r = 0; r < sizeof(scalings) / sizeof(scalings[0]); r++) {
        double in[8] = { 0 };
        double got[8];
        merge_case one = { .method = "passthrough",
                           .mergekit = scalings[r].mergekit,
                           .dtype = scalings[r].dtype,
                           .scale = scalings[r].scale,
                           .rank = 1,
                           .shape = { 8 },
                           .inputs = { in } };

        check_row(scalings[r].scale ? scalings[r].scale : "no scale");
        in[3] = scalings[r].in;
        CHECK(merge_case_run(got, &one) == scalings[r].dtype);
        CHECK(same_values(&got[3], &scalings[r].out, 1));
    }
}

static void passthrough_takes_one_input(void)
{
    static const double x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    BAL_OWN(bal_model) view = NULL;
    merge_case one = { .method = "passthrough",
                       .dtype = BAL_F32,
                       .rank = 1,
                       .shape = { 8 },
                       .inputs = { x, x } };

    CHECK_RC(BAL_EINVAL, merge_case_open(&view, &one));
}

static const check_test tests[] = {
    { TEST(products_and_sums_of_f32_are_rounded_as_one) },
    { TEST(sums_next_to_the_middle_of_two_floats_round_the_right_way) },
    { TEST(bf16_is_summed_in_f32_and_rounded_once) },
    { TEST(weights_that_sum_to_zero_are_refused_in_precise) },
    { TEST(passthrough_multiplies_its_one_input) },
    { TEST(passthrough_takes_one_input) },
};

CHECK_MAIN(tests)
