/* Two symbols a table look-up, four look-ups a store.
 *
 * A code is made of a sample, because counting everything would take a third of
 * the time. What the sample did not see has no code: it goes out as some other
 * symbol, and a patch at the end of the plane says what it was. Such symbols
 * are found for nothing, because their length is so large that the test for
 * "more bits than fit at once" stops at them. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "codec/coder.h"
#include "codec/huffman_work.h"
#include "core/arith.h"
#include "core/error.h"

enum {
    SYMBOLS = BAL_HUFFMAN_SYMBOLS,
    STREAMS = BAL_HUFFMAN_STREAMS,
    BITS = BAL_HUFFMAN_BITS,
    RUN = 1024, /* bytes looked at in one place */
    LEAST_SAMPLE = 65536,
    GROUP = 8,     /* symbols at a time */
    FIT = 56,      /* bits that can join the 7 that wait for a byte */
    NO_CODE = 128, /* length of what has none; 0 modulo 64 */
    SLACK = 8,     /* bytes written past the end of a stream */
};

/* ---- counting ----------------------------------------------------------- */

static void count_run(uint32_t (*count)[SYMBOLS], const uint8_t *from,
                      size_t len)
{
    size_t i = 0;

    for (; i + 4 <= len; i += 4) {
        count[0][from[i]]++;
        count[1][from[i + 1]]++;
        count[2][from[i + 2]]++;
        count[3][from[i + 3]]++;
    }
    for (; i < len; i++)
        count[0][from[i]]++;
}

/* Count every byte, or every eighth if those are enough. How many were
 * looked at. */
static size_t count_bytes(uint32_t *total, bal_bytes from, bool all)
{
    uint32_t count[4][SYMBOLS] = { 0 };
    size_t sample = (size_t)bal_max(from.len / 8, LEAST_SAMPLE);
    size_t len = from.len;
    size_t runs = 1;

    if (!all && sample < from.len / 2) {
        len = RUN;
        runs = sample / RUN;
    }
    for (size_t i = 0; i < runs; i++)
        count_run(count, (const uint8_t *)from.data + i * (from.len / runs),
                  len);
    for (size_t i = 0; i < SYMBOLS; i++)
        total[i] = count[0][i] + count[1][i] + count[2][i] + count[3][i];
    return runs * len;
}

/* ---- the table ---------------------------------------------------------- */

static size_t list_used(uint8_t *used, const bal_huffman_code *code)
{
    size_t count = 0;

    for (size_t i = 0; i < SYMBOLS; i++) {
        if (code->length[i])
            used[count++] = (uint8_t)i;
    }
    return count;
}

/* Most planes use few of the pairs: those of the one before are taken back,
 * instead of all being set each time. */
static void clear_pairs(bal_huffman *self)
{
    for (size_t i = 0; !self->used_count && i < BAL_HUFFMAN_PAIRS; i++)
        self->pairs[i] = NO_CODE;
    for (size_t i = 0; i < self->used_count; i++) {
        for (size_t k = 0; k < self->used_count; k++)
            self->pairs[self->used[i] * SYMBOLS + self->used[k]] = NO_CODE;
    }
}

/* What two symbols become together: up to 22 bits from the top down, and their
 * number in the lowest byte. */
static void fill_pairs(bal_huffman *self)
{
    const bal_huffman_code *code = &self->code;

    clear_pairs(self);
    self->used_count = list_used(self->used, code);
    for (size_t i = 0; i < self->used_count; i++) {
        uint8_t second = self->used[i];
        for (size_t k = 0; k < self->used_count; k++) {
            uint8_t first = self->used[k];
            uint64_t both = (uint64_t)code->bits[first] << code->length[second];
            uint32_t length =
                (uint32_t)code->length[first] + code->length[second];
            both = (both | code->bits[second]) << (64 - length);
            self->pairs[second * SYMBOLS + first] = both | length;
        }
    }
}

/* ---- one stream --------------------------------------------------------- */

/* Bits on their way out: the highest `bits` of acc, fewer than 8 between calls;
 * those below are 0. The first bit out is the highest of its byte. */
typedef struct writer {
    uint8_t *to;
    uint64_t acc;
    uint32_t bits;
} writer;

/* The highest count of `bits`, up to FIT; those below are 0. */
static inline writer put_bits(writer out, uint64_t bits, uint32_t count)
{
    out.acc |= bits >> out.bits;
    out.bits += count;
    uint64_t store = htobe64(out.acc);
    memcpy(out.to, &store, sizeof(store));
    out.to += out.bits >> 3;
    out.acc <<= out.bits & 56;
    out.bits &= 7;
    return out;
}

/* Where a plane's symbols that have no code go. */
static void add_patch(bal_huffman *self, const uint8_t *at)
{
    if (self->patches < BAL_HUFFMAN_PATCHES) {
        self->where[self->patches] = (uint32_t)(at - self->plane);
        self->what[self->patches] = *at;
    }
    self->patches++;
}

__attribute__((noinline)) static writer
put_singly(writer out, bal_huffman *self, const uint8_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t symbol = from[i];
        if (!self->code.length[symbol]) {
            add_patch(self, from + i);
            symbol = self->common;
        }
        uint32_t length = self->code.length[symbol];
        out = put_bits(out, (uint64_t)self->code.bits[symbol] << (64 - length),
                       length);
    }
    return out;
}

/* Eight symbols at a time. `few`: that they fit at once is the rule. Sums of
 * entries have sums of lengths in their lower half, and shifts look at the
 * lowest six bits of a length alone: an entry needs no taking apart. */
static inline __attribute__((always_inline)) writer
put_groups(writer out, bal_huffman *self, const uint8_t *from, size_t count,
           bool few)
{
    const uint64_t *pairs = self->pairs;
    const uint64_t code = ~(uint64_t)0xff;

    for (size_t i = 0; i < count; i += GROUP) {
        uint64_t eight;
        memcpy(&eight, from + i, sizeof(eight));
        eight = le64toh(eight);
        uint64_t e0 = pairs[eight & 0xffff];
        uint64_t e1 = pairs[eight >> 16 & 0xffff];
        uint64_t e2 = pairs[eight >> 32 & 0xffff];
        uint64_t e3 = pairs[eight >> 48];
        uint64_t c01 = e0 | e1 >> (e0 & 63);
        uint64_t c23 = e2 | e3 >> (e2 & 63);
        uint32_t l01 = (uint32_t)(e0 + e1);
        uint32_t l23 = (uint32_t)(e2 + e3);
        if (few && __builtin_expect(l01 + l23 <= FIT, 1)) {
            uint64_t all = c01 | c23 >> (l01 & 63);
            out = put_bits(out, all & code, l01 + l23);
        } else if (__builtin_expect(l01 + l23 < NO_CODE, 1)) {
            out = put_bits(out, c01 & code, l01);
            out = put_bits(out, c23 & code, l23);
        } else {
            out = put_singly(out, self, from + i, GROUP);
        }
    }
    return out;
}

__attribute__((noinline)) static writer
put_few(writer out, bal_huffman *self, const uint8_t *from, size_t count)
{
    return put_groups(out, self, from, count, true);
}

__attribute__((noinline)) static writer
put_many(writer out, bal_huffman *self, const uint8_t *from, size_t count)
{
    return put_groups(out, self, from, count, false);
}

/* Behind `to`; how many bytes it took. */
static size_t put_stream(uint8_t *to, bal_huffman *self, const uint8_t *from,
                         size_t count)
{
    size_t whole = count / GROUP * GROUP;
    writer out = { .to = to };

    out = self->few ? put_few(out, self, from, whole)
                    : put_many(out, self, from, whole);
    out = put_singly(out, self, from + whole, count - whole);
    return (size_t)(out.to - to) + (out.bits > 0);
}

/* ---- a plane ------------------------------------------------------------ */

/* Of the code for these counts: bits that a plane of len takes, about. */
static uint64_t prepare(bal_huffman *self, const uint32_t *count, size_t sample,
                        size_t len)
{
    uint64_t bits = 0;
    uint32_t most = 0;

    bal_huffman_lengths(self->code.length, count);
    for (size_t i = 0; i < SYMBOLS; i++) {
        bits += (uint64_t)count[i] * self->code.length[i];
        if (count[i] > most)
            self->common = (uint8_t)i;
        most = count[i] > most ? count[i] : most;
    }
    self->few = bits * GROUP < (uint64_t)sample * (FIT - 8);
    self->patches = 0;
    return (bits << 12) / sample * len >> 12;
}

/* Streams that start a multiple of 4096 apart get in each other's way in a
 * reader's cache. */
static size_t segment_of(size_t len)
{
    size_t even = len / STREAMS;

    return even < 4096 ? even : (even & ~(size_t)127) - 64;
}

static void put_header(uint8_t *to, const bal_huffman *self, size_t segment)
{
    for (size_t i = 0; i < SYMBOLS / 2; i++)
        to[i] = (uint8_t)(self->code.length[2 * i] |
                          self->code.length[2 * i + 1] << 4);
    bal_put32(to + BAL_HUFFMAN_AT_SEGMENT, (uint32_t)segment);
    bal_put32(to + BAL_HUFFMAN_AT_PATCHES, self->patches);
}

static uint8_t *put_patches(uint8_t *to, const bal_huffman *self)
{
    for (size_t i = 0; i < self->patches; i++, to += BAL_HUFFMAN_PATCH) {
        bal_put32(to, self->where[i]);
        to[4] = self->what[i];
    }
    return to;
}

static size_t most_patches(size_t len)
{
    return (size_t)bal_min(len / 1024, BAL_HUFFMAN_PATCHES);
}

/* What a plane can take at the very most, with what is written past it. */
static size_t room_for(size_t len)
{
    return BAL_HUFFMAN_HEADER + len / 8 * BITS + BITS + STREAMS + SLACK +
           most_patches(len) * BAL_HUFFMAN_PATCH;
}

/* To room_for() bytes. How many it took; 0: more patches than are worth it. */
static size_t put_plane(uint8_t *to, bal_huffman *self, bal_bytes from)
{
    size_t segment = segment_of(from.len);
    uint8_t *at = to + BAL_HUFFMAN_HEADER;

    self->plane = from.data;
    for (size_t i = 0; i < STREAMS; i++) {
        size_t start = i * segment;
        size_t count = i < STREAMS - 1 ? segment : from.len - start;
        size_t size = put_stream(at, self, self->plane + start, count);
        bal_put32(to + BAL_HUFFMAN_AT_SIZES + 4 * i, (uint32_t)size);
        at += size;
    }
    if (self->patches > most_patches(from.len))
        return 0;
    put_header(to, self, segment);
    return (size_t)(put_patches(at, self) - to);
}

/* By a code from a sample or from all; *size is 0 if there is nothing to gain,
 * or a sample is not enough. */
static bool try_plane(uint8_t *to, bal_huffman *self, bal_bytes from,
                      size_t most, bool all, size_t *size)
{
    uint32_t count[SYMBOLS];
    size_t sample = count_bytes(count, from, all);
    size_t used = 0;

    for (size_t i = 0; i < SYMBOLS; i++)
        used += count[i] > 0;
    *size = 0;
    if (used < 2)
        return sample == from.len;
    uint64_t bits = prepare(self, count, sample, from.len);
    if (bits / 8 + BAL_HUFFMAN_HEADER > most + most / 64)
        return true;
    if (!bal_huffman_number(&self->code))
        return true;
    fill_pairs(self);
    *size = put_plane(to, self, from);
    return *size != 0;
}

int bal_huffman_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                       size_t most, bool *gains, bal_error *err)
{
    bal_huffman *self = bal_coder_huffman(coder);
    size_t size = 0;

    *gains = false;
    if (!self)
        return bal_fail_memory(err, "Huffman tables");
    if (most <= BAL_HUFFMAN_HEADER || from.len > UINT32_MAX)
        return 0;
    int rc = bal_buf_reserve(to, room_for(from.len), err);
    if (rc)
        return rc;
    uint8_t *at = (uint8_t *)to->data + to->len;
    if (!try_plane(at, self, from, most, false, &size))
        (void)try_plane(at, self, from, most, true, &size);
    *gains = size && size <= most;
    to->len += *gains ? size : 0;
    return 0;
}
