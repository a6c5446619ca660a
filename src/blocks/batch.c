/* Writing blocks. Many threads put; what they stage is one list, so that its
 * settling syncs every file and directory once. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/inside.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/map.h"

typedef enum stage { STAGING, STAGED, FAILED } stage;

/* One block of the batch, kept to its end so that it is not put twice. */
typedef struct batch_item {
    bal_id id;
    bal_put put;
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

/* Code and stage. Where nothing is gained the data is written as it is, without
 * a copy; its hash is known then: it is the id. */
static int stage_block(const bal_batch *batch, bal_bench *bench,
                       batch_item *item, bal_bytes data, const bal_grain *grain,
                       bal_staged *staged, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    uint8_t bytes[BAL_BLOCK_HEADER];
    bal_codec_id codec = BAL_CODEC_RAW;
    bal_bytes payload = data;
    bal_id hash = item->id;
    int rc = bal_block_name(name, batch->tenant, &item->id, err);
    if (rc)
        return rc;
    rc = bal_encode(bench->coder, &codec, &bench->bytes, data, grain,
                    batch->effort, err);
    if (rc)
        return rc;

    if (codec != BAL_CODEC_RAW) {
        payload = (bal_bytes){ bench->bytes.data, bench->bytes.len };
        bal_hash_of(&hash, payload.data, payload.len);
    }
    bal_block_header header = {
        .codec = (uint8_t)codec,
        .width = grain->width,
        .logical = data.len,
        .payload = payload.len,
    };
    bal_block_check(header.check, &header, (bal_bytes){ 0 }, &hash);
    bal_block_header_write(bytes, &header);
    bal_bytes parts[] = { { bytes, sizeof(bytes) }, payload };
    item->put =
        (bal_put){ .stored = sizeof(bytes) + payload.len, .codec = codec };
    memcpy(item->put.check.bytes, header.check, sizeof(header.check));
    return bal_backend_stage(batch->blocks->backend, staged, name, parts, 2,
                             err);
}

static int stage_item(const bal_batch *self, batch_item *item, bal_bytes data,
                      const bal_grain *grain, bal_error *err)
{
    bal_staged staged = { 0 };
    bal_bench *bench = NULL;
    int rc = bal_bench_take(&bench, self->blocks, err);

    if (!rc)
        rc = stage_block(self, bench, item, data, grain, &staged, err);
    rc = conclude(self->list, item, rc, &staged, err);
    if (rc)
        bal_backend_discard(self->blocks->backend, &staged);
    if (bench)
        bal_bench_give(self->blocks, bench);
    return rc;
}

int bal_batch_put(bal_batch *self, const bal_id *id, bal_bytes data,
                  unsigned width, bal_put *put, bal_error *err)
{
    bal_grain grain = { .width = (uint8_t)width };
    batch_item *item = NULL;
    bool mine = false;

    if (data.len > BAL_BLOCK_LONGEST || width > 8)
        return bal_fail(err, BAL_EINVAL,
                        "no block has %zu bytes of elements of %u", data.len,
                        width);
    int rc = claim(self->list, &item, &mine, id, err);
    if (rc)
        return rc;
    assert(item);
    if (mine)
        rc = stage_item(self, item, data, &grain, err);
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
    bal_buf_done(&list->staged);
    bal_buf_done(&list->items);
    bal_map_done(&list->ids);
    bal_arena_done(&list->arena);
    pthread_cond_destroy(&list->moved);
    pthread_mutex_destroy(&list->lock);
    free(list);
    self->list = NULL;
}
