/* Adapters merged as the maps they are, on adapters that PEFT trained and
 * saved: the result's B A must be the weighted sum of the inputs' s B A. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

enum { ADAPTERS = 3 };

static const char *const folders[ADAPTERS] = {
    "lora_r8_qv",
    "lora_r4_patterns",
    "lora_r16_all_rslora",
};

static bal_model *open_adapter(const char *name)
{
    const char *tree = getenv("BALLAST_TREE");
    char path[512];
    bal_model *model = NULL;

    snprintf(path, sizeof(path), "%s/tests/data/adapters/%s", tree ? tree : ".",
             name);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_ADAPTER);
    return model;
}

static bal_recipe *linear_of(const double *weights, size_t count)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    for (size_t i = 0; i < count; i++) {
        bal_input input = { .tenant = "acme", .weight = weights[i] };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->space = BAL_SPACE_PRODUCT;
    return recipe;
}

static json_t *config_of(bal_model *model)
{
    size_t i = bal_model_find(model, BAL_PART_FILE, "adapter_config.json");
    char text[65536];
    json_t *json = NULL;

    CHECK(i != BAL_NONE);
    uint64_t size = bal_model_at(model, i)->size;
    CHECK(size < sizeof(text));
    CHECK_OK(bal_model_read(model, i, 0, text, size, &check_err));
    CHECK_OK(bal_json_parse(&json, text, size, "config", &check_err));
    return json;
}

/* ---- config ------------------------------------------------------------- */

static void the_config_says_what_the_tensors_are(void)
{
    static const double weights[] = { 1, 1, 1 };
    static const char *const targets[] = { "down_proj", "gate_proj", "k_proj",
                                           "o_proj",    "q_proj",    "up_proj",
                                           "v_proj" };
    bal_model *inputs[ADAPTERS];
    BAL_OWN(bal_recipe) recipe = linear_of(weights, ADAPTERS);
    BAL_OWN(bal_model) merged = NULL;

    for (size_t i = 0; i < ADAPTERS; i++)
        inputs[i] = open_adapter(folders[i]);
    CHECK_OK(bal_view_open(&merged, recipe, inputs, NULL, &check_err));
    BAL_OWN(json_t) config = config_of(merged);
    json_t *list = json_object_get(config, "target_modules");
    json_t *ranks = json_object_get(config, "rank_pattern");

    CHECK(json_array_size(list) == 7);
    for (size_t i = 0; i < 7; i++)
        CHECK(!strcmp(json_string_value(json_array_get(list, i)), targets[i]));
    /* gate and up of four layers have 16, the others more: v and most q 28, o
     * of 0 and 1 and k 20, o of 2 and 3 22, down 18, q of layer 0 36. */
    CHECK(json_integer_value(json_object_get(config, "r")) == 16);
    CHECK(json_integer_value(json_object_get(config, "lora_alpha")) == 16);
    CHECK(json_object_size(ranks) == 20);
    CHECK(json_integer_value(json_object_get(
              ranks, "^model\\.layers\\.0\\.self_attn\\.q_proj")) == 36);
    CHECK(json_integer_value(json_object_get(
              ranks, "^model\\.layers\\.3\\.self_attn\\.o_proj")) == 22);
    CHECK(json_equal(ranks, json_object_get(config, "alpha_pattern")));
    CHECK(json_is_false(json_object_get(config, "use_rslora")));
    CHECK(json_is_true(json_object_get(config, "init_lora_weights")));
    CHECK(json_is_true(json_object_get(config, "inference_mode")));
    CHECK(!strcmp(
        json_string_value(json_object_get(config, "base_model_name_or_path")),
        "base"));
    CHECK(!strcmp(json_string_value(json_object_get(config, "task_type")),
                  "CAUSAL_LM"));
    CHECK(!strcmp(bal_model_facts(merged)->base_model, "base"));
    CHECK(bal_model_facts(merged)->kind == BAL_KIND_ADAPTER);
    for (size_t i = 0; i < ADAPTERS; i++)
        bal_model_free(inputs[i]);
}

/* ---- made adapters ------------------------------------------------------ */

static const float values[4096] = { 1, 2, 3 };

/* r, in, out of one module, and a config. */
static bal_model *made_adapter(const char *config, uint64_t rank, uint64_t in,
                               const char *name_a, const char *name_b)
{
    made_row parts[] = {
        { .name = name_a,
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { rank, in },
          .bytes = values },
        { .name = name_b,
          .dtype = BAL_F32,
          .rank = 2,
          .shape = { 16, rank },
          .bytes = values },
        { .name = "adapter_config.json",
          .part = BAL_PART_FILE,
          .bytes = config },
        { .name = "README.md", .part = BAL_PART_FILE, .bytes = "card" },
        { .name = "chat_template.jinja",
          .part = BAL_PART_FILE,
          .bytes = "template" },
    };

    return made_model(BAL_KIND_ADAPTER, NULL, parts, 5);
}

typedef struct pair_row {
    const char *what;
    const char *config_a, *config_b;
    uint64_t in_b;
    const char *module_b;
    bool strict;
    int rc;
    const char *says;    /* of a refusal */
    const char *targets; /* of the result, joined by spaces */
} pair_row;

static const pair_row pairs[] = {
    { "two of one list",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\"]}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\"]}", 32,
      "l.0.q", true, 0, NULL, "q" },
    { "layers that are named",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\"], "
      "\"layers_to_transform\": [0]}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\"]}", 32,
      "l.1.q", false, 0, NULL, "l.0.q l.1.q" },
    { "a pattern",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": \".*q\"}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\"]}", 32,
      "l.1.q", false, 0, NULL, "l.0.q l.1.q" },
    { "no list at all", "{\"peft_type\": \"LORA\", \"r\": 4}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": \"all-linear\"}",
      32, "l.0.q", false, 0, NULL, "l.0.q" },
    { "names that are not used",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"q\", \"k\"]}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"target_modules\": [\"l.1.v\", \"q\"]}",
      32, "l.1.v", false, 0, NULL, "l.1.v q" },
    { "strict", "{\"peft_type\": \"LORA\", \"r\": 4}",
      "{\"peft_type\": \"LORA\", \"r\": 4}", 32, "l.1.q", true, BAL_EINVAL,
      "no module 'l.", NULL },
    { "shapes", "{\"peft_type\": \"LORA\", \"r\": 4}",
      "{\"peft_type\": \"LORA\", \"r\": 4}", 48, "l.0.q", false, BAL_EINVAL,
      "module 'l.0.q' has another shape", NULL },
    { "bases",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"base_model_name_or_path\": \"x\"}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"base_model_name_or_path\": \"y\"}",
      32, "l.0.q", false, BAL_EINVAL, "base_model_name_or_path is 'x' and 'y'",
      NULL },
    { "a base that one does not tell", "{\"peft_type\": \"LORA\", \"r\": 4}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"base_model_name_or_path\": \"y\"}",
      32, "l.0.q", false, 0, NULL, "l.0.q" },
    { "dora", "{\"peft_type\": \"LORA\", \"r\": 4}",
      "{\"peft_type\": \"LORA\", \"r\": 4, \"use_dora\": true}", 32, "l.0.q",
      false, BAL_EUNSUPPORTED,
      "input 2 'made': adapter_config.json: 'use_dora'", NULL },
};

static void check_targets(bal_model *merged, const char *targets)
{
    BAL_OWN(json_t) config = config_of(merged);
    BAL_LOCAL(bal_buf) text = { 0 };
    json_t *list = json_object_get(config, "target_modules");

    for (size_t i = 0; i < json_array_size(list); i++)
        CHECK_OK(bal_buf_format(&text, &check_err, "%s%s", i ? " " : "",
                                json_string_value(json_array_get(list, i))));
    CHECK(!strcmp(bal_buf_string(&text), targets));
    CHECK(json_is_null(json_object_get(config, "layers_to_transform")));
    CHECK(bal_model_find(merged, BAL_PART_FILE, "README.md") == BAL_NONE);
    CHECK(bal_model_find(merged, BAL_PART_FILE, "chat_template.jinja") !=
          BAL_NONE);
}

static void configs_are_joined_or_refused(void)
{
    static const double weights[] = { 1, 1 };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const pair_row *row = &pairs[i];
        BAL_OWN(bal_recipe) recipe = linear_of(weights, 2);
        BAL_OWN(bal_model) merged = NULL;
        char a[64];
        char b[64];

        check_row(row->what);
        snprintf(a, sizeof(a), "base_model.model.%s.lora_A.weight",
                 row->module_b);
        snprintf(b, sizeof(b), "base_model.model.%s.lora_B.weight",
                 row->module_b);
        BAL_OWN(bal_model)
        first = made_adapter(row->config_a, 4, 32,
                             "base_model.model.l.0.q.lora_A.weight",
                             "base_model.model.l.0.q.lora_B.weight");
        BAL_OWN(bal_model)
        second = made_adapter(row->config_b, 4, row->in_b, a, b);
        bal_model *inputs[] = { first, second };
        recipe->strict = row->strict;
        CHECK_RC(row->rc,
                 bal_view_open(&merged, recipe, inputs, NULL, &check_err));
        if (row->rc)
            CHECK(strstr(check_err.text, row->says) != NULL);
        else
            check_targets(merged, row->targets);
    }
}

static const check_test tests[] = {
    { TEST(the_config_says_what_the_tensors_are) },
    { TEST(configs_are_joined_or_refused) },
};

CHECK_MAIN(tests)
