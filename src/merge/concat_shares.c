/* Shares of adapters in a sum of maps. */
#include <stdlib.h>

#include "core/error.h"
#include "merge/concat.h"

void bal_shares_done(bal_shares *self)
{
    bal_rules_done(&self->rules);
    bal_values_done(&self->values);
    bal_stacks_done(&self->stacks);
    free(self->places);
    free(self->weights);
}

static int count_layers(bal_shares *self, const bal_loras *adapters,
                        bal_error *err)
{
    for (size_t k = 0; k < self->count; k++) {
        for (size_t i = 0; i < adapters[k].count; i++) {
            int rc =
                bal_stacks_add(&self->stacks, adapters[k].rows[i].module, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int bal_shares_init(bal_shares *out, const bal_recipe *recipe,
                    const bal_loras *adapters, bal_error *err)
{
    BAL_LOCAL(bal_shares)
    self = { .method = recipe->method, .count = bal_recipe_merged(recipe) };
    int rc = bal_rules_init(&self.rules, recipe, err);
    if (!rc)
        rc = bal_values_room(&self.values, &self.rules, err);
    if (!rc)
        rc = count_layers(&self, adapters, err);
    if (rc)
        return rc;
    self.places = calloc(recipe->count + 1, sizeof(*self.places));
    self.weights = calloc(self.count + 1, sizeof(*self.weights));
    if (!self.places || !self.weights)
        return bal_fail_memory(err, "merging adapters");
    *out = self;
    self = (bal_shares){ 0 };
    return 0;
}

static int look_up(bal_shares *self, const char *module, bal_error *err)
{
    const bal_place place = { module, bal_stacks_depth(&self->stacks, module) };
    const bal_where where = { 0, place, self->places };

    if (self->latest && (self->rules.plain || self->latest == module))
        return 0;
    for (size_t i = 0; i < self->count; i++)
        self->places[i] = place;
    int rc = bal_values_fill(&self->values, &self->rules, &where, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < self->count; i++)
        self->weights[i] = bal_values_weight(&self->values, i);
    self->latest = module;
    return self->method->check ? self->method->check(self->weights, self->count,
                                                     &self->values, err)
                               : 0;
}

int bal_share_weight(double *out, bal_shares *self, const char *module,
                     size_t input, bal_error *err)
{
    int rc = look_up(self, module, err);

    if (rc)
        return bal_within(err, rc, "module '%s'", module);
    *out = self->weights[input];
    return 0;
}

int bal_share_of(double *out, bal_shares *self, const char *module,
                 size_t input, bal_error *err)
{
    int rc = look_up(self, module, err);

    if (rc)
        return bal_within(err, rc, "module '%s'", module);
    *out =
        self->method->share(self->weights, self->count, input, &self->values);
    return 0;
}

int bal_shares_same(bool *out, const bal_recipe *recipe, bal_error *err)
{
    BAL_LOCAL(bal_rules) rules = { 0 };
    BAL_LOCAL(bal_values) values = { 0 };
    int rc = bal_rules_init(&rules, recipe, err);

    *out = false;
    if (rc || !rules.plain || recipe->count != 1 || recipe->dtype >= 0 ||
        !recipe->method->same)
        return rc;
    rc = bal_values_init(&values, recipe, err);
    if (!rc)
        *out = recipe->method->same(bal_values_weight(&values, 0), &values);
    return rc;
}
