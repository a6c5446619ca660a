/* Text: names, hex, numbers, sizes, UTF-8, terminals, patterns. The texts of
 * floating point numbers are what Python's repr gives. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "core/str.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void names_are_short_and_plain(void)
{
    char longest[66];
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        { "main", true },      { "a", true },          { "0", true },
        { "A-b_c.d9", true },  { "a..b", true },       { "", false },
        { ".a", false },       { "-a", false },        { "_a", false },
        { "a/b", false },      { "a b", false },       { "a\n", false },
        { "\xc3\xa9", false }, { "a\xc3\xa9", false }, { "a:b", false },
        { "a@b", false },      { "a~", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].text);
        CHECK(bal_name_valid(rows[i].text) == rows[i].valid);
    }
    memset(longest, 'x', sizeof(longest));
    longest[64] = '\0';
    CHECK(bal_name_valid(longest));
    longest[64] = 'x';
    longest[65] = '\0';
    CHECK(!bal_name_valid(longest));
}

static void hex_is_lower_case_and_of_the_length_asked_for(void)
{
    static const uint8_t bytes[] = { 0x00, 0x9f, 0xa0, 0xff };
    uint8_t back[4];
    char text[9];

    bal_hex_write(text, bytes, 4);
    CHECK(!strcmp(text, "009fa0ff"));
    CHECK(bal_hex_read(back, 4, text) && !memcmp(back, bytes, 4));
    CHECK(!bal_hex_read(back, 4, "009FA0ff"));
    CHECK(!bal_hex_read(back, 4, "009fa0f"));
    CHECK(!bal_hex_read(back, 4, "009fa0ff0"));
    CHECK(bal_hex_valid("abc", 0) && bal_hex_valid("abc", 3));
    CHECK(!bal_hex_valid("abc", 4) && !bal_hex_valid("abg", 0));
    CHECK(!bal_hex_valid("", 0));
}

static void whole_numbers_are_read_whole(void)
{
    static const struct {
        const char *text;
        bool valid;
        uint64_t value;
    } rows[] = {
        { "0", true, 0 },
        { "007", true, 7 },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "99999999999999999999999", false, 0 },
        { "", false, 0 },
        { " 1", false, 0 },
        { "1 ", false, 0 },
        { "-1", false, 0 },
        { "+1", false, 0 },
        { "0x10", false, 0 },
        { "1e3", false, 0 },
        { "1.0", false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = 0;
        check_row(rows[i].text);
        CHECK_RC(rows[i].valid ? 0 : BAL_EINVAL,
                 bal_parse_u64(&value, rows[i].text, &check_err));
        CHECK(value == rows[i].value);
    }
}

static void signed_numbers_reach_both_ends(void)
{
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } rows[] = {
        { "-0", true, 0 },
        { "+5", true, 5 },
        { "9223372036854775807", true, INT64_MAX },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775808", true, INT64_MIN },
        { "-9223372036854775809", false, 0 },
        { "-", false, 0 },
        { "--1", false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t value = 0;
        check_row(rows[i].text);
        CHECK_RC(rows[i].valid ? 0 : BAL_EINVAL,
                 bal_parse_i64(&value, rows[i].text, &check_err));
        CHECK(value == rows[i].value);
    }
}

static void only_finite_decimal_numbers_are_numbers(void)
{
    static const char *const bad[] = {
        "",    " 1",    "1 ",     "inf", "-inf", "nan", "0x1p3", "1e",
        "1e+", "1e999", "-1e999", ".",   "e5",   "1,5", "1.2.3", "--1",
    };
    static const struct {
        const char *text;
        double value;
    } good[] = {
        { "0.6", 0.6 },    { "-.5", -0.5 }, { "5.", 5 },     { "+1e3", 1000 },
        { "1E-3", 0.001 }, { "-0", -0.0 },  { "1e-400", 0 },
    };
    double value = 0;

    for (size_t i = 0; i < COUNT(bad); i++) {
        check_row(bad[i]);
        CHECK_RC(BAL_EINVAL, bal_parse_f64(&value, bad[i], &check_err));
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        check_row(good[i].text);
        CHECK_OK(bal_parse_f64(&value, good[i].text, &check_err));
        CHECK(value == good[i].value);
        CHECK(!signbit(value) == !signbit(good[i].value));
    }
}

static const struct {
    double value;
    const char *text;
} reprs[] = {
    { 0x1.3333333333333p-1, "0.6" },
    { 0x1.4f8b588e368f1p-17, "1e-05" },
    { 0x1.8000000000000p+1, "3" },
    { 0x1.999999999999ap-4, "0.1" },
    { 0x1.5555555555555p-2, "0.3333333333333333" },
    { 0x1.1c37937e08000p+53, "1e+16" },
    { 0x1.c6bf526340000p+49, "1000000000000000" },
    { 0x1.1c37937e07fffp+53, "9999999999999998" },
    { 0x1.b69b4ba630f35p+56, "1.2345678901234568e+17" },
    { 0x1.a36e2eb1c432dp-14, "0.0001" },
    { 0x1.02e4b6ce5dc68p-13, "0.00012345" },
    { 0x0.0000000000001p-1022, "5e-324" },
    { 0x1.0000000000000p-1022, "2.2250738585072014e-308" },
    { 0x1.fffffffffffffp+1023, "1.7976931348623157e+308" },
    { 0x1.0000000000000p-44, "5.684341886080802e-14" },
    { 0x1.0000000000000p+89, "6.189700196426902e+26" },
    { -0x1.4000000000000p+1, "-2.5" },
    { 0x1.9000000000000p+6, "100" },
    { 0x1.1eb2d66005835p+997, "1.5e+300" },
    { 0x1.0000000000000p+53, "9007199254740992" },
    { 0x1.0000000000000p-20, "9.5367431640625e-07" },
    { 0x1.0f0cf064dd592p+73, "1e+22" },
    { 0x1.52d02c7e14af6p+76, "1e+23" },
    { 0.0, "0" },
    { -0.0, "-0" },
};

static void floats_have_the_shortest_text_that_reads_back(void)
{
    for (size_t i = 0; i < COUNT(reprs); i++) {
        char text[32];
        double back = 1;
        check_row(reprs[i].text);
        bal_f64_text(text, reprs[i].value);
        CHECK(!strcmp(text, reprs[i].text));
        CHECK_OK(bal_parse_f64(&back, text, &check_err));
        CHECK(!memcmp(&back, &reprs[i].value, sizeof(back)));
    }
}

static void the_locale_does_not_matter(void)
{
    static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8" };
    char text[32];
    double value = 0;

    for (size_t i = 0; i < COUNT(locales); i++) {
        /* Where it is not installed this stays the plain locale. */
        setlocale(LC_ALL, locales[i]);
        bal_f64_text(text, 1.5);
        CHECK_OK(bal_parse_f64(&value, "2.5", &check_err));
        setlocale(LC_ALL, "C");
        CHECK(!strcmp(text, "1.5") && value == 2.5);
    }
}

static void sizes_have_units(void)
{
    static const struct {
        const char *text;
        bool valid;
        uint64_t value;
    } rows[] = {
        { "12", true, 12 },
        { "0", true, 0 },
        { "4M", true, 4194304 },
        { "512 KiB", true, 524288 },
        { "5GB", true, UINT64_C(5000000000) },
        { "1k", true, 1024 },
        { "3B", true, 3 },
        { "2T", true, UINT64_C(2199023255552) },
        { "16777215T", true, UINT64_C(18446742974197923840) },
        { "16777216T", false, 0 },
        { "18446744073709551616", false, 0 },
        { "", false, 0 },
        { "M", false, 0 },
        { "4 ", false, 0 },
        { " 4", false, 0 },
        { "-4M", false, 0 },
        { "1.5G", false, 0 },
        { "4MM", false, 0 },
        { "4X", false, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = 0;
        check_row(rows[i].text);
        CHECK_RC(rows[i].valid ? 0 : BAL_EINVAL,
                 bal_parse_size(&value, rows[i].text, &check_err));
        CHECK(value == rows[i].value);
    }
}

static void utf8_is_strict(void)
{
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        { "", true },
        { "abc", true },
        { "\xc3\xa9", true },
        { "\xe2\x82\xac", true },
        { "\xf0\x9f\x98\x80", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\xef\xbf\xbf", true },
        { "\xed\x9f\xbf", true },
        { "\x80", false },
        { "\xc3", false },
        { "\xc0\xaf", false },
        { "\xc1\xbf", false },
        { "\xe0\x9f\xbf", false },
        { "\xed\xa0\x80", false },
        { "\xed\xbf\xbf", false },
        { "\xf0\x8f\xbf\xbf", false },
        { "\xf4\x90\x80\x80", false },
        { "\xf8\x88\x80\x80\x80", false },
        { "\xe2\x82", false },
        { "\xff", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].text);
        CHECK(bal_utf8_valid(rows[i].text, strlen(rows[i].text)) ==
              rows[i].valid);
    }
    CHECK(bal_utf8_valid("a\0b", 3));
}

static void nothing_moves_the_cursor(void)
{
    static const struct {
        const char *text;
        bool lines;
        const char *want;
    } rows[] = {
        { "plain \xc3\xa9 \xf0\x9f\x98\x80", false,
          "plain \xc3\xa9 \xf0\x9f\x98\x80" },
        { "a\x1b[2J", false, "a\\x1b[2J" },
        { "a\tb\r", false, "a\\x09b\\x0d" },
        { "a\nb", false, "a\\x0ab" },
        { "a\nb\r", true, "a\nb\\x0d" },
        { "\x7f", false, "\\x7f" },
        { "\xc2\x9b"
          "1m",
          false, "\\u{9b}1m" },
        { "\xe2\x80\xae"
          "abc",
          false, "\\u{202e}abc" },
        { "\xe2\x81\xa6\xe2\x81\xa9", false, "\\u{2066}\\u{2069}" },
        { "\xe2\x80\xa8", true, "\\u{2028}" },
        { "\xd8\x9c\xe2\x80\x8e", false, "\\u{61c}\\u{200e}" },
        { "\xff\xc3", false, "\\xff\\xc3" },
        { "\xed\xa0\x80", false, "\\xed\\xa0\\x80" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) buf = { 0 };
        check_row(rows[i].want);
        CHECK_OK(bal_printable(&buf, rows[i].text, strlen(rows[i].text),
                               rows[i].lines, &check_err));
        CHECK(!strcmp(bal_buf_string(&buf), rows[i].want));
    }
}

static void thousands_are_parted(void)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {
        { 0, "0" },
        { 999, "999" },
        { 1000, "1,000" },
        { 200893, "200,893" },
        { 1234567, "1,234,567" },
        { UINT64_MAX, "18,446,744,073,709,551,615" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[32];
        bal_thousands(text, rows[i].value);
        check_row(rows[i].text);
        CHECK(!strcmp(text, rows[i].text));
    }
}

static void patterns_match_the_whole_text(void)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool match;
    } rows[] = {
        { "", "", true },
        { "", "a", false },
        { "*", "", true },
        { "*", "anything", true },
        { "a*c", "abbbc", true },
        { "a*c", "abbbd", false },
        { "a?c", "abc", true },
        { "a?c", "ac", false },
        { "?", "\xe2\x82\xac", true },
        { "??", "\xe2\x82\xac", false },
        { "*.q_proj.*", "model.layers.0.self_attn.q_proj.weight", true },
        { "*a*b*c*", "xxaxxbxxcxx", true },
        { "*a*b*c*", "xxaxxcxxbxx", false },
        { "a**b", "ab", true },
        { "*ab", "aab", true },
        { "[a]", "a", false },
        { "[a]", "[a]", true },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].pattern);
        CHECK(bal_glob(rows[i].pattern, rows[i].text) == rows[i].match);
    }
}

static void a_hostile_pattern_ends_in_time(void)
{
    char pattern[401];
    char text[20001];

    for (size_t i = 0; i < 400; i++)
        pattern[i] = "*a"[i % 2];
    pattern[399] = 'b';
    pattern[400] = '\0';
    memset(text, 'a', 20000);
    text[20000] = '\0';
    CHECK(!bal_glob(pattern, text));
}

static const check_test tests[] = {
    { TEST(names_are_short_and_plain) },
    { TEST(hex_is_lower_case_and_of_the_length_asked_for) },
    { TEST(whole_numbers_are_read_whole) },
    { TEST(signed_numbers_reach_both_ends) },
    { TEST(only_finite_decimal_numbers_are_numbers) },
    { TEST(floats_have_the_shortest_text_that_reads_back) },
    { TEST(the_locale_does_not_matter) },
    { TEST(sizes_have_units) },
    { TEST(utf8_is_strict) },
    { TEST(nothing_moves_the_cursor) },
    { TEST(thousands_are_parted) },
    { TEST(patterns_match_the_whole_text) },
    { TEST(a_hostile_pattern_ends_in_time) },
};

CHECK_MAIN(tests)
