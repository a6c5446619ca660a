/* JSON out: a writer onto a buffer, and the canonical form of RFC 8785 that
 * ids are taken of. JSON in: jansson (settings, configs, metadata), and a
 * strict scanner for what may be large or hostile. */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <jansson.h>

#include "core/buf.h"

/* ---- writing ----------------------------------------------------------- */

/* Commas, colons and indentation look after themselves. A failure (no memory,
 * ceiling) is kept and told by bal_json_end. */
typedef struct bal_json {
    bal_buf *to;
    unsigned indent; /* 0: compact */
    unsigned depth;
    bool filled[64];  /* does the level have a member yet? */
    char closing[64]; /* the level's closing bracket */
    bool keyed;       /* a key was written, its value is next */
    int rc;
    bal_error err;
} bal_json;

void bal_json_begin(bal_json *self, bal_buf *to, unsigned indent);
void bal_json_object(bal_json *self);
void bal_json_array(bal_json *self);
void bal_json_close(bal_json *self); /* the innermost object or array */
void bal_json_key(bal_json *self, const char *key);
void bal_json_string(bal_json *self, const char *text); /* NULL: null */
void bal_json_id(bal_json *self, const bal_id *id);     /* NULL: null */
void bal_json_u64(bal_json *self, uint64_t value);
void bal_json_i64(bal_json *self, int64_t value);
/* Shortest round trip; what is not finite is null. */
void bal_json_f64(bal_json *self, double value);
void bal_json_bool(bal_json *self, bool value);
void bal_json_null(bal_json *self);
/* A value given as JSON text, re-indented. It must be valid. */
void bal_json_raw(bal_json *self, const char *json);
/* The members of an object given as JSON text, into the open object. */
void bal_json_members(bal_json *self, const char *json);
BAL_CHECK int bal_json_end(bal_json *self, bal_error *err);

/* Append the JSON string of text, quotes included. Bytes that are not UTF-8
 * become U+FFFD. */
BAL_CHECK int bal_json_quote(bal_buf *to, const char *text, size_t len,
                             bal_error *err);

/* ---- canonical form ---------------------------------------------------- */

/* RFC 8785 of a value of objects, arrays, strings, integers, booleans, null:
 * members sorted by UTF-16 code units, no white space. A real is EINVAL: floats
 * are recorded as shortest round-trip strings. */
BAL_CHECK int bal_json_canonical(bal_buf *to, const json_t *value,
                                 bal_error *err);

/* Parse text whole: duplicates and trailing bytes refused, depth bounded;
 * ECORRUPT with line and column. `what` is named in the message. */
BAL_CHECK int bal_json_parse(json_t **out, const char *text, size_t len,
                             const char *what, bal_error *err);
/* The same of one line of many, whose number is told for where it is. */
BAL_CHECK int bal_json_line(json_t **out, bal_bytes text, size_t line,
                            const char *what, bal_error *err);
static inline void json_t_free(json_t *value)
{
    json_decref(value);
}
BAL_OWNABLE(json_t)

/* An object with the members of another; NULL: no memory. (What json_copy gives
 * lacks the members for which there was none.) */
static inline json_t *bal_json_copy(json_t *object)
{
    json_t *copy = json_object();

    if (!copy || !json_object_update(copy, object))
        return copy;
    json_decref(copy);
    return NULL;
}

/* ---- scanning ---------------------------------------------------------- */

/* A pull scanner over bytes in memory: no allocation but for the decoded
 * strings, which go to an arena. Strict RFC 8259: UTF-8, no NaN, no trailing
 * comma, no BOM, no control character, no lone surrogate. */
typedef struct bal_scan {
    const char *data;
    size_t len;
    size_t at;        /* byte offset of what is next */
    bal_arena *arena; /* for decoded strings */
    const char *what; /* named in messages */
} bal_scan;

/* Each consumes what it names or fails with ECORRUPT "<what>: … at byte N". */
BAL_CHECK int bal_scan_open(bal_scan *self, char bracket, bal_error *err);
/* After an opening bracket or a value: *more is true if another value (or
 * key) follows, the comma consumed; false if the bracket was closed. first
 * is true right after bal_scan_open. */
BAL_CHECK int bal_scan_more(bal_scan *self, char closing, bool first,
                            bool *more, bal_error *err);
/* A string, decoded (may hold U+0000: len tells). */
BAL_CHECK int bal_scan_string(bal_scan *self, const char **text, size_t *len,
                              bal_error *err);
/* A string and the colon behind it. */
BAL_CHECK int bal_scan_key(bal_scan *self, const char **text, size_t *len,
                           bal_error *err);
/* An unsigned integer: no sign, leading zero, point or exponent. */
BAL_CHECK int bal_scan_u64(bal_scan *self, uint64_t *value, bal_error *err);
/* Any value, passed over; depth levels at most. */
BAL_CHECK int bal_scan_skip(bal_scan *self, unsigned depth, bal_error *err);
/* The first byte of the next value, white space passed over; 0 at the end. */
char bal_scan_peek(bal_scan *self);
/* Nothing but white space may be left. */
BAL_CHECK int bal_scan_end(bal_scan *self, bal_error *err);

#endif
