/* What is done to a view's inputs before they are merged; each step gives
 * models that stand in front of models. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "merge/view.h"
#include "merge/vocab.h"
#include "model/arithmetic.h"
#include "model/fold.h"

void bal_dressed_done(bal_dressed *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_model_free(self->models[i]);
    free(self->models);
    *self = (bal_dressed){ 0 };
}

/* What an input does to the model that all are made differences to. */
static int subtract(bal_model **out, bal_model *input, bal_model *origin,
                    bal_work *work, bal_error *err)
{
    switch (bal_model_facts(input)->kind) {
    case BAL_KIND_ADAPTER:
        return bal_fold_minus(out, origin, input, work, err);
    case BAL_KIND_WEIGHTS:
        return bal_minus_unproved(out, input, origin, work, err);
    default:
        *out = bal_model_ref(input);
        return 0;
    }
}

static int dress_one(bal_model **out, const bal_recipe *recipe,
                     bal_model *const *inputs, size_t i, bal_work *work,
                     bal_error *err)
{
    const bal_input *input = &recipe->inputs[i];
    size_t origin = bal_recipe_origin(recipe);

    if (origin != BAL_NONE && i != origin)
        return subtract(out, inputs[i], inputs[origin], work, err);
    if (input->adapter)
        return bal_fold_open(out, inputs[input->onto], inputs[i], work, err);
    *out = bal_model_ref(inputs[i]);
    return 0;
}

static int dress_all(bal_dressed *to, const bal_recipe *recipe,
                     bal_model *const *inputs, bal_work *work, bal_error *err)
{
    for (size_t i = 0; i < recipe->count; i++) {
        int rc = dress_one(&to->models[i], recipe, inputs, i, work, err);
        if (rc)
            return bal_within(err, rc, "input %zu", i + 1);
        to->count++;
    }
    return 0;
}

/* ---- vocabularies ------------------------------------------------------- */

/* mergekit casts what it loads; rows are made of that. */
static int cast_all(bal_dressed *models, const bal_recipe *recipe,
                    bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < models->count; i++) {
        bal_model *cast = NULL;
        rc = bal_model_cast(&cast, models->models[i], (bal_dtype)recipe->dtype,
                            err);
        if (rc)
            break;
        bal_model_free(models->models[i]);
        models->models[i] = cast;
    }
    return rc;
}

/* A model that is the source of several slices is one model, whose tokens count
 * once. */
typedef struct unique {
    bal_model **from; /* one for each model, borrowed */
    bal_model **to;
    size_t *of; /* for each input: which model it is */
    size_t count;
} unique;

static void unique_done(unique *self)
{
    for (size_t i = 0; self->to && i < self->count; i++)
        bal_model_free(self->to[i]);
    free(self->from);
    free(self->to);
    free(self->of);
}

static bool same_model(const bal_input *a, const bal_input *b)
{
    return !strcmp(a->tenant, b->tenant) &&
           bal_id_equal(&a->commit, &b->commit) && a->adapter == b->adapter &&
           (!a->adapter || a->onto == b->onto);
}

static int find_unique(unique *self, const bal_dressed *models,
                       const bal_recipe *recipe, bal_error *err)
{
    size_t merged = bal_recipe_merged(recipe);

    self->from = calloc(merged, sizeof(bal_model *));
    self->to = calloc(merged, sizeof(bal_model *));
    self->of = calloc(merged, sizeof(*self->of));
    if (!self->from || !self->to || !self->of)
        return bal_fail_memory(err, "a vocabulary");
    for (size_t i = 0; i < merged; i++) {
        size_t k = 0;
        while (k < i && !same_model(&recipe->inputs[k], &recipe->inputs[i]))
            k++;
        self->of[i] = k < i ? self->of[k] : self->count;
        if (k == i)
            self->from[self->count++] = models->models[i];
    }
    return 0;
}

/* Tokens are of inputs in the recipe, of models here. */
static void point(const unique *self, bal_vocab_want *want)
{
    want->input = self->of[want->input];
    for (size_t i = 0; i < want->count; i++)
        want->tokens[i].input = self->of[want->tokens[i].input];
}

static int put_words(bal_dressed *models, const bal_recipe *recipe,
                     bal_error *err)
{
    BAL_LOCAL(bal_vocab_want) want = { 0 };
    BAL_LOCAL(unique) one = { 0 };
    size_t base = recipe->slices[0].base;
    int rc = bal_vocab_want_parse(&want, recipe->vocabulary,
                                  bal_recipe_merged(recipe), err);
    if (!rc)
        rc = find_unique(&one, models, recipe, err);
    if (rc)
        return rc;
    point(&one, &want);
    want.mergekit = recipe->mergekit;
    rc = bal_vocab_open(one.to, &want, one.from, one.count,
                        base == BAL_NONE ? BAL_NONE : one.of[base], err);
    if (rc)
        return rc;
    for (size_t i = 0; i < bal_recipe_merged(recipe); i++) {
        bal_model_free(models->models[i]);
        models->models[i] = bal_model_ref(one.to[one.of[i]]);
    }
    return 0;
}

int bal_view_dress(bal_dressed *out, const bal_recipe *recipe,
                   bal_model *const *inputs, bal_work *work, bal_error *err)
{
    BAL_LOCAL(bal_dressed) self = { 0 };

    self.models = calloc(recipe->count, sizeof(bal_model *));
    if (!self.models)
        return bal_fail_memory(err, "a view");
    int rc = dress_all(&self, recipe, inputs, work, err);
    if (!rc && recipe->vocabulary && recipe->mergekit && recipe->dtype >= 0)
        rc = cast_all(&self, recipe, err);
    if (!rc && recipe->vocabulary)
        rc = put_words(&self, recipe, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_dressed){ 0 };
    return 0;
}
