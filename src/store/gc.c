/* Taking back what nothing needs: blocks that no manifest uses, byte runs that
 * no row names, what killed writers left. Alone in the store while it works. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

typedef struct sweep {
    bal_store *store;
    bal_tenant *tenant;
    unsigned flags;
    bal_gc_report *report;
    bal_buf unused; /* ids */
} sweep;

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
    for (size_t at = 0; at < self->unused.len && !rc; at += sizeof(bal_id)) {
        bal_id id;
        memcpy(&id, self->unused.data + at, sizeof(id));
        rc = bal_graph_block_forget(graph, tenant, &id, err);
    }
    if (rc)
        return rc;
    /* Noted as what a killed writer leaves, so that the next one goes on with
     * it. */
    rc = bal_graph_intend(graph, tenant, "gc",
                          (const bal_id *)(const void *)self->unused.data,
                          self->unused.len / sizeof(bal_id), err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

static int take_orphan(void *ctx, const bal_id *id, const char *name,
                       uint64_t size, bal_error *err)
{
    sweep *self = ctx;
    bool there = false;
    uint64_t freed = size;
    int rc = 0;

    (void)name;
    if (!id)
        return 0; /* not ours to take */
    if (self->tenant->number)
        rc = bal_graph_block(self->store->graph, self->tenant->number, id, NULL,
                             &there, err);
    if (rc || there)
        return rc;
    if (!(self->flags & BAL_GC_DRY_RUN))
        rc = bal_blocks_remove(self->store->blocks, self->tenant->name, id,
                               &freed, err);
    if (rc)
        return rc;
    self->report->blocks++;
    self->report->bytes_freed += freed;
    return 0;
}

static int sweep_tenant(sweep *self, bal_error *err)
{
    int rc = self->tenant->number ? forget_unused(self, err) : 0;
    if (rc)
        return rc;
    return bal_blocks_each(self->store->blocks, self->tenant->name, take_orphan,
                           self, err);
}

static int sweep_named(void *ctx, const char *name, bal_error *err)
{
    sweep *self = ctx;
    BAL_OWN(bal_tenant) tenant = NULL;
    int rc = bal_tenant_open(&tenant, self->store, name, err);
    if (rc)
        return rc;

    self->tenant = tenant;
    rc = sweep_tenant(self, err);
    self->tenant = NULL;
    return rc;
}

int bal_gc(bal_store *store, bal_tenant *tenant, unsigned flags,
           bal_gc_report *report, bal_error *err)
{
    sweep self = { store, tenant, flags, report, { 0 } };
    unsigned dry = flags & BAL_GC_DRY_RUN ? BAL_SWEEP_DRY : 0;
    BAL_OWN(bal_lock) lock = NULL;

    memset(report, 0, sizeof(*report));
    int rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
    if (rc)
        return rc;
    rc = bal_backend_sweep(bal_blocks_backend(store->blocks),
                           &report->bytes_freed, dry, err);
    if (rc)
        return rc;
    rc = tenant ? sweep_tenant(&self, err)
                : bal_graph_tenants(store->graph, sweep_named, &self, err);
    bal_buf_done(&self.unused);
    if (rc || dry)
        return rc;
    return bal_graph_intended_done(store->graph, NULL, err);
}
