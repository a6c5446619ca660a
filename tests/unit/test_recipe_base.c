/* Recipes: the base, the seed and the arithmetic, of methods that have a use
 * for them. */
#include <string.h>

#include "core/json.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

static bal_input input_of(unsigned id)
{
    bal_input input = { .tenant = "acme", .weight = 1 };

    input.commit = made_id(id);
    input.manifest = made_id(id + 100);
    return input;
}

/* With inputs 1 … count. */
static bal_recipe *recipe_of(const char *method, unsigned count)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, method, &check_err));
    for (unsigned i = 0; i < count; i++) {
        bal_input input = input_of(i + 1);
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    return recipe;
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* ---- the base ----------------------------------------------------------- */

typedef struct naming {
    const char *name, *method;
    unsigned id; /* of the base, beside inputs 1 and 2 */
    const char *weight, *tenant;
    int rc;
    size_t base, count; /* after that */
} naming;

static const naming namings[] = {
    { "one more", "ties", 3, NULL, "acme", 0, 2, 3 },
    { "one of them", "ties", 1, NULL, "acme", 0, 0, 2 },
    { "another tenant's", "ties", 1, NULL, "beta", 0, 2, 3 },
    { "with a weight", "ties", 3, "0.5", "acme", BAL_EINVAL, BAL_NONE, 2 },
    { "with the weight 1", "ties", 3, "1", "acme", BAL_EINVAL, BAL_NONE, 2 },
    { "one more of linear", "linear", 3, "0.5", "acme", 0, 2, 3 },
    { "one of linear's", "linear", 2, NULL, "acme", 0, 1, 2 },
    { "one of linear's, with a weight", "linear", 2, "0.5", "acme", 0, 2, 3 },
};

static void a_base_is_an_input_that_is_there_or_one_more(void)
{
    for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++) {
        const naming *row = &namings[i];
        BAL_OWN(bal_recipe) recipe = recipe_of(row->method, 2);
        bal_input input = input_of(row->id);

        check_row(row->name);
        snprintf(input.tenant, sizeof(input.tenant), "%s", row->tenant);
        if (row->weight)
            input.parameters = json_pack("{s:s}", "weight", row->weight);
        CHECK_RC(row->rc, bal_recipe_add_base(recipe, &input, &check_err));
        CHECK(recipe->slices[0].base == row->base);
        CHECK(bal_recipe_inputs(recipe) == row->count);
    }
}

static void there_is_one_base_and_no_weight_is_its(void)
{
    BAL_OWN(bal_recipe) recipe = recipe_of("ties", 1);
    bal_input weighted = input_of(2);
    bal_input input = input_of(2);

    weighted.weight = 0.5;
    CHECK_OK(bal_recipe_add(recipe, &weighted, &check_err));
    CHECK_RC(BAL_EINVAL, bal_recipe_add_base(recipe, &input, &check_err));
    CHECK(contains(check_err.text, "'ties' takes no weight"));
    input = input_of(3);
    CHECK_OK(bal_recipe_add_base(recipe, &input, &check_err));
    CHECK_OK(bal_recipe_set(recipe, "weight", "0.25", &check_err));
    CHECK(recipe->inputs[0].weight == 0.25);
    CHECK(recipe->inputs[2].weight == 1);
    input = input_of(4);
    CHECK_RC(BAL_EINVAL, bal_recipe_add_base(recipe, &input, &check_err));
    CHECK(contains(check_err.text, "second base"));
    CHECK(bal_recipe_inputs(recipe) == 3);
}

/* ---- settling ----------------------------------------------------------- */

typedef struct settling {
    const char *name, *method;
    unsigned count;
    bal_kind kind;
    size_t base;
    const char *set, *value; /* beside what is required */
    int rc;
    size_t settled;   /* the base, when it went well */
    const char *says; /* in text or hint, when it did not */
} settling;

static const settling settlings[] = {
    { "of differences", "ties", 2, BAL_KIND_DELTA, BAL_NONE, NULL, NULL, 0,
      BAL_NONE, NULL },
    { "of models", "ties", 2, BAL_KIND_WEIGHTS, 1, NULL, NULL, 0, 1, NULL },
    { "of factors", "ties", 2, BAL_KIND_ADAPTER, BAL_NONE, "space", "factors",
      0, BAL_NONE, NULL },
    { "the base is missing", "ties", 2, BAL_KIND_WEIGHTS, BAL_NONE, NULL, NULL,
      BAL_EINVAL, 0, "needs a base" },
    { "and is asked for", "ties", 2, BAL_KIND_WEIGHTS, BAL_NONE, NULL, NULL,
      BAL_EINVAL, 0, "--base" },
    { "a base can do without", "nuslerp", 2, BAL_KIND_WEIGHTS, BAL_NONE, NULL,
      NULL, 0, BAL_NONE, NULL },
    { "the base alone", "ties", 1, BAL_KIND_WEIGHTS, 0, NULL, NULL, 0, 0,
      NULL },
    { "the base does not count", "nuslerp", 2, BAL_KIND_WEIGHTS, 0, NULL, NULL,
      BAL_EINVAL, 0, "takes 2 inputs beside the base" },
    { "nor here", "nuslerp", 3, BAL_KIND_WEIGHTS, 2, NULL, NULL, 0, 2, NULL },
    { "from the first", "slerp", 2, BAL_KIND_WEIGHTS, BAL_NONE, NULL, NULL, 0,
      0, NULL },
    { "from the first of differences", "slerp", 2, BAL_KIND_DELTA, BAL_NONE,
      NULL, NULL, 0, 0, NULL },
    { "from the one that is named", "slerp", 2, BAL_KIND_WEIGHTS, 1, NULL, NULL,
      0, 1, NULL },
    { "to nowhere", "slerp", 1, BAL_KIND_WEIGHTS, 0, NULL, NULL, BAL_EINVAL, 0,
      "takes 1 input beside the base" },
    { "to too many", "slerp", 3, BAL_KIND_WEIGHTS, BAL_NONE, NULL, NULL,
      BAL_EINVAL, 0, "takes 1 input at most beside the base" },
    { "maps in another arithmetic", "linear", 2, BAL_KIND_ADAPTER, BAL_NONE,
      "arithmetic", "mergekit", BAL_EUNSUPPORTED, 0, "--space factors" },
    { "maps to a base", "task_arithmetic", 2, BAL_KIND_ADAPTER, 0, NULL, NULL,
      BAL_EINVAL, 0, "no base" },
    { "maps that are no sum", "ties", 2, BAL_KIND_ADAPTER, BAL_NONE, NULL, NULL,
      BAL_EUNSUPPORTED, 0, "as the maps" },
    { "none at all", "linear", 0, BAL_KIND_DELTA, BAL_NONE, NULL, NULL,
      BAL_EINVAL, 0, "takes 1 input or more" },
};

static void require(bal_recipe *recipe)
{
    if (!strcmp(recipe->method->info.name, "slerp"))
        CHECK_OK(bal_recipe_set(recipe, "t", "0.5", &check_err));
}

static void a_base_is_there_where_it_is_needed(void)
{
    for (size_t i = 0; i < sizeof(settlings) / sizeof(settlings[0]); i++) {
        const settling *row = &settlings[i];
        BAL_OWN(bal_recipe) recipe = recipe_of(row->method, row->count);
        BAL_OWN(bal_model) model = made_model(row->kind, NULL, NULL, 0);
        bal_model *models[] = { model, model, model };

        check_row(row->name);
        require(recipe);
        recipe->slices[0].base = row->base;
        if (row->set)
            CHECK_OK(bal_recipe_set(recipe, row->set, row->value, &check_err));
        memset(&check_err, 0, sizeof(check_err));
        CHECK_RC(row->rc, bal_recipe_settle(recipe, models, &check_err));
        CHECK(!row->says || contains(check_err.text, row->says) ||
              contains(check_err.hint, row->says));
        CHECK(row->rc || recipe->slices[0].base == row->settled);
    }
}

/* ---- the seed ----------------------------------------------------------- */

static bal_recipe *settled(const char *method, const char *seed)
{
    bal_recipe *recipe = recipe_of(method, 1);
    BAL_OWN(bal_model) model = made_model(BAL_KIND_DELTA, NULL, NULL, 0);

    if (seed)
        CHECK_OK(bal_recipe_set(recipe, "seed", seed, &check_err));
    CHECK_OK(bal_recipe_settle(recipe, &model, &check_err));
    return recipe;
}

static void a_seed_is_drawn_where_none_is_told(void)
{
    BAL_OWN(bal_recipe) a = settled("dare_ties", NULL);
    BAL_OWN(bal_recipe) b = settled("dare_ties", NULL);
    BAL_OWN(bal_recipe) c = settled("dare_ties", "18446744073709551615");
    BAL_OWN(bal_recipe) zero = settled("dare_ties", "0");
    BAL_OWN(bal_model) model = made_model(BAL_KIND_DELTA, NULL, NULL, 0);
    uint64_t drawn = a->seed;

    CHECK(a->seed != b->seed);
    CHECK(c->seed == UINT64_MAX);
    CHECK(zero->seed == 0);
    CHECK_OK(bal_recipe_settle(a, &model, &check_err));
    CHECK(a->seed == drawn);
}

/* ---- recording ---------------------------------------------------------- */

typedef struct record {
    const char *method;
    size_t base;
    const char *seed;
    bool mergekit;
    const char *has[3]; /* members of the text */
    const char *lacks;  /* what it has not */
} record;

static const record records[] = {
    { "linear",
      BAL_NONE,
      NULL,
      false,
      { "\"arithmetic\":\"precise\"" },
      "\"base\"" },
    { "linear", 1, NULL, false, { "\"base\":1," }, "\"seed\"" },
    { "ties", BAL_NONE, NULL, false, { "\"base\":null," }, "\"seed\"" },
    { "ties",
      0,
      NULL,
      true,
      { "\"base\":0,", "\"arithmetic\":\"mergekit\"" },
      "\"seed\"" },
    { "dare_ties",
      1,
      "18446744073709551615",
      false,
      { "\"base\":1,", "\"seed\":\"18446744073709551615\"" },
      "mergekit" },
    { "dare_ties",
      BAL_NONE,
      "0",
      true,
      { "\"base\":null,", "\"seed\":\"0\"", "mergekit" },
      "precise" },
};

static void record_text(bal_buf *out, const bal_recipe *recipe)
{
    BAL_OWN(json_t) json = NULL;

    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    CHECK_OK(bal_json_canonical(out, json, &check_err));
}

static void base_seed_and_arithmetic_are_recorded_and_read_back(void)
{
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        const record *row = &records[i];
        BAL_OWN(bal_recipe) recipe = recipe_of(row->method, 2);
        BAL_OWN(bal_recipe) again = NULL;
        BAL_OWN(json_t) json = NULL;
        BAL_LOCAL(bal_buf) text = { 0 };
        BAL_LOCAL(bal_buf) text2 = { 0 };

        check_row(row->method);
        recipe->slices[0].base = row->base;
        recipe->mergekit = row->mergekit;
        recipe->space = BAL_SPACE_DELTA;
        if (row->seed)
            CHECK_OK(bal_recipe_set(recipe, "seed", row->seed, &check_err));
        record_text(&text, recipe);
        for (size_t k = 0; k < 3 && row->has[k]; k++)
            CHECK(contains(bal_buf_string(&text), row->has[k]));
        CHECK(!contains(bal_buf_string(&text), row->lacks));

        CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
        CHECK_OK(bal_recipe_parse(&again, json, &check_err));
        CHECK(again->slices[0].base == row->base &&
              again->mergekit == row->mergekit);
        CHECK(again->seed == recipe->seed);
        record_text(&text2, again);
        CHECK(!strcmp(bal_buf_string(&text), bal_buf_string(&text2)));
    }
}

static void a_seed_that_is_no_number_or_missing_is_refused(void)
{
    static const char *const seeds[] = {
        "7", "\"-1\"", "\"18446744073709551616\"", "\"\"", "null", NULL,
    };

    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        BAL_OWN(bal_recipe) recipe = recipe_of("dare_ties", 1);
        BAL_OWN(bal_recipe) again = NULL;
        BAL_OWN(json_t) json = NULL;
        BAL_OWN(json_t) seed = NULL;

        check_row(seeds[i]);
        recipe->space = BAL_SPACE_DELTA;
        CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
        if (seeds[i]) {
            CHECK_OK(bal_json_parse(&seed, seeds[i], strlen(seeds[i]), "seed",
                                    &check_err));
            json_object_set(json, "seed", seed);
        } else {
            json_object_del(json, "seed");
        }
        CHECK_RC(BAL_ECORRUPT, bal_recipe_parse(&again, json, &check_err));
    }
}

static const check_test tests[] = {
    { TEST(a_base_is_an_input_that_is_there_or_one_more) },
    { TEST(there_is_one_base_and_no_weight_is_its) },
    { TEST(a_base_is_there_where_it_is_needed) },
    { TEST(a_seed_is_drawn_where_none_is_told) },
    { TEST(base_seed_and_arithmetic_are_recorded_and_read_back) },
    { TEST(a_seed_that_is_no_number_or_missing_is_refused) },
};

CHECK_MAIN(tests)
