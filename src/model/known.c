/* Modules are known by their ".weight"; of packed weights it is only known that
 * they are there. */
#include "model/known.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/loose.h"

static const char layers_mark[] = "layers.";

/* What stands for a weight that is packed. */
static const char *const packed[] = {
    ".qweight",
    ".weight_packed",
    ".weight.absmax",
};

/* Modules whose weights are [in, out] in the models that bal_fit says. */
static const char *const turned[] = { "c_attn", "c_proj", "c_fc", "q_attn" };

static const char *const embeddings[] = { "embed_tokens", "wte", "wpe",
                                          "embed_in", "word_embeddings" };

static bool listed(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(name, names[i]))
            return true;
    }
    return false;
}

bool bal_is_embedding(const char *module)
{
    return listed(bal_loose_leaf(module), embeddings,
                  sizeof(embeddings) / sizeof(*embeddings));
}

bool bal_known_layer(uint64_t *out, const char *module)
{
    const char *at = strstr(module, layers_mark);
    uint64_t value = 0;

    if (!at || (at != module && at[-1] != '.'))
        return false;
    at += sizeof(layers_mark) - 1;
    size_t digits = strspn(at, "0123456789");
    if (!digits || digits > 9 || at[digits] != '.')
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (uint64_t)(at[i] - '0');
    *out = value;
    return true;
}

static int add_leaf(bal_known *self, const char *name, bal_error *err)
{
    const char *end = strrchr(name, '.');
    const char *start = end;
    size_t value = 0;
    bool there;

    if (!end)
        return 0;
    while (start > name && start[-1] != '.')
        start--;
    return bal_map_add(&self->leaves, start, (size_t)(end - start), &value,
                       &there, err);
}

int bal_known_open(bal_known *out, bal_model *base, bal_error *err)
{
    BAL_LOCAL(bal_known) self = { 0 };
    int rc = bal_fit_open(&self.fit, base, err);

    for (size_t i = 0; i < bal_model_count(base) && !rc; i++) {
        const bal_tensor *entry = bal_model_at(base, i);
        uint64_t layer;

        if (entry->part != BAL_PART_TENSOR)
            continue;
        if (bal_known_layer(&layer, entry->name))
            self.layers = bal_max(self.layers, layer + 1);
        rc = add_leaf(&self, entry->name, err);
    }
    if (rc)
        return rc;
    *out = self;
    self = (bal_known){ 0 };
    return 0;
}

void bal_known_done(bal_known *self)
{
    if (self->fit.base)
        bal_fit_done(&self->fit);
    bal_map_done(&self->leaves);
    *self = (bal_known){ 0 };
}

bool bal_known_leaf(const bal_known *self, const char *leaf)
{
    if (self->fit.tied && !strcmp(leaf, "lm_head"))
        return true;
    return bal_map_find(&self->leaves, leaf, strlen(leaf)) != BAL_NONE;
}

uint64_t bal_known_number(const bal_known *self, const char *key)
{
    const json_t *text = json_object_get(self->fit.config, "text_config");
    const json_t *value = json_object_get(text, key);

    if (!value)
        value = json_object_get(self->fit.config, key);
    json_int_t number = json_integer_value(value);
    return number > 0 ? (uint64_t)number : 0;
}

static void measure(const bal_known *self, bal_known_module *out,
                    const char *module, const bal_tensor *weight)
{
    bool wide = bal_tensor_float(weight) || weight->dtype == BAL_F8_E4M3 ||
                weight->dtype == BAL_F8_E5M2;
    bool flip =
        bal_is_embedding(module) ||
        (self->fit.transposed && listed(bal_loose_leaf(module), turned,
                                        sizeof(turned) / sizeof(*turned)));

    out->there = true;
    out->matrix = weight->rank == 2 || !wide;
    if (!wide || weight->rank != 2)
        return;
    out->in = weight->shape[flip ? 0 : 1];
    out->out = weight->shape[flip ? 1 : 0];
}

static int find_packed(const bal_known *self, bal_known_module *out,
                       const char *module, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(packed) / sizeof(*packed) && !rc; i++) {
        size_t entry = BAL_NONE;

        rc = bal_fit_find(&self->fit, &entry, module, packed[i], err);
        out->there |= entry != BAL_NONE;
    }
    out->matrix = out->there;
    return rc;
}

int bal_known_find(const bal_known *self, bal_known_module *out,
                   const char *module, bal_error *err)
{
    size_t entry = BAL_NONE;
    int rc = bal_fit_find(&self->fit, &entry, module, ".weight", err);

    *out = (bal_known_module){ 0 };
    if (rc)
        return rc;
    if (entry == BAL_NONE && self->fit.tied && !strcmp(module, "lm_head")) {
        entry = bal_fit_embedding(&self->fit, "lm_head.weight");
        out->tied = entry != BAL_NONE;
    }
    if (entry == BAL_NONE)
        return find_packed(self, out, module, err);
    measure(self, out, module, bal_model_at(self->fit.base, entry));
    return 0;
}

int bal_known_vocabulary(const bal_known *self, uint64_t *out, bal_error *err)
{
    bal_known_module module;

    *out = bal_known_number(self, "vocab_size");
    if (*out)
        return 0;
    int rc = bal_known_find(self, &module, "model.embed_tokens", err);
    *out = module.in;
    return rc;
}
