/* Probes one by one: before on the left, after on the right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli/diff_words.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"

enum { NARROWEST = 60, WIDEST = 200, USUAL = 100, INDENT = 4, GAP = 3 };

/* Columns of what is written to. */
static size_t width_of(const bal_out *out)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size = { .ws_col = 0 };
    uint64_t told = 0;

    if (out->terminal && !ioctl(out->fd, TIOCGWINSZ, &size) && size.ws_col)
        told = size.ws_col;
    else if (!columns || bal_parse_u64(&told, columns, NULL))
        told = USUAL;
    return (size_t)bal_min(WIDEST, bal_max(NARROWEST, told));
}

/* A column's text, cut line by line. */
typedef struct column {
    bal_buf text; /* fit for a terminal */
    size_t at;
} column;

static void column_done(column *self)
{
    bal_buf_done(&self->text);
}

static bool is_inside(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Bytes of the next line, `room` code points at most; *shown: how many. Broken
 * behind a blank where there is one. */
static size_t next_line(const column *self, size_t room, size_t *shown)
{
    const char *text = bal_buf_string(&self->text) + self->at;
    size_t points = 0;
    size_t blank = 0;
    size_t blank_points = 0;
    size_t len = 0;

    while (text[len] && text[len] != '\n' && points < room) {
        bool is_blank = text[len] == ' ';
        len++;
        while (is_inside(text[len]))
            len++;
        points++;
        if (is_blank) {
            blank = len;
            blank_points = points;
        }
    }
    bool full = text[len] && text[len] != '\n';
    *shown = full && blank ? blank_points : points;
    return full && blank ? blank : len;
}

static void put_line(bal_out *out, column *self, size_t room, bool last)
{
    const char *text = bal_buf_string(&self->text) + self->at;
    size_t shown = 0;
    size_t len = next_line(self, room, &shown);

    bal_out_bytes(out, text, len);
    self->at += len + (text[len] == '\n');
    if (!last)
        bal_out_text(out, "%*s", (int)(room - shown), "");
}

static bool has_more(const column *self)
{
    return self->at < self->text.len;
}

static int make(column *out, const char *text, bal_error *err)
{
    int rc = bal_printable(&out->text, text, strlen(text), true, err);

    return rc || out->text.len ? rc : bal_buf_text(&out->text, "(empty)", err);
}

static void put_row(bal_out *out, const bal_diff_answer *row, size_t room)
{
    BAL_LOCAL(column) before = { .at = 0 };
    BAL_LOCAL(column) after = { .at = 0 };
    bal_error err = { 0 };
    int rc = make(&before, row->before, &err);

    if (!rc)
        rc = make(&after, row->after, &err);
    if (rc) {
        bal_out_keep(out, rc, &err);
        return;
    }
    while (has_more(&before) || has_more(&after)) {
        bal_out_text(out, "%*s", INDENT, "");
        put_line(out, &before, room, false);
        bal_out_text(out, " | ");
        put_line(out, &after, room, true);
        bal_out_text(out, "\n");
    }
}

static void put_head(bal_out *out, const bal_diff_answer *row)
{
    bal_out_text(out, "  ");
    bal_out_safe(out, row->probe->id);
    if (row->moved)
        bal_out_text(out, "  moved, similarity %.2f", row->similarity);
    else
        bal_out_text(out, "  the same");
    if (!isnan(row->kld))
        bal_out_text(out, ", KL %.4g over %llu tokens", row->kld,
                     (unsigned long long)row->tokens);
    if (row->unsure)
        bal_out_text(out, ", not the same when asked again");
    bal_out_text(out, "\n");
}

void bal_diff_answers_table(bal_out *out, const bal_diff_answers *self)
{
    const bal_diff_answer *rows = (const void *)self->rows.data;
    size_t room = (width_of(out) - INDENT - GAP) / 2;

    for (size_t i = 0; i < self->rows.len / sizeof(*rows); i++) {
        put_head(out, &rows[i]);
        put_row(out, &rows[i], room);
        bal_out_relax(out);
        if (bal_out_stopped(out))
            return;
    }
}
