/* Few elements that are not what they would be expected to be: the base's, or
 * one value. How far apart they are goes through the coder of rans.c, which
 * takes to what is spread and to what comes in runs alike; what they are is a
 * payload of another codec, with the base's elements at their places.
 *
 * Payload: form u8 (1: of the base; 0: of one value), width u8, codec u8, 0 u8,
 * changed u32, gaps u32 (bytes), the value (form 0), the bytes that are no
 * whole element, the gaps' stream, the payload of what changed. */
#include <string.h>

#include "codec/anchored.h"
#include "codec/choose.h"
#include "core/arith.h"
#include "core/error.h"

enum {
    OF_BASE = 1,
    AT_WIDTH = 1,
    AT_CODEC = 2,
    AT_CHANGED = 4,
    AT_GAPS = 8,
    HEADER = 12,
    WIDEST = 8,
    SAMPLES = 4096,
    VOTERS = 64,
    LEAST_SHARE = 8, /* one of as many may have changed */
    LEAST_ROOM = 64, /* of the gaps' stream */
    SUB = 2,         /* of gaps' tokens, as in loops.inc */
};

static bool is_width(unsigned width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

/* ---- what is expected --------------------------------------------------- */

typedef struct expectation {
    const uint8_t *base; /* NULL: value, always */
    uint8_t value[WIDEST];
    size_t width;
} expectation;

static const uint8_t *expected_at(const expectation *self, size_t i)
{
    return self->base ? self->base + i * self->width : self->value;
}

static bool is_expected(const expectation *self, const uint8_t *from, size_t i)
{
    return !memcmp(from + i * self->width, expected_at(self, i), self->width);
}

/* The value that most of a few are, if there is one (Boyer and Moore). */
static void vote(expectation *self, const uint8_t *from, size_t n)
{
    size_t step = n / VOTERS + 1;
    size_t lead = 0;

    for (size_t i = 0; i < n; i += step) {
        const uint8_t *at = from + i * self->width;
        if (!lead)
            memcpy(self->value, at, self->width);
        if (memcmp(self->value, at, self->width) != 0)
            lead--;
        else
            lead++;
    }
}

static expectation expect(bal_bytes from, const bal_grain *grain)
{
    expectation out = { .width = grain->width };

    if (!grain->difference && grain->base.data && grain->base.len == from.len)
        out.base = grain->base.data;
    else
        vote(&out, from.data, from.len / grain->width);
    return out;
}

bool bal_sparse_based(bal_bytes payload)
{
    const uint8_t *data = payload.data;

    return payload.len >= HEADER &&
           (data[0] == OF_BASE || data[AT_CODEC] == BAL_CODEC_ANCHORED);
}

bool bal_sparse_guess(uint64_t *size, bal_bytes from, const bal_grain *grain)
{
    expectation expected = expect(from, grain);
    size_t n = from.len / grain->width;
    size_t step = n / SAMPLES + 1;
    uint64_t seen = 0;
    uint64_t changed = 0;

    for (size_t i = 0; i < n; i += step, seen++)
        changed += !is_expected(&expected, from.data, i);
    /* a byte more than its width for each: how far it is from the last */
    *size = changed * step * (grain->width + 1u) + HEADER + WIDEST;
    return changed * LEAST_SHARE < seen;
}

/* ---- what changed ------------------------------------------------------- */

typedef struct changes {
    uint8_t *elements;
    uint8_t *base; /* NULL: no base */
    uint8_t *gaps; /* u32 in the machine's order */
    size_t base_width;
    size_t count;
    size_t most;
} changes;

static bool make_rooms(bal_coder *coder, changes *out, size_t width)
{
    out->gaps = bal_coder_room(coder, BAL_ROOM_GAPS, 4 * out->most);
    out->elements = bal_coder_room(coder, BAL_ROOM_FEW, width * out->most);
    if (out->base_width)
        out->base = bal_coder_room(coder, BAL_ROOM_FEW_BASE,
                                   out->base_width * out->most);
    return out->gaps && out->elements && (out->base || !out->base_width);
}

/* How many from i on are as expected, in steps that are quick; the rest is for
 * the caller to find. */
static size_t skip_same(const expectation *self, const uint8_t *from, size_t i,
                        size_t n)
{
    enum { STEP = 64 };
    size_t start = i;

    while (self->base && n - i >= STEP &&
           !memcmp(from + i * self->width, self->base + i * self->width,
                   STEP * self->width))
        i += STEP;
    return i - start;
}

/* False: too many. */
static bool collect(changes *out, const expectation *expected,
                    const uint8_t *from, const uint8_t *base, size_t n)
{
    size_t width = expected->width;
    size_t next = 0;

    for (size_t i = 0; i < n; i++) {
        i += skip_same(expected, from, i, n);
        if (i == n || is_expected(expected, from, i))
            continue;
        if (out->count == out->most)
            return false;
        uint32_t gap = (uint32_t)(i - next);
        memcpy(out->gaps + 4 * out->count, &gap, sizeof(gap));
        memcpy(out->elements + width * out->count, from + width * i, width);
        if (out->base)
            memcpy(out->base + out->base_width * out->count,
                   base + out->base_width * i, out->base_width);
        out->count++;
        next = i + 1;
    }
    return true;
}

static void fill_gaps(bal_tile *tile, const void *self, size_t from, size_t n)
{
    const uint8_t *gaps = self;

    for (size_t i = 0; i < n; i++) {
        uint32_t gap;
        memcpy(&gap, gaps + 4 * (from + i), sizeof(gap));
        uint32_t length = 31 - (uint32_t)__builtin_clz(gap | 1);
        uint32_t k = length > SUB ? length - SUB : 0;
        tile->symbol[i] = (uint16_t)((k << SUB) + (gap >> k));
        tile->bits[i] = (uint8_t)k;
        tile->raw[i] = gap & ((1u << k) - 1);
    }
}

/* ---- encode ------------------------------------------------------------- */

static int put_gaps(bal_coder *coder, bal_buf *to, const changes *few,
                    size_t most, bool *gains, bal_error *err)
{
    bal_rans *rans = bal_coder_rans(coder);
    bal_source source = { fill_gaps, few->gaps, few->count };

    if (!rans)
        return bal_fail_memory(err, "tables");
    bal_rans_clear(rans);
    bal_rans_rule(rans, SUB);
    bal_rans_count(rans, &source);
    bal_rans_fit(rans);
    return bal_rans_append(rans, coder->loops, to, &source, most, gains, err);
}

/* Few are not worth a choice of effort. */
static int put_values(bal_coder *coder, bal_buf *to, const changes *few,
                      const bal_grain *grain, bal_codec_id *used,
                      bal_error *err)
{
    const bal_effort effort = BAL_EFFORT_AUTO;
    bal_grain inner = *grain;
    bal_bytes from = { few->elements, few->count * grain->width };
    bool gains = false;

    inner.base =
        (bal_bytes){ few->base, few->base ? few->count * few->base_width : 0 };
    *used = BAL_CODEC_ANCHORED;
    int rc =
        bal_codec_anchored.encode(coder, to, from, &inner, effort, &gains, err);
    if (rc || gains)
        return rc;
    *used = bal_guess_plain(coder, from, &inner).id;
    if (*used == BAL_CODEC_TRIMMED || *used == BAL_CODEC_TURNED)
        rc = bal_codec_find(*used)->encode(coder, to, from, &inner, effort,
                                           &gains, err);
    if (rc || gains)
        return rc;
    *used = BAL_CODEC_RAW;
    return bal_buf_append(to, from.data, from.len, err);
}

static int put_head(bal_buf *to, const expectation *expected,
                    const changes *few, bal_bytes from, bal_error *err)
{
    uint8_t header[HEADER] = { expected->base ? OF_BASE : 0,
                               (uint8_t)expected->width };
    size_t tail = from.len % expected->width;

    bal_put32(header + AT_CHANGED, (uint32_t)few->count);
    int rc = bal_buf_append(to, header, sizeof(header), err);
    if (!rc && !expected->base)
        rc = bal_buf_append(to, expected->value, expected->width, err);
    if (!rc)
        rc = bal_buf_append(to, (const uint8_t *)from.data + (from.len - tail),
                            tail, err);
    return rc;
}

/* Behind the head, which starts at `start` and is completed. */
static int put_changed(bal_coder *coder, bal_buf *to, size_t start,
                       const changes *few, const bal_grain *grain, bool *gains,
                       bal_error *err)
{
    size_t before = to->len;
    size_t most = few->count * (grain->width + 4u);
    bal_codec_id used = BAL_CODEC_RAW;

    *gains = true;
    if (!few->count)
        return 0;
    int rc = put_gaps(coder, to, few, most + LEAST_ROOM, gains, err);
    if (rc || !*gains)
        return rc;
    bal_put32(to->data + start + AT_GAPS, (uint32_t)(to->len - before));
    rc = put_values(coder, to, few, grain, &used, err);
    to->data[start + AT_CODEC] = (char)used;
    return rc;
}

int bal_sparse_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                      const bal_grain *grain, bool *gains, bal_error *err)
{
    size_t n = from.len / grain->width;
    size_t start = to->len;
    expectation expected = expect(from, grain);
    changes few = { .most = n / LEAST_SHARE + 1 };

    *gains = false;
    if (n > UINT32_MAX)
        return 0;
    if (bal_anchored_fits(grain, from.len))
        few.base_width = bal_number_find(grain->base_kind)->width;
    if (!make_rooms(coder, &few, grain->width))
        return bal_fail_memory(err, "what changed");
    if (!collect(&few, &expected, from.data, grain->base.data, n))
        return 0;
    int rc = put_head(to, &expected, &few, from, err);
    if (!rc)
        rc = put_changed(coder, to, start, &few, grain, gains, err);
    *gains = !rc && *gains && to->len - start < from.len;
    if (!*gains)
        to->len = start;
    return rc;
}

static int sparse_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                         const bal_grain *grain, bal_effort effort, bool *gains,
                         bal_error *err)
{
    (void)effort;
    *gains = false;
    if (!is_width(grain->width) || from.len < grain->width)
        return 0;
    return bal_sparse_append(coder, to, from, grain, gains, err);
}

/* ---- decode ------------------------------------------------------------- */

typedef struct payload_parts {
    expectation expected;
    bal_codec_id codec;
    size_t n;
    size_t changed;
    const uint8_t *tail;
    size_t tail_len;
    bal_bytes gaps;
    bal_bytes values;
} payload_parts;

static int get_layout(payload_parts *out, bal_bytes payload, size_t len,
                      const bal_grain *grain, bal_error *err)
{
    const uint8_t *data = payload.data;

    if (payload.len < HEADER || data[0] > OF_BASE || data[3] ||
        !is_width(data[AT_WIDTH]))
        return bal_fail(err, BAL_ECORRUPT, "sparse: no header");
    bool of_base = data[0] == OF_BASE;
    size_t width = data[AT_WIDTH];
    size_t gaps = bal_get32(data + AT_GAPS);
    *out = (payload_parts){ .codec = (bal_codec_id)data[AT_CODEC],
                            .n = len / width,
                            .changed = bal_get32(data + AT_CHANGED),
                            .tail_len = len % width };
    out->expected.width = width;
    size_t head = HEADER + (of_base ? 0 : width) + out->tail_len;
    if (payload.len < head || payload.len - head < gaps)
        return bal_fail(err, BAL_ECORRUPT, "sparse: cut short");
    if (of_base && (grain->base.len != len || !grain->base.data))
        return bal_fail(err, BAL_ECORRUPT,
                        "a base of %zu bytes where %zu belong", grain->base.len,
                        len);
    if (out->changed > out->n / LEAST_SHARE + 1)
        return bal_fail(err, BAL_ECORRUPT, "sparse: %zu of %zu changed",
                        out->changed, out->n);
    if (of_base)
        out->expected.base = grain->base.data;
    else
        memcpy(out->expected.value, data + HEADER, width);
    out->tail = data + head - out->tail_len;
    out->gaps = (bal_bytes){ data + head, gaps };
    out->values = (bal_bytes){ data + head + gaps, payload.len - head - gaps };
    return 0;
}

static void no_contexts(bal_tile *tile, const void *self, size_t from, size_t n)
{
    (void)self;
    (void)from;
    memset(tile->table, 0, n);
}

static void take_gaps(bal_tile *tile, const void *self, size_t from, size_t n)
{
    uint8_t *gaps = *(uint8_t *const *)self;

    for (size_t i = 0; i < n; i++) {
        uint32_t m = tile->token[i];
        uint32_t q = m >> SUB;
        uint32_t k = q > 1 ? q - 1 : 0;
        k = k < 31 ? k : 31;
        uint32_t gap = ((m - (k << SUB)) << k) + tile->raw[i];
        memcpy(gaps + 4 * (from + i), &gap, sizeof(gap));
    }
}

/* Places instead of gaps. */
static int add_gaps(uint8_t *gaps, size_t count, size_t n, bal_error *err)
{
    uint64_t next = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t gap;
        memcpy(&gap, gaps + 4 * i, sizeof(gap));
        next += gap;
        if (next >= n)
            return bal_fail(err, BAL_ECORRUPT, "sparse: a change has no place");
        gap = (uint32_t)next++;
        memcpy(gaps + 4 * i, &gap, sizeof(gap));
    }
    return 0;
}

static int get_places(bal_coder *coder, const changes *few,
                      const payload_parts *layout, bal_error *err)
{
    bal_rans *rans = bal_coder_rans(coder);
    bal_sink sink = { bal_rans_none_direct, no_contexts, take_gaps,
                      &few->gaps };

    if (!rans)
        return bal_fail_memory(err, "tables");
    bal_rans_rule(rans, SUB);
    int rc =
        bal_rans_fill(rans, coder->loops, &sink, few->count, layout->gaps, err);
    if (rc)
        return bal_within(err, rc, "sparse");
    return add_gaps(few->gaps, few->count, layout->n, err);
}

static size_t place_of(const changes *few, size_t i)
{
    uint32_t place;

    memcpy(&place, few->gaps + 4 * i, sizeof(place));
    return place;
}

static int get_values(bal_coder *coder, const changes *few,
                      const payload_parts *layout, const bal_grain *grain,
                      bal_error *err)
{
    size_t width = layout->expected.width;
    const uint8_t *base = grain->base.data;
    bal_grain inner = { .width = (uint8_t)width };

    if (layout->codec != BAL_CODEC_ANCHORED &&
        layout->codec != BAL_CODEC_TRIMMED &&
        layout->codec != BAL_CODEC_TURNED && layout->codec != BAL_CODEC_RAW)
        return bal_fail(err, BAL_ECORRUPT, "sparse: values of codec %u",
                        layout->codec);
    for (size_t i = 0; base && few->base && i < few->count; i++)
        memcpy(few->base + few->base_width * i,
               base + few->base_width * place_of(few, i), few->base_width);
    inner.base =
        (bal_bytes){ few->base, few->base ? few->count * few->base_width : 0 };
    return bal_codec_find(layout->codec)
        ->decode(coder, few->elements, few->count * width, layout->values,
                 &inner, err);
}

static void lay_out(uint8_t *to, const payload_parts *layout)
{
    size_t width = layout->expected.width;
    size_t whole = layout->n * width;

    if (layout->expected.base) {
        memcpy(to, layout->expected.base, whole);
    } else if (whole) {
        memcpy(to, layout->expected.value, width);
        for (size_t done = width; done < whole;) {
            size_t more = done < whole - done ? done : whole - done;
            memcpy(to + done, to, more);
            done += more;
        }
    }
    if (layout->tail_len && layout->tail)
        memcpy(to + whole, layout->tail, layout->tail_len);
}

/* Bytes of a base's element, if values need one; 0: there is none that fits. */
static size_t base_width_of(const payload_parts *layout, const bal_grain *grain)
{
    if (layout->codec != BAL_CODEC_ANCHORED || !layout->n || !grain->base.data)
        return 0;
    size_t width = grain->base.len / layout->n;
    return is_width((unsigned)width) ? width : 0;
}

static int sparse_decode(bal_coder *coder, void *to, size_t len,
                         bal_bytes payload, const bal_grain *grain,
                         bal_error *err)
{
    payload_parts layout = { 0 };
    int rc = get_layout(&layout, payload, len, grain, err);

    if (rc)
        return rc;
    lay_out(to, &layout);
    if (!layout.changed) {
        if (layout.gaps.len || layout.values.len)
            return bal_fail(err, BAL_ECORRUPT, "sparse: bytes behind nothing");
        return 0;
    }
    changes few = { .count = layout.changed,
                    .most = layout.changed,
                    .base_width = base_width_of(&layout, grain) };
    if (!make_rooms(coder, &few, layout.expected.width))
        return bal_fail_memory(err, "what changed");
    rc = get_places(coder, &few, &layout, err);
    if (!rc)
        rc = get_values(coder, &few, &layout, grain, err);
    for (size_t i = 0; !rc && i < few.count; i++)
        memcpy((uint8_t *)to + layout.expected.width * place_of(&few, i),
               few.elements + layout.expected.width * i, layout.expected.width);
    return rc;
}

const bal_codec bal_codec_sparse = {
    .name = "sparse",
    .encode = sparse_encode,
    .decode = sparse_decode,
};
