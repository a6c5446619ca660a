/* mergekit's stream of random numbers, against the C++ standard's and NumPy's
 * MT19937; and which of them a view draws for what. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/pool.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static bal_torch_stream *stream_of(uint64_t seed, uint64_t length)
{
    bal_torch_stream *stream = NULL;

    CHECK_OK(bal_torch_stream_new(&stream, seed, length, &check_err));
    return stream;
}

/* ---- numbers ------------------------------------------------------------ */

/* The first is that of [rand.predef]; the others numpy.random.RandomState's. */
static const struct {
    uint64_t seed, at;
    uint32_t want;
} numbers[] = {
    { 5489, 9999, 4123659995 },    { 5489, 0, 3499211612 },
    { 5489, 2, 3890346734 },       { 5, 0, 953453411 },
    { 5, 623, 2809743450 },        { 5, 624, 164677315 },
    { 5, 1246, 2640094624 },       { 42, 3399999, 3456883723 },
    { 42, 2096640, 840903547 },    { 42, 1048321, 2097453508 },
    { 42, 1048320, 3948970738 },   { 42, 1048319, 1848493990 },
    { 42, 1248, 2655384025 },      { 42, 1, 3421126067 },
    { 4294967295, 0, 419326371 },  { 4294967295, 1048320, 3308367600 },
    { 4294967338, 1, 3421126067 },
};

static void numbers_are_those_of_mt19937(void)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        BAL_OWN(bal_torch_stream) stream = stream_of(numbers[i].seed, 4000000);
        uint32_t got;

        bal_torch_stream_take(stream, numbers[i].at, &got, 1);
        CHECK(got == numbers[i].want);
    }
}

enum { ITEMS = 16, EACH = 200, PIECES = ITEMS * EACH, PIECE = 1001 };

typedef struct reading {
    bal_torch_stream *stream;
    uint32_t *to;
} reading;

/* Every 16th piece, backwards in every other item. */
static int read_pieces(size_t item, void *ctx, bal_error *err)
{
    reading *self = ctx;
    (void)err;

    for (size_t i = 0; i < EACH; i++) {
        size_t turn = item % 2 ? EACH - 1 - i : i;
        size_t at = (turn * ITEMS + item) * PIECE;

        bal_torch_stream_take(self->stream, at, self->to + at, PIECE);
    }
    return 0;
}

static void any_thread_has_any_part_in_any_order(void)
{
    size_t n = (size_t)PIECES * PIECE;
    BAL_OWN(bal_torch_stream) whole = stream_of(42, n);
    BAL_OWN(bal_torch_stream) parts = stream_of(42, n);
    BAL_OWN(bal_work) pool = NULL;
    uint32_t *want = malloc(n * sizeof(*want));
    uint32_t *got = calloc(n, sizeof(*got));
    reading job = { parts, got };

    CHECK(want && got);
    CHECK_OK(bal_work_new(&pool, 8, &check_err));
    bal_torch_stream_take(whole, 0, want, n);
    CHECK_OK(bal_pool_run(pool, ITEMS, read_pieces, &job, &check_err));
    CHECK(!memcmp(want, got, n * sizeof(*want)));
    free(want);
    free(got);
}

static void how_long_a_stream_is_does_not_show(void)
{
    BAL_OWN(bal_torch_stream) brief = stream_of(7, 1);
    BAL_OWN(bal_torch_stream) vast = stream_of(7, BAL_TORCH_STREAM_MOST);
    static const uint64_t places[] = { 40000000, 17000000, 16777000, 5, 0 };
    uint32_t want[700];
    uint32_t got[700];

    for (size_t i = 0; i < COUNT(places); i++) {
        bal_torch_stream_take(brief, places[i], want, COUNT(want));
        bal_torch_stream_take(vast, places[i], got, COUNT(got));
        CHECK(!memcmp(want, got, sizeof(want)));
    }
}

static void more_than_can_be_counted_through_is_refused(void)
{
    BAL_OWN(bal_torch_stream) stream = NULL;

    CHECK_RC(BAL_EUNSUPPORTED,
             bal_torch_stream_new(&stream, 1, BAL_TORCH_STREAM_MOST + 1,
                                  &check_err));
}

/* mergekit's first samples of a tensor of 1201000 elements, seed 5. */
static void below_a_bound_is_what_torch_makes_of_it(void)
{
    static const uint64_t want[] = { 1060411, 399814, 1053767, 1153885,
                                     313006,  938070, 118792,  782233 };
    BAL_OWN(bal_torch_stream) stream = stream_of(5, 8);
    const uint32_t two[] = { 327741615, 976413892 };
    uint32_t drawn[8];

    bal_torch_stream_take(stream, 0, drawn, 8);
    for (size_t i = 0; i < 8; i++)
        CHECK(bal_torch_randint(&drawn[i], 1201000) == want[i]);
    CHECK(bal_torch_randint_draws((1 << 28) - 1) == 1);
    CHECK(bal_torch_randint(two, (1 << 28) - 1) == 59306160);
    CHECK(bal_torch_randint_draws(1 << 28) == 2);
    CHECK(bal_torch_randint(two, 1 << 28) == 171107524);
    CHECK(bal_torch_randint(two, 3000000000) == 2939636932);
}

static void uniform_numbers_are_the_lower_24_bits(void)
{
    CHECK(bal_torch_uniform(0xff000000) == 0);
    CHECK(bal_torch_uniform(0x00800000) == 0.5);
    CHECK(bal_torch_uniform(0xffffffff) == 1 - 0x1p-24);
}

/* ---- what a view draws -------------------------------------------------- */

enum { TENSORS = 3, INPUTS = 2, LARGEST = 700, ALL = -1, NONE = -2 };

/* In the order of their bytes. */
static const char *const names[TENSORS] = { "a10", "a2", "b" };
static const uint64_t sizes[TENSORS] = { LARGEST, 50, 9 };

/* What the models have beside those three, between the first and the second: a
 * tensor "a11" of 30 elements. */
typedef enum more {
    MORE_NOTHING,
    MORE_UNCHANGED,
    MORE_WHOLE,
    MORE_INTEGER,
    MORE_UNCHANGED_INTEGER,
    MORE_OF_BASE,
    MORE_OF_ONE,
} more;

/* In each tensor, where input 1's and input 2's numbers begin. */
static const struct {
    const char *name, *method;
    bal_space space;
    const char *density[INPUTS];
    more more;
    int64_t want[TENSORS][INPUTS];
} views[] = {
    { "input after input, tensor after tensor",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0.5", "0.5" },
      MORE_NOTHING,
      { { 0, 700 }, { 1400, 1450 }, { 1500, 1509 } } },
    { "differences alike",
      "dare_linear",
      BAL_SPACE_DELTA,
      { "0.5", "0.5" },
      MORE_NOTHING,
      { { 0, 700 }, { 1400, 1450 }, { 1500, 1509 } } },
    { "what is kept in full draws nothing",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "1", "0.5" },
      MORE_NOTHING,
      { { ALL, 0 }, { ALL, 700 }, { ALL, 750 } } },
    { "what is dropped in full draws",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0", "0.5" },
      MORE_NOTHING,
      { { NONE, 700 }, { NONE, 1450 }, { NONE, 1509 } } },
    { "but not in della",
      "della_linear",
      BAL_SPACE_WEIGHTS,
      { "0", "0.5" },
      MORE_NOTHING,
      { { NONE, 0 }, { NONE, 700 }, { NONE, 750 } } },
    { "what nobody changed is drawn for",
      "dare_linear",
      BAL_SPACE_DELTA,
      { "0.5", "0.5" },
      MORE_UNCHANGED,
      { { 0, 700 }, { 1460, 1510 }, { 1560, 1569 } } },
    { "what all have is",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0.5", "0.5" },
      MORE_WHOLE,
      { { 0, 700 }, { 1460, 1510 }, { 1560, 1569 } } },
    { "integers are not",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0.5", "0.5" },
      MORE_INTEGER,
      { { 0, 700 }, { 1400, 1450 }, { 1500, 1509 } } },
    { "unchanged ones neither",
      "dare_linear",
      BAL_SPACE_DELTA,
      { "0.5", "0.5" },
      MORE_UNCHANGED_INTEGER,
      { { 0, 700 }, { 1400, 1450 }, { 1500, 1509 } } },
    { "what the base alone has is not",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0.5", "0.5" },
      MORE_OF_BASE,
      { { 0, 700 }, { 1400, 1450 }, { 1500, 1509 } } },
    { "what one input lacks is drawn for the other",
      "dare_linear",
      BAL_SPACE_WEIGHTS,
      { "0.5", "0.5" },
      MORE_OF_ONE,
      { { 0, 700 }, { 1430, 1480 }, { 1530, 1539 } } },
};

/* Of input `input`, the last of which is the base: bit by bit, whether it has
 * the tensor that is more. */
static const unsigned having[] = {
    [MORE_NOTHING] = 0, [MORE_UNCHANGED] = 3,         [MORE_WHOLE] = 7,
    [MORE_INTEGER] = 7, [MORE_UNCHANGED_INTEGER] = 3, [MORE_OF_BASE] = 4,
    [MORE_OF_ONE] = 5,
};

/* Every element is 1, 2 or of the base 0. */
static bal_model *input_of(size_t v, size_t input)
{
    static float values[INPUTS + 1][LARGEST];
    bool delta = views[v].space == BAL_SPACE_DELTA;
    made_row rows[TENSORS + 1];
    size_t count = 0;

    for (size_t k = 0; k < LARGEST; k++)
        values[input][k] = (float)((input + 1) % (INPUTS + 1));
    for (size_t i = TENSORS; i > 0; i--) {
        rows[count++] = (made_row){
            .name = names[i - 1],
            .form = delta ? BAL_FORM_DIFFERENCE : BAL_FORM_WHOLE,
            .dtype = BAL_F32,
            .of = BAL_F32,
            .rank = 1,
            .shape = { sizes[i - 1] },
            .bytes = values[input],
        };
    }
    if (having[views[v].more] >> input & 1) {
        rows[count] = rows[0];
        rows[count].name = "a11";
        rows[count].shape[0] = 30;
        if (views[v].more == MORE_UNCHANGED ||
            views[v].more == MORE_UNCHANGED_INTEGER)
            rows[count].form = BAL_FORM_SAME;
        if (views[v].more == MORE_INTEGER ||
            views[v].more == MORE_UNCHANGED_INTEGER) {
            rows[count].dtype = BAL_I32;
            rows[count].bytes = values[0];
        }
        count++;
    }
    return made_model(delta ? BAL_KIND_DELTA : BAL_KIND_WEIGHTS, NULL, rows,
                      count);
}

static bal_recipe *recipe_of(size_t v)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, views[v].method, &check_err));
    for (size_t i = 0; i < INPUTS; i++) {
        bal_input input = { .tenant = "acme", .weight = 1 };
        input.parameters = json_pack("{s:s}", "density", views[v].density[i]);
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    CHECK_OK(bal_recipe_set(recipe, "rescale", "false", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "arithmetic", "mergekit", &check_err));
    CHECK_OK(bal_recipe_set(recipe, "mergekit_stream", "42", &check_err));
    if (!strcmp(views[v].method, "della_linear"))
        CHECK_OK(bal_recipe_set(recipe, "epsilon", "0", &check_err));
    if (views[v].space == BAL_SPACE_WEIGHTS) {
        bal_input base = { .tenant = "acme", .weight = 1 };
        base.commit = made_id(9);
        CHECK_OK(bal_recipe_add_base(recipe, &base, &check_err));
    }
    return recipe;
}

/* 1 or 0 for an input's element. */
static int kept(bal_torch_stream *stream, int64_t from, size_t k)
{
    uint32_t drawn = 0;

    if (from < 0)
        return from == ALL;
    bal_torch_stream_take(stream, (uint64_t)from + k, &drawn, 1);
    return bal_torch_uniform(drawn) < 0.5;
}

static void check_tensor(bal_model *view, size_t v, size_t i)
{
    BAL_OWN(bal_torch_stream) stream = stream_of(42, 10000);
    size_t at = bal_model_find(view, BAL_PART_TENSOR, names[i]);
    float got[LARGEST];

    CHECK(at != BAL_NONE);
    CHECK_OK(bal_model_read(view, at, 0, got, sizes[i] * sizeof(got[0]),
                            &check_err));
    for (size_t k = 0; k < sizes[i]; k++) {
        int one = kept(stream, views[v].want[i][0], k);
        int two = kept(stream, views[v].want[i][1], k);
        CHECK((int)got[k] == one + 2 * two);
    }
}

static void every_tensor_and_input_has_its_part_of_the_stream(void)
{
    for (size_t v = 0; v < COUNT(views); v++) {
        BAL_OWN(bal_recipe) recipe = recipe_of(v);
        BAL_OWN(bal_model) view = NULL;
        bal_model *inputs[INPUTS + 1];

        check_row(views[v].name);
        for (size_t i = 0; i <= INPUTS; i++)
            inputs[i] = input_of(v, i);
        CHECK_OK(bal_recipe_settle(recipe, inputs, &check_err));
        CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
        for (size_t i = 0; i <= INPUTS; i++)
            bal_model_free(inputs[i]);
        for (size_t i = TENSORS; i > 0; i--)
            check_tensor(view, v, i - 1);
    }
}

/* Of tensors that nobody has bytes of, so that there may be any number of. */
static void a_view_of_more_than_can_be_counted_is_refused(void)
{
    const made_row row = { .name = "w",
                           .form = BAL_FORM_SAME,
                           .dtype = BAL_F32,
                           .of = BAL_F32,
                           .rank = 2,
                           .shape = { 1 << 20, (1 << 20) + 1 } };
    BAL_OWN(bal_recipe) recipe = recipe_of(1);
    BAL_OWN(bal_model) a = made_model(BAL_KIND_DELTA, NULL, &row, 1);
    BAL_OWN(bal_model) b = made_model(BAL_KIND_DELTA, NULL, &row, 1);
    BAL_OWN(bal_model) view = NULL;
    bal_model *inputs[] = { a, b };

    CHECK_OK(bal_recipe_settle(recipe, inputs, &check_err));
    CHECK_RC(BAL_EUNSUPPORTED,
             bal_view_open(&view, recipe, inputs, NULL, &check_err));
    CHECK(strstr(check_err.text, "'w'") != NULL);
}

/* ---- recipes ------------------------------------------------------------ */

static const struct {
    const char *name, *method, *value, *seed, *arithmetic;
    int set, settle;
} recipes[] = {
    { "told", "dare_ties", "7", NULL, "mergekit", 0, 0 },
    { "of samples", "arcee_fusion", "7", NULL, "mergekit", 0, 0 },
    { "of a method that draws none", "ties", "7", NULL, "mergekit", BAL_EINVAL,
      0 },
    { "no number", "della", "x", NULL, "mergekit", BAL_EINVAL, 0 },
    { "below 0", "della", "-1", NULL, "mergekit", BAL_EINVAL, 0 },
    { "beside a seed", "della", "7", "7", "mergekit", 0, BAL_EINVAL },
    { "in precise", "della", "7", NULL, "precise", 0, BAL_EINVAL },
};

static void the_stream_is_for_what_mergekit_draws(void)
{
    for (size_t i = 0; i < COUNT(recipes); i++) {
        BAL_OWN(bal_recipe) recipe = NULL;
        BAL_OWN(bal_model) model = made_model(BAL_KIND_DELTA, NULL, NULL, 0);
        bal_input input = { .tenant = "acme", .weight = 1 };

        check_row(recipes[i].name);
        CHECK_OK(bal_recipe_new(&recipe, recipes[i].method, &check_err));
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
        if (recipes[i].seed)
            CHECK_OK(
                bal_recipe_set(recipe, "seed", recipes[i].seed, &check_err));
        CHECK_RC(recipes[i].set, bal_recipe_set(recipe, "mergekit_stream",
                                                recipes[i].value, &check_err));
        CHECK_OK(bal_recipe_set(recipe, "arithmetic", recipes[i].arithmetic,
                                &check_err));
        CHECK_RC(recipes[i].settle,
                 bal_recipe_settle(recipe, &model, &check_err));
    }
}

/* What is set in a recorded recipe, and what it is then. */
static const struct {
    const char *name, *key, *json;
    int rc;
} damages[] = {
    { "as it was", "mergekit_stream", "\"18446744073709551615\"", 0 },
    { "a number", "mergekit_stream", "7", BAL_ECORRUPT },
    { "null", "mergekit_stream", "null", BAL_ECORRUPT },
    { "too large", "mergekit_stream", "\"18446744073709551616\"",
      BAL_ECORRUPT },
    { "a seed beside it", "seed", "\"7\"", BAL_ECORRUPT },
    { "in precise", "arithmetic", "\"precise\"", BAL_ECORRUPT },
    { "of a method that draws none", "method", "\"breadcrumbs\"",
      BAL_ECORRUPT },
};

static void the_stream_is_recorded_in_place_of_the_seed(void)
{
    for (size_t i = 0; i < COUNT(damages); i++) {
        BAL_OWN(bal_recipe) recipe = recipe_of(1);
        BAL_OWN(bal_recipe) again = NULL;
        BAL_OWN(json_t) json = NULL;
        BAL_OWN(json_t) value = NULL;

        check_row(damages[i].name);
        recipe->space = BAL_SPACE_DELTA;
        CHECK_OK(bal_recipe_set(recipe, "mergekit_stream",
                                "18446744073709551615", &check_err));
        CHECK_OK(bal_recipe_json(&json, recipe, &check_err));
        CHECK(!json_object_get(json, "seed"));
        CHECK(
            !strcmp(json_string_value(json_object_get(json, "mergekit_stream")),
                    "18446744073709551615"));
        CHECK_OK(bal_json_parse(&value, damages[i].json,
                                strlen(damages[i].json), "value", &check_err));
        json_object_set(json, damages[i].key, value);
        CHECK_RC(damages[i].rc, bal_recipe_parse(&again, json, &check_err));
        CHECK(!again || (again->streamed && again->stream == UINT64_MAX));
    }
}

static const check_test tests[] = {
    { TEST(numbers_are_those_of_mt19937) },
    { TEST(any_thread_has_any_part_in_any_order) },
    { TEST(how_long_a_stream_is_does_not_show) },
    { TEST(more_than_can_be_counted_through_is_refused) },
    { TEST(below_a_bound_is_what_torch_makes_of_it) },
    { TEST(uniform_numbers_are_the_lower_24_bits) },
    { TEST(every_tensor_and_input_has_its_part_of_the_stream) },
    { TEST(a_view_of_more_than_can_be_counted_is_refused) },
    { TEST(the_stream_is_for_what_mergekit_draws) },
    { TEST(the_stream_is_recorded_in_place_of_the_seed) },
};

CHECK_MAIN(tests)
