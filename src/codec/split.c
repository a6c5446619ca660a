/* Byte planes: byte p of every element together, each plane coded on its own.
 * Sign and exponent of weights say little and compress well; the low bytes of
 * their mantissas are noise and stay as they are, or, in a difference that
 * needed fewer bits than it has, all zero.
 *
 * Payload: a directory of one entry a plane, lowest byte first (mode u8, zero
 * u8[3], length u32, little-endian), then the planes' bytes in that order, then
 * the bytes that are no whole element, as they are. */
#include <string.h>

#include "codec/coder.h"
#include "codec/planes.h"
#include "core/arith.h"
#include "core/error.h"

enum { ENTRY = 8 };

enum plane_mode {
    PLANE_RAW = 0,
    PLANE_EQUAL = 1, /* one byte, that all are */
    PLANE_ZSTD = 2,  /* one frame */
    PLANE_HUFFMAN = 3,
};

typedef struct layout {
    size_t width;
    size_t count; /* elements */
    size_t tail;  /* bytes that are no whole element */
} layout;

/* False for widths that have no planes, and for what u32 cannot measure. */
static bool layout_of(layout *out, size_t len, size_t width)
{
    if (width != 2 && width != 4 && width != 8)
        return false;
    out->width = width;
    out->count = len / width;
    out->tail = len % width;
    return out->count <= UINT32_MAX;
}

/* ---- encode ------------------------------------------------------------- */

typedef struct part {
    bal_bytes bytes; /* without data: value, again and again */
    bal_texture texture;
    uint8_t value;
} part;

/* Drop len bytes at start; what is behind them moves there. */
static void drop(bal_buf *buf, size_t start, size_t len)
{
    buf->len -= len;
    memmove(buf->data + start, buf->data + start + len, buf->len - start);
}

/* Append the smallest that is tried; RAW, and `to` as before, if nothing is
 * small enough. A match finder has nothing to find in noise, and no code of
 * single bytes needs less than a bit for each. */
static int put_coded(bal_coder *coder, bal_buf *to, const part *plane,
                     enum plane_mode *mode, const bal_effort_row *row,
                     bal_error *err)
{
    size_t start = to->len;
    size_t most = bal_plane_most(plane->bytes.len, row);
    bool gains = false;
    int rc = 0;

    *mode = PLANE_RAW;
    if (plane->texture != BAL_TEXTURE_NOISE)
        rc = bal_frame_append(coder, to, plane->bytes, most, row->plane, &gains,
                              err);
    if (rc)
        return rc;
    size_t frame = to->len - start;
    if (gains) {
        *mode = PLANE_ZSTD;
        most = frame - 1;
    }
    if (most <= plane->bytes.len / 8)
        return 0;
    rc = bal_huffman_append(coder, to, plane->bytes, most, &gains, err);
    if (rc || !gains)
        return rc;
    *mode = PLANE_HUFFMAN;
    drop(to, start, frame);
    return 0;
}

static void put_entry(bal_buf *to, size_t entry, enum plane_mode mode,
                      size_t len)
{
    to->data[entry] = (char)mode;
    bal_put32(to->data + entry + 4, (uint32_t)len);
}

/* Append one plane and fill in its entry, which starts at `entry` of to. */
static int put_plane(bal_coder *coder, bal_buf *to, const part *plane,
                     size_t entry, const bal_effort_row *row, bal_error *err)
{
    size_t start = to->len;
    enum plane_mode mode = PLANE_RAW;
    int rc = 0;

    if (!plane->bytes.data) {
        mode = PLANE_EQUAL;
        rc = bal_buf_append(to, &plane->value, 1, err);
    } else if (plane->texture != BAL_TEXTURE_RANDOM) {
        rc = put_coded(coder, to, plane, &mode, row, err);
    }
    if (!rc && mode == PLANE_RAW)
        rc = bal_buf_append(to, plane->bytes.data, plane->bytes.len, err);
    if (!rc)
        put_entry(to, entry, mode, to->len - start);
    return rc;
}

/* Take the elements apart and say where. Random planes that no other is in
 * front of go right behind len, where they belong; their number is the answer.
 * The rest goes to the scratch. */
static size_t split_planes(part *planes, bal_buf *to, uint8_t *scratch,
                           bal_bytes from, const layout *shape, size_t samples)
{
    uint8_t *at[BAL_PLANES_MAX];
    bal_plane found[BAL_PLANES_MAX];
    size_t front = 0;

    for (size_t p = 0; p < shape->width; p++) {
        planes[p].texture = bal_texture_of((const uint8_t *)from.data + p,
                                           shape->count, shape->width, samples);
        bool placed = front == p && planes[p].texture == BAL_TEXTURE_RANDOM;
        at[p] = (placed ? (uint8_t *)to->data + to->len : scratch) +
                p * shape->count;
        front += placed;
    }
    bal_planes_split(found, at, from.data, shape->count, shape->width);
    for (size_t p = 0; p < shape->width; p++) {
        planes[p].bytes = (bal_bytes){ found[p].data, shape->count };
        planes[p].value = found[p].value;
    }
    return front;
}

/* Behind a directory that is still blank and starts at `start`. */
static int put_planes(bal_coder *coder, bal_buf *to, size_t start,
                      bal_bytes from, const layout *shape,
                      const bal_effort_row *row, bal_error *err)
{
    part planes[BAL_PLANES_MAX] = { 0 };
    uint8_t *scratch =
        bal_coder_room(coder, BAL_ROOM_PLANES, shape->count * shape->width);
    int rc = 0;

    if (!scratch)
        return bal_fail_memory(err, "byte planes");
    size_t front = split_planes(planes, to, scratch, from, shape, row->samples);
    for (size_t p = 0; p < front; p++)
        put_entry(to, start + p * ENTRY, PLANE_RAW, shape->count);
    to->len += front * shape->count;
    for (size_t p = front; p < shape->width && !rc; p++)
        rc = put_plane(coder, to, &planes[p], start + p * ENTRY, row, err);
    return rc;
}

/* Of one element, again and again. */
static int put_constant(bal_buf *to, size_t start, bal_bytes from,
                        const layout *shape, bal_error *err)
{
    for (size_t p = 0; p < shape->width; p++)
        put_entry(to, start + p * ENTRY, PLANE_EQUAL, 1);
    return bal_buf_append(to, from.data, shape->width, err);
}

/* What is written to on the way is more than what is left in the end, by less
 * than half a plane. */
static int make_room(bal_buf *to, bal_bytes from, const layout *shape,
                     bal_error *err)
{
    static const char blank[BAL_PLANES_MAX * ENTRY] = { 0 };
    int rc = bal_buf_reserve(to, from.len + shape->count / 2 + 1024, err);

    if (rc)
        return rc;
    return bal_buf_append(to, blank, shape->width * ENTRY, err);
}

static int split_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                        const bal_grain *grain, bal_effort effort, bool *gains,
                        bal_error *err)
{
    const uint8_t *data = from.data;
    size_t start = to->len;
    layout shape;

    *gains = false;
    if (!layout_of(&shape, from.len, grain->width) || !shape.count)
        return 0;
    int rc = make_room(to, from, &shape, err);
    if (rc)
        return rc;
    size_t whole = shape.count * shape.width;
    if (!memcmp(data, data + shape.width, whole - shape.width))
        rc = put_constant(to, start, from, &shape, err);
    else
        rc = put_planes(coder, to, start, from, &shape, bal_effort_find(effort),
                        err);
    if (!rc)
        rc = bal_buf_append(to, data + whole, shape.tail, err);
    *gains = !rc && to->len - start < from.len;
    if (!*gains)
        to->len = start;
    return rc;
}

/* ---- decode ------------------------------------------------------------- */

typedef struct entry {
    unsigned mode;
    bal_bytes bytes;
} entry;

/* Entries whose lengths, with the tail, are exactly what the payload has. */
static int get_entries(entry *entries, bal_bytes payload, const layout *shape,
                       bal_error *err)
{
    const uint8_t *data = payload.data;
    uint64_t at = shape->width * ENTRY;

    if (payload.len < at)
        return bal_fail(err, BAL_ECORRUPT, "plane directory is cut short");
    for (size_t p = 0; p < shape->width; p++) {
        const uint8_t *from = data + p * ENTRY;
        uint64_t len = bal_get32(from + 4);
        if (from[1] || from[2] || from[3])
            return bal_fail(err, BAL_ECORRUPT, "plane %zu: bad entry", p);
        if (len > payload.len - at)
            return bal_fail(err, BAL_ECORRUPT, "plane %zu is cut short", p);
        entries[p].mode = from[0];
        entries[p].bytes = (bal_bytes){ data + at, (size_t)len };
        at += len;
    }
    if (payload.len - at != shape->tail)
        return bal_fail(err, BAL_ECORRUPT,
                        "%zu bytes behind the planes where %zu belong",
                        (size_t)(payload.len - at), shape->tail);
    return 0;
}

static int get_raw(bal_coder *coder, bal_plane *plane, uint8_t *room,
                   size_t count, bal_bytes bytes, bal_error *err)
{
    (void)coder;
    (void)room;
    if (bytes.len != count)
        return bal_fail(err, BAL_ECORRUPT, "%zu bytes where %zu belong",
                        bytes.len, count);
    plane->data = bytes.data;
    return 0;
}

static int get_equal(bal_coder *coder, bal_plane *plane, uint8_t *room,
                     size_t count, bal_bytes bytes, bal_error *err)
{
    (void)coder;
    (void)room;
    (void)count;
    if (bytes.len != 1)
        return bal_fail(err, BAL_ECORRUPT, "%zu bytes where 1 belongs",
                        bytes.len);
    plane->value = *(const uint8_t *)bytes.data;
    return 0;
}

static int get_zstd(bal_coder *coder, bal_plane *plane, uint8_t *room,
                    size_t count, bal_bytes bytes, bal_error *err)
{
    plane->data = room;
    return bal_frame_fill(coder, room, count, bytes, err);
}

static int get_huffman(bal_coder *coder, bal_plane *plane, uint8_t *room,
                       size_t count, bal_bytes bytes, bal_error *err)
{
    plane->data = room;
    return bal_huffman_fill(coder, room, count, bytes, err);
}

static int (*const getters[])(bal_coder *coder, bal_plane *plane, uint8_t *room,
                              size_t count, bal_bytes bytes, bal_error *err) = {
    [PLANE_RAW] = get_raw,
    [PLANE_EQUAL] = get_equal,
    [PLANE_ZSTD] = get_zstd,
    [PLANE_HUFFMAN] = get_huffman,
};

/* False where the plane is used where it is. */
static bool has_room(unsigned mode)
{
    return mode == PLANE_ZSTD || mode == PLANE_HUFFMAN;
}

static int get_planes(bal_coder *coder, bal_plane *planes, const entry *entries,
                      const layout *shape, bal_error *err)
{
    size_t coded = 0;

    for (size_t p = 0; p < shape->width; p++)
        coded += has_room(entries[p].mode);
    uint8_t *room =
        bal_coder_room(coder, BAL_ROOM_PLANES, coded * shape->count + 1);
    if (!room)
        return bal_fail_memory(err, "byte planes");
    for (size_t p = 0; p < shape->width; p++) {
        unsigned mode = entries[p].mode;
        if (mode >= sizeof(getters) / sizeof(getters[0]))
            return bal_fail(err, BAL_ECORRUPT, "plane %zu: no mode %u", p,
                            mode);
        int rc = getters[mode](coder, &planes[p], room, shape->count,
                               entries[p].bytes, err);
        if (rc)
            return bal_within(err, rc, "plane %zu", p);
        room += has_room(mode) ? shape->count : 0;
    }
    return 0;
}

static int split_decode(bal_coder *coder, void *to, size_t len,
                        bal_bytes payload, const bal_grain *grain,
                        bal_error *err)
{
    entry entries[BAL_PLANES_MAX] = { 0 };
    bal_plane planes[BAL_PLANES_MAX] = { 0 };
    layout shape;

    if (!layout_of(&shape, len, grain->width) || !shape.count)
        return bal_fail(err, BAL_ECORRUPT, "no planes of width %u",
                        grain->width);
    int rc = get_entries(entries, payload, &shape, err);
    if (rc)
        return rc;
    rc = get_planes(coder, planes, entries, &shape, err);
    if (rc)
        return rc;
    bal_planes_join(to, planes, shape.count, shape.width);
    if (shape.tail)
        memcpy((char *)to + shape.count * shape.width,
               (const char *)payload.data + payload.len - shape.tail,
               shape.tail);
    return 0;
}

const bal_codec bal_codec_split = {
    .name = "split",
    .encode = split_encode,
    .decode = split_decode,
};
