/* Lost blocks, put again from a folder that has what was committed: a leaf says
 * which bytes of which entries a block is made of. What was gathered is hashed,
 * and only what gives the block's id is put. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "store/anchor.h"
#include "store/fsck.h"
#include "store/ingest.h"
#include "store/manifest.h"

/* What is against healing a block; of several, the last that was found is
 * told. */
typedef enum why_not {
    NOTHING,   /* a job is tried, or has healed its block */
    NOT_ASKED, /* no leaf has the block: there is no job */
    NOT_WHOLE,
    NOT_THERE,
    NOT_SAME,
} why_not;

static const char *const reasons[] = {
    [NOTHING] = NULL,
    [NOT_ASKED] = "no manifest says what it is made of",
    [NOT_WHOLE] = "it is part of a difference, which no folder holds",
    [NOT_THERE] = "the folder to heal from has no such tensor or file",
    [NOT_SAME] = "what the folder to heal from has is not what was committed",
};

/* Bytes of one entry of the folder. */
typedef struct heal_run {
    size_t entry;
    uint64_t offset;
    uint64_t len;
} heal_run;

/* One way to make one lost block: runs one behind the other. */
typedef struct heal_job {
    bal_fsck_block *block;
    size_t first, count; /* runs */
    uint64_t size;
    bal_block_kind kind; /* as it was put with, so that the same is put again */
    why_not why;
} heal_job;

typedef struct healing {
    bal_inventory *inventory;
    bal_model *from;
    bal_batch batch;
    bal_leaf leaf; /* being looked at */
    heal_job *jobs;
    size_t job_count, job_room;
    heal_run *runs;
    size_t run_count, run_room;
} healing;

static void healing_done(healing *self)
{
    bal_leaf_done(&self->leaf);
    bal_batch_done(&self->batch);
    free(self->jobs);
    free(self->runs);
}

static bool lost(const bal_fsck_block *block)
{
    return block && (block->state == BAL_BLOCK_MISSING ||
                     block->state == BAL_BLOCK_CORRUPT ||
                     block->state == BAL_BLOCK_WRONG_SIZE);
}

/* ---- what a block is made of -------------------------------------------- */

/* The entry in the folder, and in *why what is against it. */
static size_t find_entry(const healing *self, const bal_tensor *entry,
                         why_not *why)
{
    *why = NOT_WHOLE;
    if (entry->form != BAL_FORM_WHOLE)
        return BAL_NONE;
    *why = NOT_THERE;
    size_t at = bal_model_find(self->from, entry->part, entry->name);
    if (at == BAL_NONE)
        return BAL_NONE;
    const bal_tensor *found = bal_model_at(self->from, at);
    *why = NOT_SAME;
    if (found->size != entry->size || found->dtype != entry->dtype ||
        !bal_tensor_same_shape(found, entry))
        return BAL_NONE;
    return at;
}

static int add_job(healing *self, bal_fsck_block *block,
                   const bal_tensor *entry, uint64_t size, bal_error *err)
{
    heal_job *jobs = bal_room_for_one(self->jobs, self->job_count,
                                      &self->job_room, sizeof(*jobs));
    if (!jobs)
        return bal_fail_memory(err, "healing");
    self->jobs = jobs;
    jobs[self->job_count++] = (heal_job){
        .block = block,
        .first = self->run_count,
        .size = size,
        .kind = bal_anchor_kind(entry),
    };
    return 0;
}

/* More bytes for the last job. */
static int add_run(healing *self, const bal_tensor *entry, uint64_t offset,
                   uint64_t len, bal_error *err)
{
    heal_job *job = &self->jobs[self->job_count - 1];
    why_not why;
    size_t at = find_entry(self, entry, &why);
    if (at == BAL_NONE)
        job->why = why;
    if (bal_anchor_kind(entry).kind != job->kind.kind)
        job->kind.kind = BAL_NUMBER_BYTES;

    heal_run *runs = bal_room_for_one(self->runs, self->run_count,
                                      &self->run_room, sizeof(*runs));
    if (!runs)
        return bal_fail_memory(err, "healing");
    self->runs = runs;
    runs[self->run_count++] = (heal_run){ at, offset, len };
    job->count++;
    return 0;
}

static int add_own_blocks(healing *self, size_t i, bal_error *err)
{
    const bal_leaf *leaf = &self->leaf;
    const bal_place *place = &leaf->places[i];
    uint64_t left = leaf->entries[i].size;

    for (size_t k = 0; k < place->count; k++) {
        const bal_id *id = &leaf->ids[place->first + k];
        bal_fsck_block *block = bal_inventory_find(self->inventory, id);
        uint64_t len = bal_min(left, leaf->block_size);
        int rc = 0;
        if (lost(block))
            rc = add_job(self, block, &leaf->entries[i], len, err);
        if (!rc && lost(block))
            rc = add_run(self, &leaf->entries[i], k * leaf->block_size, len,
                         err);
        if (rc)
            return rc;
        left -= len;
    }
    return 0;
}

/* Entries that share a block come in the order of their offsets, and those of
 * other blocks may stand between them. */
static int add_shared_block(healing *self, size_t first, bal_error *err)
{
    const bal_leaf *leaf = &self->leaf;
    const bal_place *place = &leaf->places[first];
    const bal_id *id = &leaf->ids[place->first];
    bal_fsck_block *block = bal_inventory_find(self->inventory, id);
    uint64_t filled = 0;

    if (!lost(block) || place->offset)
        return 0;
    int rc =
        add_job(self, block, &leaf->entries[first], place->block_size, err);
    for (size_t i = first; i < leaf->count && !rc; i++) {
        const bal_place *other = &leaf->places[i];
        if (!other->shared || other->offset != filled ||
            other->block_size != place->block_size ||
            !bal_id_equal(&leaf->ids[other->first], id))
            continue;
        rc = add_run(self, &leaf->entries[i], 0, leaf->entries[i].size, err);
        filled += leaf->entries[i].size;
        if (filled == place->block_size)
            break;
    }
    if (!rc && filled != place->block_size)
        self->jobs[self->job_count - 1].why = NOT_THERE;
    return rc;
}

/* ---- putting ------------------------------------------------------------ */

static int gather(const healing *self, const heal_job *job, uint8_t *to,
                  bal_error *err)
{
    for (size_t r = 0; r < job->count; r++) {
        const heal_run *run = &self->runs[job->first + r];
        int rc = bal_model_read(self->from, run->entry, run->offset, to,
                                (size_t)run->len, err);
        if (rc)
            return rc;
        to += run->len;
    }
    return 0;
}

static int heal_one(size_t i, void *ctx, bal_error *err)
{
    healing *self = ctx;
    heal_job *job = &self->jobs[i];
    bal_id id;

    if (job->why != NOTHING)
        return 0;
    uint8_t *data = bal_pool_scratch(self->inventory->run->store->work, 0,
                                     (size_t)job->size + 1);
    if (!data)
        return bal_fail_memory(err, "block");
    int rc = gather(self, job, data, err);
    if (rc)
        return rc;
    bal_hash_of(&id, data, (size_t)job->size);
    if (!bal_id_equal(&id, &job->block->row.id)) {
        job->why = NOT_SAME;
        return 0;
    }
    bal_put put;
    return bal_batch_put(&self->batch, &id,
                         (bal_bytes){ data, (size_t)job->size }, &job->kind,
                         &put, err);
}

static int read_leaf(healing *self, const bal_id *manifest, bool *leaf,
                     bal_error *err)
{
    const bal_tenant *tenant = self->inventory->run->tenant;
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    int rc = bal_graph_manifest(tenant->store->graph, tenant->number, manifest,
                                &kind, &body, err);
    if (rc)
        return rc;

    *leaf = false;
    bal_leaf_done(&self->leaf);
    if (!strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)))
        return 0;
    /* One that cannot be read was told before. */
    *leaf =
        !bal_leaf_read(&self->leaf, (bal_bytes){ body.data, body.len }, NULL);
    return 0;
}

/* What became of the jobs of one leaf. */
static void conclude(healing *self)
{
    for (size_t i = 0; i < self->job_count; i++) {
        const heal_job *job = &self->jobs[i];
        bal_fsck_block *block = job->block;
        if (job->why == NOTHING) {
            block->good =
                (bal_block_row){ .id = block->row.id, .size = job->size };
            self->inventory->run->report->healed +=
                block->state != BAL_BLOCK_HEALED;
            block->state = BAL_BLOCK_HEALED;
        }
        block->reason = reasons[job->why];
    }
}

/* Every block that one leaf can tell about; others may know of more. */
static int heal_leaf(healing *self, const bal_id *manifest, bal_error *err)
{
    const bal_leaf *leaf = &self->leaf;
    bool readable = false;
    int rc = read_leaf(self, manifest, &readable, err);
    if (rc || !readable)
        return rc;

    self->job_count = self->run_count = 0;
    for (size_t i = 0; i < leaf->count && !rc; i++)
        rc = leaf->places[i].shared ? add_shared_block(self, i, err)
                                    : add_own_blocks(self, i, err);
    if (!rc)
        rc = bal_pool_run(self->inventory->run->store->work, self->job_count,
                          heal_one, self, err);
    if (rc)
        return rc;
    conclude(self);
    return 0;
}

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

static int heal_leaves(healing *self, bal_error *err)
{
    const bal_tenant *tenant = self->inventory->run->tenant;
    BAL_LOCAL(bal_buf) manifests = { 0 };
    int rc = bal_graph_manifests(tenant->store->graph, tenant->number, add_id,
                                 &manifests, err);

    for (size_t i = 0; i < bal_ids_count(&manifests) && !rc; i++)
        rc = heal_leaf(self, bal_ids_at(&manifests, i), err);
    return rc;
}

/* Bytes first: killed in between, a row does not fit its block, which the next
 * `fsck --repair` sees and mends. */
static int publish(healing *self, bal_error *err)
{
    const bal_tenant *tenant = self->inventory->run->tenant;
    bal_graph *graph = tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_batch_settle(&self->batch, tenant->store->work, err);
    if (!rc)
        rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);

    for (size_t i = 0; i < self->inventory->count && !rc; i++) {
        bal_fsck_block *block = &self->inventory->blocks[i];
        if (block->state != BAL_BLOCK_HEALED)
            continue;
        const bal_put put = bal_batch_settled(&self->batch, &block->good.id);
        bal_row_fill(&block->good, &put);
        rc = bal_graph_block_renew(graph, tenant->number, &block->good, err);
    }
    return rc ? rc : bal_tx_commit(&tx, err);
}

int bal_fsck_heal(bal_inventory *inventory, bal_error *err)
{
    BAL_LOCAL(healing) self = { inventory, inventory->run->from };
    const bal_tenant *tenant = inventory->run->tenant;
    size_t count = 0;

    for (size_t i = 0; i < inventory->count; i++) {
        bal_fsck_block *block = &inventory->blocks[i];
        count += lost(block);
        block->reason = lost(block) ? reasons[NOT_ASKED] : NULL;
    }
    if (!count)
        return 0;
    int rc = bal_batch_begin(&self.batch, tenant->store->blocks, tenant->name,
                             tenant->store->effort, err);
    if (!rc)
        rc = heal_leaves(&self, err);
    return rc ? rc : publish(&self, err);
}
