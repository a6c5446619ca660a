/* Where a parameter may be told, and which of these counts for a tensor. */
#include <string.h>

#include "merge/values.h"
#include "support/check.h"
#include "support/made_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Of ties: weight and density are each input's, lambda is all inputs'. */
typedef struct telling {
    const char *name; /* of the parameter, and the row */
    const char *own, *slice, *recipe;
    const char *input, *output; /* what it calls the tensor, what that is */
    double depth;
    bool mergekit;
    double want;
    const char *says; /* NULL: it is told */
} telling;

static const char layer[] = "model.layers.1.mlp.w";
static const char norm[] = "model.norm.w";

static const telling tellings[] = {
    { "density", NULL, NULL, NULL, layer, layer, 0, false, 1, NULL },
    { "density", NULL, NULL, "0.5", layer, layer, 0, false, 0.5, NULL },
    { "density", NULL, "0.25", "0.5", layer, layer, 0, false, 0.25, NULL },
    { "density", "0.1", "0.25", "0.5", layer, layer, 0, false, 0.1, NULL },
    /* What is told for other tensors is passed by. */
    { "density", "mlp:0.1", "0.25", "0.5", norm, norm, 0, false, 0.25, NULL },
    { "density", "mlp:0.1", "attn:0.25", "0.5", norm, norm, 0, false, 0.5,
      NULL },
    { "density", "mlp:0.1", "attn:0.25", "x:0.5", norm, norm, 0, false, 1,
      NULL },
    { "density", "mlp:0.1", "attn:0.25", "x:0.5", norm, norm, 0, true, 1,
      NULL },
    { "density", "mlp:0,1", "0.25", NULL, layer, layer, 0.5, false, 0.5, NULL },
    /* Filters of an input's parameters see its own name, others the
     * result's. */
    { "density", "s.1:0.1", "0.25", NULL, layer, "model.layers.7.w", 0, false,
      0.1, NULL },
    { "density", "s.7:0.1", "0.25", NULL, layer, "model.layers.7.w", 0, false,
      0.25, NULL },
    { "lambda", NULL, "s.7:3;4", "5", layer, "model.layers.7.w", 0, false, 3,
      NULL },
    { "lambda", NULL, "s.1:3;4", "5", layer, "model.layers.7.w", 0, false, 4,
      NULL },
    { "lambda", NULL, NULL, "5", layer, layer, 0, true, 5, NULL },
    { "lambda", NULL, NULL, NULL, layer, layer, 0, true, 1, NULL },
    /* A weight has no default in mergekit's arithmetic, once it is told. */
    { "weight", NULL, NULL, NULL, norm, norm, 0, false, 1, NULL },
    { "weight", NULL, NULL, NULL, norm, norm, 0, true, 1, NULL },
    { "weight", "mlp:2", NULL, NULL, norm, norm, 0, false, 1, NULL },
    { "weight", "mlp:2", NULL, NULL, layer, layer, 0, true, 2, NULL },
    { "weight", "mlp:2", NULL, NULL, norm, norm, 0, true, 0,
      "input 1: no 'weight' is told for tensor 'model.norm.w'" },
    { "weight", NULL, "mlp:2", NULL, norm, norm, 0, true, 0, "no 'weight'" },
    { "weight", NULL, NULL, "mlp:2", norm, norm, 0, true, 0, "no 'weight'" },
    { "weight", "mlp:2", NULL, "3", norm, norm, 0, true, 3, NULL },
    { "weight", "mlp:2", "attn:3", "4", norm, norm, 0, true, 4, NULL },
};

static json_t *object_of(const char *name, const char *text)
{
    return text ? json_pack("{s:s}", name, text) : NULL;
}

static bal_recipe *recipe_of(const telling *row)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "ties", &check_err));
    recipe->mergekit = row->mergekit;
    if (row->slice)
        CHECK_OK(bal_recipe_add_slice(recipe, object_of(row->name, row->slice),
                                      &check_err));
    if (row->recipe)
        CHECK_OK(bal_recipe_set(recipe, row->name, row->recipe, &check_err));
    for (unsigned i = 0; i < 2; i++) {
        bal_input input = { .tenant = "acme", .weight = 1, .end = 1 };
        input.commit = made_id(i + 1);
        input.parameters = object_of(row->name, i ? NULL : row->own);
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    return recipe;
}

static double value_of(const bal_values *values, const char *name)
{
    return bal_param_find(values->params, name)->per_input
               ? bal_value_input(values, 0, name)
               : bal_value_float(values, name);
}

static void the_nearest_that_tells_a_tensor_counts(void)
{
    for (size_t i = 0; i < COUNT(tellings); i++) {
        const telling *row = &tellings[i];
        BAL_OWN(bal_recipe) recipe = recipe_of(row);
        BAL_LOCAL(bal_rules) rules = { 0 };
        BAL_LOCAL(bal_values) values = { 0 };
        /* The second takes no part in this tensor. */
        const bal_place places[] = { { row->input, row->depth }, { 0 } };
        const bal_where where = { 0, { row->output, row->depth }, places };

        check_row(row->name);
        CHECK_OK(bal_rules_init(&rules, recipe, &check_err));
        CHECK_OK(bal_values_room(&values, &rules, &check_err));
        CHECK_RC(row->says ? BAL_EINVAL : 0,
                 bal_values_fill(&values, &rules, &where, &check_err));
        CHECK(!row->says || strstr(check_err.text, row->says));
        CHECK(row->says || value_of(&values, row->name) == row->want);
        CHECK(row->says || bal_value_input(&values, 1, "density") == 0);
    }
}

static void each_slice_has_its_own(void)
{
    static const char *const told[] = { "2", NULL, "4" };
    static const double want[] = { 2, 9, 4 };
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_LOCAL(bal_rules) rules = { 0 };
    BAL_LOCAL(bal_values) values = { 0 };
    const bal_place nobody[3] = { { 0 } };

    CHECK_OK(bal_recipe_new(&recipe, "ties", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "lambda", "9", &check_err));
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(bal_recipe_add_slice(recipe, object_of("lambda", told[i]),
                                      &check_err));
    for (size_t i = 0; i < 3; i++) {
        bal_input input = { .tenant = "acme", .weight = 1, .slice = i };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    CHECK_OK(bal_rules_init(&rules, recipe, &check_err));
    CHECK(!rules.plain && rules.slices == 3);
    CHECK_OK(bal_values_room(&values, &rules, &check_err));
    for (size_t i = 0; i < 3; i++) {
        const bal_where where = { i, { layer, 0 }, nobody };
        CHECK_OK(bal_values_fill(&values, &rules, &where, &check_err));
        CHECK(bal_value_float(&values, "lambda") == want[i]);
    }
}

static const struct {
    const char *own, *recipe;
    bool mergekit, plain;
    const char *weight; /* of the first, as it is recorded */
} plains[] = {
    { NULL, NULL, false, true, "1" },
    { "0.5", "0.25", false, true, "0.5" },
    { NULL, "0.25", false, true, "0.25" },
    { "*:0.5", NULL, false, true, "0.5" },
    { "0,1", NULL, false, false, "0,1" },
    { "mlp:0.5", NULL, false, false, "mlp:0.5;1" },
    { "mlp:0.5", "attn:2", false, false, "mlp:0.5;attn:2;1" },
    { "mlp:0.5", NULL, true, false, "mlp:0.5" },
    { "mlp:0.5", "3", true, false, "mlp:0.5;3" },
    { NULL, NULL, true, true, "1" },
};

static void what_is_the_same_for_all_is_known_to_be(void)
{
    for (size_t i = 0; i < COUNT(plains); i++) {
        const telling row = { .name = "weight",
                              .own = plains[i].own,
                              .recipe = plains[i].recipe,
                              .mergekit = plains[i].mergekit };
        BAL_OWN(bal_recipe) recipe = recipe_of(&row);
        BAL_LOCAL(bal_rules) rules = { 0 };
        BAL_LOCAL(bal_buf) text = { 0 };

        check_row(plains[i].weight);
        CHECK_OK(bal_rules_init(&rules, recipe, &check_err));
        CHECK(rules.plain == plains[i].plain);
        CHECK_OK(bal_rules_weight(&text, &rules, 0, &check_err));
        CHECK(!strcmp(bal_buf_string(&text), plains[i].weight));
    }
}

static void a_required_parameter_may_be_told_for_some_tensors_alone(void)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_LOCAL(bal_rules) none = { 0 };
    BAL_LOCAL(bal_rules) rules = { 0 };
    BAL_LOCAL(bal_values) values = { 0 };
    const bal_where where = { 0, { norm, 0 }, NULL };

    CHECK_OK(bal_recipe_new(&recipe, "slerp", &check_err));
    CHECK_RC(BAL_EINVAL, bal_rules_init(&none, recipe, &check_err));
    CHECK(strstr(check_err.text, "parameter 't' is required") != NULL);
    CHECK_OK(bal_recipe_set(recipe, "t", "mlp:0.5", &check_err));
    CHECK_OK(bal_rules_init(&rules, recipe, &check_err));
    CHECK_OK(bal_values_room(&values, &rules, &check_err));
    CHECK_RC(BAL_EINVAL, bal_values_fill(&values, &rules, &where, &check_err));
    CHECK(strstr(check_err.text, "no 't' is told for tensor 'model.norm.w'") !=
          NULL);
}

static const check_test tests[] = {
    { TEST(the_nearest_that_tells_a_tensor_counts) },
    { TEST(each_slice_has_its_own) },
    { TEST(what_is_the_same_for_all_is_known_to_be) },
    { TEST(a_required_parameter_may_be_told_for_some_tensors_alone) },
};

CHECK_MAIN(tests)
