/* Is an answer right? */
#include <string.h>

#include "core/utf8.h"
#include "probe/compare.h"

/* Blocks of code points that are no letters or digits; outside of ASCII all
 * others are taken for such. */
static const struct {
    uint32_t first;
    uint32_t last;
} marks[] = {
    { 0x80, 0xa9 },       { 0xab, 0xb1 },     { 0xb4, 0xb4 },
    { 0xb6, 0xb8 },       { 0xbb, 0xbb },     { 0xbf, 0xbf },
    { 0xd7, 0xd7 },       { 0xf7, 0xf7 },     { 0x1680, 0x1680 },
    { 0x2000, 0x206f },   { 0x20a0, 0x20cf }, { 0x2190, 0x245f },
    { 0x2500, 0x2bff },   { 0x2e00, 0x2e7f }, { 0x3000, 0x3004 },
    { 0x3008, 0x3020 },   { 0x3030, 0x3030 }, { 0xe000, 0xf8ff },
    { 0xfe00, 0xfe6f },   { 0xfeff, 0xff0f }, { 0xff1a, 0xff20 },
    { 0xff3b, 0xff40 },   { 0xff5b, 0xff65 }, { 0xffe0, 0xffff },
    { 0x1f000, 0x1faff },
};

/* Of one code point. */
static bool is_word(uint32_t point)
{
    if (point < 0x80)
        return (point >= '0' && point <= '9') ||
               (point >= 'A' && point <= 'Z') || (point >= 'a' && point <= 'z');
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (point >= marks[i].first && point <= marks[i].last)
            return false;
    }
    return true;
}

/* A letter or digit in front of text? */
static bool word_at(const char *text)
{
    uint32_t point;

    return bal_utf8_next(&point, text, strnlen(text, 4)) && is_word(point);
}

static bool word_before(const char *start, const char *at)
{
    const char *from = at;

    if (at == start)
        return false;
    do {
        from--;
    } while (from > start && ((uint8_t)*from & 0xc0) == 0x80);
    uint32_t point;
    return bal_utf8_next(&point, from, (size_t)(at - from)) && is_word(point);
}

static const char blanks[] = " \t\r\n";

typedef struct slice {
    const char *text;
    size_t len;
} slice;

/* Without blanks at both ends. */
static slice trimmed(const char *text)
{
    const char *from = text + strspn(text, blanks);
    size_t len = strlen(from);

    while (len && strchr(blanks, from[len - 1]))
        len--;
    return (slice){ from, len };
}

static bool stands_at(const char *start, const char *at, slice choice)
{
    return !strncmp(at, choice.text, choice.len) && !word_before(start, at) &&
           !word_at(at + choice.len);
}

/* Where a choice stands first as a word of its own; NULL: nowhere. */
static const char *place(const char *output, slice choice)
{
    const char *at = choice.len ? output : NULL;

    while (at && *at && !stands_at(output, at, choice)) {
        at++;
        at = strchr(at, choice.text[0]);
    }
    return at && *at ? at : NULL;
}

/* The one that stands first, the longest of those at the same place. */
static slice chosen(const bal_probe *probe, const char *output)
{
    const char *first = NULL;
    slice found = { NULL, 0 };

    for (size_t i = 0; i < probe->choice_count; i++) {
        slice choice = trimmed(probe->choices[i]);
        const char *at = place(output, choice);
        if (!at || (first && at > first) ||
            (at == first && choice.len <= found.len))
            continue;
        first = at;
        found = choice;
    }
    return found;
}

static bool begins(const char *output, slice reference)
{
    const char *from = output + strspn(output, blanks);

    return !strncmp(from, reference.text, reference.len) &&
           !word_at(from + reference.len);
}

bool bal_probe_right(const bal_probe *probe, const char *output)
{
    slice choice = chosen(probe, output);

    for (size_t i = 0; i < probe->reference_count; i++) {
        slice reference = trimmed(probe->references[i]);
        bool right = probe->choice_count
                         ? choice.text && choice.len == reference.len &&
                               !memcmp(choice.text, reference.text, choice.len)
                         : begins(output, reference);
        if (right)
            return true;
    }
    return false;
}
