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

enum { CONFIG_MAX = 16 << 20, RULES_MAX = 4096 };

typedef struct reason {
    const char *name, *why;
} reason;

/* Keys that change what A and B mean, so that W + s B A would be a wrong model
 * that loads. Off: absent, null, false or empty. */
static const reason keys[] = {
    { "layer_replication", "it is for a model of other layers than the base" },
    { "alora_invocation_tokens",
      "it acts after those tokens only, which no weight can" },
    { "arrow_config", "a router chooses among adapters, which no weight can" },
    { "kasa_config", "it goes onto a base whose weights were cut first" },
    { "use_bdlora", "one factor of each pair is stored as diagonal blocks" },
    { "use_qalora", "it goes onto a quantised base" },
};

/* What adapters are folded. */
static const char *const types[] = {
    "LORA", "ADALORA", "LOHA", "LOKR", "IA3",
};

static const char no_weight[] = "it changes no weight of the base";
static const char router[] = "a router chooses among several at run time";
static const char no_formula[] = "ballast has no formula for it yet";

/* And what are not, but come back as they were. */
static const reason other_types[] = {
    { "VERA", "its projections are shared, and need not be in the file" },
    { "PVERA", no_formula },
    { "OFT", no_formula },
    { "BOFT", no_formula },
    { "HRA", no_formula },
    { "ROAD", no_formula },
    { "MISS", no_formula },
    { "BONE", no_formula },
    { "FOURIERFT", no_formula },
    { "WAVEFT", no_formula },
    { "VBLORA", no_formula },
    { "RANDLORA", no_formula },
    { "UNILORA", no_formula },
    { "TINYLORA", no_formula },
    { "HIRA", no_formula },
    { "DELORA", no_formula },
    { "DEFT", no_formula },
    { "GLORA", no_formula },
    { "GRALORA", no_formula },
    { "C3A", no_formula },
    { "PSOFT", no_formula },
    { "PEANUT", no_formula },
    { "FROD", no_formula },
    { "OSF", no_formula },
    { "SHIRA", no_formula },
    { "SUPERTUNING", no_formula },
    { "LN_TUNING", no_formula },
    { "TRAINABLE_TOKENS", no_formula },
    { "BEFT", no_formula },
    { "ADAMSS", no_formula },
    { "LILY", router },
    { "POLY", router },
    { "XLORA", router },
    { "SHADOW", "it is a small model beside the base" },
    { "ADAPTION_PROMPT", no_weight },
    { "PROMPT_TUNING", no_weight },
    { "P_TUNING", no_weight },
    { "PREFIX_TUNING", no_weight },
    { "CPT", no_weight },
    { "CARTRIDGE", no_weight },
    { "MULTITASK_PROMPT_TUNING", no_weight },
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
    bool used;
};

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

/* NULL: not there. */
static const reason *reason_for(const char *type)
{
    for (size_t i = 0; i < sizeof(other_types) / sizeof(*other_types); i++) {
        if (!strcmp(type, other_types[i].name))
            return &other_types[i];
    }
    return NULL;
}

static int check_type(const char *type, bal_error *err)
{
    const reason *other = reason_for(type);

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (!strcmp(type, types[i]))
            return 0;
    }
    if (other)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "%s: an adapter of peft_type '%s' cannot be folded: %s",
                        BAL_PEFT_CONFIG, type, other->why);
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "%s: peft_type '%.64s' is not a type that is known",
                    BAL_PEFT_CONFIG, type);
}

static int check_config(const json_t *config, bal_error *err)
{
    if (!json_is_object(config))
        return bal_fail(err, BAL_ECORRUPT, "%s is not a JSON object",
                        BAL_PEFT_CONFIG);
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    if (!type)
        return bal_fail(err, BAL_ECORRUPT, "%s: peft_type is no text",
                        BAL_PEFT_CONFIG);
    int rc = check_type(type, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (!bal_peft_off(json_object_get(config, keys[i].name)))
            return bal_fail(err, BAL_EUNSUPPORTED, "%s: '%s' is set: %s",
                            BAL_PEFT_CONFIG, keys[i].name, keys[i].why);
    }
    return check_start(config, err);
}

/* Names that other programs give to factors. */
static const reason dialects[] = {
    { ".lora_down.", "kohya's (sd-scripts)" },
    { ".lora.down.", "diffusers'" },
    { ".lora_a", "MLX's" },
};

/* Not PEFT's, for want of a config or of what must be in it. */
static int not_peft(const bal_model *adapter, const char *lacks, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(adapter); i++) {
        const char *name = bal_model_at(adapter, i)->name;

        for (size_t k = 0; k < sizeof(dialects) / sizeof(*dialects); k++) {
            if (strstr(name, dialects[k].name))
                return bal_fail(err, BAL_EUNSUPPORTED,
                                "tensor '%s' has one of %s names: that dialect "
                                "is not PEFT's, and not folded",
                                name, dialects[k].why);
        }
    }
    return bal_fail(err, BAL_ECORRUPT, "%s", lacks);
}

int bal_peft_config(json_t **out, bal_model *adapter, bal_error *err)
{
    size_t i = bal_model_find(adapter, BAL_PART_FILE, BAL_PEFT_CONFIG);
    BAL_LOCAL(bal_buf) text = { .ceiling = CONFIG_MAX };

    if (i == BAL_NONE)
        return not_peft(adapter, "an adapter without " BAL_PEFT_CONFIG, err);
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
    if (json_is_object(config) && !json_object_get(config, "peft_type"))
        return not_peft(adapter, BAL_PEFT_CONFIG " has no peft_type", err);
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

/* In *out PEFT's default, where the key is absent. */
static int number_of(double *out, const json_t *config, const char *key,
                     bal_error *err)
{
    const json_t *value = json_object_get(config, key);

    if (!value)
        return 0;
    if (!json_is_number(value))
        return bal_fail(err, BAL_ECORRUPT, "%s: %s is not a number",
                        BAL_PEFT_CONFIG, key);
    *out = json_number_value(value);
    return 0;
}

/* What a kind of adapter calls its rank and alpha, with PEFT's defaults; such
 * keys mean nothing in others. AdaLoRA is scaled by the rank that it began
 * with, whatever became of it: its rank_pattern says which rows were kept. */
typedef struct scale_keys {
    const char *type; /* NULL: all others */
    const char *rank;
    double rank_default;
    const char *alpha;
    bool patterns;
} scale_keys;

static const scale_keys all_keys[] = {
    { "LOHA", "r", 8, "alpha", true },
    { "LOKR", "r", 8, "alpha", true },
    { "ADALORA", "init_r", 12, "lora_alpha", false },
    { NULL, "r", 8, "lora_alpha", true },
};

static const scale_keys *keys_of(const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    const scale_keys *of = all_keys;

    while (of->type && (!type || strcmp(type, of->type) != 0))
        of++;
    return of;
}

int bal_peft_scales_init(bal_peft_scales *self, const json_t *config,
                         bal_error *err)
{
    const scale_keys *of = keys_of(config);

    *self = (bal_peft_scales){
        .rank = { "rank_pattern", of->rank_default },
        .alpha = { "alpha_pattern", 8 },
    };
    self->rslora = !bal_peft_off(json_object_get(config, "use_rslora"));
    int rc = number_of(&self->rank.fallback, config, of->rank, err);
    if (rc)
        return rc;
    rc = number_of(&self->alpha.fallback, config, of->alpha, err);
    if (rc)
        return rc;
    if (!(self->rank.fallback > 0))
        return bal_fail(err, BAL_ECORRUPT, "%s: %s is %g: it must be positive",
                        BAL_PEFT_CONFIG, of->rank, self->rank.fallback);
    if (!of->patterns)
        return 0;
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
static int value_for(double *out, struct bal_peft_number *self,
                     const char *module, bal_error *err)
{
    const struct bal_peft_rule *found = NULL;
    bool warned = false;

    for (size_t i = 0; i < self->count; i++) {
        struct bal_peft_rule *rule = &self->rules[i];
        bool yes;
        int rc = bal_pattern_match(rule->pattern, module, &yes, err);
        if (rc)
            return bal_within(err, rc, "%s: %s", BAL_PEFT_CONFIG, self->key);
        if (!yes)
            continue;
        rule->used = true;
        if (found && found->value != rule->value && !warned)
            bal_warn("peft", "%s=ambiguous module=%s taken=%s passed=%s",
                     self->key, module, found->key, rule->key);
        warned |= found && found->value != rule->value;
        if (!found)
            found = rule;
    }
    *out = found ? found->value : self->fallback;
    return 0;
}

int bal_peft_rank(double *out, bal_peft_scales *self, const char *module,
                  bal_error *err)
{
    return value_for(out, &self->rank, module, err);
}

int bal_peft_scale(double *out, bal_peft_scales *self, const char *module,
                   uint64_t rank, bal_error *err)
{
    double says = 0;
    double alpha = 0;
    int rc = value_for(&says, &self->rank, module, err);
    if (rc)
        return rc;
    rc = value_for(&alpha, &self->alpha, module, err);
    if (rc)
        return rc;

    if (rank && says != (double)rank)
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s' has rank %llu, %s says %g", module,
                        (unsigned long long)rank, BAL_PEFT_CONFIG, says);
    if (!(says > 0))
        return bal_fail(err, BAL_ECORRUPT,
                        "%s: module '%s' is of rank %g: it must be positive",
                        BAL_PEFT_CONFIG, module, says);
    *out = alpha / (self->rslora ? sqrt(says) : says);
    return 0;
}

static void remark(const struct bal_peft_number *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (!self->rules[i].used)
            bal_warn("peft", "%s=unmatched key=%s why=\"no such module\"",
                     self->key, self->rules[i].key);
    }
}

void bal_peft_scales_remark(const bal_peft_scales *self)
{
    remark(&self->rank);
    remark(&self->alpha);
}
