/* Results go through one buffer to stdout, so that a full disk and a reader
 * that went away are noticed; whatever came out of a file, a name or a message
 * goes through bal_printable first. */
#include "cli/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/signals.h"
#include "core/str.h"

enum { ENOUGH = 64 * 1024, SHORT_ID = 12 };

static const char *const paints[] = {
    [BAL_PAINT_ID] = "\033[33m",
    [BAL_PAINT_KIND] = "\033[36m",
    [BAL_PAINT_ERROR] = "\033[1;31m",
    [BAL_PAINT_HINT] = "\033[1m",
};
static const char plain[] = "\033[0m";

bool bal_color_wanted(const char *when, int fd)
{
    const char *none = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (when && strcmp(when, "auto") != 0)
        return !strcmp(when, "always");
    if (none && none[0])
        return false;
    return isatty(fd) && (!term || strcmp(term, "dumb") != 0);
}

void bal_out_init(bal_out *self, const char *color, bool json)
{
    self->fd = STDOUT_FILENO;
    self->json = json;
    self->terminal = isatty(STDOUT_FILENO);
    self->color = bal_color_wanted(color, STDOUT_FILENO);
}

void bal_out_keep(bal_out *self, int rc, const bal_error *err)
{
    if (!rc || self->rc)
        return;
    self->rc = rc;
    self->err = *err;
}

/* Wait until a descriptor that does not block takes bytes again. */
static bool wait_for(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLOUT };

    return poll(&one, 1, -1) >= 0 || errno == EINTR;
}

bool bal_out_stopped(bal_out *self)
{
    self->cut |= bal_signals_pending() != 0;
    return self->rc || self->gone || self->cut;
}

/* As much as is taken at once; how much that was. */
static size_t send_some(bal_out *self, const char *data, size_t len)
{
    bal_error err = { 0 };

    ssize_t n = write(self->fd, data, len);
    if (n >= 0)
        return (size_t)n;
    if (errno == EPIPE) {
        self->gone = true;
        return 0;
    }
    if (errno == EINTR || (errno == EAGAIN && wait_for(self->fd)))
        return 0;
    int rc = bal_fail_errno(&err, "writing the result");
    bal_out_keep(self, rc == BAL_ENOMEM ? rc : BAL_EIO, &err);
    return 0;
}

/* All of it, unless the reader is gone or a signal came. */
static void send_all(bal_out *self, const char *data, size_t len)
{
    size_t at = 0;

    while (at < len && !bal_out_stopped(self))
        at += send_some(self, data + at, len - at);
}

static void flush(bal_out *self)
{
    send_all(self, self->buf.data, self->buf.len);
    bal_buf_clear(&self->buf);
}

/* True for a short result that is taken without waiting. What was done is told
 * even if a signal came just behind the deed: it cannot be undone any more. */
static bool is_quickly_said(const bal_out *self)
{
    struct pollfd one = { .fd = self->fd, .events = POLLOUT };

    return self->buf.len && self->buf.len <= PIPE_BUF && !self->rc &&
           !self->gone && !self->cut && poll(&one, 1, 0) == 1;
}

void bal_out_relax(bal_out *self)
{
    if (self->buf.len >= ENOUGH && !self->held)
        flush(self);
}

void bal_out_again(bal_out *self, const char *text, size_t len)
{
    bal_error err = { 0 };

    bal_out_keep(self, bal_buf_append(&self->buf, text, len, &err), &err);
    bal_out_relax(self);
}

void bal_out_puts(bal_out *self, const char *text)
{
    bal_error err = { 0 };

    bal_out_keep(self, bal_buf_text(&self->buf, text, &err), &err);
    bal_out_relax(self);
}

void bal_out_text(bal_out *self, const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    bal_out_puts(self, line);
}

static void safe(bal_out *self, const char *text, size_t len)
{
    bal_error err = { 0 };

    bal_out_keep(self, bal_printable(&self->buf, text, len, false, &err), &err);
}

void bal_out_safe(bal_out *self, const char *text)
{
    safe(self, text, strlen(text));
    bal_out_relax(self);
}

void bal_out_subject(bal_out *self, const char *text)
{
    safe(self, text, strcspn(text, "\n"));
    bal_out_relax(self);
}

void bal_out_lines(bal_out *self, const char *indent, const char *text)
{
    const char *at = text;

    while (*at) {
        size_t len = strcspn(at, "\n");
        bal_out_text(self, "%s", indent);
        safe(self, at, len);
        bal_out_text(self, "\n");
        at += at[len] ? len + 1 : len;
    }
}

void bal_out_paint(bal_out *self, bal_paint paint, const char *text)
{
    if (self->color)
        bal_out_text(self, "%s%s%s", paints[paint], text, plain);
    else
        bal_out_text(self, "%s", text);
}

void bal_out_id(bal_out *self, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1] = "-";

    if (id) {
        bal_id_hex(hex, id);
        hex[SHORT_ID] = '\0';
    }
    bal_out_paint(self, BAL_PAINT_ID, hex);
}

void bal_out_time(bal_out *self, int64_t at)
{
    char text[40];

    if (self->terminal)
        bal_clock_local(text, at);
    else
        bal_clock_rfc3339(text, at);
    bal_out_text(self, "%s", text);
}

void bal_out_bytes(bal_out *self, const void *data, size_t len)
{
    flush(self);
    send_all(self, data, len);
}

int bal_out_end(bal_out *self, bal_error *err)
{
    size_t said = 0;

    if (is_quickly_said(self))
        said = send_some(self, self->buf.data, self->buf.len);
    if (said < self->buf.len)
        send_all(self, self->buf.data + said, self->buf.len - said);
    bal_buf_clear(&self->buf);
    bal_out_unpage(self);
    if (self->rc) {
        if (err)
            *err = self->err;
        return self->rc;
    }
    return 0;
}

void bal_out_done(bal_out *self)
{
    bal_buf_done(&self->buf);
}

/* ---- errors ------------------------------------------------------------- */

/* Nobody is left to tell if stderr does not take it. */
static void to_stderr(const bal_buf *text)
{
    const char *data = text->data;
    size_t len = text->len;

    while (len) {
        ssize_t n = write(STDERR_FILENO, data, len);
        if (n < 0 && errno != EINTR)
            return;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

static int json_error(bal_buf *to, const bal_error *what, int status,
                      const char *word, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "error");
    bal_json_object(&json);
    bal_json_key(&json, "code");
    bal_json_string(&json, word);
    bal_json_key(&json, "exit");
    bal_json_i64(&json, status);
    bal_json_key(&json, "message");
    bal_json_string(&json, what->text);
    bal_json_key(&json, "hint");
    bal_json_string(&json, what->hint[0] ? what->hint : NULL);
    bal_json_close(&json);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    rc = bal_json_harmless(to, 0, err);
    if (rc)
        return rc;
    return bal_buf_text(to, "\n", err);
}

static int text_line(bal_buf *to, const char *label, const char *paint,
                     const char *text, bal_error *err)
{
    int rc = bal_buf_format(to, err, "%s%s%s ", paint ? paint : "", label,
                            paint ? plain : "");
    if (rc)
        return rc;
    rc = bal_printable(to, text, strlen(text), false, err);
    if (rc)
        return rc;
    return bal_buf_text(to, "\n", err);
}

void bal_error_print(const bal_error *err, int status, const char *word,
                     bool json, bool color)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_error own;
    int rc;

    if (json) {
        rc = json_error(&text, err, status, word, &own);
    } else {
        rc =
            text_line(&text, "ballast:", color ? paints[BAL_PAINT_ERROR] : NULL,
                      err->text, &own);
        if (!rc && err->hint[0])
            rc =
                text_line(&text, "hint:", color ? paints[BAL_PAINT_HINT] : NULL,
                          err->hint, &own);
    }
    if (!rc)
        to_stderr(&text);
}
