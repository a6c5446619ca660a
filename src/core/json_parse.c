/* JSON in, by jansson. Its parser recurses as deep as the text nests, so the
 * nesting is counted before it sees the text. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"

enum { LEVELS = 64 };

/* Where the string that starts at `at` ends, the closing quote included. */
static size_t behind_string(const char *text, size_t len, size_t at)
{
    at++;
    while (at < len && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

/* The deepest nesting of brackets outside of strings. Right for any text up to
 * its first mistake, and there jansson stops. */
static size_t depth_of(const char *text, size_t len)
{
    size_t deepest = 0;
    size_t depth = 0;

    for (size_t at = 0; at < len;) {
        char c = text[at];
        if (c == '"') {
            at = behind_string(text, len, at);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        if ((c == '}' || c == ']') && depth)
            depth--;
        if (depth > deepest)
            deepest = depth;
        at++;
    }
    return deepest;
}

int bal_json_line(json_t **out, bal_bytes bytes, size_t line, const char *what,
                  bal_error *err)
{
    const char *text = bytes.data;
    size_t len = bytes.len;
    json_error_t why;

    /* jansson takes a NUL behind the value for the end. */
    if (len && memchr(text, '\0', len))
        return bal_fail(err, BAL_ECORRUPT, "%s: json with a nul byte", what);
    if (depth_of(text, len) > LEVELS)
        return bal_fail(err, BAL_ECORRUPT, "%s: json of more than %d levels",
                        what, LEVELS);
    json_t *value =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (value) {
        *out = value;
        return 0;
    }
    /* It does not always say why: nothing said is no memory. */
    if (json_error_code(&why) == json_error_out_of_memory || !why.text[0])
        return bal_fail_memory(err, what);
    return bal_fail(err, BAL_ECORRUPT, "%s: %s at line %zu, column %d", what,
                    why.text, line + (size_t)why.line - 1, why.column);
}

int bal_json_parse(json_t **out, const char *text, size_t len, const char *what,
                   bal_error *err)
{
    return bal_json_line(out, (bal_bytes){ text, len }, 1, what, err);
}
