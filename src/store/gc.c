/* Taking back what nothing needs: blocks that no manifest uses, byte runs that
 * no row names, what killed writers left, and what the view cache has of views
 * that are no more. Alone in the store while it works: every writer on this
 * machine holds the lock, shared, from before it looks for blocks that it can
 * use again until they are named, so that nothing is taken from under it. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "graph/forgets.h"
#include "store/fsck.h"
#include "store/intent.h"
#include "store/recode.h"
#include "store/store.h"
#include "store/view_cache.h"

typedef struct sweep {
    bal_store *store;
    bal_tenant *tenant;
    unsigned flags;
    bal_gc_report *report;
    bal_buf unused;  /* ids */
    bal_buf known;   /* ids of all rows, sorted */
    bal_buf orphans; /* ids */
    bal_buf stale;   /* paths in the cache, a NUL behind each */
} sweep;

static void sweep_done(sweep *self)
{
    bal_buf_done(&self->unused);
    bal_buf_done(&self->known);
    bal_buf_done(&self->orphans);
    bal_buf_done(&self->stale);
}

/* ---- rows --------------------------------------------------------------- */

static int note_unused(void *ctx, const bal_block_row *row, bal_error *err)
{
    sweep *self = ctx;

    if (self->flags & BAL_GC_DRY_RUN) {
        self->report->blocks++;
        self->report->bytes_freed += row->stored;
        return 0;
    }
    return bal_buf_append(&self->unused, &row->id, sizeof(row->id), err);
}

/* Rows go before bytes: what is cut short leaves byte runs without a row, which
 * the next pass takes. */
static int forget_unused(sweep *self, bal_error *err)
{
    bal_graph *graph = self->store->graph;
    int64_t tenant = self->tenant->number;
    BAL_LOCAL(bal_tx) tx = { 0 };
    bal_buf_clear(&self->unused);
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (rc)
        return rc;

    rc = bal_graph_unused(graph, tenant, note_unused, self, err);
    if (!rc)
        rc = bal_graph_blocks_forget(graph, tenant, bal_ids_of(&self->unused),
                                     bal_ids_count(&self->unused), err);
    /* Noted as what a killed writer leaves, so that the next one goes on with
     * it. */
    if (!rc)
        rc = bal_graph_intend(graph, tenant, "gc", bal_ids_of(&self->unused),
                              bal_ids_count(&self->unused), err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

/* ---- bytes -------------------------------------------------------------- */

static int note_known(void *ctx, const bal_block_row *row, bal_error *err)
{
    sweep *self = ctx;

    return bal_buf_append(&self->known, &row->id, sizeof(row->id), err);
}

static int note_orphan(void *ctx, const bal_id *id, const char *name,
                       uint64_t size, bal_error *err)
{
    sweep *self = ctx;

    (void)name;
    if (!id)
        return 0; /* not ours to take */
    if (self->known.len &&
        bsearch(id, self->known.data, bal_ids_count(&self->known), sizeof(*id),
                bal_id_compare))
        return 0;
    self->report->blocks++;
    if (!(self->flags & BAL_GC_DRY_RUN))
        return bal_buf_append(&self->orphans, id, sizeof(*id), err);
    self->report->bytes_freed += size;
    return 0;
}

static int take_orphans(sweep *self, bal_error *err)
{
    const bal_tenant *tenant = self->tenant;
    uint64_t freed = 0;
    int rc = 0;

    bal_buf_clear(&self->known);
    bal_buf_clear(&self->orphans);
    if (tenant->number)
        rc = bal_graph_blocks(self->store->graph, tenant->number, note_known,
                              self, err);
    if (rc)
        return rc;
    /* A damaged index may give them in another order. */
    if (self->known.len)
        qsort(self->known.data, bal_ids_count(&self->known), sizeof(bal_id),
              bal_id_compare);
    rc = bal_blocks_each(self->store->blocks, tenant->name, note_orphan, self,
                         err);
    if (rc)
        return rc;
    rc = bal_blocks_remove(self->store->blocks, tenant->name,
                           bal_ids_of(&self->orphans),
                           bal_ids_count(&self->orphans), &freed, err);
    self->report->bytes_freed += freed;
    return rc;
}

/* ---- the view cache ----------------------------------------------------- */

static int note_stale(void *ctx, const bal_cache_entry *entry, const char *why,
                      bal_error *err)
{
    sweep *self = ctx;

    (void)why;
    self->report->bytes_freed += entry->bytes;
    if (self->flags & BAL_GC_DRY_RUN)
        return 0;
    return bal_buf_append(&self->stale, entry->path, strlen(entry->path) + 1,
                          err);
}

static int take_stale(sweep *self, bal_error *err)
{
    const char *tenant = self->tenant ? self->tenant->name : NULL;
    int rc = self->flags & BAL_GC_DRY_RUN
                 ? 0
                 : bal_view_cache_expire(self->store, err);
    if (!rc)
        rc = bal_stale_cache_each(self->store, tenant, note_stale, self, err);

    return rc ? rc : bal_stale_cache_remove(self->store, &self->stale, err);
}

/* ---- tenants ------------------------------------------------------------ */

static int sweep_tenant(sweep *self, bal_error *err)
{
    bool recompress = self->flags & BAL_GC_RECOMPRESS &&
                      !(self->flags & BAL_GC_DRY_RUN) && self->tenant->number;
    int rc = self->tenant->number ? forget_unused(self, err) : 0;

    if (!rc)
        rc = take_orphans(self, err);
    return rc || !recompress ? rc
                             : bal_recompress(self->tenant, self->report, err);
}

static int add_name(void *ctx, const char *name, bal_error *err)
{
    return bal_buf_append(ctx, name, strlen(name) + 1, err);
}

/* Names first, for the connection is held as long as it gives rows. */
static int sweep_all(sweep *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    int rc = bal_graph_tenants_all(self->store->graph, add_name, &names, err);

    for (size_t at = 0; at < names.len && !rc;
         at += strlen(names.data + at) + 1) {
        BAL_OWN(bal_tenant) tenant = NULL;
        rc = bal_tenant_open(&tenant, self->store, names.data + at, err);
        self->tenant = tenant;
        if (!rc)
            rc = sweep_tenant(self, err);
        self->tenant = NULL;
    }
    return rc;
}

int bal_gc(bal_store *store, bal_tenant *tenant, unsigned flags,
           bal_gc_report *report, bal_error *err)
{
    BAL_LOCAL(sweep) self = { store, tenant, flags, report };
    unsigned dry = flags & BAL_GC_DRY_RUN ? BAL_SWEEP_DRY : 0;
    BAL_OWN(bal_db_lock) lock = NULL;

    memset(report, 0, sizeof(*report));
    int rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc && tenant)
        rc = bal_tenant_renew(tenant, err);
    if (rc)
        return rc;
    rc = bal_backend_sweep(bal_blocks_backend(store->blocks),
                           &report->bytes_freed, dry, err);
    if (!rc)
        rc = take_stale(&self, err);
    if (!rc)
        rc = tenant ? sweep_tenant(&self, err) : sweep_all(&self, err);
    if (rc || dry)
        return rc;
    return bal_intents_settle(store, err);
}
