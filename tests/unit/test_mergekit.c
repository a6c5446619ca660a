/* What a configuration says, level by level, by mergekit's rules for levels,
 * filters and types; what whole recipes give is tested with the program. */
#include <stdlib.h>
#include <string.h>

#include "merge/mergekit.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static int read_text(bal_mergekit *out, bal_yaml *yaml, const char *text)
{
    int rc = bal_yaml_parse(yaml, text, strlen(text), "x", &check_err);

    return rc ? rc : bal_mergekit_read(out, yaml->documents[0], &check_err);
}

static bool is_json(const json_t *got, const char *text)
{
    BAL_OWN(json_t) want = json_loads(text, 0, NULL);

    return want && json_equal(got, want);
}

/* ---- values ------------------------------------------------------------- */

#define LINEAR(weight)                                                           \
    "merge_method: linear\nmodels: [{model: a}]\nparameters:\n  weight: " weight \
    "\n"
#define KARCHER(iterations)                                                             \
    "merge_method: karcher\nmodels: [{model: a}]\nparameters:\n  max_iter: " iterations \
    "\n"
#define NORMALIZE(value)                                                       \
    "merge_method: linear\nmodels: [{model: a}]\nparameters: "                 \
    "{weight: 1, normalize: " value "}\n"

static void values_are_converted_to_the_parameters_type(void)
{
    static const struct {
        const char *text, *name, *want;
    } rows[] = {
        { LINEAR("0.5"), "weight", "0.5" },
        { LINEAR("1e-5"), "weight", "1e-05" },
        { LINEAR("'0.5'"), "weight", "0.5" },
        { LINEAR("yes"), "weight", "1" },
        { LINEAR("1_000"), "weight", "1000" },
        { LINEAR("[0, 0.5, 1]"), "weight", "0,0.5,1" },
        { LINEAR("[{filter: mlp, value: [0, 1]}, {value: 2}]"), "weight",
          "mlp:0,1;2" },
        { LINEAR("[{filter: '*', value: 3}, {value: 2}]"), "weight", "3" },
        { LINEAR("[{filter: null, value: 3}, {value: 2}]"), "weight", "3" },
        { LINEAR("{value: 4}"), "weight", "4" },
        { LINEAR("[{filter: a, value: []}, {value: 2}]"), "weight", "2" },
        { KARCHER("5.0"), "max_iter", "5" },
        { KARCHER("'7'"), "max_iter", "7" },
        { NORMALIZE("0"), "normalize", "false" },
        { NORMALIZE("1.0"), "normalize", "true" },
        { NORMALIZE("'T'"), "normalize", "true" },
        { NORMALIZE("'no'"), "normalize", "false" },
        { NORMALIZE("[true, 0]"), "normalize", "true,false" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_mergekit) plan = { 0 };
        BAL_LOCAL(bal_yaml) yaml = { 0 };

        check_row(rows[i].text);
        CHECK_OK(read_text(&plan, &yaml, rows[i].text));
        const char *got =
            json_string_value(json_object_get(plan.parameters, rows[i].name));
        CHECK(got && !strcmp(got, rows[i].want));
    }
}

static void values_of_another_type_are_refused(void)
{
    static const struct {
        const char *text;
        int code;
        const char *why;
    } rows[] = {
        { LINEAR("half"), BAL_EINVAL,
          "weight: line 4, column 11: 'half' is not a number" },
        { LINEAR("[0, [1]]"), BAL_EINVAL, "a list or map where a value" },
        { LINEAR("[0, {value: 1}]"), BAL_EINVAL, "has to be '- value: x'" },
        { LINEAR("{filter: mlp}"), BAL_EINVAL, "has to be '- value: x'" },
        { LINEAR("{value: 1, fliter: x}"), BAL_EINVAL, "'fliter' is neither" },
        { LINEAR("[null]"), BAL_EINVAL, "'null' is not a number" },
        { LINEAR("{filter: 'a;b', value: 1}"), BAL_EUNSUPPORTED, "'a;b'" },
        { LINEAR("[]"), BAL_EINVAL, "model 'a' has no weight" },
        { LINEAR("null"), BAL_EINVAL, "model 'a' has no weight" },
        { LINEAR(".inf"), BAL_EINVAL, "'.inf' is not a number" },
        { KARCHER("5.5"), BAL_EINVAL, "'5.5' is not a whole number" },
        { NORMALIZE("0.5"), BAL_EINVAL, "'0.5' is not true or false" },
        { NORMALIZE("maybe"), BAL_EINVAL, "'maybe' is not true or false" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_mergekit) plan = { 0 };
        BAL_LOCAL(bal_yaml) yaml = { 0 };

        check_row(rows[i].text);
        CHECK_RC(rows[i].code, read_text(&plan, &yaml, rows[i].text));
        CHECK(strstr(check_err.text, rows[i].why) != NULL);
        CHECK(!plan.models && !plan.not_used);
    }
}

/* ---- levels ------------------------------------------------------------- */

static void the_nearest_level_comes_first_and_others_behind_its_filters(void)
{
    BAL_LOCAL(bal_mergekit) plan = { 0 };
    BAL_LOCAL(bal_yaml) yaml = { 0 };

    CHECK_OK(read_text(
        &plan, &yaml,
        "merge_method: linear\n"
        "modules:\n"
        "  default:\n"
        "    slices:\n"
        "    - sources:\n"
        "      - model: a\n"
        "        layer_range: [0, 3]\n"
        "        parameters: {weight: {filter: q_proj, value: 1}}\n"
        "      - {model: b, layer_range: [0, 3], parameters: {weight: 7}}\n"
        "      parameters: {weight: {filter: v_proj, value: 2}}\n"
        "    parameters: {weight: {filter: mlp, value: [3, 4]}}\n"
        "parameters: {weight: 5, normalize: false}\n"));
    CHECK(plan.count == 2 && plan.sliced && plan.slice_count == 1);
    CHECK(plan.models[1].end == 3 && plan.slices[0].base == BAL_NONE);
    CHECK(is_json(plan.slices[0].parameters, "{\"weight\": \"v_proj:2\"}"));
    CHECK(is_json(plan.parameters, "{\"weight\": \"mlp:3,4;5\", "
                                   "\"normalize\": \"false\"}"));
    CHECK(is_json(plan.models[0].parameters, "{\"weight\": \"q_proj:1\"}"));
    CHECK(is_json(plan.models[1].parameters, "{\"weight\": \"7\"}"));
    CHECK(is_json(plan.not_used, "[]"));
}

static void the_base_is_where_it_is_listed_or_last(void)
{
    static const struct {
        const char *text;
        size_t base, count;
    } rows[] = {
        { "merge_method: ties\nbase_model: b\nparameters: {weight: 1}\n"
          "models: [{model: a}, {model: b}, {model: c}]",
          1, 3 },
        { "merge_method: ties\nbase_model: b\nparameters: {weight: 1}\n"
          "models: [{model: a}, {model: c}]",
          2, 3 },
        { "merge_method: slerp\nbase_model: b\nparameters: {t: 1}\n"
          "slices: [{sources: [{model: b, layer_range: [0, 2]}, "
          "{model: c, layer_range: [0, 2]}]}]",
          0, 2 },
        { "merge_method: slerp\nbase_model: b\nparameters: {t: 1}\n"
          "slices: [{base_model: c, sources: [{model: b, layer_range: [0, 2]},"
          "{model: c, layer_range: [0, 2]}]}]",
          1, 2 },
        { "merge_method: karcher\nmodels: [{model: a}, {model: b}]", BAL_NONE,
          2 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_mergekit) plan = { 0 };
        BAL_LOCAL(bal_yaml) yaml = { 0 };

        check_row(rows[i].text);
        CHECK_OK(read_text(&plan, &yaml, rows[i].text));
        CHECK(plan.slices[0].base == rows[i].base &&
              plan.count == rows[i].count);
    }
}

/* ---- models ------------------------------------------------------------- */

static void models_are_named_as_text_or_map(void)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
        bool adapter;
    } rows[] = {
        { "lab/a-7b", "lab/a-7b", false },
        { "007", "007", false },
        { "on", "on", false },
        { "E:\\merges\\first", "E:\\merges\\first", false },
        { "a@rev+b@v2", "a@rev+b@v2", true },
        { "{model: {path: a, revision: main}, lora: {path: b}}", "a@main+b",
          true },
        { "{model: a, lora: null, override_architecture: X}", "a", false },
        { "a+b+c", NULL, false },
        { "a@b@c", NULL, false },
        { "a+b@c@d", NULL, false },
        { "''", NULL, false },
        { "[a]", NULL, false },
        { "{path: a}", NULL, false },
        { "null", NULL, false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_arena) arena = { 0 };
        BAL_LOCAL(bal_yaml) yaml = { 0 };
        bal_mergekit_model model = { 0 };
        const char *text = rows[i].text;

        check_row(text);
        CHECK_OK(bal_yaml_parse(&yaml, text, strlen(text), "x", &check_err));
        int rc = bal_mergekit_reference(&model, &arena, yaml.documents[0],
                                        &check_err);
        CHECK(rc == (rows[i].want ? 0 : BAL_EINVAL));
        if (rc)
            continue;
        CHECK(!strcmp(model.name, rows[i].want));
        CHECK(model.adapter == rows[i].adapter);
    }
}

static const check_test tests[] = {
    { TEST(values_are_converted_to_the_parameters_type) },
    { TEST(values_of_another_type_are_refused) },
    { TEST(the_nearest_level_comes_first_and_others_behind_its_filters) },
    { TEST(the_base_is_where_it_is_listed_or_last) },
    { TEST(models_are_named_as_text_or_map) },
};

CHECK_MAIN(tests)
