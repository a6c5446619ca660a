/* Recipes: what is recorded, what is refused before it is. */
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

/* ---- recording ---------------------------------------------------------- */

static const char recorded[] =
    "{\"arithmetic\":\"precise\",\"dtype\":\"BF16\",\"inputs\":["
    "{\"commit\":\""
    "0100000000000000000000000000000000000000000000000000000000000000\","
    "\"manifest\":\""
    "6500000000000000000000000000000000000000000000000000000000000000\","
    "\"tenant\":\"acme\",\"weight\":\"0.1\"},"
    "{\"commit\":\""
    "0200000000000000000000000000000000000000000000000000000000000000\","
    "\"manifest\":\""
    "6600000000000000000000000000000000000000000000000000000000000000\","
    "\"tenant\":\"acme\",\"weight\":\"-3\"}],"
    "\"method\":\"linear\",\"parameters\":{\"normalize\":\"false\"},"
    "\"space\":\"delta\",\"strict\":true}";

static void recipes_are_recorded_and_read_back(void)
{
    static const double weights[] = { 0.1, -3 };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2);
    BAL_OWN(bal_recipe) again = NULL;
    BAL_OWN(json_t) json = NULL;
    BAL_OWN(json_t) json2 = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) text2 = { 0 };

    CHECK_OK(bal_recipe_set(recipe, "normalize", "no", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "space", "delta", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "strict", "true", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "dtype", "bf16", &check_err));
    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    CHECK_OK(bal_json_canonical(&text, json, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), recorded));

    CHECK_OK(bal_recipe_parse(&again, json, &check_err));
    CHECK(again->inputs[0].weight == 0.1);
    CHECK_OK(bal_recipe_json(&json2, again, &check_err));
    CHECK_OK(bal_json_canonical(&text2, json2, &check_err));
    CHECK(!strcmp(bal_buf_string(&text2), recorded));
}

typedef struct damage {
    const char *path; /* key, or inputs/key of the first input */
    const char *json; /* the value it gets, NULL: none */
    int rc;
} damage;

static const damage damages[] = {
    { "method", NULL, BAL_ECORRUPT },
    { "method", "3", BAL_ECORRUPT },
    { "method", "\"from-the-future\"", BAL_EUNSUPPORTED },
    { "arithmetic", "\"exact\"", BAL_EUNSUPPORTED },
    { "space", "\"nowhere\"", BAL_ECORRUPT },
    { "strict", "1", BAL_ECORRUPT },
    { "dtype", "\"I8\"", BAL_ECORRUPT },
    { "dtype", "\"bf16\"", BAL_ECORRUPT },
    { "dtype", "null", 0 },
    { "parameters", "[]", BAL_ECORRUPT },
    { "parameters", "{\"normalize\": true}", BAL_ECORRUPT },
    { "parameters", "{\"normalize\": \"2\"}", BAL_ECORRUPT },
    { "parameters", "{\"seed\": \"2\"}", BAL_ECORRUPT },
    { "parameters", "{}", 0 },
    { "base", "null", 0 },
    { "base", "1", 0 },
    { "base", "2", BAL_ECORRUPT },
    { "base", "-1", BAL_ECORRUPT },
    { "base", "\"0\"", BAL_ECORRUPT },
    { "base", "0.5", BAL_ECORRUPT },
    { "seed", "\"1\"", BAL_ECORRUPT },
    { "arithmetic", "\"mergekit\"", 0 },
    { "digests", "{}", BAL_ECORRUPT },
    { "digests", "[]", BAL_ECORRUPT },
    { "inputs", "{}", BAL_ECORRUPT },
    { "inputs", "[3]", BAL_ECORRUPT },
    { "inputs/tenant", "\"../x\"", BAL_ECORRUPT },
    { "inputs/tenant", NULL, BAL_ECORRUPT },
    { "inputs/commit", "\"01\"", BAL_ECORRUPT },
    { "inputs/manifest", "7", BAL_ECORRUPT },
    { "inputs/weight", "0.1", BAL_ECORRUPT },
    { "inputs/weight", "\"nan\"", BAL_ECORRUPT },
    { "inputs/parameters", "[]", BAL_ECORRUPT },
    { "inputs/parameters", "{\"weight\": \"1\"}", BAL_ECORRUPT },
    { "inputs/parameters", "{\"density\": \"1\"}", BAL_ECORRUPT },
};

static void damaged_recipes_are_refused(void)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        const damage *row = &damages[i];
        BAL_OWN(json_t) json = NULL;
        BAL_OWN(json_t) value = NULL;
        BAL_OWN(bal_recipe) recipe = NULL;
        const char *slash = strchr(row->path, '/');

        check_row(row->path);
        CHECK_OK(bal_json_parse(&json, recorded, strlen(recorded), "recipe",
                                &check_err));
        json_t *at =
            slash ? json_array_get(json_object_get(json, "inputs"), 0) : json;
        const char *key = slash ? slash + 1 : row->path;
        if (row->json) {
            CHECK_OK(bal_json_parse(&value, row->json, strlen(row->json),
                                    "value", &check_err));
            json_object_set(at, key, value);
        } else {
            json_object_del(at, key);
        }
        CHECK_RC(row->rc, bal_recipe_parse(&recipe, json, &check_err));
    }
}

/* ---- settling ----------------------------------------------------------- */

typedef struct settling {
    const char *name;
    bal_kind kinds[2];
    double weights[2];
    size_t count;
    const char *set, *value;
    int rc;
    bal_space space;
    const char *says;
} settling;

static const settling settlings[] = {
    { "two deltas",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 1, 1 },
      2,
      NULL,
      NULL,
      0,
      BAL_SPACE_DELTA,
      NULL },
    { "two models",
      { BAL_KIND_WEIGHTS, BAL_KIND_WEIGHTS },
      { 1, 1 },
      2,
      NULL,
      NULL,
      0,
      BAL_SPACE_WEIGHTS,
      NULL },
    { "two adapters",
      { BAL_KIND_ADAPTER, BAL_KIND_ADAPTER },
      { 1, 1 },
      2,
      NULL,
      NULL,
      0,
      BAL_SPACE_PRODUCT,
      NULL },
    { "factors",
      { BAL_KIND_ADAPTER, BAL_KIND_ADAPTER },
      { 1, 1 },
      2,
      "space",
      "factors",
      0,
      BAL_SPACE_FACTORS,
      NULL },
    { "one",
      { BAL_KIND_DELTA },
      { 1 },
      1,
      NULL,
      NULL,
      0,
      BAL_SPACE_DELTA,
      NULL },
    { "none",
      { BAL_KIND_DELTA },
      { 1 },
      0,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "takes 1 input or more" },
    { "mixed",
      { BAL_KIND_DELTA, BAL_KIND_ADAPTER },
      { 1, 1 },
      2,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "do not mix" },
    { "deltas as models",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 1, 1 },
      2,
      "space",
      "weights",
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "space 'weights'" },
    { "models as factors",
      { BAL_KIND_WEIGHTS, BAL_KIND_WEIGHTS },
      { 1, 1 },
      2,
      "space",
      "factors",
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "space 'factors'" },
    { "zero sum",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 0.5, -0.5 },
      2,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "sum to zero" },
    { "zero sum but for rounding",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 0.30000000000000004, -0.3 },
      2,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "sum to zero" },
    { "a sum that is no number",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 1e308, 1e308 },
      2,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "sum is too large" },
    { "zero sum as it is",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 0.5, -0.5 },
      2,
      "normalize",
      "false",
      0,
      BAL_SPACE_DELTA,
      NULL },
    { "all zero",
      { BAL_KIND_DELTA, BAL_KIND_DELTA },
      { 0, 0 },
      2,
      NULL,
      NULL,
      BAL_EINVAL,
      BAL_SPACE_AUTO,
      "sum to zero" },
};

static void recipes_are_settled_by_their_inputs(void)
{
    for (size_t i = 0; i < sizeof(settlings) / sizeof(settlings[0]); i++) {
        const settling *row = &settlings[i];
        BAL_OWN(bal_recipe) recipe = linear_of(row->weights, row->count);
        BAL_OWN(bal_model) a = made_model(row->kinds[0], NULL, NULL, 0);
        BAL_OWN(bal_model) b = made_model(row->kinds[1], NULL, NULL, 0);
        bal_model *models[] = { a, b };

        check_row(row->name);
        if (row->set)
            CHECK_OK(bal_recipe_set(recipe, row->set, row->value, &check_err));
        CHECK_RC(row->rc, bal_recipe_settle(recipe, models, &check_err));
        CHECK(!row->says || contains(check_err.text, row->says));
        CHECK(row->rc || recipe->space == row->space);
        CHECK(row->rc || json_object_get(recipe->parameters, "normalize"));
    }
}

static void only_sums_merge_adapters_as_maps(void)
{
    static const double weights[] = { 1, 1 };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2);
    BAL_OWN(bal_model) a = made_model(BAL_KIND_ADAPTER, NULL, NULL, 0);
    bal_model *models[] = { a, a };
    BAL_OWN(bal_model) view = NULL;
    bal_method other = *recipe->method;

    other.info.name = "other";
    other.share = NULL;
    recipe->method = &other;
    CHECK_RC(BAL_EUNSUPPORTED, bal_recipe_settle(recipe, models, &check_err));
    CHECK(contains(check_err.hint, "--space factors"));
    recipe->space = BAL_SPACE_PRODUCT;
    CHECK_RC(BAL_ECORRUPT,
             bal_view_open(&view, recipe, models, NULL, &check_err));
}

/* A carrier has a meaning in some spaces; elsewhere it would be one more input
 * that nobody counts. */
static const struct {
    const char *space;
    size_t carriers;
    int rc;
} carried[] = {
    { "weights", 2, 0 },
    { "delta", 1, 0 },
    { "delta", 2, BAL_ECORRUPT },
    { "product", 1, BAL_ECORRUPT },
    { "factors", 1, BAL_ECORRUPT },
};

static void carriers_are_there_only_where_something_is_put_onto_them(void)
{
    for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++) {
        BAL_OWN(json_t) json = NULL;
        BAL_OWN(bal_recipe) recipe = NULL;

        check_row(carried[i].space);
        CHECK_OK(bal_json_parse(&json, recorded, strlen(recorded), "recipe",
                                &check_err));
        json_t *inputs = json_object_get(json, "inputs");
        for (size_t k = 0; k < carried[i].carriers; k++) {
            json_t *carrier = bal_json_copy(json_array_get(inputs, 0));
            CHECK(carrier &&
                  !json_object_set_new(carrier, "carrier", json_true()) &&
                  !json_array_append_new(inputs, carrier));
        }
        CHECK(
            !json_object_set_new(json, "space", json_string(carried[i].space)));
        CHECK_RC(carried[i].rc, bal_recipe_parse(&recipe, json, &check_err));
        if (!carried[i].rc)
            CHECK((bal_recipe_origin(recipe) == 2) ==
                  !strcmp(carried[i].space, "delta"));
    }
}

static const check_test tests[] = {
    { TEST(recipes_are_recorded_and_read_back) },
    { TEST(damaged_recipes_are_refused) },
    { TEST(recipes_are_settled_by_their_inputs) },
    { TEST(only_sums_merge_adapters_as_maps) },
    { TEST(carriers_are_there_only_where_something_is_put_onto_them) },
};

CHECK_MAIN(tests)
