/* The stream: tables, the states as they were in the end, words. A reader that
 * has taken everything out must have come to where the writer began: all words
 * used up, each state at its least. That is checked, and tells nearly all
 * damage.
 *
 * Layout: starts u16, sizes u16 (bytes of tables; which lanes), tables, a state
 * u32 for each lane, words. A short stream has few lanes: states take room. */
#include "codec/rans.h"

#include <assert.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"

enum {
    TABLES = BAL_RANS_TABLES,
    TOKENS = BAL_RANS_TOKENS,
    LANES = BAL_RANS_LANES,
    WIDE = BAL_RANS_WIDE,
    MOST_STEPS = 6,
    SIZE_BITS = 14, /* of the tables; those above say how many lanes */
    HEADER = 4,
};

/* How many lanes there are, by what is on disk. */
static const size_t lanes_of[] = { WIDE, 8, 1, LANES };

_Static_assert(sizeof(lanes_of) / sizeof(lanes_of[0]) == 1 << (16 - SIZE_BITS),
               "every number has its lanes");

/* Few lanes where the states would weigh, many where they do not, since states
 * do not wait for each other. The first that there is enough for. */
static const struct {
    unsigned row;
    size_t elements;
    uint64_t bytes; /* of the stream, about */
} lane_choices[] = {
    { 3, 1 << 17, 1 << 17 }, { 0, 1 << 17, 0 }, { 1, 1 << 16, 0 },
    { 1, 1 << 12, 3 << 10 }, { 2, 0, 0 },
};

static unsigned lanes_for(size_t n, uint64_t bits)
{
    size_t i = 0;

    while (n < lane_choices[i].elements || bits / 8 < lane_choices[i].bytes)
        i++;
    return lane_choices[i].row;
}

/* ---- counting ----------------------------------------------------------- */

void bal_rans_clear(bal_rans *self)
{
    memset(self->count, 0, sizeof(self->count));
    self->bits = 0;
}

void bal_rans_rule(bal_rans *self, unsigned rule)
{
    self->rule = rule;
    for (uint32_t token = 0; token < TOKENS; token++) {
        uint32_t q = token >> rule;
        self->raw[token] = q > 1 ? q - 1 : 0;
    }
}

void bal_rans_no_rule(bal_rans *self)
{
    self->rule = 0;
    memset(self->raw, 0, sizeof(self->raw));
}

/* In four places by turns: a count that was just written is slow to read. */
void bal_rans_count(bal_rans *self, const bal_source *source)
{
    bal_tile *tile = &self->tile;
    size_t n = source->count;

    for (size_t from = 0; from < n; from += BAL_TILE) {
        size_t many = n - from < BAL_TILE ? n - from : BAL_TILE;
        size_t fours = many & ~(size_t)3;
        source->fill(tile, source->self, from, many);
        for (size_t i = 0; i < fours; i += 4) {
            self->count[0][tile->symbol[i]]++;
            self->count[1][tile->symbol[i + 1]]++;
            self->count[2][tile->symbol[i + 2]]++;
            self->count[3][tile->symbol[i + 3]]++;
        }
        for (size_t i = fours; i < many; i++)
            self->count[0][tile->symbol[i]]++;
    }
}

uint64_t bal_rans_size(const bal_rans *self, size_t n)
{
    return self->bits / 8 + HEADER + 4 * lanes_of[lanes_for(n, self->bits)];
}

/* ---- writing ------------------------------------------------------------ */

/* A step for the token, and one for each piece of the longest raw part. */
static unsigned steps_of(const uint32_t *raw, const bool *used)
{
    uint32_t most = 0;

    for (size_t i = 0; i < TOKENS; i++) {
        if (used[i] && raw[i] > most)
            most = raw[i];
    }
    return 1 + (most + BAL_RANS_PIECE - 1) / BAL_RANS_PIECE;
}

static unsigned steps_written(const bal_rans *self)
{
    bool used[TOKENS] = { false };

    for (size_t i = 0; i < TABLES; i++) {
        for (size_t k = 0; k < TOKENS; k++)
            used[k] = used[k] || self->freq[i][k];
    }
    return steps_of(self->raw, used);
}

static void push_tile(bal_rans_push *out, const bal_loops *loops,
                      const bal_tile *tile, size_t n)
{
    size_t whole = n - n % out->lanes;

    if (n > whole)
        bal_rans_push_round(out, tile, whole, n - whole);
    if (out->lanes >= WIDE)
        loops->push(out, tile, whole);
    else
        bal_rans_push_rounds(out, tile, whole);
}

/* Behind each other from the end of room down; how many bytes the words are,
 * SIZE_MAX if there is not room enough. */
static size_t push_all(bal_rans *self, bal_rans_push *out,
                       const bal_loops *loops, const bal_source *source,
                       size_t room)
{
    /* and what is written below the last word */
    const size_t worst = (size_t)2 * BAL_TILE * out->steps + 16;
    size_t n = source->count;
    size_t many = n % BAL_TILE ? n % BAL_TILE : BAL_TILE;
    const uint8_t *end = out->at;

    for (size_t from = n; from > 0; many = BAL_TILE) {
        from -= many;
        if (room - (size_t)(end - out->at) < worst)
            return SIZE_MAX;
        source->fill(&self->tile, source->self, from, many);
        push_tile(out, loops, &self->tile, many);
    }
    return (size_t)(end - out->at);
}

static void put16(uint8_t *to, size_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

/* All but the words; how many bytes that is. */
static size_t put_head(uint8_t *to, const bal_rans *self,
                       const bal_rans_push *out, unsigned row)
{
    size_t tables = bal_rans_put_tables(to + HEADER, self);
    uint8_t *at = to + HEADER + tables;

    put16(to, self->starts);
    put16(to + 2, tables | (size_t)row << SIZE_BITS);
    for (size_t i = 0; i < out->lanes; i++)
        bal_put32(at + 4 * i, out->state[i]);
    return HEADER + tables + 4 * out->lanes;
}

int bal_rans_append(bal_rans *self, const bal_loops *loops, bal_buf *to,
                    const bal_source *source, size_t most, bool *gains,
                    bal_error *err)
{
    const size_t n = source->count;
    const size_t slack = (size_t)2 * BAL_TILE * MOST_STEPS + 16;
    const size_t front = HEADER + 4 * LANES + BAL_RANS_TABLES_MOST;
    const unsigned row = lanes_for(n, self->bits);
    bal_rans_push out = { .codes = &self->codes, .lanes = lanes_of[row] };

    *gains = false;
    if (bal_rans_size(self, n) > most)
        return 0;
    size_t room = (size_t)(self->bits / 8 + self->bits / 512) + slack;
    int rc = bal_buf_reserve(to, front + room, err);
    if (rc)
        return rc;
    uint8_t *start = (uint8_t *)to->data + to->len;
    out.at = start + front + room;
    out.steps = steps_written(self);
    for (size_t i = 0; i < LANES; i++)
        out.state[i] = BAL_RANS_LOW;
    size_t words = push_all(self, &out, loops, source, room);
    if (words == SIZE_MAX)
        return 0;

    size_t head = put_head(start, self, &out, row);
    if (head + words > most)
        return 0;
    memmove(start + head, out.at, words);
    to->len += head + words;
    *gains = true;
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

static int open_states(bal_rans_pull *in, bal_error *err)
{
    for (size_t i = 0; i < in->lanes; i++, in->at += 4) {
        in->state[i] = bal_get32(in->at);
        if (in->state[i] < BAL_RANS_LOW || in->state[i] >> 31)
            return bal_fail(err, BAL_ECORRUPT, "no state %zu", i);
    }
    if ((in->end - in->at) % 2)
        return bal_fail(err, BAL_ECORRUPT, "half a word");
    return 0;
}

static int open_stream(bal_rans *self, bal_rans_pull *in, bal_bytes from,
                       bal_error *err)
{
    const uint8_t *data = from.data;

    if (from.len < HEADER)
        return bal_fail(err, BAL_ECORRUPT, "a stream is cut short");
    unsigned starts = bal_get32(data) & 0xffff;
    size_t sizes = bal_get32(data) >> 16;
    size_t row = sizes >> SIZE_BITS;
    size_t lanes = lanes_of[row];
    bal_bytes tables = { data + HEADER, sizes & ((1u << SIZE_BITS) - 1) };
    if (from.len - HEADER < tables.len + 4 * lanes)
        return bal_fail(err, BAL_ECORRUPT, "a stream is cut short");
    int rc = bal_rans_get_tables(self, starts, tables, err);
    if (rc)
        return rc;
    *in = (bal_rans_pull){
        .slots = self->slots,
        .bits = self->raw,
        .rule = self->rule,
        .at = data + HEADER + tables.len,
        .end = data + from.len,
        .lanes = lanes,
        .steps = steps_of(self->raw, self->used),
    };
    return open_states(in, err);
}

static bool pull_tile(bal_rans_pull *in, const bal_loops *loops, bal_tile *tile,
                      size_t n)
{
    assert(in->lanes);
    size_t whole = n - n % in->lanes;
    size_t at = in->lanes >= WIDE ? loops->pull(in, tile, whole)
                                  : bal_rans_pull_rounds(in, tile, whole);

    for (; at < n; at += in->lanes) {
        size_t many = n - at < in->lanes ? n - at : in->lanes;
        if (!bal_rans_pull_round(in, tile, at, many))
            return false;
    }
    return true;
}

static bool at_start(const bal_rans_pull *in)
{
    for (size_t i = 0; i < in->lanes; i++) {
        if (in->state[i] != BAL_RANS_LOW)
            return false;
    }
    return in->at == in->end;
}

size_t bal_rans_none_direct(bal_rans_pull *in, const void *self, size_t n)
{
    (void)in;
    (void)self;
    (void)n;
    return 0;
}

int bal_rans_fill(bal_rans *self, const bal_loops *loops, const bal_sink *sink,
                  size_t n, bal_bytes from, bal_error *err)
{
    bal_rans_pull in = { 0 };
    int rc = open_stream(self, &in, from, err);

    if (rc)
        return rc;
    memset(self->tile.raw, 0, sizeof(self->tile.raw));
    memset(self->tile.high, 0, sizeof(self->tile.high));
    size_t at = 0;
    if (in.lanes >= WIDE)
        at = sink->direct(&in, sink->self, n - n % in.lanes);
    for (; at < n; at += BAL_TILE) {
        size_t many = n - at < BAL_TILE ? n - at : BAL_TILE;
        sink->before(&self->tile, sink->self, at, many);
        if (!pull_tile(&in, loops, &self->tile, many))
            return bal_fail(err, BAL_ECORRUPT, "words are missing");
        sink->after(&self->tile, sink->self, at, many);
    }
    if (!at_start(&in))
        return bal_fail(err, BAL_ECORRUPT,
                        "a stream does not end with its elements");
    return 0;
}
