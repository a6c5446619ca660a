/* mergekit's configurations as views. All documents are read before anything
 * is recorded; then they go in an order in which what one names is there. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/mergekit.h"
#include "merge/settings.h"
#include "store/mergekit_names.h"
#include "store/publish.h"
#include "store/resolve.h"

#define DOCUMENTS_MAX 64

typedef struct document {
    bal_mergekit plan;
    char id[BAL_ID_HEX + 1]; /* of its view; "": not recorded yet */
} document;

typedef struct job {
    bal_tenant *tenant;
    const bal_import *import;
    const bal_draft *draft;
    document *documents;
    size_t count;
} job;

static void job_done(job *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_mergekit_done(&self->documents[i].plan);
    free(self->documents);
}

/* ---- documents that name each other ------------------------------------- */

/* The document that a model's name is the name of, NULL: none. A single one is
 * named by nothing. */
static document *named(const job *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        const char *own = self->documents[i].plan.name;
        if (self->count > 1 && own && !strcmp(own, name))
            return &self->documents[i];
    }
    return NULL;
}

static int check_names(const job *self, bal_error *err)
{
    size_t nameless = 0;

    for (size_t i = 0; self->count > 1 && i < self->count; i++) {
        const char *name = self->documents[i].plan.name;
        nameless += !name;
        if (nameless > 1)
            return bal_fail(err, BAL_EINVAL, "two documents without a 'name'");
        int rc = name ? bal_ref_check(name, err) : 0;
        if (rc)
            return rc;
        if (name && named(self, name) != &self->documents[i])
            return bal_fail(err, BAL_EINVAL, "two documents named '%s'", name);
    }
    if (self->count > 1 && !nameless && self->draft->ref)
        return bal_fail(err, BAL_EINVAL,
                        "every document has a name: none is for ref '%s'",
                        self->draft->ref);
    return 0;
}

/* Is all recorded that it names? */
static bool is_ready(const job *self, const document *doc)
{
    for (size_t i = 0; i < doc->plan.count; i++) {
        const document *other = named(self, doc->plan.models[i].name);
        if (other && !other->id[0])
            return false;
    }
    return true;
}

/* ---- a recipe ----------------------------------------------------------- */

/* What a model's name stands for. */
static int spec_of(const char **out, const job *self,
                   const bal_mergekit_model *model, bal_error *err)
{
    const document *other = named(self, model->name);

    *out = other ? other->id
                 : bal_mergekit_spec(self->import->map, self->import->map_count,
                                     model->name);
    if (*out)
        return 0;
    if (model->adapter)
        return bal_hint(err,
                        bal_fail(err, BAL_EUNSUPPORTED,
                                 "model '%s': an adapter is not put onto a "
                                 "model here",
                                 model->name),
                        "--map '%s=SPEC' of a commit that is both",
                        model->name);
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL, "model '%s' stands for no commit",
                             model->name),
                    "--map '%s=SPEC'", model->name);
}

/* The layers that a model has, by its tensors' names. */
static uint64_t count_layers(const bal_model *model)
{
    uint64_t count = 0;

    for (size_t i = 0; i < bal_model_count(model); i++) {
        const bal_tensor *tensor = bal_model_at(model, i);
        uint64_t layer;
        if (tensor->part == BAL_PART_TENSOR &&
            bal_mergekit_layer(&layer, tensor->name) && layer >= count)
            count = layer + 1;
    }
    return count;
}

/* A slice is of all layers, or it is not one that can be taken. */
static int check_layers(const job *self, const bal_mergekit *plan,
                        const bal_input *input, const char *name,
                        bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    bal_tenant *tenant = self->tenant;

    if (!plan->layers || strcmp(input->tenant, tenant->name) != 0)
        return 0;
    int rc = bal_model_from_commit(&model, tenant, &input->commit, err);
    if (rc)
        return rc;
    uint64_t layers = count_layers(model);
    if (layers == plan->layers)
        return 0;
    if (layers < plan->layers)
        return bal_fail(err, BAL_EINVAL,
                        "'layer_range' of %llu layers, and model '%s' has %llu",
                        (unsigned long long)plan->layers, name,
                        (unsigned long long)layers);
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "'slices' that are not of all %llu layers of model '%s'",
                    (unsigned long long)layers, name);
}

static int add_model(bal_recipe *recipe, const job *self,
                     const bal_mergekit *plan, size_t i, bal_error *err)
{
    const bal_mergekit_model *model = &plan->models[i];
    bool apart = i == plan->base && plan->method->role != BAL_ROLE_NONE;
    bal_input input = { 0 };
    const char *spec;
    int rc = spec_of(&spec, self, model, err);
    if (!rc)
        rc = bal_input_resolve(&input, self->tenant, spec, err);
    if (rc)
        return bal_within(err, rc, "model '%s'", model->name);

    bool more = json_object_size(input.parameters) != 0;
    json_decref(input.parameters);
    input.parameters = NULL;
    if (more)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is a commit with a weight or parameters", spec);
    rc = check_layers(self, plan, &input, model->name, err);
    if (rc)
        return rc;
    input.weighted = apart;
    input.parameters = json_incref(model->parameters);
    rc = bal_recipe_add(recipe, &input, err);
    if (rc)
        return bal_within(err, rc, "model '%s'", model->name);
    if (i == plan->base)
        recipe->base = recipe->count - 1;
    return 0;
}

/* What mergekit makes of 'dtype', to which inputs are cast, and 'out_dtype', to
 * which the result is. A few methods give F32 whatever 'dtype' says. */
static int set_dtypes(bal_recipe *recipe, const bal_mergekit *plan,
                      bal_error *err)
{
    const char *in = plan->dtype;
    const char *out = plan->out_dtype;
    bool f32 = plan->method->f32 && in && !out && in[0] != 'F';

    if (!recipe->mergekit)
        in = out ? out : in;
    else if (f32 || (plan->method->f32 && in && !out && !strcmp(in, "F16")))
        out = "F32";
    int rc = in ? bal_recipe_set(recipe, "dtype", in, err) : 0;
    if (rc || !recipe->mergekit || !out || (in && !strcmp(in, out)))
        return rc;
    if (!bal_recipe_setting("out_dtype"))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a result in another dtype ('out_dtype' %s) than "
                        "'dtype'",
                        out);
    return bal_recipe_set(recipe, "out_dtype", out, err);
}

static int set_common(bal_recipe *recipe, const job *self,
                      const bal_mergekit *plan, bal_error *err)
{
    const char *arithmetic = self->import->arithmetic;
    const char *name;
    json_t *text;
    int rc = bal_recipe_set(recipe, "arithmetic",
                            arithmetic ? arithmetic : "mergekit", err);
    if (!rc)
        rc = bal_recipe_set(recipe, "space", "weights", err);
    /* mergekit refuses models that lack a tensor of another. */
    if (!rc)
        rc = bal_recipe_set(recipe, "strict", "true", err);
    if (!rc)
        rc = set_dtypes(recipe, plan, err);
    json_object_foreach(plan->parameters, name, text)
    {
        if (!rc)
            rc = bal_recipe_set(recipe, name, json_string_value(text), err);
    }
    if (rc || !self->import->stream)
        return rc;
    return bal_recipe_set(recipe, "mergekit_stream", self->import->stream, err);
}

/* ---- recording ---------------------------------------------------------- */

static int record(bal_commit **out, const job *self, document *doc,
                  bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    const bal_mergekit *plan = &doc->plan;
    bal_draft draft = *self->draft;
    int rc = bal_recipe_new(&recipe, plan->method->info.name, err);
    if (!rc)
        rc = set_common(recipe, self, plan, err);
    for (size_t i = 0; !rc && i < plan->count; i++)
        rc = add_model(recipe, self, plan, i, err);
    if (rc)
        return rc;
    if (self->count > 1 && plan->name) {
        draft.ref = plan->name;
        draft.parent = NULL;
        draft.expect = NULL;
    }
    rc = bal_commit_view(out, self->tenant, recipe, &draft, NULL, err);
    if (rc)
        return rc;
    bal_id_hex(doc->id, &bal_commit_info_of(*out)->id);
    if (self->import->each)
        self->import->each(self->import->ctx, *out,
                           draft.ref ? draft.ref : "main");
    return 0;
}

/* The first that is ready, the one without a name after all others. NULL:
 * there is none. */
static document *next(const job *self)
{
    document *last = NULL;

    for (size_t i = 0; i < self->count; i++) {
        document *doc = &self->documents[i];
        if (doc->id[0] || !is_ready(self, doc))
            continue;
        if (doc->plan.name)
            return doc;
        last = doc;
    }
    return last;
}

static int record_all(bal_commit **out, job *self, bal_error *err)
{
    BAL_OWN(bal_commit) last = NULL;

    for (size_t i = 0; i < self->count; i++) {
        document *doc = next(self);
        BAL_OWN(bal_commit) made = NULL;
        if (!doc)
            return bal_fail(err, BAL_EINVAL,
                            "documents that name each other in a circle");
        int rc = record(&made, self, doc, err);
        if (rc)
            return doc->plan.name && self->count > 1
                       ? bal_within(err, rc, "document '%s'", doc->plan.name)
                       : rc;
        bal_commit_free(last);
        last = BAL_TAKE(made);
    }
    *out = BAL_TAKE(last);
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

static void tell_not_used(const job *self, const bal_mergekit *plan)
{
    const bal_import *import = self->import;
    size_t i;
    json_t *text;

    if (!import->not_used)
        return;
    if (plan->name && self->count == 1)
        import->not_used(import->ctx, "name");
    json_array_foreach(plan->not_used, i, text)
    {
        if (import->not_used(import->ctx, json_string_value(text)))
            return;
    }
}

static int read_all(job *self, const bal_yaml *yaml, bal_error *err)
{
    if (!yaml->count)
        return bal_fail(err, BAL_EINVAL, "there is nothing in it");
    if (yaml->count > DOCUMENTS_MAX)
        return bal_fail(err, BAL_EINVAL, "more than %d documents",
                        DOCUMENTS_MAX);
    self->documents = calloc(yaml->count, sizeof(*self->documents));
    if (!self->documents)
        return bal_fail_memory(err, "a configuration");
    for (size_t i = 0; i < yaml->count; i++) {
        int rc = bal_mergekit_read(&self->documents[i].plan, yaml->documents[i],
                                   err);
        if (rc)
            return rc;
        self->count++;
    }
    return check_names(self, err);
}

int bal_import_mergekit(bal_commit **out, bal_tenant *tenant,
                        const bal_import *import, const bal_draft *draft,
                        bal_error *err)
{
    BAL_LOCAL(bal_yaml) yaml = { 0 };
    BAL_LOCAL(job)
    self = { .tenant = tenant, .import = import, .draft = draft };
    int rc =
        bal_yaml_parse(&yaml, import->text, import->size, import->what, err);
    if (rc)
        return rc;

    rc = read_all(&self, &yaml, err);
    if (!rc)
        rc = bal_mergekit_map_check(import->map, import->map_count, err);
    if (!rc)
        rc = record_all(out, &self, err);
    if (rc)
        return bal_within(err, rc, "%s", import->what);
    for (size_t i = 0; i < self.count; i++)
        tell_not_used(&self, &self.documents[i].plan);
    return 0;
}
