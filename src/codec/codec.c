/* The codecs, by the number that is on disk. A new one is a file that ends with
 * its row, a number in codec.h, and a line here; choose.c says what it is tried
 * for. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include "codec/choose.h"
#include "codec/coder.h"
#include "codec/huffman_work.h"
#include "core/error.h"

static const bal_codec *const codecs[] = {
    [BAL_CODEC_RAW] = &bal_codec_raw,
    [BAL_CODEC_ZSTD] = &bal_codec_zstd,
    [BAL_CODEC_SPLIT] = &bal_codec_split,
    [BAL_CODEC_TURNED] = &bal_codec_turned,
    [BAL_CODEC_ANCHORED] = &bal_codec_anchored,
    [BAL_CODEC_TRIMMED] = &bal_codec_trimmed,
    [BAL_CODEC_SPARSE] = &bal_codec_sparse,
};

_Static_assert(sizeof(codecs) / sizeof(codecs[0]) == BAL_CODECS,
               "every codec number needs its row");

int bal_coder_new(bal_coder **out, bal_error *err)
{
    BAL_OWN(bal_coder) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "a coder");
    self->packer = ZSTD_createCCtx();
    self->unpacker = ZSTD_createDCtx();
    if (!self->packer || !self->unpacker)
        return bal_fail_memory(err, "a coder");
    self->loops = bal_loops_use();
    *out = BAL_TAKE(self);
    return 0;
}

void bal_coder_free(bal_coder *self)
{
    if (!self)
        return;
    ZSTD_freeCCtx(self->packer);
    ZSTD_freeDCtx(self->unpacker);
    for (size_t i = 0; i < BAL_ROOMS; i++)
        free(self->rooms[i].data);
    free(self->huffman);
    free(self->rans);
    free(self);
}

uint8_t *bal_coder_room(bal_coder *self, bal_room room, size_t len)
{
    if (len <= self->rooms[room].len && self->rooms[room].data)
        return self->rooms[room].data;
    free(self->rooms[room].data);
    self->rooms[room].len = 0;
    self->rooms[room].data = bal_pages(len ? len : 1);
    if (self->rooms[room].data)
        self->rooms[room].len = len;
    return self->rooms[room].data;
}

bal_huffman *bal_coder_huffman(bal_coder *self)
{
    if (!self->huffman)
        self->huffman = calloc(1, sizeof(*self->huffman));
    return self->huffman;
}

bal_rans *bal_coder_rans(bal_coder *self)
{
    if (self->rans)
        return self->rans;
    self->rans = bal_pages(sizeof(*self->rans));
    if (!self->rans)
        return NULL;
    memset(self->rans, 0, sizeof(*self->rans));
    bal_rans_prepare(self->rans);
    return self->rans;
}

const bal_codec *bal_codec_find(unsigned id)
{
    return id < BAL_CODECS ? codecs[id] : NULL;
}

bool bal_codec_based(unsigned id, bal_bytes payload)
{
    const bal_codec *codec = bal_codec_find(id);

    if (codec == &bal_codec_sparse)
        return bal_sparse_based(payload);
    return codec && codec->needs_base;
}

int bal_decode(bal_coder *coder, unsigned id, void *to, size_t len,
               bal_bytes payload, const bal_grain *grain, bal_error *err)
{
    const bal_codec *codec = bal_codec_find(id);

    if (!codec)
        return bal_fail(err, BAL_EUNSUPPORTED, "codec %u is of a newer version",
                        id);
    if (codec->needs_base && !grain->base.data)
        return bal_fail(err, BAL_EINVAL, "codec %s needs a base", codec->name);
    return codec->decode(coder, to, len, payload, grain, err);
}
