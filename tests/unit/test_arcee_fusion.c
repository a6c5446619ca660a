/* arcee_fusion. Numbers of the small case are NumPy's, in float64; of the
 * others what matters is computed plainly here, and sorted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/torch_stream.h"
#include "support/check.h"
#include "support/merge_case.h"

enum { SMALL = 12, SAMPLES = 1000000 };

static const double base[SMALL] = { 0.5, -1.25,  0.75, 2.0,  -0.125, 0.0,
                                    1.5, -0.625, 0.25, -2.5, 1.0,    -0.375 };

static void a_small_tensor_comes_out_as_numpy_has_it(void)
{
    static const double x[SMALL] = { 0.75,  -1.75,   0.75, 2.125,
                                     2.875, -0.25,   3.5,  -0.625,
                                     0.125, -2.3125, 1.0,  -0.4375 };
    static const double want[SMALL] = {
        0.5, -1.25,  0.75, 2.0,  2.875, -0.25,
        3.5, -0.625, 0.25, -2.5, 1.0,   -0.375
    };
    double got[SMALL];
    merge_case one = { .method = "arcee_fusion",
                       .dtype = BAL_F64,
                       .rank = 2,
                       .shape = { 3, 4 },
                       .inputs = { x },
                       .base = base };

    CHECK(merge_case_run(got, &one) == BAL_F64);
    CHECK(!memcmp(got, want, sizeof(want)));
}

static void the_same_model_twice_is_that_model(void)
{
    double got[SMALL];
    merge_case one = { .method = "arcee_fusion",
                       .dtype = BAL_F32,
                       .rank = 2,
                       .shape = { 3, 4 },
                       .inputs = { base },
                       .base = base };

    for (int mergekit = 0; mergekit < 2; mergekit++) {
        one.mergekit = mergekit == 1;
        merge_case_run(got, &one);
        CHECK(!memcmp(got, base, sizeof(base)));
    }
}

static void mergekit_gives_f32_whatever_goes_in(void)
{
    static const double x[SMALL] = { 1 };
    double got[SMALL];
    merge_case one = { .method = "arcee_fusion",
                       .dtype = BAL_BF16,
                       .rank = 1,
                       .shape = { SMALL },
                       .inputs = { x },
                       .base = base };

    CHECK(merge_case_run(got, &one) == BAL_BF16);
    one.mergekit = true;
    CHECK(merge_case_run(got, &one) == BAL_F32);
}

/* ---- computed plainly --------------------------------------------------- */

static void soften(double *out, const double *x, size_t n)
{
    double max = x[0];
    double sum = 0;

    for (size_t k = 1; k < n; k++)
        max = x[k] > max ? x[k] : max;
    for (size_t k = 0; k < n; k++)
        sum += out[k] = exp(x[k] - max);
    for (size_t k = 0; k < n; k++)
        out[k] = out[k] / sum + 1e-8;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* |change| times its row's divergence; what is 0 but for rounding is 0. */
static void weigh(double *out, const double *x, const double *b, size_t rows,
                  size_t row)
{
    double *p = malloc(2 * row * sizeof(*p));
    double *q = p + row;

    CHECK(p != NULL);
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        soften(p, x + r * row, row);
        soften(q, b + r * row, row);
        for (size_t k = 0; k < row; k++)
            sum += p[k] * log(p[k] / q[k]);
        sum = sum < 1e-12 ? 0 : sum;
        for (size_t k = r * row; k < (r + 1) * row; k++)
            out[k] = fabs(x[k] - b[k]) * sum;
    }
    free(p);
}

/* Of what mergekit looks at with seed 3, with replacement. */
static double *samples_of(const double *weights, size_t n)
{
    BAL_OWN(bal_torch_stream) stream = NULL;
    uint32_t *drawn = malloc(SAMPLES * sizeof(*drawn));
    double *out = malloc(SAMPLES * sizeof(*out));

    CHECK(drawn && out);
    CHECK_OK(bal_torch_stream_new(&stream, 3, SAMPLES, &check_err));
    bal_torch_stream_take(stream, 0, drawn, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        out[i] = weights[bal_torch_randint(&drawn[i], n)];
    free(drawn);
    return out;
}

static double threshold(const double *weights, size_t n)
{
    double *sorted = malloc(n * sizeof(*sorted));

    CHECK(sorted != NULL);
    memcpy(sorted, weights, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), ascending);
    double median = sorted[(n - 1) / 2];
    double apart = sorted[3 * (n - 1) / 4] - sorted[(n - 1) / 4];
    free(sorted);
    return median + 1.5 * apart;
}

/* Rows shorter and longer than those whose divergence is kept, rows longer than
 * a tile, one row of all, more elements than mergekit looks at. */
static const struct {
    const char *name;
    uint32_t rank;
    uint64_t shape[3];
    bool mergekit, sampled;
} shapes[] = {
    { "short rows", 3, { 5, 7, 3 }, false },
    { "rows of 63", 2, { 300, 63 }, false },
    { "rows of 64", 2, { 300, 64 }, false },
    { "rows of one element", 2, { 37, 1 }, false },
    { "one row", 1, { 3001 }, false },
    { "rows of more than a tile", 2, { 3, 70001 }, false },
    { "more than a million elements", 2, { 1100, 1000 }, false },
    { "more than a million elements in F32", 2, { 1100, 1000 }, true },
    { "a million samples of more elements", 2, { 1100, 1000 }, true, true },
};

/* An element on the threshold but for rounding may fall on either side. */
static void check_shape(size_t s)
{
    size_t row = shapes[s].shape[shapes[s].rank - 1];
    size_t n = 1;

    for (uint32_t i = 0; i < shapes[s].rank; i++)
        n *= shapes[s].shape[i];
    double *x = malloc(n * sizeof(*x));
    double *b = malloc(n * sizeof(*b));
    double *got = malloc(n * sizeof(*got));
    double *weights = malloc(n * sizeof(*weights));
    merge_case one = { .method = "arcee_fusion",
                       .mergekit = shapes[s].mergekit,
                       .dtype = BAL_F32,
                       .rank = shapes[s].rank,
                       .inputs = { x },
                       .base = b };
    size_t taken = 0;
    size_t wrong = 0;

    CHECK(x && b && got && weights);
    memcpy(one.shape, shapes[s].shape, sizeof(one.shape));
    if (shapes[s].sampled)
        one.settings[0] = (merge_setting){ "mergekit_stream", "3" };
    merge_case_fill(b, n, 1);
    merge_case_fill(x, n, 2);
    for (size_t k = 0; k < n; k++) {
        double change = k % 5 && k / row % 3 < 2 ? x[k] * x[k] * x[k] / 4 : 0;
        x[k] = (double)(float)(b[k] + change);
    }
    merge_case_run(got, &one);
    weigh(weights, x, b, n / row, row);
    double *samples = shapes[s].sampled ? samples_of(weights, n) : NULL;
    double cut = samples ? threshold(samples, SAMPLES) : threshold(weights, n);
    for (size_t k = 0; k < n; k++) {
        double off = weights[k] - cut;
        bool near = fabs(off) <= cut * (shapes[s].mergekit ? 1e-4 : 1e-9);
        double moved = shapes[s].mergekit
                           ? (double)((float)b[k] + (float)(x[k] - b[k]))
                           : x[k];
        wrong += !near && got[k] != (off > 0 ? moved : b[k]);
        taken += got[k] != b[k];
    }
    CHECK(!wrong);
    CHECK(taken > n / 100);
    free(x);
    free(b);
    free(got);
    free(weights);
    free(samples);
}

static void elements_far_above_the_median_are_taken(void)
{
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        check_row(shapes[s].name);
        check_shape(s);
    }
}

/* ---- odd values --------------------------------------------------------- */

/* A row with a NaN has no divergence, and does not matter. */
static void rows_that_are_not_finite_stay_the_base_s(void)
{
    double x[SMALL];
    double got[SMALL];
    merge_case one = { .method = "arcee_fusion",
                       .dtype = BAL_F32,
                       .rank = 2,
                       .shape = { 3, 4 },
                       .inputs = { x },
                       .base = base };

    for (size_t k = 0; k < SMALL; k++)
        x[k] = base[k] + (k < 4 ? 1.0 / (double)(1 << k) : 0);
    x[9] = (double)NAN;
    merge_case_run(got, &one);
    CHECK(!memcmp(got + 4, base + 4, 8 * sizeof(got[0])));
    one.mergekit = true;
    merge_case_run(got, &one);
    CHECK(isnan(got[9]));
    got[9] = base[9];
    CHECK(!memcmp(got + 4, base + 4, 8 * sizeof(got[0])));
}

static const check_test tests[] = {
    { TEST(a_small_tensor_comes_out_as_numpy_has_it) },
    { TEST(the_same_model_twice_is_that_model) },
    { TEST(mergekit_gives_f32_whatever_goes_in) },
    { TEST(elements_far_above_the_median_are_taken) },
    { TEST(rows_that_are_not_finite_stay_the_base_s) },
};

CHECK_MAIN(tests)
