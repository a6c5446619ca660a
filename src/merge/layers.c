#include "merge/layers.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/room.h"
#include "core/str.h"

bool bal_layer_of(bal_layer *out, const char *tensor)
{
    char digits[20];

    for (const char *at = strchr(tensor, '.'); at; at = strchr(at + 1, '.')) {
        size_t len = strspn(at + 1, "0123456789");
        if (!len || at[1 + len] != '.' || len >= sizeof(digits))
            continue;
        memcpy(digits, at + 1, len);
        digits[len] = '\0';
        if (bal_parse_u64(&out->number, digits, NULL))
            return false;
        out->stack = (size_t)(at + 1 - tensor);
        out->rest = out->stack + len;
        return true;
    }
    return false;
}

/* Parts of names between points, as in ".norm.weight". */
static const char *const behind[] = {
    "norm",
    "norm_f",
    "ln_f",
    "final_layernorm",
    "lm_head",
    "embed_out",
    "output",
    "final_layer_norm",
    "output_layer",
    "output_norm",
    "score",
    "classifier",
    "pooler",
    "cls",
    "pre_classifier",
    "vocab_projector",
    "vocab_transform",
    "vocab_layer_norm",
    "embedding_norm",
};

static bool is_behind(const char *part, size_t len)
{
    for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
        if (strlen(behind[i]) == len && !memcmp(behind[i], part, len))
            return true;
    }
    return false;
}

bool bal_layer_behind(const char *tensor)
{
    while (*tensor) {
        size_t len = strcspn(tensor, ".");
        if (is_behind(tensor, len))
            return true;
        tensor += len + (tensor[len] == '.');
    }
    return false;
}

/* ---- stacks ------------------------------------------------------------- */

static int add_stack(bal_stacks *self, bal_error *err)
{
    uint64_t *counts = bal_room_for_one(self->counts, self->count, &self->room,
                                        sizeof(*counts));
    if (!counts)
        return bal_fail_memory(err, "layers");
    self->counts = counts;
    counts[self->count++] = 0;
    return 0;
}

int bal_stacks_add(bal_stacks *self, const char *tensor, bal_error *err)
{
    bal_layer layer;
    size_t at = self->count;
    bool there;

    if (!bal_layer_of(&layer, tensor))
        return 0;
    int rc = bal_map_add(&self->names, tensor, layer.stack, &at, &there, err);
    if (!rc && !there)
        rc = add_stack(self, err);
    if (rc)
        return rc;
    self->counts[at] = bal_max(self->counts[at], layer.number + 1);
    return 0;
}

void bal_stacks_done(bal_stacks *self)
{
    bal_map_done(&self->names);
    free(self->counts);
    *self = (bal_stacks){ 0 };
}

double bal_layer_depth(uint64_t number, uint64_t count)
{
    return count > 1 ? (double)number / (double)(count - 1) : 1;
}

double bal_stacks_depth(const bal_stacks *self, const char *tensor)
{
    bal_layer layer;

    if (!bal_layer_of(&layer, tensor))
        return 0;
    size_t at = bal_map_find(&self->names, tensor, layer.stack);
    if (at == BAL_NONE)
        return 0;
    return bal_layer_depth(layer.number, self->counts[at]);
}
