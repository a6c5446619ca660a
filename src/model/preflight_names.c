/* Rules about what tensors are called. */
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "model/adapter_names.h"
#include "model/preflight.h"

enum { AT_ONCE = 256 * 1024 };

/* Each tensor of that kind. */
static int tell_kind(bal_flight *self, bal_loose_kind kind, const char *what,
                     bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *tensor = &self->parts.tensors[i];

        if (tensor->kind == kind)
            rc = bal_flight_tell(self, bal_flight_name(self, tensor->entry),
                                 err, "%s", what);
    }
    return rc;
}

int bal_rule_no_factors(bal_flight *self, bal_error *err)
{
    if (self->parts.module_count)
        return 0;
    return bal_flight_tell(self, "", err, "it holds no lora_A and lora_B");
}

static const char *unusual(unsigned prefixes)
{
    if (prefixes & BAL_PREFIX_TWICE)
        return "it begins with " BAL_PEFT_PREFIX " twice";
    if (prefixes & BAL_PREFIX_COMPILED)
        return "it has the prefix of a wrapper, _orig_mod. or module.";
    return "it does not begin with " BAL_PEFT_PREFIX;
}

int bal_rule_prefix(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *tensor = &self->parts.tensors[i];

        if (tensor->prefixes)
            rc = bal_flight_tell(self, bal_flight_name(self, tensor->entry),
                                 err, "%s", unusual(tensor->prefixes));
    }
    return rc;
}

/* ---- the adapter's own name inside -------------------------------------- */

static int tell_inside(bal_flight *self, bool by_default, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *tensor = &self->parts.tensors[i];
        bool usual = !strcmp(tensor->inside, "default");

        if (tensor->inside[0] && usual == by_default)
            rc = bal_flight_tell(
                self, bal_flight_name(self, tensor->entry), err,
                "the name holds '%.64s', which is not saved", tensor->inside);
    }
    return rc;
}

int bal_rule_default_inside(bal_flight *self, bal_error *err)
{
    return tell_inside(self, true, err);
}

int bal_rule_name_inside(bal_flight *self, bal_error *err)
{
    return tell_inside(self, false, err);
}

/* Names of modules that are computed together are made of each other's. */
int bal_rule_name_mixed(bal_flight *self, bal_error *err)
{
    size_t plain = 0;
    size_t named = 0;

    for (size_t i = 0; i < self->parts.count; i++) {
        const bal_loose_tensor *tensor = &self->parts.tensors[i];

        plain += tensor->kind == BAL_LOOSE_FACTOR && !tensor->inside[0];
        named += tensor->inside[0] != '\0';
    }
    if (!plain || !named)
        return 0;
    return bal_flight_tell(self, "", err,
                           "%zu tensors have the adapter's name inside, others "
                           "have not",
                           named);
}

/* ---- kinds -------------------------------------------------------------- */

int bal_rule_strange(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_STRANGE, "no name that LoRA has", err);
}

int bal_rule_whole(bal_flight *self, bal_error *err)
{
    bool saved = !bal_peft_off(bal_flight_key(self, "modules_to_save"));
    bool peft = bal_engine_id_of(self->engine) == BAL_ENGINE_PEFT;

    /* PEFT loads those that the config promises. */
    if (peft && saved)
        return 0;
    return tell_kind(self, BAL_LOOSE_WHOLE, "it is no factor of LoRA", err);
}

int bal_rule_copy(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_COPY, "a copy of the base's tensor", err);
}

int bal_rule_twice(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_TWICE,
                     "its module has that factor by another name", err);
}

int bal_rule_dora_tensor(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_MAGNITUDE, "it is DoRA's", err);
}

int bal_rule_bias_tensor(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_BIAS, "it is a bias of lora_B", err);
}

int bal_rule_rows_tensor(bal_flight *self, bal_error *err)
{
    return tell_kind(self, BAL_LOOSE_ROWS, "these are rows of tokens", err);
}

int bal_rule_embedding_names(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const bal_loose_module *module = &self->parts.modules[i];

        if (bal_is_embedding(module->name) != module->embedding)
            rc = bal_flight_tell(
                self, module->name, err, "factors are named as %s",
                module->embedding ? "an embedding's" : "a linear module's");
    }
    return rc;
}

/* ---- copies of the base's ----------------------------------------------- */

/* Their bytes are the base's. */
static int is_same(bool *same, bal_flight *self, size_t entry, size_t base,
                   bal_error *err)
{
    bal_model *of = self->base.fit.base;
    const bal_tensor *left = bal_model_at(self->adapter, entry);
    const bal_tensor *right = bal_model_at(of, base);
    BAL_LOCAL(bal_buf) room = { 0 };
    int rc = bal_buf_reserve(&room, 2 * (size_t)AT_ONCE, err);

    *same = left->dtype == right->dtype && bal_tensor_same_shape(left, right);
    for (uint64_t at = 0; at < left->size && *same && !rc; at += AT_ONCE) {
        size_t len = (size_t)bal_min(left->size - at, AT_ONCE);

        rc = bal_model_read(self->adapter, entry, at, room.data, len, err);
        if (!rc)
            rc = bal_model_read(of, base, at, room.data + AT_ONCE, len, err);
        *same = !rc && !memcmp(room.data, room.data + AT_ONCE, len);
    }
    return rc;
}

/* The base's entry that a copy is of: the name without ".base_layer". */
static int copied(bal_flight *self, size_t *base, const char *bare,
                  bal_error *err)
{
    static const char mark[] = ".base_layer.";
    const char *at = strstr(bare, mark);
    BAL_LOCAL(bal_buf) module = { 0 };
    int rc = bal_buf_append(&module, bare, (size_t)(at - bare), err);
    if (rc)
        return rc;

    rc = bal_fit_find(&self->base.fit, base, bal_buf_string(&module), ".weight",
                      err);
    if (rc || *base != BAL_NONE)
        return rc;
    *base = bal_fit_embedding(&self->base.fit, "lm_head.weight");
    return 0;
}

int bal_rule_copy_differs(bal_flight *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; self->based && i < self->parts.count && !rc; i++) {
        const bal_loose_tensor *tensor = &self->parts.tensors[i];
        size_t base = BAL_NONE;
        bool same = false;

        if (tensor->kind != BAL_LOOSE_COPY)
            continue;
        rc = copied(self, &base, tensor->bare, err);
        if (!rc && base != BAL_NONE)
            rc = is_same(&same, self, tensor->entry, base, err);
        if (!rc && !same)
            rc = bal_flight_tell(self, bal_flight_name(self, tensor->entry),
                                 err, "it differs from the base's tensor");
    }
    return rc;
}
