/* SVG out: markup as it is written here, texts of others only escaped. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include "core/buf.h"

/* A failure (no memory, ceiling) is kept and told at the end. */
typedef struct bal_svg {
    bal_buf *to;
    int rc;
    bal_error err;
} bal_svg;

/* Markup. Numbers have a point in the program's locale, which is "C". */
void bal_svg_put(bal_svg *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Any text between tags or in an attribute's quotes: what is a control
 * character, moves text about, is not UTF-8 or may not be in XML is written out
 * as \xNN or \u{N}. */
void bal_svg_text(bal_svg *self, const char *text);
/* <text class="…">, shortened in the middle to `most` characters. */
void bal_svg_label(bal_svg *self, double x, double y, const char *class_,
                   const char *text, size_t most);
/* Columns that a text takes, in widths of a digit. */
double bal_svg_width(const char *text);

#endif
