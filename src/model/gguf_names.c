/* The names of llama.cpp (gguf-py's tensor_mapping.py), for the architectures
 * whose modules are called as Llama's. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/gguf.h"

static const struct {
    const char *class_name;
    bal_gguf_base base;
} bases[] = {
    { "LlamaForCausalLM", { "llama", true } },
    { "MistralForCausalLM", { "llama", true } },
    { "Qwen2ForCausalLM", { "qwen2", false } },
    { "Qwen3ForCausalLM", { "qwen3", false } },
    { "GemmaForCausalLM", { "gemma", false } },
    { "Gemma2ForCausalLM", { "gemma2", false } },
};

static const struct {
    const char *module, *name, *heads;
} modules[] = {
    { "self_attn.q_proj", "attn_q", "num_attention_heads" },
    { "self_attn.k_proj", "attn_k", "num_key_value_heads" },
    { "self_attn.v_proj", "attn_v", NULL },
    { "self_attn.o_proj", "attn_output", NULL },
    { "mlp.gate_proj", "ffn_gate", NULL },
    { "mlp.up_proj", "ffn_up", NULL },
    { "mlp.down_proj", "ffn_down", NULL },
};

static const struct {
    const char *module, *name;
} tops[] = {
    { "model.embed_tokens", "token_embd.weight" },
    { "lm_head", "output.weight" },
};

int bal_gguf_base_of(bal_gguf_base *out, const bal_known *base, bal_error *err)
{
    const json_t *classes = json_object_get(base->fit.config, "architectures");
    const char *name = json_string_value(json_array_get(classes, 0));

    for (size_t i = 0; name && i < sizeof(bases) / sizeof(*bases); i++) {
        if (strcmp(bases[i].class_name, name) != 0)
            continue;
        *out = bases[i].base;
        return 0;
    }
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "architecture '%.64s' of the base: its names in GGUF are "
                    "not known",
                    name ? name : "");
}

/* The end of "model.layers.<n>.", and where n is; NULL: it begins otherwise. */
static const char *after_layer(const char *module, const char **number)
{
    static const char start[] = "model.layers.";
    size_t len = sizeof(start) - 1;

    if (strncmp(module, start, len) != 0)
        return NULL;
    size_t digits = strspn(module + len, "0123456789");
    if (!digits || digits > 9 || module[len + digits] != '.')
        return NULL;
    *number = module + len;
    return *number + digits + 1;
}

int bal_gguf_name(bal_buf *to, const char **heads, const char *module,
                  bal_error *err)
{
    const char *number = NULL;
    const char *rest = after_layer(module, &number);

    *heads = NULL;
    for (size_t i = 0; i < sizeof(tops) / sizeof(*tops); i++) {
        if (!strcmp(tops[i].module, module))
            return bal_buf_text(to, tops[i].name, err);
    }
    for (size_t i = 0; rest && i < sizeof(modules) / sizeof(*modules); i++) {
        if (strcmp(modules[i].module, rest) != 0)
            continue;
        *heads = modules[i].heads;
        return bal_buf_format(to, err, "blk.%.*s.%s.weight",
                              (int)(rest - number - 1), number,
                              modules[i].name);
    }
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "module '%s' has no name in GGUF that is known", module);
}
