/* Bytes as they are. The caller of bal_encode writes them itself, so nothing
 * is copied; that is why encoding never gains. */
#include <string.h>

#include "codec/coder.h"
#include "core/error.h"

static int raw_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                      const bal_grain *grain, bal_effort effort, bool *gains,
                      bal_error *err)
{
    (void)coder;
    (void)to;
    (void)from;
    (void)grain;
    (void)effort;
    (void)err;
    *gains = false;
    return 0;
}

static int raw_decode(bal_coder *coder, void *to, size_t len, bal_bytes payload,
                      const bal_grain *grain, bal_error *err)
{
    (void)coder;
    (void)grain;
    if (payload.len != len)
        return bal_fail(err, BAL_ECORRUPT,
                        "payload has %zu bytes where %zu belong", payload.len,
                        len);
    if (len)
        memcpy(to, payload.data, len);
    return 0;
}

const bal_codec bal_codec_raw = {
    .name = "raw",
    .encode = raw_encode,
    .decode = raw_decode,
};
