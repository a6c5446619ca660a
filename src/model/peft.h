/* Adapters that are plain LoRA, for who computes with their factors: merges,
 * resizing. What else an adapter can be, and what it does to a base, is in
 * model/adapter.h. */
#ifndef MODEL_PEFT_H
#define MODEL_PEFT_H

#include "model/adapter.h"

/* One adapted module of an adapter. */
typedef struct bal_lora {
    const char *module; /* "model.layers.0.self_attn.q_proj" */
    size_t a, b;        /* entries: A [r, in], B [out, r] */
    uint64_t rank, in, out;
    double scale;   /* alpha / r, alpha / sqrt(r) with rslora; by pattern */
    bool embedding; /* the map is added turned over: in is tokens */
} bal_lora;

typedef struct bal_loras {
    bal_lora *rows; /* by module */
    size_t count;
    bal_lora_whole *wholes; /* by name */
    size_t whole_count;
    bal_arena arena;
    json_t *config; /* adapter_config.json */
} bal_loras;

/* As bal_adapter_read; EUNSUPPORTED besides names what is more than plain LoRA
 * on linear modules, embeddings and whole tensors: peft_type, use_dora,
 * lora_bias, target_parameters, … */
BAL_CHECK int bal_loras_read(bal_loras *out, bal_model *adapter,
                             bal_error *err);
void bal_loras_done(bal_loras *self);
/* NULL: not there. */
const bal_lora *bal_loras_find(const bal_loras *self, const char *module);

#endif
