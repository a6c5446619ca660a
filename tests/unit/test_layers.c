/* Which layer a tensor is in, by its name; what comes behind the layers, and
 * how far into them one is. The names are those of architectures. */
#include <string.h>

#include "merge/layers.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *name;
    bool layered;
    uint64_t number;
    const char *stack, *rest;
} names[] = {
    { "model.layers.12.mlp.up_proj.weight", true, 12, "model.layers.",
      ".mlp.up_proj.weight" },
    { "transformer.h.0.attn.c_attn.weight", true, 0, "transformer.h.",
      ".attn.c_attn.weight" },
    { "encoder.block.3.layer.1.wo.weight", true, 3, "encoder.block.",
      ".layer.1.wo.weight" },
    { "a.9999999999999999999.w", true, 9999999999999999999u, "a.", ".w" },
    { "a..1.w", true, 1, "a..", ".w" },
    { "a.1b.2.c", true, 2, "a.1b.", ".c" },
    { "a.x.7.", true, 7, "a.x.", "." },
    /* More digits than a number has. */
    { "a.18446744073709551615.w", false, 0, "", "" },
    { "a.00000000000000000000000000001.w", false, 0, "", "" },
    { "a.18446744073709551616.5.w", true, 5, "a.18446744073709551616.", ".w" },
    { "0.w", false, 0, "", "" },
    { "a.1", false, 0, "", "" },
    { "a1.w", false, 0, "", "" },
    { "a.-1.w", false, 0, "", "" },
    { "model.embed_tokens.weight", false, 0, "", "" },
    { "w", false, 0, "", "" },
    { "", false, 0, "", "" },
    { ".", false, 0, "", "" },
    { "..", false, 0, "", "" },
};

static void the_first_number_between_points_is_the_layer(void)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *name = names[i].name;
        bal_layer layer = { 0 };

        check_row(name);
        CHECK(bal_layer_of(&layer, name) == names[i].layered);
        if (!names[i].layered)
            continue;
        CHECK(layer.number == names[i].number);
        CHECK(layer.stack == strlen(names[i].stack));
        CHECK(!strncmp(name, names[i].stack, layer.stack));
        CHECK(!strcmp(name + layer.rest, names[i].rest));
    }
}

static const struct {
    const char *name;
    bool behind;
} sides[] = {
    { "lm_head.weight", true },
    { "lm_head.linear.bias", true },
    { "model.norm.weight", true },
    { "transformer.ln_f.weight", true },
    { "transformer.encoder.final_layernorm.weight", true },
    { "transformer.output_layer.weight", true },
    { "gpt_neox.final_layer_norm.bias", true },
    { "embed_out.weight", true },
    { "output.weight", true },
    { "backbone.norm_f.weight", true },
    { "score.weight", true },
    { "bert.pooler.dense.weight", true },
    { "cls.predictions.bias", true },
    { "vocab_projector.bias", true },
    { "model.embedding_norm.weight", true },
    { "model.embed_tokens.weight", false },
    { "gpt_neox.embed_in.weight", false },
    { "transformer.wte.weight", false },
    { "bert.embeddings.LayerNorm.weight", false },
    { "model.normal.weight", false },
    { "model.layernorm_embedding.weight", false },
    { "lm_heads.weight", false },
    { "xlm_head.weight", false },
    { "lm.weight", false },
    { "a..b", false },
    { "", false },
};

static void heads_and_final_norms_come_behind_the_layers(void)
{
    for (size_t i = 0; i < COUNT(sides); i++) {
        check_row(sides[i].name);
        CHECK(bal_layer_behind(sides[i].name) == sides[i].behind);
    }
}

static const struct {
    const char *name;
    double depth;
} depths[] = {
    { "model.layers.0.w", 0 },   { "model.layers.1.w", 0.25 },
    { "model.layers.4.v", 1 },   { "visual.blocks.0.w", 0 },
    { "visual.blocks.2.w", 1 },  { "visual.blocks.1.x", 0.5 },
    { "single.0.w", 1 },         { "model.embed.weight", 0 },
    { "lm_head.weight", 0 },     { "other.layers.3.w", 0 },
    { "model.layers.2.w", 0.5 }, /* of which there is none */
};

static void a_layer_is_as_deep_as_its_own_stack_says(void)
{
    static const char *const there[] = {
        "model.layers.4.v",  "model.layers.0.w",   "model.layers.1.w",
        "visual.blocks.2.w", "visual.blocks.0.w",  "single.0.w",
        "lm_head.weight",    "model.embed.weight",
    };
    BAL_LOCAL(bal_stacks) stacks = { 0 };

    for (size_t i = 0; i < COUNT(there); i++)
        CHECK_OK(bal_stacks_add(&stacks, there[i], &check_err));
    CHECK(stacks.count == 3);
    for (size_t i = 0; i < COUNT(depths); i++) {
        check_row(depths[i].name);
        CHECK(bal_stacks_depth(&stacks, depths[i].name) == depths[i].depth);
    }
}

static void a_single_layer_is_at_the_end(void)
{
    CHECK(bal_layer_depth(0, 1) == 1);
    CHECK(bal_layer_depth(0, 0) == 1);
    CHECK(bal_layer_depth(0, 2) == 0);
    CHECK(bal_layer_depth(1, 2) == 1);
    CHECK(bal_layer_depth(1, 4) == 1.0 / 3);
}

static const check_test tests[] = {
    { TEST(the_first_number_between_points_is_the_layer) },
    { TEST(heads_and_final_norms_come_behind_the_layers) },
    { TEST(a_layer_is_as_deep_as_its_own_stack_says) },
    { TEST(a_single_layer_is_at_the_end) },
};

CHECK_MAIN(tests)
