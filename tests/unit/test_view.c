/* Views: the numbers. What is right is computed here by a plain loop in double,
 * or worked out by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/pool.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

/* More than two of the tiles that views are computed in, and not round. */
enum { LONG = 150001 };

static bal_recipe *linear_of(const double *weights, size_t count,
                             bal_space space)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    for (size_t i = 0; i < count; i++) {
        bal_input input = { .tenant = "acme", .weight = weights[i] };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->space = space;
    return recipe;
}

static bal_model *delta_of(const char *name, const float *values, size_t n)
{
    made_row row = { .name = name,
                     .form = BAL_FORM_DIFFERENCE,
                     .dtype = BAL_F32,
                     .of = BAL_BF16,
                     .rank = 1,
                     .shape = { n },
                     .bytes = values };

    return made_model(BAL_KIND_DELTA, NULL, &row, 1);
}

static bal_model *view_of(const bal_recipe *recipe, bal_model *const *inputs)
{
    bal_model *view = NULL;

    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    return view;
}

static void read_all(bal_model *model, const char *name, void *to, size_t len)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);

    CHECK(i != BAL_NONE);
    CHECK(bal_model_at(model, i)->size == len);
    CHECK_OK(bal_model_read(model, i, 0, to, len, &check_err));
}

static bool same_bits(const void *a, const void *b, size_t len)
{
    return !memcmp(a, b, len);
}

/* ---- sums --------------------------------------------------------------- */

typedef struct weighting {
    const char *normalize;
    double weights[3];
    size_t count;
} weighting;

static const weighting weightings[] = {
    { "true", { 1, 1 }, 2 },          { "false", { 1, 1 }, 2 },
    { "true", { 0.6, 0.4 }, 2 },      { "false", { 0.6, 0.4 }, 2 },
    { "true", { 3, -1, 0.1 }, 3 },    { "false", { -1, 0, 2.5 }, 3 },
    { "true", { 1e-3, 7, 1e5 }, 3 },  { "false", { 0.3 }, 1 },
    { "true", { 0.1, 0.2, 0.3 }, 3 },
};

static void expect(float *out, float *const *inputs, const weighting *row)
{
    for (size_t k = 0; k < LONG; k++) {
        double sum = 0;
        double weight = 0;

        for (size_t i = 0; i < row->count; i++) {
            sum += row->weights[i] * (double)inputs[i][k];
            weight += row->weights[i];
        }
        out[k] = (float)(!strcmp(row->normalize, "true") ? sum / weight : sum);
    }
}

static void linear_is_the_weighted_sum_rounded_once(void)
{
    float *values[4];
    float *got = malloc(LONG * sizeof(float));

    for (unsigned i = 0; i < 4; i++) {
        values[i] = malloc(LONG * sizeof(float));
        made_floats(values[i], LONG, i + 1);
    }
    for (size_t r = 0; r < sizeof(weightings) / sizeof(weightings[0]); r++) {
        const weighting *row = &weightings[r];
        BAL_OWN(bal_recipe)
        recipe = linear_of(row->weights, row->count, BAL_SPACE_DELTA);
        bal_model *inputs[3] = { NULL };

        check_row(row->normalize);
        CHECK_OK(
            bal_recipe_set(recipe, "normalize", row->normalize, &check_err));
        for (size_t i = 0; i < row->count; i++)
            inputs[i] = delta_of("w", values[i], LONG);
        BAL_OWN(bal_model) view = view_of(recipe, inputs);
        for (size_t i = 0; i < row->count; i++)
            bal_model_free(inputs[i]);
        read_all(view, "w", got, LONG * sizeof(float));
        expect(values[3], values, row);
        CHECK(same_bits(got, values[3], LONG * sizeof(float)));
        CHECK(bal_model_facts(view)->kind == BAL_KIND_DELTA);
        CHECK(bal_model_at(view, 0)->of == BAL_BF16);
        CHECK(bal_model_at(view, 0)->form == BAL_FORM_DIFFERENCE);
    }
    for (size_t i = 0; i < 4; i++)
        free(values[i]);
    free(got);
}

static void whole_models_of_bf16_are_rounded_once(void)
{
    static const double weights[] = { 0.7, 0.3 };
    enum { N = 4096 };
    uint16_t a[N];
    uint16_t b[N];
    uint16_t got[N];
    made_row rows[] = {
        { .name = "w", .dtype = BAL_BF16, .rank = 2, .shape = { 64, 64 } }
    };

    made_bf16(a, N, 1);
    made_bf16(b, N, 2);
    rows[0].bytes = a;
    BAL_OWN(bal_model) first = made_model(BAL_KIND_WEIGHTS, "m", rows, 1);
    rows[0].bytes = b;
    BAL_OWN(bal_model) second = made_model(BAL_KIND_WEIGHTS, "m", rows, 1);
    bal_model *inputs[] = { first, second };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_WEIGHTS);
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    CHECK(bal_model_at(view, 0)->dtype == BAL_BF16);
    CHECK(bal_model_at(view, 0)->form == BAL_FORM_WHOLE);
    CHECK(!strcmp(bal_model_facts(view)->base_model, "m"));
    read_all(view, "w", got, sizeof(got));
    for (size_t k = 0; k < N; k++) {
        double sum = 0.7 * (double)bf16_value(a[k]);
        sum += 0.3 * (double)bf16_value(b[k]);
        CHECK(got[k] == bf16_round(sum / (0.7 + 0.3)));
    }
}

static void dtypes_that_differ_are_merged_to_one_that_holds_both(void)
{
    static const struct {
        bal_dtype a, b, result;
    } rows[] = {
        { BAL_BF16, BAL_BF16, BAL_BF16 }, { BAL_BF16, BAL_F16, BAL_F32 },
        { BAL_BF16, BAL_F32, BAL_F32 },   { BAL_F16, BAL_F64, BAL_F64 },
        { BAL_F64, BAL_F64, BAL_F64 },
    };
    static const double weights[] = { 1, 1 };
    static const uint8_t zeros[64];

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        made_row a = { .name = "w",
                       .dtype = rows[r].a,
                       .rank = 1,
                       .shape = { 8 },
                       .bytes = zeros };
        made_row b = a;
        b.dtype = rows[r].b;
        BAL_OWN(bal_model) first = made_model(BAL_KIND_WEIGHTS, NULL, &a, 1);
        BAL_OWN(bal_model) second = made_model(BAL_KIND_WEIGHTS, NULL, &b, 1);
        bal_model *inputs[] = { first, second };
        BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_WEIGHTS);
        BAL_OWN(bal_model) view = view_of(recipe, inputs);

        CHECK(bal_model_at(view, 0)->dtype == rows[r].result);
        recipe->dtype = BAL_F16;
        BAL_OWN(bal_model) cast = view_of(recipe, inputs);
        CHECK(bal_model_at(cast, 0)->dtype == BAL_F16);
    }
}

/* Bits, because a NaN is equal to nothing. */
static void special_values_have_one_result(void)
{
    static const double weights[] = { 1, 1 };
    static const uint32_t a[8] = { 0x7f800000, 0x7f800000, 0x7fc12345,
                                   0xffc00001, 0x80000000, 0x00000001,
                                   0x7f7fffff, 0x80000000 };
    static const uint32_t b[8] = { 0x3f800000, 0xff800000, 0x3f800000,
                                   0x7fc54321, 0x80000000, 0x00000001,
                                   0x7f7fffff, 0x00000000 };
    /* The sum runs in double, so the largest float survives an average. */
    static const uint32_t want[8] = { 0x7f800000, 0x7fc00000, 0x7fc00000,
                                      0x7fc00000, 0x00000000, 0x00000001,
                                      0x7f7fffff, 0x00000000 };
    float left[8];
    float right[8];
    uint32_t got[8];

    memcpy(left, a, sizeof(a));
    memcpy(right, b, sizeof(b));
    BAL_OWN(bal_model) first = delta_of("w", left, 8);
    BAL_OWN(bal_model) second = delta_of("w", right, 8);
    bal_model *inputs[] = { first, second };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_DELTA);
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    read_all(view, "w", got, sizeof(got));
    CHECK(same_bits(got, want, sizeof(got)));
}

/* ---- ranges, views of views --------------------------------------------- */

static void any_range_reads_as_the_whole_does(void)
{
    static const double weights[] = { 0.9, 0.2 };
    static const uint64_t ranges[][2] = {
        { 0, 8 },       { 8, 16 },       { 65528, 16 },           { 0, LONG },
        { 131072, 64 }, { LONG - 1, 1 }, { 65536, LONG - 65536 },
    };
    float *values = malloc(LONG * sizeof(float));
    float *whole = malloc(LONG * sizeof(float));
    float *part = malloc(LONG * sizeof(float));

    made_floats(values, LONG, 7);
    BAL_OWN(bal_model) first = delta_of("w", values, LONG);
    bal_model *inputs[] = { first, first };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_DELTA);
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    read_all(view, "w", whole, LONG * sizeof(float));
    for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
        uint64_t start = ranges[r][0] - ranges[r][0] % 8;
        uint64_t n = ranges[r][0] + ranges[r][1] - start;
        CHECK_OK(bal_model_read(view, 0, start * 4, part, n * 4, &check_err));
        CHECK(same_bits(part, whole + start, n * 4));
    }
    free(values);
    free(whole);
    free(part);
}

static void a_view_of_views_is_the_merge_of_the_merges(void)
{
    static const double inner[] = { 0.25, 0.75 };
    static const double outer[] = { 0.5, 0.1 };
    enum { N = 1000 };
    float a[N];
    float b[N];
    float got[N];

    made_floats(a, N, 1);
    made_floats(b, N, 2);
    BAL_OWN(bal_model) first = delta_of("w", a, N);
    BAL_OWN(bal_model) second = delta_of("w", b, N);
    bal_model *leaves[] = { first, second };
    BAL_OWN(bal_recipe) below = linear_of(inner, 2, BAL_SPACE_DELTA);
    BAL_OWN(bal_model) mean = view_of(below, leaves);
    bal_model *inputs[] = { mean, first };
    BAL_OWN(bal_recipe) above = linear_of(outer, 2, BAL_SPACE_DELTA);
    CHECK_OK(bal_recipe_set(above, "normalize", "false", &check_err));
    BAL_OWN(bal_model) view = view_of(above, inputs);

    read_all(view, "w", got, sizeof(got));
    for (size_t k = 0; k < N; k++) {
        float m = (float)(0.25 * (double)a[k] + 0.75 * (double)b[k]);
        float want = (float)(0.5 * (double)m + 0.1 * (double)a[k]);
        CHECK(same_bits(&got[k], &want, sizeof(want)));
    }
}

static void many_views_deep_costs_a_read_a_level(void)
{
    static const double weights[] = { 0.5, 0.5 };
    enum { N = 64, DEEP = 40 };
    float a[N];
    float got[N];

    made_floats(a, N, 3);
    BAL_OWN(bal_model) leaf = delta_of("w", a, N);
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_DELTA);
    bal_model *top = bal_model_ref(leaf);
    for (size_t i = 0; i < DEEP; i++) {
        bal_model *inputs[] = { top, leaf };
        bal_model *next = view_of(recipe, inputs);
        bal_model_free(top);
        top = next;
    }
    read_all(top, "w", got, sizeof(got));
    CHECK(same_bits(got, a, sizeof(got)));
    bal_model_free(top);
}

/* ---- absent tensors ----------------------------------------------------- */

static void a_delta_that_lacks_a_tensor_counts_as_zeros(void)
{
    static const double weights[] = { 1, 3 };
    static const float a[8] = { 4, 8, -4, 0, 1, 2, 3, 5 };
    static const float want[8] = { 1, 2, -1, 0, 0.25F, 0.5F, 0.75F, 1.25F };
    float got[8];
    BAL_OWN(bal_model) first = delta_of("w", a, 8);
    BAL_OWN(bal_model) second = delta_of("other", a, 8);
    bal_model *inputs[] = { first, second };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_DELTA);
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    CHECK(bal_model_count(view) == 2);
    read_all(view, "w", got, sizeof(got));
    CHECK(same_bits(got, want, sizeof(got)));
}

static void a_whole_model_that_lacks_a_tensor_is_left_out_of_it(void)
{
    static const double weights[] = { 1, 3 };
    static const float a[8] = { 4, 8, -4, 0, 1, 2, 3, 5 };
    float got[8];
    made_row rows[] = {
        { .name = "w",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = a },
        { .name = "x",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = a },
    };
    BAL_OWN(bal_model) first = made_model(BAL_KIND_WEIGHTS, NULL, rows, 1);
    BAL_OWN(bal_model) second = made_model(BAL_KIND_WEIGHTS, NULL, rows + 1, 1);
    bal_model *inputs[] = { first, second };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_WEIGHTS);
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    read_all(view, "w", got, sizeof(got));
    CHECK(same_bits(got, a, sizeof(got)));
    read_all(view, "x", got, sizeof(got));
    CHECK(same_bits(got, a, sizeof(got)));
}

/* ---- methods with whole-tensor numbers ---------------------------------- */

static int add_up(void *ctx, const bal_tile *tile, bal_error *err)
{
    double *sum = ctx;
    (void)err;

    for (size_t k = 0; k < tile->n; k++)
        *sum += tile->inputs[0][k];
    return 0;
}

static int mean_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                        const bal_values *values, bal_error *err)
{
    double *mean = calloc(1, sizeof(*mean));
    (void)values;

    *out = mean;
    int rc = bal_view_tiles(walk, add_up, mean, err);
    *mean /= (double)tile->extent->total;
    return rc;
}

static int mean_merge(double *out, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    (void)err;
    for (size_t k = 0; k < tile->n; k++) {
        size_t last = tile->which[tile->count - 1];
        double factor = bal_value_input(values, last, "factor");
        CHECK(tile->inputs[0][k] == (double)(tile->start + k));
        out[k] = factor * *(const double *)tile->prepared;
    }
    return 0;
}

static const bal_param mean_params[] = {
    { .name = "factor",
      .type = BAL_PARAM_FLOAT,
      .fallback = "2",
      .high = 10,
      .per_input = true,
      .help = "" },
    { 0 },
};

static const bal_method mean_method = {
    .info = { .name = "mean", .min_inputs = 1, .params = mean_params },
    .prepare = mean_prepare,
    .merge = mean_merge,
};

static void a_method_may_prepare_and_has_values_of_its_inputs(void)
{
    static const double weights[] = { 1, 1 };
    float *values = malloc(LONG * sizeof(float));
    float got[8];

    for (size_t k = 0; k < LONG; k++)
        values[k] = (float)k;
    BAL_OWN(bal_model) leaf = delta_of("w", values, LONG);
    bal_model *inputs[] = { leaf, leaf };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2, BAL_SPACE_DELTA);
    recipe->method = &mean_method;
    json_object_set_new(recipe->inputs[1].parameters, "factor",
                        json_string("4"));
    BAL_OWN(bal_model) view = view_of(recipe, inputs);

    for (uint64_t at = 0; at < 3; at++) {
        CHECK_OK(bal_model_read(view, 0, at * 65536 * 4, got, sizeof(got),
                                &check_err));
        CHECK(got[0] == (float)(4 * ((LONG - 1) / 2.0)));
    }
    free(values);
}

/* Prepared once, whoever comes first. */
static int read_some(size_t i, void *ctx, bal_error *err)
{
    float got[64];
    int rc = bal_model_read(ctx, 0, i * 4096, got, sizeof(got), err);

    CHECK(rc || got[63] == (float)(2 * ((LONG - 1) / 2.0)));
    return rc;
}

static void many_threads_read_one_view(void)
{
    static const double weights[] = { 1 };
    float *values = malloc(LONG * sizeof(float));
    BAL_OWN(bal_work) work = NULL;

    for (size_t k = 0; k < LONG; k++)
        values[k] = (float)k;
    BAL_OWN(bal_model) leaf = delta_of("w", values, LONG);
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 1, BAL_SPACE_DELTA);
    recipe->method = &mean_method;
    BAL_OWN(bal_model) view = view_of(recipe, &leaf);
    CHECK_OK(bal_work_new(&work, 4, &check_err));
    CHECK_OK(bal_pool_run(work, 128, read_some, view, &check_err));
    free(values);
}

static const check_test tests[] = {
    { TEST(linear_is_the_weighted_sum_rounded_once) },
    { TEST(whole_models_of_bf16_are_rounded_once) },
    { TEST(dtypes_that_differ_are_merged_to_one_that_holds_both) },
    { TEST(special_values_have_one_result) },
    { TEST(any_range_reads_as_the_whole_does) },
    { TEST(a_view_of_views_is_the_merge_of_the_merges) },
    { TEST(many_views_deep_costs_a_read_a_level) },
    { TEST(a_delta_that_lacks_a_tensor_counts_as_zeros) },
    { TEST(a_whole_model_that_lacks_a_tensor_is_left_out_of_it) },
    { TEST(a_method_may_prepare_and_has_values_of_its_inputs) },
    { TEST(many_threads_read_one_view) },
};

CHECK_MAIN(tests)
