/* Plain loops, in which the order of bytes in a number is the file's on every
 * machine, written so that compilers make vector code of them: the pointers do
 * not overlap, strides are constants, one loop a width. */
#include "codec/planes.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <string.h>

/* What is worked on at once: a constant plane is laid out this long, once, and
 * stays in the cache. */
enum { TILE = 4096 };

static void unzip(uint8_t *restrict even, uint8_t *restrict odd,
                  const uint8_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t two;
        memcpy(&two, from + 2 * i, sizeof(two));
        two = le16toh(two);
        even[i] = (uint8_t)two;
        odd[i] = (uint8_t)(two >> 8);
    }
}

static void split2(uint8_t *const *to, const uint8_t *restrict from,
                   size_t count)
{
    unzip(to[0], to[1], from, count);
}

/* clang finds no vector code for four streams of bytes; gcc's is better than
 * unzipping twice. */
#ifdef __clang__
static void split4(uint8_t *const *to, const uint8_t *restrict from,
                   size_t count)
{
    uint8_t once[2][TILE / 2] = { 0 };

    for (size_t done = 0; done < count; done += TILE / 4) {
        size_t n = count - done < TILE / 4 ? count - done : TILE / 4;
        unzip(once[0], once[1], from + 4 * done, 2 * n);
        unzip(to[0] + done, to[2] + done, once[0], n);
        unzip(to[1] + done, to[3] + done, once[1], n);
    }
}
#else
static void split4(uint8_t *const *to, const uint8_t *restrict from,
                   size_t count)
{
    uint8_t *restrict to0 = to[0];
    uint8_t *restrict to1 = to[1];
    uint8_t *restrict to2 = to[2];
    uint8_t *restrict to3 = to[3];

    for (size_t i = 0; i < count; i++) {
        to0[i] = from[4 * i];
        to1[i] = from[4 * i + 1];
        to2[i] = from[4 * i + 2];
        to3[i] = from[4 * i + 3];
    }
}
#endif

/* n elements to `done` bytes behind the planes' starts: unzipped three times
 * over, because compilers give up on eight streams at once. */
static void split8_tile(uint8_t *const *to, size_t done,
                        const uint8_t *restrict from, size_t n)
{
    static const uint8_t first[4] = { 0, 2, 1, 3 };
    uint8_t once[2][TILE / 2] = { 0 };
    uint8_t twice[4][TILE / 4] = { 0 };

    unzip(once[0], once[1], from, 4 * n);
    unzip(twice[0], twice[1], once[0], 2 * n);
    unzip(twice[2], twice[3], once[1], 2 * n);
    for (size_t i = 0; i < 4; i++) {
        uint8_t *plane = to[first[i]] + done;
        unzip(plane, to[first[i] + 4] + done, twice[i], n);
    }
}

static void split8(uint8_t *const *to, const uint8_t *restrict from,
                   size_t count)
{
    for (size_t done = 0; done < count; done += TILE / 8) {
        size_t n = count - done < TILE / 8 ? count - done : TILE / 8;
        split8_tile(to, done, from + 8 * done, n);
    }
}

static void join2(uint8_t *restrict to, const uint8_t *const *from,
                  size_t count)
{
    const uint8_t *restrict from0 = from[0];
    const uint8_t *restrict from1 = from[1];

    for (size_t i = 0; i < count; i++) {
        to[2 * i] = from0[i];
        to[2 * i + 1] = from1[i];
    }
}

static void join4(uint8_t *restrict to, const uint8_t *const *from,
                  size_t count)
{
    const uint8_t *restrict from0 = from[0];
    const uint8_t *restrict from1 = from[1];
    const uint8_t *restrict from2 = from[2];
    const uint8_t *restrict from3 = from[3];

    for (size_t i = 0; i < count; i++) {
        to[4 * i] = from0[i];
        to[4 * i + 1] = from1[i];
        to[4 * i + 2] = from2[i];
        to[4 * i + 3] = from3[i];
    }
}

static void join8(uint8_t *restrict to, const uint8_t *const *from,
                  size_t count)
{
    const uint8_t *restrict from0 = from[0];
    const uint8_t *restrict from1 = from[1];
    const uint8_t *restrict from2 = from[2];
    const uint8_t *restrict from3 = from[3];
    const uint8_t *restrict from4 = from[4];
    const uint8_t *restrict from5 = from[5];
    const uint8_t *restrict from6 = from[6];
    const uint8_t *restrict from7 = from[7];

    for (size_t i = 0; i < count; i++) {
        to[8 * i] = from0[i];
        to[8 * i + 1] = from1[i];
        to[8 * i + 2] = from2[i];
        to[8 * i + 3] = from3[i];
        to[8 * i + 4] = from4[i];
        to[8 * i + 5] = from5[i];
        to[8 * i + 6] = from6[i];
        to[8 * i + 7] = from7[i];
    }
}

typedef struct kernels {
    void (*split)(uint8_t *const *to, const uint8_t *restrict from,
                  size_t count);
    void (*join)(uint8_t *restrict to, const uint8_t *const *from,
                 size_t count);
} kernels;

static const kernels by_width[BAL_PLANES_MAX + 1] = {
    [2] = { split2, join2 },
    [4] = { split4, join4 },
    [8] = { split8, join8 },
};

/* True if count bytes, at least 1, are all this value. */
static bool all_are(const uint8_t *data, size_t count, uint8_t value)
{
    return data[0] == value && !memcmp(data, data + 1, count - 1);
}

/* The first byte that differs is among the n that were split to the front of
 * `to`: they go where they belong, behind what was left out so far. */
static void lay_out(uint8_t *to, size_t done, size_t n, uint8_t value)
{
    memmove(to + done, to, n);
    memset(to, value, done);
}

/* As long as a plane is constant, its tiles come to one place, one over the
 * other, so that they cost no memory. */
void bal_planes_split(bal_plane *planes, uint8_t *const *to,
                      const uint8_t *from, size_t count, size_t width)
{
    uint8_t *at[BAL_PLANES_MAX];

    assert(count && width <= BAL_PLANES_MAX && by_width[width].split);
    for (size_t p = 0; p < width; p++)
        planes[p] = (bal_plane){ .value = from[p] };
    for (size_t done = 0; done < count; done += TILE) {
        size_t n = count - done < TILE ? count - done : TILE;
        for (size_t p = 0; p < width; p++)
            at[p] = to[p] + (planes[p].data ? done : 0);
        by_width[width].split(at, from + done * width, n);
        for (size_t p = 0; p < width; p++) {
            if (planes[p].data || all_are(to[p], n, planes[p].value))
                continue;
            lay_out(to[p], done, n, planes[p].value);
            planes[p].data = to[p];
        }
    }
}

void bal_planes_join(uint8_t *to, const bal_plane *planes, size_t count,
                     size_t width)
{
    uint8_t filled[BAL_PLANES_MAX][TILE];
    const uint8_t *from[BAL_PLANES_MAX];

    assert(width <= BAL_PLANES_MAX && by_width[width].join);
    for (size_t p = 0; p < width; p++) {
        from[p] = planes[p].data;
        if (!planes[p].data) {
            memset(filled[p], planes[p].value, TILE);
            from[p] = filled[p];
        }
    }
    for (size_t done = 0; done < count; done += TILE) {
        size_t n = count - done < TILE ? count - done : TILE;
        by_width[width].join(to + done * width, from, n);
        for (size_t p = 0; p < width; p++)
            from[p] += planes[p].data ? n : 0;
    }
}
