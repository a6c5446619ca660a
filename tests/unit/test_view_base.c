/* Views: what a base is to a method, and in which arithmetic. The methods here
 * are made up; results are worked out by hand. */
#include "support/check.h"
#include "support/made_model.h"
#include "support/watch_method.h"

/* ---- roles -------------------------------------------------------------- */

typedef struct part {
    const char *name;
    bal_role role;
    bal_space space;
    size_t base;    /* of inputs 8, 16, 32 */
    double result;  /* of the sum */
    size_t count;   /* of the tile's inputs */
    size_t first;   /* of them */
    double is_base; /* -1: there is none */
} part;

static const part parts[] = {
    { "a whole base is taken off and added", BAL_ROLE_ORIGIN, BAL_SPACE_WEIGHTS,
      1, 16 + (8 - 16) + (32 - 16), 2, 0, 16 },
    { "the base may stand first", BAL_ROLE_ORIGIN, BAL_SPACE_WEIGHTS, 0,
      8 + (16 - 8) + (32 - 8), 2, 1, 8 },
    { "without one inputs are whole", BAL_ROLE_ORIGIN, BAL_SPACE_WEIGHTS,
      BAL_NONE, 56, 3, 0, -1 },
    { "differences are differences already", BAL_ROLE_ORIGIN, BAL_SPACE_DELTA,
      BAL_NONE, 56, 3, 0, -1 },
    { "and can be to one of them", BAL_ROLE_ORIGIN, BAL_SPACE_DELTA, 2,
      32 + (8 - 32) + (16 - 32), 2, 0, 32 },
    { "factors as well", BAL_ROLE_ORIGIN, BAL_SPACE_FACTORS, BAL_NONE, 56, 3, 0,
      -1 },
    { "an operand is handed over", BAL_ROLE_OPERAND, BAL_SPACE_WEIGHTS, 0, 56,
      2, 1, 8 },
    { "of differences it is zeros", BAL_ROLE_OPERAND, BAL_SPACE_DELTA, BAL_NONE,
      56, 3, 0, 0 },
    { "or one of them", BAL_ROLE_OPERAND, BAL_SPACE_DELTA, 1, 56, 2, 0, 16 },
    { "zeros of factors", BAL_ROLE_OPERAND, BAL_SPACE_FACTORS, BAL_NONE, 56, 3,
      0, 0 },
    { "where it has no use it is one more input", BAL_ROLE_NONE,
      BAL_SPACE_WEIGHTS, 1, 56, 3, 0, -1 },
};

static void a_base_is_to_a_method_what_its_row_says(void)
{
    static const float values[3][8] = {
        { 8, 8, 8, 8, 8, 8, 8, 8 },
        { 16, 16, 16, 16, 16, 16, 16, 16 },
        { 32, 32, 32, 32, 32, 32, 32, 32 },
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const part *row = &parts[i];
        bal_method method = watch_method(row->role, 1);
        BAL_OWN(bal_recipe)
        recipe = watch_recipe(&method, row->space, 3, row->base);
        bal_model *inputs[3];
        BAL_OWN(bal_model) view = NULL;
        float got[8];

        check_row(row->name);
        for (size_t k = 0; k < 3; k++)
            inputs[k] =
                watch_input(watch_kind(row->space), BAL_F32, 8, values[k]);
        recipe->seed = 77;
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        for (size_t k = 0; k < 3; k++)
            bal_model_free(inputs[k]);
        watch_read(view, got, sizeof(got));
        for (size_t k = 0; k < 8; k++)
            CHECK((double)got[k] == row->result);
        CHECK(watch_seen.count == row->count &&
              watch_seen.which[0] == row->first);
        CHECK(watch_seen.seed == 77);
        CHECK(watch_seen.based == (row->is_base >= 0));
        CHECK(!watch_seen.based || watch_seen.base == row->is_base);
    }
}

/* ---- arithmetic --------------------------------------------------------- */

typedef struct work {
    const char *name;
    bal_dtype dtypes[2]; /* of base and input */
    int told;            /* -1: no dtype */
    bool mergekit, f32;
    bal_dtype result;
    bal_dtype works_in;
} work;

static const work works[] = {
    { "one dtype",
      { BAL_BF16, BAL_BF16 },
      -1,
      true,
      false,
      BAL_BF16,
      BAL_BF16 },
    { "two of 16 bits",
      { BAL_BF16, BAL_F16 },
      -1,
      true,
      false,
      BAL_F32,
      BAL_F32 },
    { "one of 32", { BAL_F32, BAL_BF16 }, -1, true, false, BAL_F32, BAL_F32 },
    { "one of 64", { BAL_F16, BAL_F64 }, -1, true, false, BAL_F64, BAL_F64 },
    { "told", { BAL_F32, BAL_F32 }, BAL_BF16, true, false, BAL_BF16, BAL_BF16 },
    { "told wider",
      { BAL_BF16, BAL_BF16 },
      BAL_F32,
      true,
      false,
      BAL_F32,
      BAL_F32 },
    { "always F32", { BAL_BF16, BAL_BF16 }, -1, true, true, BAL_F32, BAL_BF16 },
    { "but of F64", { BAL_BF16, BAL_F64 }, -1, true, true, BAL_F64, BAL_F64 },
    { "told or not",
      { BAL_BF16, BAL_F16 },
      BAL_F16,
      true,
      true,
      BAL_F32,
      BAL_F16 },
    { "precise", { BAL_BF16, BAL_F16 }, -1, false, true, BAL_F32, BAL_F32 },
    { "precise, one",
      { BAL_BF16, BAL_BF16 },
      -1,
      false,
      true,
      BAL_BF16,
      BAL_BF16 },
    { "precise, told",
      { BAL_BF16, BAL_BF16 },
      BAL_F16,
      false,
      false,
      BAL_F16,
      BAL_F16 },
};

static void mergekit_works_in_the_dtype_that_inputs_have_in_common(void)
{
    static const uint8_t zeros[64] = { 0 };
    uint8_t got[64];

    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
        const work *row = &works[i];
        bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);
        method.f32 = row->f32;
        BAL_OWN(bal_recipe)
        recipe = watch_recipe(&method, BAL_SPACE_WEIGHTS, 2, 0);
        bal_model *inputs[2];
        BAL_OWN(bal_model) view = NULL;

        check_row(row->name);
        for (size_t k = 0; k < 2; k++)
            inputs[k] = watch_input(BAL_KIND_WEIGHTS, row->dtypes[k], 8, zeros);
        recipe->mergekit = row->mergekit;
        recipe->dtype = row->told;
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        for (size_t k = 0; k < 2; k++)
            bal_model_free(inputs[k]);
        watch_read(view, got, bal_model_at(view, 0)->size);
        CHECK(bal_model_at(view, 0)->dtype == row->result);
        CHECK(watch_seen.arith.mergekit == row->mergekit);
        CHECK(!row->mergekit || watch_seen.arith.work == row->works_in);
    }
}

typedef struct rounding {
    const char *name;
    float base, input;
    int told;
    bool mergekit;
    double result; /* base + (input - base) */
} rounding;

/* 1 + 2^-7 is the BF16 behind 1, 1 + 2^-23 the F32. */
/* BF16 is 8 bits wide: from 128 on it has the whole numbers, from 1 on the
 * multiples of 1 / 128. */
static const rounding roundings[] = {
    { "exact in between", 256, 1, BAL_BF16, true, 1 },
    /* 1 + 1/128 - 256 is -255 in BF16. */
    { "the difference is rounded", 256, 1.0078125F, BAL_BF16, true, 1 },
    { "precise rounds once", 256, 1.0078125F, BAL_BF16, false, 1.0078125 },
    /* 128 less 1 + 1/128 is 127, and with it again 128. */
    { "the sum is rounded", 1.005859375F, 128.25F, BAL_BF16, true, 128 },
    { "in F32 each step is rounded", 16777216, 0.5F, -1, true, 0 },
    { "in double none is", 16777216, 0.5F, -1, false, 0.5 },
};

static void mergekit_rounds_every_step_and_precise_once(void)
{
    for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
        const rounding *row = &roundings[i];
        bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);
        BAL_OWN(bal_recipe)
        recipe = watch_recipe(&method, BAL_SPACE_WEIGHTS, 2, 0);
        BAL_OWN(bal_model)
        base = watch_input(BAL_KIND_WEIGHTS, BAL_F32, 1, &row->base);
        BAL_OWN(bal_model)
        input = watch_input(BAL_KIND_WEIGHTS, BAL_F32, 1, &row->input);
        bal_model *inputs[] = { base, input };
        BAL_OWN(bal_model) view = NULL;
        uint16_t half;
        float got;

        check_row(row->name);
        recipe->mergekit = row->mergekit;
        recipe->dtype = row->told;
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        if (row->told < 0) {
            watch_read(view, &got, sizeof(got));
        } else {
            watch_read(view, &half, sizeof(half));
            got = bf16_value(half);
        }
        CHECK((double)got == row->result);
    }
}

/* 1 + 3/1024 is 1 in BF16; two such differences to 1, 6/1024 together, would
 * make it 1 + 1/128. */
static void inputs_are_cast_to_a_dtype_that_is_told_before_anything(void)
{
    static const float values[] = { 1, 1.0029296875F, 1.0029296875F };
    bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);

    for (int mergekit = 0; mergekit < 2; mergekit++) {
        BAL_OWN(bal_recipe)
        recipe = watch_recipe(&method, BAL_SPACE_WEIGHTS, 3, 0);
        bal_model *inputs[3];
        BAL_OWN(bal_model) view = NULL;
        uint16_t got;

        for (size_t k = 0; k < 3; k++)
            inputs[k] = watch_input(BAL_KIND_WEIGHTS, BAL_F32, 1, &values[k]);
        recipe->mergekit = mergekit;
        recipe->dtype = BAL_BF16;
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        for (size_t k = 0; k < 3; k++)
            bal_model_free(inputs[k]);
        watch_read(view, &got, sizeof(got));
        CHECK(bf16_value(got) == (mergekit ? 1 : 1.0078125F));
    }
}

/* 256 + 2 - 1 is 257, which F32 has and BF16 has not. */
static void a_method_that_gives_f32_has_its_base_added_in_f32(void)
{
    static const uint16_t values[] = { 0x4380, 0x4381, 0x437f };
    bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);
    float got;

    method.f32 = true;
    BAL_OWN(bal_recipe) recipe = watch_recipe(&method, BAL_SPACE_WEIGHTS, 3, 0);
    recipe->mergekit = true;
    bal_model *inputs[3];
    BAL_OWN(bal_model) view = NULL;

    for (size_t k = 0; k < 3; k++)
        inputs[k] = watch_input(BAL_KIND_WEIGHTS, BAL_BF16, 1, &values[k]);
    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    for (size_t k = 0; k < 3; k++)
        bal_model_free(inputs[k]);
    watch_read(view, &got, sizeof(got));
    CHECK(got == 257);
}

/* ---- side files --------------------------------------------------------- */

static void side_files_are_the_bases(void)
{
    made_row rows[2][1] = {
        { { .name = "config.json", .part = BAL_PART_FILE, .bytes = "{1}" } },
        { { .name = "config.json", .part = BAL_PART_FILE, .bytes = "{2}" } },
    };
    bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);

    for (size_t base = 0; base < 2; base++) {
        BAL_OWN(bal_recipe)
        recipe = watch_recipe(&method, BAL_SPACE_WEIGHTS, 2, base);
        BAL_OWN(bal_model) a = made_model(BAL_KIND_WEIGHTS, NULL, rows[0], 1);
        BAL_OWN(bal_model) b = made_model(BAL_KIND_WEIGHTS, NULL, rows[1], 1);
        bal_model *inputs[] = { a, b };
        BAL_OWN(bal_model) view = NULL;
        char got[3];

        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        watch_read(view, got, sizeof(got));
        CHECK(got[1] == '1' + (char)base);
    }
}

static const check_test tests[] = {
    { TEST(a_base_is_to_a_method_what_its_row_says) },
    { TEST(mergekit_works_in_the_dtype_that_inputs_have_in_common) },
    { TEST(mergekit_rounds_every_step_and_precise_once) },
    { TEST(inputs_are_cast_to_a_dtype_that_is_told_before_anything) },
    { TEST(a_method_that_gives_f32_has_its_base_added_in_f32) },
    { TEST(side_files_are_the_bases) },
};

CHECK_MAIN(tests)
