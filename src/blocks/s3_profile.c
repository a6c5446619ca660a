/* AWS's two files of profiles: sections of "name = value" lines. Lines that are
 * indented belong to the one above and are none of ours. */
#include <stddef.h>
#include <string.h>

#include "blocks/s3_place.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

enum { FILE_MOST = 1 << 20 };

typedef struct field {
    const char *name;
    size_t offset; /* of a const char * in bal_s3_profile */
} field;

static const field fields[] = {
    { "aws_access_key_id", offsetof(bal_s3_profile, access) },
    { "aws_secret_access_key", offsetof(bal_s3_profile, secret) },
    { "aws_session_token", offsetof(bal_s3_profile, session) },
    { "region", offsetof(bal_s3_profile, region) },
    { "endpoint_url", offsetof(bal_s3_profile, endpoint) },
};

/* A text that is part of another. */
typedef struct span {
    const char *at;
    size_t len;
} span;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static span trim(span text)
{
    while (text.len && is_space(text.at[0])) {
        text.at++;
        text.len--;
    }
    while (text.len && is_space(text.at[text.len - 1]))
        text.len--;
    return text;
}

static bool is_text(span text, const char *other)
{
    return text.len == strlen(other) && !memcmp(text.at, other, text.len);
}

/* Is it the section of the profile? "[default]" has no word before it. */
static bool names_profile(span line, const char *name, enum bal_s3_file kind)
{
    static const char word[] = "profile";
    span inner = trim((span){ line.at + 1, line.len - 2 });
    size_t skip = sizeof(word) - 1;
    bool worded = inner.len > skip && !memcmp(inner.at, word, skip) &&
                  is_space(inner.at[skip]);

    if (is_text(inner, name) &&
        (kind == BAL_S3_CREDENTIALS || !strcmp(name, "default")))
        return true;
    if (kind != BAL_S3_CONFIG || !worded)
        return false;
    return is_text(trim((span){ inner.at + skip, inner.len - skip }), name);
}

static int take(bal_s3_profile *out, bal_arena *arena, span name, span value,
                bal_error *err)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!is_text(name, fields[i].name))
            continue;
        const char *copy = bal_arena_copy(arena, value.at, value.len);
        if (!copy)
            return bal_fail_memory(err, "a profile");
        memcpy((char *)out + fields[i].offset, &copy, sizeof(copy));
    }
    return 0;
}

static int wrong_line(size_t number, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT,
                    "line %zu is neither a section nor 'name = value'", number);
}

/* The next line, its end passed over. */
static span next_line(bal_bytes text, size_t *at)
{
    const char *start = (const char *)text.data + *at;
    const char *end = memchr(start, '\n', text.len - *at);
    span line = { start, end ? (size_t)(end - start) : text.len - *at };

    *at += line.len + (end ? 1 : 0);
    return line;
}

int bal_s3_profile_read(bal_s3_profile *out, bool *found, bal_arena *arena,
                        bal_bytes text, const char *name, enum bal_s3_file kind,
                        bal_error *err)
{
    bool ours = false;
    int rc = 0;

    for (size_t at = 0, number = 1; at < text.len && !rc; number++) {
        span raw = next_line(text, &at);
        span line = trim(raw);
        if (!line.len || line.at[0] == '#' || line.at[0] == ';' ||
            line.at != raw.at)
            continue;
        if (line.at[0] == '[') {
            if (line.len < 2 || line.at[line.len - 1] != ']')
                return wrong_line(number, err);
            ours = names_profile(line, name, kind);
            *found = *found || ours;
            continue;
        }
        const char *equals = memchr(line.at, '=', line.len);
        if (!equals || memchr(line.at, '\0', line.len))
            return wrong_line(number, err);
        size_t len = (size_t)(equals - line.at);
        if (ours)
            rc = take(out, arena, trim((span){ line.at, len }),
                      trim((span){ equals + 1, line.len - len - 1 }), err);
    }
    return rc;
}

/* ---- the files ---------------------------------------------------------- */

static const struct {
    enum bal_s3_file kind;
    const char *variable;
    const char *usual; /* below the home */
} files[] = {
    /* The later one has the last word. */
    { BAL_S3_CONFIG, "AWS_CONFIG_FILE", ".aws/config" },
    { BAL_S3_CREDENTIALS, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials" },
};

static int path_of(bal_buf *to, size_t i, bal_error *err)
{
    const char *named = getenv(files[i].variable);
    const char *home = getenv("HOME");

    if (named && named[0])
        return bal_buf_text(to, named, err);
    if (!home || !home[0])
        return 0;
    return bal_buf_format(to, err, "%s/%s", home, files[i].usual);
}

/* A file that is not there has no profile. */
static int read_file(bal_s3_profile *out, bool *found, bal_arena *arena,
                     size_t i, const char *name, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = path_of(&path, i, err);
    if (rc || !path.len)
        return rc;
    if (bal_path_type_of(path.data) == BAL_PATH_ABSENT)
        return 0;
    rc = bal_file_slurp(&text, path.data, FILE_MOST, err);
    if (!rc) {
        const bal_bytes bytes = { text.data, text.len };
        rc = bal_s3_profile_read(out, found, arena, bytes, name, files[i].kind,
                                 err);
        rc = bal_within(err, rc, "'%s'", path.data);
    }
    if (text.data)
        explicit_bzero(text.data, text.len);
    return rc;
}

int bal_s3_profile_find(bal_s3_profile *out, bal_arena *arena, bal_error *err)
{
    const char *asked = getenv("AWS_PROFILE");
    const char *name = asked && asked[0] ? asked : "default";
    bool found = false;
    int rc = 0;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !rc; i++)
        rc = read_file(out, &found, arena, i, name, err);
    if (rc || found || !asked || !asked[0])
        return rc;
    return bal_hint(err, bal_fail(err, BAL_ENOTFOUND, "no profile '%s'", asked),
                    "AWS_PROFILE names one of ~/.aws/config or "
                    "~/.aws/credentials");
}
