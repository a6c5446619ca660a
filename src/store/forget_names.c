/* What points at what is to go: refs, grants, copies that were written out, and
 * views that stand on it. Of views, only those of the tenant itself and of whom
 * it has granted something are told by name; of others, how many. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "graph/fingerprints.h"
#include "graph/forgets.h"
#include "graph/loads.h"
#include "store/forget_plan.h"

#define PROVENANCE     "ballast.json"
#define PROVENANCE_MAX ((size_t)4 << 20)

/* ---- refs --------------------------------------------------------------- */

static int take_ref(void *ctx, const char *name, const bal_id *commit,
                    bal_error *err)
{
    bal_planning *self = ctx;
    bool goes_on = self->commit && self->has_parent;
    char from[BAL_ID_HEX + 1], to[BAL_ID_HEX + 1];

    bal_id_hex(from, commit);
    bal_id_hex(to, &self->parent);
    return bal_plan_add(self, "refs",
                        json_pack("{s:s,s:s,s:s?}", "name", name, "from", from,
                                  "to", goes_on ? to : NULL),
                        err);
}

static int plan_refs(bal_planning *self, bal_error *err)
{
    int64_t tenant = self->tenant->number;

    if (!self->commit)
        return bal_graph_refs(self->graph, tenant, take_ref, self, err);
    return bal_graph_refs_at(self->graph, tenant, self->commit, take_ref, self,
                             err);
}

/* ---- grants ------------------------------------------------------------- */

/* Add text to a map of the plan's; *there: it was in it. */
static int note(bal_planning *self, bal_map *map, const char *text, bool *there,
                bal_error *err)
{
    size_t len = strlen(text);
    size_t value = 0;
    char *key = bal_arena_copy(&self->arena, text, len);

    if (!key)
        return bal_fail_memory(err, "a plan");
    return bal_map_add(map, key, len, &value, there, err);
}

static int add_grant(bal_planning *self, const char *member,
                     const bal_grant_info *grant, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &grant->manifest);
    return bal_plan_add(self, member,
                        json_pack("{s:s,s:s,s:s}", "owner", grant->owner,
                                  "manifest", hex, "grantee", grant->grantee),
                        err);
}

static int take_grant(void *ctx, const bal_grant_info *grant, bal_error *err)
{
    bal_planning *self = ctx;
    bool there;

    if (grant->revoked_at)
        return 0;
    if (strcmp(grant->owner, self->tenant->name) != 0)
        return self->commit ? 0
                            : add_grant(self, "grants_received", grant, err);
    if (self->commit && !bal_id_equal(&grant->manifest, &self->manifest))
        return 0;
    int rc = note(self, &self->grantees, grant->grantee, &there, err);
    if (rc || !self->manifest_goes)
        return rc;
    return add_grant(self, "grants_revoked", grant, err);
}

/* ---- copies ------------------------------------------------------------- */

/* Is there still a folder with the provenance of this commit? */
static bool still_there(const char *path, const char *commit)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) json = NULL;
    char *name = bal_path_join(path, PROVENANCE);

    if (!name)
        return false;
    int rc = bal_file_slurp(&text, name, PROVENANCE_MAX, NULL);
    bal_str_free(name);
    if (rc || bal_json_parse(&json, bal_buf_string(&text), text.len, PROVENANCE,
                             NULL))
        return false;
    const char *there = json_string_value(json_object_get(json, "commit"));
    return there && !strcmp(there, commit);
}

static int take_export(void *ctx, const bal_export_row *row, bal_error *err)
{
    bal_planning *self = ctx;
    BAL_LOCAL(bal_buf) path = { 0 };
    char hex[BAL_ID_HEX + 1], at[40];
    /* A name need not be UTF-8, JSON must be. */
    int rc =
        bal_utf8_valid(row->path, strlen(row->path))
            ? bal_buf_text(&path, row->path, err)
            : bal_printable(&path, row->path, strlen(row->path), false, err);
    if (rc)
        return rc;

    bal_id_hex(hex, &row->commit);
    bal_clock_rfc3339(at, row->at);
    json_t *value = json_pack(
        "{s:s,s:s,s:s,s:b}", "path", bal_buf_string(&path), "commit", hex,
        "written_at", at, "there", (int)still_there(row->path, hex));
    return bal_plan_add(self, "exports", value, err);
}

/* ---- servers ------------------------------------------------------------ */

/* An engine may keep in memory what it was told to unload. */
static int take_load(void *ctx, const bal_loaded *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) server = { 0 };
    BAL_LOCAL(bal_buf) name = { 0 };
    char loaded[40], unloaded[40];
    int rc =
        bal_printable(&server, row->server, strlen(row->server), false, err);
    if (!rc)
        rc = bal_printable(&name, row->name, strlen(row->name), false, err);
    if (rc)
        return rc;

    bal_clock_rfc3339(loaded, row->loaded_at);
    bal_clock_rfc3339(unloaded, row->unloaded_at);
    return bal_plan_add(
        ctx, "servers",
        json_pack("{s:s,s:s,s:s,s:s?}", "server", bal_buf_string(&server),
                  "name", bal_buf_string(&name), "loaded_at", loaded,
                  "unloaded_at", row->unloaded_at ? unloaded : NULL),
        err);
}

/* ---- what was asked and answered ----------------------------------------- */

static int take_fingerprint(void *ctx, const bal_fingerprint_row *row,
                            bal_error *err)
{
    char commit[BAL_ID_HEX + 1], probes[BAL_ID_HEX + 1];

    bal_id_hex(commit, &row->commit);
    bal_id_hex(probes, &row->probes);
    return bal_plan_add(ctx, "fingerprints",
                        json_pack("{s:s,s:s,s:I}", "commit", commit,
                                  "probe_set", probes, "answers",
                                  (json_int_t)row->answers),
                        err);
}

static int take_probes(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_plan_id(ctx, "probe_sets", id, err);
}

static int plan_fingerprints(bal_planning *self, bal_error *err)
{
    int64_t tenant = self->tenant->number;
    int rc = bal_graph_fingerprints(self->graph, tenant, self->commit, NULL,
                                    take_fingerprint, self, err);

    return rc ? rc
              : bal_graph_probes_only_of(self->graph, tenant, self->commit,
                                         take_probes, self, err);
}

int bal_plan_names(bal_planning *self, bal_error *err)
{
    int rc = plan_refs(self, err);
    if (!rc)
        rc = bal_graph_grants(self->graph, self->tenant->name, take_grant, self,
                              err);
    if (!rc)
        rc = plan_fingerprints(self, err);
    if (!rc)
        rc = bal_graph_loads(self->graph, self->tenant->number, self->commit,
                             take_load, self, err);
    if (rc)
        return rc;
    return bal_graph_exports(self->graph, self->tenant->number, self->commit,
                             take_export, self, err);
}

/* ---- views -------------------------------------------------------------- */

static bool told(const bal_planning *self, const char *tenant)
{
    if (!strcmp(tenant, self->tenant->name))
        return true;
    return bal_map_find(&self->grantees, tenant, strlen(tenant)) != BAL_NONE;
}

/* The view's blocks in the cache, once a manifest. */
static int view_cache(bal_planning *self, const bal_dependent *view, bool named,
                      bal_error *err)
{
    char hex[BAL_ID_HEX + 1], name[160];
    bool there;

    bal_id_hex(hex, &view->manifest);
    snprintf(name, sizeof(name), "%s:%s", view->tenant, hex);
    int rc = note(self, &self->seen, name, &there, err);
    if (rc || there)
        return rc;
    if (named)
        return bal_plan_add(self, "cache", json_string(name), err);
    self->cache_elsewhere++;
    return 0;
}

/* What a server has of a view is what went into it. Where the tenant goes they
 * are told with the rest. */
static int view_servers(bal_planning *self, const bal_dependent *view,
                        bal_error *err)
{
    if (!self->commit || strcmp(view->tenant, self->tenant->name) != 0)
        return 0;
    return bal_graph_loads(self->graph, self->tenant->number, &view->commit,
                           take_load, self, err);
}

static int take_view(void *ctx, const bal_dependent *view, bal_error *err)
{
    bal_planning *self = ctx;
    bool named = told(self, view->tenant);
    char hex[BAL_ID_HEX + 1], name[160];
    int rc = view_cache(self, view, named, err);

    if (rc)
        return rc;
    if (!named) {
        self->broken_elsewhere++;
        return 0;
    }
    bal_id_hex(hex, &view->commit);
    snprintf(name, sizeof(name), "%s:%s", view->tenant, hex);
    rc = bal_plan_add(self, "broken_views", json_string(name), err);
    return rc ? rc : view_servers(self, view, err);
}

int bal_plan_views(bal_planning *self, bal_error *err)
{
    return bal_graph_dependents(self->graph, self->tenant->name, self->commit,
                                take_view, self, err);
}
