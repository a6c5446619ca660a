/* Writing blocks. Many threads put; what they stage is one list, so that its
 * settling syncs every file and directory once. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/base.h"
#include "blocks/inside.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"

typedef enum stage { STAGING, STAGED, FAILED } stage;

/* One block of the batch, kept to its end so that it is not put twice. */
typedef struct batch_item {
    bal_id id;
    bal_put put;
    bal_id *bases; /* put's */
    stage stage;
    int rc; /* FAILED: with what */
} batch_item;

typedef struct batch_place {
    batch_item *item; /* in the arena, so that it stays where it is */
} batch_place;

struct bal_batch_list {
    pthread_mutex_t lock; /* guards all below, and the items' put, stage, rc */
    pthread_cond_t moved; /* an item is no longer STAGING */
    bal_arena arena;      /* of items */
    bal_map ids;          /* to the item's place in items */
    bal_buf items;        /* of batch_place */
    bal_buf staged;       /* of bal_staged, not settled yet */
};

int bal_batch_begin(bal_batch *out, bal_blocks *blocks, const char *tenant,
                    bal_effort effort, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, tenant, &(bal_id){ 0 }, err);
    if (rc)
        return rc;
    struct bal_batch_list *list = calloc(1, sizeof(*list));
    if (!list)
        return bal_fail_memory(err, "a batch");

    pthread_mutex_init(&list->lock, NULL);
    pthread_cond_init(&list->moved, NULL);
    *out = (bal_batch){ blocks, tenant, effort, list };
    return 0;
}

static int add_item_locked(struct bal_batch_list *list, batch_item **out,
                           const bal_id *id, bal_error *err)
{
    batch_item *added = bal_arena_alloc(&list->arena, sizeof(*added));
    batch_place place = { added };
    size_t index = list->items.len / sizeof(place);
    bool there = false;

    if (!added)
        return bal_fail_memory(err, "a batch");
    added->id = *id;
    int rc = bal_buf_append(&list->items, &place, sizeof(place), err);
    if (rc)
        return rc;
    rc = bal_map_add(&list->ids, &added->id, sizeof(*id), &index, &there, err);
    if (rc)
        return rc;
    *out = added;
    return 0;
}

/* The item of an id: *mine if it is the caller's to stage, else one that is
 * staged, after waiting for whoever does it. */
static int claim(struct bal_batch_list *list, batch_item **out, bool *mine,
                 const bal_id *id, bal_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&list->lock);
    size_t index = bal_map_find(&list->ids, id, sizeof(*id));
    *mine = index == BAL_NONE;
    if (*mine)
        rc = add_item_locked(list, out, id, err);
    else
        *out = ((batch_place *)(void *)list->items.data)[index].item;
    while (!rc && !*mine && (*out)->stage == STAGING)
        pthread_cond_wait(&list->moved, &list->lock);
    if (!rc && !*mine && (*out)->stage == FAILED)
        rc = bal_fail(err, (*out)->rc,
                      "a block could not be written by another thread");
    pthread_mutex_unlock(&list->lock);
    return rc;
}

static int conclude(struct bal_batch_list *list, batch_item *item, int rc,
                    const bal_staged *staged, bal_error *err)
{
    pthread_mutex_lock(&list->lock);
    if (!rc)
        rc = bal_buf_append(&list->staged, staged, sizeof(*staged), err);
    item->rc = rc;
    item->stage = rc ? FAILED : STAGED;
    pthread_cond_broadcast(&list->moved);
    pthread_mutex_unlock(&list->lock);
    return rc;
}

/* ---- a base ------------------------------------------------------------- */

/* The base that a block is coded by: where it is, and its bytes. */
typedef struct anchor {
    bal_base base;
    unsigned deepest; /* that the block may be */
    uint8_t *bytes;
    bal_arena arena; /* of spans that are not the caller's */
} anchor;

static void anchor_done(anchor *self)
{
    free(self->bytes);
    bal_arena_done(&self->arena);
}

static int depth_of(anchor *self, const bal_batch *batch, const bal_id *id,
                    bal_error *err)
{
    bal_base *base = &self->base;

    base->depth = 0;
    base->len = 0;
    for (size_t i = 0; i < base->count; i++) {
        const bal_block_span *span = &base->spans[i];
        unsigned depth = 0;
        int rc = 0;
        base->len += span->len;
        if (bal_id_equal(&span->id, id))
            return bal_fail(err, BAL_EINVAL, "a block is no base of itself");
        if (!i || !bal_id_equal(&span->id, &span[-1].id))
            rc = bal_block_depth(&depth, batch->blocks, batch->tenant,
                                 &span->id, err);
        if (rc)
            return rc;
        base->depth = base->depth > depth ? base->depth : depth + 1;
    }
    return 0;
}

/* Where a base is too deep, what it is coded by itself is as good a base, if
 * less near: of a whole block that is coded by as many bytes. */
static int climb(anchor *self, const bal_batch *batch, bool *climbed,
                 bal_error *err)
{
    const bal_block_span *span = self->base.spans;
    bal_base above = { 0 };
    int rc = 0;

    *climbed = false;
    if (self->base.count != 1 || span->offset || span->len != span->size)
        return 0;
    rc = bal_base_of(&above, &self->arena, batch->blocks, batch->tenant,
                     &span->id, err);
    if (rc || above.len != span->len)
        return rc;
    self->base = above;
    *climbed = true;
    return 0;
}

static int anchor_open(anchor *self, const bal_batch *batch, const bal_id *id,
                       bal_error *err)
{
    bool climbed = true;
    int rc = depth_of(self, batch, id, err);

    for (unsigned i = 0; !rc && climbed && self->base.depth > self->deepest;
         i++) {
        rc = climb(self, batch, &climbed, err);
        if (!rc && climbed)
            rc = depth_of(self, batch, id, err);
        climbed = climbed && i < BAL_BASE_DEPTH_MAX;
    }
    if (rc || self->base.depth > self->deepest)
        return rc;
    self->bytes = bal_pages((size_t)self->base.len + 1);
    if (!self->bytes)
        return bal_fail_memory(err, "a block's base");
    return bal_base_gather(self->bytes, batch->blocks, batch->tenant,
                           &self->base, err);
}

/* Left without bytes where there is no base, or none that can be used: a block
 * is not lost with another one. */
static int anchor_find(anchor *self, const bal_batch *batch, const bal_id *id,
                       const bal_block_kind *kind, bal_error *err)
{
    if (!kind->base_count || kind->base_count > BAL_BASE_SPANS_MAX ||
        batch->effort == BAL_EFFORT_NONE)
        return 0;
    self->base = (bal_base){ .spans = kind->base, .count = kind->base_count };
    self->deepest = BAL_BASE_DEPTH_MAX;
    int rc = kind->keeps_depth ? bal_block_depth(&self->deepest, batch->blocks,
                                                 batch->tenant, id, NULL)
                               : 0;
    if (!rc)
        rc = anchor_open(self, batch, id, NULL);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "a block's base");
    if (!rc)
        return 0;
    free(self->bytes);
    self->bytes = NULL;
    return 0;
}

/* ---- putting ------------------------------------------------------------ */

/* A block that is being made: what goes to rest, in parts. */
typedef struct making {
    bal_bench *bench;
    const bal_block_kind *kind;
    bal_block_header header;
    const bal_base *base; /* that it is coded by, NULL: none */
    bal_buf extra;
    bal_bytes payload;
    bal_id hash; /* of the payload */
} making;

static void making_done(making *self)
{
    bal_buf_done(&self->extra);
}

/* Where nothing is gained the data is written as it is, without a copy; its
 * hash is known then: it is the id. */
static int encode(making *self, const bal_batch *batch, bal_bytes data,
                  const anchor *by, bal_error *err)
{
    const bal_block_kind *kind = self->kind;
    const bal_grain grain = {
        .width = (uint8_t)kind->width,
        .difference = kind->difference,
        .kind = kind->kind,
        .base_kind = kind->base_kind,
        .base = { by->bytes, by->bytes ? (size_t)by->base.len : 0 },
    };
    bal_codec_id codec = BAL_CODEC_RAW;
    int rc = bal_encode(self->bench->coder, &codec, &self->bench->bytes, data,
                        &grain, batch->effort, err);
    if (rc)
        return rc;

    self->payload = data;
    if (codec != BAL_CODEC_RAW) {
        self->payload =
            (bal_bytes){ self->bench->bytes.data, self->bench->bytes.len };
        bal_hash_of(&self->hash, self->payload.data, self->payload.len);
    }
    self->header = (bal_block_header){
        .codec = (uint8_t)codec,
        .width = (uint8_t)kind->width,
        .logical = data.len,
        .payload = self->payload.len,
    };
    if (!by->bytes || !bal_codec_based(codec, self->payload))
        return 0;
    self->header.flags = BAL_BLOCK_BASED;
    self->base = &by->base;
    rc = bal_base_write(&self->extra, &by->base, err);
    self->header.extra = (uint32_t)self->extra.len;
    return rc;
}

static int note_bases(batch_item *item, const making *self, bal_error *err)
{
    const bal_base *base = self->base;

    if (!base)
        return 0;
    item->bases = calloc(base->count + 1, sizeof(*item->bases));
    if (!item->bases)
        return bal_fail_memory(err, "a block's base");
    for (size_t i = 0; i < base->count; i++)
        item->bases[i] = base->spans[i].id;
    item->put.bases = item->bases;
    item->put.base_count = bal_ids_unique(item->bases, base->count);
    return 0;
}

static int stage_made(making *self, const bal_batch *batch, batch_item *item,
                      bal_staged *staged, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    uint8_t bytes[BAL_BLOCK_HEADER];
    const bal_bytes extra = { self->extra.data, self->extra.len };
    int rc = bal_block_name(name, batch->tenant, &item->id, err);
    if (rc)
        return rc;

    bal_block_check(self->header.check, &self->header, extra, &self->hash);
    bal_block_header_write(bytes, &self->header);
    bal_bytes parts[] = { { bytes, sizeof(bytes) }, extra, self->payload };
    item->put = (bal_put){
        .stored = sizeof(bytes) + extra.len + self->payload.len,
        .codec = self->header.codec,
    };
    memcpy(item->put.check.bytes, self->header.check,
           sizeof(self->header.check));
    rc = note_bases(item, self, err);
    return rc ? rc
              : bal_backend_stage(batch->blocks->backend, staged, name, parts,
                                  3, err);
}

static int stage_block(const bal_batch *batch, bal_bench *bench,
                       batch_item *item, bal_bytes data,
                       const bal_block_kind *kind, bal_staged *staged,
                       bal_error *err)
{
    BAL_LOCAL(anchor) by = { 0 };
    BAL_LOCAL(making) self = { bench, kind, .hash = item->id };
    int rc = anchor_find(&by, batch, &item->id, kind, err);

    if (!rc)
        rc = encode(&self, batch, data, &by, err);
    return rc ? rc : stage_made(&self, batch, item, staged, err);
}

static int stage_item(const bal_batch *self, batch_item *item, bal_bytes data,
                      const bal_block_kind *kind, bal_error *err)
{
    bal_staged staged = { 0 };
    bal_bench *bench = NULL;
    int rc = bal_bench_take(&bench, self->blocks, err);

    if (!rc)
        rc = stage_block(self, bench, item, data, kind, &staged, err);
    rc = conclude(self->list, item, rc, &staged, err);
    if (rc)
        bal_backend_discard(self->blocks->backend, &staged);
    if (bench)
        bal_bench_give(self->blocks, bench);
    return rc;
}

int bal_batch_put(bal_batch *self, const bal_id *id, bal_bytes data,
                  const bal_block_kind *kind, bal_put *put, bal_error *err)
{
    batch_item *item = NULL;
    bool mine = false;

    if (data.len > BAL_BLOCK_LONGEST || kind->width > 8)
        return bal_fail(err, BAL_EINVAL,
                        "no block has %zu bytes of elements of %u", data.len,
                        kind->width);
    int rc = claim(self->list, &item, &mine, id, err);
    if (rc)
        return rc;
    assert(item);
    if (mine)
        rc = stage_item(self, item, data, kind, err);
    if (rc)
        return rc;
    *put = item->put;
    return 0;
}

/* Take the list of what is staged; what is put meanwhile starts another. */
int bal_batch_settle(bal_batch *self, bal_work *work, bal_error *err)
{
    struct bal_batch_list *list = self->list;
    bal_backend *backend = self->blocks->backend;
    BAL_LOCAL(bal_buf) taken = { 0 };

    pthread_mutex_lock(&list->lock);
    taken = list->staged;
    list->staged = (bal_buf){ 0 };
    pthread_mutex_unlock(&list->lock);

    bal_staged *staged = (bal_staged *)(void *)taken.data;
    size_t count = taken.len / sizeof(*staged);
    int rc = bal_backend_settle(backend, staged, count, work, err);
    for (size_t i = 0; rc && i < count; i++)
        bal_backend_discard(backend, &staged[i]);
    return rc;
}

void bal_batch_done(bal_batch *self)
{
    struct bal_batch_list *list = self->list;
    if (!list)
        return;

    bal_staged *staged = (bal_staged *)(void *)list->staged.data;
    for (size_t i = 0; i < list->staged.len / sizeof(*staged); i++)
        bal_backend_discard(self->blocks->backend, &staged[i]);
    batch_place *places = (batch_place *)(void *)list->items.data;
    for (size_t i = 0; i < list->items.len / sizeof(*places); i++)
        free(places[i].item->bases);
    bal_buf_done(&list->staged);
    bal_buf_done(&list->items);
    bal_map_done(&list->ids);
    bal_arena_done(&list->arena);
    pthread_cond_destroy(&list->moved);
    pthread_mutex_destroy(&list->lock);
    free(list);
    self->list = NULL;
}
