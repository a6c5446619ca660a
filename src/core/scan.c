/* A strict pull scanner for JSON that may be large or hostile: the caller asks
 * for what it expects, so there is no tree, no recursion and no allocation but
 * for the strings that it wants. */
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/utf8.h"

enum { LEVELS = 1024 };

static int bad_at(const bal_scan *self, size_t at, const char *why,
                  bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "%s: %s at byte %zu", self->what, why,
                    at);
}

static int bad(const bal_scan *self, const char *why, bal_error *err)
{
    return bad_at(self, self->at, why, err);
}

char bal_scan_peek(bal_scan *self)
{
    while (self->at < self->len) {
        char c = self->data[self->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return c;
        self->at++;
    }
    return '\0';
}

int bal_scan_end(bal_scan *self, bal_error *err)
{
    bal_scan_peek(self);
    if (self->at < self->len)
        return bad(self, "something behind the end", err);
    return 0;
}

static int expect(bal_scan *self, char c, bal_error *err)
{
    char why[] = "expected '?'";

    if (bal_scan_peek(self) == c) {
        self->at++;
        return 0;
    }
    why[sizeof(why) - 3] = c;
    return bad(self, why, err);
}

int bal_scan_open(bal_scan *self, char bracket, bal_error *err)
{
    return expect(self, bracket, err);
}

int bal_scan_more(bal_scan *self, char closing, bool first, bool *more,
                  bal_error *err)
{
    char c = bal_scan_peek(self);

    if (c == closing) {
        self->at++;
        *more = false;
        return 0;
    }
    if (first) {
        *more = true;
        return 0;
    }
    if (c != ',')
        return bad(self, "expected ',' or a closing bracket", err);
    self->at++;
    if (bal_scan_peek(self) == closing)
        return bad(self, "a trailing comma", err);
    *more = true;
    return 0;
}

/* ---- strings ----------------------------------------------------------- */

/* Letter behind the backslash, what it stands for. */
static const struct {
    char letter;
    char raw;
} escapes[] = {
    { '"', '"' },  { '\\', '\\' }, { '/', '/' },  { 'b', '\b' },
    { 'f', '\f' }, { 'n', '\n' },  { 'r', '\r' }, { 't', '\t' },
};

/* 0: no such escape. */
static char escape_value(char letter)
{
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        if (escapes[i].letter == letter)
            return escapes[i].raw;
    }
    return '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of \uXXXX at text; -1 if it is none. */
static int32_t read_unit(const char *text, size_t len)
{
    int32_t unit = 0;

    if (len < 6 || text[0] != '\\' || text[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int digit = hex_value(text[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* The character that the escape at text stands for, and the escape's length;
 * 0: not a valid escape. */
static size_t read_escape(uint32_t *point, const char *text, size_t len)
{
    if (len < 2)
        return 0;
    if (text[1] != 'u') {
        *point = (uint8_t)escape_value(text[1]);
        return *point ? 2 : 0;
    }
    int32_t unit = read_unit(text, len);
    if (unit < 0 || is_low(unit))
        return 0;
    *point = (uint32_t)unit;
    if (!is_high(unit))
        return 6;
    int32_t low = read_unit(text + 6, len - 6);
    if (!is_low(low))
        return 0;
    *point =
        0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* From the quote at self->at to the one that closes: the bytes between. */
static int check_string(const bal_scan *self, size_t *raw, bool *escaped,
                        bal_error *err)
{
    size_t at = self->at + 1;

    *escaped = false;
    while (at < self->len && self->data[at] != '"') {
        const char *text = self->data + at;
        bool escape = *text == '\\';
        uint32_t point;
        size_t step = escape ? read_escape(&point, text, self->len - at)
                             : bal_utf8_next(&point, text, self->len - at);
        if (!step)
            return bad_at(self, at, escape ? "a bad escape" : "bad utf-8", err);
        if (!escape && point < 0x20)
            return bad_at(self, at, "a control character in a string", err);
        *escaped = *escaped || escape;
        at += step;
    }
    if (at >= self->len)
        return bad(self, "a string without end", err);
    *raw = at - self->at - 1;
    return 0;
}

/* Decode what check_string has passed; the length of the result. */
static size_t decode(char *to, const char *raw, size_t len)
{
    size_t out = 0;

    for (size_t at = 0; at < len;) {
        uint32_t point;
        if (raw[at] != '\\') {
            to[out++] = raw[at++];
            continue;
        }
        size_t step = read_escape(&point, raw + at, len - at);
        if (!step) /* cannot be */
            break;
        at += step;
        out += bal_utf8_put(to + out, point);
    }
    to[out] = '\0';
    return out;
}

int bal_scan_string(bal_scan *self, const char **text, size_t *len,
                    bal_error *err)
{
    size_t raw = 0;
    bool escaped = false;

    if (bal_scan_peek(self) != '"')
        return bad(self, "expected a string", err);
    int rc = check_string(self, &raw, &escaped, err);
    if (rc)
        return rc;
    /* Decoding only shortens: \u00e9 is two bytes, a pair of surrogates four.
     */
    char *copy = bal_arena_copy(self->arena, self->data + self->at + 1, raw);
    if (!copy)
        return bal_fail_memory(err, self->what);
    *len = escaped ? decode(copy, self->data + self->at + 1, raw) : raw;
    *text = copy;
    self->at += raw + 2;
    return 0;
}

int bal_scan_key(bal_scan *self, const char **text, size_t *len, bal_error *err)
{
    int rc = bal_scan_string(self, text, len, err);
    if (rc)
        return rc;

    return expect(self, ':', err);
}

/* ---- numbers ----------------------------------------------------------- */

static bool digit_at(const bal_scan *self, size_t at)
{
    return at < self->len && self->data[at] >= '0' && self->data[at] <= '9';
}

static bool byte_at(const bal_scan *self, size_t at, const char *any)
{
    return at < self->len && self->data[at] && strchr(any, self->data[at]);
}

static size_t behind_digits(const bal_scan *self, size_t at)
{
    while (digit_at(self, at))
        at++;
    return at;
}

int bal_scan_u64(bal_scan *self, uint64_t *value, bal_error *err)
{
    uint64_t sum = 0;

    bal_scan_peek(self);
    size_t end = behind_digits(self, self->at);
    bool zero = byte_at(self, self->at, "0");
    if (end == self->at || (zero && end > self->at + 1) ||
        byte_at(self, end, ".eE"))
        return bad(self, "expected a whole number", err);
    for (size_t at = self->at; at < end; at++) {
        if (!bal_mul(&sum, sum, 10) ||
            !bal_add(&sum, sum, (uint64_t)(self->data[at] - '0')))
            return bad(self, "a number that is too large", err);
    }
    self->at = end;
    *value = sum;
    return 0;
}

static int skip_number(bal_scan *self, bal_error *err)
{
    size_t at = self->at + byte_at(self, self->at, "-");
    size_t end = behind_digits(self, at);

    if (end == at || (byte_at(self, at, "0") && end > at + 1))
        return bad(self, "a bad number", err);
    if (byte_at(self, end, ".")) {
        at = end + 1;
        end = behind_digits(self, at);
        if (end == at)
            return bad(self, "a bad number", err);
    }
    if (byte_at(self, end, "eE")) {
        at = end + 1;
        at += byte_at(self, at, "+-");
        end = behind_digits(self, at);
        if (end == at)
            return bad(self, "a bad number", err);
    }
    self->at = end;
    return 0;
}

/* ---- passing over ------------------------------------------------------ */

static int skip_string(bal_scan *self, bal_error *err)
{
    size_t raw = 0;
    bool escaped = false;

    if (bal_scan_peek(self) != '"')
        return bad(self, "expected a string", err);
    int rc = check_string(self, &raw, &escaped, err);
    if (rc)
        return rc;
    self->at += raw + 2;
    return 0;
}

static const char *const words[] = { "true", "false", "null" };

/* A value that is no array or object. */
static int skip_scalar(bal_scan *self, bal_error *err)
{
    if (bal_scan_peek(self) == '"')
        return skip_string(self, err);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if (self->len - self->at >= len &&
            !memcmp(self->data + self->at, words[i], len)) {
            self->at += len;
            return 0;
        }
    }
    if (!byte_at(self, self->at, "-0123456789"))
        return bad(self, "expected a value", err);
    return skip_number(self, err);
}

/* The brackets that are open in a value that is being passed over. */
typedef struct nest {
    char closing[LEVELS];
    unsigned depth;
    unsigned most;
} nest;

/* A scalar, or the opening bracket of more. *opened tells which. */
static int skip_start(bal_scan *self, nest *open, bool *opened, bal_error *err)
{
    char c = bal_scan_peek(self);

    *opened = c == '{' || c == '[';
    if (!*opened)
        return skip_scalar(self, err);
    if (open->depth == open->most)
        return bad(self, "nested too deep", err);
    open->closing[open->depth++] = c == '{' ? '}' : ']';
    self->at++;
    return 0;
}

int bal_scan_skip(bal_scan *self, unsigned depth, bal_error *err)
{
    nest open;
    bool first;

    open.depth = 0;
    open.most = (unsigned)bal_min(depth, LEVELS);
    int rc = skip_start(self, &open, &first, err);
    while (!rc && open.depth) {
        char closing = open.closing[open.depth - 1];
        bool more = false;

        rc = bal_scan_more(self, closing, first, &more, err);
        first = false;
        if (!rc && !more)
            open.depth--;
        if (rc || !more)
            continue;
        if (closing == '}')
            rc = skip_string(self, err);
        if (!rc && closing == '}')
            rc = expect(self, ':', err);
        if (!rc)
            rc = skip_start(self, &open, &first, err);
    }
    return rc;
}
