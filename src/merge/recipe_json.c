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

/* Its own parameters, but for the weight, which every input tells. */
static int fill_own(json_t *to, const bal_input *input, bal_error *err)
{
    if (!json_object_size(input->parameters))
        return 0;
    BAL_OWN(json_t) own = bal_json_copy(input->parameters);
    if (!own)
        return bal_fail_memory(err, "a recipe");
    json_object_del(own, BAL_WEIGHT);
    return json_object_size(own) ? put(to, "parameters", BAL_TAKE(own), err)
                                 : 0;
}

static int fill_layers(json_t *to, const bal_input *input, bal_error *err)
{
    json_t *layers =
        json_pack("[I,I]", (json_int_t)input->first, (json_int_t)input->end);
    int rc = put(to, "slice", json_integer((json_int_t)input->slice), err);

    return rc ? rc : put(to, "layers", layers, err);
}

static int fill_input(json_t *to, const bal_recipe *self,
                      const bal_rules *rules, size_t i, bal_error *err)
{
    const bal_input *input = &self->inputs[i];
    BAL_LOCAL(bal_buf) weight = { 0 };
    int rc = bal_rules_weight(&weight, rules, i, err);

    if (!rc)
        rc = put(to, "tenant", json_string(input->tenant), err);
    if (!rc)
        rc = put_id(to, "commit", &input->commit, err);
    if (!rc)
        rc = put_id(to, "manifest", &input->manifest, err);
    if (!rc)
        rc = put(to, "weight", json_string(bal_buf_string(&weight)), err);
    if (!rc)
        rc = fill_own(to, input, err);
    if (!rc && self->sliced && !input->carrier)
        rc = fill_layers(to, input, err);
    if (!rc && input->adapter)
        rc = put(to, "onto", json_integer((json_int_t)input->onto), err);
    if (!rc && input->carrier)
        rc = put(to, "carrier", json_true(), err);
    return rc;
}

static int fill_inputs(json_t *to, const bal_recipe *self, bal_error *err)
{
    BAL_LOCAL(bal_rules) rules = { 0 };
    int rc = bal_rules_init(&rules, self, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        json_t *input = json_object();
        if (!input || json_array_append_new(to, input))
            return bal_fail_memory(err, "a recipe");
        rc = fill_input(input, self, &rules, i, err);
    }
    return rc;
}

/* Without the weight, which every input tells. */
static int put_parameters(json_t *to, json_t *parameters, bal_error *err)
{
    BAL_OWN(json_t) common = bal_json_copy(parameters);

    if (!common)
        return bal_fail_memory(err, "a recipe");
    json_object_del(common, BAL_WEIGHT);
    return put(to, "parameters", BAL_TAKE(common), err);
}

static json_t *base_json(size_t base)
{
    return base == BAL_NONE ? json_null() : json_integer((json_int_t)base);
}

static int fill_slices(json_t *to, const bal_recipe *self, bal_error *err)
{
    for (size_t i = 0; i < self->slice_count; i++) {
        const bal_slice *from = &self->slices[i];
        json_t *slice = json_object();
        if (!slice || json_array_append_new(to, slice))
            return bal_fail_memory(err, "a recipe");
        int rc = put(slice, "base", base_json(from->base), err);
        size_t weight = json_object_get(from->parameters, BAL_WEIGHT) != NULL;
        if (!rc && json_object_size(from->parameters) > weight)
            rc = put_parameters(slice, from->parameters, err);
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

static int put_base(json_t *to, const bal_recipe *self, bal_error *err)
{
    size_t base = self->slices[0].base;

    if (self->sliced) {
        json_t *slices = json_array();
        int rc = put(to, "slices", slices, err);
        return rc ? rc : fill_slices(slices, self, err);
    }
    if (base == BAL_NONE && self->method->role == BAL_ROLE_NONE)
        return 0;
    return put(to, "base", base_json(base), err);
}

static int put_ranks(json_t *to, const bal_recipe *self, bal_error *err)
{
    char text[32];
    int rc = 0;

    if (self->rank)
        rc = put(to, "rank", json_integer((json_int_t)self->rank), err);
    if (rc || self->energy == 0)
        return rc;
    bal_f64_text(text, self->energy);
    rc = put(to, "energy", json_string(text), err);
    return rc || !self->ranks
               ? rc
               : put(to, "ranks", bal_json_copy(self->ranks), err);
}

/* What only some recipes have: the others keep the text, and so the id, that
 * they had before these members were known. */
static int fill_more(json_t *to, const bal_recipe *self, bal_error *err)
{
    bool seeded = self->method->info.flags & BAL_METHOD_SEEDED;
    int rc = put_base(to, self, err);

    if (!rc && self->out_dtype >= 0)
        rc = put(to, "out_dtype", dtype_json(self->out_dtype), err);
    if (!rc && self->vocabulary)
        rc = put(to, "tokenizer", bal_json_copy(self->vocabulary), err);
    if (!rc)
        rc = put_ranks(to, self, err);
    if (!rc && self->digests)
        rc = put(to, "digests", bal_json_copy(self->digests), err);
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
        rc = put_parameters(to, self->parameters, err);
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
