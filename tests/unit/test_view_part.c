/* Some layers of a model under other numbers, and views that are made of such
 * parts, of recipes that nobody settled. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "merge/view.h"
#include "support/check.h"
#include "support/memory_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { LAYERS = 4 };

/* A model of one F32 a tensor. */
static void put(bal_model *model, const char *name, float value)
{
    const uint64_t shape[] = { 1 };

    memory_tensor(model, name, BAL_F32, 1, shape, &value);
}

static const char header[] = "header";
static const char config[] = "{\"num_hidden_layers\": 4}";

/* Two tensors of each layer, one before and one behind; layer i has the values
 * i and 100 + i. */
static bal_model *stack_model(void)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "stack");
    char name[64];

    put(model, "model.embed_tokens.weight", 50);
    for (unsigned i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof(name), "model.layers.%u.mlp.weight", i);
        put(model, name, (float)i);
        snprintf(name, sizeof(name), "model.layers.%u.q.bias", i);
        put(model, name, (float)(100 + i));
    }
    put(model, "model.norm.weight", 60);
    put(model, "lm_head.weight", 70);
    memory_file(model, BAL_PART_FILE, "config.json", config,
                sizeof(config) - 1);
    memory_file(model, BAL_PART_HEADER, "model.safetensors", header,
                sizeof(header) - 1);
    memory_finish(model);
    return model;
}

static bal_model *model_of(const char *const *names, size_t count)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "named");

    for (size_t i = 0; i < count; i++)
        put(model, names[i], (float)i);
    memory_finish(model);
    return model;
}

static int open_part(bal_model **out, bal_model *of, uint64_t first,
                     uint64_t count, uint64_t at)
{
    const bal_view_part part = { { first, at, count }, true, true };

    return bal_part_open(out, of, &part, &check_err);
}

static bool has(const bal_model *model, const char *name)
{
    return bal_model_find(model, BAL_PART_TENSOR, name) != BAL_NONE;
}

static void is_value(bal_model *model, const char *name, float want)
{
    size_t at = bal_model_find(model, BAL_PART_TENSOR, name);
    float got = -1;

    check_row(name);
    CHECK(at != BAL_NONE);
    CHECK_OK(bal_model_read(model, at, 0, &got, sizeof(got), &check_err));
    CHECK(got == want);
}

/* ---- parts -------------------------------------------------------------- */

static const struct {
    uint64_t first, count, at;
    bool before, behind;
    size_t tensors;
} parts[] = {
    { 1, 2, 0, true, false, 5 },  { 1, 2, 7, false, false, 4 },
    { 0, 4, 0, true, true, 11 },  { 3, 1, 1000000, false, true, 4 },
    { 0, 1, 3, false, false, 2 }, { 2, 0, 9, true, true, 3 },
    { 4, 0, 0, true, false, 1 },  { 0, 0, 0, false, false, 0 },
};

static size_t count_tensors(const bal_model *model)
{
    size_t count = 0;

    for (size_t i = 0; i < bal_model_count(model); i++)
        count += bal_model_at(model, i)->part == BAL_PART_TENSOR;
    return count;
}

static void layers_get_other_numbers_and_keep_their_bytes(void)
{
    BAL_OWN(bal_model) model = stack_model();
    char name[64];

    for (size_t i = 0; i < COUNT(parts); i++) {
        const bal_view_part want = { { parts[i].first, parts[i].at,
                                       parts[i].count },
                                     parts[i].before,
                                     parts[i].behind };
        BAL_OWN(bal_model) part = NULL;

        CHECK_OK(bal_part_open(&part, model, &want, &check_err));
        CHECK(count_tensors(part) == parts[i].tensors);
        CHECK(has(part, "model.embed_tokens.weight") == parts[i].before);
        CHECK(has(part, "model.norm.weight") == parts[i].behind);
        CHECK(has(part, "lm_head.weight") == parts[i].behind);
        CHECK(bal_model_find(part, BAL_PART_FILE, "config.json") != BAL_NONE);
        CHECK(bal_model_count(part) == parts[i].tensors + 1);
        for (uint64_t k = 0; k < parts[i].count; k++) {
            unsigned at = (unsigned)(parts[i].at + k);
            snprintf(name, sizeof(name), "model.layers.%u.mlp.weight", at);
            is_value(part, name, (float)(parts[i].first + k));
            snprintf(name, sizeof(name), "model.layers.%u.q.bias", at);
            is_value(part, name, (float)(100 + parts[i].first + k));
        }
    }
}

static const char *const gap[] = { "a.0.w", "a.2.w" };
static const char *const two[] = { "a.0.w", "b.0.w" };
static const char *const flat[] = { "w", "norm.weight" };
static const char *const far[] = { "a.0.w", "a.4000000000.w" };
static const char *const last[] = { "a.9999999999999999999.w" };
static const char *const twice[] = { "a.0.w", "a.1.w", "a.01.w" };

static const struct {
    const char *const *names;
    size_t count;
    uint64_t first, layers;
    int rc;
    const char *says;
} lacking[] = {
    { gap, 2, 0, 3, BAL_EINVAL, "'named' has 2 tensors, for 3 layers" },
    { gap, 2, 1, 1, BAL_EINVAL, "'named' has no layer 1" },
    { gap, 2, 0, 4, BAL_EINVAL, "layers [0, 4) of 'named', which has 3" },
    { gap, 2, 3, 1, BAL_EINVAL, "layers [3, 4) of 'named', which has 3" },
    { gap, 2, INT64_MAX, 0, BAL_EINVAL, "which has 3" },
    { gap, 2, 0, INT64_MAX, BAL_EINVAL, "which has 3" },
    { gap, 2, 1, INT64_MAX - 1, BAL_EINVAL, "which has 3" },
    { gap, 2, 2, 1, 0, NULL },
    { two, 2, 0, 1, BAL_EUNSUPPORTED, "'named' has 2 stacks of layers" },
    { flat, 2, 0, 1, BAL_EINVAL, "layers [0, 1) of 'named', which has 0" },
    { flat, 2, 0, 0, 0, NULL },
    { far, 2, 1, 1, BAL_EINVAL, "no layer 1" },
    { far, 2, 4000000000, 1, 0, NULL },
    { last, 1, 9999999999999999999u, 1, 0, NULL },
};

static void layers_that_are_not_there_are_named(void)
{
    for (size_t i = 0; i < COUNT(lacking); i++) {
        BAL_OWN(bal_model)
        model = model_of(lacking[i].names, lacking[i].count);
        BAL_OWN(bal_model) part = NULL;

        check_row(lacking[i].says);
        CHECK_RC(lacking[i].rc, open_part(&part, model, lacking[i].first,
                                          lacking[i].layers, 0));
        CHECK(!lacking[i].says || strstr(check_err.text, lacking[i].says));
    }
}

/* "01" is layer 1 as well: two tensors of one name are not to come of it. */
static void two_spellings_of_a_layer_do_not_become_one_tensor(void)
{
    BAL_OWN(bal_model) model = model_of(twice, COUNT(twice));
    BAL_OWN(bal_model) part = NULL;
    int rc = open_part(&part, model, 0, 2, 0);

    CHECK(rc < 0 || count_tensors(part) < 3);
}

/* ---- views of parts ----------------------------------------------------- */

typedef struct taken {
    uint64_t first, end;
    size_t slice;
} taken;

typedef struct cut {
    const char *name;
    taken inputs[4];
    size_t count, slices;
    const char *weight; /* of the first, told; NULL: none */
    size_t tensors;     /* 0: nothing is known but that it ends */
} cut;

/* As many values as there is room for at first: what is read beyond them is
 * nobody's. */
#define EIGHT "0,1,2,3,4,5,6,7"
#define LONG                                                                   \
    EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT

static const cut cuts[] = {
    { "one", { { 0, 4, 0 } }, 1, 1, "0,1", 11 },
    { "layers twice", { { 0, 2, 0 }, { 0, 2, 1 } }, 2, 2, "0,1", 11 },
    { "nothing between", { { 1, 1, 0 } }, 1, 1, "0,1", 3 },
    /* What settling would have refused; a database may have it all the same. */
    { "of other lengths", { { 0, 2, 0 }, { 0, 4, 0 } }, 2, 1, LONG, 0 },
    { "longer before shorter", { { 0, 4, 0 }, { 0, 1, 0 } }, 2, 1, "0,1", 0 },
    { "none, and some", { { 0, 0, 0 }, { 0, 4, 0 } }, 2, 1, "0,1,2", 0 },
    { "into the next slice",
      { { 0, 1, 0 }, { 0, 4, 0 }, { 0, 4, 1 } },
      3,
      2,
      "0,1",
      0 },
    { "no sources at the end", { { 0, 4, 0 } }, 1, 2, "0,1", 0 },
    { "no sources first", { { 0, 4, 1 } }, 1, 2, "0,1", 0 },
    { "no sources between", { { 0, 2, 0 }, { 2, 4, 2 } }, 2, 3, "0,1", 0 },
    { "more layers than numbers",
      { { 0, INT64_MAX, 0 }, { 0, INT64_MAX, 1 }, { 0, 4, 2 } },
      3,
      3,
      "0,1",
      0 },
};

static json_t *input_json(const taken *row, unsigned id, const char *weight)
{
    static const char zeros[] = "0000000000000000000000000000000000000000"
                                "0000000000000000000000";
    char hex[BAL_ID_HEX + 1];

    snprintf(hex, sizeof(hex), "%02x%s", id, zeros);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:[I,I]}", "tenant", "acme",
                     "commit", hex, "manifest", hex, "weight",
                     weight ? weight : "1", "slice", (int)row->slice, "layers",
                     (json_int_t)row->first, (json_int_t)row->end);
}

static json_t *recipe_json(const cut *row, const char *space)
{
    json_t *slices = json_array();
    json_t *inputs = json_array();

    for (size_t i = 0; i < row->slices; i++)
        json_array_append_new(slices, json_pack("{s:n}", "base"));
    for (size_t i = 0; i < row->count; i++)
        json_array_append_new(
            inputs, input_json(&row->inputs[i], (unsigned)i, row->weight));
    return json_pack("{s:s, s:s, s:s, s:b, s:n, s:{s:s}, s:o, s:o}", "method",
                     "linear", "arithmetic", "precise", "space", space,
                     "strict", 0, "dtype", "parameters", "normalize", "false",
                     "slices", slices, "inputs", inputs);
}

static int open_cut(bal_model **out, const cut *row, const char *space)
{
    BAL_OWN(bal_model) model = stack_model();
    BAL_OWN(json_t) json = recipe_json(row, space);
    BAL_OWN(bal_recipe) recipe = NULL;
    bal_model *models[4] = { model, model, model, model };
    int rc = bal_recipe_parse(&recipe, json, &check_err);

    return rc ? rc : bal_view_open(out, recipe, models, NULL, &check_err);
}

static void read_all(bal_model *model)
{
    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *entry = bal_model_at(model, i);
        char *bytes = malloc(entry->size + 1);
        if (!bytes)
            abort();
        if (bal_model_read(model, i, 0, bytes, entry->size, &check_err))
            CHECK(check_err.text[0]);
        free(bytes);
    }
}

/* Some are refused and some are not; none reaches beyond what is its own. */
static void a_recipe_that_nobody_settled_does_no_harm(void)
{
    for (size_t i = 0; i < COUNT(cuts); i++) {
        BAL_OWN(bal_model) view = NULL;
        int rc = open_cut(&view, &cuts[i], "weights");

        check_row(cuts[i].name);
        CHECK(!cuts[i].tensors || !rc);
        CHECK(rc == 0 || rc == BAL_EINVAL || rc == BAL_ECORRUPT);
        if (rc)
            continue;
        read_all(view);
        CHECK(!cuts[i].tensors || count_tensors(view) == cuts[i].tensors);
    }
}

/* Sources of unequal length, or none at all: settling never recorded that. */
static void slices_that_cannot_have_been_recorded_are_corrupt(void)
{
    for (size_t i = 0; i < COUNT(cuts); i++) {
        BAL_OWN(bal_model) view = NULL;

        check_row(cuts[i].name);
        if (cuts[i].tensors || strstr(cuts[i].name, "more layers"))
            continue;
        CHECK_RC(BAL_ECORRUPT, open_cut(&view, &cuts[i], "weights"));
    }
}

static void slices_of_anything_but_whole_models_do_no_harm(void)
{
    static const char *const spaces[] = { "delta", "product", "factors" };

    for (size_t i = 0; i < COUNT(spaces); i++) {
        BAL_OWN(bal_model) view = NULL;

        check_row(spaces[i]);
        if (!open_cut(&view, &cuts[1], spaces[i]))
            read_all(view);
    }
}

static const check_test tests[] = {
    { TEST(layers_get_other_numbers_and_keep_their_bytes) },
    { TEST(layers_that_are_not_there_are_named) },
    { TEST(two_spellings_of_a_layer_do_not_become_one_tensor) },
    { TEST(a_recipe_that_nobody_settled_does_no_harm) },
    { TEST(slices_that_cannot_have_been_recorded_are_corrupt) },
    { TEST(slices_of_anything_but_whole_models_do_no_harm) },
};

CHECK_MAIN(tests)
