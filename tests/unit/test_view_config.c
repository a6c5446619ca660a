/* What becomes of config.json, and of heads that are tied to embeddings, when
 * whole models are merged. */
#include <stdlib.h>
#include <string.h>

#include "merge/merge.h"
#include "support/check.h"
#include "support/memory_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void put(bal_model *model, const char *name, float value)
{
    const uint64_t shape[] = { 1 };

    memory_tensor(model, name, BAL_F32, 1, shape, &value);
}

/* ---- merging ------------------------------------------------------------ */

static void add_source(bal_recipe *recipe, size_t slice, uint64_t first,
                       uint64_t end, double weight)
{
    bal_input input = { .tenant = "acme",
                        .weight = weight,
                        .slice = slice,
                        .first = first,
                        .end = end };

    input.commit.bytes[0] = (uint8_t)(recipe->count + 1);
    CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
}

static bal_recipe *recipe_of(const char *arithmetic)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "arithmetic", arithmetic, &check_err));
    CHECK_OK(bal_recipe_set(recipe, "normalize", "false", &check_err));
    return recipe;
}

static bal_model *merged(bal_recipe *recipe, bal_model **inputs)
{
    bal_model *view = NULL;

    CHECK_OK(bal_recipe_settle(recipe, inputs, &check_err));
    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    return view;
}

/* A file, as text: to be freed. */
static char *file_of(bal_model *model, const char *name)
{
    size_t at = bal_model_find(model, BAL_PART_FILE, name);

    CHECK(at != BAL_NONE);
    size_t size = (size_t)bal_model_at(model, at)->size;
    char *text = calloc(1, size + 1);
    if (!text)
        abort();
    /* In two parts, the later first. */
    size_t half = size / 16 * 8;
    CHECK_OK(
        bal_model_read(model, at, half, text + half, size - half, &check_err));
    CHECK_OK(bal_model_read(model, at, 0, text, half, &check_err));
    return text;
}

/* ---- config.json -------------------------------------------------------- */

/* Layers 0, 1 and 1, 2 of a model of three: four in all. */
typedef struct editing {
    const char *name;
    bool sliced;
    const char *dtype, *out_dtype; /* NULL: not told */
    const char *before, *after;
} editing;

static const editing editings[] = {
    { "num_hidden_layers", true, NULL, NULL,
      "{\n  \"a\": 1e3,\n  \"num_hidden_layers\": 3\n}\n",
      "{\n  \"a\": 1e3,\n  \"num_hidden_layers\": 4\n}\n" },
    { "n_layer", true, NULL, NULL, "{\"n_layer\" :3 }", "{\"n_layer\" :4 }" },
    { "n_layers", true, NULL, NULL, "{\"n_layers\":3}", "{\"n_layers\":4}" },
    { "num_layers", true, NULL, NULL, "{\"num_layers\":3}",
      "{\"num_layers\":4}" },
    { "text_config.num_hidden_layers", true, NULL, NULL,
      "{\"text_config\": {\"x\": [3], \"num_hidden_layers\": 3}, \"b\": 3}",
      "{\"text_config\": {\"x\": [3], \"num_hidden_layers\": 4}, \"b\": 3}" },
    { "two of them", true, NULL, NULL,
      "{\"n_layer\": 3, \"num_hidden_layers\": 3}",
      "{\"n_layer\": 4, \"num_hidden_layers\": 4}" },
    { "a text is no number of layers", true, NULL, NULL,
      "{\"num_hidden_layers\": \"3\", \"n_layer\": 3}",
      "{\"num_hidden_layers\": \"3\", \"n_layer\": 4}" },
    { "without slices layers stay", false, NULL, NULL,
      "{\"num_hidden_layers\": 3}", "{\"num_hidden_layers\": 3}" },
    { "layer_types", true, NULL, NULL,
      "{\"layer_types\": [\"x\", \"y\", \"z\"], \"num_hidden_layers\": 3}",
      "{\"layer_types\": [\"x\", \"y\", \"y\", \"z\"], "
      "\"num_hidden_layers\": 4}" },
    { "layer_types of fewer layers", true, NULL, NULL,
      "{\"layer_types\": [\"x\", \"y\"], \"num_hidden_layers\": 3}",
      "{\"layer_types\": [\"x\", \"y\"], \"num_hidden_layers\": 4}" },
    { "layer_types that is no list", true, NULL, NULL,
      "{\"layer_types\": \"x\", \"n_layer\": 3}",
      "{\"layer_types\": \"x\", \"n_layer\": 4}" },
    { "dtype", false, "BF16", NULL, "{\"dtype\": \"float32\"}",
      "{\"dtype\": \"bfloat16\"}" },
    { "torch_dtype", false, "F16", NULL,
      "{ \"torch_dtype\" : \"torch.float32\" }",
      "{ \"torch_dtype\" : \"torch.float16\" }" },
    { "a shorter one", false, "F32", NULL,
      "{\"dtype\": \"bfloat16\", \"a\": 1}",
      "{\"dtype\": \"float32\", \"a\": 1}" },
    { "out_dtype goes before dtype", false, "BF16", "F64",
      "{\"dtype\": \"float32\"}", "{\"dtype\": \"float64\"}" },
    { "out_dtype alone", false, NULL, "BF16", "{\"dtype\": \"float32\"}",
      "{\"dtype\": \"bfloat16\"}" },
    { "both keys", false, "BF16", NULL,
      "{\"dtype\": \"float32\", \"torch_dtype\": \"float32\"}",
      "{\"dtype\": \"bfloat16\", \"torch_dtype\": \"bfloat16\"}" },
    { "the dtype that it has", false, "F32", NULL, "{\"dtype\":\"float32\"}  ",
      "{\"dtype\":\"float32\"}  " },
    { "no dtype is told", false, NULL, NULL, "{\"dtype\": \"float16\"}",
      "{\"dtype\": \"float16\"}" },
    { "no dtype is there", false, "BF16", NULL, "{\"a\": 1}", "{\"a\": 1}" },
    { "a dtype that is no text", false, "BF16", NULL, "{\"dtype\": null}",
      "{\"dtype\": null}" },
    { "a head of its own", false, NULL, NULL, "{\"tie_word_embeddings\": true}",
      "{\"tie_word_embeddings\": false}" },
    { "a head of its own, known", false, NULL, NULL,
      "{\"tie_word_embeddings\":false}", "{\"tie_word_embeddings\":false}" },
    { "a head of its own, not told", false, NULL, NULL,
      "{\"tie_word_embeddings\": null}", "{\"tie_word_embeddings\": null}" },
    { "all at once", true, "BF16", NULL,
      "{\"tie_word_embeddings\": true, \"torch_dtype\": \"float32\", "
      "\"num_hidden_layers\": 3, \"\\u00e4\": \"\xc3\xa4\"}",
      "{\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", "
      "\"num_hidden_layers\": 4, \"\\u00e4\": \"\xc3\xa4\"}" },
    { "no JSON", true, "BF16", NULL, "{\"num_hidden_layers\": 3",
      "{\"num_hidden_layers\": 3" },
    { "no object", true, "BF16", NULL, "[{\"num_hidden_layers\": 3}]",
      "[{\"num_hidden_layers\": 3}]" },
    { "nothing in it", true, "BF16", NULL, "", "" },
    { "more behind it", true, "BF16", NULL, "{\"n_layer\": 3} x",
      "{\"n_layer\": 3} x" },
};

static bal_model *deep_model(const char *config)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "deep");

    put(model, "model.layers.0.w", 0);
    put(model, "model.layers.1.w", 1);
    put(model, "model.layers.2.w", 2);
    put(model, "lm_head.weight", 3);
    memory_file(model, BAL_PART_FILE, "config.json", config, strlen(config));
    memory_file(model, BAL_PART_FILE, "other.json", config, strlen(config));
    memory_finish(model);
    return model;
}

static bal_recipe *editing_recipe(const editing *row)
{
    bal_recipe *recipe = recipe_of("mergekit");

    if (row->dtype)
        CHECK_OK(bal_recipe_set(recipe, "dtype", row->dtype, &check_err));
    if (row->out_dtype)
        CHECK_OK(
            bal_recipe_set(recipe, "out_dtype", row->out_dtype, &check_err));
    for (size_t i = 0; row->sliced && i < 2; i++)
        CHECK_OK(bal_recipe_add_slice(recipe, NULL, &check_err));
    for (size_t i = 0; i < 2; i++)
        add_source(recipe, row->sliced ? i : 0, i, i + 2, 0.5);
    return recipe;
}

static void a_config_tells_what_came_of_the_merge(void)
{
    for (size_t i = 0; i < COUNT(editings); i++) {
        const editing *row = &editings[i];
        BAL_OWN(bal_model) model = deep_model(row->before);
        BAL_OWN(bal_recipe) recipe = editing_recipe(row);
        bal_model *inputs[] = { model, model };

        check_row(row->name);
        BAL_OWN(bal_model) view = merged(recipe, inputs);
        char *config = file_of(view, "config.json");
        char *other = file_of(view, "other.json");
        CHECK(!strcmp(config, row->after));
        CHECK(!strcmp(other, row->before));
        free(config);
        free(other);
    }
}

/* What each key says is spelled as that key had it. */
static void each_dtype_is_spelled_as_it_was(void)
{
    static const char *const rows[][2] = {
        { "{\"dtype\": \"torch.float32\", \"torch_dtype\": \"float32\"}",
          "{\"dtype\": \"torch.bfloat16\", \"torch_dtype\": \"bfloat16\"}" },
        { "{\"dtype\": \"float32\", \"torch_dtype\": \"torch.bfloat16\"}",
          "{\"dtype\": \"bfloat16\", \"torch_dtype\": \"torch.bfloat16\"}" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const editing row = { .dtype = "BF16" };
        BAL_OWN(bal_model) model = deep_model(rows[i][0]);
        BAL_OWN(bal_recipe) recipe = editing_recipe(&row);
        bal_model *inputs[] = { model, model };

        check_row(rows[i][0]);
        BAL_OWN(bal_model) view = merged(recipe, inputs);
        char *config = file_of(view, "config.json");
        CHECK(!strcmp(config, rows[i][1]));
        free(config);
    }
}

/* ---- ties --------------------------------------------------------------- */

/* The head of one model, what the other has that may be tied to it. */
static const struct {
    const char *head, *embeddings;
    bool tied;
} pairs[] = {
    { "lm_head.weight", "model.embed_tokens.weight", true },
    { "lm_head.weight", "model.language_model.embed_tokens.weight", true },
    { "lm_head.weight", "transformer.wte.weight", true },
    { "lm_head.weight", "wte.weight", true },
    { "lm_head.weight", "backbone.embeddings.weight", true },
    { "lm_head.weight", "shared.weight", true },
    { "output.weight", "model.tok_embeddings.weight", true },
    { "decoder.embed_tokens.weight", "shared.weight", true },
    { "cls.predictions.decoder.weight",
      "bert.embeddings.word_embeddings.weight", true },
    { "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight",
      true },
    { "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight",
      true },
    { "language_model.lm_head.weight",
      "language_model.model.embed_tokens.weight", true },
    { "language_model.lm_head.weight", "model.embed_tokens.weight", false },
    { "lm_head.weight", "language_model.model.embed_tokens.weight", false },
    { "xlm_head.weight", "xmodel.embed_tokens.weight", false },
    { "lm_head.bias", "model.embed_tokens.weight", false },
    { "lm_head.weight", "model.embed_tokens.bias", false },
    { "head.weight", "model.embed_tokens.weight", false },
};

static float value_of(bal_model *model, const char *name)
{
    size_t at = bal_model_find(model, BAL_PART_TENSOR, name);
    float value = -1;

    CHECK(at != BAL_NONE);
    CHECK_OK(bal_model_read(model, at, 0, &value, sizeof(value), &check_err));
    return value;
}

static bal_model *headed(const char *head, const char *embeddings)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "headed");

    put(model, embeddings, 8);
    if (head)
        put(model, head, 2);
    memory_finish(model);
    return model;
}

static void embeddings_stand_for_the_head_that_is_tied_to_them(void)
{
    for (size_t i = 0; i < 2 * COUNT(pairs); i++) {
        bool first = i % 2; /* the one that has the head */
        const char *head = pairs[i / 2].head;
        const char *embeddings = pairs[i / 2].embeddings;
        BAL_OWN(bal_recipe) recipe = recipe_of("precise");
        BAL_OWN(bal_model) with = headed(head, embeddings);
        BAL_OWN(bal_model) without = headed(NULL, embeddings);
        bal_model *inputs[] = { first ? with : without,
                                first ? without : with };

        check_row(head);
        add_source(recipe, 0, 0, 0, 0.5);
        add_source(recipe, 0, 0, 0, 0.25);
        BAL_OWN(bal_model) view = merged(recipe, inputs);
        float own = first ? 0.5F * 2 : 0.25F * 2;
        float other = first ? 0.25F * 8 : 0.5F * 8;
        float want = pairs[i / 2].tied ? own + other : own;
        CHECK(value_of(view, head) == want);
        CHECK(value_of(view, embeddings) == 6);
    }
}

static void a_head_that_none_has_is_not_made(void)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        BAL_OWN(bal_recipe) recipe = recipe_of("precise");
        BAL_OWN(bal_model) model = headed(NULL, pairs[i].embeddings);
        bal_model *inputs[] = { model, model };

        check_row(pairs[i].embeddings);
        add_source(recipe, 0, 0, 0, 0.5);
        add_source(recipe, 0, 0, 0, 0.25);
        BAL_OWN(bal_model) view = merged(recipe, inputs);
        CHECK(bal_model_count(view) == 1);
    }
}

static const check_test tests[] = {
    { TEST(a_config_tells_what_came_of_the_merge) },
    { TEST(each_dtype_is_spelled_as_it_was) },
    { TEST(embeddings_stand_for_the_head_that_is_tied_to_them) },
    { TEST(a_head_that_none_has_is_not_made) },
};

CHECK_MAIN(tests)
