/* A reshaped adapter has the same maps, s B A of each module: computed here
 * from the tensors alone, in double. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/json.h"
#include "model/elements.h"
#include "support/check.h"
#include "support/memory_model.h"
#include "support/served.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define CONFIG_OF(r, targets, more)                                            \
    "{\"peft_type\": \"LORA\", \"r\": " r                                      \
    ", \"lora_alpha\": 4, \"base_model_name_or_path\": \"lab/base\", "         \
    "\"target_modules\": " targets more "}"
#define CONFIG(more)                                                           \
    CONFIG_OF("2", "[\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\"]", more)
#define ATTN SERVED_LAYER(0) "self_attn."
#define MLP  SERVED_LAYER(0) "mlp."

enum { MOST = 1024 };

/* ---- maps, plainly ------------------------------------------------------ */

typedef struct matrix {
    size_t rows, cols;
    double values[MOST];
} matrix;

static bool get(matrix *out, bal_model *model, const char *module,
                const char *tail)
{
    char name[256];

    snprintf(name, sizeof(name), "%s%s", module, tail);
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);
    if (i == BAL_NONE)
        return false;
    const bal_tensor *tensor = bal_model_at(model, i);
    out->rows = (size_t)tensor->shape[0];
    out->cols = (size_t)tensor->shape[1];
    CHECK(out->rows * out->cols <= MOST);
    CHECK_OK(bal_elements_read(out->values, model, i, 0, out->rows * out->cols,
                               &check_err));
    return true;
}

static bool map_of(matrix *out, bal_model *model, const char *module,
                   double scale, const char *a_tail, const char *b_tail)
{
    static matrix a, b;

    if (!get(&a, model, module, a_tail) || !get(&b, model, module, b_tail))
        return false;
    CHECK(a.rows == b.cols);
    *out = (matrix){ b.rows, a.cols, { 0 } };
    for (size_t i = 0; i < b.rows; i++) {
        for (size_t k = 0; k < a.rows; k++) {
            for (size_t j = 0; j < a.cols; j++)
                out->values[i * a.cols + j] +=
                    scale * b.values[i * b.cols + k] * a.values[k * a.cols + j];
        }
    }
    return true;
}

static double apart(const matrix *a, const matrix *b)
{
    double most = 0;
    double size = 0;

    CHECK(a->rows == b->rows && a->cols == b->cols);
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        most = fmax(most, fabs(a->values[i] - b->values[i]));
        size = fmax(size, fabs(a->values[i]));
    }
    return size > 0 ? most / size : most;
}

/* ---- what came out ------------------------------------------------------ */

static json_t *config_of(bal_model *model)
{
    size_t i = bal_model_find(model, BAL_PART_FILE, "adapter_config.json");
    char text[4096];
    size_t size = (size_t)bal_model_at(model, i)->size;

    CHECK(i != BAL_NONE && size < sizeof(text));
    CHECK_OK(bal_model_read(model, i, 0, text, size, &check_err));
    json_t *config = json_loadb(text, size, 0, NULL);
    CHECK(config != NULL);
    return config;
}

static double scale_of(bal_model *model)
{
    json_t *config = config_of(model);
    double r = json_number_value(json_object_get(config, "r"));
    double alpha = json_number_value(json_object_get(config, "lora_alpha"));

    CHECK(!json_is_true(json_object_get(config, "use_rslora")));
    CHECK(!json_object_size(json_object_get(config, "rank_pattern")));
    CHECK(!json_object_size(json_object_get(config, "alpha_pattern")));
    CHECK(json_is_true(json_object_get(config, "init_lora_weights")));
    CHECK(!strcmp(
        json_string_value(json_object_get(config, "base_model_name_or_path")),
        "lab/base"));
    json_decref(config);
    return alpha / r;
}

static bool lists(bal_model *model, const char *want)
{
    json_t *config = config_of(model);
    char *text =
        json_dumps(json_object_get(config, "target_modules"), JSON_COMPACT);
    bool same = !strcmp(text, want);

    if (!same)
        print_message("target_modules %s, not %s\n", text, want);
    free(text);
    json_decref(config);
    return same;
}

typedef struct told {
    bal_buf rules, texts;
} told;

static int tell(void *ctx, const bal_preflight_row *row)
{
    told *to = ctx;

    CHECK(row->outcome == BAL_OUTCOME_ADAPTED);
    CHECK_OK(bal_buf_format(&to->rules, &check_err, "%s ", row->rule));
    CHECK_OK(bal_buf_format(&to->texts, &check_err, "%s\n", row->text));
    return 0;
}

static void told_done(told *self)
{
    bal_buf_done(&self->rules);
    bal_buf_done(&self->texts);
}

/* Nothing that is told of it stands against the engine. */
static int harmless(void *ctx, const bal_preflight_row *row)
{
    (void)ctx;
    if (row->outcome != BAL_OUTCOME_NOTED)
        print_message("%s: %s: %s\n", row->rule, row->where, row->text);
    return row->outcome == BAL_OUTCOME_NOTED ? 0 : BAL_EUNSUPPORTED;
}

typedef struct module_row {
    const char *name; /* NULL: the end */
    double scale;
} module_row;

typedef struct adapt_row {
    const char *what, *engine, *config;
    served_tensor tensors[12];
    module_row modules[6];
    const char *a, *b; /* tails of names before; NULL: PEFT's */
    double error;      /* of a map at most */
    const char *rules, *targets;
    size_t tensors_after;
} adapt_row;

static size_t count_tensors(const bal_model *model)
{
    size_t count = 0;

    for (size_t i = 0; i < bal_model_count(model); i++)
        count += bal_model_at(model, i)->part == BAL_PART_TENSOR;
    return count;
}

static void check_maps(const adapt_row *row, bal_model *before,
                       bal_model *after)
{
    static matrix left, right;
    double scale = scale_of(after);

    for (const module_row *at = row->modules; at->name; at++) {
        const char *usual[] = { ".lora_A.weight", ".lora_B.weight" };

        CHECK(map_of(&left, before, at->name, at->scale,
                     row->a ? row->a : usual[0], row->b ? row->b : usual[1]));
        CHECK(map_of(&right, after, at->name, scale, usual[0], usual[1]));
        if (apart(&left, &right) > row->error)
            print_message("%s: %g\n", at->name, apart(&left, &right));
        CHECK(apart(&left, &right) <= row->error);
    }
}

static void check_adapts(const adapt_row *row, bal_model *base)
{
    bal_model *adapter = served_adapter(row->config, row->tensors, NULL);
    const bal_serving_options options = { row->engine, base, 0 };
    bal_model *out = NULL;
    told got = { 0 };

    check_row(row->what);
    CHECK_OK(bal_lora_adapt(&out, adapter, &options, tell, &got, &check_err));
    CHECK(out != adapter);
    if (strcmp(bal_buf_string(&got.rules), row->rules) != 0)
        print_message("adapted '%s'\n", bal_buf_string(&got.rules));
    CHECK(!strcmp(bal_buf_string(&got.rules), row->rules));
    CHECK(!strstr(bal_buf_string(&got.texts), "rounded") ==
          (row->error < 1e-4));
    CHECK_OK(bal_preflight(out, &options, harmless, NULL, &check_err));
    CHECK(lists(out, row->targets));
    CHECK(count_tensors(out) == row->tensors_after);
    check_maps(row, adapter, out);
    told_done(&got);
    bal_model_free(out);
    bal_model_free(adapter);
}

static const adapt_row adapted[] = {
    { "rslora of one rank goes into alpha",
      "sglang",
      CONFIG(", \"use_rslora\": true"),
      { SERVED_PAIR(ATTN "q_proj", 2, 8, 8),
        SERVED_PAIR(ATTN "v_proj", 2, 8, 4) },
      { { ATTN "q_proj", 2.8284271247461903 },
        { ATTN "v_proj", 2.8284271247461903 } },
      NULL,
      NULL,
      1e-14,
      "rslora ",
      "[\"k_proj\",\"q_proj\",\"v_proj\"]",
      6 },
    { "alphas by pattern, a power of two apart",
      "sglang",
      CONFIG(", \"alpha_pattern\": {\"o_proj\": 16}"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        SERVED_PAIR(SERVED_LAYER(1) "self_attn.q_proj", 2, 8, 8),
        SERVED_PAIR(SERVED_LAYER(1) "self_attn.v_proj", 2, 8, 4) },
      { { ATTN "o_proj", 8 },
        { SERVED_LAYER(1) "self_attn.q_proj", 2 },
        { SERVED_LAYER(1) "self_attn.v_proj", 2 } },
      NULL,
      NULL,
      0,
      "alpha-pattern ",
      "[\"k_proj\",\"o_proj\",\"q_proj\",\"v_proj\"]",
      8 },
    { "alphas by pattern in BF16, rounded",
      "vllm",
      CONFIG(", \"alpha_pattern\": {\"o_proj\": 12}"),
      { { ATTN "o_proj.lora_A.weight", 2, 8, BAL_BF16 },
        { ATTN "o_proj.lora_B.weight", 8, 2, BAL_BF16 },
        SERVED_PAIR(ATTN "q_proj", 2, 8, 8),
        SERVED_PAIR(ATTN "v_proj", 2, 8, 4) },
      { { ATTN "o_proj", 6 }, { ATTN "q_proj", 2 }, { ATTN "v_proj", 2 } },
      NULL,
      NULL,
      0x1p-8,
      "alpha-pattern ",
      "[\"o_proj\",\"q_proj\",\"v_proj\"]",
      6 },
    { "ranks by pattern are filled up",
      "sglang",
      CONFIG_OF("2", "[\"o_proj\", \"down_proj\"]",
                ", \"rank_pattern\": {\"o_proj\": 4}, "
                "\"alpha_pattern\": {\"o_proj\": 8}"),
      { SERVED_PAIR(ATTN "o_proj", 4, 8, 8),
        SERVED_PAIR(SERVED_LAYER(1) "self_attn.o_proj", 4, 8, 8),
        SERVED_PAIR(MLP "down_proj", 2, 12, 8) },
      { { ATTN "o_proj", 2 },
        { SERVED_LAYER(1) "self_attn.o_proj", 2 },
        { MLP "down_proj", 2 } },
      NULL,
      NULL,
      0,
      "rank-pattern alpha-pattern rank-not-r rank-not-r ",
      "[\"down_proj\",\"o_proj\"]",
      6 },
    { "k and v without q",
      "sglang",
      CONFIG(""),
      { SERVED_PAIR(ATTN "k_proj", 2, 8, 4),
        SERVED_PAIR(ATTN "v_proj", 2, 8, 4) },
      { { ATTN "k_proj", 2 }, { ATTN "v_proj", 2 } },
      NULL,
      NULL,
      0,
      "kv-alone kv-alone ",
      "[\"k_proj\",\"q_proj\",\"v_proj\"]",
      6 },
    { "up without gate",
      "sglang",
      CONFIG_OF("2", "[\"up_proj\"]", ""),
      { SERVED_PAIR(MLP "up_proj", 2, 8, 12) },
      { { MLP "up_proj", 2 } },
      NULL,
      NULL,
      0,
      "up-alone ",
      "[\"gate_proj\",\"up_proj\"]",
      4 },
    { "a pattern of names",
      "sglang",
      CONFIG_OF("2", "\".*o_proj\"", ""),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) },
      { { ATTN "o_proj", 2 } },
      NULL,
      NULL,
      0,
      "target-pattern ",
      "[\"o_proj\"]",
      2 },
    { "the adapter's name inside",
      "vllm",
      CONFIG(""),
      { { ATTN "o_proj.lora_A.default.weight", 2, 8, BAL_F16 },
        { ATTN "o_proj.lora_B.default.weight", 8, 2, BAL_F16 } },
      { { ATTN "o_proj", 2 } },
      ".lora_A.default.weight",
      ".lora_B.default.weight",
      0,
      "name-default name-default ",
      "[\"o_proj\"]",
      2 },
};

static void maps_stay_as_they_are(void)
{
    bal_model *base = served_base("LlamaForCausalLM", false);

    for (size_t i = 0; i < COUNT(adapted); i++)
        check_adapts(&adapted[i], base);
    bal_model_free(base);
}

/* Read in two parts at an odd place, an added module is zeros. */
static void added_modules_are_zeros(void)
{
    static const served_tensor tensors[] = {
        SERVED_PAIR(ATTN "k_proj", 2, 8, 4), { NULL }
    };
    static matrix a, b;
    bal_model *base = served_base("LlamaForCausalLM", false);
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);
    const bal_serving_options options = { "sglang", base, 0 };
    bal_model *out = NULL;
    told got = { 0 };

    CHECK_OK(bal_lora_adapt(&out, adapter, &options, tell, &got, &check_err));
    CHECK(!strcmp(bal_buf_string(&got.rules), "kv-alone "));
    CHECK(get(&a, out, ATTN "q_proj", ".lora_A.weight"));
    CHECK(get(&b, out, ATTN "q_proj", ".lora_B.weight"));
    CHECK(a.rows == 2 && a.cols == 8 && b.rows == 8 && b.cols == 2);
    for (size_t i = 0; i < 16; i++)
        CHECK(!(fabs(a.values[i]) > 0) && !(fabs(b.values[i]) > 0));
    CHECK(get(&b, out, ATTN "v_proj", ".lora_B.weight") && b.rows == 4);
    memory_check_equal(out, out);
    told_done(&got);
    bal_model_free(out);
    bal_model_free(adapter);
    bal_model_free(base);
}

static const struct {
    const char *what, *engine, *config;
    served_tensor tensors[8];
} as_they_are[] = {
    { "all is well",
      "vllm",
      CONFIG(""),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "patterns for who reads them",
      "llama.cpp",
      CONFIG(", \"alpha_pattern\": {\"o_proj\": 3}"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "rslora for who reads it",
      "vllm",
      CONFIG(", \"use_rslora\": true"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "DoRA is no rank",
      "sglang",
      CONFIG(", \"use_dora\": true, \"use_rslora\": true"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "pissa stays pissa",
      "sglang",
      CONFIG(", \"init_lora_weights\": \"pissa\", \"use_rslora\": true"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "a lone factor",
      "sglang",
      CONFIG(", \"use_rslora\": true"),
      { { ATTN "o_proj.lora_A.weight", 2, 8 } } },
    { "a whole tensor",
      "sglang",
      CONFIG(", \"use_rslora\": true"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        { "base_model.model.lm_head.weight", 16, 8 } } },
    { "a copy that is not the base's",
      "sglang",
      CONFIG_OF("2", "[\"lm_head\"]", ", \"use_rslora\": true"),
      { SERVED_PAIR("base_model.model.lm_head", 2, 8, 16),
        { "base_model.model.lm_head.base_layer.weight", 16, 8 } } },
    { "tensors beside target_modules, which one may mean or not",
      "vllm",
      CONFIG_OF("2", "[\"q_proj\"]", ", \"rank_pattern\": {\"q_proj\": 2}"),
      { SERVED_PAIR(ATTN "q_proj", 2, 8, 8),
        SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "no config", "vllm", NULL, { SERVED_PAIR(ATTN "o_proj", 2, 8, 8) } },
    { "a factor too large to be folded",
      "sglang",
      CONFIG(", \"alpha_pattern\": {\"o_proj\": 1e300}"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        SERVED_PAIR(MLP "down_proj", 2, 12, 8),
        SERVED_PAIR(SERVED_LAYER(1) "mlp.down_proj", 2, 12, 8) } },
    { "a factor too small to be folded",
      "vllm",
      CONFIG(", \"alpha_pattern\": {\"o_proj\": 1e-60}"),
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        SERVED_PAIR(MLP "down_proj", 2, 12, 8),
        SERVED_PAIR(SERVED_LAYER(1) "mlp.down_proj", 2, 12, 8) } },
    { "a scale that would overflow beside a higher rank",
      "sglang",
      "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1.7e308, "
      "\"base_model_name_or_path\": \"lab/base\", "
      "\"target_modules\": [\"o_proj\", \"down_proj\"], "
      "\"rank_pattern\": {\"down_proj\": 4}, "
      "\"alpha_pattern\": {\"down_proj\": 1.7e308}}",
      { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
        SERVED_PAIR(SERVED_LAYER(1) "self_attn.o_proj", 2, 8, 8),
        SERVED_PAIR(MLP "down_proj", 4, 12, 8) } },
};

static void what_needs_nothing_is_the_adapter_itself(void)
{
    bal_model *base = served_base("LlamaForCausalLM", false);

    for (size_t i = 0; i < COUNT(as_they_are); i++) {
        bal_model *adapter =
            served_adapter(as_they_are[i].config, as_they_are[i].tensors, NULL);
        const bal_serving_options options = { as_they_are[i].engine, base, 0 };
        bal_model *out = NULL;
        told got = { 0 };

        check_row(as_they_are[i].what);
        CHECK_OK(
            bal_lora_adapt(&out, adapter, &options, tell, &got, &check_err));
        CHECK(out == adapter);
        CHECK(!got.rules.len);
        told_done(&got);
        bal_model_free(out);
        bal_model_free(adapter);
    }
    bal_model_free(base);
}

static void what_is_no_adapter_is_refused(void)
{
    bal_model *base = served_base("LlamaForCausalLM", false);
    const bal_serving_options options = { "vllm", NULL, 0 };
    const bal_serving_options none = { NULL, NULL, 0 };
    bal_model *out = NULL;

    CHECK_RC(BAL_EINVAL,
             bal_lora_adapt(&out, base, &options, tell, NULL, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_lora_adapt(&out, base, &none, tell, NULL, &check_err));
    CHECK(!out);
    bal_model_free(base);
}

static const check_test tests[] = {
    { TEST(maps_stay_as_they_are) },
    { TEST(added_modules_are_zeros) },
    { TEST(what_needs_nothing_is_the_adapter_itself) },
    { TEST(what_is_no_adapter_is_refused) },
};
CHECK_MAIN(tests)
