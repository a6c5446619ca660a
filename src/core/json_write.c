/* JSON out: punctuation from where the writer stands, not from its callers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "core/utf8.h"

enum { LEVELS = sizeof(((bal_json *)NULL)->filled) };

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* The two-character escapes of RFC 8785; other controls are \u00xx. */
static const struct {
    char raw;
    char letter;
} escapes[] = {
    { '"', '"' },  { '\\', '\\' }, { '\b', 'b' }, { '\t', 't' },
    { '\n', 'n' }, { '\f', 'f' },  { '\r', 'r' },
};

static int quote_escape(bal_buf *to, char c, bal_error *err)
{
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        if (escapes[i].raw == c)
            return bal_buf_format(to, err, "\\%c", escapes[i].letter);
    }
    return bal_buf_format(to, err, "\\u%04x", (uint8_t)c);
}

/* The length of what can be copied as it is. */
static size_t plain_length(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        uint32_t point;
        size_t step = bal_utf8_next(&point, text + at, len - at);
        if (!step || point < 0x20 || point == '"' || point == '\\')
            break;
        at += step;
    }
    return at;
}

int bal_json_quote(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    int rc = bal_buf_text(to, "\"", err);

    for (size_t at = 0; at < len && !rc; at++) {
        size_t plain = plain_length(text + at, len - at);
        rc = bal_buf_append(to, text + at, plain, err);
        at += plain;
        if (rc || at == len)
            break;
        rc = (uint8_t)text[at] < 0x80 ? quote_escape(to, text[at], err)
                                      : bal_buf_text(to, replacement, err);
    }
    return rc ? rc : bal_buf_text(to, "\"", err);
}

void bal_json_begin(bal_json *self, bal_buf *to, unsigned indent)
{
    *self = (bal_json){ .to = to, .indent = indent };
}

static void put(bal_json *self, const char *text, size_t len)
{
    if (!self->rc)
        self->rc = bal_buf_append(self->to, text, len, &self->err);
}

static void put_text(bal_json *self, const char *text)
{
    put(self, text, strlen(text));
}

static void new_line(bal_json *self)
{
    if (!self->indent)
        return;
    put_text(self, "\n");
    for (unsigned i = 0; i < self->depth * self->indent; i++)
        put_text(self, " ");
}

/* What stands between the last value and the next key or element. */
static void before(bal_json *self)
{
    if (self->keyed || !self->depth) {
        self->keyed = false;
        return;
    }
    if (self->filled[self->depth - 1])
        put_text(self, ",");
    self->filled[self->depth - 1] = true;
    new_line(self);
}

static void open_level(bal_json *self, const char *opening, char closing)
{
    before(self);
    if (self->depth == LEVELS && !self->rc)
        self->rc = bal_fail(&self->err, BAL_EINVAL,
                            "json of more than %d levels", LEVELS);
    if (self->rc)
        return;
    put_text(self, opening);
    self->filled[self->depth] = false;
    self->closing[self->depth] = closing;
    self->depth++;
}

void bal_json_object(bal_json *self)
{
    open_level(self, "{", '}');
}

void bal_json_array(bal_json *self)
{
    open_level(self, "[", ']');
}

void bal_json_close(bal_json *self)
{
    if (self->rc || !self->depth)
        return;
    self->depth--;
    if (self->filled[self->depth])
        new_line(self);
    put(self, &self->closing[self->depth], 1);
    self->keyed = false;
}

static void colon(bal_json *self)
{
    put_text(self, self->indent ? ": " : ":");
    self->keyed = true;
}

void bal_json_key(bal_json *self, const char *key)
{
    before(self);
    if (!self->rc)
        self->rc = bal_json_quote(self->to, key, strlen(key), &self->err);
    colon(self);
}

void bal_json_string(bal_json *self, const char *text)
{
    before(self);
    if (!text)
        put_text(self, "null");
    else if (!self->rc)
        self->rc = bal_json_quote(self->to, text, strlen(text), &self->err);
}

static void word(bal_json *self, const char *text)
{
    before(self);
    put_text(self, text);
}

void bal_json_id(bal_json *self, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];

    if (id)
        bal_id_hex(hex, id);
    bal_json_string(self, id ? hex : NULL);
}

void bal_json_u64(bal_json *self, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    word(self, text);
}

void bal_json_i64(bal_json *self, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    word(self, text);
}

void bal_json_f64(bal_json *self, double value)
{
    char text[32];

    bal_f64_text(text, value);
    word(self, isfinite(value) ? text : "null");
}

void bal_json_bool(bal_json *self, bool value)
{
    word(self, value ? "true" : "false");
}

void bal_json_null(bal_json *self)
{
    word(self, "null");
}

static const char space[] = " \t\r\n";

/* The length of a string with its quotes, or of a number or word. */
static size_t token_length(const char *text, size_t len)
{
    size_t at = 1;

    if (text[0] != '"') {
        while (at < len && !strchr(" \t\r\n,:]}", text[at]))
            at++;
        return at;
    }
    while (at < len && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return bal_min(at + 1, len);
}

/* A bracket of the copied text; base is the depth that it may not leave. */
static void copy_bracket(bal_json *self, char bracket, unsigned base)
{
    if (bracket == '{') {
        bal_json_object(self);
        return;
    }
    if (bracket == '[') {
        bal_json_array(self);
        return;
    }
    if (self->depth > base && self->closing[self->depth - 1] == bracket) {
        bal_json_close(self);
        return;
    }
    if (!self->rc)
        self->rc = bal_fail(&self->err, BAL_EINVAL, "json that is not valid");
}

/* Tokens one by one into where the writer stands: no tree, no recursion. */
static void copy(bal_json *self, const char *text, size_t len)
{
    unsigned base = self->depth;

    for (size_t at = 0; at < len && !self->rc;) {
        if (strchr(" \t\r\n,", text[at])) {
            at++;
        } else if (text[at] == ':') {
            colon(self);
            at++;
        } else if (strchr("{}[]", text[at])) {
            copy_bracket(self, text[at++], base);
        } else {
            size_t token = token_length(text + at, len - at);
            before(self);
            put(self, text + at, token);
            at += token;
        }
    }
    if (!self->rc && self->depth != base)
        self->rc = bal_fail(&self->err, BAL_EINVAL, "json that is not valid");
}

void bal_json_raw(bal_json *self, const char *json)
{
    copy(self, json, strlen(json));
}

void bal_json_members(bal_json *self, const char *json)
{
    const char *start = json + strspn(json, space);
    size_t len = strlen(start);

    while (len && strchr(space, start[len - 1]))
        len--;
    if (len >= 2 && start[0] == '{' && start[len - 1] == '}')
        copy(self, start + 1, len - 2);
    else if (!self->rc)
        self->rc = bal_fail(&self->err, BAL_EINVAL, "json that is no object");
}

int bal_json_end(bal_json *self, bal_error *err)
{
    while (self->depth && !self->rc)
        bal_json_close(self);
    if (self->rc && err)
        *err = self->err;
    return self->rc;
}
