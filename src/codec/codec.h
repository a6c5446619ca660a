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
    BAL_CODEC_SPLIT = 2, /* byte planes, each raw, all-equal or zstd */
    BAL_CODECS,
} bal_codec_id;

/* What the bytes are: the encoder's hint, kept in the block header for the
 * decoder. */
typedef struct bal_grain {
    uint8_t width;  /* bytes an element: 1 2 4 8; 0: not numbers */
    bal_bytes base; /* of needs_base codecs: the same range of the base */
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
