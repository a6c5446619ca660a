/* Where equal elements are: what a ranking notes down while it counts, so that
 * the one whose turn it is among equal ones is found without another look at
 * the whole tensor. Notes are a help alone: where they would take too much
 * memory, or there is none, they are dropped. */
#ifndef MERGE_RANK_PLACES_H
#define MERGE_RANK_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- of a first pass ---------------------------------------------------- */

/* At the end of each chunk of a tensor, how many of a bin there were by then,
 * modulo 2^32, for the bins [low, high) that had any. */
typedef struct bal_chunk {
    uint32_t low, high;
    uint32_t zeros; /* of bin 0 */
    size_t at;      /* in numbers */
} bal_chunk;

typedef struct bal_chunks {
    bool dropped;
    uint64_t size; /* elements of a chunk */
    size_t count, room;
    bal_chunk *ends;
    uint32_t *numbers;
    size_t used, numbers_room;
} bal_chunks;

void bal_chunks_init(bal_chunks *self, uint64_t total);
/* counts has the sum of `copies` rows of so many bins. */
void bal_chunks_note(bal_chunks *self, const uint64_t *counts, size_t bins,
                     size_t copies);
/* The chunk that the rank-th element of a bin is in; what is left of the rank
 * is that inside. False: not known. */
bool bal_chunks_find(const bal_chunks *self, size_t *chunk, uint64_t *rank,
                     size_t bin);
void bal_chunks_done(bal_chunks *self);

/* ---- of a later one ----------------------------------------------------- */

/* The elements of a range of keys, in order: index and digit. */
typedef struct bal_places {
    size_t most; /* notes, of 8 bytes */
    bool dropped;
    size_t count, room;
    uint64_t *of;
} bal_places;

void bal_places_add(bal_places *self, uint64_t index, uint64_t digit);
/* Index of the rank-th of a digit. False: not known. */
bool bal_places_find(const bal_places *self, uint64_t *index, uint64_t rank,
                     uint64_t digit);
void bal_places_done(bal_places *self);

#endif
