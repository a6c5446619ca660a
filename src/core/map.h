/* A hash table from text or ids to an index: lookups by name in bounded time,
 * whoever chose the names (keyed by a random seed of the process). */
#ifndef CORE_MAP_H
#define CORE_MAP_H

#include "core/buf.h"

typedef struct bal_map {
    struct bal_map_slot *slots;
    size_t room; /* a power of two, or 0 */
    size_t count;
    uint64_t seed[2];
} bal_map;

/* Keeps a pointer to key. *there is set if the key was in it already; then
 * *value is the old value and nothing changes, else value goes in. */
BAL_CHECK int bal_map_add(bal_map *self, const void *key, size_t len,
                          size_t *value, bool *there, bal_error *err);
/* BAL_NONE if absent. */
size_t bal_map_find(const bal_map *self, const void *key, size_t len);
void bal_map_done(bal_map *self);

#endif
