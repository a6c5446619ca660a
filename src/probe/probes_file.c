/* Which kind of file it is, and what is common to all: UTF-8, with or without a
 * byte order mark, in lines that end as Unix or DOS end them. */
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "probe/probes_inside.h"
#include "probe/runner.h"

static const char blanks[] = " \t\r";
static const char byte_order_mark[] = "\xef\xbb\xbf";

typedef struct lines {
    const char *at, *end;
    size_t number; /* of the line that was given last */
} lines;

static lines lines_of(bal_bytes text)
{
    return (lines){ text.data, (const char *)text.data + text.len, 0 };
}

/* The next line, without its end. */
static bool next_line(lines *self, bal_bytes *line)
{
    size_t left = (size_t)(self->end - self->at);

    if (!left)
        return false;
    const char *end = memchr(self->at, '\n', left);
    size_t len = end ? (size_t)(end - self->at) : left;
    *line = (bal_bytes){ self->at, len };
    if (end && len && self->at[len - 1] == '\r')
        line->len--;
    self->at += end ? len + 1 : len;
    self->number++;
    return true;
}

static size_t blanks_in_front(bal_bytes line)
{
    const char *text = line.data;
    size_t at = 0;

    while (at < line.len && strchr(blanks, text[at]))
        at++;
    return at;
}

static bool is_blank(bal_bytes line)
{
    return blanks_in_front(line) == line.len;
}

static int check_text(bal_bytes text, bal_error *err)
{
    lines walk = lines_of(text);
    bal_bytes line;

    while (next_line(&walk, &line)) {
        if (memchr(line.data, '\0', line.len))
            return bal_fail(err, BAL_EINVAL, "line %zu: a nul byte",
                            walk.number);
        if (!bal_utf8_valid(line.data, line.len))
            return bal_fail(err, BAL_EINVAL, "line %zu: not utf-8",
                            walk.number);
    }
    return 0;
}

/* ---- plain text --------------------------------------------------------- */

/* What stands behind a backslash, and for what. */
static const struct {
    char letter;
    char is;
} escapes[] = { { 'n', '\n' }, { 't', '\t' }, { '\\', '\\' } };

static int unescape_one(bal_buf *out, const char *at, size_t left,
                        bal_error *err)
{
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        if (left && *at == escapes[i].letter)
            return bal_buf_append(out, &escapes[i].is, 1, err);
    }
    if (!left)
        return bal_fail(err, BAL_EINVAL, "nothing behind a backslash");
    return bal_fail(err, BAL_EINVAL,
                    "no escape '\\%.*s'; there are \\n, \\t "
                    "and \\\\",
                    left > 8 ? 8 : (int)left, at);
}

static int unescape(bal_buf *out, bal_bytes line, bal_error *err)
{
    const char *text = line.data;
    size_t at = 0;
    int rc = 0;

    while (at < line.len && !rc) {
        const char *slash = memchr(text + at, '\\', line.len - at);
        size_t len = slash ? (size_t)(slash - text) - at : line.len - at;
        rc = bal_buf_append(out, text + at, len, err);
        at += len;
        if (!slash || rc)
            break;
        rc = unescape_one(out, slash + 1, line.len - at - 1, err);
        at += 2;
    }
    return rc;
}

static int add_plain(bal_maker *maker, bal_bytes line, bool escaped,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_probe probe = { 0 };
    int rc = 0;

    if (escaped) {
        rc = unescape(&text, line, err);
        line = (bal_bytes){ bal_buf_string(&text), text.len };
    }
    if (!rc)
        rc = bal_maker_copy(maker, &probe.prompt, line.data, line.len, err);
    return rc ? rc : bal_maker_add(maker, &probe, err);
}

static int read_plain(bal_maker *maker, bal_bytes text, bool escaped,
                      bal_error *err)
{
    lines walk = lines_of(text);
    bal_bytes line;

    while (next_line(&walk, &line)) {
        if (is_blank(line))
            continue;
        maker->place = walk.number;
        int rc = add_plain(maker, line, escaped, err);
        if (rc)
            return bal_within(err, rc, "line %zu", walk.number);
    }
    return 0;
}

/* ---- JSON Lines --------------------------------------------------------- */

/* In this order: the first that knows the first object reads them all. */
static const bal_probes_shape *const shapes[] = {
    &bal_probes_native,
    &bal_probes_promptfoo,
    &bal_probes_lm_eval,
};

static int find_shape(const bal_probes_shape **out, const json_t *first,
                      bool templated, bal_error *err)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!shapes[i]->is(first))
            continue;
        if (templated && !shapes[i]->templated)
            return bal_fail(err, BAL_EINVAL,
                            "a pattern is given, and there are prompts in it");
        *out = shapes[i];
        return 0;
    }
    return bal_fail(err, BAL_EINVAL,
                    "neither 'prompt' nor 'messages' nor 'vars' nor "
                    "'arguments' with 'doc_id'");
}

/* One object. What is no JSON is a mistake of whoever wrote the file, like all
 * that can be wrong with it. */
static int parse_line(json_t **out, bal_bytes line, size_t number,
                      bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    bal_error why = { 0 };

    if (line.len > BAL_PROBE_TEXT)
        return bal_fail(err, BAL_EINVAL, "more than %zu bytes", BAL_PROBE_TEXT);
    int rc = bal_json_line(&value, line, number, "json", &why);
    if (rc)
        return bal_fail(err, rc == BAL_ECORRUPT ? BAL_EINVAL : rc, "%s",
                        why.text);
    if (!json_is_object(value))
        return bal_fail(err, BAL_EINVAL,
                        "no json object; there must be one a line");
    *out = BAL_TAKE(value);
    return 0;
}

static int read_line(bal_maker *maker, const bal_probes_shape **shape,
                     bal_bytes line, bool templated, bal_error *err)
{
    BAL_OWN(json_t) object = NULL;
    int rc = parse_line(&object, line, maker->place, err);

    if (!rc && !*shape)
        rc = find_shape(shape, object, templated, err);
    return rc ? rc : (*shape)->line(maker, object, err);
}

static int read_json(bal_maker *maker, bal_bytes text, bool templated,
                     bal_error *err)
{
    const bal_probes_shape *shape = NULL;
    lines walk = lines_of(text);
    bal_bytes line;

    while (next_line(&walk, &line)) {
        if (is_blank(line))
            continue;
        maker->place = walk.number;
        int rc = read_line(maker, &shape, line, templated, err);
        if (rc)
            return bal_within(err, rc, "line %zu", walk.number);
    }
    return 0;
}

/* ---- which of them ------------------------------------------------------ */

static bool ends_in(const char *path, const char *ending)
{
    size_t len = strlen(path);
    size_t want = strlen(ending);

    return len > want && !strcmp(path + len - want, ending);
}

/* By name, or because the first line that is not blank begins like an object:
 * '{' and a quote, or nothing else. That it is a right one is seen later; to
 * take a line with a mistake in it for a prompt would help nobody. */
static bool is_json(const char *path, bal_bytes text)
{
    lines walk = lines_of(text);
    bal_bytes line = { 0 };

    if (ends_in(path, ".jsonl") || ends_in(path, ".ndjson") ||
        ends_in(path, ".json"))
        return true;
    while (next_line(&walk, &line) && is_blank(line))
        ;
    size_t at = blanks_in_front(line);
    if (at == line.len || ((const char *)line.data)[at] != '{')
        return false;
    const bal_bytes behind = {
        (const char *)line.data + at + 1,
        line.len - at - 1,
    };
    at = blanks_in_front(behind);
    return at == behind.len || strchr("\"}", ((const char *)behind.data)[at]);
}

static int read_any(bal_maker *maker, const char *path, bal_bytes text,
                    const bal_probes_options *options, bal_error *err)
{
    bool escaped = options->flags & BAL_PROBES_ESCAPES;
    bool templated = options->pattern != NULL;
    bool csv = ends_in(path, ".csv");
    bool json = !csv && is_json(path, text);

    if (escaped && (csv || json))
        return bal_fail(err, BAL_EINVAL,
                        "escapes are for plain text, and it is none");
    if (templated && !csv && !json)
        return bal_fail(err, BAL_EINVAL,
                        "a pattern is given, and there are prompts in it");
    if (csv)
        return bal_probes_csv(maker, text, err);
    if (json)
        return read_json(maker, text, templated, err);
    return read_plain(maker, text, escaped, err);
}

static int read_template(bal_template *out, const char *pattern, bal_error *err)
{
    if (!bal_utf8_valid(pattern, strlen(pattern)))
        return bal_fail(err, BAL_EINVAL, "the pattern is not utf-8");
    int rc = bal_template_read(out, pattern, err);

    return rc ? bal_within(err, rc, "the pattern") : 0;
}

int bal_probes_parse(bal_probes **out, const char *path, bal_bytes text,
                     const bal_probes_options *options, bal_error *err)
{
    static const bal_probes_options none = { 0 };
    BAL_LOCAL(bal_template) template = { 0 };
    BAL_LOCAL(bal_maker) maker = { 0 };
    size_t mark = strlen(byte_order_mark);

    if (!options)
        options = &none;
    if (text.len >= mark && !memcmp(text.data, byte_order_mark, mark))
        text = (bal_bytes){ (const char *)text.data + mark, text.len - mark };
    int rc = read_template(
        &template, options->pattern ? options->pattern : "{{prompt}}", err);
    if (rc)
        return rc;
    rc = bal_maker_init(&maker, "line", err);
    maker.template = &template;
    if (!rc)
        rc = check_text(text, err);
    if (!rc)
        rc = read_any(&maker, path, text, options, err);
    if (!rc)
        rc = bal_maker_end(&maker, out, err);
    return rc ? bal_within(err, rc, "%s", path) : 0;
}

int bal_probes_open(bal_probes **out, const char *path,
                    const bal_probes_options *options, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_file_slurp(&text, path, BAL_PROBES_FILE, err);

    if (rc)
        return rc;
    return bal_probes_parse(out, path,
                            (bal_bytes){ bal_buf_string(&text), text.len },
                            options, err);
}
