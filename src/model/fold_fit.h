/* Whether an adapter fits a base: each module and whole tensor of it against
 * the tensor that it changes, and what config.json says of the model. */
#ifndef MODEL_FOLD_FIT_H
#define MODEL_FOLD_FIT_H

#include "model/peft.h"

typedef struct bal_fit {
    bal_model *base;
    json_t *config;  /* config.json of the base, NULL: none */
    bool tied;       /* the head is the embedding, or may be */
    bool transposed; /* the model's class has Conv1D modules, or may have */
} bal_fit;

BAL_CHECK int bal_fit_open(bal_fit *out, bal_model *base,
                           const json_t *adapter_config, bal_error *err);
void bal_fit_done(bal_fit *self);
/* *entry: the tensor of the base that is changed. */
BAL_CHECK int bal_fit_lora(const bal_fit *self, const bal_lora *lora,
                           size_t *entry, bal_error *err);
BAL_CHECK int bal_fit_whole(const bal_fit *self, const bal_lora_whole *whole,
                            const bal_tensor *tensor, size_t *entry,
                            bal_error *err);

#endif
