/* The rows of an adapter of which W + s B A is all there is to say. */
#include "model/peft.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/peft_config.h"

/* Off in plain LoRA: absent, null, false or empty. */
static const char *const more_than_lora[] = {
    "use_dora",
    "lora_bias",
    "target_parameters",
    "trainable_token_indices",
    "ensure_weight_tying",
};

static int check_keys(const json_t *config, bal_error *err)
{
    const char *type = json_string_value(json_object_get(config, "peft_type"));

    if (strcmp(type, "LORA"))
        return bal_fail(err, BAL_EUNSUPPORTED, "%s: peft_type '%s' is not LORA",
                        BAL_PEFT_CONFIG, type);
    for (size_t i = 0; i < sizeof(more_than_lora) / sizeof(*more_than_lora);
         i++) {
        if (!bal_peft_off(json_object_get(config, more_than_lora[i])))
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "%s: '%s' is more than plain LoRA", BAL_PEFT_CONFIG,
                            more_than_lora[i]);
    }
    return 0;
}

/* First, so that who has such an adapter is told why it is not plain, and not
 * what a plain one lacks. */
static int check_config(bal_model *adapter, bal_error *err)
{
    BAL_OWN(json_t) config = NULL;
    int rc = bal_peft_config(&config, adapter, err);

    return rc ? rc : check_keys(config, err);
}

static int check_row(const bal_adapted *row, bal_model *adapter, bal_error *err)
{
    size_t more = row->slots[BAL_SLOT_BIAS];

    if (more == BAL_NONE)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' is more than plain LoRA",
                    bal_model_at(adapter, more)->name);
}

static int check(const bal_adapter *self, bal_model *adapter, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->count && !rc; i++)
        rc = check_row(&self->rows[i], adapter, err);
    /* A copy of the base's own is beside an update. */
    if (!rc && !self->count && self->whole_count && self->wholes[0].copy)
        rc = bal_fail(err, BAL_EUNSUPPORTED,
                      "tensor '%s' is more than plain LoRA",
                      bal_model_at(adapter, self->wholes[0].entry)->name);
    return rc;
}

/* What is kept of it goes over to out. */
static int take(bal_loras *out, bal_adapter *self, bal_error *err)
{
    bal_lora *rows =
        bal_arena_alloc(&self->arena, (self->count + 1) * sizeof(*rows));

    if (!rows)
        return bal_fail_memory(err, "an adapter's modules");
    for (size_t i = 0; i < self->count; i++) {
        const bal_adapted *from = &self->rows[i];

        rows[i] = (bal_lora){
            .module = from->module,
            .a = from->slots[BAL_SLOT_A],
            .b = from->slots[BAL_SLOT_B],
            .rank = from->rank,
            .in = from->in,
            .out = from->out,
            .scale = from->scale,
            .embedding = from->family == BAL_FAMILY_EMBEDDING,
        };
    }
    *out = (bal_loras){
        .rows = rows,
        .count = self->count,
        .wholes = self->wholes,
        .whole_count = self->whole_count,
        .arena = self->arena,
        .config = self->config,
    };
    *self = (bal_adapter){ 0 };
    return 0;
}

int bal_loras_read(bal_loras *out, bal_model *adapter, bal_error *err)
{
    BAL_LOCAL(bal_adapter) self = { 0 };
    int rc = check_config(adapter, err);
    if (!rc)
        rc = bal_adapter_read(&self, adapter, err);
    if (!rc)
        rc = check(&self, adapter, err);
    if (rc)
        return rc;
    return take(out, &self, err);
}

void bal_loras_done(bal_loras *self)
{
    json_decref(self->config);
    bal_arena_done(&self->arena);
    *self = (bal_loras){ 0 };
}

static int by_module(const void *a, const void *b)
{
    const bal_lora *left = a;
    const bal_lora *right = b;

    return strcmp(left->module, right->module);
}

const bal_lora *bal_loras_find(const bal_loras *self, const char *module)
{
    bal_lora key = { .module = module };

    if (!self->count)
        return NULL;
    return bsearch(&key, self->rows, self->count, sizeof(key), by_module);
}
