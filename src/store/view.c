/* Views in the store: recorded as a recipe, opened as a model. What a view
 * reads is looked up when it is opened, input by input, however deep views
 * stand on views. Each view reads its inputs as the tenant that it is of: one
 * of another tenant by that tenant's grant, and what stands behind it by the
 * grants that the other has. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "graph/grants.h"
#include "graph/proofs.h"
#include "merge/merge.h"
#include "store/guard.h"
#include "store/leaf_model.h"
#include "store/publish.h"
#include "store/resolve.h"
#include "store/verified.h"
#include "store/view_cache.h"

/* Bytes of decoded blocks, however many inputs there are. */
#define CACHE_MOST ((size_t)160 << 20)
/* The same on disk, where tensors are read several times over. */
#define SPILL_MOST ((size_t)1 << 30)

/* One opening of a commit, all its views included. */
typedef struct opening {
    const bal_tenant *tenant; /* as whom, at this depth */
    unsigned depth;
    unsigned inputs; /* reached so far */
    bool view;       /* is what was opened last one? */
    bool walks;      /* a view reads tensors before it merges them */
} opening;

static int open_manifest(bal_model **out, opening *self, const bal_id *manifest,
                         bal_error *err);

typedef struct manifest_job {
    const bal_tenant *tenant;
    bal_id *out;
} manifest_job;

static int keep_manifest(void *ctx, const bal_commit_row *row, bal_error *err)
{
    manifest_job *job = ctx;

    *job->out = row->manifest;
    return bal_commit_verify(job->tenant, row, err);
}

/* The manifest that a commit names. */
static int find_manifest(bal_id *out, const bal_tenant *tenant,
                         const bal_id *commit, bal_error *err)
{
    manifest_job job = { tenant, out };

    return bal_graph_commit(tenant->store->graph, tenant->number, commit,
                            keep_manifest, &job, err);
}

/* ---- inputs ------------------------------------------------------------- */

/* The models of a recipe's inputs. */
typedef struct inputs {
    bal_model **models;
    size_t count;
} inputs;

static void inputs_done(inputs *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_model_free(self->models[i]);
    free(self->models);
}

static int lost(const bal_input *input, const char *why, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &input->commit);
    return bal_fail(err, BAL_EBROKEN, "view lost its input '%s:%.12s': %s",
                    input->tenant, hex, why);
}

static int gone(const bal_store *store, const bal_input *input, bal_error *err)
{
    bool forgotten = false;
    int rc = bal_graph_forgotten(store->graph, input->tenant, BAL_TOMB_COMMIT,
                                 &input->commit, &forgotten, err);
    if (rc)
        return rc;
    return lost(input, forgotten ? "it was forgotten" : "it is no more", err);
}

/* Whose an input is: `self` itself, or another tenant by a grant that is live.
 * Without one nothing of the other is looked at. */
static int owner_of(bal_tenant *out, const bal_tenant *self,
                    const bal_input *input, bal_error *err)
{
    bal_graph *graph = self->store->graph;
    bool live = false;

    *out = *self;
    if (!strcmp(self->name, input->tenant))
        return 0;
    int rc = bal_graph_granted(graph, input->tenant, &input->manifest,
                               self->name, &live, err);
    if (rc)
        return rc;
    if (!live)
        return lost(input, "the grant is missing or revoked", err);
    memcpy(out->name, input->tenant, sizeof(out->name));
    out->number = 0;
    rc = bal_graph_tenant(graph, &out->number, out->name, 0, err);
    return rc == BAL_ENOTFOUND ? 0 : rc; /* then the commit is gone, too */
}

/* The recorded commit, still there and what it was. */
static int check_commit(const bal_tenant *owner, const bal_input *input,
                        bal_error *err)
{
    bal_id manifest;
    bal_error why = { 0 };
    int rc = find_manifest(&manifest, owner, &input->commit, &why);

    if (rc == BAL_ENOTFOUND)
        return gone(owner->store, input, err);
    if (rc)
        return bal_fail(err, rc, "%s", why.text);
    if (!bal_id_equal(&manifest, &input->manifest))
        return lost(input, "it holds something else", err);
    return 0;
}

static int open_input(bal_model **out, opening *self, const bal_input *input,
                      bal_error *err)
{
    const bal_tenant *viewer = self->tenant;
    bal_tenant owner;

    if (++self->inputs > BAL_VIEW_INPUTS_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view that reaches more than %d inputs",
                        BAL_VIEW_INPUTS_MAX);
    int rc = owner_of(&owner, viewer, input, err);
    if (!rc)
        rc = check_commit(&owner, input, err);
    if (rc)
        return rc;
    self->tenant = &owner;
    rc = open_manifest(out, self, &input->manifest, err);
    self->tenant = viewer;
    /* Forgotten since it was looked for? */
    int since = rc == BAL_ENOTFOUND ? check_commit(&owner, input, err) : 0;
    rc = since ? since : rc;
    /* What the other tenant's views stand on is for that tenant to know. */
    if (rc == BAL_EBROKEN && strcmp(viewer->name, owner.name) != 0)
        return lost(input, "it can be resolved no more", err);
    return rc;
}

/* The first input that is the same commit: a source of several slices is opened
 * once. */
static size_t first_of(const bal_recipe *recipe, size_t i)
{
    const bal_input *input = &recipe->inputs[i];
    size_t k = 0;

    while (k < i && (strcmp(recipe->inputs[k].tenant, input->tenant) != 0 ||
                     !bal_id_equal(&recipe->inputs[k].commit, &input->commit)))
        k++;
    return k;
}

static int open_inputs(inputs *out, opening *self, const bal_recipe *recipe,
                       bal_error *err)
{
    out->models = calloc(recipe->count + 1, sizeof(bal_model *));
    if (!out->models)
        return bal_fail_memory(err, "view");
    for (size_t i = 0; i < recipe->count; i++) {
        size_t k = first_of(recipe, i);
        int rc = 0;
        if (k < i)
            out->models[i] = bal_model_ref(out->models[k]);
        else
            rc = open_input(&out->models[i], self, &recipe->inputs[i], err);
        if (rc)
            return rc;
        out->count++;
    }
    return 0;
}

/* ---- opening ------------------------------------------------------------ */

static int open_view(bal_model **out, opening *self, bal_bytes text,
                     bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    BAL_OWN(bal_recipe) recipe = NULL;
    int rc = bal_view_read(&json, text, err);
    if (!rc)
        rc = bal_recipe_parse(&recipe, json, err);
    if (rc)
        return rc;

    if (self->depth == BAL_VIEW_DEPTH_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED, "views nested more than %d deep",
                        BAL_VIEW_DEPTH_MAX);
    BAL_LOCAL(inputs) models = { 0 };
    self->walks |= recipe->method->prepare != NULL;
    self->depth++;
    rc = open_inputs(&models, self, recipe, err);
    self->depth--;
    if (rc)
        return rc;
    return bal_view_open(out, recipe, models.models, self->tenant->store->work,
                         err);
}

static int open_manifest(bal_model **out, opening *self, const bal_id *manifest,
                         bal_error *err)
{
    const bal_tenant *tenant = self->tenant;
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    char hex[BAL_ID_HEX + 1];
    int rc = bal_manifest_get(&kind, &body, tenant, manifest, err);
    if (rc)
        return rc;

    bal_bytes text = { body.data, body.len };
    self->view = !strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW));
    if (self->view) {
        rc = open_view(out, self, text, err);
        self->view = true;
        return rc;
    }
    bal_id_hex(hex, manifest);
    hex[12] = '\0';
    return bal_leaf_model(out, tenant, text, hex, err);
}

/* Who merges reads a block of each input at once, and so does every thread;
 * some read all of a tensor, and then once more. */
static void keep_blocks(const opening *self)
{
    const bal_store *store = self->tenant->store;
    size_t jobs = bal_work_jobs(store->work);
    size_t size = (size_t)store->block_size;

    bal_blocks_keep(
        store->blocks,
        bal_min(((self->inputs + 1) * jobs + 1) * size, CACHE_MOST));
    if (self->walks)
        bal_blocks_spill(store->blocks, store->root, size, SPILL_MOST);
}

int bal_commit_walk(bal_model **out, bal_walked *walked,
                    const bal_tenant *tenant, const bal_id *commit,
                    bal_error *err)
{
    opening self = { .tenant = tenant };
    char hex[BAL_ID_HEX + 1];
    int rc = find_manifest(&walked->manifest, tenant, commit, err);
    if (rc)
        return rc;

    rc = open_manifest(out, &self, &walked->manifest, err);
    walked->view = self.view;
    if (!rc)
        keep_blocks(&self);
    bal_id_hex(hex, commit);
    return bal_within(err, rc, "commit '%.12s'", hex);
}

/* The epoch comes first: what is taken back during the walk makes the first
 * read walk again. */
int bal_model_from_commit(bal_model **out, bal_tenant *tenant,
                          const bal_id *commit, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    bal_model *cached = NULL;
    bal_walked walked;
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(tenant->store->graph, &epoch, err);
    if (!rc)
        rc = bal_commit_walk(&model, &walked, tenant, commit, err);
    if (rc)
        return rc;

    if (walked.view) {
        rc = bal_view_cached(&cached, tenant, &walked.manifest, epoch,
                             BAL_TAKE(model), err);
        if (rc)
            return rc;
        model = cached;
    }
    return bal_guard_open(out, tenant, commit, epoch, BAL_TAKE(model), err);
}

/* ---- recording ---------------------------------------------------------- */

int bal_input_resolve(bal_input *out, bal_tenant *tenant, const char *text,
                      bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_input_text parsed = { 0 };
    int rc = bal_input_parse(&parsed, &arena, text, err);
    if (rc)
        return rc;

    BAL_OWN(json_t) parameters = parsed.parameters;
    bal_input input = { .weight = 1 };
    bal_tenant owner = *tenant;
    bool other = parsed.tenant && strcmp(parsed.tenant, tenant->name) != 0;
    if (other)
        rc = bal_resolve_granted(&input.commit, &owner, tenant, parsed.tenant,
                                 parsed.spec, err);
    else
        rc = bal_resolve(&input.commit, tenant, parsed.spec, err);
    if (rc)
        return rc;
    rc = find_manifest(&input.manifest, &owner, &input.commit, err);
    if (rc)
        return rc;
    memcpy(input.tenant, owner.name, sizeof(input.tenant));
    *out = input;
    out->parameters = BAL_TAKE(parameters);
    return 0;
}

int bal_recipe_input(bal_recipe *self, bal_tenant *tenant, const char *text,
                     bal_error *err)
{
    bal_input input = { 0 };
    int rc = bal_input_resolve(&input, tenant, text, err);
    if (rc)
        return rc;
    rc = bal_recipe_add(self, &input, err);
    return rc ? bal_within(err, rc, "input '%s'", text) : 0;
}

int bal_recipe_base(bal_recipe *self, bal_tenant *tenant, const char *text,
                    bal_error *err)
{
    bal_input input = { 0 };
    int rc = bal_input_resolve(&input, tenant, text, err);
    if (rc)
        return rc;
    rc = bal_recipe_add_base(self, &input, err);
    return rc ? bal_within(err, rc, "base '%s'", text) : 0;
}

/* Refuse now what could not be resolved later: the recipe is settled against
 * its inputs, and the view opened once. */
static int prove(char **base_model, bal_commit_report *report,
                 bal_tenant *tenant, bal_recipe *recipe, bal_error *err)
{
    bal_work *work = tenant->store->work;
    opening self = { .tenant = tenant, .depth = 1 };
    BAL_LOCAL(inputs) models = { 0 };
    int rc = open_inputs(&models, &self, recipe, err);
    if (rc)
        return rc;
    rc = bal_recipe_settle(recipe, models.models, err);
    if (rc)
        return rc;
    BAL_OWN(bal_model) view = NULL;
    rc = bal_view_ranks(recipe, models.models, work, err);
    if (!rc)
        rc = bal_view_digests(recipe, models.models, work, err);
    if (!rc)
        rc = bal_view_open(&view, recipe, models.models, work, err);
    if (!rc)
        rc = bal_view_residual(&report->residual, &report->lossy, recipe, view,
                               models.models, work, err);
    if (rc)
        return rc;
    const char *base = bal_model_facts(view)->base_model;
    *base_model = base ? bal_str_copy(base) : NULL;
    return base && !*base_model ? bal_fail_memory(err, "view") : 0;
}

/* The rows by which it is found what a view stands on. */
static int list_inputs(bal_buf *rows, const bal_recipe *recipe, bal_error *err)
{
    for (size_t i = 0; i < recipe->count; i++) {
        const bal_input *input = &recipe->inputs[i];
        bal_input_row row = { input->tenant, input->commit, input->manifest };
        int rc = bal_buf_append(rows, &row, sizeof(row), err);
        if (rc)
            return rc;
    }
    return 0;
}

static int record(bal_commit **out, bal_tenant *tenant,
                  const bal_recipe *recipe, const char *base_model,
                  const bal_draft *draft, bal_commit_report *report,
                  bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_buf) rows = { 0 };
    BAL_OWN(json_t) json = NULL;
    int rc = bal_recipe_json(&json, recipe, err);
    if (!rc)
        rc = bal_view_write(&body, json, base_model, err);
    if (!rc)
        rc = list_inputs(&rows, recipe, err);
    if (rc)
        return rc;

    bal_manifest_row manifest = {
        .kind = bal_kind_name(BAL_KIND_VIEW),
        .body = { body.data, body.len },
        .inputs = (const bal_input_row *)(const void *)rows.data,
        .input_count = recipe->count,
    };
    bal_hash_of(&manifest.id, body.data, body.len);
    bal_publication publication = {
        .manifest = &manifest,
        .op = "merge",
        .base_model = draft->base_model ? draft->base_model : base_model,
    };
    return bal_publish(out, tenant, &publication, draft, report, err);
}

int bal_commit_view(bal_commit **out, bal_tenant *tenant, bal_recipe *recipe,
                    const bal_draft *draft, bal_commit_report *report,
                    bal_error *err)
{
    bal_commit_report none = { 0 };
    int rc = bal_draft_check(draft, err);
    if (rc)
        return rc;

    report = report ? report : &none;
    memset(report, 0, sizeof(*report));
    rc = bal_store_recover(tenant->store, err);
    if (rc)
        return rc;
    BAL_OWN(bal_db_lock) lock = NULL;
    rc = bal_store_lock(&lock, tenant->store, BAL_LOCK_SHARED, err);
    if (rc)
        return rc;
    char *base_model = NULL;
    bal_draft complete = *draft;
    rc = prove(&base_model, report, tenant, recipe, err);
    if (report->lossy)
        complete.residual = &report->residual;
    if (!rc)
        rc = record(out, tenant, recipe, base_model, &complete, report, err);
    bal_str_free(base_model);
    return rc;
}
