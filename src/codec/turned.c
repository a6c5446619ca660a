/* Byte planes of elements that were turned left by some bits first, so that the
 * exponent is one byte, and sign and mantissa are the others: as one plane,
 * sign and the top of the exponent would take a bit more each.
 *
 * Payload: turn u8, less than the bits of an element; then as of split. */
#include <endian.h>
#include <string.h>

#include "codec/coder.h"
#include "codec/numbers.h"
#include "core/error.h"

static void turn2(uint8_t *to, const uint8_t *from, size_t n, unsigned by)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t value;
        memcpy(&value, from + 2 * i, sizeof(value));
        uint32_t two = le16toh(value);
        value = htole16((uint16_t)(two << by | two >> (16 - by)));
        memcpy(to + 2 * i, &value, sizeof(value));
    }
}

static void turn4(uint8_t *to, const uint8_t *from, size_t n, unsigned by)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t value;
        memcpy(&value, from + 4 * i, sizeof(value));
        value = le32toh(value);
        value = htole32(value << by | value >> (32 - by));
        memcpy(to + 4 * i, &value, sizeof(value));
    }
}

static void turn8(uint8_t *to, const uint8_t *from, size_t n, unsigned by)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value;
        memcpy(&value, from + 8 * i, sizeof(value));
        value = le64toh(value);
        value = htole64(value << by | value >> (64 - by));
        memcpy(to + 8 * i, &value, sizeof(value));
    }
}

/* Of elements of 2, 4 or 8 bytes, by 1 or more; to may be from. */
static void turn(uint8_t *to, const uint8_t *from, size_t len, size_t width,
                 unsigned by)
{
    static void (*const by_width[])(uint8_t * to, const uint8_t *from, size_t n,
                                    unsigned by) = {
        [2] = turn2,
        [4] = turn4,
        [8] = turn8,
    };
    size_t tail = len % width;

    by_width[width](to, from, len / width, by);
    if (tail && to != from)
        memcpy(to + len - tail, from + len - tail, tail);
}

static bool has_turns(size_t width)
{
    return width == 2 || width == 4 || width == 8;
}

static int turned_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                         const bal_grain *grain, bal_effort effort, bool *gains,
                         bal_error *err)
{
    const bal_number_row *kind = bal_number_find(grain->kind);
    size_t start = to->len;

    *gains = false;
    if (!kind || !kind->turn || kind->width != grain->width)
        return 0;
    uint8_t *turned = bal_coder_room(coder, BAL_ROOM_TURNED, from.len);
    if (!turned)
        return bal_fail_memory(err, "turned elements");
    turn(turned, from.data, from.len, kind->width, kind->turn);
    int rc = bal_buf_append(to, &kind->turn, 1, err);
    if (!rc)
        rc = bal_codec_split.encode(coder, to, (bal_bytes){ turned, from.len },
                                    grain, effort, gains, err);
    *gains = *gains && to->len - start < from.len;
    if (rc || !*gains)
        to->len = start;
    return rc;
}

static int turned_decode(bal_coder *coder, void *to, size_t len,
                         bal_bytes payload, const bal_grain *grain,
                         bal_error *err)
{
    const uint8_t *data = payload.data;

    if (!payload.len || !has_turns(grain->width) || !data[0] ||
        data[0] >= 8 * grain->width)
        return bal_fail(err, BAL_ECORRUPT, "elements of %u are not turned so",
                        grain->width);
    int rc = bal_codec_split.decode(
        coder, to, len, (bal_bytes){ data + 1, payload.len - 1 }, grain, err);
    if (!rc)
        turn(to, to, len, grain->width, 8 * grain->width - data[0]);
    return rc;
}

const bal_codec bal_codec_turned = {
    .name = "turned",
    .encode = turned_encode,
    .decode = turned_decode,
};
