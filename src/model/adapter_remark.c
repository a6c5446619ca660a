/* What is looked for before an adapter is folded and does not stop it from
 * being read: numbers that are none, and what could have been meant in another
 * way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "model/adapter.h"
#include "model/elements.h"
#include "model/pattern.h"

enum { PIECE = 64 * 1024 };

/* Keys of LoraConfig, PEFT 0.21. What others say is not known. */
static const char *const known[] = {
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "init_lora_weights",
    "kasa_config",
    "layer_replication",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_bias",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "modules_to_save",
    "monteclora_config",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "target_parameters",
    "task_type",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "use_rslora",
    "velora_config",
};

bool bal_peft_off(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

bool bal_peft_named(const char *module, const char *name)
{
    size_t len = strlen(module);
    size_t tail = strlen(name);

    if (tail > len || strcmp(module + len - tail, name))
        return false;
    return tail == len || module[len - tail - 1] == '.';
}

/* ---- numbers that are none ---------------------------------------------- */

static int tell(const bal_tensor *tensor, uint64_t at, double value,
                bal_error *err)
{
    const char *what = isnan(value) ? "NaN" : "infinity";
    uint64_t cols = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;

    if (tensor->rank != 2)
        return bal_fail(err, BAL_ECORRUPT,
                        "tensor '%s' holds %s at element %llu", tensor->name,
                        what, (unsigned long long)at);
    return bal_fail(err, BAL_ECORRUPT,
                    "tensor '%s' holds %s at row %llu, column %llu",
                    tensor->name, what, (unsigned long long)(at / cols),
                    (unsigned long long)(at % cols));
}

static int check_tensor(bal_model *model, size_t i, double *room,
                        bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(model, i);
    uint64_t count = bal_elements_of(tensor);

    for (uint64_t at = 0; at < count; at += PIECE) {
        size_t n = (size_t)bal_min(PIECE, count - at);
        bool fine = true;
        int rc = bal_elements_read(room, model, i, at, n, err);
        if (rc)
            return rc;
        for (size_t k = 0; k < n; k++)
            fine = fine && isfinite(room[k]);
        for (size_t k = 0; k < n && !fine; k++) {
            if (!isfinite(room[k]))
                return tell(tensor, at + k, room[k], err);
        }
    }
    return 0;
}

int bal_adapter_finite(const bal_adapter *self, bal_model *model,
                       bal_error *err)
{
    (void)self;
    double *room = malloc(PIECE * sizeof(*room));
    int rc = room ? 0 : bal_fail_memory(err, "reading an adapter");

    for (size_t i = 0; i < bal_model_count(model) && !rc; i++) {
        if (bal_model_at(model, i)->part == BAL_PART_TENSOR)
            rc = check_tensor(model, i, room, err);
    }
    free(room);
    return rc;
}

/* ---- what could have been meant otherwise ------------------------------- */

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!strcmp(key, known[i]))
            return true;
    }
    return false;
}

static void remark_keys(json_t *config)
{
    const char *key;
    json_t *value;

    json_object_foreach(config, key, value)
    {
        if (!is_known(key))
            bal_warn("peft",
                     "unknown-key=%s why=\"of a newer PEFT, or another "
                     "program: ignored\"",
                     key);
    }
    if (!json_object_get(config, "lora_alpha"))
        bal_warn("peft", "lora_alpha=missing taken=8 why=\"PEFT's default\"");
}

/* Of a list: one of its names; of a text: Python's re.fullmatch. */
static int is_target(const json_t *targets, const bal_pattern *pattern,
                     const char *module, bool *yes, bal_error *err)
{
    *yes = false;
    if (pattern)
        return bal_pattern_match(pattern, module, yes, err);
    for (size_t i = 0; i < json_array_size(targets) && !*yes; i++) {
        const char *name = json_string_value(json_array_get(targets, i));
        *yes = name && bal_peft_named(module, name);
    }
    return 0;
}

static int remark_modules(const bal_adapter *self, const json_t *targets,
                          const bal_pattern *pattern, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_adapted *row = &self->rows[i];
        bool yes;

        if (row->stacked || row->family == BAL_FAMILY_TOKENS)
            continue;
        int rc = is_target(targets, pattern, row->module, &yes, err);
        if (rc)
            return bal_within(err, rc, "%s: target_modules", BAL_PEFT_CONFIG);
        if (!yes)
            bal_warn("peft",
                     "untargeted=%s why=\"target_modules does not name "
                     "it; the tensors are what counts\"",
                     row->module);
    }
    return 0;
}

static int remark_targets(const bal_adapter *self, bal_error *err)
{
    const json_t *targets = json_object_get(self->config, "target_modules");
    const char *text = json_string_value(targets);
    bool open = bal_peft_off(targets) || (text && !strcmp(text, "all-linear"));
    BAL_LOCAL(bal_buf) regex = { 0 };
    BAL_OWN(bal_pattern) pattern = NULL;

    if (open &&
        !bal_peft_off(json_object_get(self->config, "target_parameters")))
        return 0;
    if (open) {
        bal_warn("peft",
                 "target_modules=%s why=\"it does not say which "
                 "modules; the tensors are what counts\"",
                 text ? text : "null");
        return 0;
    }
    if (text) {
        int rc = bal_buf_format(&regex, err, "(?:%s)\\z", text);
        if (!rc)
            rc = bal_pattern_new(&pattern, bal_buf_string(&regex), err);
        if (rc)
            return bal_within(err, rc, "%s: target_modules", BAL_PEFT_CONFIG);
    }
    return remark_modules(self, targets, pattern, err);
}

/* A tensor that is whole and that nothing in the config accounts for. */
static void remark_wholes(const bal_adapter *self)
{
    const char *bias = json_string_value(json_object_get(self->config, "bias"));
    const json_t *names = json_object_get(self->config, "modules_to_save");
    bool biases = bias && strcmp(bias, "none");

    for (size_t i = 0; i < self->whole_count; i++) {
        const bal_lora_whole *whole = &self->wholes[i];
        const char *dot = strrchr(whole->name, '.');
        bool said = whole->copy || whole->resized ||
                    (biases && dot && !strcmp(dot, ".bias"));

        for (size_t k = 0; k < json_array_size(names) && !said; k++) {
            const char *name = json_string_value(json_array_get(names, k));
            const char *at = name ? strstr(whole->name, name) : NULL;
            said = at && (at == whole->name || at[-1] == '.');
        }
        if (!said)
            bal_warn("peft",
                     "undeclared=%s why=\"a whole tensor that "
                     "modules_to_save does not name: it replaces the "
                     "base's\"",
                     whole->name);
    }
}

int bal_adapter_remark(const bal_adapter *self, bal_error *err)
{
    const char *type =
        json_string_value(json_object_get(self->config, "peft_type"));

    if (strcmp(type, "LORA"))
        return 0;
    remark_keys(self->config);
    remark_wholes(self);
    return remark_targets(self, err);
}
