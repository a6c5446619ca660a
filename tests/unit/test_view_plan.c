/* Views: what becomes of a tensor or file, by what its inputs say of it. */
#include <string.h>

#include "core/error.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

/* An input's word on tensor "w". */
typedef enum said {
    NOTHING,
    CHANGED,  /* a difference, f32 */
    CHANGED2, /* the same, another base */
    LARGER,   /* the same, another shape */
    WIDE,     /* a difference, f64 */
    KEPT,
    GONE,
    NEW,    /* floats, whole, not in the base */
    NEWER,  /* the same, another shape */
    COUNT,  /* integers, whole; digest 1 */
    COUNT2, /* other integers; digest 2 */
    COUNT3, /* the integers of COUNT, digest not known */
    COUNT4, /* the integers of COUNT2, digest not known */
} said;

static bal_id ids[4];

static const float differences[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const double wides[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const int64_t counts[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const int64_t other_counts[8] = { 1, 2, 3, 4, 5, 6, 7, 9 };

static const made_row sayings[] = {
    [CHANGED] = { .name = "w",
                  .form = BAL_FORM_DIFFERENCE,
                  .dtype = BAL_F32,
                  .of = BAL_BF16,
                  .rank = 1,
                  .shape = { 8 },
                  .bytes = differences,
                  .base = &ids[1],
                  .tuned = &ids[2] },
    [CHANGED2] = { .name = "w",
                   .form = BAL_FORM_DIFFERENCE,
                   .dtype = BAL_F32,
                   .of = BAL_BF16,
                   .rank = 1,
                   .shape = { 8 },
                   .bytes = differences,
                   .base = &ids[2] },
    [LARGER] = { .name = "w",
                 .form = BAL_FORM_DIFFERENCE,
                 .dtype = BAL_F32,
                 .of = BAL_BF16,
                 .rank = 1,
                 .shape = { 4 },
                 .bytes = differences,
                 .base = &ids[1] },
    [WIDE] = { .name = "w",
               .form = BAL_FORM_DIFFERENCE,
               .dtype = BAL_F64,
               .of = BAL_F64,
               .rank = 1,
               .shape = { 8 },
               .bytes = wides,
               .base = &ids[1] },
    [KEPT] = { .name = "w",
               .form = BAL_FORM_SAME,
               .dtype = BAL_BF16,
               .rank = 1,
               .shape = { 8 },
               .base = &ids[1],
               .tuned = &ids[1] },
    [GONE] = { .name = "w",
               .form = BAL_FORM_REMOVED,
               .dtype = BAL_BF16,
               .rank = 1,
               .shape = { 8 },
               .base = &ids[1] },
    [NEW] = { .name = "w",
              .dtype = BAL_F32,
              .rank = 1,
              .shape = { 8 },
              .bytes = differences,
              .tuned = &ids[3] },
    [NEWER] = { .name = "w",
                .dtype = BAL_F32,
                .rank = 1,
                .shape = { 4 },
                .bytes = differences },
    [COUNT] = { .name = "w",
                .dtype = BAL_I64,
                .rank = 1,
                .shape = { 8 },
                .bytes = counts,
                .tuned = &ids[1] },
    [COUNT2] = { .name = "w",
                 .dtype = BAL_I64,
                 .rank = 1,
                 .shape = { 8 },
                 .bytes = other_counts,
                 .tuned = &ids[2] },
    [COUNT3] = { .name = "w",
                 .dtype = BAL_I64,
                 .rank = 1,
                 .shape = { 8 },
                 .bytes = counts },
    [COUNT4] = { .name = "w",
                 .dtype = BAL_I64,
                 .rank = 1,
                 .shape = { 8 },
                 .bytes = other_counts },
};

static bal_model *model_of(said word)
{
    return made_model(BAL_KIND_DELTA, NULL, &sayings[word], word != NOTHING);
}

static bal_recipe *recipe_of(size_t count)
{
    bal_recipe *recipe = NULL;
    bal_input input = { .tenant = "acme", .weight = 1 };

    for (unsigned i = 0; i < 4; i++)
        ids[i] = made_id(i);
    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    recipe->space = BAL_SPACE_DELTA;
    return recipe;
}

typedef struct plan_row {
    said a, b;
    bool strict;
    int rc;
    const char *says; /* of a refusal */
    bal_form form;
    bal_dtype dtype;
    double first; /* value of the first element, where there are bytes */
} plan_row;

static const plan_row rows[] = {
    { CHANGED, CHANGED, true, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F32, 1 },
    { CHANGED, KEPT, true, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F32, 0.5 },
    { KEPT, CHANGED, false, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F32, 0.5 },
    { CHANGED, NOTHING, false, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F32, 0.5 },
    { CHANGED, NOTHING, true, BAL_EINVAL, "tensor 'w' is not in input 2", 0, 0,
      0 },
    { NOTHING, CHANGED, true, BAL_EINVAL, "tensor 'w' is not in input 1", 0, 0,
      0 },
    { CHANGED, GONE, false, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F32, 0.5 },
    { CHANGED, WIDE, false, 0, NULL, BAL_FORM_DIFFERENCE, BAL_F64, 1 },
    { CHANGED, CHANGED2, false, BAL_EINVAL,
      "deltas of different bases: tensor 'w'", 0, 0, 0 },
    { KEPT, CHANGED2, false, BAL_EINVAL, "different bases", 0, 0, 0 },
    { CHANGED, LARGER, false, BAL_EINVAL, "another shape in input 2", 0, 0, 0 },
    { CHANGED, NEW, false, BAL_EUNSUPPORTED,
      "replaced in input 2 and not in input 1", 0, 0, 0 },
    { KEPT, KEPT, false, 0, NULL, BAL_FORM_SAME, BAL_BF16, 0 },
    { KEPT, NOTHING, false, 0, NULL, BAL_FORM_SAME, BAL_BF16, 0 },
    { KEPT, GONE, false, 0, NULL, BAL_FORM_SAME, BAL_BF16, 0 },
    { GONE, GONE, false, 0, NULL, BAL_FORM_REMOVED, BAL_BF16, 0 },
    { GONE, NOTHING, false, 0, NULL, BAL_FORM_REMOVED, BAL_BF16, 0 },
    { NEW, NEW, false, 0, NULL, BAL_FORM_WHOLE, BAL_F32, 1 },
    { NEW, NOTHING, false, 0, NULL, BAL_FORM_WHOLE, BAL_F32, 1 },
    { NEW, NEWER, false, BAL_EINVAL, "another shape", 0, 0, 0 },
    { NEW, KEPT, false, BAL_EUNSUPPORTED, "replaced in input 1", 0, 0, 0 },
    { NEW, COUNT, false, BAL_EUNSUPPORTED, "only floats", 0, 0, 0 },
    { COUNT, COUNT, false, 0, NULL, BAL_FORM_WHOLE, BAL_I64, 1 },
    { COUNT, NOTHING, false, 0, NULL, BAL_FORM_WHOLE, BAL_I64, 1 },
    { COUNT, COUNT3, false, 0, NULL, BAL_FORM_WHOLE, BAL_I64, 1 },
    { COUNT3, COUNT3, false, 0, NULL, BAL_FORM_WHOLE, BAL_I64, 1 },
    { COUNT, COUNT2, false, BAL_EUNSUPPORTED,
      "tensor 'w' is not the same in input 1 and in input 2", 0, 0, 0 },
    { COUNT, KEPT, false, BAL_EUNSUPPORTED, "replaced in input 1", 0, 0, 0 },
};

/* The first element as a double, whatever it is of. */
static double first_of(bal_model *view)
{
    const bal_tensor *entry = bal_model_at(view, 0);
    uint8_t bytes[64];
    double value;
    float single;
    int64_t whole;

    if (!entry->size)
        return 0;
    CHECK_OK(bal_model_read(view, 0, 0, bytes, entry->size, &check_err));
    memcpy(&value, bytes, sizeof(value));
    memcpy(&single, bytes, sizeof(single));
    memcpy(&whole, bytes, sizeof(whole));
    if (entry->dtype == BAL_F32)
        return (double)single;
    return entry->dtype == BAL_F64 ? value : (double)whole;
}

static void tensors_come_about_by_what_inputs_say(void)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const plan_row *row = &rows[r];
        BAL_OWN(bal_recipe) recipe = recipe_of(2);
        BAL_OWN(bal_model) a = model_of(row->a);
        BAL_OWN(bal_model) b = model_of(row->b);
        BAL_OWN(bal_model) view = NULL;
        bal_model *inputs[] = { a, b };
        char name[32];

        snprintf(name, sizeof(name), "%d %d", row->a, row->b);
        check_row(name);
        recipe->strict = row->strict;
        CHECK_RC(row->rc,
                 bal_view_open(&view, recipe, inputs, NULL, &check_err));
        if (row->rc) {
            CHECK(strstr(check_err.text, row->says) != NULL);
            continue;
        }
        CHECK(bal_model_count(view) == 1);
        CHECK(bal_model_at(view, 0)->form == row->form);
        CHECK(bal_model_at(view, 0)->dtype == row->dtype);
        CHECK(first_of(view) == row->first);
    }
}

static void a_merged_difference_keeps_what_is_known_of_the_base(void)
{
    BAL_OWN(bal_recipe) recipe = recipe_of(2);
    BAL_OWN(bal_model) a = model_of(CHANGED);
    BAL_OWN(bal_model) view = NULL;
    bal_model *inputs[] = { a, a };

    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    const bal_tensor *entry = bal_model_at(view, 0);
    CHECK(entry->base && !memcmp(entry->base, &ids[1], sizeof(ids[1])));
    CHECK(!entry->tuned);
    CHECK(entry->of == BAL_BF16);
}

static void unequal_integers_are_found_when_they_are_read(void)
{
    BAL_OWN(bal_recipe) recipe = recipe_of(2);
    BAL_OWN(bal_model) a = model_of(COUNT3);
    BAL_OWN(bal_model) b = model_of(COUNT4);
    BAL_OWN(bal_model) view = NULL;
    bal_model *inputs[] = { a, b };
    uint8_t bytes[64];

    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    CHECK_RC(BAL_EUNSUPPORTED,
             bal_model_read(view, 0, 0, bytes, sizeof(bytes), &check_err));
    CHECK(strstr(check_err.text, "tensor 'w'") != NULL);
    CHECK(strstr(check_err.text, "input 2") != NULL);
}

static void one_delta_passes_through_bit_by_bit(void)
{
    static const uint16_t residual[8] = { 1, 0, 0, 0, 0, 0, 0, 65535 };
    made_row parts[] = {
        {
            .name = "w",
            .form = BAL_FORM_DIFFERENCE,
            .dtype = BAL_F32,
            .of = BAL_BF16,
            .rank = 1,
            .shape = { 8 },
            .bytes = differences,
            .base = &ids[1],
            .tuned = &ids[2],
        },
        {
            .name = "w",
            .form = BAL_FORM_RESIDUAL,
            .dtype = BAL_U16,
            .rank = 1,
            .shape = { 8 },
            .bytes = residual,
        },
        { .name = "config.json", .part = BAL_PART_FILE, .bytes = "{}" },
        { .name = "model.safetensors",
          .part = BAL_PART_HEADER,
          .bytes = "{}  " },
    };
    BAL_OWN(bal_recipe) recipe = recipe_of(1);
    BAL_OWN(bal_model) delta = made_model(BAL_KIND_DELTA, "m", parts, 4);
    BAL_OWN(bal_model) view = NULL;
    BAL_OWN(bal_model) half = NULL;
    uint16_t got[8];

    json_object_set_new(recipe->inputs[0].parameters, "weight",
                        json_string("0.25")); /* normalized: all of it */
    CHECK_OK(bal_view_open(&view, recipe, &delta, NULL, &check_err));
    CHECK(bal_model_count(view) == 4);
    CHECK(bal_model_at(view, 1)->form == BAL_FORM_RESIDUAL);
    CHECK(bal_model_at(view, 0)->tuned != NULL);
    CHECK_OK(bal_model_read(view, 1, 0, got, sizeof(got), &check_err));
    CHECK(!memcmp(got, residual, sizeof(got)));

    CHECK_OK(bal_recipe_set(recipe, "normalize", "false", &check_err));
    CHECK_OK(bal_view_open(&half, recipe, &delta, NULL, &check_err));
    CHECK(bal_model_count(half) == 2); /* tensor and file */
    CHECK(first_of(half) == 0.25);
}

static void a_dtype_asked_for_reaches_unchanged_tensors(void)
{
    BAL_OWN(bal_recipe) recipe = recipe_of(2);
    BAL_OWN(bal_model) kept = model_of(KEPT);
    BAL_OWN(bal_model) changed = model_of(CHANGED);
    BAL_OWN(bal_model) same = NULL;
    BAL_OWN(bal_model) cast = NULL;
    BAL_OWN(bal_model) merged = NULL;
    bal_model *inputs[] = { kept, kept };
    bal_model *both[] = { kept, changed };
    uint32_t got[8];

    recipe->dtype = BAL_BF16;
    CHECK_OK(bal_view_open(&same, recipe, inputs, NULL, &check_err));
    CHECK(bal_model_at(same, 0)->form == BAL_FORM_SAME);
    recipe->dtype = BAL_F16;
    CHECK_OK(bal_view_open(&cast, recipe, inputs, NULL, &check_err));
    CHECK(bal_model_at(cast, 0)->form == BAL_FORM_DIFFERENCE);
    CHECK(bal_model_at(cast, 0)->of == BAL_F16);
    CHECK_OK(bal_model_read(cast, 0, 0, got, sizeof(got), &check_err));
    for (size_t i = 0; i < 8; i++)
        CHECK(got[i] == 0x80000000);
    CHECK_OK(bal_view_open(&merged, recipe, both, NULL, &check_err));
    CHECK(bal_model_at(merged, 0)->of == BAL_F16);
}

static void weights_that_sum_to_zero_for_a_tensor_are_refused(void)
{
    made_row tensors[] = {
        { .name = "w",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = differences },
        { .name = "x",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = differences },
    };
    BAL_OWN(bal_recipe) recipe = recipe_of(3);
    BAL_OWN(bal_model) both = made_model(BAL_KIND_WEIGHTS, NULL, tensors, 2);
    BAL_OWN(bal_model) one = made_model(BAL_KIND_WEIGHTS, NULL, tensors, 1);
    BAL_OWN(bal_model) view = NULL;
    bal_model *inputs[] = { both, both, one };

    recipe->space = BAL_SPACE_WEIGHTS;
    json_object_set_new(recipe->inputs[1].parameters, "weight",
                        json_string("-1"));
    CHECK_RC(BAL_EINVAL,
             bal_view_open(&view, recipe, inputs, NULL, &check_err));
    CHECK(strstr(check_err.text, "tensor 'x'") != NULL);
}

/* ---- files and headers -------------------------------------------------- */

static char warned[512];

static void keep_warning(void *ctx, bal_level level, const char *area,
                         const char *line)
{
    (void)ctx;
    (void)area;
    if (level == BAL_WARNING)
        snprintf(warned, sizeof(warned), "%s", line);
}

typedef struct file_row {
    const char *what;
    made_row a, b; /* name NULL: not there */
    bal_form form;
    const char *text;
    bool warns;
} file_row;

static const char config[] = "config.json";

static const file_row files[] = {
    { "the same",
      { .name = config, .part = BAL_PART_FILE, .bytes = "{}" },
      { .name = config, .part = BAL_PART_FILE, .bytes = "{}" },
      BAL_FORM_WHOLE,
      "{}",
      false },
    { "two changes",
      { .name = config, .part = BAL_PART_FILE, .bytes = "{1}" },
      { .name = config, .part = BAL_PART_FILE, .bytes = "{22}" },
      BAL_FORM_WHOLE,
      "{1}",
      true },
    { "one change",
      { .name = config, .part = BAL_PART_FILE, .form = BAL_FORM_SAME },
      { .name = config, .part = BAL_PART_FILE, .bytes = "{22}" },
      BAL_FORM_WHOLE,
      "{22}",
      false },
    { "one has it",
      { 0 },
      { .name = config, .part = BAL_PART_FILE, .bytes = "{22}" },
      BAL_FORM_WHOLE,
      "{22}",
      false },
    { "one removed it",
      { .name = config, .part = BAL_PART_FILE, .form = BAL_FORM_REMOVED },
      { .name = config, .part = BAL_PART_FILE, .form = BAL_FORM_SAME },
      BAL_FORM_SAME,
      "",
      false },
    { "all removed it",
      { .name = config, .part = BAL_PART_FILE, .form = BAL_FORM_REMOVED },
      { .name = config, .part = BAL_PART_FILE, .form = BAL_FORM_REMOVED },
      BAL_FORM_REMOVED,
      "",
      false },
};

static void files_are_taken_from_the_first_that_changed_them(void)
{
    bal_log_to(keep_warning, NULL);
    for (size_t r = 0; r < sizeof(files) / sizeof(files[0]); r++) {
        const file_row *row = &files[r];
        BAL_OWN(bal_recipe) recipe = recipe_of(2);
        BAL_OWN(bal_model)
        a = made_model(BAL_KIND_DELTA, NULL, &row->a, row->a.name != NULL);
        BAL_OWN(bal_model) b = made_model(BAL_KIND_DELTA, NULL, &row->b, 1);
        BAL_OWN(bal_model) view = NULL;
        bal_model *inputs[] = { a, b };
        char got[8] = { 0 };

        check_row(row->what);
        warned[0] = '\0';
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        CHECK(bal_model_count(view) == 1);
        CHECK(bal_model_at(view, 0)->form == row->form);
        CHECK_OK(bal_model_read(view, 0, 0, got, bal_model_at(view, 0)->size,
                                &check_err));
        CHECK(!strcmp(got, row->text));
        CHECK(row->warns == (strstr(warned, "config.json") != NULL));
    }
    bal_log_to(NULL, NULL);
}

static void headers_are_kept_while_they_describe_the_result(void)
{
    made_row parts[] = {
        { .name = "w",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = differences },
        { .name = "m.safetensors", .part = BAL_PART_HEADER, .bytes = "{} " },
        { .name = "x",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 8 },
          .bytes = differences },
    };
    BAL_OWN(bal_recipe) recipe = recipe_of(2);
    BAL_OWN(bal_model) small = made_model(BAL_KIND_WEIGHTS, NULL, parts, 2);
    BAL_OWN(bal_model) large = made_model(BAL_KIND_WEIGHTS, NULL, parts, 3);
    BAL_OWN(bal_model) kept = NULL;
    BAL_OWN(bal_model) grown = NULL;
    BAL_OWN(bal_model) cast = NULL;
    bal_model *alike[] = { small, small };
    bal_model *unlike[] = { small, large };

    recipe->space = BAL_SPACE_WEIGHTS;
    CHECK_OK(bal_view_open(&kept, recipe, alike, NULL, &check_err));
    CHECK(bal_model_find(kept, BAL_PART_HEADER, "m.safetensors") != BAL_NONE);
    CHECK_OK(bal_view_open(&grown, recipe, unlike, NULL, &check_err));
    CHECK(bal_model_find(grown, BAL_PART_HEADER, "m.safetensors") == BAL_NONE);
    recipe->dtype = BAL_BF16;
    CHECK_OK(bal_view_open(&cast, recipe, alike, NULL, &check_err));
    CHECK(bal_model_find(cast, BAL_PART_HEADER, "m.safetensors") == BAL_NONE);
}

static const check_test tests[] = {
    { TEST(tensors_come_about_by_what_inputs_say) },
    { TEST(a_merged_difference_keeps_what_is_known_of_the_base) },
    { TEST(unequal_integers_are_found_when_they_are_read) },
    { TEST(one_delta_passes_through_bit_by_bit) },
    { TEST(a_dtype_asked_for_reaches_unchanged_tensors) },
    { TEST(weights_that_sum_to_zero_for_a_tensor_are_refused) },
    { TEST(files_are_taken_from_the_first_that_changed_them) },
    { TEST(headers_are_kept_while_they_describe_the_result) },
};

CHECK_MAIN(tests)
