/* Up to six symbols a table look-up: an entry is what the next 11 bits say,
 * whole codes only. Eight streams at once, because each look-up waits for the
 * one before it.
 *
 * Nothing is trusted. While a stream has 8 bytes and room for what five
 * look-ups can give, it needs no further check; the rest is decoded symbol by
 * symbol, and must end where the stream does. */
#include <endian.h>
#include <string.h>

#include "codec/coder.h"
#include "codec/huffman_work.h"
#include "core/arith.h"
#include "core/error.h"

enum {
    SYMBOLS = BAL_HUFFMAN_SYMBOLS,
    STREAMS = BAL_HUFFMAN_STREAMS,
    BITS = BAL_HUFFMAN_BITS,
    ENTRIES = 1 << BITS,
    ENTRY_SYMBOLS = 6,
    LOOKS = 5,  /* between two loads: 55 of the 56 bits a load gives at least */
    STEP = 7,   /* bytes that LOOKS look-ups use up at most */
    WINDOW = 8, /* bytes of a load, and of a store */
    MOST = LOOKS * ENTRY_SYMBOLS,
};

/* ---- the table ---------------------------------------------------------- */

/* An entry: bits used in bits 0-5, symbols in 8-15, the symbols from 16 up. */
static uint32_t entry_bits(uint64_t entry)
{
    return entry & 0x3f;
}

static uint32_t entry_symbols(uint64_t entry)
{
    return entry >> 8 & 0xff;
}

static void fill_first(uint8_t *first, const bal_huffman_code *code)
{
    for (size_t i = 0; i < SYMBOLS; i++) {
        uint32_t spare = BITS - code->length[i];
        if (code->length[i])
            memset(first + ((size_t)code->bits[i] << spare), (int)i,
                   (size_t)1 << spare);
    }
}

static uint64_t entry_of(uint32_t bits, const uint8_t *first,
                         const bal_huffman_code *code)
{
    uint32_t used = 0;
    uint64_t symbols = 0;
    uint32_t count = 0;

    while (count < ENTRY_SYMBOLS) {
        uint8_t symbol = first[bits << used & (ENTRIES - 1)];
        if (used + code->length[symbol] > BITS)
            break;
        used += code->length[symbol];
        symbols |= (uint64_t)symbol << (8 * count);
        count++;
    }
    return symbols << 16 | count << 8 | used;
}

static void fill_entries(uint64_t *entries, const bal_huffman_code *code)
{
    uint8_t first[ENTRIES];

    fill_first(first, code);
    for (uint32_t i = 0; i < ENTRIES; i++)
        entries[i] = entry_of(i, first, code);
}

/* ---- streams ------------------------------------------------------------ */

typedef struct stream {
    const uint8_t *from; /* the byte that the next bit is of */
    const uint8_t *end;
    uint32_t skip; /* bits of it that are used up */
    uint8_t *to;
    uint8_t *full;
} stream;

static uint64_t load(const uint8_t *from)
{
    uint64_t bits;

    memcpy(&bits, from, sizeof(bits));
    return be64toh(bits);
}

/* As many times as all of them can take LOOKS look-ups. */
static inline __attribute__((always_inline)) size_t
safe_rounds(const stream *streams, const uint8_t *const *from,
            uint8_t *const *to, size_t count)
{
    size_t rounds = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        size_t in = (size_t)(streams[i].end - from[i]);
        size_t out = (size_t)(streams[i].full - to[i]);
        in = in < WINDOW ? 0 : (in - WINDOW) / STEP;
        out = out < WINDOW ? 0 : (out - WINDOW) / MOST;
        in = in < out ? in : out;
        rounds = rounds < in ? rounds : in;
    }
    return rounds;
}

/* Five look-ups and a load, for each of the streams at once. A window is what
 * comes next of one, its lowest bit set: where that bit has gone says how much
 * is used up. */
static inline __attribute__((always_inline)) void
run_round(const uint8_t **from, uint8_t **to, uint64_t *window,
          const uint64_t *entries, size_t count)
{
    for (size_t look = 0; look < LOOKS; look++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t entry = entries[window[i] >> (64 - BITS)];
            uint64_t symbols = htole64(entry >> 16);
            memcpy(to[i], &symbols, sizeof(symbols));
            to[i] += entry_symbols(entry);
            window[i] <<= entry_bits(entry);
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t used = (uint32_t)__builtin_ctzll(window[i]);
        from[i] += used >> 3;
        window[i] = (load(from[i]) | 1) << (used & 7);
    }
}

static inline __attribute__((always_inline)) void
run_streams(stream *streams, const uint64_t *entries, size_t count)
{
    const uint8_t *from[STREAMS];
    uint8_t *to[STREAMS];
    uint64_t window[STREAMS];

    for (size_t i = 0; i < count; i++) {
        from[i] = streams[i].from;
        to[i] = streams[i].to;
    }
    size_t rounds = safe_rounds(streams, from, to, count);
    if (!rounds)
        return;
    for (size_t i = 0; i < count; i++)
        window[i] = (load(from[i]) | 1) << streams[i].skip;
    while (rounds) {
        for (; rounds; rounds--)
            run_round(from, to, window, entries, count);
        rounds = safe_rounds(streams, from, to, count);
    }
    for (size_t i = 0; i < count; i++) {
        streams[i].from = from[i];
        streams[i].skip = (uint32_t)__builtin_ctzll(window[i]);
        streams[i].to = to[i];
    }
}

/* The next bits of a stream, zeros behind its end. */
static uint64_t peek(const stream *self)
{
    uint8_t last[WINDOW] = { 0 };
    size_t left = (size_t)(self->end - self->from);

    if (left >= WINDOW)
        return load(self->from) << self->skip;
    if (left)
        memcpy(last, self->from, left);
    return load(last) << self->skip;
}

/* False unless the stream ends with its last symbol, padded with zeros. */
static bool end_stream(stream *self, const bal_huffman *work)
{
    while (self->to < self->full) {
        uint64_t entry = work->entries[peek(self) >> (64 - BITS)];
        uint8_t symbol = (uint8_t)(entry >> 16);
        uint32_t used = self->skip + work->code.length[symbol];
        if ((size_t)(self->end - self->from) < (used + 7) / 8)
            return false;
        self->from += used / 8;
        self->skip = used % 8;
        *self->to++ = symbol;
    }
    if (self->end - self->from != (self->skip > 0))
        return false;
    return !peek(self);
}

/* How many streams a compiler keeps in registers, or near enough. */
#ifdef __clang__
enum { AT_ONCE = 4 };
#else
enum { AT_ONCE = 8 };
#endif

__attribute__((noinline)) static void run_all(stream *streams,
                                              const uint64_t *entries)
{
    for (size_t i = 0; i < STREAMS; i += AT_ONCE)
        run_streams(streams + i, entries, AT_ONCE);
}

__attribute__((noinline)) static void run_one(stream *streams,
                                              const uint64_t *entries)
{
    run_streams(streams, entries, 1);
}

static int get_symbols(bal_huffman *work, stream *streams, bal_error *err)
{
    fill_entries(work->entries, &work->code);
    run_all(streams, work->entries);
    for (size_t i = 0; i < STREAMS; i++) {
        run_one(&streams[i], work->entries);
        if (!end_stream(&streams[i], work))
            return bal_fail(err, BAL_ECORRUPT,
                            "Huffman stream %zu does not end with its symbols",
                            i);
    }
    return 0;
}

/* ---- a plane ------------------------------------------------------------ */

static int get_code(bal_huffman_code *code, const uint8_t *from, bal_error *err)
{
    for (size_t i = 0; i < SYMBOLS / 2; i++) {
        code->length[2 * i] = from[i] & 0xf;
        code->length[2 * i + 1] = from[i] >> 4;
    }
    if (!bal_huffman_number(code))
        return bal_fail(err, BAL_ECORRUPT, "not a Huffman code");
    return 0;
}

/* Streams and patches that are exactly what the plane has. */
static int get_streams(stream *streams, bal_bytes *patches, uint8_t *to,
                       size_t len, bal_bytes plane, bal_error *err)
{
    const uint8_t *data = plane.data;
    uint64_t segment = bal_get32(data + BAL_HUFFMAN_AT_SEGMENT);
    uint64_t patch = bal_get32(data + BAL_HUFFMAN_AT_PATCHES);
    uint64_t at = BAL_HUFFMAN_HEADER;

    if (segment * (STREAMS - 1) > len)
        return bal_fail(err, BAL_ECORRUPT, "Huffman segments are too long");
    for (size_t i = 0; i < STREAMS; i++) {
        uint64_t size = bal_get32(data + BAL_HUFFMAN_AT_SIZES + 4 * i);
        if (size > plane.len - at)
            return bal_fail(err, BAL_ECORRUPT,
                            "Huffman stream %zu is cut short", i);
        uint8_t *start = to + i * segment;
        streams[i] = (stream){
            .from = data + at,
            .end = data + at + size,
            .to = start,
            .full = i < STREAMS - 1 ? start + segment : to + len,
        };
        at += size;
    }
    if (plane.len - at != patch * BAL_HUFFMAN_PATCH)
        return bal_fail(
            err, BAL_ECORRUPT, "%zu bytes behind the streams where %zu belong",
            (size_t)(plane.len - at), (size_t)(patch * BAL_HUFFMAN_PATCH));
    *patches = (bal_bytes){ data + at, plane.len - (size_t)at };
    return 0;
}

static int apply_patches(uint8_t *to, size_t len, bal_bytes patches,
                         bal_error *err)
{
    const uint8_t *from = patches.data;
    uint64_t least = 0;

    for (size_t i = 0; i < patches.len; i += BAL_HUFFMAN_PATCH) {
        uint64_t where = bal_get32(from + i);
        if (where < least || where >= len)
            return bal_fail(err, BAL_ECORRUPT, "Huffman patches out of order");
        to[where] = from[i + 4];
        least = where + 1;
    }
    return 0;
}

int bal_huffman_fill(bal_coder *coder, void *to, size_t len, bal_bytes plane,
                     bal_error *err)
{
    bal_huffman *work = bal_coder_huffman(coder);
    stream streams[STREAMS];
    bal_bytes patches = { 0 };

    if (!work)
        return bal_fail_memory(err, "Huffman tables");
    if (plane.len < BAL_HUFFMAN_HEADER)
        return bal_fail(err, BAL_ECORRUPT, "Huffman header is cut short");
    int rc = get_code(&work->code, plane.data, err);
    if (rc)
        return rc;
    rc = get_streams(streams, &patches, to, len, plane, err);
    if (rc)
        return rc;
    rc = get_symbols(work, streams, err);
    if (rc)
        return rc;
    return apply_patches(to, len, patches, err);
}
