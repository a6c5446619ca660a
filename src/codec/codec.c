/* The codecs, by the number that is on disk, and the choice between them. A new
 * one is a file that ends with its row, a number in codec.h, and a line here;
 * by_width says what it is tried for.
 *
 * The choice looks at what the bytes are and at a sample of them; trying every
 * codec would cost more than it gains. */
#include "codec/codec.h"

#include <stdlib.h>

#include "codec/coder.h"
#include "codec/huffman_work.h"
#include "core/error.h"

static const bal_codec *const codecs[] = {
    [BAL_CODEC_RAW] = &bal_codec_raw,
    [BAL_CODEC_ZSTD] = &bal_codec_zstd,
    [BAL_CODEC_SPLIT] = &bal_codec_split,
};

_Static_assert(sizeof(codecs) / sizeof(codecs[0]) == BAL_CODECS,
               "every codec number needs its row");

/* What is tried, by the width of an element: numbers of more than a byte have
 * planes worth telling apart. */
static const uint8_t by_width[] = {
    [0] = BAL_CODEC_ZSTD,  [1] = BAL_CODEC_ZSTD,  [2] = BAL_CODEC_SPLIT,
    [4] = BAL_CODEC_SPLIT, [8] = BAL_CODEC_SPLIT,
};

int bal_coder_new(bal_coder **out, bal_error *err)
{
    BAL_OWN(bal_coder) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "a coder");
    self->packer = ZSTD_createCCtx();
    self->unpacker = ZSTD_createDCtx();
    if (!self->packer || !self->unpacker)
        return bal_fail_memory(err, "a coder");
    *out = BAL_TAKE(self);
    return 0;
}

void bal_coder_free(bal_coder *self)
{
    if (!self)
        return;
    ZSTD_freeCCtx(self->packer);
    ZSTD_freeDCtx(self->unpacker);
    free(self->scratch);
    free(self->huffman);
    free(self);
}

uint8_t *bal_coder_scratch(bal_coder *self, size_t len)
{
    if (len <= self->room)
        return self->scratch;
    free(self->scratch);
    self->room = 0;
    self->scratch = bal_pages(len);
    if (self->scratch)
        self->room = len;
    return self->scratch;
}

bal_huffman *bal_coder_huffman(bal_coder *self)
{
    if (!self->huffman)
        self->huffman = calloc(1, sizeof(*self->huffman));
    return self->huffman;
}

const bal_codec *bal_codec_find(unsigned id)
{
    return id < BAL_CODECS ? codecs[id] : NULL;
}

int bal_encode(bal_coder *coder, bal_codec_id *used, bal_buf *to,
               bal_bytes from, const bal_grain *grain, bal_effort effort,
               bal_error *err)
{
    bal_codec_id id = BAL_CODEC_RAW;
    bool gains = false;

    if (effort != BAL_EFFORT_NONE && grain->width < sizeof(by_width))
        id = (bal_codec_id)by_width[grain->width];
    int rc = codecs[id]->encode(coder, to, from, grain, effort, &gains, err);
    if (rc)
        return rc;
    *used = gains ? id : BAL_CODEC_RAW;
    return 0;
}

int bal_decode(bal_coder *coder, unsigned id, void *to, size_t len,
               bal_bytes payload, const bal_grain *grain, bal_error *err)
{
    const bal_codec *codec = bal_codec_find(id);

    if (!codec)
        return bal_fail(err, BAL_EUNSUPPORTED, "codec %u is of a newer version",
                        id);
    if (codec->needs_base && grain->base.len != len)
        return bal_fail(err, BAL_EINVAL, "codec %s needs %zu bytes of base",
                        codec->name, len);
    return codec->decode(coder, to, len, payload, grain, err);
}
