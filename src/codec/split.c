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

static bool all_equal(const uint8_t *data, size_t len)
{
    return len && !memcmp(data, data + 1, len - 1);
}

/* Append one plane and fill in its entry, which starts at `entry` of to. */
static int put_plane(bal_coder *coder, bal_buf *to, bal_bytes plane,
                     size_t entry, const bal_effort_row *row, bal_error *err)
{
    size_t start = to->len;
    enum plane_mode mode = PLANE_RAW;
    bool gains = false;
    int rc;

    if (all_equal(plane.data, plane.len)) {
        mode = PLANE_EQUAL;
        rc = bal_buf_append(to, plane.data, 1, err);
    } else {
        rc = bal_plane_append(coder, to, plane, row, &gains, err);
        if (gains)
            mode = PLANE_ZSTD;
    }
    if (!rc && mode == PLANE_RAW)
        rc = bal_buf_append(to, plane.data, plane.len, err);
    if (rc)
        return rc;
    to->data[entry] = (char)mode;
    bal_put32(to->data + entry + 4, (uint32_t)(to->len - start));
    return 0;
}

static int put_planes(bal_coder *coder, bal_buf *to, bal_bytes from,
                      const layout *shape, const bal_effort_row *row,
                      bal_error *err)
{
    static const char blank[BAL_PLANES_MAX * ENTRY] = { 0 };
    size_t start = to->len;
    size_t whole = shape->count * shape->width;
    uint8_t *planes = bal_coder_scratch(coder, whole);

    if (!planes)
        return bal_fail_memory(err, "byte planes");
    bal_planes_split(planes, from.data, shape->count, shape->width);
    int rc = bal_buf_append(to, blank, shape->width * ENTRY, err);
    for (size_t p = 0; p < shape->width && !rc; p++) {
        bal_bytes plane = { planes + p * shape->count, shape->count };
        rc = put_plane(coder, to, plane, start + p * ENTRY, row, err);
    }
    if (rc)
        return rc;
    return bal_buf_append(to, (const char *)from.data + whole, shape->tail,
                          err);
}

int bal_split_encode(bal_coder *coder, bal_buf *to, bal_bytes from,
                     const bal_grain *grain, bal_effort effort, bool *gains,
                     bal_error *err)
{
    size_t start = to->len;
    layout shape;

    *gains = false;
    if (!layout_of(&shape, from.len, grain->width) || !shape.count)
        return 0;
    int rc = bal_buf_reserve(to, from.len + shape.width * ENTRY, err);
    if (rc)
        return rc;
    rc = put_planes(coder, to, from, &shape, bal_effort_find(effort), err);
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

static int (*const getters[])(bal_coder *coder, bal_plane *plane, uint8_t *room,
                              size_t count, bal_bytes bytes, bal_error *err) = {
    [PLANE_RAW] = get_raw,
    [PLANE_EQUAL] = get_equal,
    [PLANE_ZSTD] = get_zstd,
};

static int get_planes(bal_coder *coder, bal_plane *planes, const entry *entries,
                      const layout *shape, bal_error *err)
{
    size_t coded = 0;

    for (size_t p = 0; p < shape->width; p++)
        coded += entries[p].mode == PLANE_ZSTD;
    uint8_t *room = bal_coder_scratch(coder, coded * shape->count + 1);
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
        room += mode == PLANE_ZSTD ? shape->count : 0;
    }
    return 0;
}

int bal_split_decode(bal_coder *coder, void *to, size_t len, bal_bytes payload,
                     const bal_grain *grain, bal_error *err)
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
