/* Recipes that cut a sum of adapters: what is recorded, and what is refused of
 * what a database may hold. */
#include <string.h>

#include "core/json.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* One input, in product space. */
static bal_recipe *cut_by(const char *name, const char *value)
{
    bal_recipe *recipe = NULL;
    bal_input input = { .tenant = "acme", .weight = 1 };

    input.commit = made_id(1);
    input.manifest = made_id(2);
    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    CHECK_OK(bal_recipe_set(recipe, "space", "product", &check_err));
    CHECK_OK(bal_recipe_set(recipe, name, value, &check_err));
    return recipe;
}

static void a_rank_is_recorded_and_read_back(void)
{
    BAL_OWN(bal_recipe) recipe = cut_by("rank", "16");
    BAL_OWN(bal_recipe) again = NULL;
    BAL_OWN(json_t) json = NULL;

    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    CHECK(json_integer_value(json_object_get(json, "rank")) == 16);
    CHECK(!json_object_get(json, "energy") && !json_object_get(json, "ranks"));
    CHECK_OK(bal_recipe_parse(&again, json, &check_err));
    CHECK(again->rank == 16 && again->energy == 0 && !again->ranks);
}

static void an_energy_is_recorded_with_what_it_came_to(void)
{
    BAL_OWN(bal_recipe) recipe = cut_by("energy", "0.90");
    BAL_OWN(bal_recipe) again = NULL;
    BAL_OWN(json_t) json = NULL;

    recipe->ranks = json_pack("{s:i}", "layers.0.q", 3);
    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    const char *energy = json_string_value(json_object_get(json, "energy"));
    CHECK(energy && !strcmp(energy, "0.9"));
    CHECK_OK(bal_recipe_parse(&again, json, &check_err));
    CHECK(again->energy == 0.9 && !again->rank);
    CHECK(json_equal(again->ranks, recipe->ranks));
}

/* A recipe of energy with one member changed; NULL: taken out. */
static const struct {
    const char *member, *value;
    int rc;
} damages[] = {
    { "energy", "\"0.5\"", 0 },
    { "energy", "\"1\"", 0 },
    { "energy", "0.5", BAL_ECORRUPT },
    { "energy", "\"0\"", BAL_ECORRUPT },
    { "energy", "\"1.5\"", BAL_ECORRUPT },
    { "energy", "\"nan\"", BAL_ECORRUPT },
    { "energy", NULL, BAL_ECORRUPT },
    { "ranks", NULL, BAL_ECORRUPT },
    { "ranks", "[]", BAL_ECORRUPT },
    { "rank", "4", BAL_ECORRUPT },
    { "space", "\"factors\"", BAL_ECORRUPT },
};

static const struct {
    const char *value;
    int rc;
} ranks[] = {
    { "1", 0 },
    { "65536", 0 },
    { "0", BAL_ECORRUPT },
    { "-1", BAL_ECORRUPT },
    { "65537", BAL_ECORRUPT },
    { "\"4\"", BAL_ECORRUPT },
    { "2.5", BAL_ECORRUPT },
};

static int parse_with(json_t *json, const char *member, const char *value)
{
    BAL_OWN(bal_recipe) recipe = NULL;

    if (value)
        json_object_set_new(json, member,
                            json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(json, member);
    return bal_recipe_parse(&recipe, json, &check_err);
}

static void damaged_ones_are_refused(void)
{
    for (size_t i = 0; i < COUNT(damages); i++) {
        BAL_OWN(bal_recipe) recipe = cut_by("energy", "0.9");
        BAL_OWN(json_t) json = NULL;

        check_row(damages[i].member);
        recipe->ranks = json_object();
        CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
        CHECK(parse_with(json, damages[i].member, damages[i].value) ==
              damages[i].rc);
    }
    for (size_t i = 0; i < COUNT(ranks); i++) {
        BAL_OWN(bal_recipe) recipe = cut_by("rank", "3");
        BAL_OWN(json_t) json = NULL;

        check_row(ranks[i].value);
        CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
        CHECK(parse_with(json, "rank", ranks[i].value) == ranks[i].rc);
    }
}

static bal_model *adapter_of(const float *a, const float *b)
{
    static const char config[] =
        "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, "
        "\"target_modules\": [\"q\"]}";
    const made_row rows[] = {
        { "base_model.model.layers.0.q.lora_A.weight",
          BAL_PART_TENSOR,
          BAL_FORM_WHOLE,
          BAL_F32,
          BAL_F32,
          2,
          { 2, 3 },
          a },
        { "base_model.model.layers.0.q.lora_B.weight",
          BAL_PART_TENSOR,
          BAL_FORM_WHOLE,
          BAL_F32,
          BAL_F32,
          2,
          { 3, 2 },
          b },
        { "adapter_config.json",
          BAL_PART_FILE,
          BAL_FORM_WHOLE,
          BAL_U8,
          BAL_U8,
          0,
          { 0 },
          config },
    };

    return made_model(BAL_KIND_ADAPTER, "base", rows, COUNT(rows));
}

/* The ranks of a recipe out of a database need not be of these inputs. */
static void ranks_that_are_missing_or_absurd_are_corrupt(void)
{
    static const float a[] = { 1, 0, 0, 0, 1, 0 };
    static const float b[] = { 3, 0, 0, 1, 0, 0 };
    static const struct {
        const char *ranks;
        int rc;
    } rows[] = {
        { "{\"layers.0.q\": 1}", 0 },
        { "{}", BAL_ECORRUPT },
        { "{\"layers.0.q\": 0}", BAL_ECORRUPT },
        { "{\"layers.0.q\": 65537}", BAL_ECORRUPT },
        { "{\"layers.0.q\": \"1\"}", BAL_ECORRUPT },
    };
    BAL_OWN(bal_model) input = adapter_of(a, b);
    BAL_OWN(bal_work) work = NULL;

    CHECK_OK(bal_work_new(&work, 1, &check_err));
    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_recipe) recipe = cut_by("energy", "0.9");
        BAL_OWN(bal_model) view = NULL;

        check_row(rows[i].ranks);
        CHECK_RC(BAL_ECORRUPT,
                 bal_view_open(&view, recipe, &input, NULL, &check_err));
        CHECK_OK(bal_view_ranks(recipe, &input, work, &check_err));
        CHECK(json_integer_value(
                  json_object_get(recipe->ranks, "layers.0.q")) == 1);
        json_decref(recipe->ranks);
        recipe->ranks = json_loads(rows[i].ranks, 0, NULL);
        CHECK(bal_view_open(&view, recipe, &input, NULL, &check_err) ==
              rows[i].rc);
    }
}

static const check_test tests[] = {
    { TEST(a_rank_is_recorded_and_read_back) },
    { TEST(an_energy_is_recorded_with_what_it_came_to) },
    { TEST(damaged_ones_are_refused) },
    { TEST(ranks_that_are_missing_or_absurd_are_corrupt) },
};

CHECK_MAIN(tests)
