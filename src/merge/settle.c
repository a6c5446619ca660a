/* A recipe is completed and judged before it is recorded: a view that was
 * committed resolves, and means the same when defaults have changed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/settings.h"
#include "merge/values.h"

/* For each kind: the space it is merged in where none is asked for, and what
 * may be asked for. */
static const struct {
    bal_kind kind;
    bal_space preferred;
    bal_space other;
} kinds[] = {
    { BAL_KIND_DELTA, BAL_SPACE_DELTA, BAL_SPACE_DELTA },
    { BAL_KIND_WEIGHTS, BAL_SPACE_WEIGHTS, BAL_SPACE_WEIGHTS },
    { BAL_KIND_ADAPTER, BAL_SPACE_PRODUCT, BAL_SPACE_FACTORS },
};

static int check_count(const bal_recipe *self, bal_error *err)
{
    const bal_method_info *info = &self->method->info;

    if (self->count < info->min_inputs)
        return bal_fail(err, BAL_EINVAL,
                        "method '%s' takes %zu input%s or more", info->name,
                        info->min_inputs, info->min_inputs == 1 ? "" : "s");
    if (info->max_inputs && self->count > info->max_inputs)
        return bal_fail(err, BAL_EINVAL, "method '%s' takes %zu inputs at most",
                        info->name, info->max_inputs);
    return 0;
}

static int check_kinds(bal_model *const *inputs, size_t count, bal_error *err)
{
    bal_kind first = bal_model_facts(inputs[0])->kind;

    for (size_t i = 1; i < count; i++) {
        bal_kind kind = bal_model_facts(inputs[i])->kind;

        if (kind == first)
            continue;
        return bal_hint(
            err,
            bal_fail(err, BAL_EINVAL,
                     "input 1 is of kind '%s', input %zu of kind '%s': they do "
                     "not mix",
                     bal_kind_name(first), i + 1, bal_kind_name(kind)),
            "deltas go with deltas, adapters with adapters");
    }
    return 0;
}

static int choose_space(bal_recipe *self, bal_kind kind, bal_error *err)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].kind != kind)
            continue;
        if (self->space == BAL_SPACE_AUTO)
            self->space = kinds[i].preferred;
        if (self->space == kinds[i].preferred || self->space == kinds[i].other)
            return 0;
    }
    return bal_fail(err, BAL_EINVAL,
                    "inputs of kind '%s' are not merged in space '%s'",
                    bal_kind_name(kind), bal_space_name(self->space));
}

/* Only sums of products are a product again. */
static int check_product(const bal_recipe *self, bal_error *err)
{
    if (self->space != BAL_SPACE_PRODUCT || self->method->share)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EUNSUPPORTED,
                             "method '%s' does not merge adapters as the maps "
                             "they are",
                             self->method->info.name),
                    "--space factors merges the factors themselves");
}

static int check_weights(const bal_recipe *self, const bal_values *values,
                         bal_error *err)
{
    if (!self->method->check)
        return 0;
    double *weights = calloc(self->count + 1, sizeof(*weights));
    if (!weights)
        return bal_fail_memory(err, "a recipe");
    for (size_t i = 0; i < self->count; i++)
        weights[i] = self->inputs[i].weight;
    int rc = self->method->check(weights, self->count, values, err);
    free(weights);
    return rc;
}

/* What is not told is told now. */
static int fill_defaults(bal_recipe *self, bal_error *err)
{
    const bal_param *param = self->method->info.params;

    for (; param->name; param++) {
        if (!strcmp(param->name, BAL_WEIGHT) || !param->fallback ||
            json_object_get(self->parameters, param->name))
            continue;
        int rc = bal_recipe_set(self, param->name, param->fallback, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_recipe_settle(bal_recipe *self, bal_model *const *inputs,
                      bal_error *err)
{
    BAL_LOCAL(bal_values) values = { 0 };
    int rc = check_count(self, err);
    if (rc)
        return rc;

    assert(self->count);
    rc = check_kinds(inputs, self->count, err);
    if (!rc)
        rc = choose_space(self, bal_model_facts(inputs[0])->kind, err);
    if (!rc)
        rc = check_product(self, err);
    if (!rc)
        rc = bal_values_init(&values, self, err);
    if (!rc)
        rc = check_weights(self, &values, err);
    if (rc)
        return rc;
    return fill_defaults(self, err);
}
