#include "serve/range.h"

#include <string.h>
#include <strings.h>

#include "core/str.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits at *text, as many as there are; what is more than fits is the most
 * that fits. False: none. */
static bool number(uint64_t *out, const char **text)
{
    const char *at = *text;

    for (*out = 0; is_digit(*at); at++) {
        uint64_t next = (uint64_t)(*at - '0');
        if (*out > (UINT64_MAX - next) / 10)
            *out = UINT64_MAX;
        else
            *out = *out * 10 + next;
    }
    bool any = at != *text;
    *text = at;
    return any;
}

static void skip_space(const char **text)
{
    while (**text == ' ' || **text == '\t')
        (*text)++;
}

/* "a-b", "a-" or "-n" and nothing behind it. */
static bool parse(const char *text, bool bounds[2], uint64_t values[2])
{
    skip_space(&text);
    bounds[0] = number(&values[0], &text);
    if (*text != '-')
        return false;
    text++;
    bounds[1] = number(&values[1], &text);
    skip_space(&text);
    return !*text && (bounds[0] || bounds[1]) &&
           !(bounds[0] && bounds[1] && values[1] < values[0]);
}

bal_range_kind bal_range_of(const char *text, uint64_t size, uint64_t *offset,
                            uint64_t *length)
{
    static const char unit[] = "bytes=";
    bool bounds[2];
    uint64_t values[2];

    *offset = 0;
    *length = size;
    if (!text || strncasecmp(text, unit, sizeof(unit) - 1) != 0)
        return BAL_RANGE_WHOLE;
    if (!parse(text + sizeof(unit) - 1, bounds, values))
        return BAL_RANGE_WHOLE;
    if (!bounds[0]) {
        uint64_t last = values[1] < size ? values[1] : size;
        *offset = size - last;
        *length = last;
        return last ? BAL_RANGE_PART : BAL_RANGE_NOWHERE;
    }
    if (values[0] >= size)
        return BAL_RANGE_NOWHERE;
    uint64_t end = bounds[1] && values[1] < size - 1 ? values[1] : size - 1;
    *offset = values[0];
    *length = end - values[0] + 1;
    return BAL_RANGE_PART;
}

/* The end of one quoted tag; NULL: it is none. */
static const char *tag_end(const char *text)
{
    return *text == '"' ? strchr(text + 1, '"') : NULL;
}

bool bal_etag_named(const char *field, const char *tag, bool weak)
{
    size_t len = tag ? strlen(tag) : 0;

    if (!field || !tag)
        return false;
    skip_space(&field);
    if (field[0] == '*')
        return true;
    while (*field) {
        bool is_weak = field[0] == 'W' && field[1] == '/';
        const char *from = field + (is_weak ? 2 : 0);
        const char *end = tag_end(from);
        if (!end)
            return false;
        if ((weak || !is_weak) && (size_t)(end + 1 - from) == len &&
            !strncmp(from, tag, len))
            return true;
        field = end + 1;
        while (*field == ',' || *field == ' ' || *field == '\t')
            field++;
    }
    return false;
}
