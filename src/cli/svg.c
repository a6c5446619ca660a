/* SVG out. */
#include "cli/svg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "core/utf8.h"

enum { MARKUP_MAX = 1024 };

void bal_svg_put(bal_svg *self, const char *format, ...)
{
    char markup[MARKUP_MAX];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(markup, sizeof(markup), format, args);
    va_end(args);
    if (self->rc)
        return;
    if (len < 0 || len >= MARKUP_MAX)
        self->rc = bal_fail(&self->err, BAL_EINVAL, "markup that is too long");
    else
        self->rc = bal_buf_append(self->to, markup, (size_t)len, &self->err);
}

static const struct {
    char raw;
    const char *entity;
} entities[] = {
    { '&', "&amp;" },  { '<', "&lt;" },   { '>', "&gt;" },
    { '"', "&quot;" }, { '\'', "&#39;" },
};

static const char *entity_of(char c)
{
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (entities[i].raw == c)
            return entities[i].entity;
    }
    return NULL;
}

static int put_point(bal_buf *to, uint32_t point, const char *text, size_t len,
                     bal_error *err)
{
    const char *entity = len == 1 ? entity_of(*text) : NULL;

    /* The two that printable text may have, and XML may not. */
    if (point == 0xfffe || point == 0xffff)
        return bal_buf_format(to, err, "\\u{%x}", (unsigned)point);
    return entity ? bal_buf_text(to, entity, err)
                  : bal_buf_append(to, text, len, err);
}

static int put_escaped(bal_buf *to, const char *text, size_t len,
                       bal_error *err)
{
    BAL_LOCAL(bal_buf) safe = { 0 };
    int rc = bal_printable(&safe, text, len, false, err);

    for (size_t at = 0; at < safe.len && !rc;) {
        uint32_t point = 0;
        size_t step = bal_utf8_next(&point, safe.data + at, safe.len - at);
        rc = put_point(to, point, safe.data + at, step, err);
        at += step;
    }
    return rc;
}

static void put_text(bal_svg *self, const char *text, size_t len)
{
    if (!self->rc)
        self->rc = put_escaped(self->to, text, len, &self->err);
}

void bal_svg_text(bal_svg *self, const char *text)
{
    put_text(self, text, strlen(text));
}

static size_t step_of(const char *text)
{
    uint32_t point;
    size_t step = bal_utf8_next(&point, text, strnlen(text, 4));

    return step ? step : 1;
}

static size_t count_points(const char *text)
{
    size_t count = 0;

    for (; *text; text += step_of(text))
        count++;
    return count;
}

static const char *behind_points(const char *text, size_t count)
{
    for (; count; count--)
        text += step_of(text);
    return text;
}

void bal_svg_label(bal_svg *self, double x, double y, const char *class_,
                   const char *text, size_t most)
{
    size_t count = count_points(text);
    size_t half = most / 2;

    bal_svg_put(self, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y,
                class_);
    if (count <= most) {
        bal_svg_text(self, text);
    } else {
        const char *front_end = behind_points(text, half);
        put_text(self, text, (size_t)(front_end - text));
        bal_svg_put(self, "\xe2\x80\xa6");
        bal_svg_text(self, behind_points(text, count - (most - half - 1)));
    }
    bal_svg_put(self, "</text>\n");
}

/* From here on characters are about twice as wide: Hangul and what follows. */
static const uint32_t wide = 0x1100;

double bal_svg_width(const char *text)
{
    double width = 0;

    while (*text) {
        uint32_t point = 0;
        size_t step = bal_utf8_next(&point, text, strnlen(text, 4));

        width += point >= wide ? 2 : 1;
        width += step ? 0 : 3; /* as \xNN */
        text += step ? step : 1;
    }
    return width;
}
