/* Sharing that can be taken back. A grant is on a manifest, so that it covers
 * what was shown and nothing that a ref moves to later; it is looked up at
 * every hop of every read (guard.c), so that taking it back takes effect at the
 * next one. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "graph/grants.h"
#include "store/store.h"
#include "store/view_cache.h"

/* Who is to get it: a tenant's name, and not the tenant itself. */
static int check_grantee(const bal_tenant *tenant, const char *grantee,
                         bal_error *err)
{
    int rc = bal_tenant_check(grantee, err);
    if (rc)
        return rc;

    if (!strcmp(tenant->name, grantee))
        return bal_fail(err, BAL_EINVAL,
                        "tenant '%s' needs no grant for what is its own",
                        grantee);
    return 0;
}

static int keep_manifest(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bal_id *manifest = ctx;

    (void)err;
    *manifest = row->manifest;
    return 0;
}

/* ---- granting ----------------------------------------------------------- */

/* In one transaction, so that what is granted is there when it is. */
static int put_grant(bal_tenant *tenant, bal_grant_info *info, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_commit(graph, tenant->number, &info->commit,
                              keep_manifest, &info->manifest, err);
    if (!rc)
        rc = bal_graph_grant(graph, tenant->number, info, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

int bal_grant(bal_tenant *tenant, const bal_id *commit, const char *grantee,
              bal_grant_fn *fn, void *ctx, bal_error *err)
{
    bal_grant_info info = {
        .owner = tenant->name,
        .grantee = grantee,
        .commit = *commit,
        .created_at = bal_clock_now(),
    };
    int rc = check_grantee(tenant, grantee, err);
    if (!rc)
        rc = put_grant(tenant, &info, err);
    if (rc)
        return rc;

    if (fn)
        (void)fn(ctx, &info);
    return 0;
}

/* Kept until the query is over: fn may take its time. */
typedef struct kept_grants {
    bal_buf rows; /* bal_grant_info */
    bal_arena names;
} kept_grants;

static void kept_grants_done(kept_grants *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->names);
}

static int keep_grant(void *ctx, const bal_grant_info *grant, bal_error *err)
{
    kept_grants *all = ctx;
    bal_grant_info row = *grant;

    row.owner = bal_arena_copy(&all->names, row.owner, strlen(row.owner));
    row.grantee = bal_arena_copy(&all->names, row.grantee, strlen(row.grantee));
    if (!row.owner || !row.grantee)
        return bal_fail_memory(err, "grants");
    return bal_buf_append(&all->rows, &row, sizeof(row), err);
}

int bal_grant_each(bal_tenant *tenant, bal_grant_fn *fn, void *ctx,
                   bal_error *err)
{
    BAL_LOCAL(kept_grants) all = { { 0 } };
    bal_grant_info row;
    int rc = bal_graph_grants(tenant->store->graph, tenant->name, keep_grant,
                              &all, err);

    for (size_t at = 0; at < all.rows.len && !rc; at += sizeof(row)) {
        memcpy(&row, all.rows.data + at, sizeof(row));
        if (fn(ctx, &row))
            break;
    }
    return rc;
}

/* ---- revoking ----------------------------------------------------------- */

typedef struct broken_view {
    char tenant[65];
    bal_id manifest;
    bal_id commit;
} broken_view;

typedef struct revocation {
    bal_tenant *tenant;
    const char *grantee;
    const bal_id *commit; /* NULL: all */
    uint64_t revoked;
    uint64_t epoch;
    broken_view *views;
    size_t count, room;
} revocation;

static void revocation_done(revocation *self)
{
    free(self->views);
}

static int add_view(void *ctx, const bal_dependent *view, bal_error *err)
{
    revocation *self = ctx;
    broken_view *views =
        bal_room_for_one(self->views, self->count, &self->room, sizeof(*views));
    if (!views)
        return bal_fail_memory(err, "listing views");

    self->views = views;
    broken_view *added = &views[self->count++];
    snprintf(added->tenant, sizeof(added->tenant), "%s", view->tenant);
    added->manifest = view->manifest;
    added->commit = view->commit;
    return 0;
}

static int nothing_live(const revocation *self, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    if (!self->commit)
        return bal_fail(err, BAL_ENOTFOUND, "nothing is granted to '%s'",
                        self->grantee);
    bal_id_hex(hex, self->commit);
    return bal_fail(err, BAL_ENOTFOUND, "'%s:%.12s' is not granted to '%s'",
                    self->tenant->name, hex, self->grantee);
}

/* By manifest: where the ref is now, and which of the commits that have it was
 * named when it was granted, does not matter. */
static int take_back(revocation *self, const bal_id *manifest, bal_error *err)
{
    bal_graph *graph = self->tenant->store->graph;
    int rc =
        bal_graph_revoke(graph, self->tenant->number, manifest, self->grantee,
                         bal_clock_now(), &self->revoked, err);
    if (rc)
        return rc;
    if (!self->revoked)
        return nothing_live(self, err);
    rc = bal_graph_dependents_granted(graph, self->tenant->name, manifest,
                                      self->grantee, add_view, self, err);
    return rc ? rc : bal_graph_epoch_next(graph, &self->epoch, err);
}

static int transact(revocation *self, bal_error *err)
{
    bal_graph *graph = self->tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    bal_id manifest;
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc && self->commit)
        rc = bal_graph_commit(graph, self->tenant->number, self->commit,
                              keep_manifest, &manifest, err);
    if (!rc)
        rc = take_back(self, self->commit ? &manifest : NULL, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

/* The grant is gone, and no read gets by that: what is left in the cache is
 * disk space that the next who opens it clears, since it is of an older epoch.
 */
static void clear_cache(const revocation *self)
{
    bal_store *store = self->tenant->store;
    bal_error why = { 0 };
    uint64_t bytes = 0;
    int rc = 0;

    for (size_t i = 0; i < self->count && !rc; i++)
        rc = bal_view_cache_forget(store, self->views[i].tenant,
                                   &self->views[i].manifest, &bytes, &why);
    if (!rc)
        rc = bal_view_cache_settle(store, self->epoch, &why);
    if (rc)
        bal_warn("store", "left-in-cache=%zu why=\"%s\"", self->count,
                 why.text);
}

/* Views of others are nobody's business here. */
static bool may_hear(const revocation *self, const broken_view *view)
{
    return !strcmp(view->tenant, self->tenant->name) ||
           !strcmp(view->tenant, self->grantee);
}

int bal_revoke(bal_tenant *tenant, const bal_id *commit, const char *grantee,
               uint64_t *revoked, bal_view_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(revocation) self = { tenant, grantee, commit };
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = check_grantee(tenant, grantee, err);
    if (!rc)
        rc = bal_store_recover(tenant->store, err);
    /* Alone: nothing is being put into the cache meanwhile. */
    if (!rc)
        rc = bal_store_lock(&lock, tenant->store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = transact(&self, err);
    if (rc)
        return rc;

    clear_cache(&self);
    bal_db_lock_free(BAL_TAKE(lock));
    *revoked = self.revoked;
    for (size_t i = 0; fn && i < self.count; i++) {
        const broken_view *view = &self.views[i];
        if (may_hear(&self, view) && fn(ctx, view->tenant, &view->commit))
            break;
    }
    return 0;
}
