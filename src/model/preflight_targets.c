/* Rules about target_modules: which tensors PEFT loads, and what SGLang makes
 * of the names. Matching is PEFT's (peft.tuners.tuners_utils). */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/pattern.h"
#include "model/preflight.h"

/* Comparisons of a name with a name that a run takes on. */
enum { COMPARED_MAX = 1 << 26 };

/* A list that is compared with all modules is of a length that ends. */
static int check_length(const bal_flight *self, const char *key, bal_error *err)
{
    size_t names = json_array_size(bal_flight_key(self, key));

    if (!names || self->parts.module_count <= COMPARED_MAX / names)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED, "%s: %zu names in %s",
                    BAL_PEFT_CONFIG, names, key);
}

static bool is_all(const char *text)
{
    return !strcmp(text, "all") || !strcmp(text, "all-linear");
}

int bal_rule_target_pattern(bal_flight *self, bal_error *err)
{
    const json_t *targets = bal_flight_key(self, "target_modules");
    const char *text = json_string_value(targets);

    if (!targets || json_is_array(targets) || (text && is_all(text)))
        return 0;
    return bal_flight_tell(self, "target_modules", err, "target_modules is %s",
                           text ? "a pattern" : "no list");
}

static bool knows(const bal_engine *engine, const char *leaf)
{
    for (const char *const *at = engine->modules; at && *at; at++) {
        if (!strcmp(*at, leaf))
            return true;
    }
    return !engine->modules;
}

int bal_rule_target_names(bal_flight *self, bal_error *err)
{
    const json_t *targets = bal_flight_key(self, "target_modules");
    int rc = 0;

    for (size_t i = 0; i < json_array_size(targets) && !rc; i++) {
        const char *name = json_string_value(json_array_get(targets, i));

        if (!name || !knows(self->engine, bal_loose_leaf(name)))
            rc = bal_flight_tell(self, "target_modules", err,
                                 "target_modules names '%.200s', which is not "
                                 "served",
                                 name ? name : "");
    }
    return rc;
}

int bal_rule_unlisted(bal_flight *self, bal_error *err)
{
    const json_t *targets = bal_flight_key(self, "target_modules");
    int rc = check_length(self, "target_modules", err);

    if (!json_is_array(targets) || !self->engine->listed)
        return rc;
    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const char *module = self->parts.modules[i].name;
        const char *leaf = bal_loose_leaf(module);
        bool found = strcmp(leaf, "lm_head") && strcmp(leaf, "embed_tokens");

        for (size_t k = 0; k < json_array_size(targets) && !found; k++) {
            const char *name = json_string_value(json_array_get(targets, k));
            found |= name && !strcmp(name, leaf);
        }
        if (!found)
            rc = bal_flight_tell(self, module, err,
                                 "target_modules does not name '%.200s'", leaf);
    }
    return rc;
}

/* ---- PEFT's matching ---------------------------------------------------- */

/* The whole of the module's name. */
static int full_match(bool *yes, const char *regex, const char *module,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_pattern) pattern = NULL;
    int rc = bal_buf_format(&text, err, "(?:%s)\\Z", regex);
    if (!rc)
        rc = bal_pattern_new(&pattern, bal_buf_string(&text), err);
    return rc ? rc : bal_pattern_match(pattern, module, yes, err);
}

/* By a pattern, or a list of names; exact: a list has the whole name. */
static int matches(bool *yes, bool *exact, const json_t *names,
                   const char *module, bal_error *err)
{
    const char *regex = json_string_value(names);

    *yes = false;
    *exact = regex != NULL;
    if (regex)
        return full_match(yes, regex, module, err);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        *exact |= name && !strcmp(name, module);
        *yes |= name && bal_peft_named(module, name);
    }
    return 0;
}

static bool names_it(const json_t *names, const char *text, size_t len)
{
    const char *one = json_string_value(names);

    if (one)
        return strlen(one) == len && !strncmp(one, text, len);
    for (size_t i = 0; i < json_array_size(names); i++) {
        one = json_string_value(json_array_get(names, i));
        if (one && strlen(one) == len && !strncmp(one, text, len))
            return true;
    }
    return false;
}

/* The number of the layer: digits between dots, behind two parts of the name;
 * with a pattern, behind a part of that name. */
static bool layer_index(json_int_t *out, const char *module,
                        const json_t *pattern)
{
    const char *before = module;
    const char *at = strchr(module, '.');

    while (at) {
        const char *part = at + 1;
        size_t len = strcspn(part, ".");
        bool named = bal_peft_off(pattern)
                         ? before != module
                         : names_it(pattern, before, (size_t)(at - before));

        if (named && len && len < 10 && strspn(part, "0123456789") == len &&
            part[len]) {
            *out = 0;
            for (size_t i = 0; i < len; i++)
                *out = *out * 10 + (part[i] - '0');
            return true;
        }
        before = part;
        at = strchr(part, '.');
    }
    return false;
}

static bool in_layers(const bal_flight *self, const char *module)
{
    const json_t *layers = bal_flight_key(self, "layers_to_transform");
    json_int_t index = 0;

    if (!layers || json_is_null(layers))
        return true;
    if (!layer_index(&index, module, bal_flight_key(self, "layers_pattern")))
        return false;
    if (json_is_integer(layers))
        return json_integer_value(layers) == index;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        if (json_integer_value(json_array_get(layers, i)) == index)
            return true;
    }
    return !json_array_size(layers);
}

static int is_target(bool *yes, const bal_flight *self, const char *module,
                     bal_error *err)
{
    const json_t *targets = bal_flight_key(self, "target_modules");
    const json_t *excluded = bal_flight_key(self, "exclude_modules");
    const char *text = json_string_value(targets);
    bool out = false;
    bool exact = false;

    if (!bal_peft_off(excluded)) {
        int rc = matches(&out, &exact, excluded, module, err);
        if (rc)
            return rc;
    }
    if (text && !strcmp(text, "all-linear")) {
        *yes = !out && strcmp(bal_loose_leaf(module), "lm_head") != 0 &&
               !bal_is_embedding(module);
        return 0;
    }
    int rc = matches(yes, &exact, targets, module, err);
    *yes = !rc && *yes && !out && (exact || in_layers(self, module));
    return rc;
}

int bal_rule_untargeted(bal_flight *self, bal_error *err)
{
    static const char *const lists[] = {
        "target_modules",
        "exclude_modules",
        "layers_to_transform",
        "layers_pattern",
    };
    int rc = 0;

    if (bal_peft_off(bal_flight_key(self, "target_modules")) ||
        !bal_peft_off(bal_flight_key(self, "target_parameters")))
        return 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) && !rc; i++)
        rc = check_length(self, lists[i], err);
    for (size_t i = 0; i < self->parts.module_count && !rc; i++) {
        const char *module = self->parts.modules[i].name;
        bal_error why = { 0 };
        bool yes = false;
        int found = is_target(&yes, self, module, &why);

        if (found == BAL_ENOMEM)
            return bal_fail(err, found, "%s", why.text);
        if (found)
            return bal_flight_tell(self, "target_modules", err, "%s", why.text);
        if (!yes)
            rc = bal_flight_tell(self, module, err,
                                 "target_modules has no such module");
    }
    return rc;
}
