/* The strict scanner. The verdicts are those of RFC 8259, in the spirit of
 * JSONTestSuite; jansson is the second opinion of the fuzz target. */
#include <string.h>

#include "core/json.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static bal_scan scan_of(bal_arena *arena, const char *text)
{
    return (bal_scan){
        .data = text,
        .len = strlen(text),
        .arena = arena,
        .what = "header",
    };
}

static int skip_all(const char *text, size_t len, unsigned depth)
{
    bal_scan scan = { .data = text, .len = len, .what = "header" };
    int rc = bal_scan_skip(&scan, depth, &check_err);

    return rc ? rc : bal_scan_end(&scan, &check_err);
}

static void an_object_is_pulled_key_by_key(void)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    bal_scan scan =
        scan_of(&arena, " { \"a\" : 1 , \"b\\u0062\":[ 2,3 ], \"c\":{} } ");
    static const char *const keys[] = { "a", "bb", "c" };
    const char *key = NULL;
    size_t len = 0;
    bool more = false;
    size_t count = 0;
    uint64_t value = 0;

    CHECK_OK(bal_scan_open(&scan, '{', &check_err));
    CHECK_OK(bal_scan_more(&scan, '}', true, &more, &check_err));
    while (more) {
        CHECK_OK(bal_scan_key(&scan, &key, &len, &check_err));
        CHECK(!strcmp(key, keys[count]) && len == strlen(key));
        if (count++ == 0)
            CHECK_OK(bal_scan_u64(&scan, &value, &check_err));
        else
            CHECK_OK(bal_scan_skip(&scan, 8, &check_err));
        CHECK_OK(bal_scan_more(&scan, '}', false, &more, &check_err));
    }
    CHECK(count == 3 && value == 1);
    CHECK_OK(bal_scan_end(&scan, &check_err));
    CHECK(bal_scan_peek(&scan) == '\0');
}

static void an_empty_array_has_no_more(void)
{
    bal_scan scan = scan_of(NULL, "[ ]x");
    bool more = true;

    CHECK_OK(bal_scan_open(&scan, '[', &check_err));
    CHECK_OK(bal_scan_more(&scan, ']', true, &more, &check_err));
    CHECK(!more);
    CHECK_RC(BAL_ECORRUPT, bal_scan_end(&scan, &check_err));
    CHECK(
        !strcmp(check_err.text, "header: something behind the end at byte 3"));
}

static void strings_are_decoded(void)
{
    static const struct {
        const char *text;
        const char *want;
        size_t len;
    } rows[] = {
        { "\"\"", "", 0 },
        { "\"abc\"", "abc", 3 },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8 },
        { "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6 },
        { "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 4 },
        { "\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4 },
        { "\"a\\u0000b\"", "a\0b", 3 },
        { "\"\\uffff\"", "\xef\xbf\xbf", 3 },
        { "\"\x7f\"", "\x7f", 1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_arena) arena = { 0 };
        bal_scan scan = scan_of(&arena, rows[i].text);
        const char *text = NULL;
        size_t len = 0;
        check_row(rows[i].text);
        CHECK_OK(bal_scan_string(&scan, &text, &len, &check_err));
        CHECK(len == rows[i].len && !memcmp(text, rows[i].want, len + 1));
        CHECK_OK(bal_scan_end(&scan, &check_err));
    }
}

static void whole_numbers_are_unsigned_and_plain(void)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t value;
    } rows[] = {
        { "0", 0, 0 },
        { " 42", 0, 42 },
        { "18446744073709551615", 0, UINT64_MAX },
        { "18446744073709551616", BAL_ECORRUPT, 0 },
        { "184467440737095516150", BAL_ECORRUPT, 0 },
        { "00", BAL_ECORRUPT, 0 },
        { "01", BAL_ECORRUPT, 0 },
        { "-1", BAL_ECORRUPT, 0 },
        { "+1", BAL_ECORRUPT, 0 },
        { "1.0", BAL_ECORRUPT, 0 },
        { "1e2", BAL_ECORRUPT, 0 },
        { "\"1\"", BAL_ECORRUPT, 0 },
        { "", BAL_ECORRUPT, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_scan scan = scan_of(NULL, rows[i].text);
        uint64_t value = 0;
        check_row(rows[i].text);
        CHECK_RC(rows[i].rc, bal_scan_u64(&scan, &value, &check_err));
        CHECK(value == rows[i].value);
    }
}

static void valid_values_are_passed_over(void)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "0",
        "-0",
        "-0.5e-10",
        "1E+2",
        "123456789012345678901234567890",
        "true",
        "false",
        " null ",
        "\"\\ud83d\\ude00\"",
        "[[],[[]],{},[1,\"a\",null]]",
        "{\"a\":{\"b\":[{}]},\"c\":1.5}",
        "{\"a\":1,\"a\":2}",
        "\t[\r\n]",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i]);
        CHECK_OK(skip_all(rows[i], strlen(rows[i]), 8));
    }
}

static const char *const refused[] = {
    "",
    " ",
    "[1,]",
    "{\"a\":1,}",
    "[,1]",
    "[1 2]",
    "{\"a\" 1}",
    "{a:1}",
    "{'a':1}",
    "[1",
    "\"a",
    "nul",
    "True",
    "NaN",
    "-Infinity",
    "-",
    "01",
    "-01",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "0x1",
    "[1]x",
    "{}{}",
    "\"\n\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\",
    "\"\\u",
    "\"\\ud800\"",
    "\"\\ude00\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800\\ud800\"",
    "\"\xff\"",
    "\"\xc0\xaf\"",
    "\xef\xbb\xbf{}",
    "/**/1",
    "\"\xed\xa0\x80\"",
    "[}",
    "{]",
    "{\"a\"}",
    "{1:2}",
    "[:]",
    "{,}",
    "\v1",
    "truex",
    "[true1]",
    "\"\\U0041\"",
    "]",
    "\"\\u00g0\"",
    "{\"a\":}",
    "{\"a\":1 \"b\":2}",
};

static void values_that_are_not_json_are_refused(void)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        check_row(refused[i]);
        CHECK_RC(BAL_ECORRUPT, skip_all(refused[i], strlen(refused[i]), 8));
        CHECK(!strncmp(check_err.text, "header: ", 8));
        CHECK(strstr(check_err.text, " at byte "));
    }
    CHECK_RC(BAL_ECORRUPT, skip_all("1\0", 2, 8));
    CHECK_RC(BAL_ECORRUPT, skip_all("\"\0\"", 3, 8));
    CHECK_RC(BAL_ECORRUPT, skip_all("tru\0", 4, 8));
    CHECK_RC(BAL_ECORRUPT, skip_all("1\0e", 3, 8));
}

static void every_cut_is_refused(void)
{
    static const char text[] =
        "{\"a\\u00e9\":[1,-2.5e+3,true,\"\\ud83d\\ude00\xe2\x82\xac\"]}";

    for (size_t len = 0; len < sizeof(text) - 1; len++)
        CHECK_RC(BAL_ECORRUPT, skip_all(text, len, 8));
    CHECK_OK(skip_all(text, sizeof(text) - 1, 8));
}

static void nesting_is_bounded(void)
{
    static char text[200000];

    CHECK_OK(skip_all("[[[]]]", 6, 3));
    CHECK_RC(BAL_ECORRUPT, skip_all("[[[]]]", 6, 2));
    CHECK_RC(BAL_ECORRUPT, skip_all("{}", 2, 0));
    CHECK_OK(skip_all("1", 1, 0));
    memset(text, '[', 100000);
    memset(text + 100000, ']', 100000);
    CHECK_RC(BAL_ECORRUPT, skip_all(text, sizeof(text), UINT32_MAX));
    CHECK_OK(skip_all(text + 99000, 2000, UINT32_MAX));
}

static void a_full_arena_is_no_crash(void)
{
    BAL_LOCAL(bal_arena) arena = { .ceiling = 32 };
    bal_scan scan =
        scan_of(&arena, "\"0123456789012345678901234567890123456789\"");
    const char *text;
    size_t len;

    CHECK_RC(BAL_ENOMEM, bal_scan_string(&scan, &text, &len, &check_err));
}

static const check_test tests[] = {
    { TEST(an_object_is_pulled_key_by_key) },
    { TEST(an_empty_array_has_no_more) },
    { TEST(strings_are_decoded) },
    { TEST(whole_numbers_are_unsigned_and_plain) },
    { TEST(valid_values_are_passed_over) },
    { TEST(values_that_are_not_json_are_refused) },
    { TEST(every_cut_is_refused) },
    { TEST(nesting_is_bounded) },
    { TEST(a_full_arena_is_no_crash) },
};

CHECK_MAIN(tests)
