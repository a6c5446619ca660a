/* adapter_config.json: what is in it that bears on the maths. */
#ifndef MODEL_PEFT_CONFIG_H
#define MODEL_PEFT_CONFIG_H

#include "model/peft.h"

/* The config of an adapter, parsed. ECORRUPT: none, or not JSON; EUNSUPPORTED
 * names a key that asks for more than plain LoRA. */
BAL_CHECK int bal_peft_config(json_t **out, bal_model *adapter, bal_error *err);

/* Rank and alpha by module: r and lora_alpha, but where a key of rank_pattern
 * or alpha_pattern matches; the first in the order of the file wins. */
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
/* Sets lora->scale; ECORRUPT if lora->rank is not what the config says. */
BAL_CHECK int bal_peft_scale(bal_lora *lora, const bal_peft_scales *self,
                             bal_error *err);

#endif
