/* Who may do what. The hash of "abc" is that of BLAKE3's own b3sum. */
#include <string.h>
#include <sys/stat.h>

#include "serve/tokens.h"
#include "support/check.h"
#include "support/files.h"

#define ABC                                                                    \
    "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"

/* 2026-11-30T05:38:32Z */
static const int64_t now = INT64_C(1796017112) * 1000000000;

static bal_tokens *parsed(const char *text)
{
    bal_tokens *tokens = NULL;

    CHECK_OK(bal_tokens_parse(&tokens, text, strlen(text), "tokens.json",
                              &check_err));
    return tokens;
}

static void a_token_allows_what_its_row_says(void)
{
    static const char file[] =
        "{\"reader\": [\"acme\", \"beta\"], \"all\": [\"*\"], \"none\": [],"
        " \"writer\": {\"write\": [\"acme\"]},"
        " \"both\": {\"read\": [\"beta\"], \"write\": [\"acme\"]},"
        " \"admin\": {\"write\": [\"*\"]},"
        " \"late\": {\"read\": [\"*\"], \"expires\": \"2026-11-30T05:38:32Z\"},"
        " \"soon\": {\"read\": [\"*\"], \"expires\": \"2026-11-30T06:38:33"
        "+01:00\"},"
        " \"" ABC "\": [\"acme\"]}";
    static const struct {
        const char *token;
        const char *may; /* r and w of acme, beta, gamma */
        size_t number;
    } rows[] = {
        { "reader", "r-r---", 1 },  { "all", "r-r-r-", 2 },
        { "none", "------", 3 },    { "writer", "rw----", 4 },
        { "both", "rwr---", 5 },    { "admin", "rwrwrw", 6 },
        { "late", "------", 0 },    { "soon", "r-r-r-", 8 },
        { "abc", "r-----", 9 },     { ABC, "------", 0 },
        { "Reader", "------", 0 },  { "reade", "------", 0 },
        { "readerr", "------", 0 }, { "*", "------", 0 },
    };
    static const char *const tenants[] = { "acme", "beta", "gamma" };
    BAL_OWN(bal_tokens) tokens = parsed(file);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char header[160];
        char may[7] = "";
        check_row(rows[i].token);
        snprintf(header, sizeof(header), "Bearer %s", rows[i].token);
        const bal_scope *scope = bal_tokens_find(tokens, header, now);
        for (size_t t = 0; t < 3; t++) {
            may[2 * t] = bal_scope_reads(scope, tenants[t]) ? 'r' : '-';
            may[2 * t + 1] = bal_scope_writes(scope, tenants[t]) ? 'w' : '-';
        }
        CHECK(!strcmp(may, rows[i].may));
        CHECK(scope->number == rows[i].number);
    }
}

static void a_header_is_the_scheme_and_one_token(void)
{
    static const struct {
        const char *header;
        bool right;
    } rows[] = {
        { "Bearer abc", true },    { "bearer abc", true },
        { "BEARER abc", true },    { "Bearer  abc", true },
        { NULL, false },           { "", false },
        { "abc", false },          { "Bearer", false },
        { "Bearer ", false },      { "Bearerabc", false },
        { "Bearer\tabc", false },  { "Bearer abc ", false },
        { "Bearer abc d", false }, { "Basic abc", false },
        { " Bearer abc", false },  { "Bearer abc\n", false },
        { "Bearer abc,", false },  { "Bearer \"abc\"", false },
    };
    BAL_OWN(bal_tokens) tokens = parsed("{\"abc\": [\"acme\"]}");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i].header);
        const bal_scope *scope = bal_tokens_find(tokens, rows[i].header, now);
        CHECK(bal_scope_reads(scope, "acme") == rows[i].right);
    }
    CHECK(bal_tokens_find(NULL, "Bearer abc", now) == &bal_scope_none);
    CHECK(bal_scope_reads(&bal_scope_open, "acme"));
    CHECK(!bal_scope_writes(&bal_scope_open, "acme"));
}

static void a_token_has_4096_characters_at_most(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) header = { 0 };
    char token[4098];

    for (size_t len = 4096; len <= 4097; len++) {
        bal_tokens *tokens = NULL;
        memset(token, 'x', len);
        token[len] = '\0';
        bal_buf_clear(&text);
        bal_buf_clear(&header);
        CHECK_OK(
            bal_buf_format(&text, &check_err, "{\"%s\": [\"acme\"]}", token));
        CHECK_OK(bal_buf_format(&header, &check_err, "Bearer %s", token));
        CHECK_RC(
            len == 4096 ? 0 : BAL_EINVAL,
            bal_tokens_parse(&tokens, text.data, text.len, "t", &check_err));
        CHECK(bal_scope_reads(bal_tokens_find(tokens, header.data, now),
                              "acme") == (len == 4096));
        bal_tokens_free(tokens);
    }
}

/* Each says why, and the file; none says the token. */
static void a_bad_file_is_refused_without_a_token_in_the_message(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "line 1" },
        { "{}", "no token in it" },
        { "[]", "not a JSON object" },
        { "\"s3cret\"", "not a JSON object" },
        { "{\"s3cret\": [\"a\"]", "not JSON at line 1" },
        { "{\"s3cret\"; [\"a\"]}", "not JSON at line 1" },
        { "{\"s3cret\": [\"a\"],\n \"s3cret\": [\"a\"]}", "twice at line 2" },
        { "{\"abc\": [\"a\"], \"" ABC "\": [\"b\"]}",
          "a token is there twice" },
        { "{\"s3cret\": {\"read\": [], \"read\": []}}", "twice" },
        { "{\"\": [\"a\"]}", "token 1: not 1 to 4096" },
        { "{\"ok\": [], \"s3cret x\": [\"a\"]}", "token 2: not 1 to 4096" },
        { "{\"s3cret\\u00e9\": [\"a\"]}", "not 1 to 4096" },
        { "{\"blake3:s3cret\": [\"a\"]}", "64 lower-case hex digits" },
        { "{\"s3cret\": \"a\"}", "neither a list of names nor an object" },
        { "{\"s3cret\": null}", "neither a list of names nor an object" },
        { "{\"s3cret\": [1]}", "a name that is neither" },
        { "{\"s3cret\": [\"a/s3cret\"]}", "a name that is neither" },
        { "{\"s3cret\": [\"..\"]}", "a name that is neither" },
        { "{\"s3cret\": [\"a*\"]}", "a name that is neither" },
        { "{\"s3cret\": {\"reads\": [\"a\"]}}",
          "none of read, write, expires" },
        { "{\"s3cret\": {\"s3cret\": [\"a\"]}}", "none of read, write" },
        { "{\"s3cret\": {\"read\": \"a\"}}", "lists of names" },
        { "{\"s3cret\": {\"write\": {}}}", "lists of names" },
        { "{\"s3cret\": {\"read\": [], \"expires\": 1}}", "not a time" },
        { "{\"s3cret\": {\"read\": [], \"expires\": null}}", "not a time" },
        { "{\"s3cret\": {\"read\": [], \"expires\": \"2026-11-30\"}}",
          "not a time" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_tokens *tokens = NULL;
        check_row(rows[i].text);
        CHECK_RC(BAL_EINVAL,
                 bal_tokens_parse(&tokens, rows[i].text, strlen(rows[i].text),
                                  "tokens.json", &check_err));
        CHECK(strstr(check_err.text, rows[i].why) != NULL);
        CHECK(!strncmp(check_err.text, "tokens.json: ", 13));
        CHECK(!strstr(check_err.text, "s3cret"));
    }
}

static void a_file_that_others_may_read_is_warned_of(void)
{
    const char *path = file_path("tokens.json");
    BAL_OWN(bal_tokens) tight = NULL;
    BAL_OWN(bal_tokens) loose = NULL;

    file_text(path, "{\"abc\": [\"acme\"]}");
    file_listen();
    CHECK(!chmod(path, 0600));
    CHECK_OK(bal_tokens_load(&tight, path, &check_err));
    CHECK(!file_heard("others-may-read"));
    CHECK(!chmod(path, 0644));
    CHECK_OK(bal_tokens_load(&loose, path, &check_err));
    CHECK(file_heard("others-may-read"));
    CHECK(bal_scope_reads(bal_tokens_find(loose, "Bearer abc", now), "acme"));
}

static void a_file_that_is_not_there_is_named(void)
{
    bal_tokens *tokens = NULL;

    CHECK_RC(BAL_ENOTFOUND,
             bal_tokens_load(&tokens, file_path("no/such"), &check_err));
    CHECK(strstr(check_err.text, "no/such") != NULL);
}

static const check_test tests[] = {
    { TEST(a_token_allows_what_its_row_says) },
    { TEST(a_header_is_the_scheme_and_one_token) },
    { TEST(a_token_has_4096_characters_at_most) },
    { TEST(a_bad_file_is_refused_without_a_token_in_the_message) },
    { TEST(a_file_that_others_may_read_is_warned_of) },
    { TEST(a_file_that_is_not_there_is_named) },
};

CHECK_MAIN(tests)
