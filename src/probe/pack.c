/* zstd frames with a checksum: what is read is what was written. */
#include <zstd.h>
#include <zstd_errors.h>

#include "core/error.h"
#include "probe/fingerprint_inside.h"

enum { LEVEL = 9 };

typedef struct packer {
    ZSTD_CCtx *state;
} packer;

static void packer_done(packer *self)
{
    ZSTD_freeCCtx(self->state);
}

static int failed(size_t code, const char *doing, bal_error *err)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return bal_fail_memory(err, doing);
    return bal_fail(err, BAL_EIO, "%s: %s", doing, ZSTD_getErrorName(code));
}

int bal_pack(bal_buf *to, bal_bytes content, bal_error *err)
{
    BAL_LOCAL(packer) zstd = { ZSTD_createCCtx() };
    size_t most = ZSTD_compressBound(content.len);

    if (!zstd.state)
        return bal_fail_memory(err, "packing");
    int rc = bal_buf_reserve(to, most, err);
    if (rc)
        return rc;
    size_t code =
        ZSTD_CCtx_setParameter(zstd.state, ZSTD_c_compressionLevel, LEVEL);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(zstd.state, ZSTD_c_checksumFlag, 1);
    if (!ZSTD_isError(code))
        code = ZSTD_compress2(zstd.state, to->data + to->len, most,
                              content.data, content.len);
    if (ZSTD_isError(code))
        return failed(code, "packing", err);
    to->len += code;
    to->data[to->len] = '\0';
    return 0;
}

int bal_unpack(bal_buf *out, bal_bytes frame, size_t most, bal_error *err)
{
    unsigned long long told = ZSTD_getFrameContentSize(frame.data, frame.len);
    size_t whole = ZSTD_findFrameCompressedSize(frame.data, frame.len);

    /* Both "not told" and "no frame" are larger than any ceiling. */
    if (told > most || ZSTD_isError(whole) || whole != frame.len)
        return bal_fail(err, BAL_ECORRUPT,
                        "not one zstd frame of at most %zu bytes", most);
    int rc = bal_buf_reserve(out, (size_t)told, err);
    if (rc)
        return rc;
    size_t code =
        ZSTD_decompress(out->data, (size_t)told, frame.data, frame.len);
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return bal_fail_memory(err, "unpacking");
    if (ZSTD_isError(code) || code != told)
        return bal_fail(err, BAL_ECORRUPT, "damaged zstd frame: %s",
                        ZSTD_isError(code) ? ZSTD_getErrorName(code)
                                           : "cut short");
    out->len = code;
    out->data[out->len] = '\0';
    return 0;
}
