/* What is read out of an adapter, and what is refused by name. */
#include <math.h>
#include <string.h>

#include "model/pattern.h"
#include "model/peft.h"
#include "support/check.h"
#include "support/made_model.h"

static const float values[4096];

typedef struct tensor {
    const char *name;
    uint64_t rows, cols; /* cols 0: one dimension */
} tensor;

/* An adapter of F32 tensors, its list ended by one without a name. */
static bal_model *adapter_of(const char *config, const tensor *tensors)
{
    made_row parts[8] = { { 0 } };
    size_t n = 0;

    for (; tensors[n].name; n++)
        parts[n] = (made_row){ .name = tensors[n].name,
                               .dtype = BAL_F32,
                               .rank = tensors[n].cols ? 2 : 1,
                               .shape = { tensors[n].rows, tensors[n].cols },
                               .bytes = values };
    if (config)
        parts[n++] = (made_row){ .name = "adapter_config.json",
                                 .part = BAL_PART_FILE,
                                 .bytes = config };
    return made_model(BAL_KIND_ADAPTER, NULL, parts, n);
}

static const tensor plain[] = {
    { "base_model.model.l.0.q.lora_A.weight", 4, 32 },
    { "base_model.model.l.0.q.lora_B.weight", 16, 4 },
    { 0 },
};

/* ---- names -------------------------------------------------------------- */

typedef struct naming {
    tensor tensors[4];
    const char *module; /* NULL: refused */
    int rc;
    const char *says;
} naming;

static const naming namings[] = {
    { { { "base_model.model.l.q.lora_A.weight", 4, 32 },
        { "base_model.model.l.q.lora_B.weight", 16, 4 } },
      "l.q",
      0,
      NULL },
    { { { "base_model.model.l.q.lora_A.default.weight", 4, 32 },
        { "base_model.model.l.q.lora_B.default.weight", 16, 4 } },
      "l.q",
      0,
      NULL },
    { { { "l.q.lora_A.weight", 4, 32 }, { "l.q.lora_B.weight", 16, 4 } },
      "l.q",
      0,
      NULL },
    { { { "l.q.lora_A.weight", 4, 32 } },
      NULL,
      BAL_ECORRUPT,
      "module 'l.q' has no lora_B" },
    { { { "l.q.lora_B.weight", 4, 32 } },
      NULL,
      BAL_ECORRUPT,
      "module 'l.q' has no lora_A" },
    { { { "l.q.lora_A.weight", 4, 32 }, { "l.q.lora_B.weight", 16, 3 } },
      NULL,
      BAL_ECORRUPT,
      "module 'l.q': lora_A is of rank 4, lora_B of 3" },
    { { { "l.q.lora_A.weight", 0, 32 }, { "l.q.lora_B.weight", 16, 0 } },
      NULL,
      BAL_ECORRUPT,
      "'l.q.lora_A.weight' of the adapter is empty" },
    { { { "l.q.lora_A.weight", 8, 32 }, { "l.q.lora_B.weight", 16, 8 } },
      NULL,
      BAL_ECORRUPT,
      "module 'l.q' has rank 8, adapter_config.json says 4" },
    { { { "l.q.lora_A.weight", 4, 32 },
        { "l.q.lora_A.a.weight", 4, 32 },
        { "l.q.lora_B.weight", 16, 4 } },
      NULL,
      BAL_ECORRUPT,
      "are one factor" },
    { { { "l.q.lora_A.weight", 4, 0 }, { "l.q.lora_B.weight", 16, 4 } },
      NULL,
      BAL_EUNSUPPORTED,
      "tensor 'l.q.lora_A.weight' has 1 dimensions" },
    { { { "l.q.lora_A.weight", 32, 4 }, { "l.q.lora_B.weight", 4, 16 } },
      NULL,
      BAL_ECORRUPT,
      "lora_A is of rank 32, lora_B of 16" },
    { { { "l.q.lora_magnitude_vector", 16, 0 } },
      NULL,
      BAL_ECORRUPT,
      "module 'l.q' has no lora_A" },
    { { { "l.q.lora_A.weight", 4, 32 },
        { "l.q.lora_B.weight", 16, 4 },
        { "l.q.lora_magnitude_vector", 16, 0 } },
      NULL,
      BAL_ECORRUPT,
      "'l.q' has a lora_magnitude_vector, but use_dora is false" },
    { { { "l.q.lora_A.weight", 4, 32 },
        { "l.q.lora_B.weight", 16, 4 },
        { "l.q.lora_B.bias", 16, 0 } },
      NULL,
      BAL_EUNSUPPORTED,
      "'l.q.lora_B.bias' is more" },
    { { { "l.q.lora_A.weight", 4, 32 },
        { "l.q.lora_B.weight", 16, 4 },
        { "l.q.lora_B.bias", 15, 0 } },
      NULL,
      BAL_ECORRUPT,
      "'l.q.lora_B.bias' has 15 elements, its module asks for 16" },
    { { { "l.q.base_layer.weight", 16, 4 } },
      NULL,
      BAL_EUNSUPPORTED,
      "'l.q.base_layer.weight' is more" },
    { { { "l.q.lora_A.x.y.weight", 4, 32 } },
      NULL,
      BAL_EUNSUPPORTED,
      "'l.q.lora_A.x.y.weight' is of no kind" },
    { { { "base_model.model.base_model.model.l.q.lora_A.weight", 4, 32 },
        { "base_model.model._orig_mod.l.q.lora_B.weight", 16, 4 } },
      "l.q",
      0,
      NULL },
    { { { 0 } }, NULL, BAL_ECORRUPT, "the adapter holds no tensors" },
};

static void modules_are_put_together_from_names(void)
{
    for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++) {
        const naming *row = &namings[i];
        BAL_OWN(bal_model)
        adapter =
            adapter_of("{\"peft_type\": \"LORA\", \"r\": 4}", row->tensors);
        BAL_LOCAL(bal_loras) loras = { 0 };

        check_row(row->tensors[0].name ? row->tensors[0].name : "none");
        CHECK_RC(row->rc, bal_loras_read(&loras, adapter, &check_err));
        if (row->rc) {
            CHECK(strstr(check_err.text, row->says) != NULL);
            continue;
        }
        CHECK(loras.count == 1 && loras.whole_count == 0);
        CHECK(!strcmp(loras.rows[0].module, row->module));
        CHECK(loras.rows[0].rank == 4 && loras.rows[0].in == 32);
        CHECK(loras.rows[0].out == 16 && loras.rows[0].scale == 2);
        CHECK(bal_loras_find(&loras, row->module) == loras.rows);
        CHECK(!bal_loras_find(&loras, "l"));
    }
}

/* ---- config ------------------------------------------------------------- */

typedef struct config_row {
    const char *json;
    int rc;
    double scale;
    const char *says;
} config_row;

static const config_row configs[] = {
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 16}", 0, 4, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": -1.5}", 0, -0.375,
      NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 0}", 0, 0, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"use_rslora\": true}", 0, 4, NULL },
    { "{\"peft_type\": \"LORA\", \"rank_pattern\": {\"q\": 4}}", 0, 2, NULL },
    { "{\"peft_type\": \"LORA\"}", BAL_ECORRUPT, 0, "has rank 4" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"l.0.q\": 12, \"q\": 16}}",
      0, 3, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"q\": 16, \"l.0.q\": 12}}",
      0, 4, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"z\": 12, \"a\": 4, \"0.q\": 20, \".*q\": 12}}",
      0, 5, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"0\": 12, \"l\": 12, \"xq\": 12, \"^q\": 12}}",
      0, 2, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"^l\\\\.\\\\d+\\\\.(?:k|q)\": 12}}",
      0, 3, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"alpha_pattern\": {\"(\": 12}}",
      BAL_EINVAL, 0, "alpha_pattern: pattern '(.*\\.)?(()$'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, "
      "\"alpha_pattern\": {\"(.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*)*[xyz]\": 12}}",
      BAL_EINVAL, 0, "limit" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"alpha_pattern\": {\"q\": \"1\"}}",
      BAL_ECORRUPT, 0, "alpha_pattern of 'q' is not a number" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"alpha_pattern\": [1]}",
      BAL_ECORRUPT, 0, "alpha_pattern is not an object" },
    { "{\"peft_type\": \"LORA\", \"r\": \"4\"}", BAL_ECORRUPT, 0,
      "r is not a number" },
    { "{\"r\": 4}", BAL_ECORRUPT, 0, "no peft_type" },
    { "[]", BAL_ECORRUPT, 0, "not a JSON object" },
    { "{", BAL_ECORRUPT, 0, "adapter_config.json" },
    { NULL, BAL_ECORRUPT, 0, "without adapter_config.json" },
    { "{\"peft_type\": \"LOHA\", \"r\": 4}", BAL_EUNSUPPORTED, 0, "'LOHA'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"use_dora\": true}",
      BAL_EUNSUPPORTED, 0, "'use_dora'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_bias\": true}",
      BAL_EUNSUPPORTED, 0, "'lora_bias'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"target_parameters\": [\"x\"]}",
      BAL_EUNSUPPORTED, 0, "'target_parameters'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"target_parameters\": []}", 0, 2,
      NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"layer_replication\": [[0, 2]]}",
      BAL_EUNSUPPORTED, 0, "'layer_replication'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"trainable_token_indices\": [1]}",
      BAL_EUNSUPPORTED, 0, "'trainable_token_indices'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"init_lora_weights\": \"pissa\"}",
      BAL_EUNSUPPORTED, 0, "init_lora_weights 'pissa'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"init_lora_weights\": "
      "\"gaussian\"}",
      0, 2, NULL },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"modules_to_save\": [\"head\"]}",
      BAL_ECORRUPT, 0, "modules_to_save names 'head'" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"unknown\": {\"a\": 1}}", 0, 2,
      NULL },
};

static void scales_follow_the_config(void)
{
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        const config_row *row = &configs[i];
        BAL_OWN(bal_model) adapter = adapter_of(row->json, plain);
        BAL_LOCAL(bal_loras) loras = { 0 };

        check_row(row->json ? row->json : "no config");
        CHECK_RC(row->rc, bal_loras_read(&loras, adapter, &check_err));
        if (row->rc)
            CHECK(strstr(check_err.text, row->says) != NULL);
        else
            CHECK(loras.rows[0].scale == row->scale);
    }
}

static void whole_tensors_are_listed_beside_the_modules(void)
{
    static const tensor tensors[] = {
        { "base_model.model.l.0.q.lora_A.weight", 4, 32 },
        { "base_model.model.l.0.q.lora_B.weight", 16, 4 },
        { "base_model.model.lm_head.weight", 16, 32 },
        { "base_model.model.l.0.k.bias", 16, 0 },
        { 0 },
    };
    BAL_OWN(bal_model)
    adapter =
        adapter_of("{\"peft_type\": \"LORA\", \"r\": 4, "
                   "\"modules_to_save\": [\"lm_head\"], \"bias\": \"all\"}",
                   tensors);
    BAL_LOCAL(bal_loras) loras = { 0 };

    CHECK_OK(bal_loras_read(&loras, adapter, &check_err));
    CHECK(loras.count == 1 && loras.whole_count == 2);
    CHECK(!strcmp(loras.wholes[0].name, "l.0.k.bias"));
    CHECK(!strcmp(loras.wholes[1].name, "lm_head.weight"));
}

/* ---- patterns ----------------------------------------------------------- */

typedef struct matching {
    const char *pattern, *text;
    bool yes;
} matching;

static const matching matchings[] = {
    { "a", "ab", true },       { "b", "ab", false },
    { "a$", "ab", false },     { "(a|ab)$", "ab", true },
    { "\\d+", "12", true },    { "\\w", "\xc3\xa9", true },
    { "(?P<n>x)", "x", true }, { "", "anything", true },
};

static void patterns_match_from_the_start(void)
{
    for (size_t i = 0; i < sizeof(matchings) / sizeof(matchings[0]); i++) {
        const matching *row = &matchings[i];
        BAL_OWN(bal_pattern) pattern = NULL;
        bool yes = !row->yes;

        check_row(row->pattern);
        CHECK_OK(bal_pattern_new(&pattern, row->pattern, &check_err));
        CHECK_OK(bal_pattern_match(pattern, row->text, &yes, &check_err));
        CHECK(yes == row->yes);
    }
}

static void hostile_patterns_end(void)
{
    static const char *const hostile[] = {
        "(a*)*b", "(a|a)*$b", "(((a+)+)+)+b", "(?:a?){50}a{50}b", "(a(?1)?)+b",
    };
    char text[4097];
    char many[8192];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memset(many, '(', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        BAL_OWN(bal_pattern) pattern = NULL;
        bool yes = true;

        check_row(hostile[i]);
        CHECK_OK(bal_pattern_new(&pattern, hostile[i], &check_err));
        int rc = bal_pattern_match(pattern, text, &yes, &check_err);
        CHECK(rc == BAL_EINVAL || (!rc && !yes));
    }
    BAL_OWN(bal_pattern) none = NULL;
    CHECK_RC(BAL_EINVAL, bal_pattern_new(&none, many, &check_err));
    many[2000] = '\0';
    CHECK_RC(BAL_EINVAL, bal_pattern_new(&none, many, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_pattern_new(&none, "((a{500}){500}){500}", &check_err));
}

static const check_test tests[] = {
    { TEST(modules_are_put_together_from_names) },
    { TEST(scales_follow_the_config) },
    { TEST(whole_tensors_are_listed_beside_the_modules) },
    { TEST(patterns_match_from_the_start) },
    { TEST(hostile_patterns_end) },
};

CHECK_MAIN(tests)
