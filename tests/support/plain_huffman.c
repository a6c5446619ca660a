/* Slow on purpose: for each bit, is there a code of these bits? */
#include "support/plain_huffman.h"

#include "core/arith.h"

enum { LONGEST = 11, STREAMS = 8, HEADER = 168 };

typedef struct book {
    int value[LONGEST + 1][1 << LONGEST]; /* by length, then by code; -1 */
} book;

static unsigned length_of(const uint8_t *plane, unsigned value)
{
    return value % 2 ? plane[value / 2] >> 4 : plane[value / 2] & 0xf;
}

static bool read_codes(book *codes, const uint8_t *plane)
{
    unsigned next = 0;

    for (unsigned length = 0; length <= LONGEST; length++) {
        for (unsigned i = 0; i < 1 << LONGEST; i++)
            codes->value[length][i] = -1;
    }
    for (unsigned length = 1; length < 16; length++) {
        next *= 2;
        for (unsigned value = 0; value < 256; value++) {
            if (length_of(plane, value) != length)
                continue;
            if (length > LONGEST || next >= 1u << length)
                return false;
            codes->value[length][next++] = (int)value;
        }
        if (length == LONGEST && next != 1u << LONGEST)
            return false;
    }
    return true;
}

static bool read_stream(uint8_t *to, size_t n, const uint8_t *from, size_t len,
                        const book *codes)
{
    size_t done = 0;
    unsigned code = 0;
    unsigned length = 0;

    for (size_t bit = 0; bit < 8 * len; bit++) {
        unsigned value = from[bit / 8] >> (7 - bit % 8) & 1;
        if (done == n && (value || 8 * len - bit > 7))
            return false;
        code = code << 1 | value;
        length++;
        if (done < n && length > LONGEST)
            return false;
        if (done < n && codes->value[length][code] >= 0) {
            to[done++] = (uint8_t)codes->value[length][code];
            code = length = 0;
        }
    }
    return done == n;
}

static bool patch(uint8_t *to, size_t n, const uint8_t *from, size_t count)
{
    uint64_t least = 0;

    for (size_t i = 0; i < count; i++, from += 5) {
        uint64_t where = bal_get32(from);
        if (where < least || where >= n)
            return false;
        to[where] = from[4];
        least = where + 1;
    }
    return true;
}

bool plain_huffman(uint8_t *to, size_t n, const uint8_t *plane, size_t len)
{
    static book codes;
    size_t at = HEADER;

    if (len < HEADER || !read_codes(&codes, plane))
        return false;
    size_t segment = bal_get32(plane + 128);
    size_t patches = bal_get32(plane + 132);
    if (segment > n / 7)
        return false;
    for (size_t i = 0; i < STREAMS; i++) {
        size_t size = bal_get32(plane + 136 + 4 * i);
        size_t count = i == STREAMS - 1 ? n - i * segment : segment;
        if (size > len - at ||
            !read_stream(to + i * segment, count, plane + at, size, &codes))
            return false;
        at += size;
    }
    return len - at == 5 * patches && patch(to, n, plane + at, patches);
}
