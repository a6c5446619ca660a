/* mergekit's configurations as views. All documents are read before anything
 * is recorded; then they go in an order in which what one names is there. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
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

/* A commit that is to be an input as it is. */
static int find_input(bal_input *out, const job *self, const char *spec,
                      bal_error *err)
{
    int rc = bal_input_resolve(out, self->tenant, spec, err);
    if (rc)
        return rc;

    bool more = json_object_size(out->parameters) != 0;
    json_decref(out->parameters);
    out->parameters = NULL;
    if (more)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is a commit with a weight or parameters", spec);
    return 0;
}

static int stands_for_none(const char *name, bal_error *err)
{
    return bal_hint(
        err, bal_fail(err, BAL_EINVAL, "'%s' stands for no commit", name),
        "--map '%s=SPEC'", name);
}

/* What a model's name stands for, NULL: nothing. */
static const char *spec_of(const job *self, const char *name)
{
    const document *other = named(self, name);

    return other ? other->id
                 : bal_mergekit_spec(self->import->map, self->import->map_count,
                                     name);
}

/* The model of "model+adapter", in the arena. */
static int split_name(char **model, const char **adapter, bal_arena *arena,
                      const char *name, bal_error *err)
{
    size_t len = strcspn(name, "+");

    *model = bal_arena_copy(arena, name, len);
    *adapter = name + len + 1;
    return *model ? 0 : bal_fail_memory(err, "a configuration");
}

/* An adapter goes onto a model that is found when all inputs are there. */
static int find_model(bal_input *out, const job *self,
                      const bal_mergekit_model *model, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    const char *spec = spec_of(self, model->name);
    const char *adapter = model->name;
    bool onto = !spec && model->adapter;
    char *under;
    int rc = 0;

    if (onto) {
        rc = split_name(&under, &adapter, &arena, model->name, err);
        if (rc)
            return rc;
        spec = spec_of(self, adapter);
    }
    rc =
        spec ? find_input(out, self, spec, err) : stands_for_none(adapter, err);
    out->adapter = onto;
    return rc;
}

static int add_model(bal_recipe *recipe, const job *self,
                     const bal_mergekit *plan, size_t i, bal_error *err)
{
    const bal_mergekit_model *model = &plan->models[i];
    bal_input input = { .weight = 1 };
    int rc = find_model(&input, self, model, err);
    if (rc)
        return bal_within(err, rc, "model '%s'", model->name);

    input.weight = 1;
    input.slice = model->slice;
    input.first = model->first;
    input.end = model->end;
    input.parameters = json_incref(model->parameters);
    rc = bal_recipe_add(recipe, &input, err);
    if (rc)
        return bal_within(err, rc, "model '%s'", model->name);
    if (i == plan->slices[model->slice].base)
        recipe->slices[model->slice].base = recipe->count - 1;
    return 0;
}

/* An input that is this commit as it is, or one more that carries. */
static int find_carrier(size_t *out, bal_recipe *recipe, const bal_input *input,
                        bal_error *err)
{
    for (size_t i = 0; i < recipe->count; i++) {
        const bal_input *other = &recipe->inputs[i];
        *out = i;
        if (!other->adapter && !strcmp(other->tenant, input->tenant) &&
            bal_id_equal(&other->commit, &input->commit))
            return 0;
    }
    bal_input carrier = *input;
    carrier.carrier = true;
    carrier.weight = 1;
    *out = recipe->count;
    return bal_recipe_add(recipe, &carrier, err);
}

static int put_onto(bal_recipe *recipe, const job *self, const char *name,
                    size_t i, bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_input under = { 0 };
    const char *adapter;
    char *model;
    size_t onto;
    int rc = split_name(&model, &adapter, &arena, name, err);
    if (rc)
        return rc;
    const char *spec = spec_of(self, model);
    rc = spec ? find_input(&under, self, spec, err)
              : stands_for_none(model, err);
    if (!rc)
        rc = find_carrier(&onto, recipe, &under, err);
    if (!rc)
        recipe->inputs[i].onto = onto;
    return rc;
}

static int add_models(bal_recipe *recipe, const job *self,
                      const bal_mergekit *plan, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && plan->sliced && i < plan->slice_count; i++)
        rc = bal_recipe_add_slice(recipe,
                                  json_incref(plan->slices[i].parameters), err);
    for (size_t i = 0; !rc && i < plan->count; i++)
        rc = add_model(recipe, self, plan, i, err);
    for (size_t i = 0; !rc && i < plan->count; i++) {
        if (recipe->inputs[i].adapter)
            rc = put_onto(recipe, self, plan->models[i].name, i, err);
    }
    return rc;
}

/* 'dtype', to which mergekit casts the inputs, and 'out_dtype', to which it
 * casts the result. Where one rounding is all there is, the last one counts. */
static int set_dtypes(bal_recipe *recipe, const bal_mergekit *plan,
                      bal_error *err)
{
    const char *in = plan->dtype;
    const char *out = plan->out_dtype;

    if (!recipe->mergekit) {
        in = out ? out : in;
        out = NULL;
    }
    if (in && out && !strcmp(in, out) && !plan->method->f32)
        out = NULL;
    int rc = in ? bal_recipe_set(recipe, "dtype", in, err) : 0;
    return rc || !out ? rc : bal_recipe_set(recipe, "out_dtype", out, err);
}

/* precise has a default for a weight. */
static int check_partial(const bal_recipe *recipe, const bal_mergekit *plan,
                         bal_error *err)
{
    if (recipe->mergekit || !plan->partial)
        return 0;
    return bal_fail(err, BAL_EINVAL, "a weight for some tensors only");
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
    if (!rc)
        rc = check_partial(recipe, plan, err);
    recipe->vocabulary = json_incref(plan->vocabulary);
    json_object_foreach(plan->parameters, name, text)
    {
        if (!rc)
            rc = bal_recipe_set(recipe, name, json_string_value(text), err);
    }
    if (rc || !self->import->stream || !plan->method->draws)
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
    if (!rc)
        rc = add_models(recipe, self, plan, err);
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

/* Is every model something, before anything is recorded? */
static int look_up_all(const job *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_mergekit *plan = &self->documents[i].plan;
        for (size_t k = 0; k < plan->count; k++) {
            const bal_mergekit_model *model = &plan->models[k];
            bal_input input = { 0 };
            if (named(self, model->name))
                continue;
            int rc = find_model(&input, self, model, err);
            if (rc)
                return bal_within(err, rc, "model '%s'", model->name);
        }
    }
    return 0;
}

static int record_all(bal_commit **out, job *self, bal_error *err)
{
    BAL_OWN(bal_commit) last = NULL;
    int rc = look_up_all(self, err);

    if (rc)
        return rc;

    for (size_t i = 0; i < self->count; i++) {
        document *doc = next(self);
        BAL_OWN(bal_commit) made = NULL;
        if (!doc)
            return bal_fail(err, BAL_EINVAL,
                            "documents that name each other in a circle");
        rc = record(&made, self, doc, err);
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
