/* Recipes: how they are put together. */
#include <string.h>

#include "core/json.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

/* A recipe of linear with inputs of these weights; 1 is not told. */
static bal_recipe *linear_of(const double *weights, size_t count)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    for (size_t i = 0; i < count; i++) {
        bal_input input = { .tenant = "acme", .weight = weights[i] };
        input.commit = made_id((unsigned)i + 1);
        input.manifest = made_id((unsigned)i + 101);
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    return recipe;
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void linear_is_a_method_with_its_parameters(void)
{
    const bal_method_info *info = bal_method_find("linear");

    CHECK(bal_method_count() >= 1);
    CHECK(info != NULL && info == bal_method_at(0));
    CHECK(!strcmp(info->params[0].name, "weight"));
    CHECK(info->params[0].per_input);
    CHECK(!strcmp(info->params[1].name, "normalize"));
    CHECK(!strcmp(info->params[1].fallback, "true"));
    CHECK(!info->params[2].name);
    CHECK(!bal_method_find("Linear"));
}

static void an_unknown_method_is_not_found(void)
{
    bal_recipe *recipe = NULL;

    CHECK_RC(BAL_ENOTFOUND, bal_recipe_new(&recipe, "lineal", &check_err));
    CHECK(contains(check_err.text, "lineal"));
    CHECK(!recipe);
}

typedef struct setting {
    const char *name, *value;
    int rc;
    const char *says;
} setting;

static const setting settings[] = {
    { "normalize", "false", 0, NULL },
    { "normalize", "YES", 0, NULL },
    { "normalize", "0", 0, NULL },
    { "normalize", "maybe", BAL_EINVAL, "'maybe' is not true or false" },
    { "normalize", "", BAL_EINVAL, "not true or false" },
    { "weight", "0.25", 0, NULL },
    { "weight", "nan", BAL_EINVAL, "weight" },
    { "weight", "1e999", BAL_EINVAL, "weight" },
    { "weight", "0.5x", BAL_EINVAL, "weight" },
    { "density", "0.5", BAL_EINVAL,
      "'linear' has no parameter 'density', it has: weight normalize" },
    { "", "1", BAL_EINVAL, "no parameter ''" },
    { "space", "delta", 0, NULL },
    { "space", "factors", 0, NULL },
    { "space", "product", 0, NULL },
    { "space", "auto", 0, NULL },
    { "space", "weights", 0, NULL },
    { "space", "Delta", BAL_EINVAL, "auto delta weights product factors" },
    { "strict", "true", 0, NULL },
    { "union", "true", 0, NULL },
    { "union", "2", BAL_EINVAL, "not true or false" },
    { "dtype", "BF16", 0, NULL },
    { "dtype", "bfloat16", 0, NULL },
    { "dtype", "float64", 0, NULL },
    { "dtype", "I8", BAL_EINVAL, "BF16 F16 F32 F64" },
    { "seed", "1", BAL_EINVAL, "draws no random numbers" },
    { "seed", "-1", BAL_EINVAL, "seed" },
    { "base", "main", BAL_EINVAL, "no parameter 'base'" },
    { "arithmetic", "precise", 0, NULL },
    { "arithmetic", "mergekit", 0, NULL },
    { "arithmetic", "sloppy", BAL_EINVAL, "sloppy" },
};

static void settings_are_checked_at_once(void)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const setting *row = &settings[i];
        BAL_OWN(bal_recipe) recipe = NULL;

        check_row(row->says ? row->says : row->value);
        CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
        CHECK_RC(row->rc,
                 bal_recipe_set(recipe, row->name, row->value, &check_err));
        CHECK(!row->says || contains(check_err.text, row->says));
    }
}

typedef struct bounded {
    bal_param param;
    const char *text;
    const char *says; /* NULL: fine */
} bounded;

/* Kinds of parameters that linear has none of. */
static const bounded bounds[] = {
    { { .name = "density",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = 0,
        .high = 1,
        .choices = NULL,
        .per_input = true },
      "0.5",
      NULL },
    { { .name = "density",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = 0,
        .high = 1,
        .choices = NULL,
        .per_input = true },
      "1.5",
      "density: 1.5 is not within 0 … 1" },
    { { .name = "max_iter",
        .type = BAL_PARAM_INT,
        .fallback = "10",
        .low = 1,
        .high = 1000,
        .choices = NULL,
        .per_input = false },
      "5",
      NULL },
    { { .name = "max_iter",
        .type = BAL_PARAM_INT,
        .fallback = "10",
        .low = 1,
        .high = 1000,
        .choices = NULL,
        .per_input = false },
      "0",
      "not within 1 … 1000" },
    { { .name = "max_iter",
        .type = BAL_PARAM_INT,
        .fallback = "10",
        .low = 1,
        .high = 1000,
        .choices = NULL,
        .per_input = false },
      "5.5",
      "max_iter" },
    { { .name = "consensus",
        .type = BAL_PARAM_NAME,
        .fallback = "sum",
        .low = 0,
        .high = 0,
        .choices = "sum|count",
        .per_input = false },
      "count",
      NULL },
    { { .name = "consensus",
        .type = BAL_PARAM_NAME,
        .fallback = "sum",
        .low = 0,
        .high = 0,
        .choices = "sum|count",
        .per_input = false },
      "coun",
      "none of sum|count" },
    { { .name = "consensus",
        .type = BAL_PARAM_NAME,
        .fallback = "sum",
        .low = 0,
        .high = 0,
        .choices = "sum|count",
        .per_input = false },
      "sum|count",
      "none of sum|count" },
};

static void parameters_of_every_type_have_bounds(void)
{
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const bounded *row = &bounds[i];
        bal_param params[2] = { row->param, { 0 } };
        bal_method method = { .info = { .name = "made", .params = params } };
        BAL_OWN(bal_recipe) recipe = NULL;

        check_row(row->text);
        CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
        recipe->method = &method;
        CHECK_RC(
            row->says ? BAL_EINVAL : 0,
            bal_recipe_set(recipe, row->param.name, row->text, &check_err));
        CHECK(!row->says || contains(check_err.text, row->says));
    }
}

typedef struct input_row {
    const char *text;
    const char *tenant, *spec; /* spec NULL: refused */
    const char *weight;
    const char *density; /* an own parameter, or part of the refusal */
} input_row;

static const input_row inputs[] = {
    { "support", NULL, "support", NULL, NULL },
    { "acme:support", "acme", "support", NULL, NULL },
    { "support@0.6", NULL, "support", "0.6", NULL },
    { "support@-2", NULL, "support", "-2", NULL },
    { "support@1e-3", NULL, "support", "1e-3", NULL },
    { "main@{1}", NULL, "main@{1}", NULL, NULL },
    { "main@{1}@0.5", NULL, "main@{1}", "0.5", NULL },
    { "main~2", NULL, "main~2", NULL, NULL },
    { "acme:main^@0.5,density=0.3", "acme", "main^", "0.5", "0.3" },
    { "main,density=0.3", NULL, "main", NULL, "0.3" },
    { "main,weight=0.7", NULL, "main", "0.7", NULL },
    { "main,density=", NULL, "main", NULL, "" },
    { "main@0,0.5,1", NULL, "main", "0,0.5,1", NULL },
    { "main@0,1,density=0.3", NULL, "main", "0,1", "0.3" },
    { "main@mlp:0.5;1", NULL, "main", "mlp:0.5;1", NULL },
    { "acme:main,density=mlp:0.1,1;0.5,weight=2", "acme", "main", "2",
      "mlp:0.1,1;0.5" },
    { "", NULL, NULL, NULL, "no commit" },
    { "acme:", NULL, NULL, NULL, "no commit" },
    { "@0.5", NULL, NULL, NULL, "no commit" },
    { ":main", NULL, NULL, NULL, "tenant" },
    { "a/b:main", NULL, NULL, NULL, "tenant" },
    { "main@", NULL, "main", "", NULL },
    { "main@0.5,weight=0.5", NULL, NULL, NULL, "twice" },
    { "main,a=1,a=2", NULL, NULL, NULL, "twice" },
    { "main,", NULL, NULL, NULL, "name=value" },
    { "main,density", NULL, NULL, NULL, "name=value" },
    { "main,=1", NULL, NULL, NULL, "name=value" },
};

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void inputs_are_taken_apart(void)
{
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        const input_row *row = &inputs[i];
        BAL_LOCAL(bal_arena) arena = { 0 };
        bal_input_text got = { 0 };

        check_row(row->text);
        CHECK_RC(row->spec ? 0 : BAL_EINVAL,
                 bal_input_parse(&got, &arena, row->text, &check_err));
        if (!row->spec) {
            CHECK(contains(check_err.text, row->density));
            continue;
        }
        CHECK(same_text(got.tenant, row->tenant));
        CHECK(same_text(got.spec, row->spec));
        CHECK(same_text(
            json_string_value(json_object_get(got.parameters, "weight")),
            row->weight));
        CHECK(same_text(
            json_string_value(json_object_get(got.parameters, "density")),
            row->density));
        json_decref(got.parameters);
    }
}

static void an_input_has_its_own_parameters_only(void)
{
    BAL_OWN(bal_recipe) recipe = linear_of(NULL, 0);
    bal_input input = { .tenant = "acme", .weight = 1 };

    input.parameters = json_pack("{s:s}", "normalize", "true");
    CHECK_RC(BAL_EINVAL, bal_recipe_add(recipe, &input, &check_err));
    CHECK(contains(check_err.text, "one for all inputs"));
    input.parameters = json_pack("{s:s}", "density", "0.3");
    CHECK_RC(BAL_EINVAL, bal_recipe_add(recipe, &input, &check_err));
    CHECK(contains(check_err.text, "it has: weight normalize"));
    input.parameters = NULL;
    input.weight = 1.0 / 0.0;
    CHECK_RC(BAL_EINVAL, bal_recipe_add(recipe, &input, &check_err));
    CHECK(bal_recipe_inputs(recipe) == 0);
}

static void a_weight_for_all_is_for_those_that_tell_none(void)
{
    static const double told[] = { 1, 0.5 };
    BAL_OWN(bal_recipe) recipe = linear_of(told, 2);
    bal_input one = { .tenant = "acme", .weight = 1 };

    CHECK_OK(bal_recipe_set(recipe, "weight", "2", &check_err));
    one.parameters = json_pack("{s:s}", "weight", "1");
    CHECK_OK(bal_recipe_add(recipe, &one, &check_err));
    one.parameters = NULL;
    CHECK_OK(bal_recipe_add(recipe, &one, &check_err));
    CHECK(recipe->inputs[0].weight == 2);
    CHECK(recipe->inputs[1].weight == 0.5);
    CHECK(recipe->inputs[2].weight == 1);
    CHECK(recipe->inputs[3].weight == 2);
}

static void a_recipe_has_so_many_inputs_and_no_more(void)
{
    BAL_OWN(bal_recipe) recipe = linear_of(NULL, 0);
    bal_input input = { .tenant = "acme", .weight = 1 };

    for (size_t i = 0; i < BAL_INPUTS_MAX; i++)
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    CHECK_RC(BAL_EINVAL, bal_recipe_add(recipe, &input, &check_err));
}

static const check_test tests[] = {
    { TEST(linear_is_a_method_with_its_parameters) },
    { TEST(an_unknown_method_is_not_found) },
    { TEST(settings_are_checked_at_once) },
    { TEST(parameters_of_every_type_have_bounds) },
    { TEST(inputs_are_taken_apart) },
    { TEST(an_input_has_its_own_parameters_only) },
    { TEST(a_weight_for_all_is_for_those_that_tell_none) },
    { TEST(a_recipe_has_so_many_inputs_and_no_more) },
};

CHECK_MAIN(tests)
