#include "merge/rank_places.h"

#include <stdlib.h>

#include "core/arith.h"
#include "core/room.h"

enum {
    CHUNK = 256 * 1024,        /* elements at least */
    CHUNKS = 128,              /* at most */
    NUMBERS_MOST = 256 * 1024, /* of 4 bytes */
    DIGIT = 16,
};

/* ---- chunks ------------------------------------------------------------- */

void bal_chunks_init(bal_chunks *self, uint64_t total)
{
    *self = (bal_chunks){ .size = bal_max(CHUNK, total / CHUNKS + 1) };
}

void bal_chunks_done(bal_chunks *self)
{
    free(self->ends);
    free(self->numbers);
    *self = (bal_chunks){ .dropped = true, .size = self->size };
}

static uint32_t number_of(const uint64_t *counts, size_t bins, size_t copies,
                          size_t bin)
{
    uint64_t all = 0;

    for (size_t i = 0; i < copies; i++)
        all += counts[i * bins + bin];
    return (uint32_t)all;
}

static bool make_room(bal_chunks *self, size_t numbers)
{
    size_t wanted = self->used + numbers;

    if (wanted > NUMBERS_MOST)
        return false;
    bal_chunk *ends =
        bal_room_for_one(self->ends, self->count, &self->room, sizeof(*ends));
    if (!ends)
        return false;
    self->ends = ends;
    if (wanted <= self->numbers_room)
        return true;
    wanted = bal_min(bal_max(wanted, 2 * self->numbers_room), NUMBERS_MOST);
    uint32_t *grown = reallocarray(self->numbers, wanted, sizeof(*grown));
    if (!grown)
        return false;
    self->numbers = grown;
    self->numbers_room = wanted;
    return true;
}

void bal_chunks_note(bal_chunks *self, const uint64_t *counts, size_t bins,
                     size_t copies)
{
    uint32_t low = 1; /* zeros lie far from the others */
    uint32_t high = (uint32_t)bins;

    if (self->dropped)
        return;
    while (low < high && !number_of(counts, bins, copies, low))
        low++;
    while (high > low && !number_of(counts, bins, copies, high - 1))
        high--;
    if (!make_room(self, high - low)) {
        bal_chunks_done(self);
        return;
    }
    self->ends[self->count++] = (bal_chunk){
        .low = low,
        .high = high,
        .zeros = number_of(counts, bins, copies, 0),
        .at = self->used,
    };
    for (uint32_t bin = low; bin < high; bin++)
        self->numbers[self->used++] = number_of(counts, bins, copies, bin);
}

static uint32_t count_at(const bal_chunks *self, size_t chunk, size_t bin)
{
    const bal_chunk *end = &self->ends[chunk];

    if (!bin)
        return end->zeros;
    if (bin < end->low || bin >= end->high)
        return 0;
    return self->numbers[end->at + (bin - end->low)];
}

bool bal_chunks_find(const bal_chunks *self, size_t *chunk, uint64_t *rank,
                     size_t bin)
{
    uint32_t before = 0;
    uint64_t left = *rank;

    for (size_t i = 0; !self->dropped && i < self->count; i++) {
        uint32_t all = count_at(self, i, bin);
        uint32_t here = all - before;

        if (left < here) {
            *chunk = i;
            *rank = left;
            return true;
        }
        left -= here;
        before = all;
    }
    return false;
}

/* ---- places ------------------------------------------------------------- */

void bal_places_done(bal_places *self)
{
    free(self->of);
    *self = (bal_places){ .dropped = true, .most = self->most };
}

void bal_places_add(bal_places *self, uint64_t index, uint64_t digit)
{
    uint64_t *of = NULL;

    if (self->dropped)
        return;
    if (self->count < self->most && !(index >> (64 - DIGIT)))
        of = bal_room_for_one(self->of, self->count, &self->room, sizeof(*of));
    if (!of) {
        bal_places_done(self);
        return;
    }
    self->of = of;
    self->of[self->count++] = index << DIGIT | digit;
}

bool bal_places_find(const bal_places *self, uint64_t *index, uint64_t rank,
                     uint64_t digit)
{
    for (size_t i = 0; !self->dropped && i < self->count; i++) {
        if ((self->of[i] & (((uint64_t)1 << DIGIT) - 1)) != digit || rank--)
            continue;
        *index = self->of[i] >> DIGIT;
        return true;
    }
    return false;
}
