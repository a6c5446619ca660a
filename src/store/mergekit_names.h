/* Names that models have in mergekit's configurations. */
#ifndef STORE_MERGEKIT_NAMES_H
#define STORE_MERGEKIT_NAMES_H

#include "store/store.h"

/* EINVAL: not "MODEL=SPEC", or a MODEL that is there twice. */
BAL_CHECK int bal_mergekit_map_check(const char *const *map, size_t count,
                                     bal_error *err);
/* The spec that a model's name stands for: its own in the map, or the name, if
 * it is [tenant:] and a full id. NULL: none; borrowed from either. */
const char *bal_mergekit_spec(const char *const *map, size_t count,
                              const char *model);

#endif
