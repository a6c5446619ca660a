/* fsck of views: is what they stand on there, as deep as views stand on views?
 * (That their rows name what their recipes do, the graph checks itself.) A view
 * that lost an input because somebody forgot or revoked it is as it should be;
 * one that lost it without a trace of that is a finding. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "graph/grants.h"
#include "graph/proofs.h"
#include "merge/merge.h"
#include "store/fsck.h"
#include "store/manifest.h"

/* What one input of a view has come to. */
typedef struct loss {
    bool lost;
    bool expected;
    char why[320];
} loss;

typedef struct view_walk {
    bal_fsck_run *run;
    unsigned depth;
    unsigned inputs; /* reached so far */
} view_walk;

/* Who reads an input: a tenant by name and number (0: not in the graph). */
typedef struct reader {
    char name[65];
    int64_t number;
} reader;

static int walk_view(view_walk *self, const reader *viewer, bal_bytes text,
                     loss *out, bal_error *err);

static void lose(loss *out, const bal_input *input, const char *why,
                 bool expected)
{
    char hex[BAL_ID_HEX + 1];

    /* What nobody has done says more than what somebody has. */
    if (out->lost && !out->expected)
        return;
    bal_id_hex(hex, &input->commit);
    out->lost = true;
    out->expected = expected;
    snprintf(out->why, sizeof(out->why), "its input %s:%.12s %s", input->tenant,
             hex, why);
}

/* ---- one input ---------------------------------------------------------- */

static int was_forgotten(const view_walk *self, const bal_input *input,
                         bool *forgotten, bal_error *err)
{
    bal_graph *graph = self->run->store->graph;
    int rc = bal_graph_forgotten(graph, input->tenant, BAL_TOMB_COMMIT,
                                 &input->commit, forgotten, err);
    if (rc || *forgotten)
        return rc;
    return bal_graph_forgotten(graph, input->tenant, BAL_TOMB_MANIFEST,
                               &input->manifest, forgotten, err);
}

typedef struct grant_job {
    const reader *viewer;
    const bal_input *input;
    bool revoked;
} grant_job;

static int see_grant(void *ctx, const bal_grant_info *grant, bal_error *err)
{
    grant_job *job = ctx;

    (void)err;
    if (grant->revoked_at && !strcmp(grant->owner, job->input->tenant) &&
        !strcmp(grant->grantee, job->viewer->name) &&
        bal_id_equal(&grant->manifest, &job->input->manifest))
        job->revoked = true;
    return 0;
}

static int check_grant(const view_walk *self, const reader *viewer,
                       const bal_input *input, loss *out, bal_error *err)
{
    bal_graph *graph = self->run->store->graph;
    grant_job job = { viewer, input, false };
    bool live = !strcmp(viewer->name, input->tenant);
    bool forgotten = false;
    int rc = live ? 0
                  : bal_graph_granted(graph, input->tenant, &input->manifest,
                                      viewer->name, &live, err);
    if (rc || live)
        return rc;

    rc = bal_graph_grants(graph, viewer->name, see_grant, &job, err);
    if (!rc)
        rc = was_forgotten(self, input, &forgotten, err);
    if (rc)
        return rc;
    if (job.revoked)
        lose(out, input, "is granted no more", true);
    else if (forgotten)
        lose(out, input, "was forgotten, and its grant with it", true);
    else
        lose(out, input, "has no grant, and none was revoked", false);
    return 0;
}

static int find_owner(const view_walk *self, reader *owner,
                      const bal_input *input, bal_error *err)
{
    bal_error why = { 0 };

    memcpy(owner->name, input->tenant, sizeof(owner->name));
    owner->number = 0;
    int rc = bal_graph_tenant(self->run->store->graph, &owner->number,
                              owner->name, 0, &why);
    return rc && rc != BAL_ENOTFOUND ? bal_fail(err, rc, "%s", why.text) : 0;
}

static int keep_manifest(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)err;
    *(bal_id *)ctx = row->manifest;
    return 0;
}

static int check_commit(const view_walk *self, const reader *owner,
                        const bal_input *input, loss *out, bal_error *err)
{
    bal_error why = { 0 };
    bal_id manifest;
    bool forgotten = false;
    int rc = bal_graph_commit(self->run->store->graph, owner->number,
                              &input->commit, keep_manifest, &manifest, &why);
    if (rc && rc != BAL_ENOTFOUND)
        return bal_fail(err, rc, "%s", why.text);
    if (!rc && bal_id_equal(&manifest, &input->manifest))
        return 0;
    if (!rc) {
        lose(out, input, "holds something else than was merged", false);
        return 0;
    }
    rc = bal_graph_forgotten(self->run->store->graph, input->tenant,
                             BAL_TOMB_COMMIT, &input->commit, &forgotten, err);
    if (rc)
        return rc;
    lose(out, input,
         forgotten ? "was forgotten" : "is no more, and was not forgotten",
         forgotten);
    return 0;
}

/* What stands behind an input that is a view itself. A manifest that cannot be
 * read is told with its own tenant. */
static int check_behind(view_walk *self, const reader *viewer,
                        const reader *owner, const bal_input *input, loss *out,
                        bal_error *err)
{
    bool own = !strcmp(viewer->name, owner->name);
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    loss behind = { 0 };
    char why[160];
    int rc = bal_graph_manifest(self->run->store->graph, owner->number,
                                &input->manifest, &kind, &body, err);
    if (rc == BAL_ENOTFOUND || rc == BAL_ECORRUPT)
        return 0;
    if (rc || strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)))
        return rc;

    bal_bytes text = { body.data, body.len };
    rc = walk_view(self, owner, text, &behind, err);
    if (rc || !behind.lost)
        return rc;
    /* What another tenant's views stand on is for that tenant to know. */
    snprintf(why, sizeof(why), "is broken%s%.100s", own ? ": " : "",
             own ? behind.why : "");
    lose(out, input, why, behind.expected);
    return 0;
}

static int check_input(view_walk *self, const reader *viewer,
                       const bal_input *input, loss *out, bal_error *err)
{
    reader owner;

    /* What reaches further is not opened either. */
    if (++self->inputs > BAL_VIEW_INPUTS_MAX)
        return 0;
    int rc = check_grant(self, viewer, input, out, err);
    if (rc || out->lost)
        return rc;
    rc = find_owner(self, &owner, input, err);
    if (!rc)
        rc = check_commit(self, &owner, input, out, err);
    if (rc || out->lost)
        return rc;
    return check_behind(self, viewer, &owner, input, out, err);
}

/* ---- a view ------------------------------------------------------------- */

static int read_recipe(bal_recipe **out, bal_bytes text, bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    int rc = bal_view_read(&json, text, err);

    return rc ? rc : bal_recipe_parse(out, json, err);
}

/* The worst that has come to any input. */
static int walk_view(view_walk *self, const reader *viewer, bal_bytes text,
                     loss *out, bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    bal_error why = { 0 };
    int rc = self->depth == BAL_VIEW_DEPTH_MAX
                 ? 0
                 : read_recipe(&recipe, text, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc || !recipe)
        return 0;

    self->depth++;
    for (size_t i = 0; i < recipe->count && !rc; i++) {
        loss one = { 0 };
        rc = check_input(self, viewer, &recipe->inputs[i], &one, err);
        if (one.lost && (!out->lost || out->expected))
            *out = one;
    }
    self->depth--;
    return rc;
}

int bal_fsck_view(bal_fsck_run *self, const bal_id *id, bal_bytes text,
                  bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    view_walk walk = { .run = self };
    reader viewer = { .number = self->tenant->number };
    bal_error why = { 0 };
    int rc = read_recipe(&recipe, text, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc) {
        bal_problem bad = { "bad-manifest", NULL, why.text, false };
        return bal_fsck_tell_id(self, id, &bad, err);
    }

    memcpy(viewer.name, self->tenant->name, sizeof(viewer.name));
    for (size_t i = 0; i < recipe->count && !rc; i++) {
        loss lost = { 0 };
        rc = check_input(&walk, &viewer, &recipe->inputs[i], &lost, err);
        bal_problem problem = { "broken-view", NULL, lost.why, lost.expected };
        if (!rc && lost.lost)
            rc = bal_fsck_tell_id(self, id, &problem, err);
    }
    return rc;
}
