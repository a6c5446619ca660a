/* Failure by value. Texts are built in a buffer of their own, because what is
 * formatted may be the text that is there; control characters are written as
 * \xNN, so that a name out of a file cannot break the one line. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 2048 };

static const bal_code_row codes[] = {
    { BAL_OK, "ok", 0, 200, "" },
    { BAL_EINVAL, "usage", 2, 400, "Usage" },
    { BAL_ENOTFOUND, "not-found", 3, 404, "NotFound" },
    /* Not 403: that would tell a stranger that the thing is there. */
    { BAL_EDENIED, "denied", 3, 404, "Denied" },
    { BAL_EEXISTS, "conflict", 5, 409, "Conflict" },
    { BAL_ECONFLICT, "conflict", 5, 409, "Conflict" },
    { BAL_EBROKEN, "unsupported", 9, 409, "Unsupported" },
    { BAL_ECORRUPT, "corrupt", 6, 500, "Corrupt" },
    { BAL_EIO, "io", 7, 500, "IOFailure" },
    { BAL_EBUSY, "busy", 8, 503, "Busy" },
    { BAL_EUNSUPPORTED, "unsupported", 9, 409, "Unsupported" },
    { BAL_ENOMEM, "io", 7, 503, "IOFailure" },
    { BAL_ECANCELLED, "cancelled", 130, 503, "Cancelled" },
};

static const struct {
    int error;
    int code;
} errnos[] = {
    { ENOENT, BAL_ENOTFOUND },  { EEXIST, BAL_EEXISTS },
    { ENOTEMPTY, BAL_EEXISTS }, { ENOMEM, BAL_ENOMEM },
    { EINTR, BAL_ECANCELLED },
};

/* The log sink: one of the tree's few globals that change. */
static struct {
    bal_log_fn *fn;
    void *ctx;
} sink;

const bal_code_row *bal_code_find(int code)
{
    const bal_code_row *io = NULL;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].code == code)
            return &codes[i];
        if (codes[i].code == BAL_EIO)
            io = &codes[i];
    }
    return io;
}

/* Where to cut text at len, so that no character is cut in two. */
static size_t whole_characters(const char *text, size_t len)
{
    size_t start = len;

    while (start && len - start < 3 && ((uint8_t)text[start] & 0xc0) == 0x80)
        start--;
    return start;
}

/* Copy text to a field of room bytes as one line. */
static void set_line(char *to, size_t room, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    size_t len = 0;
    size_t at = 0;

    for (; text[at]; at++) {
        uint8_t byte = (uint8_t)text[at];
        bool control = byte < 0x20 || byte == 0x7f;

        if (len + (control ? 4 : 1) >= room)
            break;
        if (!control) {
            to[len++] = (char)byte;
            continue;
        }
        to[len++] = '\\';
        to[len++] = 'x';
        to[len++] = hex[byte >> 4];
        to[len++] = hex[byte & 15];
    }
    if (text[at] && ((uint8_t)text[at] & 0xc0) == 0x80) {
        size_t cut = at - whole_characters(text, at);
        len -= cut < len ? cut : len;
    }
    to[len] = '\0';
}

int bal_fail(bal_error *err, int code, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;

    if (!err)
        return code;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    err->code = code;
    err->hint[0] = '\0';
    set_line(err->text, sizeof(err->text), line);
    return code;
}

static int code_of_errno(int error)
{
    for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
        if (errnos[i].error == error)
            return errnos[i].code;
    }
    return BAL_EIO;
}

int bal_fail_errno(bal_error *err, const char *format, ...)
{
    int error = errno;
    int code = code_of_errno(error);
    char line[LINE_MAX_BYTES];
    va_list args;

    if (!err)
        return code;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    /* Not strerror: its text depends on the locale. */
    const char *why = strerrordesc_np(error);
    if (!why)
        return bal_fail(err, code, "%s: error %d", line, error);
    char first = why[0];
    if (first >= 'A' && first <= 'Z')
        first = (char)(first + ('a' - 'A'));
    return bal_fail(err, code, "%s: %c%s", line, first, why + !!first);
}

int bal_fail_memory(bal_error *err, const char *what)
{
    return bal_fail(err, BAL_ENOMEM, "%s: not enough memory", what);
}

int bal_within(bal_error *err, int rc, const char *format, ...)
{
    char where[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES + sizeof(err->text) + 8];
    va_list args;

    if (!err)
        return rc;
    va_start(args, format);
    vsnprintf(where, sizeof(where), format, args);
    va_end(args);
    snprintf(line, sizeof(line), "%s%s%s", where, err->text[0] ? ": " : "",
             err->text);
    err->code = rc;
    set_line(err->text, sizeof(err->text), line);
    return rc;
}

int bal_hint(bal_error *err, int rc, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;

    if (!err)
        return rc;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    set_line(err->hint, sizeof(err->hint), line);
    return rc;
}

void bal_log_to(bal_log_fn *fn, void *ctx)
{
    sink.fn = fn;
    sink.ctx = ctx;
}

static void say(bal_level level, const char *area, const char *format,
                va_list args) __attribute__((format(printf, 3, 0)));

static void say(bal_level level, const char *area, const char *format,
                va_list args)
{
    char raw[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES];

    if (!sink.fn)
        return;
    vsnprintf(raw, sizeof(raw), format, args);
    set_line(line, sizeof(line), raw);
    sink.fn(sink.ctx, level, area, line);
}

void bal_warn(const char *area, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(BAL_WARNING, area, format, args);
    va_end(args);
}

void bal_trace(const char *area, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(BAL_DEBUG, area, format, args);
    va_end(args);
}
