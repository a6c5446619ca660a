/* adapter_config.json of a reshaped adapter: what says which modules there are
 * and what their factors mean, and of the old one only what names its base. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/loose.h"
#include "model/lora_shape.h"

/* Keys that go over as they are, where they are there. */
static const char *const kept[] = {
    "base_model_name_or_path",
    "revision",
    "task_type",
    "fan_in_fan_out",
};

static json_t *number(double value)
{
    const double most = 1e15;
    bool whole = !(fabs(value - floor(value)) > 0) && fabs(value) < most;

    return whole ? json_integer((json_int_t)value) : json_real(value);
}

static int by_text(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

/* The last names of modules, each once, sorted. */
static json_t *leaves(const bal_lora_shape *self)
{
    const char **names = malloc((self->count + 1) * sizeof(*names));
    json_t *list = json_array();
    bool failed = !names || !list;

    for (size_t i = 0; i < self->count && !failed; i++)
        names[i] = bal_loose_leaf(self->rows[i].module);
    if (!failed)
        qsort(names, self->count, sizeof(*names), by_text);
    for (size_t i = 0; i < self->count && !failed; i++) {
        if (!i || strcmp(names[i - 1], names[i]) != 0)
            failed = json_array_append_new(list, json_string(names[i])) != 0;
    }
    free(names);
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *made(const bal_lora_shape *self)
{
    return json_pack(
        "{s:s, s:n, s:n, s:I, s:o, s:o, s:{}, s:{}, s:s, s:b, s:b, s:b, s:b, "
        "s:b, s:f, s:n}",
        "peft_type", "LORA", "task_type", "base_model_name_or_path", "r",
        (json_int_t)self->rank, "lora_alpha", number(self->alpha),
        "target_modules", leaves(self), "rank_pattern", "alpha_pattern", "bias",
        "none", "fan_in_fan_out", 0, "use_dora", 0, "use_rslora", 0,
        "init_lora_weights", 1, "inference_mode", 1, "lora_dropout", 0.0,
        "modules_to_save");
}

int bal_lora_shape_config(bal_lora_shape *self, const json_t *config,
                          bal_error *err)
{
    BAL_OWN(json_t) json = made(self);
    bool failed = !json;

    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept) && !failed; i++) {
        json_t *value = json_object_get(config, kept[i]);

        failed = value && json_object_set(json, kept[i], value);
    }
    char *text = failed ? NULL
                        : json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS |
                                               JSON_ENSURE_ASCII);
    if (!text)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    int rc = bal_buf_text(&self->config, text, err);
    free(text);
    return rc;
}
