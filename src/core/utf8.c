/* UTF-8 as RFC 3629 has it, nothing more lenient. */
#include "core/utf8.h"

#include <stdbool.h>

#include "core/str.h"

/* What the first byte says: bits that select it, length, least code point. */
static const struct {
    uint8_t mask;
    uint8_t lead;
    uint8_t len;
    uint32_t least;
} leads[] = {
    { 0x80, 0x00, 1, 0 },
    { 0xe0, 0xc0, 2, 0x80 },
    { 0xf0, 0xe0, 3, 0x800 },
    { 0xf8, 0xf0, 4, 0x10000 },
};

enum { LEADS = sizeof(leads) / sizeof(leads[0]) };

size_t bal_utf8_next(uint32_t *point, const char *text, size_t len)
{
    size_t row = 0;

    if (!len)
        return 0;
    uint8_t first = (uint8_t)text[0];
    while (row < LEADS && (first & leads[row].mask) != leads[row].lead)
        row++;
    if (row == LEADS || leads[row].len > len)
        return 0;
    uint32_t value = first & (uint8_t)~leads[row].mask;
    for (size_t i = 1; i < leads[row].len; i++) {
        uint8_t byte = (uint8_t)text[i];
        if ((byte & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (byte & 0x3f);
    }
    bool surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < leads[row].least || value > 0x10ffff || surrogate)
        return 0;
    *point = value;
    return leads[row].len;
}

size_t bal_utf8_put(char out[4], uint32_t point)
{
    size_t row = LEADS - 1;

    while (point < leads[row].least)
        row--;
    size_t len = leads[row].len;
    for (size_t i = len - 1; i; i--) {
        out[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)(leads[row].lead | point);
    return len;
}

bool bal_utf8_valid(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        uint32_t point;
        size_t step = bal_utf8_next(&point, text + at, len - at);
        if (!step)
            return false;
        at += step;
    }
    return true;
}
