/* Which safetensors files of a folder are the model. */
#ifndef MODEL_PICK_H
#define MODEL_PICK_H

#include "model/index.h"

/* The names in a folder, sorted. */
typedef struct bal_listing {
    const char *dir; /* borrowed */
    const char **names;
    size_t count, room;
    bal_map map;
    bal_arena arena;
} bal_listing;

BAL_CHECK int bal_listing_read(bal_listing *out, const char *dir,
                               bal_error *err);
bool bal_listing_has(const bal_listing *self, const char *name);
void bal_listing_done(bal_listing *self);

typedef struct bal_pick {
    const char **files; /* by name; the listing must outlive them */
    size_t count, room;
    bool adapter; /* a PEFT folder: adapter_config.json beside its weights */
    bool indexed; /* by index */
    bal_index index;
} bal_pick;

/* ENOTFOUND: none is there. EUNSUPPORTED: only weights of other formats.
 * ECORRUPT: a shard is missing; all that are are named. */
BAL_CHECK int bal_pick_weights(bal_pick *out, const bal_listing *list,
                               bal_error *err);
bool bal_pick_has(const bal_pick *self, const char *name);
void bal_pick_done(bal_pick *self);

/* Append "'a'", then ", 'b'" and so on while n is small; "…" once. */
BAL_CHECK int bal_name_some(bal_buf *to, size_t n, const char *name,
                            bal_error *err);

#endif
