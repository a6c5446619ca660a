/* An adapter as it lies there, whether or not it makes sense: what is wrong
 * with it is for rules to tell (model/preflight.h), where bal_adapter_read
 * stops at the first. */
#ifndef MODEL_LOOSE_H
#define MODEL_LOOSE_H

#include "model/adapter.h"

/* What a tensor is by its name. */
typedef enum bal_loose_kind {
    BAL_LOOSE_FACTOR,    /* A or B */
    BAL_LOOSE_TWICE,     /* a factor that its module has already */
    BAL_LOOSE_BIAS,      /* lora_B.bias */
    BAL_LOOSE_MAGNITUDE, /* DoRA's */
    BAL_LOOSE_ROWS,      /* trained tokens */
    BAL_LOOSE_COPY,      /* "….base_layer.weight" of an embedding or a head */
    BAL_LOOSE_WHOLE,     /* stands for a tensor of the base */
    BAL_LOOSE_STRANGE,   /* part of an adapter, of no kind that is known */
} bal_loose_kind;

typedef struct bal_loose_tensor {
    size_t entry;
    bal_loose_kind kind;
    const char *bare;   /* the name in the base */
    unsigned prefixes;  /* bal_adapter_bare's */
    const char *inside; /* the adapter's name in it: "default"; "": none */
} bal_loose_tensor;

typedef struct bal_loose_module {
    const char *name;
    bool embedding; /* factors are named as an embedding's */
    size_t a, b;    /* entries; BAL_NONE: not there */
} bal_loose_module;

typedef struct bal_loose {
    json_t *config;            /* NULL: none that could be read, */
    bal_error trouble;         /* and why; text "": there is none */
    bal_loose_tensor *tensors; /* by name */
    size_t count;
    bal_loose_module *modules; /* by name */
    size_t module_count;
    bal_arena arena;
} bal_loose;

/* Fails only as reading does. */
BAL_CHECK int bal_loose_read(bal_loose *out, bal_model *adapter,
                             bal_error *err);
void bal_loose_done(bal_loose *self);
/* NULL: not there. */
const bal_loose_module *bal_loose_find(const bal_loose *self, const char *name);
/* What is behind the last dot of a module's name. */
const char *bal_loose_leaf(const char *module);

#endif
