/* Which blocks go: those that no manifest uses but the forgotten ones, and byte
 * runs of the tenant that no row names, which a killed writer or a lost
 * database may have left. The store's lock is held alone, so nobody is about to
 * name them; in a dry run, those that a writer has announced are not taken for
 * lost. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "graph/forgets.h"
#include "store/forget_plan.h"

typedef struct block_plan {
    bal_planning *planning;
    bal_buf rows;     /* ids that have a row, in order */
    bal_buf intended; /* ids that a writer has announced, in order */
    bal_buf going;    /* ids */
} block_plan;

static void block_plan_done(block_plan *self)
{
    bal_buf_done(&self->rows);
    bal_buf_done(&self->intended);
    bal_buf_done(&self->going);
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(bal_id));
}

static void sort(bal_buf *ids)
{
    if (ids->len)
        qsort(ids->data, ids->len / sizeof(bal_id), sizeof(bal_id),
              compare_ids);
}

static bool among(const bal_buf *ids, const bal_id *id)
{
    return ids->len && bsearch(id, ids->data, ids->len / sizeof(bal_id),
                               sizeof(bal_id), compare_ids);
}

static int doomed(void *ctx, const bal_block_row *row, bal_error *err)
{
    block_plan *self = ctx;

    self->planning->bytes += row->stored;
    return bal_buf_append(&self->going, &row->id, sizeof(row->id), err);
}

static int has_row(void *ctx, const bal_block_row *row, bal_error *err)
{
    block_plan *self = ctx;

    return bal_buf_append(&self->rows, &row->id, sizeof(row->id), err);
}

static int announced(void *ctx, const char *session, const char *tenant,
                     const bal_id *id, bal_error *err)
{
    block_plan *self = ctx;

    (void)session;
    if (strcmp(tenant, self->planning->tenant->name) != 0)
        return 0;
    return bal_buf_append(&self->intended, id, sizeof(*id), err);
}

static int listed(void *ctx, const bal_id *id, const char *name, uint64_t size,
                  bal_error *err)
{
    block_plan *self = ctx;

    (void)name;
    if (!id || among(&self->rows, id) || among(&self->intended, id))
        return 0;
    self->planning->bytes += size;
    return bal_buf_append(&self->going, id, sizeof(*id), err);
}

static int find(block_plan *self, bal_error *err)
{
    bal_planning *planning = self->planning;
    bal_graph *graph = planning->graph;
    int64_t tenant = planning->tenant->number;
    int rc = 0;

    if (planning->manifest_goes)
        rc = bal_graph_doomed(graph, tenant,
                              planning->commit ? &planning->manifest : NULL,
                              planning->commit ? 1 : 0, doomed, self, err);
    if (!rc)
        rc = bal_graph_blocks(graph, tenant, has_row, self, err);
    if (!rc)
        rc = bal_graph_intended(graph, NULL, false, announced, self, err);
    if (rc)
        return rc;
    sort(&self->rows);
    sort(&self->intended);
    return bal_blocks_each(planning->tenant->store->blocks,
                           planning->tenant->name, listed, self, err);
}

/* One that stays, and is coded by one that goes. */
static int depends(void *ctx, const bal_id *block, const bal_id *base,
                   bal_error *err)
{
    block_plan *self = ctx;
    bal_buf *anew = self->planning->anew;
    size_t count = bal_ids_count(anew);

    if (!among(&self->going, base) || among(&self->going, block) ||
        (count && bal_id_equal(bal_ids_at(anew, count - 1), block)))
        return 0;
    return bal_buf_append(anew, block, sizeof(*block), err);
}

static int tell_anew(bal_planning *self, bal_error *err)
{
    static const char why[] =
        "it was coded by a block that goes, and is stored anew before";
    int rc = 0;

    for (size_t i = 0; !rc && i < bal_ids_count(self->anew); i++) {
        char hex[BAL_ID_HEX + 1];
        bal_id_hex(hex, bal_ids_at(self->anew, i));
        rc = bal_plan_add(
            self, "retained",
            json_pack("{s:s,s:s,s:s}", "kind", "block", "id", hex, "why", why),
            err);
    }
    return rc;
}

int bal_plan_blocks(bal_planning *self, bal_error *err)
{
    BAL_LOCAL(block_plan) plan = { .planning = self };
    int rc = find(&plan, err);

    sort(&plan.going);
    if (!rc && !self->anew->len)
        rc = bal_graph_bases(self->graph, self->tenant->number, depends, &plan,
                             err);
    if (!rc)
        rc = tell_anew(self, err);
    for (size_t at = 0; at < plan.going.len && !rc; at += sizeof(bal_id)) {
        bal_id id;
        memcpy(&id, plan.going.data + at, sizeof(id));
        rc = bal_plan_id(self, "blocks", &id, err);
    }
    return rc;
}
