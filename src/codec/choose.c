/* The choice between the codecs: by what the bytes are, by one count of them
 * where there is a base, and by samples where there is none; trying every codec
 * would cost more than it gains.
 *
 * Where nothing is known of an element but its width, its byte planes are
 * coded. */
#include "codec/choose.h"

#include <string.h>

#include "codec/anchored.h"
#include "codec/trimmed.h"
#include "core/arith.h"
#include "core/error.h"

enum { SAMPLES = 4096, BYTES = 256, WIDEST = 8, PLANE = 24 };

/* By the width of an element: numbers of more than a byte have planes worth
 * telling apart. */
static const uint8_t by_width[] = {
    [0] = BAL_CODEC_ZSTD,  [1] = BAL_CODEC_ZSTD,  [2] = BAL_CODEC_SPLIT,
    [4] = BAL_CODEC_SPLIT, [8] = BAL_CODEC_SPLIT,
};

static bal_codec_id planes_for(const bal_grain *grain)
{
    const bal_number_row *kind = bal_number_find(grain->kind);

    if (kind && kind->turn && kind->width == grain->width)
        return BAL_CODEC_TURNED;
    return grain->width < sizeof(by_width)
               ? (bal_codec_id)by_width[grain->width]
               : BAL_CODEC_RAW;
}

static uint64_t turned(uint64_t value, unsigned bits, unsigned by)
{
    return by ? value << by | value >> (bits - by) : value;
}

/* What the planes would take if each byte took its entropy. */
static uint64_t planes_size(bal_coder *coder, bal_bytes from,
                            const bal_grain *grain)
{
    const bal_number_row *kind = bal_number_find(grain->kind);
    const bal_rans *rans = bal_coder_rans(coder);
    unsigned width = grain->width;
    unsigned by = kind && kind->width == width ? kind->turn : 0;
    size_t n = from.len / width;
    size_t step = n / SAMPLES + 1;
    uint32_t count[WIDEST][BYTES] = { { 0 } };
    uint64_t bits = 0;

    if (!rans)
        return from.len;
    for (size_t i = 0; i < n; i += step) {
        uint8_t bytes[WIDEST] = { 0 };
        memcpy(bytes, (const uint8_t *)from.data + i * width, width);
        uint64_t value = turned(bal_get64(bytes), 8 * width, by);
        for (unsigned p = 0; p < width; p++)
            count[p][value >> (8 * p) & 0xff]++;
    }
    for (unsigned p = 0; p < width; p++)
        bits += bal_rans_cost(rans, count[p]) >> 16;
    return bits * step / 8 + (uint64_t)width * PLANE;
}

static bool is_width(unsigned width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

bal_guess bal_guess_plain(bal_coder *coder, bal_bytes from,
                          const bal_grain *grain)
{
    bal_guess guess = { planes_for(grain), from.len };

    if (grain->kind == BAL_NUMBER_BYTES || !is_width(grain->width))
        return guess;
    guess.size = planes_size(coder, from, grain);
    if (grain->kind != BAL_NUMBER_F32 || grain->width != 4)
        return guess;
    uint64_t trimmed = bal_trimmed_guess(coder, from, SAMPLES);
    if (trimmed < guess.size - guess.size / 32)
        guess = (bal_guess){ BAL_CODEC_TRIMMED, trimmed };
    return guess;
}

/* ---- what is tried, the best first -------------------------------------- */

typedef struct trial {
    bal_coder *coder;
    bal_buf *to;
    bal_bytes from;
    const bal_grain *grain;
    bal_effort effort;
    bal_codec_id used; /* RAW: nothing gained yet */
} trial;

static int try_codec(trial *self, bal_codec_id id, bal_error *err)
{
    bool gains = false;
    int rc = bal_codec_find(id)->encode(self->coder, self->to, self->from,
                                        self->grain, self->effort, &gains, err);

    if (!rc && gains)
        self->used = id;
    return rc;
}

/* Fails to gain if the base is of no use. What is sparse is measured again if
 * it was not after all. */
static int try_base(trial *self, uint64_t plain, bal_error *err)
{
    BAL_LOCAL(bal_measured) measured = { 0 };
    bool gains = false;
    int rc = bal_anchored_measure(self->coder, &measured, self->from,
                                  self->grain, err);

    if (rc || (measured.size >= plain && measured.sparse >= plain))
        return rc;
    if (measured.sparse < measured.size) {
        rc = try_codec(self, BAL_CODEC_SPARSE, err);
        if (rc || self->used != BAL_CODEC_RAW)
            return rc;
        return try_codec(self, BAL_CODEC_ANCHORED, err);
    }
    rc = bal_anchored_append(self->coder, self->to, &measured, self->from,
                             self->grain, &gains, err);
    if (!rc && gains)
        self->used = BAL_CODEC_ANCHORED;
    return rc;
}

static int try_known(trial *self, bal_error *err)
{
    bal_guess plain = bal_guess_plain(self->coder, self->from, self->grain);
    uint64_t sparse = 0;
    int rc = 0;

    if (bal_anchored_fits(self->grain, self->from.len))
        rc = try_base(self, plain.size, err);
    else if (bal_sparse_guess(&sparse, self->from, self->grain) &&
             sparse < plain.size)
        rc = try_codec(self, BAL_CODEC_SPARSE, err);
    if (rc || self->used != BAL_CODEC_RAW)
        return rc;
    return try_codec(self, plain.id, err);
}

int bal_encode(bal_coder *coder, bal_codec_id *used, bal_buf *to,
               bal_bytes from, const bal_grain *grain, bal_effort effort,
               bal_error *err)
{
    trial self = { coder, to, from, grain, effort, BAL_CODEC_RAW };
    int rc = 0;

    if (effort != BAL_EFFORT_NONE && from.len) {
        if (grain->kind == BAL_NUMBER_BYTES || !is_width(grain->width))
            rc = try_codec(&self, planes_for(grain), err);
        else
            rc = try_known(&self, err);
    }
    if (!rc)
        *used = self.used;
    return rc;
}
