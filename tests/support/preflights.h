/* Adapters and what is told of them, as rows. */
#ifndef SUPPORT_PREFLIGHTS_H
#define SUPPORT_PREFLIGHTS_H

#include "support/served.h"

#define PREFLIGHT_ENGINES 4
extern const char *const preflight_engines[PREFLIGHT_ENGINES];

#define MOST 12
#define ALL                                                                    \
    "\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\", \"gate_proj\", "          \
    "\"up_proj\", \"down_proj\""
#define CONFIG_OF(r, targets, more)                                            \
    "{\"peft_type\": \"LORA\", \"r\": " r ", \"lora_alpha\": 4, "              \
    "\"target_modules\": " targets more "}"
#define CONFIG(more) CONFIG_OF("2", "[" ALL "]", more)
#define ATTN         SERVED_LAYER(0) "self_attn."
#define MLP          SERVED_LAYER(1) "mlp."
#define QV                                                                     \
    SERVED_PAIR(ATTN "q_proj", 2, 8, 8), SERVED_PAIR(ATTN "v_proj", 2, 8, 4)

typedef struct adapter_row {
    const char *what, *config;
    served_tensor tensors[MOST];
    /* By engine: rules, each once, with the first letter of their outcome. */
    const char *want[PREFLIGHT_ENGINES];
} adapter_row;

/* Says what was told where it is not what was wanted. */
bool preflight_tells(bal_model *adapter, const bal_serving_options *options,
                     const char *want);
/* Beside served_base; all rows are looked at before it fails. */
void preflights_check(const adapter_row *rows, size_t count);

#endif
