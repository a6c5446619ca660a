/* fsck of what the graph knows: ids are computed again from what they cover. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/str.h"
#include "merge/merge.h"
#include "store/commit_object.h"
#include "store/fsck.h"
#include "store/manifest.h"

/* Ids one behind the other. */
typedef struct id_list {
    bal_buf bytes;
} id_list;

static void id_list_done(id_list *self)
{
    bal_buf_done(&self->bytes);
}

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    id_list *self = ctx;

    return bal_buf_append(&self->bytes, id, sizeof(*id), err);
}

static size_t id_count(const id_list *self)
{
    return self->bytes.len / sizeof(bal_id);
}

static bal_id id_at(const id_list *self, size_t i)
{
    bal_id id;

    memcpy(&id, self->bytes.data + i * sizeof(id), sizeof(id));
    return id;
}

/* Tell a problem of one object. */
static int tell(bal_fsck_run *self, const char *kind, const bal_id *id,
                const char *detail, bal_error *err)
{
    bal_problem problem = { kind, NULL, detail, false };

    return bal_fsck_tell_id(self, id, &problem, err);
}

/* ---- commits ------------------------------------------------------------ */

static int check_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bal_fsck_run *self = ctx;
    bal_id id;
    int rc = bal_commit_id(&id, self->tenant->name, row, err);
    if (rc)
        return rc;

    self->report->commits++;
    if (bal_id_equal(&id, &row->id))
        return 0;
    return tell(self, "wrong-commit-id", &row->id, "its fields give another id",
                err);
}

/* ---- manifests ---------------------------------------------------------- */

static int check_leaf(bal_fsck_run *self, const bal_id *id, const char *kind,
                      bal_bytes text, bal_error *err)
{
    BAL_LOCAL(bal_leaf) leaf = { 0 };
    BAL_LOCAL(id_list) uses = { { 0 } };
    bal_error why;

    int rc = bal_leaf_read(&leaf, text, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc)
        return tell(self, "bad-manifest", id, why.text, err);
    if (strcmp(kind, bal_kind_name(leaf.kind)))
        return tell(self, "wrong-kind", id, "its row says another kind", err);
    rc = bal_graph_uses(self->store->graph, self->tenant->number, id, add_id,
                        &uses, err);
    if (rc)
        return rc;
    size_t count = bal_ids_unique(leaf.ids, leaf.id_count);
    if (count == id_count(&uses) &&
        (!count || !memcmp(leaf.ids, uses.bytes.data, uses.bytes.len)))
        return 0;
    return tell(self, "wrong-uses", id,
                "the blocks it names are not those that are kept for it", err);
}

static int ignore_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)ctx;
    (void)row;
    (void)err;
    return 0;
}

/* A view may have lost an input: expected, and told. */
static int check_view(bal_fsck_run *self, const bal_id *id, bal_bytes text,
                      bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    BAL_OWN(bal_recipe) recipe = NULL;
    bal_error why;
    int rc = bal_view_read(&json, text, &why);
    if (!rc)
        rc = bal_recipe_parse(&recipe, json, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc)
        return tell(self, "bad-manifest", id, why.text, err);

    for (size_t i = 0; i < recipe->count; i++) {
        char hex[BAL_ID_HEX + 1], detail[160];
        rc = bal_graph_commit(self->store->graph, self->tenant->number,
                              &recipe->inputs[i].commit, ignore_commit, NULL,
                              err);
        if (!rc)
            continue;
        if (rc != BAL_ENOTFOUND)
            return rc;
        bal_id_hex(hex, &recipe->inputs[i].commit);
        snprintf(detail, sizeof(detail), "its input %s:%.12s is no more",
                 recipe->inputs[i].tenant, hex);
        bal_problem problem = { "broken-view", NULL, detail, true };
        rc = bal_fsck_tell_id(self, id, &problem, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_manifest(bal_fsck_run *self, const bal_id *id, bal_error *err)
{
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_id computed;
    int rc = bal_graph_manifest(self->store->graph, self->tenant->number, id,
                                &kind, &body, err);
    if (rc)
        return rc;

    bal_hash_of(&computed, body.data, body.len);
    if (!bal_id_equal(&computed, id))
        return tell(self, "wrong-manifest-id", id, "its text gives another id",
                    err);
    bal_bytes text = { body.data, body.len };
    if (!strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)))
        return check_view(self, id, text, err);
    return check_leaf(self, id, bal_buf_string(&kind), text, err);
}

int bal_fsck_facts(bal_fsck_run *self, bal_error *err)
{
    BAL_LOCAL(id_list) manifests = { { 0 } };
    bal_graph *graph = self->store->graph;
    int64_t tenant = self->tenant->number;
    int rc = 0;

    if (!tenant)
        return 0;
    rc = bal_graph_commits(graph, tenant, check_commit, self, err);
    rc = bal_fsck_unreadable(self, rc, err);
    if (rc)
        return rc;
    rc = bal_graph_manifests(graph, tenant, add_id, &manifests, err);
    rc = bal_fsck_unreadable(self, rc, err);
    for (size_t i = 0; i < id_count(&manifests) && !rc; i++) {
        bal_id id = id_at(&manifests, i);
        rc = check_manifest(self, &id, err);
        rc = bal_fsck_unreadable(self, rc, err);
    }
    return rc;
}
