/* Rules about adapter_config.json alone. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "model/preflight.h"

static const char *const needed[] = { "r", "lora_alpha", "target_modules" };

/* Starts that leave the base's weights as they were, as engines see it. */
static const char *const plain_starts[] = {
    "gaussian", "eva", "orthogonal", "mica", "lora_ga",
};

int bal_rule_config_missing(bal_flight *self, bal_error *err)
{
    if (self->parts.config || self->parts.trouble.text[0])
        return 0;
    return bal_flight_tell(self, BAL_PEFT_CONFIG, err, "there is no %s",
                           BAL_PEFT_CONFIG);
}

int bal_rule_config_broken(bal_flight *self, bal_error *err)
{
    if (!self->parts.trouble.text[0])
        return 0;
    return bal_flight_tell(self, BAL_PEFT_CONFIG, err, "%s",
                           self->parts.trouble.text);
}

int bal_rule_key_missing(bal_flight *self, bal_error *err)
{
    int rc = 0;

    if (!self->parts.config)
        return 0;
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed) && !rc; i++) {
        if (!bal_flight_key(self, needed[i]))
            rc = bal_flight_tell(self, needed[i], err, "%s has no %s",
                                 BAL_PEFT_CONFIG, needed[i]);
    }
    return rc;
}

/* A rank is a whole number above 0. */
static bool is_rank(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) > 0;
}

static bool any_number(const json_t *value)
{
    return json_is_number(value) && isfinite(json_number_value(value));
}

static int check_values(bal_flight *self, const char *key,
                        bool (*fits)(const json_t *), bal_error *err)
{
    const json_t *values = bal_flight_key(self, key);
    const char *name;
    json_t *value;
    int rc = 0;

    json_object_foreach((json_t *)values, name, value)
    {
        if (!rc && !fits(value))
            rc = bal_flight_tell(
                self, key, err, "%s of '%.200s' is no %s", key, name,
                fits == is_rank ? "whole number above 0" : "number");
    }
    return rc;
}

int bal_rule_key_value(bal_flight *self, bal_error *err)
{
    const json_t *rank = bal_flight_key(self, "r");
    const json_t *alpha = bal_flight_key(self, "lora_alpha");
    int rc = 0;

    if (rank && !is_rank(rank))
        rc = bal_flight_tell(self, "r", err, "r is no whole number above 0");
    if (!rc && alpha && !any_number(alpha))
        rc =
            bal_flight_tell(self, "lora_alpha", err, "lora_alpha is no number");
    if (!rc)
        rc = check_values(self, "rank_pattern", is_rank, err);
    return rc ? rc : check_values(self, "alpha_pattern", any_number, err);
}

/* ---- the type ----------------------------------------------------------- */

/* NULL: not told. */
static const char *type_of(const bal_flight *self)
{
    return json_string_value(bal_flight_key(self, "peft_type"));
}

int bal_rule_type(bal_flight *self, bal_error *err)
{
    const char *type = type_of(self);

    if (!self->parts.config || (type && !strcasecmp(type, "LORA")))
        return 0;
    return bal_flight_tell(self, "peft_type", err, "peft_type is '%.64s'",
                           type ? type : "");
}

int bal_rule_type_case(bal_flight *self, bal_error *err)
{
    const char *type = type_of(self);

    if (!type || strcasecmp(type, "LORA") || !strcmp(type, "LORA"))
        return 0;
    return bal_flight_tell(self, "peft_type", err,
                           "peft_type is %.64s, which PEFT does not know",
                           type);
}

/* ---- keys that are on --------------------------------------------------- */

int bal_rule_on(bal_flight *self, bal_error *err)
{
    const char *key = self->rule->key;

    if (bal_peft_off(bal_flight_key(self, key)))
        return 0;
    return bal_flight_tell(self, key, err, "%s is set", key);
}

int bal_rule_saved(bal_flight *self, bal_error *err)
{
    const json_t *names = bal_flight_key(self, "modules_to_save");
    int rc = 0;

    if (!json_is_array(names))
        return bal_rule_on(self, err);
    for (size_t i = 0; i < json_array_size(names) && !rc; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        rc =
            bal_flight_tell(self, "modules_to_save", err,
                            "module '%.200s' is saved whole", name ? name : "");
    }
    return rc;
}

int bal_rule_bias(bal_flight *self, bal_error *err)
{
    const json_t *bias = bal_flight_key(self, "bias");
    const char *text = json_string_value(bias);

    if (!bias || (text && !strcmp(text, "none")))
        return 0;
    return bal_flight_tell(self, "bias", err, "bias is '%.64s', not 'none'",
                           text ? text : "");
}

static bool is_plain(const char *start)
{
    for (size_t i = 0; i < sizeof(plain_starts) / sizeof(*plain_starts); i++) {
        if (!strcasecmp(start, plain_starts[i]))
            return true;
    }
    return false;
}

int bal_rule_start(bal_flight *self, bal_error *err)
{
    const char *start =
        json_string_value(bal_flight_key(self, "init_lora_weights"));

    if (!start || is_plain(start))
        return 0;
    return bal_flight_tell(self, "init_lora_weights", err,
                           "init_lora_weights is '%.64s', which changes the "
                           "base's weights",
                           start);
}

int bal_rule_lora_ga(bal_flight *self, bal_error *err)
{
    const char *start =
        json_string_value(bal_flight_key(self, "init_lora_weights"));

    if (!start || strcasecmp(start, "lora_ga"))
        return 0;
    return bal_flight_tell(self, "init_lora_weights", err,
                           "init_lora_weights is '%.64s', which ballast does "
                           "not convert",
                           start);
}

/* ---- ranks -------------------------------------------------------------- */

static uint64_t rank_of(const json_t *value)
{
    return is_rank(value) ? (uint64_t)json_integer_value(value) : 0;
}

int bal_rule_rank_limit(bal_flight *self, bal_error *err)
{
    uint64_t most = rank_of(bal_flight_key(self, "r"));
    const char *where = "r";
    const char *name;
    json_t *value;

    if (!self->max_rank)
        return 0;
    if (self->engine->all_ranks) {
        json_object_foreach((json_t *)bal_flight_key(self, "rank_pattern"),
                            name, value) most = bal_max(most, rank_of(value));
    }
    for (size_t i = 0; self->engine->all_ranks && i < self->parts.module_count;
         i++) {
        const bal_loose_module *module = &self->parts.modules[i];
        bal_factor_dims dims = bal_flight_dims(self, module);
        uint64_t rank = bal_max(dims.rank_a, dims.rank_b);

        where = rank > most ? module->name : where;
        most = bal_max(most, rank);
    }
    if (most <= self->max_rank)
        return 0;
    return bal_flight_tell(self, where, err, "rank %llu is over %llu",
                           (unsigned long long)most,
                           (unsigned long long)self->max_rank);
}

int bal_rule_scale_unknown(bal_flight *self, bal_error *err)
{
    if (!self->unscaled.text[0])
        return 0;
    return bal_flight_tell(self, BAL_PEFT_CONFIG, err, "%s",
                           self->unscaled.text);
}
