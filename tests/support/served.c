/* Every matrix of a Llama, and what of config.json is looked at. */
#include "support/served.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/made_model.h"
#include "support/memory_model.h"

enum { MOST = 4096 };

static unsigned seed_of(const char *name)
{
    unsigned seed = 7;

    while (*name)
        seed = seed * 31 + (unsigned char)*name++;
    return seed;
}

static void add(bal_model *to, const served_tensor *tensor)
{
    float floats[MOST];
    double wide[MOST];
    char bytes[8 * MOST];
    bal_dtype dtype = tensor->dtype ? tensor->dtype : BAL_F32;
    uint64_t shape[2] = { tensor->rows, tensor->cols };
    size_t n = (size_t)(tensor->rows * (tensor->cols ? tensor->cols : 1));

    CHECK(n <= MOST);
    made_floats(floats, n, seed_of(tensor->name));
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)floats[i];
    if (tensor->nan)
        wide[n - 1] = (double)NAN;
    memset(bytes, 0, sizeof(bytes));
    if (bal_kernels_use()->from_f64[dtype])
        bal_kernels_use()->from_f64[dtype](bytes, wide, n);
    memory_tensor(to, tensor->name, dtype, tensor->cols ? 2 : 1, shape, bytes);
}

bal_model *served_base(const char *class_name, bool tied)
{
    static const served_tensor layer[] = {
        { "self_attn.q_proj.weight", 8, 8 },
        { "self_attn.k_proj.weight", 4, 8 },
        { "self_attn.v_proj.weight", 4, 8 },
        { "self_attn.o_proj.weight", 8, 8 },
        { "mlp.gate_proj.weight", 12, 8 },
        { "mlp.up_proj.weight", 12, 8 },
        { "mlp.down_proj.weight", 8, 12 },
        { "input_layernorm.weight", 8, 0 },
    };
    static const served_tensor embedding = { "model.embed_tokens.weight", 16,
                                             8 };
    static const served_tensor head = { "lm_head.weight", 16, 8 };
    bal_model *self = memory_new(BAL_KIND_WEIGHTS, "base");
    char text[512];

    for (size_t i = 0; i < 2 * sizeof(layer) / sizeof(*layer); i++) {
        served_tensor tensor = layer[i / 2];

        snprintf(text, sizeof(text), "model.layers.%zu.%s", i % 2, tensor.name);
        tensor.name = text;
        add(self, &tensor);
    }
    add(self, &embedding);
    if (!tied)
        add(self, &head);
    snprintf(text, sizeof(text),
             "{\"architectures\": [\"%s\"], \"model_type\": \"llama\", "
             "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
             "\"vocab_size\": 16, \"tie_word_embeddings\": %s}",
             class_name, tied ? "true" : "false");
    memory_file(self, BAL_PART_FILE, "config.json", text, strlen(text));
    memory_finish(self);
    return self;
}

bal_model *served_adapter(const char *config, const served_tensor *tensors,
                          const char *file)
{
    bal_model *self = memory_new(BAL_KIND_ADAPTER, "adapter");

    for (const served_tensor *at = tensors; at->name; at++)
        add(self, at);
    if (config)
        memory_file(self, BAL_PART_FILE, "adapter_config.json", config,
                    strlen(config));
    if (file)
        memory_file(self, BAL_PART_FILE, "added_tokens.json", file,
                    strlen(file));
    memory_finish(self);
    return self;
}
