/* A tenant's blocks, stored anew. What a leaf's blocks are made of comes from
 * planning its model again, which gives the blocks that it has. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "store/ingest.h"
#include "store/intent.h"
#include "store/leaf_model.h"
#include "store/recode.h"

typedef struct pass {
    bal_tenant *tenant;
    bal_gc_report *report;
    bal_buf manifests; /* ids, in order */
    bal_buf leaves;    /* ids of those that were dealt with */
    bal_map done;      /* blocks that were put */
    bal_arena ids;     /* of done */
} pass;

static void pass_done(pass *self)
{
    bal_buf_done(&self->manifests);
    bal_buf_done(&self->leaves);
    bal_map_done(&self->done);
    bal_arena_done(&self->ids);
}

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

/* ---- one leaf ----------------------------------------------------------- */

/* What blocks took before, and that they are dealt with. */
static int tick_off(pass *self, const bal_ingest *ingest, bal_error *err)
{
    for (size_t i = 0; i < ingest->row_count; i++) {
        const bal_block_row *row = &ingest->rows[i];
        bal_block_row old = { 0 };
        bool there = false;
        size_t value = 0;
        bal_id *id = bal_arena_alloc(&self->ids, sizeof(*id));
        if (!id)
            return bal_fail_memory(err, "blocks");
        *id = row->id;
        int rc = bal_map_add(&self->done, id, sizeof(*id), &value, &there, err);
        if (!rc)
            rc = bal_graph_block(self->tenant->store->graph,
                                 self->tenant->number, &row->id, &old, &there,
                                 err);
        if (rc)
            return rc;
        self->report->recompressed++;
        self->report->bytes_before += there ? old.stored : 0;
        self->report->bytes_after += row->stored;
    }
    return 0;
}

typedef int row_fn(bal_graph *self, int64_t tenant, const bal_block_row *row,
                   bal_error *err);

static int each_row(const pass *self, const bal_ingest *ingest, row_fn *fn,
                    bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < ingest->row_count; i++)
        rc = fn(self->tenant->store->graph, self->tenant->number,
                &ingest->rows[i], err);
    return rc;
}

static int begin(const pass *self, bal_intent *intent, const bal_ingest *ingest,
                 bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc =
        bal_graph_begin(&tx, self->tenant->store->graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_intend(intent, self->tenant, ingest->rows, ingest->row_count,
                        err);
    if (!rc)
        rc = each_row(self, ingest, bal_graph_bases_add, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int end(const pass *self, const bal_intent *intent,
               const bal_ingest *ingest, bal_error *err)
{
    bal_store *store = self->tenant->store;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, store->graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = each_row(self, ingest, bal_graph_block_renew, err);
    if (!rc)
        rc = bal_intent_done(intent, store, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

/* First that more is needed, then the bytes, then what is needed no more: cut
 * short, no block is taken for one that nothing is coded by. */
static int settle(pass *self, bal_ingest *ingest, bal_error *err)
{
    bal_intent intent;
    int rc = begin(self, &intent, ingest, err);
    if (!rc)
        rc = bal_ingest_settle(ingest, self->tenant->store->work, err);
    if (!rc)
        rc = tick_off(self, ingest, err);
    return rc ? rc : end(self, &intent, ingest, err);
}

static int give_anchor(void *ctx, const bal_anchor **out, bal_error *err)
{
    (void)err;
    *out = ctx;
    return 0;
}

static int recompress_leaf(pass *self, bal_bytes text, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    BAL_LOCAL(bal_anchor) anchor = { 0 };
    BAL_LOCAL(bal_ingest) ingest = { 0 };
    BAL_LOCAL(bal_leaf) leaf = { 0 };
    bal_ingest_how how = { .anchor = give_anchor,
                           .ctx = &anchor,
                           .kept = &self->done };
    int rc = bal_leaf_read(&leaf, text, err);
    if (!rc)
        rc = bal_leaf_model(&model, self->tenant, text, "a commit", err);
    if (!rc && self->tenant->store->effort != BAL_EFFORT_NONE)
        rc = bal_anchor_among(&anchor, self->tenant, model,
                              bal_ids_of(&self->leaves),
                              bal_ids_count(&self->leaves), err);
    how.block_size = leaf.block_size;
    if (!rc)
        rc = bal_ingest_model(&ingest, self->tenant, model, &how, err);
    return rc ? rc : settle(self, &ingest, err);
}

static int recompress_one(pass *self, const bal_id *manifest, bal_error *err)
{
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    int rc =
        bal_graph_manifest(self->tenant->store->graph, self->tenant->number,
                           manifest, &kind, &body, err);
    if (rc || !strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)))
        return rc;
    rc = recompress_leaf(self, (bal_bytes){ body.data, body.len }, err);
    return rc ? rc : add_id(&self->leaves, manifest, err);
}

int bal_recompress(bal_tenant *tenant, bal_gc_report *report, bal_error *err)
{
    BAL_LOCAL(pass) self = { .tenant = tenant, .report = report };
    int rc = bal_graph_committed(tenant->store->graph, tenant->number, add_id,
                                 &self.manifests, err);

    for (size_t i = 0; !rc && i < bal_ids_count(&self.manifests); i++)
        rc = recompress_one(&self, bal_ids_at(&self.manifests, i), err);
    return rc;
}
