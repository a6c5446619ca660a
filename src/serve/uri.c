/* Decoded by segment and by field, after they were cut apart: so an escaped '/'
 * or '&' never makes two of one. */
#include "serve/uri.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of len that are left; how many it took, 0: a bad escape. */
static size_t decode_one(char *to, const char *text, size_t len, bool form)
{
    *to = *text;
    if (form && *text == '+')
        *to = ' ';
    if (*text != '%')
        return 1;
    int high = len > 2 ? digit(text[1]) : -1;
    int low = len > 2 ? digit(text[2]) : -1;
    if (high < 0 || low < 0 || high + low == 0)
        return 0;
    *to = (char)(high * 16 + low);
    return 3;
}

static int decode(const char **out, bal_bytes from, bool form, bal_arena *arena,
                  bal_error *err)
{
    const char *text = from.data;
    char *to = bal_arena_alloc(arena, from.len + 1);
    size_t len = 0;

    if (!to)
        return bal_fail_memory(err, "reading a path");
    for (size_t at = 0; at < from.len;) {
        size_t took = decode_one(to + len, text + at, from.len - at, form);
        if (!took)
            return bal_fail(err, BAL_EINVAL, "a bad escape in the path");
        at += took;
        len++;
    }
    to[len] = '\0';
    if (!bal_utf8_valid(to, len))
        return bal_fail(err, BAL_EINVAL, "the path is not UTF-8");
    *out = to;
    return 0;
}

/* Where the next of these bytes is, or the end. */
static size_t until(bal_bytes text, size_t from, char mark)
{
    const char *data = text.data;

    while (from < text.len && data[from] != mark)
        from++;
    return from;
}

static bool is_dots(const char *segment)
{
    return !strcmp(segment, ".") || !strcmp(segment, "..");
}

static int parse_path(bal_uri *out, bal_bytes path, bal_arena *arena,
                      bal_error *err)
{
    const char *data = path.data;

    for (size_t at = 1; at <= path.len;) {
        size_t end = until(path, at, '/');
        const char *segment = NULL;
        if (path.len == 1)
            return 0;
        int rc = decode(&segment, (bal_bytes){ data + at, end - at }, false,
                        arena, err);
        if (rc)
            return rc;
        if (strchr(segment, '/') || is_dots(segment) ||
            out->segment_count == BAL_URI_SEGMENTS)
            out->nowhere = true;
        else
            out->segments[out->segment_count++] = segment;
        at = end + 1;
    }
    return 0;
}

static int add_field(bal_uri *out, bal_bytes text, bal_arena *arena,
                     bal_error *err)
{
    const char *data = text.data;
    size_t equals = until(text, 0, '=');
    bool has = equals < text.len;
    bal_field *field = &out->query[out->query_count];

    field->value = "";
    int rc =
        decode(&field->name, (bal_bytes){ data, equals }, true, arena, err);
    if (!rc && has)
        rc = decode(&field->value,
                    (bal_bytes){ data + equals + 1, text.len - equals - 1 },
                    true, arena, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < out->query_count; i++) {
        if (!strcmp(out->query[i].name, field->name))
            return bal_fail(err, BAL_EINVAL, "'%s' is in the query twice",
                            field->name);
    }
    out->query_count++;
    return 0;
}

static int parse_query(bal_uri *out, bal_bytes query, bal_arena *arena,
                       bal_error *err)
{
    const char *data = query.data;

    out->query = bal_arena_alloc(arena, BAL_URI_FIELDS * sizeof(*out->query));
    if (!out->query)
        return bal_fail_memory(err, "reading a query");
    for (size_t at = 0; at < query.len;) {
        size_t end = until(query, at, '&');
        bal_bytes one = { data + at, end - at };
        if (out->query_count == BAL_URI_FIELDS)
            return bal_fail(err, BAL_EINVAL, "too many fields in the query");
        int rc = one.len ? add_field(out, one, arena, err) : 0;
        if (rc)
            return rc;
        at = end + 1;
    }
    return 0;
}

/* How long "http://host" is in front of a path; 0: it is not there. */
static size_t origin_of(bal_bytes text)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(schemes[i]);
        if (text.len > len && !strncmp(text.data, schemes[i], len))
            return until(text, len, '/');
    }
    return 0;
}

static int check_bytes(const char *text, size_t len, bal_error *err)
{
    if (len > BAL_URI_LONGEST)
        return bal_fail(err, BAL_EINVAL, "the path is too long");
    for (size_t i = 0; i < len; i++) {
        if ((uint8_t)text[i] <= 0x20 || text[i] == 0x7f || text[i] == '#')
            return bal_fail(err, BAL_EINVAL, "a bad character in the path");
    }
    return 0;
}

int bal_uri_parse(bal_uri *out, const char *text, size_t len, bal_arena *arena,
                  bal_error *err)
{
    int rc = check_bytes(text, len, err);
    if (rc)
        return rc;
    size_t origin = origin_of((bal_bytes){ text, len });
    text += origin;
    len -= origin;
    if (!len || text[0] != '/')
        return bal_fail(err, BAL_EINVAL, "what is asked for is no path");

    size_t mark = until((bal_bytes){ text, len }, 0, '?');
    memset(out, 0, sizeof(*out));
    rc = parse_path(out, (bal_bytes){ text, mark }, arena, err);
    if (rc || mark == len)
        return rc;
    return parse_query(out, (bal_bytes){ text + mark + 1, len - mark - 1 },
                       arena, err);
}
