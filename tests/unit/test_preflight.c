/* What is told of adapters, by engine. What each engine does was seen with the
 * engines themselves: the rows here are from what they answered. */
#include <string.h>

#include "core/buf.h"
#include "support/check.h"
#include "support/served.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define MOST        12

static const char *const engines[] = { "vllm", "sglang", "llama.cpp", "peft" };
enum { ENGINES = COUNT(engines) };

#define ALL                                                                    \
    "\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\", \"gate_proj\", "          \
    "\"up_proj\", \"down_proj\""
#define CONFIG_OF(r, targets, more)                                            \
    "{\"peft_type\": \"LORA\", \"r\": " r                                      \
    ", \"lora_alpha\": 4, \"target_modules\": " targets more "}"
#define CONFIG(more) CONFIG_OF("2", "[" ALL "]", more)
#define ATTN         SERVED_LAYER(0) "self_attn."
#define MLP          SERVED_LAYER(1) "mlp."
#define QV                                                                     \
    SERVED_PAIR(ATTN "q_proj", 2, 8, 8), SERVED_PAIR(ATTN "v_proj", 2, 8, 4)

/* ---- rows --------------------------------------------------------------- */

typedef struct told {
    bal_buf text;
    char last[64];
} told;

static int tell(void *ctx, const bal_preflight_row *row)
{
    static const char letters[] = "RWFAN";
    told *to = ctx;

    CHECK(row->text[0] && row->engine[0] && row->where);
    CHECK(!strchr(row->text, '\n'));
    if (!strcmp(row->rule, to->last))
        return 0;
    snprintf(to->last, sizeof(to->last), "%s", row->rule);
    CHECK_OK(bal_buf_format(&to->text, &check_err, "%s%s:%c",
                            to->text.len ? " " : "", row->rule,
                            letters[row->outcome]));
    return 0;
}

/* Says what was told where it is not what was wanted. */
static bool is_told(bal_model *adapter, const bal_serving_options *options,
                    const char *want)
{
    told got = { 0 };

    CHECK_OK(bal_preflight(adapter, options, tell, &got, &check_err));
    bool same = !strcmp(bal_buf_string(&got.text), want);
    if (!same)
        print_message("%s told '%s', not '%s'\n", options->engine,
                      bal_buf_string(&got.text), want);
    bal_buf_done(&got.text);
    return same;
}

typedef struct adapter_row {
    const char *what, *config;
    served_tensor tensors[MOST];
    const char *want[ENGINES];
} adapter_row;

static void check_rows(const adapter_row *rows, size_t count)
{
    bal_model *base = served_base("LlamaForCausalLM", false);
    bool all = true;

    for (size_t i = 0; i < count; i++) {
        bal_model *adapter =
            served_adapter(rows[i].config, rows[i].tensors, NULL);

        check_row(rows[i].what);
        for (size_t k = 0; k < ENGINES; k++) {
            const bal_serving_options options = { engines[k], base, 0 };
            bool told_so = is_told(adapter, &options, rows[i].want[k]);
            if (!told_so)
                print_message("of %s\n", rows[i].what);
            all &= told_so;
        }
        bal_model_free(adapter);
    }
    bal_model_free(base);
    CHECK(all);
}

static void engines_take_what_they_serve(void)
{
    static const adapter_row rows[] = {
        { "q and v", CONFIG(""), { QV }, { "", "", "", "" } },
        { "all of a layer",
          CONFIG(""),
          { QV, SERVED_PAIR(ATTN "k_proj", 2, 8, 4),
            SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
            SERVED_PAIR(MLP "gate_proj", 2, 8, 12) },
          { "", "", "", "" } },
        { "an embedding and a head",
          CONFIG_OF("2", "[\"embed_tokens\", \"lm_head\"]", ""),
          { { "base_model.model.model.embed_tokens.lora_embedding_A", 2, 16 },
            { "base_model.model.model.embed_tokens.lora_embedding_B", 8, 2 },
            SERVED_PAIR("base_model.model.lm_head", 2, 8, 16) },
          { "", "", "", "" } },
        { "a pattern as target_modules",
          CONFIG_OF("2", "\".*\\\\.(q|v)_proj\"", ""),
          { QV },
          { "", "target-pattern:R", "", "" } },
        { "all-linear",
          CONFIG_OF("2", "\"all-linear\"", ""),
          { QV },
          { "", "", "", "" } },
        { "no target_modules",
          CONFIG_OF("2", "null", ""),
          { QV },
          { "", "target-pattern:R", "", "" } },
    };

    check_rows(rows, COUNT(rows));
}

static void keys_of_the_config_are_told(void)
{
    static const adapter_row rows[] = {
        { "no config",
          NULL,
          { QV },
          { "config-missing:R", "config-missing:R", "config-missing:R",
            "config-missing:R" } },
        { "not JSON",
          "{",
          { QV },
          { "config-broken:R", "config-broken:R", "config-broken:R",
            "config-broken:R" } },
        { "no object",
          "[]",
          { QV },
          { "config-broken:R", "config-broken:R", "config-broken:R",
            "config-broken:R" } },
        { "no rank",
          "{\"peft_type\": \"LORA\", \"lora_alpha\": 8, "
          "\"target_modules\": [\"o_proj\"]}",
          { SERVED_PAIR(ATTN "o_proj", 8, 8, 8) },
          { "config-key-missing:R", "config-key-missing:R",
            "config-key-missing:N", "config-key-missing:N" } },
        { "a rank of text",
          CONFIG_OF("\"2\"", "[" ALL "]", ""),
          { QV },
          { "config-key-value:R scale-unknown:R",
            "config-key-value:R scale-unknown:W",
            "config-key-value:R scale-unknown:R",
            "config-key-value:R scale-unknown:R" } },
        { "another type",
          "{\"peft_type\": \"LOHA\", \"r\": 2, \"lora_alpha\": 4, "
          "\"target_modules\": [" ALL "]}",
          { QV },
          { "peft-type:W", "peft-type:R", "peft-type:R", "" } },
        { "type in small letters",
          "{\"peft_type\": \"lora\", \"r\": 2, \"lora_alpha\": 4, "
          "\"target_modules\": [" ALL "]}",
          { QV },
          { "peft-type-case:N", "peft-type-case:N", "peft-type-case:R",
            "peft-type-case:R" } },
        { "DoRA",
          CONFIG(", \"use_dora\": true"),
          { QV },
          { "dora:R", "dora:R", "dora:R", "" } },
        { "saved modules",
          CONFIG(", \"modules_to_save\": [\"lm_head\"]"),
          { QV },
          { "modules-to-save:R", "modules-to-save:W", "modules-to-save:R",
            "" } },
        { "no saved modules",
          CONFIG(", \"modules_to_save\": []"),
          { QV },
          { "", "", "", "" } },
        { "bias",
          CONFIG(", \"bias\": \"all\""),
          { QV },
          { "bias:R", "bias:W", "bias:R", "" } },
        { "bias of B",
          CONFIG(", \"lora_bias\": true"),
          { QV },
          { "lora-bias:R", "lora-bias:W", "lora-bias:R", "" } },
        { "aLoRA",
          CONFIG(", \"alora_invocation_tokens\": [1]"),
          { QV },
          { "alora:R", "alora:W", "alora:R", "" } },
        { "replicated layers",
          CONFIG(", \"layer_replication\": [[0, 2]]"),
          { QV },
          { "layer-replication:R", "layer-replication:W", "layer-replication:R",
            "" } },
        { "QALoRA",
          CONFIG(", \"use_qalora\": true"),
          { QV },
          { "qalora:R", "qalora:W", "qalora:R", "" } },
        { "BD-LoRA",
          CONFIG(", \"use_bdlora\": {\"a\": 1}"),
          { QV },
          { "bdlora:R", "bdlora:W", "bdlora:R", "" } },
        { "pissa",
          CONFIG(", \"init_lora_weights\": \"pissa\""),
          { QV },
          { "init-weights:R", "init-weights:W", "init-weights:R", "" } },
        { "gaussian",
          CONFIG(", \"init_lora_weights\": \"gaussian\""),
          { QV },
          { "", "", "", "" } },
        { "rslora",
          CONFIG(", \"use_rslora\": true"),
          { QV },
          { "", "rslora:W", "", "" } },
        { "alphas by pattern",
          CONFIG(", \"alpha_pattern\": {\"q_proj\": 8}"),
          { QV },
          { "alpha-pattern:N", "alpha-pattern:W", "", "" } },
        { "ranks by pattern",
          CONFIG(", \"rank_pattern\": {\"o_proj\": 4}"),
          { QV, SERVED_PAIR(ATTN "o_proj", 4, 8, 8) },
          { "rank-pattern:N", "rank-pattern:W rank-not-r:F", "", "" } },
        { "no pattern",
          CONFIG(", \"alpha_pattern\": {\"(\": 8}"),
          { QV },
          { "scale-unknown:R alpha-pattern:N",
            "scale-unknown:W alpha-pattern:W", "scale-unknown:R",
            "scale-unknown:R" } },
        { "a name that is not served",
          CONFIG_OF("2", "[" ALL ", \"score\"]", ""),
          { QV },
          { "", "target-names:R", "", "" } },
        { "tensors beside target_modules",
          CONFIG_OF("2", "[\"q_proj\"]", ""),
          { QV },
          { "untargeted:W", "untargeted:W", "untargeted:W", "untargeted:W" } },
        { "tensors of other layers",
          CONFIG(", \"layers_to_transform\": [1]"),
          { QV },
          { "untargeted:W", "untargeted:W", "untargeted:W", "untargeted:W" } },
        { "tensors that are excluded",
          CONFIG(", \"exclude_modules\": \".*v_proj\""),
          { QV },
          { "untargeted:W", "untargeted:W", "untargeted:W", "untargeted:W" } },
        { "a head by its path",
          CONFIG_OF("2", "\"all-linear\"", ""),
          { SERVED_PAIR("base_model.model.lm_head", 2, 8, 16) },
          { "untargeted:W", "untargeted:W", "untargeted:W", "untargeted:W" } },
        { "an embedding by its path",
          CONFIG_OF("2", "[\"model.embed_tokens\"]", ""),
          { { "base_model.model.model.embed_tokens.lora_embedding_A", 2, 16 },
            { "base_model.model.model.embed_tokens.lora_embedding_B", 8, 2 } },
          { "", "unlisted:W", "", "" } },
    };

    check_rows(rows, COUNT(rows));
}

static void names_of_tensors_are_told(void)
{
    static const adapter_row rows[] = {
        { "no tensors",
          CONFIG(""),
          { { NULL } },
          { "no-factors:R", "no-factors:W", "no-factors:R", "no-factors:W" } },
        { "no prefix",
          CONFIG(""),
          { SERVED_PAIR("model.layers.0.self_attn.o_proj", 2, 8, 8) },
          { "name-prefix:W", "name-prefix:W", "name-prefix:W",
            "name-prefix:W" } },
        { "the name 'default'",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.default.weight", 2, 8 },
            { ATTN "o_proj.lora_B.default.weight", 8, 2 } },
          { "name-default:R", "name-default:N", "name-default:N",
            "name-default:N" } },
        { "another name",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.mine.weight", 2, 8 },
            { ATTN "o_proj.lora_B.mine.weight", 8, 2 } },
          { "name-inside:R", "name-inside:W", "name-inside:W",
            "name-inside:W" } },
        { "no ending",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
            { SERVED_LAYER(1) "self_attn.o_proj.lora_A", 2, 8 } },
          { "name-strange:R", "name-strange:W", "name-strange:R",
            "name-strange:W" } },
        { "a whole tensor",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
            { "base_model.model.lm_head.weight", 16, 8 } },
          { "whole-tensor:R", "whole-tensor:W", "whole-tensor:R",
            "whole-tensor:W" } },
        { "a copy that is none",
          CONFIG_OF("2", "[\"lm_head\"]", ""),
          { SERVED_PAIR("base_model.model.lm_head", 2, 8, 16),
            { "base_model.model.lm_head.base_layer.weight", 16, 8 } },
          { "base-copy:N base-copy-differs:W",
            "base-copy:N base-copy-differs:W",
            "base-copy:N base-copy-differs:R", "" } },
        { "a factor twice",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
            { ATTN "o_proj.lora_A.default.weight", 2, 8 } },
          { "name-default:R factor-twice:W", "name-default:N factor-twice:W",
            "name-default:N factor-twice:R",
            "name-default:N factor-twice:W" } },
        { "DoRA's tensor",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 8, 8),
            { ATTN "o_proj.lora_magnitude_vector", 8, 0 } },
          { "dora-tensor:R", "dora-tensor:W", "dora-tensor:R", "" } },
        { "an embedding by a linear module's names",
          CONFIG_OF("2", "[\"embed_tokens\"]", ""),
          { SERVED_PAIR("base_model.model.model.embed_tokens", 2, 16, 8) },
          { "embedding-names:W", "embedding-names:W", "embedding-names:R",
            "embedding-names:W" } },
    };

    check_rows(rows, COUNT(rows));
}

static void shapes_are_told(void)
{
    static const adapter_row rows[] = {
        { "no B",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.weight", 2, 8 } },
          { "lone-a:R", "lone-a:F", "lone-a:R", "lone-a:W" } },
        { "no A",
          CONFIG(""),
          { { ATTN "o_proj.lora_B.weight", 8, 2 } },
          { "lone-b:W", "lone-b:F", "lone-b:R", "lone-b:W" } },
        { "two ranks in a pair",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.weight", 2, 8 },
            { ATTN "o_proj.lora_B.weight", 8, 1 } },
          { "ranks-differ:W", "ranks-differ:F", "ranks-differ:R",
            "ranks-differ:R" } },
        { "another rank than r",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 4, 8, 8) },
          { "rank-not-r:W", "rank-not-r:F", "rank-not-r:R", "rank-not-r:R" } },
        { "a rank over the limit",
          CONFIG_OF("32", "[" ALL "]", ""),
          { SERVED_PAIR(ATTN "o_proj", 32, 8, 8) },
          { "rank-limit:R", "", "", "" } },
        { "three dimensions are not two",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.weight", 2, 8 },
            { ATTN "o_proj.lora_B.weight", 16, 0 } },
          { "not-matrix:R", "not-matrix:F", "not-matrix:R", "" } },
        { "integers",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.weight", 2, 8, BAL_I8 },
            { ATTN "o_proj.lora_B.weight", 8, 2 } },
          { "dtype:N", "dtype:N", "dtype:R", "dtype:N" } },
        { "an element that is no number",
          CONFIG(""),
          { { ATTN "o_proj.lora_A.weight", 2, 8, BAL_BF16, true },
            { ATTN "o_proj.lora_B.weight", 8, 2 } },
          { "not-finite:W", "not-finite:W", "not-finite:W", "not-finite:W" } },
        { "too narrow",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 6, 8) },
          { "shape-small:W", "shape-small:F", "shape-small:R",
            "shape-small:R" } },
        { "too high",
          CONFIG(""),
          { SERVED_PAIR(ATTN "o_proj", 2, 8, 9) },
          { "shape-large:R", "shape-large:F", "shape-large:R",
            "shape-large:R" } },
        { "another vocabulary",
          CONFIG_OF("2", "[\"embed_tokens\"]", ""),
          { { "base_model.model.model.embed_tokens.lora_embedding_A", 2, 17 },
            { "base_model.model.model.embed_tokens.lora_embedding_B", 8, 2 } },
          { "vocabulary:R", "vocabulary:F", "vocabulary:R", "vocabulary:R" } },
        { "a layer too many",
          CONFIG(""),
          { SERVED_PAIR(SERVED_LAYER(2) "self_attn.o_proj", 2, 8, 8) },
          { "layer-missing:W", "layer-missing:R", "layer-missing:R",
            "layer-missing:W" } },
        { "another place",
          CONFIG(""),
          { SERVED_PAIR("base_model.model.layers.0.self_attn.o_proj", 2, 8,
                        8) },
          { "module-nowhere:W", "module-nowhere:W", "module-nowhere:R",
            "module-nowhere:W" } },
        { "a module that nobody has",
          CONFIG_OF("2", "\".*gate_up\"", ""),
          { SERVED_PAIR(SERVED_LAYER(0) "mlp.gate_up", 2, 8, 24) },
          { "module-unknown:R", "target-pattern:R module-unknown:F",
            "module-unknown:R", "module-unknown:W" } },
        { "a norm",
          CONFIG_OF("2", "\"all\"", ", \"target_parameters\": [\"x.y\"]"),
          { SERVED_PAIR(SERVED_LAYER(0) "input_layernorm", 2, 8, 8) },
          { "target-parameters:W module-vector:R",
            "target-parameters:W module-unknown:F module-vector:F",
            "target-parameters:R module-vector:R", "module-vector:R" } },
        { "q alone",
          CONFIG(""),
          { SERVED_PAIR(ATTN "q_proj", 2, 8, 8) },
          { "", "q-alone:R", "", "" } },
        { "k and v alone",
          CONFIG(""),
          { SERVED_PAIR(ATTN "k_proj", 2, 8, 4),
            SERVED_PAIR(ATTN "v_proj", 2, 8, 4) },
          { "", "kv-alone:F", "", "" } },
        { "up alone",
          CONFIG(""),
          { SERVED_PAIR(MLP "up_proj", 2, 8, 12) },
          { "", "up-alone:F", "", "" } },
        { "gate alone",
          CONFIG(""),
          { SERVED_PAIR(MLP "gate_proj", 2, 8, 12) },
          { "", "", "", "" } },
    };

    check_rows(rows, COUNT(rows));
}

/* ---- the rest ----------------------------------------------------------- */

static void without_a_base_that_is_told(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);

    for (size_t k = 0; k < ENGINES; k++) {
        const bal_serving_options options = { engines[k], NULL, 0 };
        CHECK(is_told(adapter, &options, "no-base:N"));
    }
    bal_model_free(adapter);
}

static void the_servers_own_limit_of_ranks_counts(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    static const struct {
        const char *engine;
        uint64_t max_rank;
        const char *want;
    } rows[] = {
        { "vllm", 1, "rank-limit:R" },
        { "vllm", 2, "" },
        { "sglang", 1, "rank-limit:R" },
        { "sglang", 64, "" },
        { "peft", 1, "" },
    };
    bal_model *base = served_base("LlamaForCausalLM", false);
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);

    for (size_t i = 0; i < COUNT(rows); i++) {
        const bal_serving_options options = { rows[i].engine, base,
                                              rows[i].max_rank };
        CHECK(is_told(adapter, &options, rows[i].want));
    }
    bal_model_free(adapter);
    bal_model_free(base);
}

static void added_tokens_are_compared_with_the_vocabulary(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    static const struct {
        const char *file, *vllm, *sglang;
    } rows[] = {
        { "{\"<a>\": 15}", "", "" },
        { "{\"<a>\": 16}", "added-tokens:N", "added-tokens:R" },
        { "{", "added-tokens:N", "added-tokens:R" },
    };
    bal_model *base = served_base("LlamaForCausalLM", false);

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_model *adapter = served_adapter(CONFIG(""), tensors, rows[i].file);
        const bal_serving_options vllm = { "vllm", base, 0 };
        const bal_serving_options sglang = { "sglang", base, 0 };

        check_row(rows[i].file);
        CHECK(is_told(adapter, &vllm, rows[i].vllm));
        CHECK(is_told(adapter, &sglang, rows[i].sglang));
        bal_model_free(adapter);
    }
    bal_model_free(base);
}

static int stop(void *ctx, const bal_preflight_row *row)
{
    (void)row;
    ++*(int *)ctx;
    return BAL_ECANCELLED;
}

static void who_is_told_can_stop_it(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *adapter = served_adapter(NULL, tensors, NULL);
    const bal_serving_options options = { "vllm", NULL, 0 };
    int calls = 0;

    CHECK_RC(BAL_ECANCELLED,
             bal_preflight(adapter, &options, stop, &calls, &check_err));
    CHECK(calls == 1);
    bal_model_free(adapter);
}

static void what_is_no_adapter_is_refused(void)
{
    bal_model *base = served_base("LlamaForCausalLM", false);
    const bal_serving_options vllm = { "vllm", NULL, 0 };
    told got = { 0 };

    CHECK_RC(BAL_EINVAL, bal_preflight(base, &vllm, tell, &got, &check_err));
    CHECK(strstr(check_err.text, "base"));
    bal_model_free(base);
}

static void engines_are_found_by_name(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);
    const bal_serving_options none = { "tgi", NULL, 0 };
    told got = { 0 };

    CHECK(bal_engine_count() == ENGINES);
    for (size_t i = 0; i < ENGINES; i++) {
        CHECK(!strcmp(bal_engine_at(i)->name, engines[i]));
        CHECK(bal_engine_find(engines[i]) == bal_engine_at(i));
    }
    CHECK(!bal_engine_find("tgi"));
    CHECK(!bal_engine_at(ENGINES));
    CHECK_RC(BAL_EINVAL, bal_preflight(adapter, &none, tell, &got, &check_err));
    bal_model_free(adapter);
}

static const check_test tests[] = {
    { TEST(engines_take_what_they_serve) },
    { TEST(keys_of_the_config_are_told) },
    { TEST(names_of_tensors_are_told) },
    { TEST(shapes_are_told) },
    { TEST(without_a_base_that_is_told) },
    { TEST(the_servers_own_limit_of_ranks_counts) },
    { TEST(added_tokens_are_compared_with_the_vocabulary) },
    { TEST(who_is_told_can_stop_it) },
    { TEST(what_is_no_adapter_is_refused) },
    { TEST(engines_are_found_by_name) },
};
CHECK_MAIN(tests)
