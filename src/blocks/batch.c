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
    bal_buf owners;       /* beside staged: whose each is, batch_place */
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
    *out = (bal_batch){
        .blocks = blocks, .tenant = tenant, .effort = effort, .list = list
    };
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
    const batch_place owner = { item };

    pthread_mutex_lock(&list->lock);
    if (!rc && staged->name)
        rc = bal_buf_reserve(&list->staged, sizeof(*staged), err);
    if (!rc && staged->name)
        rc = bal_buf_append(&list->owners, &owner, sizeof(owner), err);
    if (!rc && staged->name)
        rc = bal_buf_append(&list->staged, staged, sizeof(*staged), err);
    item->rc = rc;
    item->stage = rc ? FAILED : STAGED;
    pthread_cond_broadcast(&list->moved);
    pthread_mutex_unlock(&list->lock);
    return rc;
}

/* ---- making ------------------------------------------------------------- */

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
                  const bal_ground *by, bal_error *err)
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

/* The distinct ones of these. */
static int note_bases(batch_item *item, const bal_id *ids, size_t count,
                      bal_error *err)
{
    if (!count)
        return 0;
    item->bases = calloc(count, sizeof(*item->bases));
    if (!item->bases)
        return bal_fail_memory(err, "a block's base");
    memcpy(item->bases, ids, count * sizeof(*ids));
    item->put.bases = item->bases;
    item->put.base_count = bal_ids_unique(item->bases, count);
    return 0;
}

static int note_spans(batch_item *item, const bal_base *base, bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    int rc = 0;

    for (size_t i = 0; !rc && base && i < base->count; i++)
        rc = bal_buf_append(&ids, &base->spans[i].id, sizeof(bal_id), err);
    return rc ? rc
              : note_bases(item, bal_ids_of(&ids), bal_ids_count(&ids), err);
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
    rc = note_spans(item, self->base, err);
    return rc ? rc
              : bal_backend_stage(batch->blocks->backend, staged, name, parts,
                                  3, err);
}

static int stage_block(const bal_batch *batch, bal_bench *bench,
                       batch_item *item, bal_bytes data,
                       const bal_block_kind *kind, bal_staged *staged,
                       bal_error *err)
{
    BAL_LOCAL(bal_ground) by = { 0 };
    BAL_LOCAL(making) self = { bench, kind, .hash = item->id };
    int rc = bal_ground_find(&by, batch, &item->id, kind, err);

    if (!rc)
        rc = encode(&self, batch, data, &by, err);
    return rc ? rc : stage_made(&self, batch, item, staged, err);
}

/* ---- settling ----------------------------------------------------------- */

/* Blocks that are being settled, and whose each is. */
typedef struct settling {
    const bal_batch *batch;
    bal_buf staged; /* of bal_staged */
    bal_buf owners; /* of batch_place */
} settling;

static void settling_done(settling *self)
{
    bal_staged *staged = (bal_staged *)(void *)self->staged.data;

    for (size_t i = 0; i < self->staged.len / sizeof(*staged); i++)
        bal_backend_discard(self->batch->blocks->backend, &staged[i]);
    bal_buf_done(&self->staged);
    bal_buf_done(&self->owners);
}

/* The put of a block that another writer's run has the name of; *good is false
 * if that run is not the block. */
static int adopt(batch_item *item, const bal_batch *batch, bool *good,
                 bal_error *err)
{
    BAL_LOCAL(bal_buf) bases = { 0 };
    bal_block_info info = { 0 };
    bal_error why = { 0 };
    int rc = bal_blocks_verify(batch->blocks, batch->tenant, &item->id, 0,
                               &info, &why);
    if (!rc && info.based)
        rc = bal_blocks_bases(batch->blocks, batch->tenant, &item->id, &bases,
                              &why);
    *good = !rc;
    if (rc == BAL_ECORRUPT || rc == BAL_ENOTFOUND || rc == BAL_EUNSUPPORTED)
        return 0;
    if (rc)
        return rc == BAL_ENOMEM ? bal_fail_memory(err, "a block")
                                : bal_fail(err, rc, "%s", why.text);
    free(item->bases);
    item->bases = NULL;
    item->put = (bal_put){ .stored = info.stored,
                           .codec = info.codec,
                           .check = info.check };
    return note_bases(item, bal_ids_of(&bases), bal_ids_count(&bases), err);
}

/* One whose name was taken: by a good block, and it is let go of; by another
 * thing, which it is to replace. */
static int look_at(size_t i, void *ctx, bal_error *err)
{
    settling *self = ctx;
    bal_staged *staged = (bal_staged *)(void *)self->staged.data + i;
    const batch_place *owner =
        (const batch_place *)(const void *)self->owners.data + i;
    bool good = false;

    if (!staged->kept)
        return 0;
    staged->keeps = staged->kept = false;
    int rc = adopt(owner->item, self->batch, &good, err);
    if (good)
        bal_backend_discard(self->batch->blocks->backend, staged);
    return rc;
}

/* Those that are still staged, at the front; how many. */
static size_t gather_left(settling *self)
{
    bal_staged *staged = (bal_staged *)(void *)self->staged.data;
    size_t left = 0;

    for (size_t i = 0; i < self->staged.len / sizeof(*staged); i++) {
        bal_staged one = staged[i];
        staged[i] = (bal_staged){ 0 };
        if (one.name)
            staged[left++] = one;
    }
    return left;
}

/* work NULL: in this thread. */
static int look_at_all(settling *self, size_t count, bal_work *work,
                       bal_error *err)
{
    int rc = work ? bal_pool_run(work, count, look_at, self, err) : 0;

    for (size_t i = 0; i < count && !work && !rc; i++)
        rc = look_at(i, self, err);
    return rc;
}

static int settle_all(settling *self, bal_work *work, bal_error *err)
{
    bal_backend *backend = self->batch->blocks->backend;
    bal_staged *staged = (bal_staged *)(void *)self->staged.data;
    size_t count = self->staged.len / sizeof(*staged);

    for (size_t i = 0; i < count; i++)
        staged[i].keeps = !self->batch->replaces;
    int rc = bal_backend_settle(backend, staged, count, work, err);
    if (!rc)
        rc = look_at_all(self, count, work, err);
    if (rc)
        return rc;
    count = gather_left(self);
    return count ? bal_backend_settle(backend, staged, count, work, err) : 0;
}

/* ---- putting ------------------------------------------------------------ */

/* Where staged runs take memory, a block does not wait for the others: it has
 * no row yet, so nothing is said of it that could be wrong. One that replaces
 * what has a row must wait until that is noted as an intention. */
static int settle_now(const bal_batch *self, batch_item *item,
                      bal_staged *staged, bal_error *err)
{
    BAL_LOCAL(settling) one = { .batch = self };
    const batch_place owner = { item };
    int rc = bal_buf_append(&one.owners, &owner, sizeof(owner), err);

    if (!rc)
        rc = bal_buf_append(&one.staged, staged, sizeof(*staged), err);
    if (rc)
        return rc;
    *staged = (bal_staged){ 0 };
    return settle_all(&one, NULL, err);
}

static int stage_item(const bal_batch *self, batch_item *item, bal_bytes data,
                      const bal_block_kind *kind, bal_error *err)
{
    bal_staged staged = { 0 };
    bal_bench *bench = NULL;
    int rc = bal_bench_take(&bench, self->blocks, err);

    if (!rc)
        rc = stage_block(self, bench, item, data, kind, &staged, err);
    if (!rc && self->blocks->backend->at_once && !self->replaces)
        rc = settle_now(self, item, &staged, err);
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

/* ---- all of them -------------------------------------------------------- */

/* Take the list of what is staged; what is put meanwhile starts another. */
int bal_batch_settle(bal_batch *self, bal_work *work, bal_error *err)
{
    struct bal_batch_list *list = self->list;
    BAL_LOCAL(settling) all = { .batch = self };

    pthread_mutex_lock(&list->lock);
    all.staged = list->staged;
    all.owners = list->owners;
    list->staged = (bal_buf){ 0 };
    list->owners = (bal_buf){ 0 };
    pthread_mutex_unlock(&list->lock);
    return settle_all(&all, work, err);
}

bal_put bal_batch_settled(bal_batch *self, const bal_id *id)
{
    struct bal_batch_list *list = self->list;
    const batch_place *places = (batch_place *)(void *)list->items.data;
    bal_put put;

    pthread_mutex_lock(&list->lock);
    size_t index = bal_map_find(&list->ids, id, sizeof(*id));
    assert(index != BAL_NONE);
    put = places[index].item->put;
    pthread_mutex_unlock(&list->lock);
    return put;
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
    bal_buf_done(&list->owners);
    bal_buf_done(&list->items);
    bal_map_done(&list->ids);
    bal_arena_done(&list->arena);
    pthread_cond_destroy(&list->moved);
    pthread_mutex_destroy(&list->lock);
    free(list);
    self->list = NULL;
}
