/* Recipes while they are put together: checked at every word, so that a recipe
 * that was accepted is one that can be computed. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/room.h"
#include "core/str.h"
#include "merge/settings.h"
#include "merge/values.h"

/* ---- parameters --------------------------------------------------------- */

static int put(json_t *object, const char *name, const char *text,
               bal_error *err)
{
    if (json_object_set_new(object, name, json_string(text)))
        return bal_fail_memory(err, "a recipe");
    return 0;
}

/* What a value is recorded as. */
static int canonical_value(bal_buf *to, const bal_param *param,
                           const char *text, bal_error *err)
{
    BAL_LOCAL(bal_gradient) told = { 0 };
    int rc = bal_gradient_append(&told, param, text, err);

    return rc ? rc : bal_gradient_text(to, &told, param, err);
}

static int canonical_text(bal_buf *to, const bal_param *param,
                          const json_t *text, bal_error *err)
{
    if (!json_is_string(text))
        return bal_fail(err, BAL_EINVAL, "%s is not text", param->name);
    return canonical_value(to, param, json_string_value(text), err);
}

/* ---- slices ------------------------------------------------------------- */

static int push_slice(bal_recipe *self, json_t *parameters, bal_error *err)
{
    bal_slice *slices = bal_room_for_one(self->slices, self->slice_count,
                                         &self->slice_room, sizeof(*slices));
    if (!slices) {
        json_decref(parameters);
        return bal_fail_memory(err, "a recipe");
    }
    self->slices = slices;
    slices[self->slice_count++] = (bal_slice){ BAL_NONE, parameters };
    return 0;
}

/* Parameters of all inputs: names that the method has, texts that it takes. */
static int check_common(const bal_recipe *self, json_t *told, bal_error *err)
{
    const char *name;
    json_t *text;

    json_object_foreach(told, name, text)
    {
        BAL_LOCAL(bal_buf) canonical = { 0 };
        const bal_param *param =
            bal_param_find(self->method->info.params, name);
        if (!param)
            return bal_param_unknown(self->method, name, err);
        int rc = canonical_text(&canonical, param, text, err);
        if (!rc)
            rc = put(told, name, bal_buf_string(&canonical), err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_recipe_add_slice(bal_recipe *self, json_t *parameters, bal_error *err)
{
    BAL_OWN(json_t) told = parameters;

    if (self->slice_count >= BAL_INPUTS_MAX)
        return bal_fail(err, BAL_EINVAL, "more than %u slices", BAL_INPUTS_MAX);
    int rc = told ? check_common(self, told, err) : 0;
    if (rc)
        return rc;
    if (self->sliced)
        return push_slice(self, BAL_TAKE(told), err);
    assert(!self->count);
    self->sliced = true;
    self->slices[0].parameters = BAL_TAKE(told);
    return 0;
}

const bal_slice *bal_recipe_slice(const bal_recipe *self, size_t i)
{
    return &self->slices[i];
}

/* ---- all ---------------------------------------------------------------- */

int bal_recipe_new(bal_recipe **out, const char *method, bal_error *err)
{
    const bal_method *row = bal_method_row(method);
    if (!row)
        return bal_hint(err,
                        bal_fail(err, BAL_ENOTFOUND, "no method '%s'", method),
                        "ballast methods");

    BAL_OWN(bal_recipe) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a recipe");
    self->method = row;
    self->dtype = -1;
    self->out_dtype = -1;
    self->parameters = json_object();
    if (!self->parameters)
        return bal_fail_memory(err, "a recipe");
    int rc = push_slice(self, NULL, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_recipe_free(bal_recipe *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->inputs[i].parameters);
    for (size_t i = 0; i < self->slice_count; i++)
        json_decref(self->slices[i].parameters);
    free(self->slices);
    free(self->inputs);
    json_decref(self->parameters);
    json_decref(self->vocabulary);
    json_decref(self->ranks);
    json_decref(self->digests);
    free(self);
}

size_t bal_recipe_inputs(const bal_recipe *self)
{
    return self->count;
}

size_t bal_recipe_merged(const bal_recipe *self)
{
    size_t count = self->count;

    while (count && self->inputs[count - 1].carrier)
        count--;
    return count;
}

size_t bal_recipe_origin(const bal_recipe *self)
{
    size_t merged = bal_recipe_merged(self);

    return self->space == BAL_SPACE_DELTA && merged < self->count ? merged
                                                                  : BAL_NONE;
}

/* ---- setting ------------------------------------------------------------ */

/* The weight of an input, told by it or for all; 1 of a base that is none. */
static int weigh(const bal_recipe *self, bal_input *input, bool apart,
                 bal_error *err)
{
    const bal_param *param =
        apart ? NULL : bal_param_find(self->method->info.params, BAL_WEIGHT);
    const json_t *scopes[] = { input->parameters,
                               self->slices[input->slice].parameters,
                               self->parameters };
    BAL_LOCAL(bal_gradient) told = { 0 };

    input->weight = 1;
    for (size_t i = 0; param && i < 3; i++) {
        const char *text =
            json_string_value(json_object_get(scopes[i], BAL_WEIGHT));
        int rc = text ? bal_gradient_append(&told, param, text, err) : 0;
        if (rc)
            return rc;
    }
    if (told.count && !bal_gradient_scalar(&input->weight, &told))
        input->weight = (double)NAN;
    return 0;
}

static int set_param(bal_recipe *self, const bal_param *param, const char *text,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) canonical = { 0 };
    int rc = canonical_value(&canonical, param, text, err);
    if (!rc)
        rc =
            put(self->parameters, param->name, bal_buf_string(&canonical), err);
    for (size_t i = 0; !rc && i < self->count; i++)
        rc = weigh(self, &self->inputs[i], bal_recipe_apart(self, i), err);
    return rc;
}

int bal_recipe_set(bal_recipe *self, const char *name, const char *value,
                   bal_error *err)
{
    const bal_param *param = bal_param_find(self->method->info.params, name);

    if (param)
        return set_param(self, param, value, err);
    bal_setting_set_fn *set = bal_recipe_setting(name);
    if (set)
        return set(self, value, err);
    return bal_param_unknown(self->method, name, err);
}

/* ---- inputs ------------------------------------------------------------- */

static int make_room(bal_recipe *self, bal_error *err)
{
    if (self->count >= BAL_INPUTS_MAX)
        return bal_fail(err, BAL_EINVAL, "more than %u inputs", BAL_INPUTS_MAX);
    bal_input *inputs = bal_room_for_one(self->inputs, self->count, &self->room,
                                         sizeof(*inputs));
    if (!inputs)
        return bal_fail_memory(err, "a recipe");
    self->inputs = inputs;
    return 0;
}

/* Check one parameter of an input and record it. */
static int add_own(bal_input *input, const bal_method *method, const char *name,
                   const json_t *text, bal_error *err)
{
    const bal_param *param = bal_param_find(method->info.params, name);
    BAL_LOCAL(bal_buf) canonical = { 0 };

    if (!param)
        return bal_param_unknown(method, name, err);
    if (!param->per_input)
        return bal_fail(err, BAL_EINVAL, "parameter '%s' is one for all inputs",
                        name);
    int rc = canonical_text(&canonical, param, text, err);
    if (rc)
        return rc;
    return put(input->parameters, name, bal_buf_string(&canonical), err);
}

/* input->parameters becomes a new object, checked, or NULL. */
static int own_parameters(bal_input *input, const bal_method *method,
                          const json_t *told, bal_error *err)
{
    const char *name;
    json_t *text;

    input->parameters = json_object();
    if (!input->parameters)
        return bal_fail_memory(err, "a recipe");
    json_object_foreach((json_t *)told, name, text)
    {
        int rc = add_own(input, method, name, text, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* A weight that is not among the parameters is told if it is not 1, which is
 * what an input that tells none comes with. */
static int own_weight(bal_input *input, double told, const bal_method *method,
                      bal_error *err)
{
    char text[32];

    if (!isfinite(told))
        return bal_fail(err, BAL_EINVAL, "a weight that is not finite");
    if (told == 1 || json_object_get(input->parameters, BAL_WEIGHT))
        return 0;
    bal_f64_text(text, told);
    BAL_OWN(json_t) weight = json_string(text);
    if (!weight)
        return bal_fail_memory(err, "a recipe");
    return add_own(input, method, BAL_WEIGHT, weight, err);
}

int bal_recipe_add(bal_recipe *self, const bal_input *input, bal_error *err)
{
    BAL_OWN(json_t) told = input->parameters;
    bal_input copy = *input;

    assert(copy.slice < self->slice_count);
    int rc = make_room(self, err);
    if (rc)
        return rc;
    rc = own_parameters(&copy, self->method, told, err);
    if (!rc)
        rc = own_weight(&copy, input->weight, self->method, err);
    if (!rc)
        rc = weigh(self, &copy, false, err);
    if (rc) {
        json_decref(copy.parameters);
        return rc;
    }
    self->inputs[self->count++] = copy;
    return 0;
}

/* ---- the base ----------------------------------------------------------- */

/* The input that is of the same commit, BAL_NONE: none is. */
static size_t same_as(const bal_recipe *self, const bal_input *input)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_input *other = &self->inputs[i];
        if (other->slice == self->slice_count - 1 &&
            !strcmp(other->tenant, input->tenant) &&
            bal_id_equal(&other->commit, &input->commit))
            return i;
    }
    return BAL_NONE;
}

/* Of one that was added, or is about to be. */
static bool tells_own(const bal_input *input)
{
    return json_object_size(input->parameters) != 0;
}

int bal_recipe_add_base(bal_recipe *self, const bal_input *input,
                        bal_error *err)
{
    BAL_OWN(json_t) told = input->parameters;
    bool own = tells_own(input) || input->weight != 1;
    size_t at = own ? BAL_NONE : same_as(self, input);
    bool more = self->method->role == BAL_ROLE_NONE; /* one more input */
    bal_input copy = *input;
    bal_slice *slice = &self->slices[self->slice_count - 1];

    if (slice->base != BAL_NONE)
        return bal_fail(err, BAL_EINVAL, "a second base");
    if (!more && (own || (at != BAL_NONE && tells_own(&self->inputs[at]))))
        return bal_fail(err, BAL_EINVAL,
                        "the base of method '%s' takes no weight or parameters",
                        self->method->info.name);
    if (at == BAL_NONE) {
        copy.parameters = BAL_TAKE(told);
        int rc = bal_recipe_add(self, &copy, err);
        if (rc)
            return rc;
        at = self->count - 1;
        slice->added = true;
    }
    slice->base = at;
    return weigh(self, &self->inputs[at], bal_recipe_apart(self, at), err);
}
