/* The config that goes with stacked factors. PEFT finds a module's rank by the
 * patterns and the modules themselves by target_modules, so both must say no
 * more and no less than the tensors do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "merge/concat.h"

/* Keys that say which modules there are, beside target_modules. */
static const char *const narrowing[] = {
    "layers_to_transform",
    "layers_pattern",
    "exclude_modules",
};

/* Keys that all adapters must tell alike, or not tell. */
static const char *const common[] = {
    "base_model_name_or_path",
    "revision",
};

typedef struct config {
    json_t *json;
    const bal_loras *adapters;
    size_t count;
    const bal_joined *modules;
    size_t module_count;
} config;

static int set(json_t *object, const char *key, json_t *value, bal_error *err)
{
    if (json_object_set_new(object, key, value))
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    return 0;
}

/* ---- the base ----------------------------------------------------------- */

static int agree(const config *self, const char *key, bal_error *err)
{
    const char *first = NULL;

    for (size_t i = 0; i < self->count; i++) {
        const char *text =
            json_string_value(json_object_get(self->adapters[i].config, key));

        if (!text)
            continue;
        if (first && strcmp(first, text))
            return bal_fail(err, BAL_EINVAL,
                            "adapters of different base models: %s is '%s' and "
                            "'%s' (input %zu)",
                            key, first, text, i + 1);
        first = text;
    }
    return first ? set(self->json, key, json_string(first), err) : 0;
}

/* ---- ranks -------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;

    return (*left > *right) - (*left < *right);
}

/* The rank that most modules have; of several the largest. */
static int usual_rank(const config *self, uint64_t *out, bal_error *err)
{
    size_t n = self->module_count;
    size_t best = 0;
    uint64_t *ranks = malloc((n + 1) * sizeof(*ranks));
    if (!ranks)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);

    *out = 8;
    for (size_t i = 0; i < n; i++)
        ranks[i] = self->modules[i].rank;
    qsort(ranks, n, sizeof(*ranks), by_rank);
    for (size_t i = 0, start = 0; i < n; i++) {
        start = ranks[i] == ranks[start] ? start : i;
        if (i - start + 1 < best)
            continue;
        best = i - start + 1;
        *out = ranks[i];
    }
    free(ranks);
    return 0;
}

/* A pattern that matches this module and no other: PEFT puts "(.*\.)?(" before
 * it and ")$" behind. */
static int exact_pattern(bal_buf *out, const char *module, bal_error *err)
{
    int rc = bal_buf_text(out, "^", err);

    for (const char *at = module; *at && !rc; at++) {
        bool special = strchr("\\.^$*+?()[]{}|", *at) != NULL;
        rc = bal_buf_format(out, err, "%s%c", special ? "\\" : "", *at);
    }
    return rc;
}

static double alpha_of(const bal_joined *module)
{
    return module->scaled ? module->alpha : (double)module->rank;
}

static json_t *alpha_json(double alpha)
{
    const double most = 1e15;
    bool whole = alpha == floor(alpha) && fabs(alpha) < most;

    return whole ? json_integer((json_int_t)alpha) : json_real(alpha);
}

/* The alpha of the first module of that rank. */
static double usual_alpha(const config *self, uint64_t rank)
{
    for (size_t i = 0; i < self->module_count; i++) {
        if (self->modules[i].rank == rank)
            return alpha_of(&self->modules[i]);
    }
    return (double)rank;
}

static int add_pattern(json_t *ranks, json_t *alphas, const bal_joined *module,
                       bal_error *err)
{
    BAL_LOCAL(bal_buf) key = { 0 };
    int rc = exact_pattern(&key, module->module, err);
    if (rc)
        return rc;
    json_int_t rank = (json_int_t)module->rank;
    rc = set(ranks, bal_buf_string(&key), json_integer(rank), err);
    if (rc)
        return rc;
    return set(alphas, bal_buf_string(&key), alpha_json(alpha_of(module)), err);
}

static int set_ranks(const config *self, bal_error *err)
{
    json_t *ranks = json_object();
    json_t *alphas = json_object();
    uint64_t usual = 0;

    /* Given away at once, so that an early return is right. */
    int rc = set(self->json, "rank_pattern", ranks, err);
    int second = set(self->json, "alpha_pattern", alphas, err);
    if (rc || second)
        return rc ? rc : second;
    rc = usual_rank(self, &usual, err);
    double alpha = usual_alpha(self, usual);
    if (!rc)
        rc = set(self->json, "r", json_integer((json_int_t)usual), err);
    if (!rc)
        rc = set(self->json, "lora_alpha", alpha_json(alpha), err);
    for (size_t i = 0; !rc && i < self->module_count; i++) {
        if (self->modules[i].rank != usual ||
            alpha_of(&self->modules[i]) != alpha)
            rc = add_pattern(ranks, alphas, &self->modules[i], err);
    }
    return rc;
}

/* ---- modules ------------------------------------------------------------ */

/* True if an adapter's list of names is all that says which modules it has. */
static bool plain_list(const json_t *json)
{
    const json_t *targets = json_object_get(json, "target_modules");

    for (size_t i = 0; i < sizeof(narrowing) / sizeof(narrowing[0]); i++) {
        if (!bal_peft_off(json_object_get(json, narrowing[i])))
            return false;
    }
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const char *name = json_string_value(json_array_get(targets, i));
        if (!name || !strcmp(name, "all-linear"))
            return false;
    }
    return json_array_size(targets) != 0;
}

static bool used(const config *self, const char *name)
{
    for (size_t i = 0; i < self->module_count; i++) {
        if (bal_peft_named(self->modules[i].module, name))
            return true;
    }
    return false;
}

/* The first of the names that a module goes by, NULL: none. */
static const char *name_of(const json_t *names, const char *module)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)names, name, value)
    {
        if (bal_peft_named(module, name))
            return name;
    }
    return NULL;
}

/* Names as the keys of an object, so that each is there once. */
static int gather_names(const config *self, json_t *names, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const json_t *targets =
            json_object_get(self->adapters[i].config, "target_modules");

        for (size_t k = 0; k < json_array_size(targets); k++) {
            const char *name = json_string_value(json_array_get(targets, k));
            int rc = used(self, name) ? set(names, name, json_null(), err) : 0;
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* The adapters' own names where these are all there is to it; otherwise, and
 * for what they leave out, the paths of the modules. */
static int target_names(const config *self, json_t *names, bal_error *err)
{
    bool plain = true;
    int rc = 0;

    for (size_t i = 0; i < self->count; i++)
        plain = plain && plain_list(self->adapters[i].config);
    if (plain)
        rc = gather_names(self, names, err);
    for (size_t i = 0; !rc && i < self->module_count; i++) {
        const char *module = self->modules[i].module;
        if (!plain || !name_of(names, module))
            rc = set(names, module, json_null(), err);
    }
    return rc;
}

static int by_text(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

/* The keys of an object, sorted, as an array. */
static json_t *sorted_keys(const json_t *names)
{
    size_t count = json_object_size(names);
    const char **keys = malloc((count + 1) * sizeof(*keys));
    json_t *list = json_array();
    const char *name;
    json_t *value;
    size_t n = 0;
    bool failed = !keys || !list;

    if (!failed) {
        json_object_foreach((json_t *)names, name, value) keys[n++] = name;
        qsort(keys, n, sizeof(*keys), by_text);
    }
    for (size_t i = 0; i < n && !failed; i++)
        failed = json_array_append_new(list, json_string(keys[i])) != 0;
    free(keys);
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

static int set_targets(const config *self, bal_error *err)
{
    BAL_OWN(json_t) names = json_object();
    if (!names)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    int rc = target_names(self, names, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof(narrowing) / sizeof(narrowing[0]); i++) {
        rc = set(self->json, narrowing[i], json_null(), err);
        if (rc)
            return rc;
    }
    return set(self->json, "target_modules", sorted_keys(names), err);
}

/* ---- all ---------------------------------------------------------------- */

static int fill(const config *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < sizeof(common) / sizeof(common[0]); i++)
        rc = agree(self, common[i], err);
    if (!rc)
        rc = set_ranks(self, err);
    if (!rc)
        rc = set_targets(self, err);
    if (!rc)
        rc = set(self->json, "use_rslora", json_false(), err);
    if (!rc)
        rc = set(self->json, "init_lora_weights", json_true(), err);
    if (!rc)
        rc = set(self->json, "inference_mode", json_true(), err);
    return rc;
}

json_t *bal_config_new(const char *base_model)
{
    return json_pack("{s:s, s:n, s:s?, s:s, s:b, s:b, s:f, s:[]}", "peft_type",
                     "LORA", "task_type", "base_model_name_or_path", base_model,
                     "bias", "none", "fan_in_fan_out", 0, "use_dora", 0,
                     "lora_dropout", 0.0, "target_modules");
}

int bal_concat_config(bal_buf *out, const bal_loras *adapters, size_t count,
                      const bal_joined *modules, size_t module_count,
                      bal_error *err)
{
    BAL_OWN(json_t) json = json_deep_copy(adapters[0].config);
    config self = { json, adapters, count, modules, module_count };

    if (!json)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    int rc = fill(&self, err);
    if (rc)
        return rc;
    char *text =
        json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
    if (!text)
        return bal_fail_memory(err, BAL_PEFT_CONFIG);
    rc = bal_buf_text(out, text, err);
    free(text);
    return rc;
}
