/* adapter_config.json: what is in it that bears on the maths. */
#ifndef MODEL_PEFT_CONFIG_H
#define MODEL_PEFT_CONFIG_H

#include "model/adapter.h"

/* The config of an adapter, parsed. ECORRUPT: none, or not JSON; EUNSUPPORTED
 * names a type, or a key, that has no weights to be computed from its tensors
 * alone. */
BAL_CHECK int bal_peft_config(json_t **out, bal_model *adapter, bal_error *err);

/* Rank and alpha by module: r and lora_alpha (alpha, for LoHa and LoKr), but
 * where a key of rank_pattern or alpha_pattern matches; the first in the order
 * of the file wins. Of AdaLoRA init_r and lora_alpha, without patterns. */
typedef struct bal_peft_scales {
    struct bal_peft_number {
        const char *key; /* of the config */
        double fallback;
        struct bal_peft_rule *rules;
        size_t count;
    } rank, alpha;
    bool rslora;
} bal_peft_scales;

/* Borrows from config. EINVAL, ECORRUPT. */
BAL_CHECK int bal_peft_scales_init(bal_peft_scales *self, const json_t *config,
                                   bal_error *err);
void bal_peft_scales_done(bal_peft_scales *self);
/* The scale of a module whose tensors have that rank, 0: they do not tell.
 * ECORRUPT if it is not what the config says. */
BAL_CHECK int bal_peft_scale(double *out, bal_peft_scales *self,
                             const char *module, uint64_t rank, bal_error *err);
/* The rank that the config says the module has. EINVAL: a pattern that takes
 * too long. */
BAL_CHECK int bal_peft_rank(double *out, bal_peft_scales *self,
                            const char *module, bal_error *err);
/* Warn of patterns that fitted no module that was asked for. */
void bal_peft_scales_remark(const bal_peft_scales *self);

#endif
