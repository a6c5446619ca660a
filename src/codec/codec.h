/* Bytes in, fewer bytes out. A codec is a row; its number is on disk and never
 * used again for another. Decoders take hostile input: every length is checked,
 * nothing is allocated past what the logical length allows. */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include "core/buf.h"
#include "core/own.h"

typedef enum bal_codec_id {
    BAL_CODEC_RAW = 0,
    BAL_CODEC_ZSTD = 1,
    BAL_CODEC_SPLIT = 2,    /* byte planes, each raw, all-equal or zstd */
    BAL_CODEC_TURNED = 3,   /* the same, of elements turned by some bits */
    BAL_CODEC_ANCHORED = 4, /* numbers by their distance from a base */
    BAL_CODEC_TRIMMED = 5,  /* F32 of few significant bits */
    BAL_CODEC_SPARSE = 6,   /* a base, or one value, and what is not */
    BAL_CODECS,
} bal_codec_id;

/* What an element is; numbers are on disk. */
typedef enum bal_number {
    BAL_NUMBER_BYTES = 0, /* nothing known */
    BAL_NUMBER_INT = 1,
    BAL_NUMBER_BF16 = 2,
    BAL_NUMBER_F16 = 3,
    BAL_NUMBER_F32 = 4,
    BAL_NUMBER_F64 = 5,
    BAL_NUMBER_E4M3 = 6,
    BAL_NUMBER_E5M2 = 7,
    BAL_NUMBERS,
} bal_number;

/* What the bytes are: the encoder's hint. The decoder needs width, as the
 * block header has it, and the base; all else it takes from the payload. */
typedef struct bal_grain {
    uint8_t width; /* bytes an element: 1 2 4 8; 0: not numbers */
    /* Elements are values (F64 where base_kind is, else F32) of a tuned element
     * minus that of the base, both of base_kind, rounded once. */
    bool difference;
    bal_number kind;
    bal_number base_kind; /* of base; without `difference` it must be kind */
    bal_bytes base;       /* as many elements as there are; empty: none */
} bal_grain;

typedef enum bal_effort {
    BAL_EFFORT_NONE, /* raw only */
    BAL_EFFORT_FAST,
    BAL_EFFORT_AUTO,
    BAL_EFFORT_BEST,
} bal_effort;

/* One thread's compression state, reused from block to block. */
typedef struct bal_coder bal_coder;
BAL_CHECK int bal_coder_new(bal_coder **out, bal_error *err);
void bal_coder_free(bal_coder *self);
BAL_OWNABLE(bal_coder)

typedef struct bal_codec {
    const char *name;
    bool needs_base;
    /* Append the payload to `to`; *gains is false (and `to` as before) if that
     * would not be smaller than len. */
    int (*encode)(bal_coder *coder, bal_buf *to, bal_bytes from,
                  const bal_grain *grain, bal_effort effort, bool *gains,
                  bal_error *err);
    /* Fill exactly len bytes from payload; ECORRUPT if it does not say so. */
    int (*decode)(bal_coder *coder, void *to, size_t len, bal_bytes payload,
                  const bal_grain *grain, bal_error *err);
} bal_codec;

/* Does it take the base to decode this payload, which its encoder made? */
bool bal_codec_based(unsigned id, bal_bytes payload);

/* NULL: no such codec. */
const bal_codec *bal_codec_find(unsigned id);

/* Choose by estimate and encode: appends the payload to `to`, which is empty
 * for RAW (the caller writes `from` itself). */
BAL_CHECK int bal_encode(bal_coder *coder, bal_codec_id *used, bal_buf *to,
                         bal_bytes from, const bal_grain *grain,
                         bal_effort effort, bal_error *err);
/* EUNSUPPORTED: an id of a newer version. */
BAL_CHECK int bal_decode(bal_coder *coder, unsigned id, void *to, size_t len,
                         bal_bytes payload, const bal_grain *grain,
                         bal_error *err);

#endif
