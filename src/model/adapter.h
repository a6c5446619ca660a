/* Adapters as PEFT saves them: which tensors belong to which module, and what
 * they do to it. Facts: PEFT 0.21 (peft.tuners); docs/lora.md has the formulas.
 * https://github.com/huggingface/peft. */
#ifndef MODEL_ADAPTER_H
#define MODEL_ADAPTER_H

#include <jansson.h>

#include "model/model.h"

#define BAL_PEFT_CONFIG "adapter_config.json"
#define BAL_PEFT_PREFIX "base_model.model."
/* Larger ones are refused: buffers are sized by it. */
#define BAL_LORA_RANK_MAX 65536u

/* What a tensor is to its module. */
typedef enum bal_slot {
    BAL_SLOT_A,         /* [r, in] */
    BAL_SLOT_B,         /* [out, r] */
    BAL_SLOT_DIAGONAL,  /* r numbers between B and A */
    BAL_SLOT_BIAS,      /* out numbers, onto the module's bias */
    BAL_SLOT_MAGNITUDE, /* DoRA's, out numbers */
    BAL_SLOT_W1,        /* whole, or W1_A W1_B; the same for W2 */
    BAL_SLOT_W1_A,
    BAL_SLOT_W1_B,
    BAL_SLOT_W2,
    BAL_SLOT_W2_A,
    BAL_SLOT_W2_B,
    BAL_SLOT_FACTOR, /* IA3's: [out, 1] or [1, in] */
    BAL_SLOT_ROWS,   /* of an embedding, [n, dim] */
    BAL_SLOTS,
} bal_slot;

typedef enum bal_family {
    BAL_FAMILY_LORA,
    BAL_FAMILY_EMBEDDING, /* LoRA of an embedding: in is its rows */
    BAL_FAMILY_ADALORA,
    BAL_FAMILY_LOHA,
    BAL_FAMILY_LOKR,
    BAL_FAMILY_IA3,
    BAL_FAMILY_TOKENS,
    BAL_FAMILIES,
} bal_family;

typedef struct bal_adapted {
    const char *module; /* "model.layers.0.self_attn.q_proj" */
    bal_family family;
    size_t slots[BAL_SLOTS]; /* entries of the adapter, BAL_NONE: none */
    uint64_t rank;           /* 0: none */
    uint64_t in, out;        /* as the module has them; IA3: 1 is any */
    double scale;
    bool stacked; /* of a parameter that target_parameters names: rank and
                   * scale are those of all its experts, and not told */
} bal_adapted;

/* A tensor that stands for the base's: of modules_to_save, a trained bias. */
typedef struct bal_lora_whole {
    const char *name; /* in the base: "lm_head.weight" */
    size_t entry;
    bool copy;    /* the base's own, saved beside an update of it */
    bool resized; /* known to have other rows than the base's */
} bal_lora_whole;

typedef struct bal_adapter {
    bal_adapted *rows; /* by module */
    size_t count;
    bal_lora_whole *wholes; /* by name */
    size_t whole_count;
    json_t *config; /* adapter_config.json */
    bal_arena arena;
} bal_adapter;

/* Names are taken with or without "base_model.model." (a warning says so) and
 * the adapter's name inside (lora_A.default.weight). EUNSUPPORTED names what
 * has no weights to be folded into, or not from its tensors alone: peft_type,
 * keys of the config, tensors nobody knows. ECORRUPT: a lone factor, ranks that
 * differ, shapes that do not fit, no tensors. EINVAL: a pattern that is none,
 * or takes too long. Whether the modules are in a base is not known here. */
BAL_CHECK int bal_adapter_read(bal_adapter *out, bal_model *model,
                               bal_error *err);
void bal_adapter_done(bal_adapter *self);
/* NULL: not there. */
const bal_adapted *bal_adapter_find(const bal_adapter *self,
                                    const char *module);
/* ECORRUPT names the first element that is NaN or infinite, by its place. */
BAL_CHECK int bal_adapter_finite(const bal_adapter *self, bal_model *model,
                                 bal_error *err);
/* Warn of what was taken in one of several ways it could have been meant. */
BAL_CHECK int bal_adapter_remark(const bal_adapter *self, bal_error *err);

/* True if a module's path is the name or ends with "." and the name: how PEFT
 * matches a list of target_modules. */
bool bal_peft_named(const char *module, const char *name);
/* True if a value of the config says no: absent, null, false, empty. */
bool bal_peft_off(const json_t *value);

#endif
