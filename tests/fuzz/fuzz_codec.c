/* Bytes as a payload of each codec, and as data that must survive a round
 * trip. The first byte is the codec, the second the width, the next two the
 * logical length. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "support/fuzz.h"

enum { HEAD = 4 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void decode(bal_coder *coder, const uint8_t *data, bal_bytes payload)
{
    bal_grain grain = { .width = data[1] };
    size_t len = (size_t)data[2] | (size_t)data[3] << 8;
    uint8_t *to = malloc(len + 1);

    require(to != NULL);
    int rc = bal_decode(coder, data[0], to, len, payload, &grain, NULL);
    require(rc == 0 || rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED ||
            rc == BAL_EINVAL);
    free(to);
}

static void there_and_back(bal_coder *coder, const uint8_t *data,
                           bal_bytes from)
{
    bal_grain grain = { .width = data[1] };
    bal_effort effort = (bal_effort)(data[0] % (BAL_EFFORT_BEST + 1));
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_codec_id used = BAL_CODEC_RAW;
    uint8_t *back = malloc(from.len + 1);

    require(back != NULL);
    require(!bal_encode(coder, &used, &packed, from, &grain, effort, NULL));
    bal_bytes payload = { packed.data, packed.len };
    if (used == BAL_CODEC_RAW)
        payload = from;
    require(payload.len <= from.len);
    require(!bal_decode(coder, used, back, from.len, payload, &grain, NULL));
    require(!from.len || !memcmp(back, from.data, from.len));
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_coder) coder = NULL;

    if (size < HEAD || bal_coder_new(&coder, NULL))
        return 0;
    bal_bytes rest = { data + HEAD, size - HEAD };
    decode(coder, data, rest);
    there_and_back(coder, data, rest);
    return 0;
}
