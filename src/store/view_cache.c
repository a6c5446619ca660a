/* A view that is resolved block by block and remembered; see view_cache.h. The
 * last blocks are held in memory, too, so that the many small tensors of one
 * block cost one look at its file.
 *
 * A block is kept by whoever resolves it, if that can be done at once: the
 * store's lock is free to share, the epoch is the one at which the view was
 * admitted, the disk takes it. Otherwise it is not kept, and nobody waits. */
#include "store/view_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blocks/cache.h"
#include "core/arith.h"
#include "core/error.h"
#include "graph/grants.h"
#include "store/pack.h"
#include "store/view_files.h"

enum {
    BLOCKS_HELD = 6,
    /* A process looks at the whole cache again after filling this part of its
     * cap, for others fill it as well. */
    LOOK_AGAIN = 8,
};

/* Where an entry's bytes are. */
typedef struct cached_place {
    size_t block;    /* the first */
    uint64_t offset; /* in it, where several entries share it */
    bool cut;        /* into blocks of its own */
} cached_place;

typedef struct cached_view {
    bal_model base;
    bal_store *store;
    bal_model *view;
    char tenant[65];
    bal_id manifest;
    uint64_t epoch;
    uint64_t block_size;
    uint64_t cap;
    bal_pack pack;
    cached_place *places; /* beside entries */
    bal_cache *held;
    pthread_mutex_t lock; /* guards what follows */
    uint64_t room;        /* bytes to fill before the cap is looked at */
    bool off;             /* the disk does not take it */
} cached_view;

/* ---- filling ------------------------------------------------------------ */

static int resolve(cached_view *self, const bal_pack_block *block, uint8_t *to,
                   bal_error *err)
{
    for (size_t r = 0; r < block->count; r++) {
        const bal_run *run = &self->pack.runs[block->first + r];
        int rc = bal_model_read(self->view, run->entry, run->offset, to,
                                (size_t)run->len, err);
        if (rc)
            return rc;
        to += run->len;
    }
    return 0;
}

/* Is the cache as it must be for this view to go in: of the view's epoch, and
 * that the store's? */
static int admit(const cached_view *self, bool *admitted, bal_error *err)
{
    bal_view_epoch now = { 0 };
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(self->store->graph, &epoch, err);
    if (!rc)
        rc = bal_view_epoch_read(&now, self->store, err);
    if (rc)
        return rc;

    *admitted = epoch == self->epoch && now.there && now.epoch == epoch;
    return 0;
}

/* The cap, when enough was filled. Two that look at once find the same. */
static int make_room(cached_view *self, uint64_t size, bal_error *err)
{
    uint64_t held = 0, part = self->cap / LOOK_AGAIN;

    pthread_mutex_lock(&self->lock);
    bool enough = self->room >= size;
    if (enough)
        self->room -= size;
    pthread_mutex_unlock(&self->lock);
    if (enough)
        return 0;
    uint64_t most = self->cap > size ? self->cap - size : 0;
    int rc = bal_view_trim(&held, self->store, most, self->tenant,
                           &self->manifest, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&self->lock);
    self->room = held < most ? bal_min(most - held, part) : 0;
    pthread_mutex_unlock(&self->lock);
    return 0;
}

static int keep_locked(cached_view *self, const bal_view_block *block,
                       const uint8_t *data, bal_error *err)
{
    bool admitted = false;
    int rc = admit(self, &admitted, err);
    if (rc || !admitted)
        return rc;

    rc = make_room(self, block->size, err);
    return rc ? rc : bal_view_file_write(self->store, block, data, err);
}

/* Whatever goes wrong, the caller has its bytes. */
static void keep(cached_view *self, const bal_view_block *block,
                 const uint8_t *data)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bal_error why = { 0 };

    pthread_mutex_lock(&self->lock);
    bool off = self->off;
    pthread_mutex_unlock(&self->lock);
    if (off || bal_view_lock(&lock, self->store, BAL_LOCK_SHARED, NULL) ||
        !keep_locked(self, block, data, &why))
        return;
    bal_trace("store", "view-cache=off why=\"%s\"", why.text);
    pthread_mutex_lock(&self->lock);
    self->off = true;
    pthread_mutex_unlock(&self->lock);
}

typedef struct fill_job {
    cached_view *self;
    size_t number;
} fill_job;

static int fill(void *ctx, uint8_t *to, size_t size, bal_error *err)
{
    const fill_job *job = ctx;
    cached_view *self = job->self;
    const bal_view_block block = { self->tenant, self->manifest, job->number,
                                   self->block_size, size };
    bool there = false;

    bal_view_file_read(&there, self->store, &block, to);
    bal_trace("store", "view-block=%zu %s=1", job->number,
              there ? "cached" : "resolved");
    if (there)
        return 0;
    int rc = resolve(self, &self->pack.blocks[job->number], to, err);
    if (!rc)
        keep(self, &block, to);
    return rc;
}

/* ---- reading ------------------------------------------------------------ */

static int read_block(cached_view *self, size_t number, uint64_t offset,
                      void *to, size_t len, bal_error *err)
{
    const bal_cached *cached = NULL;
    bal_cache_key key = { .tenant = "" };
    fill_job job = { self, number };

    /* The cache is this view's alone: its blocks go by their numbers. */
    bal_put64(key.id.bytes, number);
    int rc =
        bal_cache_take(self->held, &cached, &key,
                       (size_t)self->pack.blocks[number].size, fill, &job, err);
    if (rc)
        return rc;
    memcpy(to, cached->data + offset, len);
    bal_cache_give(self->held, cached);
    return 0;
}

static int cached_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    cached_view *self = (cached_view *)model;
    const cached_place *place = &self->places[i];
    uint64_t block = self->block_size;
    uint8_t *at = to;

    if (!place->cut)
        return read_block(self, place->block, place->offset + offset, to, len,
                          err);
    while (len) {
        size_t part = (size_t)bal_min(len, block - offset % block);
        size_t number = place->block + (size_t)(offset / block);
        int rc = read_block(self, number, offset % block, at, part, err);
        if (rc)
            return rc;
        offset += part;
        at += part;
        len -= part;
    }
    return 0;
}

static void cached_free(bal_model *model)
{
    cached_view *self = (cached_view *)model;

    bal_model_free(self->view);
    bal_pack_done(&self->pack);
    bal_cache_free(self->held);
    pthread_mutex_destroy(&self->lock);
    free(self->places);
}

static bal_model *cached_source(bal_model *model, size_t *i)
{
    (void)i;
    return ((cached_view *)model)->view;
}

static const bal_model_ops cached_ops = {
    .read = cached_read,
    .free = cached_free,
    .source = cached_source,
};

/* ---- opening ------------------------------------------------------------ */

/* Which entry is in which block, from the plan that says which block has which
 * entries. */
static int place_entries(cached_view *self, bal_error *err)
{
    const bal_pack *pack = &self->pack;
    size_t count = bal_model_count(self->view);

    self->places = calloc(count + 1, sizeof(*self->places));
    if (!self->places)
        return bal_fail_memory(err, "opening a view");
    for (size_t b = 0; b < pack->block_count; b++) {
        const bal_pack_block *block = &pack->blocks[b];
        uint64_t offset = 0;
        for (size_t r = 0; r < block->count; r++) {
            const bal_run *run = &pack->runs[block->first + r];
            cached_place *place = &self->places[run->entry];
            if (!run->offset)
                *place = (cached_place){ b, offset, false };
            else
                place->cut = true;
            offset += run->len;
        }
    }
    return 0;
}

static int complete(cached_view *self, bal_error *err)
{
    int rc = bal_model_mirror(&self->base, self->view, err);
    if (!rc)
        rc = bal_pack_plan(&self->pack, self->view, self->block_size, err);
    if (!rc)
        rc = place_entries(self, err);
    if (rc)
        return rc;
    return bal_cache_new(&self->held, BLOCKS_HELD * (size_t)self->block_size,
                         err);
}

/* Takes view, on failure too. */
static int make(bal_model **out, const bal_tenant *tenant,
                const bal_id *manifest, uint64_t epoch, bal_model *view,
                bal_error *err)
{
    cached_view *made = bal_model_alloc(sizeof(*made), &cached_ops);
    if (!made) {
        bal_model_free(view);
        return bal_fail_memory(err, "opening a view");
    }
    BAL_OWN(bal_model) self = &made->base;

    pthread_mutex_init(&made->lock, NULL);
    made->store = tenant->store;
    made->view = view;
    made->manifest = *manifest;
    made->epoch = epoch;
    made->block_size = tenant->store->block_size;
    made->cap = tenant->store->view_cap;
    memcpy(made->tenant, tenant->name, sizeof(made->tenant));
    int rc = complete(made, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

static uint64_t bytes_of(const bal_model *view)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < bal_model_count(view); i++) {
        if (!bal_add(&bytes, bytes, bal_model_at(view, i)->size))
            return UINT64_MAX;
    }
    return bytes;
}

/* A cache of an older epoch may hold what another root has taken back: it is
 * emptied, or not used. One that is not there is made. */
static int freshen(bool *fresh, bal_store *store, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bal_view_epoch now = { 0 };
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(store->graph, &epoch, err);
    if (!rc)
        rc = bal_view_epoch_read(&now, store, err);
    if (rc)
        return rc;

    *fresh = now.there && now.epoch == epoch;
    if (*fresh ||
        bal_view_lock(&lock, store,
                      now.any ? BAL_LOCK_EXCLUSIVE : BAL_LOCK_SHARED, NULL))
        return 0;
    if (now.any && bal_view_wipe(store, NULL))
        return 0;
    *fresh = !bal_view_epoch_write(store, epoch, NULL);
    return 0;
}

/* So that the views that are used stay when the cap is reached. */
static void touch(const bal_store *store, const char *tenant,
                  const bal_id *manifest)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    if (!bal_view_path(&path, store, tenant, manifest, NULL))
        (void)utimensat(AT_FDCWD, path.data, NULL, 0);
}

int bal_view_cached(bal_model **out, bal_tenant *tenant, const bal_id *manifest,
                    uint64_t epoch, bal_model *view, bal_error *err)
{
    BAL_OWN(bal_model) owned = view;
    bal_store *store = tenant->store;
    uint64_t bytes = bytes_of(view);
    bool fresh = false;

    if (!store->no_cache && bytes && bytes <= store->view_cap / 2 &&
        !access(store->root, W_OK)) {
        int rc = freshen(&fresh, store, err);
        if (rc)
            return rc;
    }
    if (!fresh) {
        *out = BAL_TAKE(owned);
        return 0;
    }
    touch(store, tenant->name, manifest);
    return make(out, tenant, manifest, epoch, BAL_TAKE(owned), err);
}
