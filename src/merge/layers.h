/* Layers, by the names of tensors. */
#ifndef MERGE_LAYERS_H
#define MERGE_LAYERS_H

#include "core/map.h"

/* The first number between two points of a name is its layer, what is before it
 * the stack (mergekit 0.1.5's rule for architectures that it has no definition
 * of, which gives what the definitions say): "model.layers." 12 ".mlp.up_proj…"
 */
typedef struct bal_layer {
    uint64_t number;
    size_t stack; /* bytes of the name before it */
    size_t rest;  /* where the name goes on behind it */
} bal_layer;

/* False: it is in no layer. */
bool bal_layer_of(bal_layer *out, const char *tensor);
/* Of a tensor in no layer: does it come behind the layers (final norm, head)?
 * By the names that the architectures known to mergekit have for these. */
bool bal_layer_behind(const char *tensor);

/* How many layers each stack has. */
typedef struct bal_stacks {
    bal_map names;
    uint64_t *counts;
    size_t count, room;
} bal_stacks;
BAL_CHECK int bal_stacks_add(bal_stacks *self, const char *tensor,
                             bal_error *err);
void bal_stacks_done(bal_stacks *self);
/* How far a tensor is into its layers: i / (count - 1) of layer i, 1 where the
 * stack has but one, 0 of what is in no layer, the head included. */
double bal_stacks_depth(const bal_stacks *self, const char *tensor);
double bal_layer_depth(uint64_t number, uint64_t count);

#endif
