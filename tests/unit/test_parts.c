/* Layers and modules, by the names that models and PEFT give. */
#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "report/parts.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *name;
    size_t layer;
    const char *module;
} rows[] = {
    { "model.layers.0.self_attn.q_proj.weight", 0, "self_attn.q_proj" },
    { "model.layers.31.self_attn.q_proj.bias", 31, "self_attn.q_proj.bias" },
    { "model.layers.7.input_layernorm.weight", 7, "input_layernorm" },
    { "transformer.h.12.attn.c_attn.weight", 12, "attn.c_attn" },
    { "h.3.mlp.c_fc.weight", 3, "mlp.c_fc" },
    { "gpt_neox.layers.4.attention.dense.weight", 4, "attention.dense" },
    { "transformer.blocks.9.ffn.up_proj.weight", 9, "ffn.up_proj" },
    { "encoder.block.2.layer.0.SelfAttention.q.weight", 2,
      "encoder.layer.*.SelfAttention.q" },
    { "decoder.block.2.layer.0.SelfAttention.q.weight", 2,
      "decoder.layer.*.SelfAttention.q" },
    { "bert.encoder.layer.5.output.dense.weight", 5,
      "bert.encoder.output.dense" },
    { "model.layers.3.mlp.experts.17.down_proj.weight", 3,
      "mlp.experts.*.down_proj" },
    { "base_model.model.model.layers.6.mlp.up_proj.lora_A.weight", 6,
      "mlp.up_proj" },
    { "base_model.model.model.layers.6.mlp.up_proj.lora_B.weight", 6,
      "mlp.up_proj" },
    { "base_model.model.model.layers.6.mlp.up_proj.lora_B.default.weight", 6,
      "mlp.up_proj" },
    { "base_model.model.model.layers.6.mlp.up_proj.lora_magnitude_vector", 6,
      "mlp.up_proj" },
    { "base_model.model.model.layers.6.mlp.up_proj.base_layer.weight", 6,
      "mlp.up_proj" },
    { "base_model.model.lm_head.lora_A.weight", BAL_NONE, "lm_head" },
    { "model.embed_tokens.weight", BAL_NONE, "model.embed_tokens" },
    { "lm_head.weight", BAL_NONE, "lm_head" },
    { "model.norm.weight", BAL_NONE, "model.norm" },
    { "weight", BAL_NONE, "weight" },
    { "0.weight", 0, "weight" },
    { "layers.0", 0, "" },
    { "layers.007.x", 7, "x" },
    { "layers.12a.x", BAL_NONE, "layers.12a.x" },
    { "layers.1234567.x", BAL_NONE, "layers.1234567.x" },
    { "", BAL_NONE, "" },
    { ".", BAL_NONE, "" },
    { "..5..x", 5, "x" },
};

static void a_name_is_split_as_its_row_says(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char module[BAL_MODULE_ROOM];
        size_t layer;

        check_row(rows[i].name);
        bal_part_of(rows[i].name, &layer, module);
        CHECK(layer == rows[i].layer);
        CHECK(!strcmp(module, rows[i].module));
    }
}

static void long_names_lose_their_front_and_stay_text(void)
{
    for (size_t len = 100; len < 300; len++) {
        BAL_LOCAL(bal_buf) name = { 0 };
        char module[BAL_MODULE_ROOM];
        size_t layer;

        CHECK_OK(bal_buf_text(&name, "layers.1.", &check_err));
        for (size_t i = 0; i < len; i++)
            CHECK_OK(
                bal_buf_text(&name, i % 7 ? "\xe6\xbc\xa2" : "x.", &check_err));
        CHECK_OK(bal_buf_text(&name, ".q_proj.weight", &check_err));
        bal_part_of(name.data, &layer, module);
        CHECK(layer == 1 && strlen(module) < BAL_MODULE_ROOM);
        CHECK(strlen(module) > BAL_MODULE_ROOM - 6);
        CHECK(bal_utf8_valid(module, strlen(module)));
        CHECK(!strcmp(module + strlen(module) - 7, ".q_proj"));
    }
}

static const check_test tests[] = {
    { TEST(a_name_is_split_as_its_row_says) },
    { TEST(long_names_lose_their_front_and_stay_text) },
};

CHECK_MAIN(tests)
