/* What a person or a program reads: results on stdout, all else on stderr. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/json.h"

/* Results. A failure to write is kept and told by bal_out_end. */
typedef struct bal_out {
    int fd;
    bal_buf buf;
    bool json;
    bool terminal;
    bool color;
    bool gone;       /* the reader went away: nothing more to say */
    bool cut;        /* a signal came before all was said */
    bool held;       /* nothing is sent before the end */
    size_t document; /* where in buf the JSON document begins */
    pid_t pager;     /* 0: none */
    int rc;
    bal_error err;
} bal_out;

typedef enum bal_paint {
    BAL_PAINT_ID,
    BAL_PAINT_KIND,
    BAL_PAINT_ERROR,
    BAL_PAINT_HINT,
} bal_paint;

/* Is colour for fd wanted? when: "auto", "always", "never" or NULL. */
bool bal_color_wanted(const char *when, int fd);

void bal_out_init(bal_out *self, const char *color, bool json);
/* Pipe what follows through $PAGER if stdout is a terminal. */
void bal_out_page(bal_out *self);
/* Wait until the pager is left. */
void bal_out_unpage(bal_out *self);
/* Our own text; nothing out of a file, a name or a message. */
void bal_out_text(bal_out *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, of any length. */
void bal_out_puts(bal_out *self, const char *text);
/* A piece of what was put out before. */
void bal_out_again(bal_out *self, const char *text, size_t len);
/* Anybody's text, made harmless, on one line. */
void bal_out_safe(bal_out *self, const char *text);
/* The first line of anybody's text. */
void bal_out_subject(bal_out *self, const char *text);
/* Anybody's text with its lines, each behind an indent. */
void bal_out_lines(bal_out *self, const char *indent, const char *text);
/* 12 hex digits; "-" for NULL. */
void bal_out_id(bal_out *self, const bal_id *id);
void bal_out_paint(bal_out *self, bal_paint paint, const char *text);
/* In the local zone on a terminal, else as RFC 3339. */
void bal_out_time(bal_out *self, int64_t at);
/* Raw bytes. */
void bal_out_bytes(bal_out *self, const void *data, size_t len);
/* Send what there is if it is much. */
void bal_out_relax(bal_out *self);
/* True: writing failed or a signal came, there is no use in going on. Asked
 * only where there is more to say: then it is cut short. */
bool bal_out_stopped(bal_out *self);
/* Send everything, wait until the pager is left. EIO. */
BAL_CHECK int bal_out_end(bal_out *self, bal_error *err);
void bal_out_done(bal_out *self);

/* A failure to be told by bal_out_end; the first one stays. */
void bal_out_keep(bal_out *self, int rc, const bal_error *err);

/* A JSON document on out: {"schema": "ballast/<command>/1", … */
void bal_doc_open(bal_json *json, bal_out *out, const char *command);
/* The same on one line, for a stream. */
void bal_line_open(bal_json *json, bal_out *out, const char *command);
/* Close it. A document that could not be made is kept as out's failure. */
void bal_doc_close(bal_json *json, bal_out *out);
/* Write what a terminal would act on as \uNNNN, in the JSON that buf holds
 * from `from` on: valid JSON, but not harmless as text. */
BAL_CHECK int bal_json_harmless(bal_buf *buf, size_t from, bal_error *err);

/* "ballast: text" and "hint: …" on stderr, or one JSON object. */
void bal_error_print(const bal_error *err, int status, const char *word,
                     bool json, bool color);

#endif
