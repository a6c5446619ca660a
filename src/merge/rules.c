/* What a recipe tells of its parameters, gathered from where it can be told. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/values.h"

bool bal_recipe_apart(const bal_recipe *self, size_t input)
{
    return self->method->role != BAL_ROLE_NONE &&
           input == self->slices[self->inputs[input].slice].base;
}

/* mergekit has no default for a weight: one that is told for some tensors is
 * told for those alone. */
static bool is_open(const bal_rules *self, const bal_gradient *told,
                    const bal_param *param)
{
    return self->mergekit && told->count && !strcmp(param->name, BAL_WEIGHT);
}

/* Texts that may tell a parameter, the nearest first. */
static int gather(bal_gradient *out, const bal_rules *self,
                  const bal_param *param, const json_t *const *scopes,
                  size_t count, bal_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *text =
            json_string_value(json_object_get(scopes[i], param->name));
        int rc = text ? bal_gradient_append(out, param, text, err) : 0;
        if (rc)
            return rc;
    }
    if (is_open(self, out, param))
        return 0;
    if (param->fallback)
        return bal_gradient_append(out, param, param->fallback, err);
    if (out->count)
        return 0;
    return bal_fail(err, BAL_EINVAL, "parameter '%s' is required", param->name);
}

/* The parameters that are for all inputs, or those that are for each. */
static int gather_all(bal_gradient *out, const bal_rules *self, bool per_input,
                      const json_t *const *scopes, size_t count, bal_error *err)
{
    for (size_t i = 0; i < self->param_count; i++) {
        if (self->params[i].per_input != per_input)
            continue;
        int rc = gather(&out[i], self, &self->params[i], scopes, count, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int gather_slices(bal_rules *self, const bal_recipe *recipe,
                         bal_error *err)
{
    for (size_t i = 0; i < self->slices; i++) {
        const json_t *scopes[] = { bal_recipe_slice(recipe, i)->parameters,
                                   recipe->parameters };
        int rc = gather_all(self->common + i * self->param_count, self, false,
                            scopes, 2, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int gather_inputs(bal_rules *self, const bal_recipe *recipe,
                         bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_input *input = &recipe->inputs[i];
        const json_t *scopes[] = {
            input->parameters,
            bal_recipe_slice(recipe, input->slice)->parameters,
            recipe->parameters,
        };
        self->takes[i] = !bal_recipe_apart(recipe, i) && !input->carrier;
        if (!self->takes[i])
            continue;
        int rc = gather_all(self->inputs + i * self->param_count, self, true,
                            scopes, 3, err);
        if (rc)
            return bal_within(err, rc, "input %zu", i + 1);
    }
    return 0;
}

/* Is each one number, of those that are looked at? */
static bool is_plain(const bal_rules *self)
{
    size_t all = (self->slices + self->count) * self->param_count;

    for (size_t i = 0; self->slices == 1 && i < all; i++) {
        bool common = i < self->param_count;
        const bal_gradient *told =
            common ? &self->common[i] : &self->inputs[i - self->param_count];
        double value;
        if (told->count && !bal_gradient_scalar(&value, told))
            return false;
    }
    return self->slices == 1;
}

static size_t count_params(const bal_param *params)
{
    size_t count = 0;

    while (params[count].name)
        count++;
    return count;
}

int bal_rules_init(bal_rules *out, const bal_recipe *recipe, bal_error *err)
{
    BAL_LOCAL(bal_rules)
    self = {
        .params = recipe->method->info.params,
        .param_count = count_params(recipe->method->info.params),
        .mergekit = recipe->mergekit,
        .slices = recipe->slice_count,
        .count = recipe->count,
    };

    self.common =
        calloc(self.slices * self.param_count + 1, sizeof(*self.common));
    self.inputs =
        calloc(self.count * self.param_count + 1, sizeof(*self.inputs));
    self.takes = calloc(self.count + 1, sizeof(*self.takes));
    if (!self.common || !self.inputs || !self.takes)
        return bal_fail_memory(err, "a merge's parameters");
    int rc = gather_slices(&self, recipe, err);
    if (!rc)
        rc = gather_inputs(&self, recipe, err);
    if (rc)
        return rc;
    self.plain = is_plain(&self);
    *out = self;
    self = (bal_rules){ 0 };
    return 0;
}

static void gradients_free(bal_gradient *first, size_t count)
{
    for (size_t i = 0; first && i < count; i++)
        bal_gradient_done(&first[i]);
    free(first);
}

void bal_rules_done(bal_rules *self)
{
    gradients_free(self->common, self->slices * self->param_count);
    gradients_free(self->inputs, self->count * self->param_count);
    free(self->takes);
    *self = (bal_rules){ 0 };
}

int bal_rules_weight(bal_buf *to, const bal_rules *self, size_t input,
                     bal_error *err)
{
    const bal_param *weight = bal_param_find(self->params, BAL_WEIGHT);

    if (!weight || !self->takes[input])
        return bal_buf_text(to, "1", err);
    size_t at = input * self->param_count + (size_t)(weight - self->params);
    return bal_gradient_text(to, &self->inputs[at], weight, err);
}
