/* fsck of blocks: what the graph has rows for against what the backend lists,
 * then every byte, in parallel.
 *
 * A row knows the check of its block's header, which covers all that is at
 * rest. So a block whose check is right and is the row's needs no decoding: its
 * bytes are those that were put, which were decoded from nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "store/fsck.h"

/* What is told of a block by its state; kind NULL: nothing. */
typedef struct verdict {
    const char *kind;
    const char *detail;
    bool expected;
} verdict;

static const verdict verdicts[] = {
    [BAL_BLOCK_GOOD] = { NULL, NULL, false },
    [BAL_BLOCK_MISSING] = { "missing-block", "its bytes are not there", false },
    [BAL_BLOCK_WRONG_SIZE] = { "wrong-size",
                               "its bytes are not as many as were stored",
                               false },
    [BAL_BLOCK_CORRUPT] = { "corrupt-block", "its bytes are damaged", false },
    [BAL_BLOCK_WRONG_ROW] = { "wrong-block-row",
                              "its bytes are right and its row is not; "
                              "`fsck --repair` renews it",
                              false },
    [BAL_BLOCK_RENEWED] = { "renewed-block-row",
                            "its row did not fit its bytes, and does now",
                            true },
    [BAL_BLOCK_HEALED] = { "healed-block", "its bytes were put again", true },
};

/* ---- the inventory ------------------------------------------------------ */

void bal_inventory_done(bal_inventory *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_str_free(self->blocks[i].detail);
    for (size_t i = 0; i < self->count; i++)
        bal_buf_done(&self->blocks[i].bases);
    bal_buf_done(&self->pairs);
    free(self->blocks);
    bal_map_done(&self->by_id);
    bal_buf_done(&self->orphans);
    bal_buf_done(&self->begun);
}

bal_fsck_block *bal_inventory_find(const bal_inventory *self, const bal_id *id)
{
    size_t at = bal_map_find(&self->by_id, id, sizeof(*id));

    return at == BAL_NONE ? NULL : &self->blocks[at];
}

static int add_row(void *ctx, const bal_block_row *row, bal_error *err)
{
    bal_inventory *self = ctx;

    bal_fsck_block *blocks = bal_room_for_one(self->blocks, self->count,
                                              &self->room, sizeof(*blocks));
    if (!blocks)
        return bal_fail_memory(err, "blocks");
    self->blocks = blocks;
    memset(&self->blocks[self->count], 0, sizeof(*self->blocks));
    self->blocks[self->count++].row = *row;
    return 0;
}

/* After the last row, for the map keeps pointers into the array of rows. */
static int index_rows(bal_inventory *self, bal_error *err)
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

static int add_pair(void *ctx, const bal_id *block, const bal_id *base,
                    bal_error *err)
{
    bal_inventory *self = ctx;
    int rc = bal_buf_append(&self->pairs, block, sizeof(*block), err);

    return rc ? rc : bal_buf_append(&self->pairs, base, sizeof(*base), err);
}

int bal_inventory_load(bal_inventory *self, bal_fsck_run *run, bal_error *err)
{
    int rc = 0;

    self->run = run;
    if (run->tenant->number)
        rc = bal_graph_blocks(run->store->graph, run->tenant->number, add_row,
                              self, err);
    if (!rc && run->tenant->number)
        rc = bal_graph_bases(run->store->graph, run->tenant->number, add_pair,
                             self, err);
    return rc ? rc : index_rows(self, err);
}

static int see_name(void *ctx, const bal_id *id, const char *name,
                    uint64_t size, bal_error *err)
{
    bal_inventory *self = ctx;
    bal_problem stray = { "stray-file", name, "not the name of a block",
                          false };

    if (!id)
        return bal_fsck_tell(self->run, &stray, err);
    bal_fsck_block *block = bal_inventory_find(self, id);
    if (!block)
        return bal_buf_append(&self->orphans, id, sizeof(*id), err);
    block->seen = true;
    block->size = size;
    return 0;
}

/* ---- their bytes -------------------------------------------------------- */

static bool fits(const bal_block_row *row, const bal_block_info *info)
{
    return info->logical == row->size && info->stored == row->stored &&
           info->codec == row->codec &&
           (!row->has_check || bal_id_equal(&info->check, &row->check));
}

static int verify(const bal_inventory *self, const bal_fsck_block *block,
                  unsigned flags, bal_block_info *info, bal_error *err)
{
    return bal_blocks_verify(self->run->store->blocks, self->run->tenant->name,
                             &block->row.id, flags, info, err);
}

static int damaged(bal_fsck_block *block, int rc, const bal_error *why,
                   bal_error *err)
{
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "block");
    block->state = block->size == block->row.stored ? BAL_BLOCK_CORRUPT
                                                    : BAL_BLOCK_WRONG_SIZE;
    block->detail = bal_str_copy(why->text);
    return block->detail ? 0 : bal_fail_memory(err, "block");
}

/* ---- what they are coded by --------------------------------------------- */

static int by_pair(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(bal_id));
}

/* Does a row say that the block is coded by this one? */
static bool is_noted(const bal_inventory *self, const bal_id *block,
                     const bal_id *base)
{
    const bal_id pair[] = { *block, *base };

    return self->pairs.len &&
           bsearch(pair, self->pairs.data, self->pairs.len / sizeof(pair),
                   sizeof(pair), by_pair);
}

/* A block whose base is nowhere cannot be read; one whose base is not noted
 * would be lost with it. */
static int check_bases(const bal_inventory *self, bal_fsck_block *block,
                       const bal_block_info *info, bal_error *err)
{
    bal_error why;
    bool noted = true;
    int rc = info->based ? bal_blocks_bases(self->run->store->blocks,
                                            self->run->tenant->name,
                                            &block->row.id, &block->bases, &why)
                         : 0;
    if (rc)
        return damaged(block, rc, &why, err);

    for (size_t i = 0; i < bal_ids_count(&block->bases); i++) {
        const bal_id *base = bal_ids_at(&block->bases, i);
        const bal_fsck_block *other = bal_inventory_find(self, base);
        noted = noted && is_noted(self, &block->row.id, base);
        if (other && other->seen)
            continue;
        bal_id_hex(why.text, base);
        snprintf(why.text + 12, sizeof(why.text) - 12,
                 ", which it is coded by, is lost");
        return damaged(block, BAL_ECORRUPT, &why, err);
    }
    if (noted && block->state == BAL_BLOCK_GOOD)
        return 0;
    block->state = BAL_BLOCK_WRONG_ROW;
    block->good = (bal_block_row){ .id = block->row.id,
                                   .size = info->logical,
                                   .stored = info->stored,
                                   .codec = info->codec,
                                   .check = info->check,
                                   .has_check = true,
                                   .bases = bal_ids_of(&block->bases),
                                   .base_count = bal_ids_count(&block->bases) };
    return 0;
}

/* Where bytes and row disagree, decoding tells which of them is right. */
static int verify_bytes(const bal_inventory *self, bal_fsck_block *block,
                        bal_error *err)
{
    const bal_block_row *row = &block->row;
    bal_block_info info;
    bal_error why;
    int rc = 0;

    if (row->has_check && block->size == row->stored) {
        rc = verify(self, block, BAL_VERIFY_PAYLOAD, &info, &why);
        if (rc)
            return damaged(block, rc, &why, err);
        if (fits(row, &info))
            return check_bases(self, block, &info, err);
    }
    rc = verify(self, block, 0, &info, &why);
    if (rc)
        return damaged(block, rc, &why, err);
    if (!fits(row, &info))
        block->state = BAL_BLOCK_WRONG_ROW;
    return check_bases(self, block, &info, err);
}

static int verify_one(size_t i, void *ctx, bal_error *err)
{
    const bal_inventory *self = ctx;
    bal_fsck_block *block = &self->blocks[i];

    bal_work_advance(self->run->store->work, block->row.size);
    if (block->seen)
        return verify_bytes(self, block, err);
    block->state = BAL_BLOCK_MISSING;
    return 0;
}

/* By the listing alone. */
static void compare_sizes(bal_inventory *self)
{
    for (size_t i = 0; i < self->count; i++) {
        bal_fsck_block *block = &self->blocks[i];
        if (!block->seen)
            block->state = BAL_BLOCK_MISSING;
        else if (block->size != block->row.stored)
            block->state = BAL_BLOCK_WRONG_SIZE;
    }
}

static int examine(bal_inventory *self, bal_error *err)
{
    bal_work *work = self->run->store->work;
    uint64_t total = 0;

    if (self->run->flags & BAL_FSCK_FAST) {
        compare_sizes(self);
        return 0;
    }
    for (size_t i = 0; i < self->count; i++)
        total += self->blocks[i].row.size;
    bal_work_expect(work, total);
    return bal_pool_run(work, self->count, verify_one, self, err);
}

/* ---- mending and telling ------------------------------------------------ */

static int renew_rows(bal_inventory *self, bal_error *err)
{
    const bal_tenant *tenant = self->run->tenant;
    int rc = 0;

    for (size_t i = 0; i < self->count && !rc; i++) {
        bal_fsck_block *block = &self->blocks[i];
        if (block->state != BAL_BLOCK_WRONG_ROW)
            continue;
        rc = bal_graph_block_renew(tenant->store->graph, tenant->number,
                                   &block->good, err);
        block->state = rc ? block->state : BAL_BLOCK_RENEWED;
    }
    return rc;
}

static int mend(bal_inventory *self, bal_error *err)
{
    int rc = 0;

    if (self->run->flags & BAL_FSCK_REPAIR)
        rc = renew_rows(self, err);
    if (rc || !self->run->from)
        return rc;
    return bal_fsck_heal(self, err);
}

static int tell_block(bal_inventory *self, const bal_fsck_block *block,
                      bal_error *err)
{
    const verdict *said = &verdicts[block->state];
    const char *detail = block->detail ? block->detail : said->detail;
    const char *reason = said->expected ? NULL : block->reason;
    char text[400];
    bal_problem problem = { said->kind, NULL, text, said->expected };

    self->run->report->blocks++;
    self->run->report->bytes += block->row.stored;
    if (!said->kind)
        return 0;
    snprintf(text, sizeof(text), "%s%s%s", detail, reason ? "; " : "",
             reason ? reason : "");
    return bal_fsck_tell_id(self->run, &block->row.id, &problem, err);
}

/* ---- orphans ------------------------------------------------------------ */

static int add_begun(void *ctx, const char *session, const char *tenant,
                     const bal_id *id, bal_error *err)
{
    bal_inventory *self = ctx;

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
static int drop_begun(bal_inventory *self, bal_error *err)
{
    const bal_tenant *tenant = self->run->tenant;
    bal_graph *graph = tenant->store->graph;
    int64_t number = 0;
    size_t kept = 0;
    int rc = self->orphans.len
                 ? bal_graph_intended(graph, NULL, false, add_begun, self, err)
                 : 0;
    if (!rc)
        rc = number_now(&number, tenant, err);
    if (rc)
        return rc;

    size_t count = bal_ids_unique((bal_id *)(void *)self->begun.data,
                                  bal_ids_count(&self->begun));
    bal_id *orphans = (bal_id *)(void *)self->orphans.data;
    for (size_t i = 0; i < bal_ids_count(&self->orphans); i++) {
        bal_id id = orphans[i];
        bool known = count && bsearch(&id, self->begun.data, count, sizeof(id),
                                      bal_id_compare);
        if (!known)
            rc = bal_graph_block(graph, number, &id, NULL, &known, err);
        if (rc)
            return rc;
        orphans[kept] = id;
        kept += !known;
    }
    self->orphans.len = kept * sizeof(bal_id);
    return 0;
}

/* Removed with --repair, unless anything else is wrong: then what lost the row
 * may have lost more, and the bytes are what there is to mend it from. */
static int tell_orphans(bal_inventory *self, bal_error *err)
{
    bal_fsck_run *run = self->run;
    bool asked = run->flags & BAL_FSCK_REPAIR;
    const char *detail = asked ? "no row names it; kept while more is wrong"
                               : "no row names it; `fsck --repair` removes it";
    bal_problem problem = { "orphan-block", NULL, detail, false };
    const bal_id *ids = bal_ids_of(&self->orphans);
    size_t count = bal_ids_count(&self->orphans);
    uint64_t freed;
    int rc = 0;

    if (asked && !run->report->problems)
        return bal_blocks_remove(run->store->blocks, run->tenant->name, ids,
                                 count, &freed, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = bal_fsck_tell_id(run, &ids[i], &problem, err);
    return rc;
}

int bal_fsck_blocks(bal_inventory *self, bal_error *err)
{
    bal_fsck_run *run = self->run;
    int rc = bal_blocks_each(run->store->blocks, run->tenant->name, see_name,
                             self, err);
    if (!rc)
        rc = examine(self, err);
    if (!rc)
        rc = mend(self, err);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = tell_block(self, &self->blocks[i], err);
    /* With --repair nobody else is at work. */
    if (!rc && !(run->flags & BAL_FSCK_REPAIR))
        rc = drop_begun(self, err);
    if (rc)
        return rc;
    return tell_orphans(self, err);
}
