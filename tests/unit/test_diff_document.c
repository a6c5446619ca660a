/* The document of a diff, read by a parser that is not ours. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/own.h"
#include "model/model.h"
#include "support/check.h"
#include "support/memory_model.h"

static bal_work *work;

static const uint64_t four = 4;
static const float threes[] = { 3, 0, 0, 0 };
static const float fours[] = { 3, 4, 0, 0 };
static const float sevens[] = { 0, 0, 0, 7 };

/* Two layers of two modules, and one tensor outside; of b the first module of
 * the second layer moved, by 4 of 3. */
static bal_model *model(const float *moved)
{
    static const char *const same[] = {
        "model.embed_tokens.weight",
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.q_proj.weight",
    };
    bal_model *self = memory_new(BAL_KIND_WEIGHTS, "m");

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        memory_tensor(self, same[i], BAL_F32, 1, &four, threes);
    memory_tensor(self, "model.layers.1.mlp.up_proj.weight", BAL_F32, 1, &four,
                  moved);
    memory_finish(self);
    return self;
}

static json_t *document(const bal_diff_options *options, const float *moved)
{
    BAL_OWN(bal_model) a = model(threes);
    BAL_OWN(bal_model) b = model(moved);
    char *text = NULL;

    CHECK_OK(bal_diff_json(&text, a, b, options, &check_err));
    CHECK(!strchr(text, '\n'));
    json_t *out = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    CHECK(out);
    bal_text_free(text);
    return out;
}

static const char *text_of(const json_t *of, const char *key)
{
    return json_string_value(json_object_get(of, key));
}

static double number_of(const json_t *of, const char *key)
{
    return json_number_value(json_object_get(of, key));
}

static void it_names_models_as_they_are_called_and_has_a_threshold(void)
{
    const double mine = 0.5;
    const bal_diff_options rows[] = {
        { .names = { "one", "two" }, .work = work },
        { .names = { "one", "two" }, .work = work, .threshold = &mine },
    };

    for (size_t i = 0; i < 2; i++) {
        json_t *got = document(&rows[i], fours);
        CHECK(!strcmp(text_of(got, "schema"), "ballast/diff/1"));
        CHECK(!strcmp(text_of(got, "a"), "one"));
        CHECK(!strcmp(text_of(got, "b"), "two"));
        CHECK(number_of(got, "threshold") == (i ? 0.5 : 0.01));
        CHECK(!json_object_get(got, "cells"));
        CHECK(!json_object_get(got, "probes"));
        CHECK(json_array_size(json_object_get(got, "layers")) == 2);
        CHECK(json_array_size(json_object_get(got, "modules")) == 3);
        json_decref(got);
    }
}

/* A column a layer, a row a module; norms are 3, so a change of 4 is 4/3. */
static void cells_are_modules_in_layers(void)
{
    static const struct {
        const char *layer;
        const char *name;
        double relative;
    } rows[] = {
        { "", "model.embed_tokens", 0 }, { "0", "mlp.up_proj", 0 },
        { "0", "self_attn.q_proj", 0 },  { "1", "mlp.up_proj", 4.0 / 3 },
        { "1", "self_attn.q_proj", 0 },
    };
    const bal_diff_options options = {
        .names = { "a", "b" },
        .flags = BAL_DIFF_CELLS,
        .work = work,
    };
    json_t *got = document(&options, fours);
    json_t *cells = json_object_get(got, "cells");

    CHECK(json_array_size(cells) == sizeof(rows) / sizeof(rows[0]));
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        check_row(rows[i].name);
        CHECK(!strcmp(text_of(cell, "layer"), rows[i].layer));
        CHECK(!strcmp(text_of(cell, "name"), rows[i].name));
        CHECK(fabs(number_of(cell, "relative") - rows[i].relative) < 1e-12);
        CHECK(number_of(cell, "tensors") == 1);
        CHECK(number_of(cell, "changed") == (rows[i].relative > 0));
    }
    json_decref(got);
}

static int count_until(void *ctx, const bal_diff_row *row)
{
    size_t *left = ctx;

    (void)row;
    return --*left == 0;
}

static void rows_are_told_and_end_it_when_it_is_enough(void)
{
    for (size_t most = 1; most < 7; most++) {
        size_t left = most;
        const bal_diff_options options = {
            .names = { "a", "b" },
            .work = work,
            .fn = count_until,
            .ctx = &left,
        };
        json_t *got = document(&options, sevens);
        size_t told = most < 5 ? most : 5;
        CHECK(left == most - told);
        CHECK(number_of(got, "shared") == (double)told);
        json_decref(got);
    }
}

static void only_commits_have_probes(void)
{
    BAL_OWN(bal_model) a = model(threes);
    BAL_OWN(bal_model) b = model(threes);
    const bal_diff_options options = {
        .names = { "a", "b" },
        .probe_set = "0123",
        .work = work,
    };
    char *text = NULL;

    CHECK(bal_diff_json(&text, a, b, &options, &check_err) == BAL_EINVAL);
    CHECK(!text && strstr(check_err.text, "0123"));
}

static const check_test tests[] = {
    { TEST(it_names_models_as_they_are_called_and_has_a_threshold) },
    { TEST(cells_are_modules_in_layers) },
    { TEST(rows_are_told_and_end_it_when_it_is_enough) },
    { TEST(only_commits_have_probes) },
};

int main(void)
{
    if (bal_work_new(&work, 2, &check_err))
        return 1;
    int status = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    bal_work_free(work);
    return status;
}
