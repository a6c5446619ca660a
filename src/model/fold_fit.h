/* Whether an adapter fits a base: where in it the tensors are that a module
 * speaks of, which way up they lie, and what config.json says of the model. */
#ifndef MODEL_FOLD_FIT_H
#define MODEL_FOLD_FIT_H

#include "model/adapter.h"

typedef struct bal_fit {
    bal_model *base;
    json_t *config;   /* config.json of the base, NULL: none */
    const char *type; /* its model_type, NULL: not told */
    bool body;        /* no name begins with "model." or "transformer." */
    bool tied;        /* the head is the embedding, or may be */
    bool transposed;  /* the model's class has Conv1D modules, or may have */
} bal_fit;

BAL_CHECK int bal_fit_open(bal_fit *out, bal_model *base, bal_error *err);
void bal_fit_done(bal_fit *self);

/* The entry of a tensor, "module" + "tail"; BAL_NONE: not there. Bases that
 * were saved without their head lack "model." or "transformer.", so there it
 * is looked for without. */
BAL_CHECK int bal_fit_find(const bal_fit *self, size_t *entry,
                           const char *module, const char *tail,
                           bal_error *err);
/* The same, of floats, or ECORRUPT naming the module. */
BAL_CHECK int bal_fit_weight(const bal_fit *self, size_t *entry,
                             const char *module, bal_error *err);
/* *turned: the tensor is [in, out]. ECORRUPT: neither that nor [out, in];
 * EUNSUPPORTED: it could be both. */
BAL_CHECK int bal_fit_turned(const bal_fit *self, const bal_adapted *row,
                             const bal_tensor *tensor, bool *turned,
                             bal_error *err);
/* True if the model's class has its stacks of experts [in, out], for those
 * whose matrices are square. */
bool bal_fit_stack_turned(const bal_fit *self);
BAL_CHECK int bal_fit_floats(const bal_tensor *tensor, bal_error *err);

/* The tensor's name is one that embeddings and heads have. */
bool bal_fit_vocabulary(const char *tensor);
/* Of a tied base: the embedding that `head` is, BAL_NONE: it is no head. */
size_t bal_fit_embedding(const bal_fit *self, const char *head);
/* Of a tied base: the head that is that embedding, NULL: not known. */
const char *bal_fit_head(const char *embedding);

#endif
