/* Codecs of numbers, with a base: bytes as a payload of each, and as elements
 * that must survive a round trip. The head: codec, width, logical length (2),
 * kind and base kind (3 bits each) and difference (the highest), length of the
 * base (2), which comes first. */
#include <stdlib.h>
#include <string.h>

#include "codec/coder.h"
#include "codec/numbers.h"
#include "support/fuzz.h"

enum { HEAD = 7, MOST = 1 << 16 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void *copy_of(const void *data, size_t len)
{
    void *copy = malloc(len ? len : 1);

    require(copy != NULL);
    if (len)
        memcpy(copy, data, len);
    return copy;
}

/* Once with each table of loops, which must agree. */
static void decode(bal_coder *coder, const uint8_t *head, bal_bytes payload,
                   bal_bytes base)
{
    size_t len = (size_t)head[2] | (size_t)head[3] << 8;
    bal_grain grain = { .width = head[1], .base = base };
    uint8_t *first = calloc(len + 1, 1);
    uint8_t *to = calloc(len + 1, 1);

    require(first && to);
    coder->loops = &bal_loops_base;
    int want = bal_decode(coder, head[0], first, len, payload, &grain, NULL);
    require(!want || want == BAL_ECORRUPT || want == BAL_EUNSUPPORTED ||
            want == BAL_EINVAL);
    for (size_t i = 1; i < bal_loops_count(); i++) {
        if (!bal_loops_at(i))
            continue;
        coder->loops = bal_loops_at(i);
        int rc = bal_decode(coder, head[0], to, len, payload, &grain, NULL);
        require(rc == want && (rc || !memcmp(to, first, len)));
    }
    free(first);
    free(to);
}

static void there_and_back(bal_coder *coder, const bal_grain *grain,
                           bal_bytes from)
{
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_codec_id used = BAL_CODEC_RAW;
    uint8_t *back = copy_of(from.data, from.len);

    memset(back, 0, from.len);
    require(
        !bal_encode(coder, &used, &packed, from, grain, BAL_EFFORT_AUTO, NULL));
    bal_bytes payload = { packed.data, packed.len };
    if (used == BAL_CODEC_RAW)
        payload = from;
    require(payload.len <= from.len);
    require(!bal_decode(coder, used, back, from.len, payload, grain, NULL));
    require(!from.len || !memcmp(back, from.data, from.len));
    free(back);
}

/* The bytes again and again, so that there is something to gain. */
static void repeat(uint8_t *to, size_t len, bal_bytes from)
{
    for (size_t i = 0; i < len; i++)
        to[i] = ((const uint8_t *)from.data)[i % from.len];
}

static void round_trip(bal_coder *coder, const uint8_t *head, bal_bytes rest)
{
    bal_number base_kind = (bal_number)(head[4] >> 3 & 7);
    const bal_number_row *row = bal_number_find(base_kind);
    bool difference = head[4] & 0x80;
    size_t n = ((size_t)head[2] | (size_t)head[3] << 8) / 8;
    size_t width = row ? row->width : 1;
    size_t wide = row && difference && row->wide ? row->wide : width;
    uint8_t *base = malloc(n * width + 1);
    uint8_t *tuned = malloc(n * wide + 1);

    require(base && tuned);
    repeat(base, n * width, rest);
    rest.len -= rest.len / 3;
    repeat(tuned, n * wide, rest);
    bal_grain grain = { .width = (uint8_t)wide,
                        .difference = wide != width || difference,
                        .kind =
                            difference ? (bal_number)(head[4] & 7) : base_kind,
                        .base_kind = base_kind,
                        .base = { base, n * width } };
    there_and_back(coder, &grain, (bal_bytes){ tuned, n * wide });
    free(base);
    free(tuned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_coder) coder = NULL;

    if (size <= HEAD || size > MOST || bal_coder_new(&coder, NULL))
        return 0;
    size_t base = (size_t)data[5] | (size_t)data[6] << 8;
    size_t rest = size - HEAD;
    base = base < rest ? base : rest;
    uint8_t *payload = copy_of(data + HEAD + base, rest - base);
    decode(coder, data, (bal_bytes){ payload, rest - base },
           (bal_bytes){ data + HEAD, base });
    free(payload);
    round_trip(coder, data, (bal_bytes){ data + HEAD, rest });
    return 0;
}
