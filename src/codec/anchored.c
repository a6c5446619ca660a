/* Numbers by their distance from a base, as integers, in the context of the
 * base's exponent: where a step of the last bit is large, tuning moves few
 * steps. Differences, which are floats, are coded as what they are differences
 * of, so cost no more than the tuned numbers themselves would.
 *
 * Payload: form u8 (kind of the base; DIFFERENCE), 0 u8, low u16, patches u32,
 * then the patches, the bytes that are no whole element, and the stream. */
#include "codec/anchored.h"

#include <assert.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"

enum {
    AT_LOW = 2,
    AT_PATCHES = 4,
    HEADER = 8,
    DIFFERENCE = 0x80,
    SAMPLES = 16384,
    EXPONENTS = 2048,
};

static size_t log2_of(size_t width)
{
    return (size_t)__builtin_ctzll(width);
}

/* The rule of raw bits for numbers of this width, as loops.inc has it. */
static unsigned rule_of(size_t width)
{
    return width == 8 ? 2 : width == 4 ? 3 : 4;
}

/* ---- measure ------------------------------------------------------------ */

void bal_measured_done(bal_measured *self)
{
    bal_recovered_done(&self->recovered);
}

static size_t element_of(const bal_grain *grain, const bal_number_row *kind)
{
    return grain->difference ? kind->wide : kind->width;
}

bool bal_anchored_fits(const bal_grain *grain, size_t len)
{
    const bal_number_row *kind = bal_number_find(grain->base_kind);

    if (!kind || !grain->base.len)
        return false;
    size_t element = element_of(grain, kind);
    if (!element || element != grain->width || len / element > UINT32_MAX)
        return false;
    if (!grain->difference)
        return grain->kind == grain->base_kind && grain->base.len == len;
    return grain->base.len == len / element * kind->width;
}

static uint32_t exponent_at(const bal_anchor *anchor, size_t i, size_t width)
{
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)anchor->base + i * width, width);
    return (uint32_t)(bal_get64(&value) >> anchor->shift) & anchor->mask;
}

/* The window of exponents that has the most of a sample; the last of equals,
 * so that none is spent on what is not there. */
static uint32_t choose_low(const bal_anchor *anchor, size_t n, size_t width)
{
    uint32_t count[EXPONENTS] = { 0 };
    size_t step = n / SAMPLES + 1;
    uint32_t inside = 0;
    uint32_t most = 0;
    uint32_t low = 0;

    for (size_t i = 0; i < n; i += step)
        count[exponent_at(anchor, i, width)]++;
    for (uint32_t e = 0; e <= anchor->mask; e++) {
        inside += count[e];
        if (e >= BAL_RANS_TABLES)
            inside -= count[e - BAL_RANS_TABLES];
        if (inside >= most && count[e]) {
            most = inside;
            low = e < BAL_RANS_TABLES ? 0 : e + 1 - BAL_RANS_TABLES;
        }
    }
    return low;
}

typedef struct fill_job {
    const bal_anchor *anchor;
    void (*fill)(bal_tile *tile, const bal_anchor *anchor, size_t from,
                 size_t n);
} fill_job;

static void fill(bal_tile *tile, const void *self, size_t from, size_t n)
{
    const fill_job *job = self;

    job->fill(tile, job->anchor, from, n);
}

/* What only the changed would take: how far apart they are, and their tokens
 * in tables that have no token of no change. */
static uint64_t sparse_size(const bal_rans *rans, size_t n)
{
    uint64_t changed = 0;
    uint64_t bits = 0;

    for (size_t i = 0; i < BAL_RANS_TABLES; i++) {
        uint32_t count[BAL_RANS_TOKENS];
        memcpy(count, rans->count[0] + i * BAL_RANS_TOKENS, sizeof(count));
        count[0] = 0;
        bits += bal_rans_cost(rans, count) >> 16;
        for (size_t k = 0; k < BAL_RANS_TOKENS; k++) {
            bits += (uint64_t)count[k] * rans->raw[k];
            changed += count[k];
        }
    }
    if (!changed)
        return 0;
    uint64_t apart = bal_rans_log(rans, n) - bal_rans_log(rans, changed);
    return (bits + (changed * (apart + (3 << 15)) >> 16)) / 8 + 64;
}

int bal_anchored_measure(bal_coder *coder, bal_measured *out, bal_bytes from,
                         const bal_grain *grain, bal_error *err)
{
    const bal_number_row *kind = bal_number_find(grain->base_kind);
    bal_rans *rans = bal_coder_rans(coder);
    int rc = 0;

    assert(kind);
    if (!rans)
        return bal_fail_memory(err, "tables");
    out->kind = kind;
    out->count = from.len / element_of(grain, kind);
    if (grain->difference)
        rc = bal_recover(coder, &out->recovered, from.data, grain->base.data,
                         out->count, kind, err);
    if (rc)
        return rc;
    out->size = out->sparse = from.len;
    if (out->recovered.hopeless)
        return 0;
    out->anchor = (bal_anchor){
        .tuned = grain->difference ? out->recovered.tuned : from.data,
        .base = grain->base.data,
        .shift = kind->shift,
        .mask = kind->mask,
    };
    out->anchor.low = choose_low(&out->anchor, out->count, kind->width);
    fill_job job = { &out->anchor,
                     coder->loops->take_apart[log2_of(kind->width)] };
    bal_rans_clear(rans);
    bal_rans_rule(rans, rule_of(kind->width));
    bal_rans_count(rans, &(bal_source){ fill, &job, out->count });
    bal_rans_fit(rans);
    out->size =
        bal_rans_size(rans, out->count) + HEADER + out->recovered.patches.len;
    out->sparse = sparse_size(rans, out->count) + out->recovered.patches.len;
    return 0;
}

/* ---- append ------------------------------------------------------------- */

static int put_head(bal_buf *to, const bal_measured *measured, bal_bytes from,
                    const bal_grain *grain, bal_error *err)
{
    const bal_buf *patches = &measured->recovered.patches;
    size_t tail = from.len % element_of(grain, measured->kind);
    uint8_t header[HEADER] = { 0 };

    bal_put32(header, (uint32_t)grain->base_kind |
                          (grain->difference ? DIFFERENCE : 0u) |
                          measured->anchor.low << 16);
    bal_put32(header + AT_PATCHES, measured->recovered.patch_count);
    int rc = bal_buf_append(to, header, sizeof(header), err);
    if (!rc)
        rc = bal_buf_append(to, patches->data, patches->len, err);
    if (!rc)
        rc = bal_buf_append(to, (const uint8_t *)from.data + (from.len - tail),
                            tail, err);
    return rc;
}

int bal_anchored_append(bal_coder *coder, bal_buf *to,
                        const bal_measured *measured, bal_bytes from,
                        const bal_grain *grain, bool *gains, bal_error *err)
{
    size_t start = to->len;

    assert(measured->kind);
    fill_job job = { &measured->anchor,
                     coder->loops->take_apart[log2_of(measured->kind->width)] };
    *gains = false;
    if (measured->size >= from.len)
        return 0;
    int rc = put_head(to, measured, from, grain, err);
    if (rc)
        return rc;
    size_t head = to->len - start;
    if (head < from.len)
        rc = bal_rans_append(coder->rans, coder->loops, to,
                             &(bal_source){ fill, &job, measured->count },
                             from.len - head - 1, gains, err);
    if (rc || !*gains)
        to->len = start;
    return rc;
}

static int anchored_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                           const bal_grain *grain, bal_effort effort,
                           bool *gains, bal_error *err)
{
    BAL_LOCAL(bal_measured) measured = { 0 };

    (void)effort;
    *gains = false;
    if (!bal_anchored_fits(grain, from.len))
        return 0;
    int rc = bal_anchored_measure(coder, &measured, from, grain, err);
    if (rc)
        return rc;
    return bal_anchored_append(coder, to, &measured, from, grain, gains, err);
}

/* ---- decode ------------------------------------------------------------- */

typedef struct payload_shape {
    const bal_number_row *kind;
    bool difference;
    size_t count;
    size_t element; /* bytes of one */
    size_t patches;
    size_t tail;
    uint32_t low;
} payload_shape;

static int get_shape(payload_shape *out, bal_bytes payload, size_t len,
                     size_t base, bal_error *err)
{
    const uint8_t *data = payload.data;

    if (payload.len < HEADER || data[1])
        return bal_fail(err, BAL_ECORRUPT, "anchored: no header");
    out->difference = data[0] & DIFFERENCE;
    out->kind = bal_number_find(data[0] & ~(unsigned)DIFFERENCE);
    if (!out->kind || (out->difference && !out->kind->wide))
        return bal_fail(err, BAL_ECORRUPT, "anchored: no kind %u", data[0]);
    out->low = bal_get32(data) >> 16;
    out->element = out->difference ? out->kind->wide : out->kind->width;
    out->count = len / out->element;
    out->tail = len % out->element;
    out->patches = bal_get32(data + AT_PATCHES);
    uint64_t head = HEADER + out->tail +
                    (uint64_t)out->patches * (BAL_PATCH_HEAD + out->element);
    if (head > payload.len || out->low > out->kind->mask)
        return bal_fail(err, BAL_ECORRUPT, "anchored: cut short");
    size_t needs = out->count * out->kind->width;
    needs += out->difference ? 0 : out->tail;
    if (base != needs)
        return bal_fail(err, BAL_ECORRUPT,
                        "a base of %zu bytes where %zu belong", base, needs);
    return 0;
}

typedef struct join_job {
    const bal_anchor *anchor;
    const bal_number_row *kind;
    const bal_loops *loops;
    uint8_t *to;
    bool difference;
} join_job;

static void before(bal_tile *tile, const void *self, size_t from, size_t n)
{
    const join_job *job = self;

    job->loops->contexts[log2_of(job->kind->width)](tile, job->anchor, from, n);
}

static void after(bal_tile *tile, const void *self, size_t from, size_t n)
{
    const join_job *job = self;
    const bal_number_row *kind = job->kind;
    const uint8_t *base = job->anchor->base;
    uint64_t tuned[BAL_TILE];
    bal_anchor here = { .base = base + from * kind->width };

    if (!job->difference) {
        job->loops->join[log2_of(kind->width)](job->to, tile, job->anchor, from,
                                               n);
        return;
    }
    job->loops->join[log2_of(kind->width)](tuned, tile, &here, 0, n);
    bal_differ(job->to + from * kind->wide, tuned, here.base, n, kind);
}

/* Elements of two bytes need no tile between. */
static size_t direct(bal_rans_pull *in, const void *self, size_t n)
{
    const join_job *job = self;
    const bal_number_row *kind = job->kind;
    const uint8_t *base = job->anchor->base;
    uint16_t tuned[BAL_TILE];
    size_t at = 0;
    size_t many = BAL_TILE;

    if (kind->width != sizeof(*tuned))
        return 0;
    if (!job->difference)
        return job->loops->pull_two(in, job->to, job->anchor, 0, n);
    for (; at < n && many == BAL_TILE; at += many) {
        many = n - at < BAL_TILE ? n - at : BAL_TILE;
        many =
            job->loops->pull_two(in, (uint8_t *)tuned, job->anchor, at, many);
        bal_differ(job->to + at * kind->wide, tuned, base + at * kind->width,
                   many, kind);
    }
    return at;
}

static int anchored_decode(bal_coder *coder, void *to, size_t len,
                           bal_bytes payload, const bal_grain *grain,
                           bal_error *err)
{
    bal_rans *rans = bal_coder_rans(coder);
    payload_shape shape = { 0 };
    int rc = get_shape(&shape, payload, len, grain->base.len, err);

    if (rc)
        return rc;
    assert(shape.kind);
    if (!rans)
        return bal_fail_memory(err, "tables");
    size_t patched = shape.patches * (BAL_PATCH_HEAD + shape.element);
    const uint8_t *data = payload.data;
    size_t head = HEADER + patched + shape.tail;
    bal_anchor anchor = { .base = grain->base.data,
                          .low = shape.low,
                          .shift = shape.kind->shift,
                          .mask = shape.kind->mask };
    join_job job = { &anchor, shape.kind, coder->loops, to, shape.difference };
    bal_rans_rule(rans, rule_of(shape.kind->width));
    bal_sink sink = { direct, before, after, &job };
    rc = bal_rans_fill(rans, coder->loops, &sink, shape.count,
                       (bal_bytes){ data + head, payload.len - head }, err);
    if (rc)
        return bal_within(err, rc, "anchored");
    if (shape.tail)
        memcpy((uint8_t *)to + len - shape.tail, data + HEADER + patched,
               shape.tail);
    return bal_patch(to, shape.count, shape.element, data + HEADER,
                     shape.patches, err);
}

const bal_codec bal_codec_anchored = {
    .name = "anchored",
    .needs_base = true,
    .encode = anchored_encode,
    .decode = anchored_decode,
};
