#include "store/recode.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/hash.h"
#include "store/ingest.h"
#include "store/intent.h"

typedef struct recoding {
    const bal_tenant *tenant;
    bal_batch batch;
    const bal_id *ids;
    bal_block_row *rows;
} recoding;

static void recoding_done(recoding *self)
{
    bal_batch_done(&self->batch);
    free(self->rows);
}

static int recode_one(size_t i, void *ctx, bal_error *err)
{
    recoding *self = ctx;
    bal_store *store = self->tenant->store;
    bal_block_row *row = &self->rows[i];
    const bal_block_ref ref = { self->tenant->name, &self->ids[i], row->size };
    bal_block_kind kind = { 0 };
    bal_put put = { 0 };
    uint8_t *data = bal_pool_scratch(store->work, 0, (size_t)row->size);
    if (!data)
        return bal_fail_memory(err, "block");

    bal_block_info info = { 0 };
    int rc = bal_blocks_verify(store->blocks, ref.tenant, ref.id,
                               BAL_VERIFY_HEADER, &info, err);
    kind.width = info.width;
    if (!rc)
        rc = bal_blocks_read(store->blocks, &ref, 0, data, (size_t)row->size,
                             err);
    if (!rc)
        rc = bal_batch_put(&self->batch, ref.id,
                           (bal_bytes){ data, (size_t)row->size }, &kind, &put,
                           err);
    if (rc)
        return rc;
    bal_row_fill(row, &put);
    return 0;
}

static int find_rows(recoding *self, size_t count, bal_error *err)
{
    bal_graph *graph = self->tenant->store->graph;

    self->rows = calloc(count + 1, sizeof(*self->rows));
    if (!self->rows)
        return bal_fail_memory(err, "blocks");
    for (size_t i = 0; i < count; i++) {
        bool there = false;
        int rc = bal_graph_block(graph, self->tenant->number, &self->ids[i],
                                 &self->rows[i], &there, err);
        if (!rc && !there)
            rc =
                bal_fail(err, BAL_ECORRUPT, "a block to store anew has no row");
        if (rc)
            return rc;
    }
    return 0;
}

/* The rows after the bytes: until then they say that more is needed than is. */
static int settle(recoding *self, size_t count, bal_error *err)
{
    bal_store *store = self->tenant->store;
    BAL_LOCAL(bal_tx) tx = { 0 };
    bal_intent intent;
    int rc = bal_intend(&intent, self->tenant, self->rows, count, err);
    if (!rc)
        rc = bal_batch_settle(&self->batch, store->work, err);
    if (!rc)
        rc = bal_graph_begin(&tx, store->graph, BAL_TX_WRITE, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = bal_graph_block_renew(store->graph, self->tenant->number,
                                   &self->rows[i], err);
    if (!rc)
        rc = bal_intent_done(&intent, store, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

int bal_recode(const bal_tenant *tenant, const bal_id *ids, size_t count,
               uint64_t *stored, bal_error *err)
{
    bal_store *store = tenant->store;
    BAL_LOCAL(recoding) self = { .tenant = tenant, .ids = ids };
    int rc = find_rows(&self, count, err);
    if (!rc)
        rc = bal_batch_begin(&self.batch, store->blocks, tenant->name,
                             store->effort, err);
    self.batch.replaces = true;
    if (!rc)
        rc = bal_pool_run(store->work, count, recode_one, &self, err);
    if (!rc)
        rc = settle(&self, count, err);
    *stored = 0;
    for (size_t i = 0; !rc && i < count; i++)
        *stored += self.rows[i].stored;
    return rc;
}
