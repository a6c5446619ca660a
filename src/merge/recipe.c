/* Recipes while they are put together: checked at every word, so that a recipe
 * that was accepted is one that can be computed. */
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
    self->weight = 1;
    self->base = BAL_NONE;
    self->parameters = json_object();
    if (!self->parameters)
        return bal_fail_memory(err, "a recipe");
    *out = BAL_TAKE(self);
    return 0;
}

void bal_recipe_free(bal_recipe *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->inputs[i].parameters);
    free(self->inputs);
    json_decref(self->parameters);
    free(self);
}

size_t bal_recipe_inputs(const bal_recipe *self)
{
    return self->count;
}

/* ---- parameters --------------------------------------------------------- */

static int put(json_t *object, const char *name, const char *text,
               bal_error *err)
{
    if (json_object_set_new(object, name, json_string(text)))
        return bal_fail_memory(err, "a recipe");
    return 0;
}

/* The weight of every input that tells none, told before or after. */
static int set_weight(bal_recipe *self, double weight)
{
    self->weight = weight;
    for (size_t i = 0; i < self->count; i++) {
        if (!self->inputs[i].weighted)
            self->inputs[i].weight = weight;
    }
    return 0;
}

static int set_param(bal_recipe *self, const bal_param *param, const char *text,
                     bal_error *err)
{
    bal_param_value value;
    int rc = bal_value_parse(&value, param, text, err);
    if (rc)
        return rc;
    if (!strcmp(param->name, BAL_WEIGHT))
        return set_weight(self, value.number);
    return put(self->parameters, param->name, value.text, err);
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

/* Check one parameter of an input and record it, or take it as the weight. */
static int add_own(bal_input *input, const bal_method *method, const char *name,
                   const json_t *text, bal_error *err)
{
    const bal_param *param = bal_param_find(method->info.params, name);
    bal_param_value value;

    if (!param)
        return bal_param_unknown(method, name, err);
    if (!param->per_input)
        return bal_fail(err, BAL_EINVAL, "parameter '%s' is one for all inputs",
                        name);
    if (!json_is_string(text))
        return bal_fail(err, BAL_EINVAL, "%s is not text", name);
    int rc = bal_value_parse(&value, param, json_string_value(text), err);
    if (rc)
        return rc;
    if (strcmp(name, BAL_WEIGHT))
        return put(input->parameters, name, value.text, err);
    input->weight = value.number;
    input->weighted = true;
    return 0;
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

int bal_recipe_add(bal_recipe *self, const bal_input *input, bal_error *err)
{
    BAL_OWN(json_t) told = input->parameters;
    bal_input copy = *input;

    /* 1 is what an input that tells no weight comes with. */
    copy.weighted = input->weighted || input->weight != 1;
    if (!isfinite(copy.weight))
        return bal_fail(err, BAL_EINVAL, "a weight that is not finite");
    int rc = make_room(self, err);
    if (rc)
        return rc;
    rc = own_parameters(&copy, self->method, told, err);
    if (rc) {
        json_decref(copy.parameters);
        return rc;
    }
    if (!copy.weighted)
        copy.weight = self->weight;
    self->inputs[self->count++] = copy;
    return 0;
}

/* ---- the base ----------------------------------------------------------- */

/* The input that is of the same commit, BAL_NONE: none is. */
static size_t same_as(const bal_recipe *self, const bal_input *input)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_input *other = &self->inputs[i];
        if (!strcmp(other->tenant, input->tenant) &&
            bal_id_equal(&other->commit, &input->commit))
            return i;
    }
    return BAL_NONE;
}

static bool tells_own(const bal_input *input)
{
    return input->weighted || input->weight != 1 ||
           json_object_size(input->parameters) != 0;
}

int bal_recipe_add_base(bal_recipe *self, const bal_input *input,
                        bal_error *err)
{
    BAL_OWN(json_t) told = input->parameters;
    bool own = tells_own(input);
    size_t at = own ? BAL_NONE : same_as(self, input);
    bool more = self->method->role == BAL_ROLE_NONE; /* one more input */
    bal_input copy = *input;

    if (self->base != BAL_NONE)
        return bal_fail(err, BAL_EINVAL, "a second base");
    if (!more && (own || (at != BAL_NONE && tells_own(&self->inputs[at]))))
        return bal_fail(err, BAL_EINVAL,
                        "the base of method '%s' takes no weight or parameters",
                        self->method->info.name);
    if (at == BAL_NONE) {
        copy.weighted = !more || input->weighted;
        copy.parameters = BAL_TAKE(told);
        int rc = bal_recipe_add(self, &copy, err);
        if (rc)
            return rc;
        at = self->count - 1;
    }
    self->base = at;
    return 0;
}
