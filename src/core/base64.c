/* Base64, strictly: libcrypto's decoder passes over white space and does not
 * look at the last bits, so that many texts would stand for the same bytes. */
#include "core/base64.h"

#include <string.h>

#include "core/arith.h"
#include "core/error.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";

/* Bytes that are coded in one go, a multiple of 3. */
enum { PIECE = 3 * 256 };

/* len is 1 to 3. */
static void encode_group(char out[4], const uint8_t *data, size_t len)
{
    unsigned second = len > 1 ? data[1] : 0u;
    unsigned third = len > 2 ? data[2] : 0u;
    unsigned bits = (unsigned)data[0] << 16 | second << 8 | third;

    out[0] = standard[bits >> 18];
    out[1] = standard[bits >> 12 & 63];
    out[2] = standard[bits >> 6 & 63];
    out[3] = standard[bits & 63];
    if (len < 3)
        out[3] = '=';
    if (len < 2)
        out[2] = '=';
}

int bal_base64_encode(bal_buf *to, const void *data, size_t len, bal_error *err)
{
    const uint8_t *from = data;
    char text[PIECE / 3 * 4];
    size_t whole = len / 3 + (len % 3 != 0);

    if (whole > SIZE_MAX / 4)
        return bal_fail(err, BAL_EINVAL, "too much for base64");
    int rc = bal_buf_reserve(to, whole * 4, err);
    for (size_t at = 0; at < len && !rc; at += PIECE) {
        size_t piece = bal_min(PIECE, len - at);
        size_t put = 0;
        for (size_t i = 0; i < piece; i += 3) {
            encode_group(text + put, from + at + i, bal_min(3, piece - i));
            put += 4;
        }
        rc = bal_buf_append(to, text, put, err);
    }
    return rc;
}

/* The six bits of each character, 64 for what is none. */
typedef struct alphabet {
    uint8_t values[256];
    const char *pair; /* the last two; NULL: none of them was seen yet */
} alphabet;

static void fill(alphabet *self)
{
    memset(self->values, 64, sizeof(self->values));
    for (size_t i = 0; i < 64; i++)
        self->values[(uint8_t)standard[i]] = (uint8_t)i;
    self->values['-'] = 62;
    self->values['_'] = 63;
    self->pair = NULL;
}

/* One of "+/" or "-_" excludes the other two. */
static bool same_alphabet(alphabet *self, char c)
{
    static const char *const pairs[] = { "+/", "-_" };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (!strchr(pairs[i], c))
            continue;
        if (!self->pair)
            self->pair = pairs[i];
        return self->pair == pairs[i];
    }
    return true;
}

/* Four characters, of which the last `padding` are '='; false: they are not
 * base64. */
static bool decode_group(uint8_t out[3], const char *text, size_t padding,
                         alphabet *known)
{
    unsigned bits = 0;

    for (size_t i = 0; i < 4; i++) {
        unsigned value = 0;
        if (i < 4 - padding) {
            value = known->values[(uint8_t)text[i]];
            if (value > 63 || (value > 61 && !same_alphabet(known, text[i])))
                return false;
        }
        bits = bits << 6 | value;
    }
    out[0] = (uint8_t)(bits >> 16);
    out[1] = (uint8_t)(bits >> 8);
    out[2] = (uint8_t)bits;
    return !(bits & ((1u << 8 * padding) - 1));
}

static size_t padding_of(const char *text, size_t len)
{
    size_t count = 0;

    while (count < 2 && count < len && text[len - 1 - count] == '=')
        count++;
    return count;
}

int bal_base64_decode(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    uint8_t data[PIECE];
    alphabet known;
    size_t put = 0;
    size_t before = to->len;

    if (len % 4)
        return bal_fail(err, BAL_ECORRUPT, "base64 of %zu characters", len);
    int rc = bal_buf_reserve(to, len / 4 * 3, err);
    fill(&known);
    for (size_t at = 0; at < len && !rc; at += 4) {
        size_t padding = at + 4 == len ? padding_of(text + at, 4) : 0;
        if (!decode_group(data + put, text + at, padding, &known)) {
            rc = bal_fail(err, BAL_ECORRUPT, "bad base64 at character %zu", at);
            break;
        }
        put += 3 - padding;
        if (put == PIECE || at + 4 == len) {
            rc = bal_buf_append(to, data, put, err);
            put = 0;
        }
    }
    if (rc && to->data) {
        to->len = before;
        to->data[before] = '\0';
    }
    return rc;
}
