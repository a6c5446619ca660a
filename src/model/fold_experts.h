/* Experts that transformers stacks in memory and keeps one tensor each on disk,
 * with gate and up apart: a parameter of an adapter speaks of the stack. */
#ifndef MODEL_FOLD_EXPERTS_H
#define MODEL_FOLD_EXPERTS_H

#include "model/fold_fit.h"

typedef struct bal_experts {
    const struct bal_experts_row *row; /* NULL: there are none */
    const char *path;                  /* of the stack, borrowed */
    size_t prefix;                     /* of it, up to the module */
    uint64_t count;
    size_t parts; /* tensors that one expert's matrix is cut into, by rows */
} bal_experts;

/* Those that the stack "model.layers.0.mlp.experts.gate_up_proj" is in a base
 * without one. */
BAL_CHECK int bal_experts_find(bal_experts *out, const bal_fit *fit,
                               const char *path, bal_error *err);
/* The entry of one; BAL_NONE: not there. */
BAL_CHECK int bal_experts_at(const bal_experts *self, const bal_fit *fit,
                             uint64_t expert, size_t part, size_t *entry,
                             bal_error *err);

#endif
