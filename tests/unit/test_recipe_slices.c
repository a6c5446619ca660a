/* Recipes of slices, of adapters that are put onto models, of two dtypes and
 * other vocabularies: recorded, read back, and damaged. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "merge/merge.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#define ID(x) x "00000000000000000000000000000000000000000000000000000000000000"
#define WHO(x)                                                                 \
    "\"commit\":\"" ID(x) "\",\"manifest\":\"" ID(x) "\",\"tenant\":\"acme\""
#define WHO_1 WHO("01")
#define WHO_2 WHO("02")
#define WHO_3 WHO("03")
#define WHO_4 WHO("04")
#define WHO_5 WHO("05")

/* Two slices; the second adapter goes onto a carrier, the first onto an input.
 */
static const char sliced[] =
    "{\"arithmetic\":\"mergekit\",\"dtype\":\"BF16\",\"inputs\":["
    "{" WHO_1 ",\"layers\":[0,2],\"parameters\":{\"density\":"
    "\"mlp:0,0.5;1\"},\"slice\":0,\"weight\":\"q_proj:1;0,0.25\"},"
    "{" WHO_2 ",\"layers\":[1,3],\"onto\":0,\"slice\":0,\"weight\":\"2\"},"
    "{" WHO_1 ",\"layers\":[3,4],\"slice\":1,\"weight\":\"1\"},"
    "{" WHO_3 ",\"layers\":[0,1],\"onto\":4,\"slice\":1,\"weight\":\"2\"},"
    "{" WHO_4 ",\"carrier\":true,\"weight\":\"1\"}],"
    "\"mergekit_stream\":\"18446744073709551615\",\"method\":\"dare_ties\","
    "\"out_dtype\":\"F32\",\"parameters\":{\"lambda\":\"1,0.5\"},"
    "\"slices\":[{\"base\":null,\"parameters\":{\"lambda\":\"norm:2\"}},"
    "{\"base\":2}],"
    "\"space\":\"weights\",\"strict\":true,"
    "\"tokenizer\":{\"pad_to_multiple_of\":8,\"source\":\"union\","
    "\"tokens\":{\"<x>\":{\"force\":true,\"source\":{\"input\":1}}}}}";

static const char whole[] =
    "{\"arithmetic\":\"precise\",\"dtype\":null,\"inputs\":["
    "{" WHO_2 ",\"onto\":1,\"weight\":\"mlp:0.5;1\"},"
    "{" WHO_1 ",\"weight\":\"1\"},"
    "{" WHO_5 ",\"onto\":3,\"parameters\":{\"density\":\"0.5,1\"},"
    "\"weight\":\"0,1\"},"
    "{" WHO_4 ",\"carrier\":true,\"weight\":\"1\"}],"
    "\"base\":1,\"method\":\"ties\",\"parameters\":{\"normalize\":"
    "\"norm:false;true\"},\"space\":\"weights\",\"strict\":false,"
    "\"tokenizer\":{\"source\":1}}";

/* One that has nothing but what has to be there. */
static const char plain[] =
    "{\"arithmetic\":\"precise\",\"dtype\":null,\"inputs\":["
    "{" WHO_1 ",\"layers\":[0,0],\"slice\":0,\"weight\":\"1\"}],"
    "\"method\":\"linear\",\"parameters\":{},\"slices\":[{\"base\":null}],"
    "\"space\":\"weights\",\"strict\":false}";

static const char drawn[] =
    "{\"arithmetic\":\"mergekit\",\"base\":null,\"dtype\":null,\"inputs\":["
    "{" WHO_1 ",\"weight\":\"1\"}],\"mergekit_stream\":\"0\","
    "\"method\":\"dare_linear\",\"parameters\":{},\"space\":\"delta\","
    "\"strict\":false}";

static json_t *read_json(const char *text)
{
    json_t *json = NULL;

    CHECK_OK(bal_json_parse(&json, text, strlen(text), "recipe", &check_err));
    return json;
}

static void write_text(bal_buf *to, const bal_recipe *recipe)
{
    BAL_OWN(json_t) json = NULL;

    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    CHECK_OK(bal_json_canonical(to, json, &check_err));
}

/* Read, written, and read again. */
static void stays(const char *text)
{
    BAL_OWN(json_t) json = read_json(text);
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_LOCAL(bal_buf) want = { 0 };
    BAL_LOCAL(bal_buf) got = { 0 };

    check_row(text);
    CHECK_OK(bal_json_canonical(&want, json, &check_err));
    CHECK_OK(bal_recipe_parse(&recipe, json, &check_err));
    write_text(&got, recipe);
    CHECK(!strcmp(bal_buf_string(&got), bal_buf_string(&want)));
}

static void what_is_recorded_is_read_back_as_it_was(void)
{
    stays(sliced);
    stays(whole);
    stays(plain);
    stays(drawn);
}

static void what_is_read_is_what_is_said(void)
{
    BAL_OWN(json_t) json = read_json(sliced);
    BAL_OWN(bal_recipe) self = NULL;

    CHECK_OK(bal_recipe_parse(&self, json, &check_err));
    CHECK(self->sliced && self->slice_count == 2 && self->count == 5);
    CHECK(bal_recipe_merged(self) == 4 && bal_recipe_inputs(self) == 5);
    CHECK(self->slices[0].base == BAL_NONE && self->slices[1].base == 2);
    CHECK(self->inputs[1].slice == 0 && self->inputs[2].slice == 1);
    CHECK(self->inputs[1].first == 1 && self->inputs[1].end == 3);
    CHECK(!self->inputs[0].adapter && self->inputs[1].adapter);
    CHECK(self->inputs[1].onto == 0 && self->inputs[3].onto == 4);
    CHECK(self->inputs[4].carrier && !self->inputs[3].carrier);
    CHECK(self->streamed && self->stream == UINT64_MAX && !self->seeded);
    CHECK(self->dtype == BAL_BF16 && self->out_dtype == BAL_F32);
    CHECK(json_object_size(self->vocabulary) == 3);
}

/* ---- put together ------------------------------------------------------- */

static bal_input source(uint8_t id, size_t slice, uint64_t first, uint64_t end)
{
    bal_input input = { .tenant = "acme", .weight = 1, .slice = slice };

    input.commit.bytes[0] = id;
    input.manifest.bytes[0] = id;
    input.first = first;
    input.end = end;
    return input;
}

typedef struct weighing {
    const char *own, *slice, *recipe;
    const char *want; /* of the input, as it is recorded */
} weighing;

static const weighing weighings[] = {
    { NULL, NULL, NULL, "1" },
    { "0.5", "2", "3", "0.5" },
    { NULL, "2", "3", "2" },
    { NULL, NULL, "3", "3" },
    { "mlp:0.5", "2", "3", "mlp:0.5;2" },
    { "mlp:0.5", "attn:2", "3", "mlp:0.5;attn:2;3" },
    { NULL, "attn:2", "0,3", "attn:2;0,3" },
};

static json_t *weight_of(const char *text)
{
    return text ? json_pack("{s:s}", "weight", text) : NULL;
}

/* One slice of two sources, the first of which has its own weight. */
static bal_recipe *weighed(const weighing *row, const char *arithmetic)
{
    bal_recipe *recipe = NULL;
    bal_input one = source(1, 0, 0, 2);
    bal_input two = source(2, 0, 2, 4);

    one.parameters = weight_of(row->own);
    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "arithmetic", arithmetic, &check_err));
    CHECK_OK(bal_recipe_set(recipe, "space", "weights", &check_err));
    CHECK_OK(bal_recipe_add_slice(recipe, weight_of(row->slice), &check_err));
    if (row->recipe)
        CHECK_OK(bal_recipe_set(recipe, "weight", row->recipe, &check_err));
    CHECK_OK(bal_recipe_add(recipe, &one, &check_err));
    CHECK_OK(bal_recipe_add(recipe, &two, &check_err));
    return recipe;
}

static void written_and_read_back(const bal_recipe *recipe, const char *want)
{
    BAL_OWN(json_t) json = NULL;
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
    const json_t *input = json_array_get(json_object_get(json, "inputs"), 0);
    const char *weight = json_string_value(json_object_get(input, "weight"));
    CHECK(weight && !strcmp(weight, want));
    CHECK_OK(bal_json_canonical(&text, json, &check_err));
    stays(bal_buf_string(&text));
}

static void every_input_tells_its_whole_weight(void)
{
    static const char *const arithmetics[] = { "precise", "mergekit" };

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT(weighings); i++) {
            BAL_OWN(bal_recipe)
            recipe = weighed(&weighings[i], arithmetics[k]);
            check_row(weighings[i].want);
            written_and_read_back(recipe, weighings[i].want);
        }
    }
}

static void a_weight_for_some_tensors_alone_stays_one(void)
{
    static const weighing rows[] = {
        { "mlp:0.5", NULL, NULL, "mlp:0.5" },
        { NULL, NULL, "mlp:2", "mlp:2" },
        { "mlp:0.5", NULL, "attn:2", "mlp:0.5;attn:2" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_recipe) recipe = weighed(&rows[i], "mergekit");
        check_row(rows[i].want);
        written_and_read_back(recipe, rows[i].want);
    }
}

static void a_weight_that_slices_tell_for_some_tensors_stays_one(void)
{
    static const weighing rows[] = {
        { NULL, "attn:2", NULL, "attn:2" },
        { "mlp:0.5", "attn:2", NULL, "mlp:0.5;attn:2" },
        { "mlp:0.5", "attn:2", "q:3", "mlp:0.5;attn:2;q:3" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_recipe) recipe = weighed(&rows[i], "mergekit");
        check_row(rows[i].want);
        written_and_read_back(recipe, rows[i].want);
    }
}

static void a_slice_takes_what_the_method_has(void)
{
    static const struct {
        const char *name, *text, *says;
    } rows[] = {
        { "density", "0.5", "'linear' has no parameter 'density'" },
        { "normalize", "2", "normalize: '2' is not true or false" },
        { "weight", "x", "weight" },
        { "weight", "mlp:", "weight" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_recipe) recipe = NULL;
        json_t *told = json_pack("{s:s}", rows[i].name, rows[i].text);

        check_row(rows[i].says);
        CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
        CHECK_RC(BAL_EINVAL, bal_recipe_add_slice(recipe, told, &check_err));
        CHECK(strstr(check_err.text, rows[i].says) != NULL);
        CHECK(!recipe->sliced);
    }
}

static void what_a_slice_tells_is_recorded_in_one_spelling(void)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    json_t *told =
        json_pack("{s:s, s:s}", "weight", "mlp:0.50;*:1e0", "normalize", "YES");

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_add_slice(recipe, told, &check_err));
    BAL_OWN(json_t)
    want = json_pack("{s:s, s:s}", "weight", "mlp:0.5;1", "normalize", "true");
    CHECK(json_equal(bal_recipe_slice(recipe, 0)->parameters, want));
}

/* ---- damaged ------------------------------------------------------------ */

typedef struct damage {
    const char *text; /* of what is damaged */
    const char *path; /* keys and indexes, '/' between them */
    const char *json; /* the value that it gets, NULL: none */
} damage;

static const damage damages[] = {
    { sliced, "slices", "{}" },
    { sliced, "slices", "[]" },
    { sliced, "slices", "null" },
    { sliced, "slices", "3" },
    { sliced, "slices/0/parameters", "[]" },
    { sliced, "slices/0/parameters", "{\"lambda\": 1}" },
    { sliced, "slices/0/parameters", "{\"lambda\": \"x\"}" },
    { sliced, "slices/0/parameters", "{\"lambda\": \"norm:\"}" },
    { sliced, "slices/0/parameters", "{\"nothing\": \"1\"}" },
    { sliced, "slices/0/base", "2" }, /* of another slice */
    { sliced, "slices/1/base", "0" },
    { sliced, "slices/1/base", "4" }, /* a carrier */
    { sliced, "slices/1/base", "5" },
    { sliced, "slices/1/base", "-1" },
    { sliced, "slices/1/base", "\"2\"" },
    { sliced, "slices/1/base", "9223372036854775807" },
    { sliced, "inputs/0/slice", "1" }, /* before one of slice 0 */
    { sliced, "inputs/0/slice", "2" },
    { sliced, "inputs/0/slice", "-1" },
    { sliced, "inputs/0/slice", "0.0" },
    { sliced, "inputs/0/slice", "\"0\"" },
    { sliced, "inputs/0/slice", NULL },
    { sliced, "inputs/3/slice", "0" },
    { sliced, "inputs/0/layers", "[-1, 1]" },
    { sliced, "inputs/0/layers", "[2, 0]" },
    { sliced, "inputs/0/layers", "[0]" },
    { sliced, "inputs/0/layers", "[0, 2, 4]" },
    { sliced, "inputs/0/layers", "[0, 2.0]" },
    { sliced, "inputs/0/layers", "[\"0\", \"2\"]" },
    { sliced, "inputs/0/layers", "{\"0\": 0, \"1\": 2}" },
    { sliced, "inputs/0/layers", NULL },
    { sliced, "inputs/0/onto", "0" }, /* itself */
    { sliced, "inputs/0/onto", "1" }, /* an adapter */
    { sliced, "inputs/1/onto", "5" },
    { sliced, "inputs/1/onto", "4097" },
    { sliced, "inputs/1/onto", "-1" },
    { sliced, "inputs/1/onto", "true" },
    { sliced, "inputs/1/onto", "null" },
    { sliced, "inputs/1/onto", "9223372036854775807" },
    { sliced, "inputs/4/onto", "0" }, /* a carrier that is an adapter */
    { sliced, "inputs/0/carrier", "true" },
    { sliced, "inputs/3/carrier", "true" },
    { sliced, "inputs/0/weight", "\"q_proj:\"" },
    { sliced, "inputs/0/weight", "\"\"" },
    { sliced, "inputs/0/parameters", "{\"density\": \"x\"}" },
    { sliced, "inputs/0/parameters", "{\"density\": \"0,\"}" },
    { sliced, "inputs/0/parameters", "{\"lambda\": \"1\"}" },
    { sliced, "out_dtype", "\"I8\"" },
    { sliced, "out_dtype", "7" },
    { sliced, "mergekit_stream", "1" },
    { sliced, "mergekit_stream", "\"-1\"" },
    { sliced, "seed", "\"1\"" },
    { sliced, "parameters/lambda", "\"1,\"" },
    { sliced, "parameters/weight", "\"1\"" },
    { whole, "out_dtype", "\"F32\"" }, /* precise rounds once */
    { whole, "mergekit_stream", "\"1\"" },
    { drawn, "arithmetic", "\"precise\"" },
    { drawn, "method", "\"linear\"" },
    { drawn, "mergekit_stream", "null" },
    { whole, "base", "3" }, /* a carrier */
    { whole, "inputs/1/carrier", "true" },
    { whole, "inputs/0/onto", "2" },
    { whole, "inputs/2/onto", "4" },
};

/* Where the last key of the path is looked up. */
static json_t *walk(json_t *json, const char *path, const char **key)
{
    const char *slash;

    for (*key = path; (slash = strchr(*key, '/')) != NULL; *key = slash + 1) {
        size_t len = (size_t)(slash - *key);
        json = json_is_array(json) ? json_array_get(json, (size_t)(**key - '0'))
                                   : json_object_getn(json, *key, len);
    }
    return json;
}

static bal_recipe *damaged(const damage *row, int want)
{
    BAL_OWN(json_t) json = read_json(row->text);
    bal_recipe *recipe = NULL;
    const char *key;
    json_t *at = walk(json, row->path, &key);

    check_row(row->json ? row->json : row->path);
    CHECK(json_is_object(at));
    if (row->json)
        json_object_set_new(at, key, read_json(row->json));
    else
        json_object_del(at, key);
    CHECK_RC(want, bal_recipe_parse(&recipe, json, &check_err));
    return recipe;
}

static void damaged_recipes_are_refused(void)
{
    for (size_t i = 0; i < COUNT(damages); i++)
        CHECK(!damaged(&damages[i], BAL_ECORRUPT));
}

/* Layers that no model has are the model's word against the recipe's. */
static void large_layers_are_read(void)
{
    static const damage rows[] = {
        { plain, "inputs/0/layers", "[0, 9223372036854775807]" },
        { plain, "inputs/0/layers",
          "[9223372036854775807, 9223372036854775807]" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(bal_recipe) recipe = damaged(&rows[i], 0);
        CHECK(recipe->inputs[0].end == INT64_MAX);
    }
}

/* ---- too many ----------------------------------------------------------- */

static int parse_many(const char *key, size_t count)
{
    BAL_OWN(json_t) json = read_json(plain);
    BAL_OWN(bal_recipe) recipe = NULL;
    json_t *list = json_object_get(json, key);
    json_t *first = json_array_get(list, 0);

    while (json_array_size(list) < count)
        json_array_append(list, first);
    return bal_recipe_parse(&recipe, json, &check_err);
}

static void there_is_a_limit_to_inputs_and_slices(void)
{
    CHECK_OK(parse_many("inputs", BAL_INPUTS_MAX));
    CHECK_RC(BAL_ECORRUPT, parse_many("inputs", BAL_INPUTS_MAX + 1));
    CHECK_RC(BAL_ECORRUPT, parse_many("slices", BAL_INPUTS_MAX + 1));
}

static const check_test tests[] = {
    { TEST(what_is_recorded_is_read_back_as_it_was) },
    { TEST(what_is_read_is_what_is_said) },
    { TEST(every_input_tells_its_whole_weight) },
    { TEST(a_weight_for_some_tensors_alone_stays_one) },
    { TEST(a_weight_that_slices_tell_for_some_tensors_stays_one) },
    { TEST(a_slice_takes_what_the_method_has) },
    { TEST(what_a_slice_tells_is_recorded_in_one_spelling) },
    { TEST(damaged_recipes_are_refused) },
    { TEST(large_layers_are_read) },
    { TEST(there_is_a_limit_to_inputs_and_slices) },
};

CHECK_MAIN(tests)
