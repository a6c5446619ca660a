/* Sets of eight places each, chosen by the hash of the key: so an entry is
 * found, replaced and pushed out without lists, and who chooses names can at
 * worst push out their own. The keys are kept, and compared. */
#include "serve/reply_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"

enum { WAYS = 8, OVERHEAD = 512 };

typedef struct entry {
    bal_ready *ready; /* NULL: the place is free */
    bal_id key;
    uint64_t changes, used, bytes;
} entry;

struct bal_reply_cache {
    pthread_mutex_t lock; /* guards all */
    size_t sets;
    uint64_t limit, bytes, clock;
    entry *entries;
};

bal_ready *bal_ready_ref(bal_ready *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void bal_ready_free(bal_ready *self)
{
    if (self && atomic_fetch_sub(&self->references, 1) == 1)
        self->free(self);
}

static void drop(bal_reply_cache *self, entry *one)
{
    if (!one->ready)
        return;
    self->bytes -= one->bytes;
    bal_ready_free(one->ready);
    memset(one, 0, sizeof(*one));
}

int bal_reply_cache_new(bal_reply_cache **out, size_t entries, uint64_t bytes,
                        bal_error *err)
{
    bal_reply_cache *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "making a cache of replies");
    self->sets = entries < WAYS ? 1 : entries / WAYS;
    self->limit = bytes;
    self->entries = calloc(self->sets * WAYS, sizeof(*self->entries));
    if (!self->entries) {
        free(self);
        return bal_fail_memory(err, "making a cache of replies");
    }
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return 0;
}

void bal_reply_cache_free(bal_reply_cache *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->sets * WAYS; i++)
        drop(self, &self->entries[i]);
    pthread_mutex_destroy(&self->lock);
    free(self->entries);
    free(self);
}

static entry *set_of(bal_reply_cache *self, const bal_id *key)
{
    uint64_t mixed;

    memcpy(&mixed, key->bytes, sizeof(mixed));
    return self->entries + mixed % self->sets * WAYS;
}

static entry *find(bal_reply_cache *self, const bal_id *key)
{
    entry *set = set_of(self, key);

    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].ready && bal_id_equal(&set[i].key, key))
            return &set[i];
    }
    return NULL;
}

bal_ready *bal_reply_cache_find(bal_reply_cache *self, const void *key,
                                size_t len, uint64_t changes)
{
    bal_ready *found = NULL;
    bal_id id;

    bal_hash_of(&id, key, len);
    pthread_mutex_lock(&self->lock);
    entry *one = find(self, &id);
    if (one && one->changes != changes) {
        drop(self, one);
    } else if (one) {
        one->used = ++self->clock;
        found = bal_ready_ref(one->ready);
    }
    pthread_mutex_unlock(&self->lock);
    return found;
}

/* The least recently used of count places, a free one before all. */
static entry *oldest(entry *from, size_t count)
{
    entry *best = from;

    for (size_t i = 1; i < count; i++) {
        if (from[i].used < best->used)
            best = &from[i];
    }
    return best;
}

/* The least recently used of all that are taken; NULL: none is. */
static entry *oldest_taken(bal_reply_cache *self)
{
    entry *best = NULL;

    for (size_t i = 0; i < self->sets * WAYS; i++) {
        entry *one = &self->entries[i];
        if (one->ready && (!best || one->used < best->used))
            best = one;
    }
    return best;
}

void bal_reply_cache_put(bal_reply_cache *self, const void *key, size_t len,
                         uint64_t changes, bal_ready *ready)
{
    uint64_t bytes = ready->length + OVERHEAD;
    bal_id id;

    if (bytes > self->limit / 8)
        return;
    bal_hash_of(&id, key, len);
    pthread_mutex_lock(&self->lock);
    entry *one = find(self, &id);
    if (!one)
        one = oldest(set_of(self, &id), WAYS);
    drop(self, one);
    while (self->bytes > self->limit - bytes)
        drop(self, oldest_taken(self));
    *one = (entry){ .ready = bal_ready_ref(ready),
                    .key = id,
                    .changes = changes,
                    .used = ++self->clock,
                    .bytes = bytes };
    self->bytes += bytes;
    pthread_mutex_unlock(&self->lock);
}
