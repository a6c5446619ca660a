/* What a request asks for, and its header fields: by rows of RFC 3986 and
 * 9112, and what ends a connection. */
#include <string.h>

#include "serve/heads.h"
#include "serve/uri.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* "a|b|c" of the segments, then "?name=value&…" as decoded, "!" where it can
 * match no route. */
static void written(char *out, size_t room, const bal_uri *uri)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < uri->segment_count; i++)
        len += (size_t)snprintf(out + len, room - len, "%s%s", i ? "|" : "",
                                uri->segments[i]);
    for (size_t i = 0; i < uri->query_count; i++)
        len += (size_t)snprintf(out + len, room - len, "%s%s=%s", i ? "&" : "?",
                                uri->query[i].name, uri->query[i].value);
    snprintf(out + len, room - len, "%s", uri->nowhere ? "!" : "");
}

static void paths_are_cut_before_they_are_decoded(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "/", "" },
        { "/health", "health" },
        { "/a/b/c", "a|b|c" },
        { "/a/", "a|" },
        { "//a", "|a" },
        { "/a%20b", "a b" },
        { "/%41%7a", "Az" },
        { "/a+b", "a+b" },
        { "/main~2", "main~2" },
        { "/main@%7b1%7D", "main@{1}" },
        { "/\xc3\xa4", "\xc3\xa4" },
        { "/%c3%a4", "\xc3\xa4" },
        { "/%2541", "%41" },
        { "/a%2fb", "!" },
        { "/a/../b", "a|b!" },
        { "/%2e%2E/b", "b!" },
        { "/./b", "b!" },
        { "/.../b", "...|b" },
        { "/a?", "a" },
        { "/a?b", "a?b=" },
        { "/a?b=", "a?b=" },
        { "/a?b=c=d", "a?b=c=d" },
        { "/a?b=c&d=e", "a?b=c&d=e" },
        { "/a?&&b=c&", "a?b=c" },
        { "/a?b=%26%3d&c=1", "a?b=&=&c=1" },
        { "/a?b=x+y%2Bz", "a?b=x y+z" },
        { "/a?b=/../?", "a?b=/../?" },
        { "http://host/a", "a" },
        { "https://host:80/a?b=c", "a?b=c" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_arena) arena = { 0 };
        char got[256];
        bal_uri uri;

        check_row(rows[i].text);
        CHECK_OK(bal_uri_parse(&uri, rows[i].text, strlen(rows[i].text), &arena,
                               &check_err));
        written(got, sizeof(got), &uri);
        CHECK(!strcmp(got, rows[i].want));
    }
}

static void what_is_no_path_is_refused(void)
{
    static const char *const rows[] = {
        "",           "health",      "*",           "host:80",
        "http://a",   "ftp://a/b",   "/a%00",       "/a%0",
        "/a%",        "/a%zz",       "/a%-1",       "/%ff",
        "/\xff",      "/%c0%af",     "/%ed%a0%80",  "/a b",
        "/a\tb",      "/a\rb",       "/a\x7f",      "/a#b",
        "/a?b=%00",   "/a?b=%",      "/a?b=%ff",    "/a?b=1&b=2",
        "/a?b=1&%62", "/a?b&c=1&b=", "/a?+=1&%20=", "/a?b=1\n",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_arena) arena = { 0 };
        bal_uri uri;

        check_row(rows[i]);
        CHECK_RC(BAL_EINVAL, bal_uri_parse(&uri, rows[i], strlen(rows[i]),
                                           &arena, &check_err));
    }
}

static int parse_of(char fill, size_t len, const char *head, size_t *count)
{
    static char text[BAL_URI_LONGEST + 2];
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_uri uri = { .query_count = 0 };

    memset(text, fill, sizeof(text));
    memcpy(text, head, strlen(head));
    int rc = bal_uri_parse(&uri, text, len, &arena, &check_err);
    *count = uri.segment_count + uri.query_count;
    return rc;
}

static void long_paths_end_at_a_limit(void)
{
    size_t count;

    CHECK_OK(parse_of('a', BAL_URI_LONGEST, "/", &count));
    CHECK_RC(BAL_EINVAL, parse_of('a', BAL_URI_LONGEST + 1, "/", &count));
    CHECK_OK(parse_of('/', BAL_URI_LONGEST, "/", &count));
    CHECK(count == BAL_URI_SEGMENTS);
}

static void fields_of_a_query_are_counted(void)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    char text[1024] = "/?";
    size_t len = 2;
    bal_uri uri;

    for (size_t i = 0; i < BAL_URI_FIELDS; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "f%zu&", i);
    CHECK_OK(bal_uri_parse(&uri, text, len, &arena, &check_err));
    CHECK(uri.query_count == BAL_URI_FIELDS);
    len += (size_t)snprintf(text + len, sizeof(text) - len, "more");
    CHECK_RC(BAL_EINVAL, bal_uri_parse(&uri, text, len, &arena, &check_err));
}

/* Fields are "name: value" lines. */
static int heads_of(bal_heads *heads, const char *text)
{
    static char copy[512];
    char *at = copy;

    *heads = (bal_heads){ .unsound = NULL };
    snprintf(copy, sizeof(copy), "%s", text);
    while (*at) {
        char *colon = strchr(at, ':');
        char *end = strchr(at, '\n');
        CHECK(colon && end);
        *end = '\0';
        bal_heads_add(heads, at, (size_t)(colon - at), colon + 1,
                      (size_t)(end - colon - 1));
        at = end + 1;
    }
    return bal_heads_end(heads);
}

static void a_body_has_one_length(void)
{
    static const struct {
        const char *fields;
        int status;
        bool chunked;
        uint64_t length;
    } rows[] = {
        { "", 0, false, 0 },
        { "Content-Length:5\n", 0, false, 5 },
        { "CONTENT-LENGTH:0\n", 0, false, 0 },
        { "transfer-encoding:Chunked\n", 0, true, 0 },
        { "X:a\nX:b\nAccept:c\nAccept:d\n", 0, false, 0 },
        { "If-None-Match:\"a\"\nIf-None-Match:\"b\"\n", 0, false, 0 },
        { "Content-Length:5\nTransfer-Encoding:chunked\n", 400, false, 0 },
        { "Content-Length:5\nContent-Length:5\n", 400, false, 0 },
        { "Content-Length:5\ncontent-length:6\n", 400, false, 0 },
        { "Content-Length:5,5\n", 400, false, 0 },
        { "Content-Length:+5\n", 400, false, 0 },
        { "Content-Length:-5\n", 400, false, 0 },
        { "Content-Length:0x5\n", 400, false, 0 },
        { "Content-Length:\n", 400, false, 0 },
        { "Content-Length:18446744073709551616\n", 400, false, 0 },
        { "Transfer-Encoding:gzip\n", 501, false, 0 },
        { "Transfer-Encoding:gzip, chunked\n", 501, false, 0 },
        { "Transfer-Encoding:xchunked\n", 501, false, 0 },
        { "Transfer-Encoding:chunked\nTransfer-Encoding:chunked\n", 400, false,
          0 },
        { "Transfer-Encoding :chunked\n", 400, false, 0 },
        { "Transfer-Encoding:\x0b"
          "chunked\n",
          400, false, 0 },
        { "Host:a\nHost:a\n", 400, false, 0 },
        { "Range:a\nRange:a\n", 400, false, 0 },
        { "If-Match:a\nIf-Match:a\n", 400, false, 0 },
        { "Authorization:a\nAuthorization:b\n", 400, false, 0 },
        { ":a\n", 400, false, 0 },
        { "a b:c\n", 400, false, 0 },
        { "a(:c\n", 400, false, 0 },
        { "a:b\rc\n", 400, false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_heads heads;

        check_row(rows[i].fields);
        CHECK(heads_of(&heads, rows[i].fields) == rows[i].status);
        CHECK(!heads.unsound == !rows[i].status);
        if (rows[i].status)
            continue;
        CHECK(heads.chunked == rows[i].chunked);
        CHECK(heads.length == rows[i].length);
    }
}

static void a_zero_inside_a_field_is_refused(void)
{
    bal_heads heads = { .unsound = NULL };

    bal_heads_add(&heads, "x", 1, "a\0b", 3);
    CHECK(bal_heads_end(&heads) == 400);
    heads = (bal_heads){ .unsound = NULL };
    bal_heads_add(&heads, "x\0y", 3, "a", 1);
    CHECK(bal_heads_end(&heads) == 400);
}

static const check_test tests[] = {
    { TEST(paths_are_cut_before_they_are_decoded) },
    { TEST(what_is_no_path_is_refused) },
    { TEST(long_paths_end_at_a_limit) },
    { TEST(fields_of_a_query_are_counted) },
    { TEST(a_body_has_one_length) },
    { TEST(a_zero_inside_a_field_is_refused) },
};

CHECK_MAIN(tests)
