/* Recipes as they are recorded: text and integers only, so that their canonical
 * form, which the id is taken of, is the same everywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "merge/settings.h"
#include "merge/values.h"

/* ---- out ---------------------------------------------------------------- */

static int put(json_t *to, const char *key, json_t *value, bal_error *err)
{
    if (json_object_set_new(to, key, value))
        return bal_fail_memory(err, "a recipe");
    return 0;
}

static int put_id(json_t *to, const char *key, const bal_id *id, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return put(to, key, json_string(hex), err);
}

static int fill_input(json_t *to, const bal_input *input, bal_error *err)
{
    char weight[32];

    bal_f64_text(weight, input->weight);
    int rc = put(to, "tenant", json_string(input->tenant), err);
    if (!rc)
        rc = put_id(to, "commit", &input->commit, err);
    if (!rc)
        rc = put_id(to, "manifest", &input->manifest, err);
    if (!rc)
        rc = put(to, "weight", json_string(weight), err);
    if (rc || !json_object_size(input->parameters))
        return rc;
    return put(to, "parameters", bal_json_copy(input->parameters), err);
}

static int fill_inputs(json_t *to, const bal_recipe *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        json_t *input = json_object();
        if (!input || json_array_append_new(to, input))
            return bal_fail_memory(err, "a recipe");
        int rc = fill_input(input, &self->inputs[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static json_t *dtype_json(int dtype)
{
    return dtype < 0 ? json_null()
                     : json_string(bal_dtype_name((bal_dtype)dtype));
}

static int put_seed(json_t *to, const char *key, uint64_t seed, bal_error *err)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, seed);
    return put(to, key, json_string(text), err);
}

/* What only some recipes have: the others keep the text, and so the id, that
 * they had before these members were known. */
static int fill_more(json_t *to, const bal_recipe *self, bal_error *err)
{
    bool seeded = self->method->info.flags & BAL_METHOD_SEEDED;
    bool base = self->base != BAL_NONE;
    int rc = 0;

    if (base || self->method->role != BAL_ROLE_NONE)
        rc =
            put(to, "base",
                base ? json_integer((json_int_t)self->base) : json_null(), err);
    if (!rc && self->streamed)
        return put_seed(to, "mergekit_stream", self->stream, err);
    return rc || !seeded ? rc : put_seed(to, "seed", self->seed, err);
}

static int fill(json_t *to, const bal_recipe *self, bal_error *err)
{
    int rc = put(to, "method", json_string(self->method->info.name), err);

    const char *arithmetic = bal_arithmetic_name(self->mergekit);
    if (!rc)
        rc = put(to, "arithmetic", json_string(arithmetic), err);
    if (!rc)
        rc = put(to, "space", json_string(bal_space_name(self->space)), err);
    if (!rc)
        rc = put(to, "strict", json_boolean(self->strict), err);
    if (!rc)
        rc = put(to, "dtype", dtype_json(self->dtype), err);
    if (!rc)
        rc = put(to, "parameters", bal_json_copy(self->parameters), err);
    if (!rc)
        rc = fill_more(to, self, err);
    if (rc)
        return rc;
    json_t *inputs = json_array();
    rc = put(to, "inputs", inputs, err);
    return rc ? rc : fill_inputs(inputs, self, err);
}

int bal_recipe_json(json_t **out, const bal_recipe *self, bal_error *err)
{
    BAL_OWN(json_t) json = json_object();
    if (!json)
        return bal_fail_memory(err, "a recipe");
    int rc = fill(json, self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(json);
    return 0;
}

/* ---- in ----------------------------------------------------------------- */

static int bad(bal_error *err, const char *key)
{
    return bal_fail(err, BAL_ECORRUPT, "a recipe's '%s' is not right", key);
}

/* A text, NULL: none there. */
static const char *text_of(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static int get_id(bal_id *out, const json_t *json, const char *key,
                  bal_error *err)
{
    const char *hex = text_of(json, key);

    return hex && !bal_id_parse(out, hex, NULL) ? 0 : bad(err, key);
}

static int read_input(bal_recipe *self, const json_t *json, bal_error *err)
{
    bal_input input = { .weighted = true };
    const char *tenant = text_of(json, "tenant");
    const char *weight = text_of(json, "weight");
    json_t *parameters = json_object_get(json, "parameters");

    if (!tenant || !bal_name_valid(tenant))
        return bad(err, "tenant");
    if (!weight || bal_parse_f64(&input.weight, weight, NULL))
        return bad(err, "weight");
    if (parameters && (!json_is_object(parameters) ||
                       json_object_get(parameters, BAL_WEIGHT)))
        return bad(err, "parameters");
    int rc = get_id(&input.commit, json, "commit", err);
    if (!rc)
        rc = get_id(&input.manifest, json, "manifest", err);
    if (rc)
        return rc;
    snprintf(input.tenant, sizeof(input.tenant), "%s", tenant);
    input.parameters = json_incref(parameters);
    rc = bal_recipe_add(self, &input, err);
    return rc && rc != BAL_ENOMEM ? bad(err, "inputs") : rc;
}

static int read_inputs(bal_recipe *self, const json_t *json, bal_error *err)
{
    const json_t *inputs = json_object_get(json, "inputs");

    if (!json_is_array(inputs))
        return bad(err, "inputs");
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        int rc = read_input(self, json_array_get(inputs, i), err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_parameters(bal_recipe *self, const json_t *json, bal_error *err)
{
    json_t *parameters = json_object_get(json, "parameters");
    const char *name;
    json_t *value;

    if (!json_is_object(parameters))
        return bad(err, "parameters");
    json_object_foreach(parameters, name, value)
    {
        const char *text = json_string_value(value);
        if (!text || !bal_param_find(self->method->info.params, name))
            return bad(err, "parameters");
        int rc = bal_recipe_set(self, name, text, err);
        if (rc)
            return rc == BAL_ENOMEM ? rc : bad(err, "parameters");
    }
    return 0;
}

static int read_settings(bal_recipe *self, const json_t *json, bal_error *err)
{
    const char *space = text_of(json, "space");
    const json_t *strict = json_object_get(json, "strict");
    const json_t *dtype = json_object_get(json, "dtype");
    const char *arithmetic = text_of(json, "arithmetic");
    bal_dtype known;

    if (!arithmetic || !bal_arithmetic_find(&self->mergekit, arithmetic))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view of arithmetic '%s': a newer version made it",
                        arithmetic ? arithmetic : "");
    if (!space || !bal_space_find(&self->space, space))
        return bad(err, "space");
    if (!json_is_boolean(strict))
        return bad(err, "strict");
    self->strict = json_is_true(strict);
    if (json_is_null(dtype))
        return 0;
    const char *name = json_string_value(dtype);
    if (!name || !bal_dtype_find(&known, name, strlen(name)) ||
        bal_dtype_row_of(known)->class_of != BAL_CLASS_FLOAT)
        return bad(err, "dtype");
    self->dtype = (int)known;
    return 0;
}

/* After the inputs, of which the base is one. */
static int read_base(bal_recipe *self, const json_t *json, bal_error *err)
{
    const json_t *base = json_object_get(json, "base");

    if (!base || json_is_null(base))
        return 0;
    json_int_t at = json_integer_value(base);
    if (!json_is_integer(base) || at < 0 || (uint64_t)at >= self->count)
        return bad(err, "base");
    self->base = (size_t)at;
    return 0;
}

static int read_stream(bal_recipe *self, const json_t *json, bal_error *err)
{
    static const char key[] = "mergekit_stream";
    const char *seed = text_of(json, key);

    if (!json_object_get(json, key))
        return 0;
    self->streamed = true;
    if (!seed || !self->mergekit || !self->method->draws)
        return bad(err, key);
    return bal_parse_u64(&self->stream, seed, NULL) ? bad(err, key) : 0;
}

/* After the stream, which takes its place. */
static int read_seed(bal_recipe *self, const json_t *json, bal_error *err)
{
    bool drawn =
        self->method->info.flags & BAL_METHOD_SEEDED && !self->streamed;
    const char *seed = text_of(json, "seed");

    if (!drawn)
        return json_object_get(json, "seed") ? bad(err, "seed") : 0;
    self->seeded = true;
    return seed && !bal_parse_u64(&self->seed, seed, NULL) ? 0
                                                           : bad(err, "seed");
}

int bal_recipe_parse(bal_recipe **out, const json_t *json, bal_error *err)
{
    const char *method = text_of(json, "method");
    BAL_OWN(bal_recipe) self = NULL;

    if (!method)
        return bad(err, "method");
    int rc = bal_recipe_new(&self, method, err);
    if (rc == BAL_ENOTFOUND)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view of method '%s': a newer version made it",
                        method);
    if (!rc)
        rc = read_settings(self, json, err);
    if (!rc)
        rc = read_parameters(self, json, err);
    if (!rc)
        rc = read_inputs(self, json, err);
    if (!rc)
        rc = read_base(self, json, err);
    if (!rc)
        rc = read_stream(self, json, err);
    if (!rc)
        rc = read_seed(self, json, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}
