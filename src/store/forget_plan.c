/* What is to go, found before anything does: commits and their manifests, and
 * what of them stays because something else has it too. The parts that are
 * lists of their own kind are in forget_names.c and forget_blocks.c. */
#include "store/forget_plan.h"

#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/key.h"
#include "core/str.h"
#include "graph/forgets.h"
#include "store/statement.h"

enum { SHORT_ID = 12 };

static void bal_planning_done(bal_planning *self)
{
    json_decref(self->plan);
    bal_map_done(&self->grantees);
    bal_map_done(&self->seen);
    bal_arena_done(&self->arena);
}

int bal_plan_add(bal_planning *self, const char *member, json_t *value,
                 bal_error *err)
{
    if (json_array_append_new(json_object_get(self->plan, member), value))
        return bal_fail_memory(err, "a plan");
    return 0;
}

int bal_plan_id(bal_planning *self, const char *member, const bal_id *id,
                bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_plan_add(self, member, json_string(hex), err);
}

static int put(bal_planning *self, const char *member, json_t *value,
               bal_error *err)
{
    if (json_object_set_new(self->plan, member, value))
        return bal_fail_memory(err, "a plan");
    return 0;
}

/* ---- commits and manifests ---------------------------------------------- */

/* A view's blocks in the cache go with its manifest. */
static int own_view(bal_planning *self, const bal_id *manifest, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, manifest);
    int rc = bal_buf_format(&name, err, "%s:%s", self->tenant->name, hex);
    if (rc)
        return rc;
    char *key = bal_arena_copy(&self->arena, name.data, name.len);
    size_t value = 0;
    bool there = false;
    if (!key)
        return bal_fail_memory(err, "a plan");
    rc = bal_map_add(&self->seen, key, name.len, &value, &there, err);
    if (rc || there)
        return rc;
    return bal_plan_add(self, "cache", json_string(key), err);
}

static int take_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bal_planning *self = ctx;

    self->manifest = row->manifest;
    self->has_parent = row->has_parent;
    self->parent = row->parent;
    self->view = !strcmp(row->kind, bal_kind_name(BAL_KIND_VIEW));
    return bal_plan_id(self, "commits", &row->id, err);
}

/* Another commit that has the same manifest. */
typedef struct other_commit {
    const bal_id *commit;
    bool there;
    bal_id id;
} other_commit;

static int find_other(void *ctx, const bal_id *id, bal_error *err)
{
    other_commit *self = ctx;

    (void)err;
    if (bal_id_equal(id, self->commit))
        return 0;
    self->there = true;
    self->id = *id;
    return BAL_ROW_STOP;
}

static int retain(bal_planning *self, const char *kind, const bal_id *id,
                  const char *user, const bal_id *by, bal_error *err)
{
    char hex[BAL_ID_HEX + 1], other[BAL_ID_HEX + 1], why[64];
    const char *verb = kind[0] == 'm' ? "has" : "uses";

    bal_id_hex(hex, id);
    bal_id_hex(other, by);
    snprintf(why, sizeof(why), "%s %.*s %s it too", user, SHORT_ID, other,
             verb);
    return bal_plan_add(
        self, "retained",
        json_pack("{s:s,s:s,s:s}", "kind", kind, "id", hex, "why", why), err);
}

static int retain_block(void *ctx, const bal_id *block, const bal_id *by,
                        bal_error *err)
{
    return retain(ctx, "block", block, "manifest", by, err);
}

static int plan_commit(bal_planning *self, bal_error *err)
{
    int64_t tenant = self->tenant->number;
    other_commit other = { .commit = self->commit };
    int rc = bal_graph_commit(self->graph, tenant, self->commit, take_commit,
                              self, err);
    if (!rc)
        rc = bal_graph_commits_of(self->graph, tenant, &self->manifest,
                                  find_other, &other, err);
    if (rc)
        return rc;

    self->manifest_goes = !other.there;
    if (other.there)
        return retain(self, "manifest", &self->manifest, "commit", &other.id,
                      err);
    rc = bal_plan_id(self, "manifests", &self->manifest, err);
    if (!rc && self->view)
        rc = own_view(self, &self->manifest, err);
    if (rc)
        return rc;
    return bal_graph_kept(self->graph, tenant, &self->manifest, retain_block,
                          self, err);
}

static int take_each_commit(void *ctx, const bal_commit_row *row,
                            bal_error *err)
{
    bal_planning *self = ctx;
    int rc = take_commit(self, row, err);

    return rc || !self->view ? rc : own_view(self, &row->manifest, err);
}

static int take_manifest(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_plan_id(ctx, "manifests", id, err);
}

static int plan_tenant(bal_planning *self, bal_error *err)
{
    int64_t tenant = self->tenant->number;
    int rc =
        bal_graph_commits(self->graph, tenant, take_each_commit, self, err);
    if (rc)
        return rc;

    self->manifest_goes = true;
    return bal_graph_manifests(self->graph, tenant, take_manifest, self, err);
}

/* ---- the plan ----------------------------------------------------------- */

static const char *const lists[] = {
    "commits",      "manifests",    "blocks",  "refs",     "grants_revoked",
    "cache",        "fingerprints", "exports", "retained", "grants_received",
    "broken_views", "probe_sets",   "servers",
};

static int begin(bal_planning *self, const char *reason, bal_error *err)
{
    BAL_LOCAL(bal_buf) identity = { 0 };
    char at[40];
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(self->graph, &epoch, err);
    if (!rc)
        rc = bal_store_identity(&identity, self->tenant->store, err);
    if (rc)
        return rc;

    self->plan = json_object();
    bal_clock_rfc3339(at, bal_clock_now());
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !rc; i++)
        rc = put(self, lists[i], json_array(), err);
    if (!rc)
        rc = put(self, "private",
                 json_pack("{s:s}", "store", bal_buf_string(&identity)), err);
    if (!rc)
        rc = put(self, "scope", json_string(self->commit ? "commit" : "tenant"),
                 err);
    if (!rc)
        rc = put(self, "tenant", json_string(self->tenant->name), err);
    if (!rc)
        rc = put(self, "reason", json_string(reason), err);
    if (!rc)
        rc = put(self, "requested_at", json_string(at), err);
    /* That of the deletion itself: whatever is committed after it has this or a
     * later one. */
    if (!rc)
        rc = put(self, "epoch", json_integer((json_int_t)epoch + 1), err);
    return rc;
}

/* Who asked: the key by what it is, where it is found among what stays here. */
static int plan_key(bal_planning *self, const bal_forget_options *options,
                    bal_error *err)
{
    const bal_key *key = options->key;
    char *path = NULL;

    if (!key)
        return put(self, "key", json_null(), err);
    int rc = put(self, "key",
                 json_pack("{s:s,s:s}", "algorithm", bal_key_algorithm(key),
                           "id", bal_key_id(key)),
                 err);
    if (rc || !options->key_path)
        return rc;
    rc = bal_path_real(&path, options->key_path, err);
    if (rc)
        return rc;
    json_t *text =
        bal_utf8_valid(path, strlen(path)) ? json_string(path) : json_null();
    bal_str_free(path);
    if (json_object_set_new(json_object_get(self->plan, "private"), "key_path",
                            text))
        return bal_fail_memory(err, "a plan");
    return 0;
}

static int sums(bal_planning *self, bal_error *err)
{
    int rc =
        put(self, "bytes_freed", json_integer((json_int_t)self->bytes), err);
    if (!rc)
        rc = put(self, "broken_elsewhere",
                 json_integer((json_int_t)self->broken_elsewhere), err);
    if (!rc)
        rc = put(self, "cache_elsewhere",
                 json_integer((json_int_t)self->cache_elsewhere), err);
    return rc;
}

int bal_forget_plan(json_t **out, bal_tenant *tenant,
                    const bal_forget_options *options, bal_buf *anew,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) found = { 0 };
    BAL_LOCAL(bal_planning)
    self = {
        .anew = anew ? anew : &found,
        .tenant = tenant,
        .graph = tenant->store->graph,
        .commit = options->commit,
    };
    int rc = begin(&self, options->reason, err);
    if (!rc)
        rc = plan_key(&self, options, err);
    if (!rc)
        rc =
            options->commit ? plan_commit(&self, err) : plan_tenant(&self, err);
    if (!rc)
        rc = bal_plan_facts(&self, err);
    if (!rc)
        rc = bal_plan_names(&self, err);
    if (!rc)
        rc = bal_plan_views(&self, err);
    if (!rc)
        rc = bal_plan_blocks(&self, err);
    if (!rc)
        rc = sums(&self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self.plan);
    return 0;
}
