/* F32 whose mantissas end early: differences of BF16 or F16. How many bits are
 * significant goes with the exponent, so the two are one token; sign and the
 * bits between the first and the last one, both of which are 1, are raw.
 *
 * Payload: pairs u8 (less one), for each token its pair u16 (exponent << 5 |
 * significant bits behind the point; WHOLE: all 32 bits are raw; ZERO: +0), the
 * bytes that are no whole element, the stream. */
#include "codec/trimmed.h"

#include <string.h>

#include "codec/coder.h"
#include "core/arith.h"
#include "core/error.h"

enum {
    PAIRS = BAL_PAIRS,
    MANTISSA = 23,
    ZERO = BAL_PAIR_ZERO,
    WHOLE = BAL_PAIR_WHOLE,
    TOKENS = BAL_RANS_TOKENS,
    COUNTS = 4,
};

static uint32_t raw_of_pair(uint32_t pair)
{
    uint32_t length = pair & 31;

    if (pair == ZERO)
        return 0;
    if (pair == WHOLE)
        return 32;
    return length ? length : 1;
}

/* ---- what it would take ------------------------------------------------- */

typedef struct pair_counts {
    uint32_t count[PAIRS];
} pair_counts;

static void count_sample(pair_counts *self, const bal_loops *loops,
                         bal_bytes from, size_t step)
{
    const uint8_t *data = from.data;
    uint8_t some[4 * BAL_TILE];
    uint16_t pair[BAL_TILE];
    size_t n = from.len / 4;

    memset(self, 0, sizeof(*self));
    for (size_t i = 0; i < n;) {
        size_t many = 0;
        for (; many < BAL_TILE && i < n; i += step, many++)
            memcpy(some + 4 * many, data + 4 * i, 4);
        size_t found = loops->pairs(pair, some, many);
        self->count[ZERO] += (uint32_t)(many - found);
        for (size_t k = 0; k < found; k++)
            self->count[pair[k]]++;
    }
}

uint64_t bal_trimmed_guess(bal_coder *coder, bal_bytes from, size_t samples)
{
    bal_rans *rans = bal_coder_rans(coder);
    size_t step = from.len / 4 / samples + 1;
    uint64_t bits = 0;
    uint64_t total = 0;
    pair_counts pairs;

    if (!rans)
        return from.len;
    count_sample(&pairs, coder->loops, from, step);
    for (size_t i = 0; i < PAIRS; i++)
        total += pairs.count[i];
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint64_t count = pairs.count[i];
        if (!count)
            continue;
        bits += count * raw_of_pair(i);
        bits +=
            count * (bal_rans_log(rans, total) - bal_rans_log(rans, count)) >>
            16;
    }
    return bits * step / 8;
}

/* ---- encode ------------------------------------------------------------- */

/* All of them, to the first of COUNTS places that are taken by turns: a count
 * that was just written is slow to read. */
static void count_all(pair_counts *to, const bal_loops *loops, bal_bytes from)
{
    uint16_t pair[BAL_TILE];
    size_t n = from.len / 4;

    memset(to, 0, COUNTS * sizeof(*to));
    for (size_t at = 0; at < n; at += BAL_TILE) {
        size_t many = n - at < BAL_TILE ? n - at : BAL_TILE;
        size_t found =
            loops->pairs(pair, (const uint8_t *)from.data + 4 * at, many);
        size_t fours = found & ~(size_t)3;
        to[0].count[ZERO] += (uint32_t)(many - found);
        for (size_t i = 0; i < fours; i += 4) {
            to[0].count[pair[i]]++;
            to[1].count[pair[i + 1]]++;
            to[2].count[pair[i + 2]]++;
            to[3].count[pair[i + 3]]++;
        }
        for (size_t i = fours; i < found; i++)
            to[0].count[pair[i]]++;
    }
    for (size_t i = 0; i < PAIRS; i++)
        to[0].count[i] += to[1].count[i] + to[2].count[i] + to[3].count[i];
}

typedef struct dictionary {
    const uint8_t *from;
    const bal_loops *loops;
    uint32_t used;
    uint16_t pair[TOKENS];
    uint8_t token[PAIRS];
} dictionary;

/* The pairs that occur most; what has no token is WHOLE, the first. */
static void choose_pairs(dictionary *self, const pair_counts *all)
{
    uint32_t least = 1;
    size_t fit;

    do {
        fit = 0;
        for (size_t i = 0; i < PAIRS; i++)
            fit += all->count[i] >= least;
        least *= 2;
    } while (fit >= TOKENS);
    least /= 2;
    memset(self->token, 0, sizeof(self->token));
    self->pair[0] = WHOLE;
    self->used = 1;
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (all->count[i] < least)
            continue;
        self->token[i] = (uint8_t)self->used;
        self->pair[self->used++] = (uint16_t)i;
    }
}

static void fill(bal_tile *tile, const void *source, size_t from, size_t n)
{
    const dictionary *self = source;

    self->loops->trim(tile, self->from + 4 * from, self->token, n);
}

static int put_dictionary(bal_buf *to, const dictionary *self, bal_bytes from,
                          bal_error *err)
{
    uint8_t head[1 + 2 * TOKENS];

    head[0] = (uint8_t)(self->used - 1);
    for (size_t i = 0; i < self->used; i++) {
        head[1 + 2 * i] = (uint8_t)self->pair[i];
        head[2 + 2 * i] = (uint8_t)(self->pair[i] >> 8);
    }
    int rc = bal_buf_append(to, head, 1 + 2 * (size_t)self->used, err);
    if (rc)
        return rc;
    size_t tail = from.len % 4;
    return bal_buf_append(to, (const uint8_t *)from.data + from.len - tail,
                          tail, err);
}

static int trimmed_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                          const bal_grain *grain, bal_effort effort,
                          bool *gains, bal_error *err)
{
    bal_rans *rans = bal_coder_rans(coder);
    dictionary words = { .from = from.data, .loops = coder->loops };
    size_t start = to->len;
    size_t n = from.len / 4;

    (void)effort;
    *gains = false;
    if (grain->width != 4 || !n || n > UINT32_MAX)
        return 0;
    pair_counts *all =
        (void *)bal_coder_room(coder, BAL_ROOM_PAIRS, COUNTS * sizeof(*all));
    if (!rans || !all)
        return bal_fail_memory(err, "tables");
    count_all(all, coder->loops, from);
    choose_pairs(&words, all);
    bal_rans_clear(rans);
    bal_rans_no_rule(rans);
    for (size_t i = 0; i < words.used; i++)
        rans->raw[i] = raw_of_pair(words.pair[i]);
    for (size_t i = 0; i < PAIRS; i++)
        rans->count[0][words.token[i]] += all->count[i];
    bal_rans_fit(rans);
    int rc = put_dictionary(to, &words, from, err);
    if (rc)
        return rc;
    size_t head = to->len - start;
    if (head < from.len)
        rc = bal_rans_append(rans, coder->loops, to,
                             &(bal_source){ fill, &words, n },
                             from.len - head - 1, gains, err);
    if (rc || !*gains)
        to->len = start;
    return rc;
}

/* ---- decode ------------------------------------------------------------- */

typedef struct word_list {
    const bal_loops *loops;
    uint8_t *to;
    uint32_t pair[TOKENS];
} word_list;

static void before(bal_tile *tile, const void *sink, size_t from, size_t n)
{
    (void)sink;
    (void)from;
    memset(tile->table, 0, n);
}

static void after(bal_tile *tile, const void *sink, size_t from, size_t n)
{
    const word_list *self = sink;

    self->loops->untrim(self->to + 4 * from, tile, self->pair, n);
}

/* False: the pair is none. */
static bool set_word(word_list *self, uint32_t *raw, size_t i, uint32_t pair)
{
    uint32_t length = pair & 31;

    if (pair >= PAIRS || (length > MANTISSA && pair != ZERO && pair != WHOLE))
        return false;
    *raw = raw_of_pair(pair);
    self->pair[i] = pair;
    return true;
}

static int trimmed_decode(bal_coder *coder, void *to, size_t len,
                          bal_bytes payload, const bal_grain *grain,
                          bal_error *err)
{
    bal_rans *rans = bal_coder_rans(coder);
    const uint8_t *data = payload.data;
    word_list words = { .loops = coder->loops, .to = to };
    size_t tail = len % 4;

    (void)grain;
    if (!rans)
        return bal_fail_memory(err, "tables");
    size_t head = payload.len ? 1 + 2 * ((size_t)data[0] + 1) + tail : 1;
    if (payload.len < head)
        return bal_fail(err, BAL_ECORRUPT, "trimmed: cut short");
    bal_rans_no_rule(rans);
    for (size_t i = 0; i <= data[0]; i++) {
        uint32_t pair = (uint32_t)data[1 + 2 * i] | (uint32_t)data[2 + 2 * i]
                                                        << 8;
        if (!set_word(&words, &rans->raw[i], i, pair))
            return bal_fail(err, BAL_ECORRUPT, "trimmed: no pair %u", pair);
    }
    bal_sink sink = { bal_rans_none_direct, before, after, &words };
    int rc = bal_rans_fill(rans, coder->loops, &sink, len / 4,
                           (bal_bytes){ data + head, payload.len - head }, err);
    if (rc)
        return bal_within(err, rc, "trimmed");
    if (tail)
        memcpy((uint8_t *)to + len - tail, data + head - tail, tail);
    return 0;
}

const bal_codec bal_codec_trimmed = {
    .name = "trimmed",
    .encode = trimmed_encode,
    .decode = trimmed_decode,
};
