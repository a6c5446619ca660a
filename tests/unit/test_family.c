/* Task vectors: sums of differences, sparse ones, with signs elected. Numbers
 * come from a transcription of the formulas to NumPy, in float64 and rounded
 * once; what is drawn at random is redone here, by plain loops over the draws.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "family_rows.h"
#include "merge/values.h"
#include "support/check.h"
#include "support/made_model.h"

/* ---- making ------------------------------------------------------------- */

static float value_at(size_t input, size_t k)
{
    return eighths[input][k] / 8;
}

static bal_model *delta_of(size_t input, uint32_t rank, const uint64_t *shape)
{
    static float values[INPUTS][N];
    made_row row = { .name = "w",
                     .form = BAL_FORM_DIFFERENCE,
                     .dtype = BAL_F32,
                     .of = BAL_F32,
                     .rank = rank,
                     .bytes = values[input] };

    for (size_t k = 0; k < N; k++)
        values[input][k] = value_at(input, k);
    memcpy(row.shape, shape, rank * sizeof(*shape));
    return made_model(BAL_KIND_DELTA, NULL, &row, 1);
}

static bal_recipe *recipe_of(const merging *row)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, row->method, &check_err));
    for (size_t i = 0; i < SETTINGS && row->settings[i].name; i++)
        CHECK_OK(bal_recipe_set(recipe, row->settings[i].name,
                                row->settings[i].value, &check_err));
    for (size_t i = 0; i < INPUTS && row->inputs[i]; i++) {
        bal_input_text text = { 0 };
        bal_input input = { .tenant = "acme" };

        CHECK_OK(bal_input_parse(&text, &arena, row->inputs[i], &check_err));
        input.weight = 1;
        input.parameters = text.parameters;
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->space = BAL_SPACE_DELTA;
    recipe->seed = 7;
    return recipe;
}

/* Open, read: the code of either. */
static int merge(float *out, const merging *row, bool mergekit, uint32_t rank,
                 const uint64_t *shape)
{
    BAL_OWN(bal_recipe) recipe = recipe_of(row);
    BAL_OWN(bal_model) view = NULL;
    bal_model *inputs[INPUTS] = { NULL };

    recipe->mergekit = mergekit;
    for (size_t i = 0; i < recipe->count; i++)
        inputs[i] = delta_of(i, rank, shape);
    int rc = bal_view_open(&view, recipe, inputs, NULL, &check_err);
    for (size_t i = 0; i < recipe->count; i++)
        bal_model_free(inputs[i]);
    if (rc)
        return rc;
    CHECK(bal_model_at(view, 0)->size == N * sizeof(*out));
    return bal_model_read(view, 0, 0, out, N * sizeof(*out), &check_err);
}

static const uint64_t rows_of_4[] = { 3, 4 };

/* ---- what NumPy says ---------------------------------------------------- */

static void merges_are_what_numpy_makes_of_the_formulas(void)
{
    float got[N];

    for (size_t r = 0; r < sizeof(mergings) / sizeof(mergings[0]); r++) {
        const merging *row = &mergings[r];

        check_row(row->method);
        CHECK_OK(merge(got, row, false, 2, rows_of_4));
        for (size_t k = 0; k < N; k++)
            CHECK(got[k] == row->want[k]);
    }
}

static void in_f32_both_arithmetics_agree_to_the_last_bits(void)
{
    float got[N];

    for (size_t r = 0; r < sizeof(mergings) / sizeof(mergings[0]); r++) {
        const merging *row = &mergings[r];

        check_row(row->method);
        CHECK_OK(merge(got, row, true, 2, rows_of_4));
        for (size_t k = 0; k < N; k++)
            CHECK(fabsf(got[k] - row->want[k]) <= 1e-6F);
    }
}

static void a_sum_of_weights_that_only_rounding_made_not_zero_divides_by_1(void)
{
    float got[N];

    CHECK_OK(merge(got, &cancelling, false, 2, rows_of_4));
    for (size_t k = 0; k < N; k++)
        CHECK(got[k] == cancelling.want[k]);
}

/* ---- at random ---------------------------------------------------------- */

/* The probability that element k of an input is kept with: of della, by a count
 * of the elements of its row that stand before it. */
static double chance_of(const merging *row, size_t input, size_t k,
                        size_t length, size_t step)
{
    size_t first = k - k / step % length * step;
    double below = 0;

    if (strncmp(row->method, "della", 5) || length == 1)
        return 0.5;
    for (size_t j = 0; j < length; j++) {
        size_t other = first + j * step;
        float size = fabsf(value_at(input, k));
        float of = fabsf(value_at(input, other));

        below += of < size || (of == size && other < k);
    }
    return 0.25 + below / (double)(length - 1) * 2 * 0.25;
}

/* Density 0.5, epsilon 0.25, rescaled, weights 0.5 and -1, no more. */
static void expect(float *out, const merging *row, size_t length, size_t step)
{
    static const double weights[] = { 0.5, -1 };
    double sum[N] = { 0 };

    for (size_t i = 0; i < 2; i++) {
        bal_draws draws;
        float drawn[N];
        double kept[N];
        double before = 0;
        double after = 0;

        bal_draws_init(&draws, 7, i, "w");
        bal_draws_take(&draws, 0, drawn, N);
        for (size_t k = 0; k < N; k++) {
            bool in = (double)drawn[k] < chance_of(row, i, k, length, step);

            kept[k] = in ? (double)value_at(i, k) : 0;
            before += fabs((double)value_at(i, k));
            after += fabs(kept[k]);
        }
        CHECK(after > 0 && after < before);
        for (size_t k = 0; k < N; k++)
            sum[k] += kept[k] * (before / after) * weights[i];
    }
    for (size_t k = 0; k < N; k++)
        out[k] = (float)sum[k];
}

static const struct {
    uint32_t rank;
    uint64_t shape[4];
    size_t length, step; /* of della's rows */
} shapes[] = {
    { 2, { 3, 4 }, 4, 1 },    { 2, { 1, 12 }, 12, 1 },
    { 1, { 12 }, 12, 1 },     { 3, { 2, 3, 2 }, 3, 2 },
    { 3, { 1, 4, 3 }, 4, 3 }, { 4, { 1, 3, 2, 2 }, 3, 4 },
    { 2, { 12, 1 }, 1, 1 },
};

static const merging drawn_by[] = {
    { "dare_linear", { { "density", "0.5" } }, { "x@0.5", "x@-1" }, { 0 } },
    { "della_linear",
      { { "density", "0.5" }, { "epsilon", "0.25" } },
      { "x@0.5", "x@-1" },
      { 0 } },
};

static void what_is_drawn_is_kept_and_scaled_to_the_sum_before(void)
{
    float got[N];
    float want[N];

    for (size_t r = 0; r < sizeof(drawn_by) / sizeof(drawn_by[0]); r++) {
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            check_row(drawn_by[r].method);
            CHECK_OK(merge(got, &drawn_by[r], false, shapes[s].rank,
                           shapes[s].shape));
            expect(want, &drawn_by[r], shapes[s].length, shapes[s].step);
            CHECK(!memcmp(got, want, sizeof(got)));
        }
    }
}

static void a_row_of_one_element_has_no_ranks_in_mergekits_arithmetic(void)
{
    static const uint64_t column[] = { 12, 1 };
    float got[N];

    CHECK_RC(BAL_EINVAL, merge(got, &drawn_by[1], true, 2, column));
    CHECK(strstr(check_err.text, "'w'") != NULL);
    CHECK_OK(merge(got, &drawn_by[0], true, 2, column));
}

static void a_density_of_1_is_neither_drawn_for_nor_ranked(void)
{
    static const merging plain = {
        "task_arithmetic", { { NULL } }, { "x@0.5", "x@-1" }, { 0 }
    };
    static const char *const methods[] = { "dare_linear", "della_linear",
                                           "breadcrumbs" };
    float got[N];
    float want[N];

    CHECK_OK(merge(want, &plain, false, 2, rows_of_4));
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        merging row = plain;

        row.method = methods[i];
        row.settings[0] = (setting){ "density", i ? "1" : "1.5" };
        row.settings[1] = (setting){ "rescale", "true" };
        check_row(methods[i]);
        CHECK_OK(merge(got, &row, false, 2, rows_of_4));
        CHECK(!memcmp(got, want, sizeof(got)));
    }
}

static void probabilities_outside_of_0_and_1_are_refused(void)
{
    static const struct {
        const char *density, *epsilon;
        int rc;
    } rows[] = {
        { "0.9", "0.15", BAL_EINVAL },
        { "0.1", "0.15", BAL_EINVAL },
        { "0.5", "0.5", BAL_EINVAL },
        { "0.9", "0.05", 0 },
        { "0", "0.15", 0 },
        { "1", "0.15", 0 },
    };
    float got[N];

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        merging row = drawn_by[1];

        row.settings[0].value = rows[r].density;
        row.settings[1].value = rows[r].epsilon;
        check_row(rows[r].density);
        CHECK_RC(rows[r].rc, merge(got, &row, false, 2, rows_of_4));
    }
}

/* ---- what is not finite ------------------------------------------------- */

static void an_infinity_or_nan_is_not_silenced_by_being_dropped(void)
{
    static const float values[N] = { 1, NAN, 3, INFINITY, 5, -6,
                                     7, 8,   9, 10,       0, 12 };
    merging row = { "breadcrumbs",
                    { { "density", "0.5" }, { "gamma", "0.2" } },
                    { "x@1" },
                    { 0 } };
    static const uint64_t shape[] = { N };
    float got[N];
    BAL_OWN(bal_recipe) recipe = recipe_of(&row);
    made_row entry = { .name = "w",
                       .form = BAL_FORM_DIFFERENCE,
                       .dtype = BAL_F32,
                       .of = BAL_F32,
                       .rank = 1,
                       .shape = { shape[0] },
                       .bytes = values };
    BAL_OWN(bal_model) input = made_model(BAL_KIND_DELTA, NULL, &entry, 1);
    BAL_OWN(bal_model) view = NULL;

    CHECK_OK(bal_view_open(&view, recipe, &input, NULL, &check_err));
    CHECK_OK(bal_model_read(view, 0, 0, got, sizeof(got), &check_err));
    CHECK(isnan(got[1]) && isnan(got[3]));
    CHECK(got[11] == 12 && got[0] == 0);
}

/* ---- to a base ---------------------------------------------------------- */

/* Of one element: the base, two models. */
static void whole_models(bal_model **out)
{
    static const uint16_t values[] = { 0x4380, 0x3f81,
                                       0x4380 }; /* 256, 1.0078125 */

    for (size_t i = 0; i < 3; i++) {
        made_row row = { .name = "w",
                         .dtype = BAL_BF16,
                         .rank = 1,
                         .shape = { 1 },
                         .bytes = &values[i] };
        out[i] = made_model(BAL_KIND_WEIGHTS, NULL, &row, 1);
    }
}

static void
whole_models_go_through_a_difference_in_mergekits_arithmetic_alone(void)
{
    static const merging row = {
        "task_arithmetic", { { NULL } }, { "x@1", "x@1" }, { 0 }
    };
    bal_model *inputs[3];

    whole_models(inputs);
    for (int mergekit = 0; mergekit < 2; mergekit++) {
        BAL_OWN(bal_recipe) recipe = recipe_of(&row);
        BAL_OWN(bal_model) view = NULL;
        uint16_t got;

        recipe->space = BAL_SPACE_WEIGHTS;
        recipe->mergekit = mergekit;
        recipe->slices[0].base = 0;
        CHECK_OK(bal_recipe_settle(recipe, inputs, &check_err));
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        CHECK_OK(bal_model_read(view, 0, 0, &got, sizeof(got), &check_err));
        /* 1.0078125 - 256 is -255 in BF16. */
        CHECK(got == (mergekit ? 0x3f80 : 0x3f81));
    }
    for (size_t i = 0; i < 3; i++)
        bal_model_free(inputs[i]);
}

static void probabilities_are_judged_of_every_input_beside_the_base(void)
{
    static const merging row = { "della_linear",
                                 { { NULL } },
                                 { "x", "x,density=0.5", "x,density=0.9" },
                                 { 0 } };
    BAL_OWN(bal_recipe) recipe = recipe_of(&row);
    bal_model *inputs[3];

    whole_models(inputs);
    recipe->space = BAL_SPACE_WEIGHTS;
    recipe->slices[0].base = 0;
    CHECK_RC(BAL_EINVAL, bal_recipe_settle(recipe, inputs, &check_err));
    CHECK(strstr(check_err.text, "input 3") != NULL);
    for (size_t i = 0; i < 3; i++)
        bal_model_free(inputs[i]);
}

/* ---- as sums of products ------------------------------------------------ */

static void task_arithmetic_multiplies_each_input_by_its_share(void)
{
    static const struct {
        const char *normalize, *inputs[2];
        double shares[2];
    } rows[] = {
        { "false", { "x@0.5", "x@1.5" }, { 0.25, 0.75 } },
        { "true", { "x@0.5", "x@1.5" }, { 0.125, 0.375 } },
        { "true", { "x@0.5", "x@-0.5" }, { 0.25, -0.25 } },
    };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const merging row = { "task_arithmetic",
                              { { "normalize", rows[r].normalize },
                                { "lambda", "0.5" } },
                              { rows[r].inputs[0], rows[r].inputs[1] },
                              { 0 } };
        BAL_OWN(bal_recipe) recipe = recipe_of(&row);
        BAL_LOCAL(bal_values) values = { 0 };
        double weights[] = { recipe->inputs[0].weight,
                             recipe->inputs[1].weight };

        CHECK_OK(bal_values_init(&values, recipe, &check_err));
        for (size_t i = 0; i < 2; i++)
            CHECK(recipe->method->share(weights, 2, i, &values) ==
                  rows[r].shares[i]);
    }
}

static const check_test tests[] = {
    { TEST(merges_are_what_numpy_makes_of_the_formulas) },
    { TEST(in_f32_both_arithmetics_agree_to_the_last_bits) },
    { TEST(a_sum_of_weights_that_only_rounding_made_not_zero_divides_by_1) },
    { TEST(what_is_drawn_is_kept_and_scaled_to_the_sum_before) },
    { TEST(a_row_of_one_element_has_no_ranks_in_mergekits_arithmetic) },
    { TEST(a_density_of_1_is_neither_drawn_for_nor_ranked) },
    { TEST(probabilities_outside_of_0_and_1_are_refused) },
    { TEST(an_infinity_or_nan_is_not_silenced_by_being_dropped) },
    { TEST(
        whole_models_go_through_a_difference_in_mergekits_arithmetic_alone) },
    { TEST(probabilities_are_judged_of_every_input_beside_the_base) },
    { TEST(task_arithmetic_multiplies_each_input_by_its_share) },
};

CHECK_MAIN(tests)
