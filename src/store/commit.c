/* Committing a model: blocks first, durably, then the rows that name them, then
 * the answer. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "model/arithmetic.h"
#include "store/ingest.h"
#include "store/intent.h"
#include "store/publish.h"

static int intend(bal_intent *intent, bal_tenant *tenant,
                  const bal_ingest *ingest, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, tenant->store->graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_tenant_make(tenant, err);
    if (!rc)
        rc = bal_intend(intent, tenant, ingest->rows, ingest->row_count, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

/* Note what is to be published, then publish it. */
static int settle(bal_intent *intent, bal_ingest *ingest, bal_tenant *tenant,
                  bal_error *err)
{
    int64_t number = tenant->number;
    int rc = intend(intent, tenant, ingest, err);

    if (rc) {
        tenant->number = number; /* it may have been made and taken back */
        return rc;
    }
    return bal_ingest_settle(ingest, tenant->store->work, err);
}

static void count(bal_commit_report *report, const bal_ingest *ingest,
                  const bal_model *model)
{
    bal_minus_report minus = { 0 };

    for (size_t i = 0; i < ingest->leaf.count; i++) {
        const bal_tensor *entry = &ingest->leaf.entries[i];
        report->bytes += entry->size;
        if (entry->part == BAL_PART_TENSOR &&
            entry->form != BAL_FORM_RESIDUAL && entry->form != BAL_FORM_REMOVED)
            report->tensors++;
    }
    report->stored_bytes = ingest->stored;
    report->new_blocks = ingest->row_count;
    report->reused_blocks = ingest->id_count - ingest->row_count;
    for (size_t i = 0; i < ingest->row_count && !report->anchored; i++)
        report->anchored = ingest->rows[i].base_count > 0;
    if (ingest->leaf.kind != BAL_KIND_DELTA)
        return;
    bal_minus_count(&minus, model);
    report->changed = minus.changed;
    report->unchanged = minus.unchanged;
    report->added = minus.added;
    report->removed = minus.removed;
    report->reshaped = minus.reshaped;
}

static int publish(bal_commit **out, bal_tenant *tenant, bal_ingest *ingest,
                   const bal_draft *draft, bal_commit_report *report,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_intent intent = { 0 };
    int rc = bal_leaf_write(&body, &ingest->leaf, err);
    if (rc)
        return rc;

    if (ingest->row_count)
        rc = settle(&intent, ingest, tenant, err);
    if (rc)
        return rc;
    bal_manifest_row manifest = {
        .kind = bal_kind_name(ingest->leaf.kind),
        .body = { body.data, body.len },
        .logical = report->bytes,
    };
    bal_hash_of(&manifest.id, body.data, body.len);
    bal_publication publication = {
        .manifest = &manifest,
        .blocks = ingest->rows,
        .block_count = ingest->row_count,
        .ids = ingest->ids,
        .id_count = ingest->id_count,
        .intent = &intent,
        .op = "commit",
        .base_model =
            draft->base_model ? draft->base_model : ingest->leaf.base_model,
    };
    return bal_publish(out, tenant, &publication, draft, report, err);
}

/* What blocks are coded by, looked for by the first who needs it. */
typedef struct seeking {
    bal_tenant *tenant;
    bal_model *model;
    const bal_draft *draft;
    pthread_mutex_t lock; /* guards what follows */
    bool sought;
    bal_anchor anchor;
} seeking;

static void seeking_done(seeking *self)
{
    bal_anchor_done(&self->anchor);
    pthread_mutex_destroy(&self->lock);
}

/* Only where blocks are coded at all. */
static int seek(seeking *self, bal_error *err)
{
    bal_tenant *tenant = self->tenant;
    const bal_draft *draft = self->draft;
    const char *anchoring = tenant->store->settings[BAL_SETTING_ANCHORING];
    bal_anchor_wish wish = { draft->anchor, draft->parent };
    bal_id head;

    if (tenant->store->effort == BAL_EFFORT_NONE || !anchoring ||
        strcmp(anchoring, "on") != 0)
        return 0;
    if (!wish.parent && tenant->number &&
        !bal_resolve(&head, tenant, draft->ref ? draft->ref : "main", NULL))
        wish.parent = &head;
    return bal_anchor_find(&self->anchor, tenant, self->model, &wish, err);
}

static int find_anchor(void *ctx, const bal_anchor **out, bal_error *err)
{
    seeking *self = ctx;
    int rc = 0;

    pthread_mutex_lock(&self->lock);
    if (!self->sought)
        rc = seek(self, err);
    self->sought = !rc;
    pthread_mutex_unlock(&self->lock);
    *out = &self->anchor;
    return rc;
}

int bal_commit_model(bal_commit **out, bal_tenant *tenant, bal_model *model,
                     const bal_draft *draft, bal_commit_report *report,
                     bal_error *err)
{
    bal_commit_report none = { 0 };
    bal_store *store = tenant->store;
    int rc = bal_draft_check(draft, err);
    if (rc)
        return rc;

    report = report ? report : &none;
    memset(report, 0, sizeof(*report));
    rc = bal_store_recover(store, err);
    if (rc)
        return rc;
    BAL_OWN(bal_db_lock) lock = NULL;
    rc = bal_store_lock(&lock, store, BAL_LOCK_SHARED, err);
    if (rc)
        return rc;
    BAL_LOCAL(bal_ingest) ingest = { 0 };
    BAL_LOCAL(seeking)
    sought = { tenant, model, draft, PTHREAD_MUTEX_INITIALIZER };
    rc = bal_ingest_model(
        &ingest, tenant, model,
        &(bal_ingest_how){ .anchor = find_anchor, .ctx = &sought }, err);
    if (rc)
        return rc;
    report->anchor = sought.anchor.commit;
    count(report, &ingest, model);
    return publish(out, tenant, &ingest, draft, report, err);
}
