/* A small Llama and adapters for it, in memory, for tests of what serves them.
 */
#ifndef SUPPORT_SERVED_H
#define SUPPORT_SERVED_H

#include "model/model.h"

typedef struct served_tensor {
    const char *name;    /* NULL: the end */
    uint64_t rows, cols; /* cols 0: of one dimension */
    bal_dtype dtype;     /* BAL_BOOL (0): F32 */
    bool nan;            /* its last element */
} served_tensor;

#define SERVED_LAYER(n) "base_model.model.model.layers." #n "."
#define SERVED_PAIR(module, rank, in, out)                                     \
    { module ".lora_A.weight", rank, in },                                     \
    {                                                                          \
        module ".lora_B.weight", out, rank                                     \
    }

/* Two layers, width 8, two heads of 4, one of keys and values, 12 in the MLP,
 * 16 tokens. */
bal_model *served_base(const char *class_name, bool tied);
/* Values are the same for the same name. config NULL: none; file NULL: no
 * added_tokens.json. */
bal_model *served_adapter(const char *config, const served_tensor *tensors,
                          const char *file);

#endif
