/* The text is passed over, never parsed into a tree: what is found is where a
 * value begins and ends. A tree would lose how things were written. */
#include "core/json_edit.h"

#include <string.h>

#include "core/error.h"
#include "core/json.h"

enum { LEVELS = 1024 };

typedef struct span {
    size_t start, end;
} span;

/* What was found of a member, and of the object that it is in or would be in:
 * how the last of its members is laid out. */
typedef struct place {
    bool found;
    span value;      /* of the member, if found */
    size_t members;  /* of the object */
    span gap;        /* between '{' or ',' and the last key */
    span colon;      /* between the last key and its value */
    size_t last_end; /* behind the last value; behind '{' if there is none */
} place;

static size_t here(bal_scan *scan)
{
    bal_scan_peek(scan);
    return scan->at;
}

/* Whether the key between the quotes is name; escapes are rare, so only keys
 * that have some are decoded. */
static int key_is(bool *same, const bal_scan *scan, span key, const char *name,
                  size_t len, bal_error *err)
{
    const char *raw = scan->data + key.start + 1;
    size_t raw_len = key.end - key.start - 2;

    if (!memchr(raw, '\\', raw_len)) {
        *same = raw_len == len && !memcmp(raw, name, len);
        return 0;
    }
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_scan decoding = { scan->data, scan->len, key.start, &arena,
                          scan->what };
    const char *text = NULL;
    size_t text_len = 0;
    int rc = bal_scan_string(&decoding, &text, &text_len, err);
    if (rc)
        return rc;
    *same = text_len == len && !memcmp(text, name, len);
    return 0;
}

/* One member, from what is behind '{' or ','. */
static int look_at_member(place *out, bal_scan *scan, size_t behind,
                          const char *name, size_t len, bal_error *err)
{
    span key = { here(scan), 0 };
    bool same = false;

    if (bal_scan_peek(scan) != '"')
        return bal_scan_open(scan, '"', err);
    int rc = bal_scan_skip(scan, 0, err);
    key.end = scan->at;
    if (!rc)
        rc = key_is(&same, scan, key, name, len, err);
    if (!rc)
        rc = bal_scan_open(scan, ':', err);
    if (rc)
        return rc;
    span value = { here(scan), 0 };
    rc = bal_scan_skip(scan, LEVELS, err);
    value.end = scan->at;
    out->gap = (span){ behind, key.start };
    out->colon = (span){ key.end, value.start };
    out->last_end = value.end;
    out->members++;
    if (!same)
        return rc;
    out->found = true;
    out->value = value;
    return rc;
}

/* The member `name` of the object that starts at `at`. */
static int look_in_object(place *out, bal_scan *scan, size_t at,
                          const char *name, size_t len, bal_error *err)
{
    bool more = false;

    memset(out, 0, sizeof(*out));
    scan->at = at;
    int rc = bal_scan_open(scan, '{', err);
    out->last_end = scan->at;
    for (bool first = true; !rc; first = false) {
        size_t behind = first ? scan->at : here(scan) + 1;

        rc = bal_scan_more(scan, '}', first, &more, err);
        if (rc || !more)
            return rc;
        rc = look_at_member(out, scan, behind, name, len, err);
    }
    return rc;
}

/* *object is false if the path leads through what is no object. */
static int find(place *out, bool *object, bal_bytes text, const char *path,
                const char *what, bal_error *err)
{
    bal_scan scan = { text.data, text.len, 0, NULL, what };
    size_t at = here(&scan);

    *object = true;
    for (;;) {
        size_t len = strcspn(path, ".");

        if (at >= scan.len || scan.data[at] != '{')
            *object = false;
        if (!*object)
            return 0;
        int rc = look_in_object(out, &scan, at, path, len, err);
        if (rc || !path[len])
            return rc;
        /* A parent that is lacking is not made up. */
        *object = out->found;
        at = out->value.start;
        path += len + 1;
    }
}

int bal_json_find(bal_bytes *out, bal_bytes text, const char *path,
                  const char *what, bal_error *err)
{
    const char *data = text.data;
    bool object = false;
    place at;
    int rc = find(&at, &object, text, path, what, err);
    if (rc)
        return rc;

    *out = (bal_bytes){ 0 };
    if (object && at.found)
        *out =
            (bal_bytes){ data + at.value.start, at.value.end - at.value.start };
    return 0;
}

/* ---- writing ------------------------------------------------------------ */

static int put_span(bal_buf *out, const char *text, span part, bal_error *err)
{
    return bal_buf_append(out, text + part.start, part.end - part.start, err);
}

/* What stands before an added key. A first member may be told from the bracket
 * without a space in a text that has one behind every comma. */
static int put_gap(bal_buf *out, const char *text, const place *at,
                   bal_error *err)
{
    size_t len = at->gap.end - at->gap.start;

    if (at->members > 1 || (len && memchr(text + at->gap.start, '\n', len)))
        return put_span(out, text, at->gap, err);
    bool roomy = at->colon.end - at->colon.start > 1;
    return bal_buf_text(out, roomy ? " " : "", err);
}

static int put_member(bal_buf *out, const char *text, const place *at,
                      const bal_json_change *change, bal_error *err)
{
    const char *dot = strrchr(change->path, '.');
    const char *key = dot ? dot + 1 : change->path;
    int rc = 0;

    if (at->members)
        rc = bal_buf_text(out, ",", err);
    if (!rc && at->members)
        rc = put_gap(out, text, at, err);
    if (!rc)
        rc = bal_json_quote(out, key, strlen(key), err);
    if (!rc && at->members)
        rc = put_span(out, text, at->colon, err);
    if (!rc && !at->members)
        rc = bal_buf_text(out, ": ", err);
    if (rc)
        return rc;
    return bal_buf_text(out, change->value, err);
}

static int apply(bal_buf *out, bal_bytes text, const bal_json_change *change,
                 const char *what, bal_error *err)
{
    const char *data = text.data;
    bool object = false;
    place at;
    int rc = find(&at, &object, text, change->path, what, err);
    if (rc)
        return rc;

    if (!object || !(at.found || change->add))
        return bal_buf_append(out, data, text.len, err);
    span cut = { at.last_end, at.last_end };
    if (at.found)
        cut = at.value;
    rc = bal_buf_append(out, data, cut.start, err);
    if (!rc && at.found)
        rc = bal_buf_text(out, change->value, err);
    if (!rc && !at.found)
        rc = put_member(out, data, &at, change, err);
    if (rc)
        return rc;
    return bal_buf_append(out, data + cut.end, text.len - cut.end, err);
}

static int check(bal_bytes text, const char *what, bal_error *err)
{
    bal_scan scan = { text.data, text.len, 0, NULL, what };
    int rc = bal_scan_skip(&scan, LEVELS, err);
    if (rc)
        return rc;

    return bal_scan_end(&scan, err);
}

int bal_json_edit(bal_buf *out, bal_bytes text, const bal_json_change *changes,
                  size_t count, const char *what, bal_error *err)
{
    BAL_LOCAL(bal_buf) now = { 0 };
    int rc = check(text, what, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++) {
        BAL_LOCAL(bal_buf) next = { 0 };
        bal_bytes from = i ? (bal_bytes){ now.data, now.len } : text;

        /* What is put in is read again by the changes that follow. */
        bal_bytes value = { changes[i].value, strlen(changes[i].value) };
        rc = check(value, what, err);
        if (!rc)
            rc = apply(&next, from, &changes[i], what, err);
        if (rc)
            return rc;
        bal_buf swap = now;
        now = next;
        next = swap;
    }
    if (!count)
        return bal_buf_append(out, text.data, text.len, err);
    return bal_buf_append(out, now.data, now.len, err);
}
