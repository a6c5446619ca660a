/* What is told of adapters, by engine: of their config, and in general. What
 * each engine does was seen with the engines themselves. */
#include <string.h>

#include "support/check.h"
#include "support/preflights.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const adapter_row well[] = {
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

static void engines_take_what_they_serve(void)
{
    preflights_check(well, COUNT(well));
}

static const adapter_row keys[] = {
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
      { "config-key-missing:R", "config-key-missing:R", "config-key-missing:N",
        "config-key-missing:N" } },
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
      { "modules-to-save:R", "modules-to-save:W", "modules-to-save:R", "" } },
    { "no saved modules",
      CONFIG(", \"modules_to_save\": []"),
      { QV },
      { "", "", "", "" } },
    { "bias",
      CONFIG(", \"bias\": \"all\""),
      { QV },
      { "bias:R", "bias:W", "bias:N", "" } },
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
      { "scale-unknown:R alpha-pattern:N", "scale-unknown:W alpha-pattern:W",
        "scale-unknown:R", "scale-unknown:R" } },
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

static void keys_of_the_config_are_told(void)
{
    preflights_check(keys, COUNT(keys));
}

static int stop(void *ctx, const bal_preflight_row *row)
{
    (void)row;
    ++*(int *)ctx;
    return BAL_ECANCELLED;
}

/* ---- the rest ----------------------------------------------------------- */

static void without_a_base_that_is_told(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);

    for (size_t k = 0; k < PREFLIGHT_ENGINES; k++) {
        const bal_serving_options options = { preflight_engines[k], NULL, 0 };
        CHECK(preflight_tells(adapter, &options, "no-base:N"));
    }
    bal_model_free(adapter);
}

static void an_architecture_without_names_in_gguf_is_told(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *base = served_base("PhiForCausalLM", false);
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);
    const bal_serving_options llama = { "llama.cpp", base, 0 };
    const bal_serving_options vllm = { "vllm", base, 0 };

    CHECK(preflight_tells(adapter, &llama, "gguf-name:R"));
    CHECK(preflight_tells(adapter, &vllm, ""));
    bal_model_free(adapter);
    bal_model_free(base);
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
        CHECK(preflight_tells(adapter, &options, rows[i].want));
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
        CHECK(preflight_tells(adapter, &vllm, rows[i].vllm));
        CHECK(preflight_tells(adapter, &sglang, rows[i].sglang));
        bal_model_free(adapter);
    }
    bal_model_free(base);
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
    int got = 0;

    CHECK_RC(BAL_EINVAL, bal_preflight(base, &vllm, stop, &got, &check_err));
    CHECK(strstr(check_err.text, "base"));
    bal_model_free(base);
}

static void engines_are_found_by_name(void)
{
    static const served_tensor tensors[] = { QV, { NULL } };
    bal_model *adapter = served_adapter(CONFIG(""), tensors, NULL);
    const bal_serving_options none = { "tgi", NULL, 0 };
    int got = 0;

    CHECK(bal_engine_count() == PREFLIGHT_ENGINES);
    for (size_t i = 0; i < PREFLIGHT_ENGINES; i++) {
        CHECK(!strcmp(bal_engine_at(i)->name, preflight_engines[i]));
        CHECK(bal_engine_find(preflight_engines[i]) == bal_engine_at(i));
    }
    CHECK(!bal_engine_find("tgi"));
    CHECK(!bal_engine_at(PREFLIGHT_ENGINES));
    CHECK_RC(BAL_EINVAL, bal_preflight(adapter, &none, stop, &got, &check_err));
    bal_model_free(adapter);
}

static const check_test tests[] = {
    { TEST(engines_take_what_they_serve) },
    { TEST(keys_of_the_config_are_told) },
    { TEST(without_a_base_that_is_told) },
    { TEST(an_architecture_without_names_in_gguf_is_told) },
    { TEST(the_servers_own_limit_of_ranks_counts) },
    { TEST(added_tokens_are_compared_with_the_vocabulary) },
    { TEST(who_is_told_can_stop_it) },
    { TEST(what_is_no_adapter_is_refused) },
    { TEST(engines_are_found_by_name) },
};
CHECK_MAIN(tests)
