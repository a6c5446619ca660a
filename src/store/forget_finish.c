/* From a plan in the journal to bytes that are gone. Every step may be done
 * again: what is absent already is no failure. */
#include "store/forget_finish.h"

#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/error.h"
#include "core/map.h"
#include "graph/proofs.h"
#include "store/statement.h"
#include "store/view_cache.h"

/* ---- the journal -------------------------------------------------------- */

void bal_pendings_done(bal_pendings *self)
{
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->rows[i].plan);
    free(self->rows);
    *self = (bal_pendings){ 0 };
}

static int grow(bal_pendings *self, bal_error *err)
{
    size_t room = self->room ? 2 * self->room : 4;
    bal_pending *rows = realloc(self->rows, room * sizeof(*rows));

    if (!rows)
        return bal_fail_memory(err, "the journal");
    self->rows = rows;
    self->room = room;
    return 0;
}

int bal_pending_write(bal_buf *to, const json_t *plan, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) encoded = { 0 };
    int rc = bal_json_canonical(&text, plan, err);
    if (!rc)
        rc = bal_base64_encode(&encoded, text.data, text.len, err);
    if (rc)
        return rc;

    BAL_OWN(json_t)
    kept =
        json_pack("{s:O,s:O,s:s}", "commits", json_object_get(plan, "commits"),
                  "manifests", json_object_get(plan, "manifests"), "plan",
                  bal_buf_string(&encoded));
    if (!kept)
        return bal_fail_memory(err, "the journal");
    return bal_json_canonical(to, kept, err);
}

static int read_plan(json_t **out, const char *text, bal_error *err)
{
    BAL_LOCAL(bal_buf) plan = { 0 };
    BAL_OWN(json_t) kept = NULL;
    int rc = bal_json_parse(&kept, text, strlen(text), "the journal", err);
    if (rc)
        return rc;

    const json_t *encoded = json_object_get(kept, "plan");
    if (!json_is_string(encoded))
        return bal_fail(err, BAL_ECORRUPT, "the journal has no plan");
    rc = bal_base64_decode(&plan, json_string_value(encoded),
                           json_string_length(encoded), err);
    if (rc)
        return rc;
    return bal_json_parse(out, bal_buf_string(&plan), plan.len, "the journal",
                          err);
}

static int take_row(void *ctx, const bal_journal_row *row, bal_error *err)
{
    bal_pendings *self = ctx;
    int rc = self->count == self->room ? grow(self, err) : 0;
    if (rc)
        return rc;

    bal_pending *next = &self->rows[self->count];
    *next = (bal_pending){ .number = row->number, .state = row->state };
    rc = read_plan(&next->plan, row->plan, err);
    if (rc)
        return rc;
    self->count++;
    return 0;
}

int bal_pendings_load(bal_pendings *out, bal_graph *graph, bal_error *err)
{
    bool any = false;
    int rc = bal_graph_journal_any(graph, &any, err);

    if (rc || !any)
        return rc;
    return bal_graph_journal(graph, take_row, out, err);
}

static const char *tenant_of(const json_t *plan)
{
    const char *name = json_string_value(json_object_get(plan, "tenant"));

    return name ? name : "";
}

static uint64_t epoch_of(const json_t *plan)
{
    return (uint64_t)json_integer_value(json_object_get(plan, "epoch"));
}

/* ---- bytes -------------------------------------------------------------- */

/* The views of an array of "tenant:manifest" leave the cache. */
static int drop_views(bal_store *self, const json_t *views, bal_error *err)
{
    uint64_t bytes = 0;
    char name[160];
    bal_id manifest;

    for (size_t i = 0; i < json_array_size(views); i++) {
        const char *text = json_string_value(json_array_get(views, i));
        if (!text || strlen(text) >= sizeof(name) || !strchr(text, ':'))
            return bal_fail(err, BAL_ECORRUPT, "the journal has no plan");
        snprintf(name, sizeof(name), "%s", text);
        char *colon = strchr(name, ':');
        *colon = '\0';
        int rc = bal_id_parse(&manifest, colon + 1, err);
        if (!rc)
            rc = bal_view_cache_forget(self, name, &manifest, &bytes, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int drop_caches(bal_store *self, const json_t *plan, bal_error *err)
{
    const char *scope = json_string_value(json_object_get(plan, "scope"));
    const json_t *hidden = json_object_get(plan, "private");
    uint64_t bytes = 0;
    int rc = drop_views(self, json_object_get(plan, "cache"), err);

    if (!rc)
        rc = drop_views(self, json_object_get(hidden, "cache"), err);
    if (!rc && scope && !strcmp(scope, "tenant"))
        rc = bal_view_cache_forget(self, tenant_of(plan), NULL, &bytes, err);
    if (rc)
        return rc;
    return bal_view_cache_settle(self, epoch_of(plan), err);
}

static int still_listed(void *ctx, const bal_id *id, const char *name,
                        uint64_t size, bal_error *err)
{
    const bal_map *gone = ctx;

    (void)size;
    if (!id || bal_map_find(gone, id, sizeof(*id)) == BAL_NONE)
        return 0;
    return bal_fail(err, BAL_EIO, "'%s' was removed and is still listed", name);
}

/* One listing, however many blocks it was. */
static int look(bal_store *self, const json_t *plan, const bal_buf *ids,
                bal_error *err)
{
    BAL_LOCAL(bal_map) gone = { 0 };

    for (size_t at = 0; at < ids->len; at += sizeof(bal_id)) {
        size_t value = 0;
        bool there;
        int rc = bal_map_add(&gone, ids->data + at, sizeof(bal_id), &value,
                             &there, err);
        if (rc)
            return rc;
    }
    return bal_blocks_each(self->blocks, tenant_of(plan), still_listed, &gone,
                           err);
}

static int remove_bytes(bal_store *self, const json_t *plan, bal_buf *ids,
                        bal_error *err)
{
    uint64_t freed = 0;
    int rc = bal_statement_ids(ids, json_object_get(plan, "blocks"), err);

    if (!rc && ids->len)
        rc = bal_blocks_remove(self->blocks, tenant_of(plan),
                               (const bal_id *)(const void *)ids->data,
                               ids->len / sizeof(bal_id), &freed, err);
    if (!rc)
        rc = drop_caches(self, plan, err);
    if (!rc)
        rc = bal_store_clear(self, err);
    return rc ? rc : look(self, plan, ids, err);
}

/* Block rows go here, and not with the signature: a proof that waits for its
 * key must not make a writer believe that the blocks are still there. */
static int mark(bal_store *self, bal_pending *row, const bal_buf *ids,
                bal_error *err)
{
    bal_graph *graph = self->graph;
    int64_t tenant = 0;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_tenant(graph, &tenant, tenant_of(row->plan), 0, err);
    if (!rc)
        rc = bal_graph_blocks_forget(graph, tenant,
                                     (const bal_id *)(const void *)ids->data,
                                     ids->len / sizeof(bal_id), err);
    if (!rc)
        rc = bal_graph_journal_state(graph, row->number, BAL_JOURNAL_REMOVED,
                                     err);
    if (!rc)
        rc = bal_tx_commit(&tx, err);
    if (!rc)
        row->state = BAL_JOURNAL_REMOVED;
    return rc;
}

int bal_pending_erase(bal_store *self, bal_pending *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    int rc;

    if (row->state != BAL_JOURNAL_PLANNED)
        return 0;
    rc = remove_bytes(self, row->plan, &ids, err);
    if (!rc)
        rc = bal_graph_scrub(self->graph, err);
    return rc ? rc : mark(self, row, &ids, err);
}

/* ---- keys --------------------------------------------------------------- */

static bool is_key(const bal_key *key, const char *id)
{
    return key && bal_key_signs(key) && !strcmp(bal_key_id(key), id);
}

int bal_pending_key(bal_key **out, bool *found, const bal_pending *row,
                    const bal_key *offered, bal_error *err)
{
    const char *id = json_string_value(
        json_object_get(json_object_get(row->plan, "key"), "id"));
    const char *path = json_string_value(
        json_object_get(json_object_get(row->plan, "private"), "key_path"));
    BAL_OWN(bal_key) key = NULL;

    *out = NULL;
    *found = true;
    if (!id)
        return 0;
    if (is_key(offered, id))
        return bal_key_copy(out, offered, err);
    /* One that cannot be read now may be read later. */
    if (!path || bal_key_load(&key, path, NULL) || !is_key(key, id)) {
        bal_key_free(BAL_TAKE(key));
        if (bal_key_environment(&key, NULL) || !is_key(key, id)) {
            *found = false;
            return 0;
        }
    }
    *out = BAL_TAKE(key);
    return 0;
}
