/* A plain LoRA adapter as engines take it: one rank, one scale, a list of
 * module names, modules beside others as zeros. What bal_lora_adapt gives where
 * that answers a rule. */
#ifndef MODEL_LORA_SHAPE_H
#define MODEL_LORA_SHAPE_H

#include "model/engines.h"
#include "model/known.h"
#include "model/peft.h"

/* A pair of factors of the result. */
typedef struct bal_shaped {
    const char *module;
    size_t a, b; /* entries of the adapter; BAL_NONE: zeros */
    uint64_t rank, in, out;
    bal_dtype dtypes[2];
    double factor; /* that B is multiplied by */
    bool embedding;
} bal_shaped;

typedef struct bal_lora_shape {
    bal_shaped *rows;
    size_t count;
    uint64_t rank;  /* of all */
    double alpha;   /* of all: their scale is alpha / rank */
    double loss;    /* bal_scaled_loss of the worst */
    bal_buf config; /* adapter_config.json */
    bal_arena arena;
} bal_lora_shape;

/* base: NULL, or whose shapes modules have that are added. EUNSUPPORTED: it
 * has more than factors, or what would be folded does not fit its dtype. */
BAL_CHECK int bal_lora_shape_init(bal_lora_shape *out, const bal_loras *loras,
                                  bal_model *adapter, const bal_engine *engine,
                                  const bal_known *base, bal_error *err);
void bal_lora_shape_done(bal_lora_shape *self);
/* The adapter of that shape, which is empty then. Keeps a reference on the
 * adapter. */
BAL_CHECK int bal_lora_shaped(bal_model **out, bal_model *adapter,
                              bal_lora_shape *shape, bal_error *err);
/* adapter_config.json for it; lora_shape_config.c. */
BAL_CHECK int bal_lora_shape_config(bal_lora_shape *self, const json_t *config,
                                    bal_error *err);

#endif
