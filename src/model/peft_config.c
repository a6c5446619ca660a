/* The config is judged by what it says of the maths. Keys that only describe,
 * or concern training, are not looked at; keys that change what the tensors
 * mean are refused by name as long as they are not implemented, because W + sBA
 * would be a wrong model that loads. */
#include "model/peft_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/pattern.h"

enum { CONFIG_MAX = 16 << 20, RULES_MAX = 65536 };

/* Off in plain LoRA: absent, null, false or empty. */
static const char *const more_than_lora[] = {
    "use_dora",
    "lora_bias",
    "target_parameters",
    "trainable_token_indices",
    "layer_replication",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "use_bdlora",
    "use_qalora",
    "ensure_weight_tying",
};

/* Ways to start A and B that leave the base's weight as it was. Others (pissa,
 * olora, corda, lora_ga, loftq) mean, when they are still in a saved config,
 * that the update belongs to another weight than the base's. */
static const char *const plain_starts[] = {
    "gaussian",
    "orthogonal",
    "eva",
    "mica",
};

struct bal_peft_rule {
    const char *key;
    double value;
    bal_pattern *pattern;
};

bool bal_peft_off(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

static int check_start(const json_t *config, bal_error *err)
{
    const char *start =
        json_string_value(json_object_get(config, "init_lora_weights"));

    if (!start)
        return 0;
    for (size_t i = 0; i < sizeof(plain_starts) / sizeof(*plain_starts); i++) {
        if (!strcmp(start, plain_starts[i]))
            return 0;
    }
    return bal_hint(
        err,
        bal_fail(err, BAL_EUNSUPPORTED,
                 "%s: init_lora_weights '%s' changes the base's weights",
                 BAL_PEFT_CONFIG, start),
        "save the adapter with path_initial_model_for_weight_conversion");
}

static int check_config(const json_t *config, bal_error *err)
{
    if (!json_is_object(config))
        return bal_fail(err, BAL_ECORRUPT, "%s is not a JSON object",
                        BAL_PEFT_CONFIG);
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    if (!type)
        return bal_fail(err, BAL_ECORRUPT, "%s has no peft_type",
                        BAL_PEFT_CONFIG);
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
    return check_start(config, err);
}

int bal_peft_config(json_t **out, bal_model *adapter, bal_error *err)
{
    size_t i = bal_model_find(adapter, BAL_PART_FILE, BAL_PEFT_CONFIG);
    BAL_LOCAL(bal_buf) text = { .ceiling = CONFIG_MAX };

    if (i == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT, "an adapter without %s",
                        BAL_PEFT_CONFIG);
    uint64_t size = bal_model_at(adapter, i)->size;
    if (size > CONFIG_MAX)
        return bal_fail(err, BAL_ECORRUPT, "%s is longer than 16 MiB",
                        BAL_PEFT_CONFIG);
    int rc = bal_buf_reserve(&text, size, err);
    if (rc)
        return rc;
    rc = bal_model_read(adapter, i, 0, text.data, size, err);
    if (rc)
        return rc;
    BAL_OWN(json_t) config = NULL;
    rc = bal_json_parse(&config, text.data, size, BAL_PEFT_CONFIG, err);
    if (rc)
        return rc;
    rc = check_config(config, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(config);
    return 0;
}

/* ---- rank and alpha by module ------------------------------------------- */

/* PEFT matches keys with re.match of this around them. */
static int add_rule(struct bal_peft_number *self, const char *key,
                    const json_t *value, bal_error *err)
{
    struct bal_peft_rule *rule = &self->rules[self->count];
    BAL_LOCAL(bal_buf) regex = { 0 };

    if (!json_is_number(value))
        return bal_fail(err, BAL_ECORRUPT, "%s: %s of '%s' is not a number",
                        BAL_PEFT_CONFIG, self->key, key);
    rule->key = key;
    rule->value = json_number_value(value);
    int rc = bal_buf_format(&regex, err, "(.*\\.)?(%s)$", key);
    if (rc)
        return rc;
    rc = bal_pattern_new(&rule->pattern, bal_buf_string(&regex), err);
    if (rc)
        return bal_within(err, rc, "%s: %s", BAL_PEFT_CONFIG, self->key);
    self->count++;
    return 0;
}

/* jansson iterates in the order of the file. */
static int add_rules(struct bal_peft_number *self, const json_t *config,
                     bal_error *err)
{
    json_t *patterns = json_object_get(config, self->key);
    const char *key;
    json_t *value;

    if (bal_peft_off(patterns))
        return 0;
    if (!json_is_object(patterns))
        return bal_fail(err, BAL_ECORRUPT, "%s: %s is not an object",
                        BAL_PEFT_CONFIG, self->key);
    size_t count = json_object_size(patterns);
    if (count > RULES_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED, "%s: %zu keys in %s",
                        BAL_PEFT_CONFIG, count, self->key);
    self->rules = calloc(count, sizeof(*self->rules));
    if (!self->rules)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    json_object_foreach(patterns, key, value)
    {
        int rc = add_rule(self, key, value, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* PEFT's default of both r and lora_alpha is 8. */
static int number_of(double *out, const json_t *config, const char *key,
                     bal_error *err)
{
    const json_t *value = json_object_get(config, key);

    *out = 8;
    if (!value)
        return 0;
    if (!json_is_number(value))
        return bal_fail(err, BAL_ECORRUPT, "%s: %s is not a number",
                        BAL_PEFT_CONFIG, key);
    *out = json_number_value(value);
    return 0;
}

int bal_peft_scales_init(bal_peft_scales *self, const json_t *config,
                         bal_error *err)
{
    *self = (bal_peft_scales){ .rank.key = "rank_pattern",
                               .alpha.key = "alpha_pattern" };
    self->rslora = !bal_peft_off(json_object_get(config, "use_rslora"));
    int rc = number_of(&self->rank.fallback, config, "r", err);
    if (rc)
        return rc;
    rc = number_of(&self->alpha.fallback, config, "lora_alpha", err);
    if (rc)
        return rc;
    rc = add_rules(&self->rank, config, err);
    if (rc)
        return rc;
    return add_rules(&self->alpha, config, err);
}

static void number_done(struct bal_peft_number *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_pattern_free(self->rules[i].pattern);
    free(self->rules);
    *self = (struct bal_peft_number){ 0 };
}

void bal_peft_scales_done(bal_peft_scales *self)
{
    number_done(&self->rank);
    number_done(&self->alpha);
}

/* The first match wins. PEFT sorts both objects when it saves, so where two
 * keys match, what was trained may have been the other one. */
static int value_for(double *out, const struct bal_peft_number *self,
                     const char *module, bal_error *err)
{
    const struct bal_peft_rule *found = NULL;

    for (size_t i = 0; i < self->count; i++) {
        const struct bal_peft_rule *rule = &self->rules[i];
        bool yes;
        int rc = bal_pattern_match(rule->pattern, module, &yes, err);
        if (rc)
            return bal_within(err, rc, "%s: %s", BAL_PEFT_CONFIG, self->key);
        if (!yes)
            continue;
        if (found && found->value != rule->value)
            bal_warn("peft", "%s=ambiguous module=%s taken=%s passed=%s",
                     self->key, module, found->key, rule->key);
        if (!found)
            found = rule;
    }
    *out = found ? found->value : self->fallback;
    return 0;
}

int bal_peft_scale(bal_lora *lora, const bal_peft_scales *self, bal_error *err)
{
    double rank = 0;
    double alpha = 0;
    int rc = value_for(&rank, &self->rank, lora->module, err);
    if (rc)
        return rc;
    rc = value_for(&alpha, &self->alpha, lora->module, err);
    if (rc)
        return rc;

    if (rank != (double)lora->rank)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has rank %llu, %s says %g", lora->module,
                        (unsigned long long)lora->rank, BAL_PEFT_CONFIG, rank);
    lora->scale = alpha / (self->rslora ? sqrt(rank) : rank);
    return 0;
}
