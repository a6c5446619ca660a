/* From a plan in the journal to bytes that are gone. Every step may be done
 * again: what is absent already is no failure. */
#include "store/forget_finish.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"
#include "graph/proofs.h"
#include "store/statement.h"
#include "store/view_cache.h"

/* ---- bytes -------------------------------------------------------------- */

static int still_listed(void *ctx, const bal_id *id, const char *name,
                        uint64_t size, bal_error *err)
{
    const bal_map *gone = ctx;

    (void)size;
    if (!id || bal_map_find(gone, id, sizeof(*id)) == BAL_NONE)
        return 0;
    return bal_fail(err, BAL_EIO, "'%s' was removed and is still listed", name);
}

static int add_all(bal_map *to, const bal_buf *ids, bal_error *err)
{
    for (size_t i = 0; i < bal_ids_count(ids); i++) {
        size_t value = 0;
        bool there;
        int rc = bal_map_add(to, bal_ids_at(ids, i), sizeof(bal_id), &value,
                             &there, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* One listing, however many blocks it was. */
static int look(bal_store *self, const bal_pending *row, const bal_buf *ids,
                bal_error *err)
{
    BAL_LOCAL(bal_map) gone = { 0 };
    int rc = add_all(&gone, ids, err);

    if (rc)
        return rc;
    return bal_blocks_each(self->blocks, bal_pending_tenant(row), still_listed,
                           &gone, err);
}

static int remove_bytes(bal_store *self, const bal_pending *row, bal_buf *ids,
                        bal_error *err)
{
    uint64_t freed = 0;
    int rc = bal_statement_ids(ids, json_object_get(row->plan, "blocks"), err);

    if (!rc && ids->len)
        rc =
            bal_blocks_remove(self->blocks, bal_pending_tenant(row),
                              bal_ids_of(ids), bal_ids_count(ids), &freed, err);
    if (!rc)
        rc = bal_view_cache_wipe(self, err);
    if (!rc)
        rc = bal_store_clear(self, 0, err);
    return rc ? rc : look(self, row, ids, err);
}

/* Block rows go here, and not with the signature: a proof that waits for its
 * key must not make a writer believe that the blocks are still there. The epoch
 * grows once more: who read a block after it grew with the plan, and before the
 * bytes went, may have kept a copy of it as one of that epoch. */
static int mark(bal_store *self, bal_pending *row, const bal_buf *ids,
                bal_error *err)
{
    bal_graph *graph = self->graph;
    int64_t tenant = 0;
    uint64_t epoch = 0;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_tenant(graph, &tenant, bal_pending_tenant(row), 0, err);
    if (!rc)
        rc = bal_graph_blocks_forget(graph, tenant, bal_ids_of(ids),
                                     bal_ids_count(ids), err);
    if (!rc)
        rc = bal_graph_journal_state(graph, row->number, BAL_JOURNAL_REMOVED,
                                     err);
    if (!rc)
        rc = bal_graph_epoch_next(graph, &epoch, err);
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
    rc = remove_bytes(self, row, &ids, err);
    return rc ? rc : mark(self, row, &ids, err);
}

int bal_pending_scrub(bal_store *self, bal_pending *row, unsigned flags,
                      bal_error *err)
{
    if (row->state != BAL_JOURNAL_REMOVED)
        return 0;
    int rc = bal_graph_scrub(self->graph, flags, err);
    if (!rc)
        rc = bal_graph_journal_state(self->graph, row->number,
                                     BAL_JOURNAL_SCRUBBED, err);
    if (!rc)
        row->state = BAL_JOURNAL_SCRUBBED;
    return rc;
}

/* ---- what a row says of itself ------------------------------------------ */

typedef struct second_look {
    bal_store *store;
    const bal_pending *row;
    bal_map gone;
} second_look;

static void second_look_done(second_look *self)
{
    bal_map_done(&self->gone);
}

static int came_again(void *ctx, const bal_id *id, const char *name,
                      uint64_t size, bal_error *err)
{
    const second_look *self = ctx;
    bal_presence found = { .row = false };

    (void)size;
    if (!id || bal_map_find(&self->gone, id, sizeof(*id)) == BAL_NONE)
        return 0;
    int rc =
        bal_graph_presence(self->store->graph, bal_pending_tenant(self->row),
                           BAL_PRESENCE_BLOCK, id, &found, err);
    if (rc || (found.there && found.oldest >= bal_pending_epoch(self->row)))
        return rc;
    return bal_fail(err, BAL_ECORRUPT,
                    "row %lld of the journal says that '%s' was removed, and "
                    "it is there",
                    (long long)self->row->number, name);
}

int bal_pending_look(bal_store *self, const bal_pending *row, bal_error *err)
{
    BAL_LOCAL(second_look) again = { .store = self, .row = row };
    BAL_LOCAL(bal_buf) ids = { 0 };
    /* What killed writers have published since has no row yet. */
    int rc = bal_store_clear(self, 0, err);
    if (!rc)
        rc = bal_statement_ids(&ids, json_object_get(row->plan, "blocks"), err);
    if (!rc)
        rc = add_all(&again.gone, &ids, err);
    if (rc)
        return rc;
    return bal_blocks_each(self->blocks, bal_pending_tenant(row), came_again,
                           &again, err);
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
