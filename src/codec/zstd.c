/* zstd frames: of text, and of byte planes.
 *
 * Weights are noise to a match finder: it finds nothing but false matches of a
 * few bytes, which cost ratio and time. A hash table of 64 entries and a least
 * match of 7 keep it from looking. Where the plane is known to be noise it is
 * sent away altogether, by letting it skip; zstd then would leave the literals
 * alone too, so it is told to code them. What comes out is ordinary zstd. */
#include <assert.h>
#include <string.h>
#include <zstd_errors.h>

#include "codec/coder.h"
#include "core/error.h"

static const bal_effort_row efforts[] = {
    [BAL_EFFORT_FAST] = {
        .text = { { .level = 1 } },
        .plane = { { .level = 1, .hash_log = 6, .min_match = 7 } },
        .noise = { { .level = 1, .hash_log = 6, .min_match = 7, .skip = 1024 } },
        .least = 50,
        .samples = 4096,
    },
    [BAL_EFFORT_AUTO] = {
        .text = { { .level = 3 } },
        .plane = { { .level = 1, .hash_log = 6, .min_match = 7 } },
        .noise = { { .level = 1, .hash_log = 6, .min_match = 7, .skip = 1024 } },
        .least = 20,
        .samples = 16384,
    },
    [BAL_EFFORT_BEST] = {
        .text = { { .level = 12 } },
        .plane = {
            { .level = 1, .hash_log = 6, .min_match = 7 },
            { .level = 1, .hash_log = 6, .min_match = 7, .skip = 1024 },
            { .level = 9 },
        },
        .least = 5,
    },
};

const bal_effort_row *bal_effort_find(bal_effort effort)
{
    assert(effort > BAL_EFFORT_NONE && effort <= BAL_EFFORT_BEST);
    return &efforts[effort];
}

static int failed(size_t code, const char *doing, bal_error *err)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return bal_fail_memory(err, doing);
    return bal_fail(err, BAL_EIO, "%s: %s", doing, ZSTD_getErrorName(code));
}

static int tune(ZSTD_CCtx *packer, const bal_tuning *tuning, bal_error *err)
{
    /* What ZSTD_c_literalCompressionMode is called where it is not promised to
     * stay; 1 is Huffman, whatever the level. A library that does not take it
     * looks for matches instead. */
    size_t code = ZSTD_CCtx_setParameter(packer, ZSTD_c_experimentalParam5,
                                         tuning->skip ? 1 : 0);
    int skip = ZSTD_isError(code) ? 0 : tuning->skip;
    const struct {
        ZSTD_cParameter name;
        int value;
    } rows[] = {
        { ZSTD_c_compressionLevel, tuning->level },
        { ZSTD_c_hashLog, tuning->hash_log },
        { ZSTD_c_minMatch, tuning->min_match },
        { ZSTD_c_targetLength, skip },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        code = ZSTD_CCtx_setParameter(packer, rows[i].name, rows[i].value);
        if (ZSTD_isError(code))
            return failed(code, "setting up zstd", err);
    }
    return 0;
}

/* Pack to `at`; *size is 0 if `most` bytes are not enough. */
static int pack(bal_coder *coder, char *at, bal_bytes from, size_t most,
                const bal_tuning *tuning, size_t *size, bal_error *err)
{
    *size = 0;
    int rc = tune(coder->packer, tuning, err);
    if (rc)
        return rc;

    size_t code = ZSTD_compress2(coder->packer, at, most, from.data, from.len);
    if (ZSTD_getErrorCode(code) == ZSTD_error_dstSize_tooSmall)
        return 0;
    if (ZSTD_isError(code))
        return failed(code, "compressing", err);
    *size = code;
    return 0;
}

int bal_frame_append(bal_coder *coder, bal_buf *to, bal_bytes from, size_t most,
                     const bal_tuning *tunings, bool *gains, bal_error *err)
{
    size_t start = to->len;
    size_t size = 0;

    for (size_t i = 0; tunings[i].level && most; i++) {
        int rc = bal_buf_reserve(to, most, err);
        if (rc)
            return rc;
        rc = pack(coder, to->data + to->len, from, most, &tunings[i], &size,
                  err);
        if (rc)
            return rc;
        if (!size)
            continue;
        memmove(to->data + start, to->data + to->len, size);
        to->len = start + size;
        most = size - 1;
    }
    *gains = to->len > start;
    return 0;
}

int bal_frame_fill(bal_coder *coder, void *to, size_t len, bal_bytes frame,
                   bal_error *err)
{
    unsigned long long told = ZSTD_getFrameContentSize(frame.data, frame.len);
    size_t whole = ZSTD_findFrameCompressedSize(frame.data, frame.len);

    if (told != len || ZSTD_isError(whole) || whole != frame.len)
        return bal_fail(err, BAL_ECORRUPT, "not one zstd frame of %zu bytes",
                        len);
    size_t code =
        ZSTD_decompressDCtx(coder->unpacker, to, len, frame.data, frame.len);
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return bal_fail_memory(err, "a zstd frame");
    if (ZSTD_isError(code))
        return bal_fail(err, BAL_ECORRUPT, "zstd frame: %s",
                        ZSTD_getErrorName(code));
    if (code != len)
        return bal_fail(err, BAL_ECORRUPT,
                        "zstd frame holds %zu bytes where %zu belong", code,
                        len);
    return 0;
}

size_t bal_plane_most(size_t len, const bal_effort_row *row)
{
    size_t gain = len / 1000 * row->least + 1;

    return len > gain ? len - gain : 0;
}

int bal_plane_append(bal_coder *coder, bal_buf *to, bal_bytes from,
                     const bal_effort_row *row, bool *gains, bal_error *err)
{
    bal_texture texture = bal_texture_of(from.data, from.len, 1, row->samples);
    const bal_tuning *tunings =
        texture == BAL_TEXTURE_NOISE ? row->noise : row->plane;

    *gains = false;
    if (texture == BAL_TEXTURE_RANDOM)
        return 0;
    return bal_frame_append(coder, to, from, bal_plane_most(from.len, row),
                            tunings, gains, err);
}

static int zstd_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                       const bal_grain *grain, bal_effort effort, bool *gains,
                       bal_error *err)
{
    const bal_effort_row *row = bal_effort_find(effort);

    *gains = false;
    if (!from.len)
        return 0;
    if (grain->width)
        return bal_plane_append(coder, to, from, row, gains, err);
    return bal_frame_append(coder, to, from, from.len - 1, row->text, gains,
                            err);
}

static int zstd_decode(bal_coder *coder, void *to, size_t len,
                       bal_bytes payload, const bal_grain *grain,
                       bal_error *err)
{
    (void)grain;
    return bal_frame_fill(coder, to, len, payload, err);
}

const bal_codec bal_codec_zstd = {
    .name = "zstd",
    .encode = zstd_encode,
    .decode = zstd_decode,
};
