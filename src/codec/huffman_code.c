/* Which code each byte gets. Lengths come of package-merge (Larmore and
 * Hirschberg, 1990), which is optimal under a limit: level by level, from the
 * longest codes up, the lightest two items of the level below are packed into
 * one that competes with the symbols themselves. Numbers are whole and ties are
 * settled by symbol, so all machines choose alike. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codec/huffman.h"

enum {
    SYMBOLS = BAL_HUFFMAN_SYMBOLS,
    BITS = BAL_HUFFMAN_BITS,
    ITEMS = 2 * SYMBOLS,
};

/* Of one level, lightest first. */
typedef struct level {
    uint64_t weight[ITEMS];
    size_t count;
} level;

static int lighter(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* The symbols that occur, lightest first, each below its count. */
static size_t sort_symbols(uint64_t *sorted, const uint32_t *count)
{
    size_t used = 0;

    for (size_t i = 0; i < SYMBOLS; i++) {
        if (count[i])
            sorted[used++] = (uint64_t)count[i] << 8 | i;
    }
    qsort(sorted, used, sizeof(*sorted), lighter);
    return used;
}

/* packed[i]: item i is two of the level below, and no symbol. */
static void merge_level(level *self, bool *packed, const level *below,
                        const uint64_t *sorted, size_t used)
{
    size_t packs = below->count / 2;
    size_t pack = 0;
    size_t symbol = 0;

    self->count = used + packs;
    for (size_t i = 0; i < self->count; i++) {
        uint64_t single = symbol < used ? sorted[symbol] >> 8 : UINT64_MAX;
        uint64_t both = UINT64_MAX;
        if (pack < packs)
            both = below->weight[2 * pack] + below->weight[2 * pack + 1];
        packed[i] = both < single;
        self->weight[i] = packed[i] ? both : single;
        pack += packed[i];
        symbol += !packed[i];
    }
}

void bal_huffman_lengths(uint8_t *length, const uint32_t *count)
{
    bool packed[BITS][ITEMS];
    level levels[2];
    uint64_t sorted[SYMBOLS] = { 0 };
    size_t used = sort_symbols(sorted, count);
    size_t taken = 2 * (used - 1);

    assert(used > 1);
    levels[1].count = 0;
    for (size_t i = 0; i < BITS; i++)
        merge_level(&levels[i % 2], packed[i], &levels[(i + 1) % 2], sorted,
                    used);

    memset(length, 0, SYMBOLS);
    for (size_t i = BITS; i-- > 0;) {
        size_t packs = 0;
        for (size_t k = 0; k < taken; k++)
            packs += packed[i][k];
        for (size_t k = 0; k < taken - packs; k++)
            length[sorted[k] & 0xff]++;
        taken = 2 * packs;
    }
}

bool bal_huffman_number(bal_huffman_code *code)
{
    uint32_t many[BITS + 1] = { 0 };
    uint32_t next[BITS + 2] = { 0 };

    for (size_t i = 0; i < SYMBOLS; i++) {
        if (code->length[i] > BITS)
            return false;
        many[code->length[i]]++;
    }
    many[0] = 0;
    for (size_t l = 1; l <= BITS; l++)
        next[l + 1] = (next[l] + many[l]) << 1;
    if (next[BITS + 1] != 2u << BITS)
        return false;
    for (size_t i = 0; i < SYMBOLS; i++)
        code->bits[i] = (uint16_t)next[code->length[i]]++;
    return true;
}
