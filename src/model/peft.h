/* PEFT LoRA adapters: which tensors belong together, and at what scale.
 * Facts: PEFT 0.21 (peft.tuners.lora); https://github.com/huggingface/peft. */
#ifndef MODEL_PEFT_H
#define MODEL_PEFT_H

#include <jansson.h>

#include "model/model.h"

#define BAL_PEFT_CONFIG "adapter_config.json"
#define BAL_PEFT_PREFIX "base_model.model."
/* Larger ones are refused: buffers are sized by it. */
#define BAL_LORA_RANK_MAX 65536u

/* One adapted module of an adapter. */
typedef struct bal_lora {
    const char *module; /* "model.layers.0.self_attn.q_proj" */
    size_t a, b;        /* entries: A [r, in], B [out, r] */
    uint64_t rank, in, out;
    double scale; /* alpha / r, alpha / sqrt(r) with rslora; by pattern */
} bal_lora;

/* A tensor that replaces the base's: of modules_to_save, a trained bias. */
typedef struct bal_lora_whole {
    const char *name; /* in the base: "lm_head.weight" */
    size_t entry;
} bal_lora_whole;

typedef struct bal_loras {
    bal_lora *rows; /* by module */
    size_t count;
    bal_lora_whole *wholes; /* by name */
    size_t whole_count;
    bal_arena arena;
    json_t *config; /* adapter_config.json */
} bal_loras;

/* Names are taken with or without "base_model.model." and the adapter's name
 * inside (lora_A.default.weight). EUNSUPPORTED names what is more than plain
 * LoRA on linear modules and whole tensors: peft_type, use_dora, lora_bias,
 * embeddings, target_parameters, … ECORRUPT: a lone factor, ranks that differ,
 * shapes that do not fit. EINVAL: a pattern that is none, or takes too long.
 * Whether the adapter's modules are in a base is not known here. */
BAL_CHECK int bal_loras_read(bal_loras *out, bal_model *adapter,
                             bal_error *err);
void bal_loras_done(bal_loras *self);
/* NULL: not there. */
const bal_lora *bal_loras_find(const bal_loras *self, const char *module);
/* True if a module's path is the name or ends with "." and the name: how PEFT
 * matches a list of target_modules. */
bool bal_peft_named(const char *module, const char *name);
/* True if a value of the config says no: absent, null, false, empty. */
bool bal_peft_off(const json_t *value);

#endif
