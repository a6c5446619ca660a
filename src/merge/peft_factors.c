/* Factors merged one by one, as add_weighted_adapter of PEFT 0.21.2 does. The
 * tensors are those of a view of the adapters, whose weights are told by names
 * of factors; around them stands an adapter whose scales are 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "merge/concat.h"
#include "merge/peft_types.h"

typedef struct factors {
    bal_model model;
    bal_model *merged; /* tensors */
    bal_model *files;  /* the first adapter */
    bal_loras *adapters;
    size_t count;
    bal_joined *modules;
    size_t module_count;
    bal_dtype dtype;
    bal_buf config;
} factors;

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "merging adapters");
}

/* ---- reading ------------------------------------------------------------ */

static int factors_read(bal_model *model, size_t i, uint64_t offset, void *to,
                        size_t len, bal_error *err)
{
    factors *self = (factors *)model;
    size_t index;
    bal_made what = bal_made_of(&index, model, i);

    if (what == BAL_MADE_CONFIG) {
        memcpy(to, self->config.data + offset, len);
        return 0;
    }
    if (what == BAL_MADE_OTHER)
        return bal_model_read(self->files, index, offset, to, len, err);
    const char *name = bal_model_at(model, i)->name;
    size_t at = bal_model_find(self->merged, BAL_PART_TENSOR, name);
    return bal_model_read(self->merged, at, offset, to, len, err);
}

static void factors_free(bal_model *model)
{
    factors *self = (factors *)model;

    for (size_t i = 0; self->adapters && i < self->count; i++)
        bal_loras_done(&self->adapters[i]);
    free(self->adapters);
    free(self->modules);
    bal_buf_done(&self->config);
    bal_model_free(self->merged);
    bal_model_free(self->files);
}

static const bal_model_ops factors_ops = {
    .read = factors_read,
    .free = factors_free,
};

/* ---- modules ------------------------------------------------------------ */

static const bal_lora *first_of(const factors *self, const char *module,
                                size_t until)
{
    const bal_lora *found = NULL;

    for (size_t k = 0; k < until && !found; k++)
        found = bal_loras_find(&self->adapters[k], module);
    return found;
}

static int add_module(factors *self, const bal_lora *lora, size_t input,
                      bal_error *err)
{
    const bal_lora *before = first_of(self, lora->module, input);

    if (!before) {
        self->modules[self->module_count++] =
            (bal_joined){ .module = lora->module,
                          .rank = lora->rank,
                          .in = lora->in,
                          .out = lora->out,
                          .embedding = lora->embedding };
        return 0;
    }
    if (before->rank == lora->rank && before->in == lora->in &&
        before->out == lora->out && before->embedding == lora->embedding)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "module '%s' of input %zu is of rank %llu, before "
                             "it was of rank %llu: factors of different shapes "
                             "do not merge",
                             lora->module, input + 1,
                             (unsigned long long)lora->rank,
                             (unsigned long long)before->rank),
                    "--space product --rank R merges the maps");
}

static int find_modules(factors *self, bal_error *err)
{
    size_t most = 0;

    for (size_t k = 0; k < self->count; k++)
        most += self->adapters[k].count;
    self->modules = calloc(most + 1, sizeof(*self->modules));
    if (!self->modules)
        return no_memory(err);
    for (size_t k = 0; k < self->count; k++) {
        for (size_t i = 0; i < self->adapters[k].count; i++) {
            int rc = add_module(self, &self->adapters[k].rows[i], k, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}

static void choose_dtype(factors *self, bal_model *const *inputs, int asked)
{
    int dtype = asked;

    for (size_t k = 0; k < self->count && asked < 0; k++)
        dtype = bal_loras_join(dtype, &self->adapters[k], inputs[k]);
    self->dtype = dtype >= 0 ? (bal_dtype)dtype : BAL_F32;
}

static int read_adapters(factors *self, bal_model *const *inputs,
                         bal_error *err)
{
    for (size_t k = 0; k < self->count; k++) {
        bal_loras *adapter = &self->adapters[k];
        int rc = bal_loras_read(adapter, inputs[k], err);
        if (rc)
            return bal_within(err, rc, "input %zu", k + 1);
    }
    return bal_wholes_check(self->adapters, inputs, self->count, err);
}

/* ---- weights ------------------------------------------------------------ */

/* "NAME:WEIGHT;" for a factor; a name that says something else to who reads
 * weights is refused. */
static int tell_factor(bal_buf *to, const char *name, double weight,
                       bal_error *err)
{
    char number[32];

    if (strpbrk(name, ":;*"))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s': no weight can be told by such a name",
                        name);
    bal_f64_text(number, weight);
    return bal_buf_format(to, err, "%s%s:%s", to->len ? ";" : "", name, number);
}

static int tell_weights(bal_buf *to, const factors *self, bal_shares *shares,
                        const bal_model *input, size_t k, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->adapters[k].count && !rc; i++) {
        const bal_lora *lora = &self->adapters[k].rows[i];
        double weight;
        rc = bal_share_weight(&weight, shares, lora->module, k, err);
        if (rc)
            break;
        weight *= lora->scale;
        double root = sqrt(fabs(weight));
        rc = tell_factor(to, bal_model_at(input, lora->a)->name,
                         weight < 0 ? -root : root, err);
        if (!rc)
            rc = tell_factor(to, bal_model_at(input, lora->b)->name, root, err);
    }
    return rc;
}

/* A copy of the recipe whose inputs weigh what their factors do. */
typedef struct weighed {
    bal_recipe recipe;
    bal_input *inputs;
    size_t count;
} weighed;

static void weighed_done(weighed *self)
{
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->inputs[i].parameters);
    free(self->inputs);
}

static int weigh(weighed *out, const factors *self, const bal_recipe *recipe,
                 bal_model *const *inputs, bal_error *err)
{
    BAL_LOCAL(bal_shares) shares = { 0 };
    int rc = bal_shares_init(&shares, recipe, self->adapters, err);
    if (rc)
        return rc;

    out->recipe = *recipe;
    out->inputs = calloc(self->count + 1, sizeof(*out->inputs));
    if (!out->inputs)
        return no_memory(err);
    out->recipe.inputs = out->inputs;
    out->recipe.count = self->count;
    out->recipe.dtype = (int)self->dtype;
    for (size_t k = 0; k < self->count && !rc; k++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        rc = tell_weights(&text, self, &shares, inputs[k], k, err);
        if (rc)
            break;
        bal_input *input = &out->inputs[k];
        *input = recipe->inputs[k];
        input->parameters = input->parameters ? bal_json_copy(input->parameters)
                                              : json_object();
        out->count++;
        if (!input->parameters ||
            json_object_set_new(input->parameters, BAL_WEIGHT,
                                json_string(bal_buf_string(&text))))
            rc = no_memory(err);
    }
    return rc;
}

/* ---- opening ------------------------------------------------------------ */

static int merge_tensors(factors *self, const bal_recipe *recipe,
                         bal_model *const *inputs, bal_view_open_fn *open,
                         bal_error *err)
{
    BAL_LOCAL(weighed) copy = { 0 };
    int rc = weigh(&copy, self, recipe, inputs, err);

    return rc ? rc : open(&self->merged, &copy.recipe, inputs, err);
}

/* Every factor is there, in the dtype that they have in common. */
static int check_merged(const factors *self, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(&self->model); i++) {
        const bal_tensor *entry = bal_model_at(&self->model, i);
        if (entry->part != BAL_PART_TENSOR)
            continue;
        size_t at = bal_model_find(self->merged, BAL_PART_TENSOR, entry->name);
        if (at == BAL_NONE ||
            bal_model_at(self->merged, at)->size != entry->size)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' has another name in one adapter than "
                            "in another",
                            entry->name);
    }
    return 0;
}

static int list(factors *self, bal_model *const *inputs, bal_error *err)
{
    bal_facts facts = *bal_model_facts(inputs[0]);
    const bal_entries entries = {
        .modules = self->modules,
        .count = self->module_count,
        .dtype = self->dtype,
        .config = &self->config,
        .files = self->files,
    };
    int rc = bal_concat_config(&self->config, self->adapters, self->count,
                               self->modules, self->module_count, err);
    if (!rc)
        rc = bal_entries_add(&self->model, &entries, err);
    if (!rc)
        rc = bal_wholes_pass(&self->model, &self->adapters[0], inputs[0], err);
    facts.name = "view";
    if (!rc)
        rc = bal_model_tell(&self->model, &facts, err);
    if (!rc)
        rc = bal_model_ready(&self->model, err);
    return rc ? rc : check_merged(self, err);
}

int bal_peft_factors(bal_model **out, const bal_recipe *recipe,
                     bal_model *const *inputs, bal_view_open_fn *open,
                     bal_error *err)
{
    factors *self = bal_model_alloc(sizeof(*self), &factors_ops);
    if (!self)
        return no_memory(err);
    BAL_OWN(bal_model) model = &self->model;
    if (recipe->slices[0].base != BAL_NONE)
        return bal_fail(err, BAL_EINVAL,
                        "factors merged as PEFT does take no base");
    self->count = bal_recipe_merged(recipe);
    self->files = bal_model_ref(inputs[0]);
    self->adapters = calloc(self->count + 1, sizeof(*self->adapters));
    int rc = self->adapters ? 0 : no_memory(err);

    if (!rc)
        rc = read_adapters(self, inputs, err);
    if (!rc)
        rc = find_modules(self, err);
    if (!rc)
        choose_dtype(self, inputs, recipe->dtype);
    if (!rc)
        rc = merge_tensors(self, recipe, inputs, open, err);
    if (!rc)
        rc = list(self, inputs, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
