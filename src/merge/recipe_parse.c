/* Recipes as they were recorded: what is in a database may have been written by
 * anybody. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "merge/settings.h"
#include "merge/values.h"
#include "merge/vocab.h"
#include "model/peft.h"

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

/* The weight is told among the parameters, so that it stays what it is. */
static int read_own(bal_input *input, const json_t *json, const char *weight,
                    bal_error *err)
{
    json_t *own = json_object_get(json, "parameters");

    if (own && (!json_is_object(own) || json_object_get(own, BAL_WEIGHT)))
        return bad(err, "parameters");
    input->parameters = own ? bal_json_copy(own) : json_object();
    if (!input->parameters ||
        (weight && json_object_set_new(input->parameters, BAL_WEIGHT,
                                       json_string(weight))))
        return bal_fail_memory(err, "a recipe");
    return 0;
}

/* An integer of 0 … most. */
static bool get_index(uint64_t *out, const json_t *json, uint64_t most)
{
    json_int_t value = json_integer_value(json);

    *out = (uint64_t)value;
    return json_is_integer(json) && value >= 0 && (uint64_t)value <= most;
}

/* Slices come in order; each begins with its first source. */
static int read_source(bal_recipe *self, bal_input *input, const json_t *json,
                       bal_error *err)
{
    const json_t *layers = json_object_get(json, "layers");
    uint64_t slice;

    if (!self->sliced || input->carrier)
        return 0;
    if (!get_index(&slice, json_object_get(json, "slice"),
                   self->slice_count - 1) ||
        (self->count && slice < self->inputs[self->count - 1].slice))
        return bad(err, "slice");
    input->slice = (size_t)slice;
    if (json_array_size(layers) != 2 ||
        !get_index(&input->first, json_array_get(layers, 0), INT64_MAX) ||
        !get_index(&input->end, json_array_get(layers, 1), INT64_MAX) ||
        input->end < input->first)
        return bad(err, "layers");
    return 0;
}

static int read_onto(bal_input *input, const json_t *json, bal_error *err)
{
    const json_t *onto = json_object_get(json, "onto");
    uint64_t at;

    if (!onto)
        return 0;
    if (!get_index(&at, onto, BAL_INPUTS_MAX))
        return bad(err, "onto");
    input->adapter = true;
    input->onto = (size_t)at;
    return 0;
}

static int read_input(bal_recipe *self, const json_t *json, bal_error *err)
{
    bal_input input = { .weight = 1 };
    const char *tenant = text_of(json, "tenant");
    const char *weight = text_of(json, "weight");
    bool known = bal_param_find(self->method->info.params, BAL_WEIGHT);
    int rc;

    if (!tenant || !bal_name_valid(tenant))
        return bad(err, "tenant");
    if (!weight || (!known && strcmp(weight, "1") != 0))
        return bad(err, "weight");
    input.carrier = json_is_true(json_object_get(json, "carrier"));
    rc = get_id(&input.commit, json, "commit", err);
    if (!rc)
        rc = get_id(&input.manifest, json, "manifest", err);
    if (!rc)
        rc = read_source(self, &input, json, err);
    if (!rc)
        rc = read_onto(&input, json, err);
    if (!rc)
        rc = read_own(&input, json, known ? weight : NULL, err);
    if (rc) {
        json_decref(input.parameters);
        return rc;
    }
    snprintf(input.tenant, sizeof(input.tenant), "%s", tenant);
    rc = bal_recipe_add(self, &input, err);
    return rc && rc != BAL_ENOMEM ? bad(err, "inputs") : rc;
}

/* Carriers come last, where there may be any, and what is put onto an input is
 * not one itself. */
static int check_onto(const bal_recipe *self, bal_error *err)
{
    size_t merged = bal_recipe_merged(self);
    bool carries =
        self->space == BAL_SPACE_WEIGHTS ||
        (self->space == BAL_SPACE_DELTA && self->count == merged + 1);

    for (size_t i = 0; i < self->count; i++) {
        const bal_input *input = &self->inputs[i];
        if (input->carrier && (i < merged || input->adapter || !carries))
            return bad(err, "carrier");
        if (input->adapter &&
            (input->onto >= self->count || self->inputs[input->onto].adapter))
            return bad(err, "onto");
    }
    return 0;
}

/* Each slice has sources, and of as many layers each. */
static int check_slices(const bal_recipe *self, bal_error *err)
{
    size_t merged = bal_recipe_merged(self);
    size_t next = 0; /* that has to have a source */

    for (size_t i = 0; self->sliced && i < merged; i++) {
        const bal_input *input = &self->inputs[i];
        const bal_input *before = &self->inputs[i ? i - 1 : 0];
        bool first = input->slice == next;
        if (!first &&
            (!i || input->slice != before->slice ||
             input->end - input->first != before->end - before->first))
            return bad(err, "slices");
        next += first;
    }
    return self->sliced && next != self->slice_count ? bad(err, "slices") : 0;
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
    int rc = check_onto(self, err);
    return rc ? rc : check_slices(self, err);
}

/* Before the inputs, which say of which slice they are. */
static int read_slices(bal_recipe *self, const json_t *json, bal_error *err)
{
    const json_t *slices = json_object_get(json, "slices");

    if (!slices)
        return 0;
    if (!json_array_size(slices))
        return bad(err, "slices");
    for (size_t i = 0; i < json_array_size(slices); i++) {
        json_t *told = json_object_get(json_array_get(slices, i), "parameters");
        if (told && !json_is_object(told))
            return bad(err, "parameters");
        int rc =
            bal_recipe_add_slice(self, told ? bal_json_copy(told) : NULL, err);
        if (rc)
            return rc == BAL_ENOMEM ? rc : bad(err, "slices");
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
        if (!text || !strcmp(name, BAL_WEIGHT) ||
            !bal_param_find(self->method->info.params, name))
            return bad(err, "parameters");
        int rc = bal_recipe_set(self, name, text, err);
        if (rc)
            return rc == BAL_ENOMEM ? rc : bad(err, "parameters");
    }
    return 0;
}

static int get_dtype(int *out, const json_t *json, const char *key,
                     bal_error *err)
{
    const char *name = json_string_value(json);
    bal_dtype known;

    if (json_is_null(json))
        return 0;
    if (!name || !bal_dtype_find(&known, name, strlen(name)) ||
        bal_dtype_row_of(known)->class_of != BAL_CLASS_FLOAT)
        return bad(err, key);
    *out = (int)known;
    return 0;
}

static int read_settings(bal_recipe *self, const json_t *json, bal_error *err)
{
    const char *space = text_of(json, "space");
    const json_t *strict = json_object_get(json, "strict");
    const json_t *dtype = json_object_get(json, "dtype");
    const json_t *out = json_object_get(json, "out_dtype");
    const char *arithmetic = text_of(json, "arithmetic");

    if (!arithmetic || !bal_arithmetic_find(&self->mergekit, arithmetic))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view of arithmetic '%s': a newer version made it",
                        arithmetic ? arithmetic : "");
    if (!space || !bal_space_find(&self->space, space))
        return bad(err, "space");
    if (!json_is_boolean(strict))
        return bad(err, "strict");
    self->strict = json_is_true(strict);
    int rc = get_dtype(&self->dtype, dtype, "dtype", err);
    if (!rc && out)
        rc = get_dtype(&self->out_dtype, out, "out_dtype", err);
    if (!rc && out && !self->mergekit)
        rc = bad(err, "out_dtype");
    if (rc)
        return rc;
    self->vocabulary = json_incref(json_object_get(json, "tokenizer"));
    return 0;
}

static bool get_energy(double *out, const json_t *json)
{
    const char *text = json_string_value(json);

    return text && !bal_parse_f64(out, text, NULL) && *out > 0 && *out <= 1;
}

/* A rank, or an energy and the ranks that it came to. Whether these are of the
 * right modules is known when the view is opened. */
static int read_ranks(bal_recipe *self, const json_t *json, bal_error *err)
{
    const json_t *rank = json_object_get(json, "rank");
    const json_t *energy = json_object_get(json, "energy");
    json_t *ranks = json_object_get(json, "ranks");

    if (!rank && !energy && !ranks)
        return 0;
    if (self->space != BAL_SPACE_PRODUCT || (rank && energy) ||
        (rank &&
         (!get_index(&self->rank, rank, BAL_LORA_RANK_MAX) || !self->rank)))
        return bad(err, "rank");
    if (energy && !get_energy(&self->energy, energy))
        return bad(err, "energy");
    if (!energy != !json_is_object(ranks))
        return bad(err, "ranks");
    self->ranks = json_incref(ranks);
    return 0;
}

/* After the inputs, which tell of what they are. */
static int read_digests(bal_recipe *self, const json_t *json, bal_error *err)
{
    json_t *digests = json_object_get(json, "digests");
    const char *name;
    json_t *value;
    bal_id id;

    if (!digests)
        return 0;
    if (!json_is_object(digests) || bal_recipe_origin(self) == BAL_NONE)
        return bad(err, "digests");
    json_object_foreach(digests, name, value)
    {
        const char *hex = json_string_value(value);
        if (!hex || bal_id_parse(&id, hex, NULL))
            return bad(err, "digests");
    }
    self->digests = json_incref(digests);
    return 0;
}

static int get_base(bal_recipe *self, size_t slice, const json_t *base,
                    bal_error *err)
{
    uint64_t at;

    if (!base || json_is_null(base))
        return 0;
    if (!get_index(&at, base, bal_max(self->count, 1) - 1) || !self->count ||
        self->inputs[at].slice != slice || self->inputs[at].carrier)
        return bad(err, "base");
    self->slices[slice].base = (size_t)at;
    return 0;
}

/* After the inputs, of which the base is one. */
static int read_base(bal_recipe *self, const json_t *json, bal_error *err)
{
    const json_t *slices = json_object_get(json, "slices");
    int rc = 0;

    if (!self->sliced)
        return get_base(self, 0, json_object_get(json, "base"), err);
    for (size_t i = 0; !rc && i < self->slice_count; i++)
        rc = get_base(self, i,
                      json_object_get(json_array_get(slices, i), "base"), err);
    return rc;
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

/* After the inputs, which it names by number. */
static int read_vocabulary(const bal_recipe *self, bal_error *err)
{
    BAL_LOCAL(bal_vocab_want) want = { 0 };

    return self->vocabulary ? bal_vocab_want_parse(&want, self->vocabulary,
                                                   bal_recipe_merged(self), err)
                            : 0;
}

/* What is not known may mean that the result is another one. */
static int check_members(const json_t *json, const char *const *known,
                         size_t count, bal_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)json, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(known[i], name) != 0)
            i++;
        if (i == count)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "a recipe with '%.64s': a newer version made it",
                            name);
    }
    return 0;
}

static int check_known(const json_t *json, bal_error *err)
{
    static const char *const recipe[] = {
        "arithmetic", "base",       "dtype",           "inputs", "method",
        "out_dtype",  "parameters", "mergekit_stream", "seed",   "slices",
        "space",      "strict",     "tokenizer",       "rank",   "energy",
        "ranks",      "digests",
    };
    static const char *const input[] = {
        "tenant", "commit", "manifest", "weight",  "parameters",
        "slice",  "layers", "onto",     "carrier",
    };
    static const char *const slice[] = { "base", "parameters" };
    const json_t *inputs = json_object_get(json, "inputs");
    const json_t *slices = json_object_get(json, "slices");
    int rc =
        check_members(json, recipe, sizeof(recipe) / sizeof(recipe[0]), err);

    for (size_t i = 0; !rc && i < json_array_size(inputs); i++)
        rc = check_members(json_array_get(inputs, i), input,
                           sizeof(input) / sizeof(input[0]), err);
    for (size_t i = 0; !rc && i < json_array_size(slices); i++)
        rc = check_members(json_array_get(slices, i), slice,
                           sizeof(slice) / sizeof(slice[0]), err);
    return rc;
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
        rc = check_known(json, err);
    if (!rc)
        rc = read_settings(self, json, err);
    if (!rc)
        rc = read_ranks(self, json, err);
    if (!rc)
        rc = read_parameters(self, json, err);
    if (!rc)
        rc = read_slices(self, json, err);
    if (!rc)
        rc = read_inputs(self, json, err);
    if (!rc)
        rc = read_digests(self, json, err);
    if (!rc)
        rc = read_base(self, json, err);
    if (!rc)
        rc = read_vocabulary(self, err);
    if (!rc)
        rc = read_stream(self, json, err);
    if (!rc)
        rc = read_seed(self, json, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}
