/* fsck of blocks: what the graph has rows for against what the backend lists,
 * then every byte, in parallel. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "store/fsck.h"

typedef struct listed {
    bal_block_row row;
    bool seen;     /* by the listing */
    uint64_t size; /* as listed */
    int rc;        /* of verifying */
    char detail[200];
} listed;

typedef struct inventory {
    bal_fsck_run *run;
    listed *blocks;
    size_t count, room;
    bal_map by_id;
    bal_buf orphans; /* ids */
    bal_buf begun;   /* ids that writers at work have published, sorted */
} inventory;

static void inventory_done(inventory *self)
{
    free(self->blocks);
    bal_map_done(&self->by_id);
    bal_buf_done(&self->orphans);
    bal_buf_done(&self->begun);
}

static int add_row(void *ctx, const bal_block_row *row, bal_error *err)
{
    inventory *self = ctx;

    listed *blocks = bal_room_for_one(self->blocks, self->count, &self->room,
                                      sizeof(*blocks));
    if (!blocks)
        return bal_fail_memory(err, "blocks");
    self->blocks = blocks;
    memset(&self->blocks[self->count], 0, sizeof(*self->blocks));
    self->blocks[self->count++].row = *row;
    return 0;
}

/* After the last row, for the map keeps pointers into the array of rows. */
static int index_rows(inventory *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        size_t value = i;
        bool there;
        int rc = bal_map_add(&self->by_id, &self->blocks[i].row.id,
                             sizeof(bal_id), &value, &there, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int tell(inventory *self, const char *kind, const bal_id *id,
                const char *detail, bal_error *err)
{
    bal_problem problem = { kind, NULL, detail, false };

    return bal_fsck_tell_id(self->run, id, &problem, err);
}

static int see_name(void *ctx, const bal_id *id, const char *name,
                    uint64_t size, bal_error *err)
{
    inventory *self = ctx;
    bal_problem stray = { "stray-file", name, "not the name of a block",
                          false };

    if (!id)
        return bal_fsck_tell(self->run, &stray, err);
    size_t at = bal_map_find(&self->by_id, id, sizeof(*id));
    if (at == BAL_NONE)
        return bal_buf_append(&self->orphans, id, sizeof(*id), err);
    self->blocks[at].seen = true;
    self->blocks[at].size = size;
    return 0;
}

static int verify_one(size_t i, void *ctx, bal_error *err)
{
    inventory *self = ctx;
    listed *block = &self->blocks[i];
    bal_store *store = self->run->store;
    bal_block_info info;
    bal_error why;

    bal_work_advance(store->work, block->row.size);
    if (!block->seen || block->size != block->row.stored)
        return 0;
    unsigned flags = self->run->flags & BAL_FSCK_FAST ? BAL_VERIFY_HEADER : 0;
    block->rc = bal_blocks_verify(store->blocks, self->run->tenant->name,
                                  &block->row.id, flags, &info, &why);
    if (block->rc == BAL_ENOMEM)
        return bal_fail_memory(err, "block");
    if (block->rc)
        snprintf(block->detail, sizeof(block->detail), "%.*s",
                 (int)sizeof(block->detail) - 1, why.text);
    else if (info.logical != block->row.size || info.codec != block->row.codec)
        block->rc = bal_fail(&why, BAL_ECORRUPT, "row");
    return 0;
}

static int tell_block(inventory *self, const listed *block, bal_error *err)
{
    const bal_id *id = &block->row.id;
    const char *detail =
        block->detail[0] ? block->detail : "header and row disagree";

    self->run->report->blocks++;
    self->run->report->bytes += block->row.stored;
    if (!block->seen)
        return tell(self, "missing-block", id, "its bytes are not there", err);
    if (block->size != block->row.stored)
        return tell(self, "wrong-size", id,
                    "its bytes are not as many as were stored", err);
    if (block->rc)
        return tell(self, "corrupt-block", id, detail, err);
    return 0;
}

static int add_begun(void *ctx, const char *session, const char *tenant,
                     const bal_id *id, bal_error *err)
{
    inventory *self = ctx;

    (void)session;
    if (strcmp(tenant, self->run->tenant->name) != 0)
        return 0;
    return bal_buf_append(&self->begun, id, sizeof(*id), err);
}

/* Known since the tenant was opened, or since its first writer was done; 0: not
 * known yet. */
static int number_now(int64_t *out, const bal_tenant *tenant, bal_error *err)
{
    bal_error why;

    *out = tenant->number;
    if (*out)
        return 0;
    int rc = bal_graph_tenant(tenant->store->graph, out, tenant->name, 0, &why);
    return rc && rc != BAL_ENOTFOUND ? bal_fail(err, rc, "%s", why.text) : 0;
}

/* No orphan is what a writer at work has published and not named yet, nor what
 * it has named since the rows were read. In this order, for it is named and no
 * longer begun in one step. */
static int drop_begun(inventory *self, bal_error *err)
{
    const bal_tenant *tenant = self->run->tenant;
    bal_graph *graph = tenant->store->graph;
    int64_t number = 0;
    size_t kept = 0;
    int rc = self->orphans.len
                 ? bal_graph_intended(graph, NULL, add_begun, self, err)
                 : 0;
    if (!rc)
        rc = number_now(&number, tenant, err);
    if (rc)
        return rc;

    size_t count = bal_ids_unique((bal_id *)(void *)self->begun.data,
                                  self->begun.len / sizeof(bal_id));
    for (size_t at = 0; at < self->orphans.len; at += sizeof(bal_id)) {
        char *from = self->orphans.data + at;
        bal_id id;
        memcpy(&id, from, sizeof(id));
        bool known = count && bsearch(&id, self->begun.data, count, sizeof(id),
                                      bal_id_compare);
        if (!known)
            rc = bal_graph_block(graph, number, &id, NULL, &known, err);
        if (rc)
            return rc;
        memmove(self->orphans.data + kept, from, sizeof(id));
        kept += known ? 0 : sizeof(id);
    }
    self->orphans.len = kept;
    return 0;
}

/* Removed with --repair, unless anything else is wrong: then what lost the row
 * may have lost more, and the bytes are what there is to mend it from. */
static int tell_orphans(inventory *self, bal_error *err)
{
    bool asked = self->run->flags & BAL_FSCK_REPAIR;
    bool repair = asked && !self->run->report->problems;
    const char *detail = asked ? "no row names it; kept while more is wrong"
                               : "no row names it; `fsck --repair` removes it";
    const char *tenant = self->run->tenant->name;

    for (size_t at = 0; at < self->orphans.len; at += sizeof(bal_id)) {
        bal_id id;
        uint64_t freed;
        memcpy(&id, self->orphans.data + at, sizeof(id));
        int rc = repair ? bal_blocks_remove(self->run->store->blocks, tenant,
                                            &id, &freed, err)
                        : tell(self, "orphan-block", &id, detail, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_fsck_blocks(bal_fsck_run *run, bal_error *err)
{
    BAL_LOCAL(inventory) self = { .run = run };
    bal_store *store = run->store;
    bal_tenant *tenant = run->tenant;
    uint64_t total = 0;
    int rc = 0;

    if (tenant->number)
        rc =
            bal_graph_blocks(store->graph, tenant->number, add_row, &self, err);
    if (rc)
        return bal_fsck_unreadable(run, rc, err);
    rc = index_rows(&self, err);
    if (!rc)
        rc = bal_blocks_each(store->blocks, tenant->name, see_name, &self, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < self.count; i++)
        total += self.blocks[i].row.size;
    bal_work_expect(store->work, total);
    rc = bal_pool_run(store->work, self.count, verify_one, &self, err);
    for (size_t i = 0; i < self.count && !rc; i++)
        rc = tell_block(&self, &self.blocks[i], err);
    /* With --repair nobody else is at work. */
    if (!rc && !(run->flags & BAL_FSCK_REPAIR))
        rc = drop_begun(&self, err);
    if (rc)
        return rc;
    return tell_orphans(&self, err);
}
