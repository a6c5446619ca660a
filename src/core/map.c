/* Open addressing with linear probing, at most half full, hashed by SipHash-1-3
 * under a random key: whoever chooses the names cannot choose the collisions.
 */
#include "core/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"

enum { FIRST_ROOM = 16 };

typedef struct bal_map_slot {
    const void *key; /* NULL: free */
    size_t len;
    uint64_t hash;
    size_t value;
} bal_map_slot;

static uint64_t turn(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = turn(v[1], 13) ^ v[0];
    v[0] = turn(v[0], 32);
    v[2] += v[3];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = turn(v[1], 17) ^ v[2];
    v[2] = turn(v[2], 32);
}

static uint64_t hash_of(const bal_map *self, const void *key, size_t len)
{
    const uint8_t *bytes = key;
    uint64_t last = (uint64_t)len << 56;
    uint64_t v[4] = {
        self->seed[0] ^ UINT64_C(0x736f6d6570736575),
        self->seed[1] ^ UINT64_C(0x646f72616e646f6d),
        self->seed[0] ^ UINT64_C(0x6c7967656e657261),
        self->seed[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t at = 0;

    for (; len - at >= 8; at += 8) {
        uint64_t word = bal_get64(bytes + at);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = at; i < len; i++)
        last |= (uint64_t)bytes[i] << (8 * (i - at));
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (size_t i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void seed(bal_map *self)
{
    if (getrandom(self->seed, sizeof(self->seed), 0) ==
        (ssize_t)sizeof(self->seed))
        return;
    self->seed[0] = (uint64_t)bal_clock_now();
    self->seed[1] = (uint64_t)(uintptr_t)self;
}

/* The slot of the key, or the free one where it belongs. */
static bal_map_slot *slot_of(const bal_map *self, const void *key, size_t len,
                             uint64_t hash)
{
    size_t at = hash & (self->room - 1);

    while (self->slots[at].key) {
        const bal_map_slot *slot = &self->slots[at];
        if (slot->hash == hash && slot->len == len &&
            !memcmp(slot->key, key, len))
            break;
        at = (at + 1) & (self->room - 1);
    }
    return &self->slots[at];
}

static int grow(bal_map *self, bal_error *err)
{
    bal_map bigger = *self;

    if (!self->room)
        seed(&bigger);
    bigger.room = self->room ? 2 * self->room : FIRST_ROOM;
    bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
    if (!bigger.slots)
        return bal_fail_memory(err, "growing a table");
    for (size_t i = 0; i < self->room; i++) {
        const bal_map_slot *old = &self->slots[i];
        if (old->key)
            *slot_of(&bigger, old->key, old->len, old->hash) = *old;
    }
    free(self->slots);
    self->slots = bigger.slots;
    self->room = bigger.room;
    memcpy(self->seed, bigger.seed, sizeof(self->seed));
    return 0;
}

int bal_map_add(bal_map *self, const void *key, size_t len, size_t *value,
                bool *there, bal_error *err)
{
    if (self->count >= self->room / 2) {
        int rc = grow(self, err);
        if (rc)
            return rc;
    }
    uint64_t hash = hash_of(self, key, len);
    bal_map_slot *slot = slot_of(self, key, len, hash);
    *there = slot->key != NULL;
    if (*there) {
        *value = slot->value;
        return 0;
    }
    *slot = (bal_map_slot){
        .key = key,
        .len = len,
        .hash = hash,
        .value = *value,
    };
    self->count++;
    return 0;
}

size_t bal_map_find(const bal_map *self, const void *key, size_t len)
{
    if (!self->room)
        return BAL_NONE;
    const bal_map_slot *slot = slot_of(self, key, len, hash_of(self, key, len));
    return slot->key ? slot->value : BAL_NONE;
}

void bal_map_done(bal_map *self)
{
    free(self->slots);
    *self = (bal_map){ 0 };
}
