/* What the name of a tensor in an adapter says. */
#ifndef MODEL_ADAPTER_NAMES_H
#define MODEL_ADAPTER_NAMES_H

#include "model/adapter.h"

typedef struct bal_adapter_name {
    const char *module; /* in the tensor's name, not ended */
    size_t len;
    bal_family family;
    bal_slot slot;
} bal_adapter_name;

/* Prefixes that wrappers put before the names of the base. */
enum {
    BAL_PREFIX_MISSING = 1, /* no "base_model.model." */
    BAL_PREFIX_TWICE = 2,
    BAL_PREFIX_COMPILED = 4, /* "_orig_mod.", "module." */
};

/* The name in the base; |= flags what was unusual about the prefix. */
const char *bal_adapter_bare(const char *name, unsigned *flags);
/* False: of no module of an adapter of that peft_type. */
bool bal_adapter_parse(bal_adapter_name *out, const char *bare,
                       const char *type);
/* Looks like a part of an adapter that is not known, of whatever type. */
bool bal_adapter_strange(const char *bare);

#endif
