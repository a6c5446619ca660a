/* Least recently used, by bytes; each entry is counted by who uses it and is
 * thrown out only when nobody does, so the cap is exceeded by what is in use
 * and by no more. */
#include "blocks/cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/error.h"
#include "core/hash.h"

enum { BUCKETS = 4096 };

typedef enum stage { FILLING, READY, FAILED } stage;

typedef struct cache_entry {
    bal_cached cached; /* first: what is borrowed is the entry */
    bal_cache_key key;
    void *memory;
    uint8_t *bytes; /* in it */
    stage stage;
    unsigned users;
    bool listed; /* in its bucket: may be found */
    struct cache_entry *chain;
    struct cache_entry *newer; /* in order of use; only while users is 0 */
    struct cache_entry *older;
    int rc; /* FAILED: with what */
    bal_error err;
} cache_entry;

struct bal_cache {
    pthread_mutex_t lock; /* guards everything here and in the entries, but
                             the bytes of an entry that is READY */
    pthread_cond_t filled;
    size_t cap;
    size_t held;
    cache_entry *newest;
    cache_entry *oldest;
    cache_entry *buckets[BUCKETS];
};

int bal_cache_new(bal_cache **out, size_t cap, bal_error *err)
{
    bal_cache *self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a cache");
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->filled, NULL);
    self->cap = cap;
    *out = self;
    return 0;
}

static cache_entry **bucket_of(bal_cache *self, const bal_cache_key *key)
{
    size_t i = key->id.bytes[0] | (size_t)key->id.bytes[1] << 8;

    return &self->buckets[i % BUCKETS];
}

static cache_entry *find_locked(bal_cache *self, const bal_cache_key *key)
{
    cache_entry *at = *bucket_of(self, key);

    while (at && (!bal_id_equal(&at->key.id, &key->id) ||
                  strcmp(at->key.tenant, key->tenant) != 0))
        at = at->chain;
    return at;
}

static void unlist_locked(bal_cache *self, cache_entry *gone)
{
    cache_entry **at = bucket_of(self, &gone->key);

    if (!gone->listed)
        return;
    while (*at != gone)
        at = &(*at)->chain;
    *at = gone->chain;
    gone->listed = false;
}

static void queue_locked(bal_cache *self, cache_entry *idle)
{
    idle->newer = NULL;
    idle->older = self->newest;
    if (self->newest)
        self->newest->newer = idle;
    else
        self->oldest = idle;
    self->newest = idle;
}

static void unqueue_locked(bal_cache *self, cache_entry *idle)
{
    if (idle->newer)
        idle->newer->older = idle->older;
    else
        self->newest = idle->older;
    if (idle->older)
        idle->older->newer = idle->newer;
    else
        self->oldest = idle->newer;
    idle->newer = idle->older = NULL;
}

static size_t weight(const cache_entry *entry)
{
    return entry->cached.size + sizeof(*entry);
}

static void throw_out_locked(bal_cache *self, cache_entry *gone)
{
    self->held -= weight(gone);
    free(gone->memory);
    free(gone);
}

static void shrink_locked(bal_cache *self)
{
    while (self->held > self->cap && self->oldest) {
        cache_entry *gone = self->oldest;
        unqueue_locked(self, gone);
        unlist_locked(self, gone);
        throw_out_locked(self, gone);
    }
}

static void give_locked(bal_cache *self, cache_entry *entry)
{
    if (--entry->users)
        return;
    if (entry->listed)
        queue_locked(self, entry);
    else
        throw_out_locked(self, entry);
    shrink_locked(self);
}

/* A new entry, in use and FILLING; what it pushes out goes first. */
static cache_entry *add_locked(bal_cache *self, const bal_cache_key *key,
                               size_t size)
{
    cache_entry *added = calloc(1, sizeof(*added));
    cache_entry **bucket = bucket_of(self, key);

    if (!added)
        return NULL;
    added->key = *key;
    added->cached.size = size;
    added->users = 1;
    self->held += weight(added);
    shrink_locked(self);
    added->memory = malloc(size + BAL_PAGE);
    if (!added->memory) {
        throw_out_locked(self, added);
        return NULL;
    }
    added->bytes = bal_page_start(added->memory);
    added->cached.data = added->bytes;
    added->chain = *bucket;
    added->listed = true;
    *bucket = added;
    return added;
}

static void wait_locked(bal_cache *self, cache_entry *entry)
{
    if (!entry->users)
        unqueue_locked(self, entry);
    entry->users++;
    while (entry->stage == FILLING)
        pthread_cond_wait(&self->filled, &self->lock);
}

static void fill_locked(bal_cache *self, cache_entry *entry,
                        bal_cache_fill_fn *fill, void *ctx)
{
    pthread_mutex_unlock(&self->lock);
    int rc = fill(ctx, entry->bytes, entry->cached.size, &entry->err);
    pthread_mutex_lock(&self->lock);

    entry->rc = rc;
    entry->stage = rc ? FAILED : READY;
    /* The next who asks tries again. */
    if (rc)
        unlist_locked(self, entry);
    pthread_cond_broadcast(&self->filled);
}

int bal_cache_take(bal_cache *self, const bal_cached **out,
                   const bal_cache_key *key, size_t size,
                   bal_cache_fill_fn *fill, void *ctx, bal_error *err)
{
    pthread_mutex_lock(&self->lock);
    cache_entry *entry = find_locked(self, key);
    if (entry) {
        wait_locked(self, entry);
    } else {
        entry = add_locked(self, key, size);
        if (entry)
            fill_locked(self, entry, fill, ctx);
    }
    int rc = entry ? entry->rc : bal_fail_memory(err, "a block");
    if (entry && rc) {
        if (err)
            *err = entry->err;
        give_locked(self, entry);
    }
    pthread_mutex_unlock(&self->lock);
    if (!rc)
        *out = &entry->cached;
    return rc;
}

void bal_cache_give(bal_cache *self, const bal_cached *cached)
{
    pthread_mutex_lock(&self->lock);
    give_locked(self, (cache_entry *)(uintptr_t)cached);
    pthread_mutex_unlock(&self->lock);
}

void bal_cache_forget(bal_cache *self, const bal_cache_key *key)
{
    pthread_mutex_lock(&self->lock);
    cache_entry *gone = find_locked(self, key);
    if (gone) {
        unlist_locked(self, gone);
        if (!gone->users) {
            unqueue_locked(self, gone);
            throw_out_locked(self, gone);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

size_t bal_cache_held(bal_cache *self)
{
    pthread_mutex_lock(&self->lock);
    size_t held = self->held;
    pthread_mutex_unlock(&self->lock);
    return held;
}

void bal_cache_free(bal_cache *self)
{
    if (!self)
        return;
    self->cap = 0;
    shrink_locked(self);
    pthread_cond_destroy(&self->filled);
    pthread_mutex_destroy(&self->lock);
    free(self);
}
