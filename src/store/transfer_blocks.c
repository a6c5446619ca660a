/* A leaf's blocks, from one store into another: read decoded and held against
 * their ids, coded as the other store codes. What their bytes are, and so what
 * coder is tried, the leaf's entries say; what a block is coded by is the same
 * as where it comes from, where that is there. Memory: a block a thread. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"
#include "core/room.h"
#include "store/anchor.h"
#include "store/ingest.h"
#include "store/transfer.h"

typedef struct block_job {
    bal_block_row row;
    bal_block_kind kind;
    const bal_tensor *entry; /* the first that has it */
    bool shared;             /* with others */
    bool there;
    bool lost; /* its row is there, its bytes are not */
} block_job;

typedef struct staging {
    const bal_transfer_run *run;
    const bal_leaf *leaf;
    bal_batch *batch;
    block_job *jobs;
    size_t count, room;
    bal_map places; /* ids to jobs */
} staging;

static void staging_done(staging *self)
{
    bal_map_done(&self->places);
    free(self->jobs);
}

/* ---- what there is to do ------------------------------------------------ */

/* The kind is what all entries of a block have in common. */
static int add_job(staging *self, size_t i, const bal_id *id, uint64_t size,
                   bal_error *err)
{
    const bal_tensor *entry = &self->leaf->entries[i];
    const bal_block_kind kind = bal_anchor_kind(entry);
    size_t at = self->count;
    bool there = false;
    int rc = bal_map_add(&self->places, id, sizeof(*id), &at, &there, err);
    if (rc)
        return rc;

    if (there) {
        block_job *job = &self->jobs[at];
        if (job->shared && job->kind.kind != kind.kind)
            job->kind.kind = BAL_NUMBER_BYTES;
        return 0;
    }
    block_job *jobs =
        bal_room_for_one(self->jobs, self->count, &self->room, sizeof(*jobs));
    if (!jobs)
        return bal_fail_memory(err, "blocks");
    self->jobs = jobs;
    jobs[self->count++] = (block_job){
        .row = { .id = *id, .size = size },
        .kind = kind,
        .entry = entry,
        .shared = self->leaf->places[i].shared,
    };
    return 0;
}

static int add_entry(staging *self, size_t i, bal_error *err)
{
    const bal_leaf *leaf = self->leaf;
    const bal_place *place = &leaf->places[i];
    uint64_t left = leaf->entries[i].size;
    int rc = 0;

    if (place->shared)
        return add_job(self, i, &leaf->ids[place->first], place->block_size,
                       err);
    for (size_t k = 0; k < place->count && !rc; k++) {
        uint64_t len = bal_min(left, leaf->block_size);
        rc = add_job(self, i, &leaf->ids[place->first + k], len, err);
        left -= len;
    }
    return rc;
}

static int look_up(size_t i, void *ctx, bal_error *err)
{
    const staging *self = ctx;
    block_job *job = &self->jobs[i];
    bal_block_row row;

    return bal_block_look_up(&row, self->run->to, &job->row.id, &job->there,
                             &job->lost, err);
}

/* The ids of all, and of the jobs those that are to be done. */
static int list_jobs(staging *self, bal_transfer_blocks *out, bal_error *err)
{
    size_t left = 0;
    int rc = 0;

    for (size_t i = 0; i < self->leaf->count && !rc; i++)
        rc = add_entry(self, i, err);
    if (rc)
        return rc;
    out->ids = calloc(self->count + 1, sizeof(*out->ids));
    if (!out->ids)
        return bal_fail_memory(err, "blocks");
    for (size_t i = 0; i < self->count; i++)
        out->ids[i] = self->jobs[i].row.id;
    out->id_count = bal_ids_unique(out->ids, self->count);
    rc = bal_pool_run(self->run->to->store->work, self->count, look_up, self,
                      err);
    if (rc)
        return rc;

    for (size_t i = 0; i < self->count; i++) {
        if (self->jobs[i].there)
            continue;
        out->bytes += self->jobs[i].row.size;
        self->jobs[left++] = self->jobs[i];
    }
    self->count = left;
    return 0;
}

/* ---- what a block is coded by ------------------------------------------- */

/* Others can be coded by what has a row, and nothing else. */
static int are_there(const staging *self, const bal_block_span *spans,
                     size_t count, bool *there, bal_error *err)
{
    const bal_tenant *to = self->run->to;

    *there = count > 0 && to->number;
    for (size_t i = 0; i < count && *there; i++) {
        if (i && bal_id_equal(&spans[i].id, &spans[i - 1].id))
            continue;
        int rc = bal_graph_block(to->store->graph, to->number, &spans[i].id,
                                 NULL, there, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* How the numbers stand to the base's: alike, or differences to values, which
 * the lengths tell. Where both are as long (F32 of F32), they are taken for
 * what a delta is coded by where the weights are that it is to; a wrong guess
 * costs bytes at rest. */
static void relate(block_job *job)
{
    const bal_tensor *entry = job->entry;
    bal_tensor of = *entry;
    uint64_t width = job->kind.width;
    uint64_t len = 0;

    for (size_t i = 0; i < job->kind.base_count; i++)
        len += job->kind.base[i].len;
    of.dtype = entry->of;
    const bal_block_kind values = bal_anchor_kind(&of);
    job->kind.base_kind = job->kind.kind;
    job->kind.difference = entry->form == BAL_FORM_DIFFERENCE && width &&
                           len == job->row.size / width * values.width;
    if (job->kind.difference)
        job->kind.base_kind = values.kind;
}

/* spans is what the job's kind borrows. One that cannot be told is none. */
static int find_base(const staging *self, block_job *job, bal_buf *spans,
                     bal_error *err)
{
    const bal_tenant *from = self->run->from;
    bool there = false;
    int rc = job->lost ? 0
                       : bal_blocks_spans(from->store->blocks, from->name,
                                          &job->row.id, spans, err);
    const bal_block_span *base =
        (const bal_block_span *)(const void *)spans->data;
    size_t count = spans->len / sizeof(*base);
    if (!rc)
        rc = are_there(self, base, count, &there, err);
    if (rc || !there)
        return rc;

    job->kind.base = base;
    job->kind.base_count = count;
    relate(job);
    return 0;
}

/* ---- one block ---------------------------------------------------------- */

static int put(const staging *self, block_job *job, bal_bytes bytes,
               bal_error *err)
{
    BAL_LOCAL(bal_buf) spans = { 0 };
    bal_put made = { 0 };
    int rc = find_base(self, job, &spans, err);

    if (!rc)
        rc = bal_batch_put(self->batch, &job->row.id, bytes, &job->kind, &made,
                           err);
    if (rc)
        return rc;
    bal_row_fill(&job->row, &made);
    if (!job->shared)
        bal_row_measure(&job->row, job->entry, self->leaf->block_size, bytes);
    return 0;
}

static int stage_one(size_t i, void *ctx, bal_error *err)
{
    const staging *self = ctx;
    const bal_tenant *from = self->run->from;
    bal_work *work = self->run->to->store->work;
    block_job *job = &self->jobs[i];
    const bal_block_ref ref = { from->name, &job->row.id, job->row.size };

    if (ref.size > BAL_BLOCK_LONGEST)
        return bal_fail(err, BAL_ECORRUPT, "a block that is too long");
    uint8_t *data = bal_pool_scratch(work, 0, (size_t)ref.size + 1);
    if (!data)
        return bal_fail_memory(err, "a block");
    int rc = bal_blocks_read(from->store->blocks, &ref, 0, data,
                             (size_t)ref.size, err);
    if (rc == BAL_ENOTFOUND)
        return bal_fail(err, BAL_ECORRUPT, "%s is lost",
                        err ? err->text : "a block");
    if (!rc)
        rc = put(self, job, (bal_bytes){ data, (size_t)ref.size }, err);
    bal_work_advance(work, ref.size);
    return rc;
}

static int keep_rows(bal_transfer_blocks *out, const staging *self,
                     bal_error *err)
{
    out->rows = calloc(self->count + 1, sizeof(*out->rows));
    if (!out->rows)
        return bal_fail_memory(err, "blocks");
    for (size_t i = 0; i < self->count; i++)
        out->rows[i] = self->jobs[i].row;
    out->row_count = self->count;
    return 0;
}

int bal_transfer_stage(bal_transfer_blocks *out, const bal_transfer_run *run,
                       const bal_leaf *leaf, bal_error *err)
{
    const bal_store *store = run->to->store;
    BAL_LOCAL(staging) self = { run, leaf, &out->batch };
    int rc = bal_batch_begin(&out->batch, store->blocks, run->to->name,
                             store->effort, err);

    if (!rc)
        rc = list_jobs(&self, out, err);
    if (rc)
        return rc;
    bal_work_expect(store->work, out->bytes);
    rc = bal_pool_run(store->work, self.count, stage_one, &self, err);
    return rc ? rc : keep_rows(out, &self, err);
}

int bal_transfer_settle(bal_transfer_blocks *self, bal_work *work,
                        bal_error *err)
{
    int rc = bal_batch_settle(&self->batch, work, err);

    self->stored = 0;
    for (size_t i = 0; i < self->row_count && !rc; i++) {
        const bal_put made = bal_batch_settled(&self->batch, &self->rows[i].id);
        bal_row_fill(&self->rows[i], &made);
        self->stored += made.stored;
    }
    return rc;
}

void bal_transfer_blocks_done(bal_transfer_blocks *self)
{
    bal_batch_done(&self->batch);
    free(self->rows);
    free(self->ids);
    *self = (bal_transfer_blocks){ 0 };
}
