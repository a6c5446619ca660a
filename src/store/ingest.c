/* A model into blocks; see ingest.h. A block is read in pieces that stay in the
 * processor's cache between reading and hashing; one that the tenant has
 * already is not encoded and not written. */
#include "store/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "model/alike.h"
#include "model/sums.h"
#include "store/pack.h"

#define PIECE ((uint64_t)128 << 10)

/* What became of one planned block. */
typedef struct put_slot {
    bal_block_row row;
    bool fresh; /* put now, not there before */
} put_slot;

typedef struct put_job {
    bal_tenant *tenant;
    bal_model *model;
    bal_batch *batch;
    const bal_pack *pack;
    const bal_ingest_how *how;
    put_slot *slots;
} put_job;

/* Read a planned block into `to`, hashing as it comes. */
static int read_block(const put_job *self, const bal_pack_block *block,
                      uint8_t *to, bal_id *id, bal_error *err)
{
    bal_hash hash;

    bal_hash_init(&hash);
    for (size_t r = 0; r < block->count; r++) {
        const bal_run *run = &self->pack->runs[block->first + r];
        for (uint64_t at = 0; at < run->len; at += PIECE) {
            size_t len = (size_t)bal_min(PIECE, run->len - at);
            int rc = bal_model_read(self->model, run->entry, run->offset + at,
                                    to, len, err);
            if (rc)
                return rc;
            bal_hash_add(&hash, to, len);
            to += len;
        }
    }
    bal_hash_end(&hash, id);
    return 0;
}

int bal_block_look_up(bal_block_row *out, const bal_tenant *tenant,
                      const bal_id *id, bool *there, bool *lost, bal_error *err)
{
    bal_store *store = tenant->store;
    bal_block_row row;

    *there = *lost = false;
    if (!tenant->number)
        return 0;
    int rc =
        bal_graph_block(store->graph, tenant->number, id, &row, there, err);
    if (rc || !*there)
        return rc;

    bal_block_info info;
    rc = bal_blocks_verify(store->blocks, tenant->name, id, BAL_VERIFY_HEADER,
                           &info, NULL);
    *lost = rc || info.stored != row.stored;
    *there = !*lost;
    if (*there)
        *out = row;
    return 0;
}

static int look_up(const put_job *self, put_slot *slot, bool *there, bool *lost,
                   bal_error *err)
{
    const bal_map *kept = self->how->kept;

    if (!kept)
        return bal_block_look_up(&slot->row, self->tenant, &slot->row.id, there,
                                 lost, err);
    *there = bal_map_find(kept, &slot->row.id, sizeof(bal_id)) != BAL_NONE;
    return 0;
}

/* What the block's bytes are; *kind has a base only if all of its runs have
 * one, of the same kind. spans is what it borrows. */
static int kind_of(bal_block_kind *kind, bal_buf *spans, const put_job *self,
                   const bal_pack_block *block, bal_error *err)
{
    const bal_ingest_how *how = self->how;
    const bal_anchor *anchor = NULL;
    int rc = how->anchor ? how->anchor(how->ctx, &anchor, err) : 0;
    bool found = anchor && anchor->there;

    *kind = (bal_block_kind){ .width = block->width };
    for (size_t r = 0; r < block->count && !rc; r++) {
        const bal_run *run = &self->pack->runs[block->first + r];
        const bal_tensor *entry = bal_model_at(self->model, run->entry);
        bal_block_kind its = bal_anchor_kind(entry);
        const bal_anchor_run at = { entry, run->offset, run->len };
        if (found)
            rc = bal_anchor_spans(&found, spans, &its, anchor, &at, err);
        if (!r)
            *kind = its;
        bool same = its.kind == kind->kind &&
                    its.base_kind == kind->base_kind &&
                    its.difference == kind->difference;
        found = found && same;
        if (its.kind != kind->kind)
            kind->kind = BAL_NUMBER_BYTES;
    }
    kind->width = block->width;
    kind->difference = found && kind->difference;
    if (rc || !found)
        return rc;
    kind->base = (const bal_block_span *)(const void *)spans->data;
    kind->base_count = spans->len / sizeof(bal_block_span);
    return 0;
}

void bal_row_fill(bal_block_row *row, const bal_put *put)
{
    row->stored = put->stored;
    row->codec = put->codec;
    row->check = put->check;
    row->has_check = true;
    row->bases = put->bases;
    row->base_count = put->base_count;
}

void bal_row_measure(bal_block_row *row, const bal_tensor *entry,
                     uint64_t block_size, bal_bytes bytes)
{
    unsigned level = 0;

    if (entry->part == BAL_PART_TENSOR && entry->size > block_size / 2 &&
        bal_squares_kept(&level, entry->dtype, block_size) &&
        level <= BAL_ALIKE_LEVEL &&
        bal_squares(&row->squares, entry->dtype, bytes))
        row->dtype = bal_dtype_name(entry->dtype);
}

static void measure(const put_job *self, const bal_pack_block *block,
                    bal_block_row *row, bal_bytes bytes)
{
    uint64_t block_size = self->how->block_size
                              ? self->how->block_size
                              : self->tenant->store->block_size;

    if (block->count == 1)
        bal_row_measure(
            row,
            bal_model_at(self->model, self->pack->runs[block->first].entry),
            block_size, bytes);
}

static int put_block(const put_job *self, const bal_pack_block *block,
                     put_slot *slot, bal_bytes bytes, bool alone,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) spans = { 0 };
    bal_block_kind kind;
    bal_put put = { 0 };
    int rc = kind_of(&kind, &spans, self, block, err);
    kind.base_count = alone ? 0 : kind.base_count;
    if (!rc && self->how->kept)
        rc = bal_graph_is_base(self->tenant->store->graph, self->tenant->number,
                               &slot->row.id, &kind.keeps_depth, err);
    if (!rc)
        rc = bal_batch_put(self->batch, &slot->row.id, bytes, &kind, &put, err);
    if (rc)
        return rc;

    bal_row_fill(&slot->row, &put);
    measure(self, block, &slot->row, bytes);
    slot->fresh = true;
    return 0;
}

static int put_one(size_t i, void *ctx, bal_error *err)
{
    put_job *self = ctx;
    const bal_pack_block *block = &self->pack->blocks[i];
    put_slot *slot = &self->slots[i];
    bal_work *work = self->tenant->store->work;
    uint8_t *data = bal_pool_scratch(work, 0, (size_t)block->size);
    if (!data)
        return bal_fail_memory(err, "block");

    int rc = read_block(self, block, data, &slot->row.id, err);
    if (rc)
        return rc;
    bool there = false;
    bool lost = false;
    rc = look_up(self, slot, &there, &lost, err);
    if (rc)
        return rc;
    slot->row.size = block->size;
    if (!there)
        rc = put_block(self, block, slot,
                       (bal_bytes){ data, (size_t)block->size }, lost, err);
    bal_work_advance(work, block->size);
    return rc;
}

/* Copy the model's entries and say where their bytes are. */
static int fill_leaf(bal_leaf *leaf, const bal_model *model,
                     const bal_pack *pack, const put_slot *slots,
                     bal_error *err)
{
    size_t count = bal_model_count(model);

    leaf->entries = calloc(count + 1, sizeof(*leaf->entries));
    leaf->places = calloc(count + 1, sizeof(*leaf->places));
    leaf->ids = calloc(pack->run_count + 1, sizeof(*leaf->ids));
    if (!leaf->entries || !leaf->places || !leaf->ids)
        return bal_fail_memory(err, "manifest");
    leaf->count = count;
    for (size_t i = 0; i < count; i++)
        leaf->entries[i] = *bal_model_at(model, i);
    for (size_t b = 0; b < pack->block_count; b++) {
        const bal_pack_block *block = &pack->blocks[b];
        uint64_t offset = 0;
        for (size_t r = 0; r < block->count; r++) {
            const bal_run *run = &pack->runs[block->first + r];
            bal_place *place = &leaf->places[run->entry];
            if (!place->count)
                place->first = leaf->id_count;
            place->count++;
            place->shared =
                leaf->entries[run->entry].size <= leaf->block_size / 2;
            place->offset = offset;
            place->block_size = block->size;
            leaf->ids[leaf->id_count++] = slots[b].row.id;
            offset += run->len;
        }
    }
    return 0;
}

static int by_row_id(const void *a, const void *b)
{
    const bal_block_row *left = a;
    const bal_block_row *right = b;

    return bal_id_compare(&left->id, &right->id);
}

/* The distinct ids, and the distinct new rows. */
static int collect(bal_ingest *out, const put_slot *slots, size_t count,
                   bal_error *err)
{
    out->ids = calloc(count + 1, sizeof(*out->ids));
    out->rows = calloc(count + 1, sizeof(*out->rows));
    if (!out->ids || !out->rows)
        return bal_fail_memory(err, "blocks");

    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        out->ids[i] = slots[i].row.id;
        if (slots[i].fresh)
            out->rows[rows++] = slots[i].row;
    }
    out->id_count = bal_ids_unique(out->ids, count);
    qsort(out->rows, rows, sizeof(*out->rows), by_row_id);
    for (size_t i = 0; i < rows; i++) {
        if (out->row_count &&
            !by_row_id(&out->rows[out->row_count - 1], &out->rows[i]))
            continue;
        out->stored += out->rows[i].stored;
        out->rows[out->row_count++] = out->rows[i];
    }
    return 0;
}

static int ingest(bal_ingest *out, put_job *job, bal_pack *pack, bal_error *err)
{
    bal_store *store = job->tenant->store;
    uint64_t total = 0;
    int rc = bal_pack_plan(pack, job->model, out->leaf.block_size, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < pack->block_count; i++)
        total += pack->blocks[i].size;
    bal_work_expect(store->work, total);
    job->slots = calloc(pack->block_count + 1, sizeof(*job->slots));
    if (!job->slots)
        return bal_fail_memory(err, "blocks");
    rc = bal_pool_run(store->work, pack->block_count, put_one, job, err);
    if (rc)
        return rc;
    rc = fill_leaf(&out->leaf, job->model, pack, job->slots, err);
    if (rc)
        return rc;
    return collect(out, job->slots, pack->block_count, err);
}

int bal_ingest_model(bal_ingest *out, bal_tenant *tenant, bal_model *model,
                     const bal_ingest_how *how, bal_error *err)
{
    bal_store *store = tenant->store;
    const bal_facts *facts = bal_model_facts(model);
    BAL_LOCAL(bal_pack) pack = { 0 };
    put_job job = { tenant, model, &out->batch, &pack, how, NULL };

    out->leaf.kind = facts->kind;
    out->leaf.base_model = facts->base_model;
    out->leaf.revision = facts->revision;
    out->leaf.block_size =
        how->block_size ? how->block_size : store->block_size;
    int rc = bal_batch_begin(&out->batch, store->blocks, tenant->name,
                             store->effort, err);
    out->batch.replaces = how->kept != NULL;
    if (!rc)
        rc = ingest(out, &job, &pack, err);
    free(job.slots);
    return rc;
}

int bal_ingest_settle(bal_ingest *self, bal_work *work, bal_error *err)
{
    int rc = bal_batch_settle(&self->batch, work, err);

    self->stored = 0;
    for (size_t i = 0; !rc && i < self->row_count; i++) {
        const bal_put put = bal_batch_settled(&self->batch, &self->rows[i].id);
        bal_row_fill(&self->rows[i], &put);
        self->stored += put.stored;
    }
    return rc;
}

void bal_ingest_done(bal_ingest *self)
{
    bal_batch_done(&self->batch);
    bal_leaf_done(&self->leaf);
    free(self->rows);
    free(self->ids);
    memset(self, 0, sizeof(*self));
}
