/* Least recently used, by bytes; each entry is counted by who uses it and is
 * thrown out only when nobody does, so the cap is exceeded by what is in use
 * and by no more.
 *
 * With a spill, an entry has a slot there from when it was filled, in turn: who
 * reads tensors again and again reads them in order, and what was used last is
 * then what is wanted last. Thrown out of memory it rests in its slot, until
 * that is another's turn. */
#include "blocks/cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/spares.h"
#include "blocks/spill.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/hash.h"

enum { BUCKETS = 4096 };
#define NO_SLOT SIZE_MAX

/* RESTING: in its slot alone. */
typedef enum stage { FILLING, READY, FAILED, RESTING } stage;

typedef struct cache_entry {
    bal_cached cached; /* first: what is borrowed is the entry */
    bal_cache_key key;
    void *memory;
    uint8_t *bytes; /* in it */
    stage stage;
    size_t slot; /* NO_SLOT: it has none */
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
    bal_spares spares;
    bal_spill *spill; /* set once, before anything is read by it */
    bool full;        /* a write failed: nothing more is written */
    struct {
        cache_entry *entry;
    } * owners;   /* of its slots */
    size_t block; /* bytes of a slot */
    size_t *idle; /* slots that were given back, the last first */
    size_t idle_count;
    size_t used; /* slots that were ever given */
    size_t turn; /* the slot that is given once all are in use */
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

void bal_cache_spill(bal_cache *self, const char *folder, size_t block,
                     size_t most)
{
    pthread_mutex_lock(&self->lock);
    bool wanted = !self->spill;
    bal_spill *spill = wanted ? bal_spill_new(folder, block, most) : NULL;

    if (spill) {
        size_t slots = bal_spill_slots(spill);
        self->owners = calloc(slots, sizeof(*self->owners));
        self->idle = calloc(slots, sizeof(*self->idle));
    }
    if (spill && self->owners && self->idle) {
        self->spill = BAL_TAKE(spill);
        self->block = block;
    } else if (spill) {
        free(self->owners);
        free(self->idle);
        self->owners = NULL;
        self->idle = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    bal_spill_free(spill);
}

void bal_cache_widen(bal_cache *self, size_t cap)
{
    pthread_mutex_lock(&self->lock);
    self->cap = cap > self->cap ? cap : self->cap;
    pthread_mutex_unlock(&self->lock);
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

static void empty_locked(bal_cache *self, cache_entry *entry)
{
    if (!entry->memory)
        return;
    self->held -= weight(entry);
    if (entry->cached.size <= self->cap / BAL_SPARES)
        bal_spares_keep(&self->spares, entry->memory, entry->cached.size);
    else
        bal_spares_drop(entry->memory, entry->cached.size);
    entry->memory = NULL;
}

static void drop_slot_locked(bal_cache *self, cache_entry *entry)
{
    if (entry->slot == NO_SLOT)
        return;
    self->owners[entry->slot].entry = NULL;
    self->idle[self->idle_count++] = entry->slot;
    entry->slot = NO_SLOT;
}

static void throw_out_locked(bal_cache *self, cache_entry *gone)
{
    drop_slot_locked(self, gone);
    empty_locked(self, gone);
    free(gone);
}

static void shrink_locked(bal_cache *self)
{
    while (self->held > self->cap && self->oldest) {
        cache_entry *gone = self->oldest;
        unqueue_locked(self, gone);
        if (gone->slot != NO_SLOT) {
            empty_locked(self, gone);
            gone->stage = RESTING;
            continue;
        }
        unlist_locked(self, gone);
        throw_out_locked(self, gone);
    }
}

/* ---- on disk ------------------------------------------------------------ */

/* One that is in use: its owner has it no more. NO_SLOT: it is being read. */
static size_t take_slot_locked(bal_cache *self)
{
    size_t slot = self->turn;
    cache_entry *owner = self->owners[slot].entry;

    self->turn = (slot + 1) % bal_spill_slots(self->spill);
    if (owner->stage == FILLING)
        return NO_SLOT;
    self->owners[slot].entry = NULL;
    owner->slot = NO_SLOT;
    if (owner->stage == RESTING) {
        unlist_locked(self, owner);
        throw_out_locked(self, owner);
    }
    return slot;
}

/* Pages that are in memory already come first. */
static size_t slot_locked(bal_cache *self, const cache_entry *entry)
{
    if (!self->spill || self->full || entry->cached.size > self->block)
        return NO_SLOT;
    if (self->idle_count)
        return self->idle[--self->idle_count];
    if (self->used < bal_spill_slots(self->spill))
        return self->used++;
    return take_slot_locked(self);
}

/* What was filled just now is written to a slot of its own. */
static void spill_locked(bal_cache *self, cache_entry *entry)
{
    size_t slot = slot_locked(self, entry);
    if (slot == NO_SLOT)
        return;

    entry->slot = slot;
    self->owners[slot].entry = entry;
    pthread_mutex_unlock(&self->lock);
    bool written =
        bal_spill_write(self->spill, slot, entry->bytes, entry->cached.size);
    pthread_mutex_lock(&self->lock);
    if (written)
        return;
    self->full = true;
    drop_slot_locked(self, entry);
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

/* Memory for its bytes; what it pushes out goes first. */
static bool furnish_locked(bal_cache *self, cache_entry *entry)
{
    self->held += weight(entry);
    shrink_locked(self);
    entry->memory = bal_spares_take(&self->spares, entry->cached.size);
    if (!entry->memory) {
        self->held -= weight(entry);
        return false;
    }
    entry->bytes = bal_page_start(entry->memory);
    entry->cached.data = entry->bytes;
    return true;
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
    added->slot = NO_SLOT;
    if (!furnish_locked(self, added)) {
        free(added);
        return NULL;
    }
    added->users = 1;
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
    if (!rc)
        spill_locked(self, entry);

    entry->rc = rc;
    entry->stage = rc ? FAILED : READY;
    /* The next who asks tries again. */
    if (rc)
        unlist_locked(self, entry);
    pthread_cond_broadcast(&self->filled);
}

/* What comes from disk is no surer than a block at rest. */
static bool is_its(const cache_entry *entry)
{
    bal_id id;

    bal_hash_of(&id, entry->bytes, entry->cached.size);
    return bal_id_equal(&id, &entry->key.id);
}

/* Back into memory. False: there is none. */
static bool wake_locked(bal_cache *self, cache_entry *entry,
                        bal_cache_fill_fn *fill, void *ctx)
{
    entry->stage = FILLING;
    if (!furnish_locked(self, entry)) {
        entry->stage = RESTING;
        return false;
    }
    entry->users = 1;
    pthread_mutex_unlock(&self->lock);
    bool read = bal_spill_read(self->spill, entry->slot, entry->bytes,
                               entry->cached.size) &&
                is_its(entry);
    pthread_mutex_lock(&self->lock);
    if (read) {
        entry->stage = READY;
        pthread_cond_broadcast(&self->filled);
        return true;
    }
    drop_slot_locked(self, entry);
    fill_locked(self, entry, fill, ctx);
    return true;
}

/* NULL: no memory. */
static cache_entry *entry_locked(bal_cache *self, const bal_cache_key *key,
                                 size_t size, bal_cache_fill_fn *fill,
                                 void *ctx)
{
    cache_entry *entry = find_locked(self, key);

    if (entry && entry->stage == RESTING)
        return wake_locked(self, entry, fill, ctx) ? entry : NULL;
    if (entry) {
        wait_locked(self, entry);
        return entry;
    }
    entry = add_locked(self, key, size);
    if (entry)
        fill_locked(self, entry, fill, ctx);
    return entry;
}

int bal_cache_take(bal_cache *self, const bal_cached **out,
                   const bal_cache_key *key, size_t size,
                   bal_cache_fill_fn *fill, void *ctx, bal_error *err)
{
    pthread_mutex_lock(&self->lock);
    cache_entry *entry = entry_locked(self, key, size, fill, ctx);
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
            if (gone->stage == READY)
                unqueue_locked(self, gone);
            throw_out_locked(self, gone);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

/* To the end that goes first. */
static void requeue_locked(bal_cache *self, cache_entry *entry)
{
    unqueue_locked(self, entry);
    entry->newer = self->oldest;
    if (self->oldest)
        self->oldest->older = entry;
    else
        self->newest = entry;
    self->oldest = entry;
}

void bal_cache_pass(bal_cache *self, const bal_cache_key *key)
{
    pthread_mutex_lock(&self->lock);
    cache_entry *passed = find_locked(self, key);
    if (passed && passed->stage == RESTING) {
        unlist_locked(self, passed);
        throw_out_locked(self, passed);
    } else if (passed && passed->stage == READY) {
        drop_slot_locked(self, passed);
        if (!passed->users)
            requeue_locked(self, passed);
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
    for (size_t i = 0; self->spill && i < bal_spill_slots(self->spill); i++) {
        if (self->owners[i].entry)
            throw_out_locked(self, self->owners[i].entry);
    }
    bal_spares_done(&self->spares);
    free(self->owners);
    free(self->idle);
    bal_spill_free(self->spill);
    pthread_cond_destroy(&self->filled);
    pthread_mutex_destroy(&self->lock);
    free(self);
}
