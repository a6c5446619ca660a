/* JSON: the writer, the canonical form against the examples of RFC 8785, and
 * what is parsed or refused, in the spirit of JSONTestSuite. */
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void check_text(const bal_buf *buf, const char *want)
{
    if (strcmp(bal_buf_string(buf), want))
        print_error("got %s\n", bal_buf_string(buf));
    CHECK(!strcmp(bal_buf_string(buf), want));
}

/* One of everything. */
static void write_all(bal_buf *to, unsigned indent)
{
    bal_json json;

    bal_json_begin(&json, to, indent);
    bal_json_object(&json);
    bal_json_key(&json, "empty");
    bal_json_object(&json);
    bal_json_close(&json);
    bal_json_key(&json, "list");
    bal_json_array(&json);
    bal_json_u64(&json, UINT64_MAX);
    bal_json_i64(&json, INT64_MIN);
    bal_json_array(&json);
    bal_json_close(&json);
    bal_json_close(&json);
    bal_json_key(&json, "text \"x\"");
    bal_json_string(&json, "a\n");
    bal_json_key(&json, "none");
    bal_json_string(&json, NULL);
    bal_json_key(&json, "yes");
    bal_json_bool(&json, true);
    bal_json_key(&json, "no");
    bal_json_bool(&json, false);
    bal_json_key(&json, "null");
    bal_json_null(&json);
    bal_json_close(&json);
    CHECK_OK(bal_json_end(&json, &check_err));
}

static void the_writer_puts_commas_and_colons(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    write_all(&buf, 0);
    check_text(&buf, "{\"empty\":{},\"list\":[18446744073709551615,"
                     "-9223372036854775808,[]],\"text \\\"x\\\"\":\"a\\n\","
                     "\"none\":null,\"yes\":true,\"no\":false,\"null\":null}");
}

static void the_writer_indents(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    write_all(&buf, 2);
    check_text(&buf, "{\n  \"empty\": {},\n  \"list\": [\n"
                     "    18446744073709551615,\n    -9223372036854775808,\n"
                     "    []\n  ],\n  \"text \\\"x\\\"\": \"a\\n\",\n"
                     "  \"none\": null,\n  \"yes\": true,\n  \"no\": false,\n"
                     "  \"null\": null\n}");
}

static void floats_are_short_and_what_is_not_finite_is_null(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };
    bal_json json;

    bal_json_begin(&json, &buf, 0);
    bal_json_array(&json);
    bal_json_f64(&json, 0.6);
    bal_json_f64(&json, 3.0);
    bal_json_f64(&json, 1e-5);
    bal_json_f64(&json, (double)INFINITY);
    bal_json_f64(&json, (double)NAN);
    bal_json_close(&json);
    CHECK_OK(bal_json_end(&json, &check_err));
    check_text(&buf, "[0.6,3,1e-05,null,null]");
}

static void raw_json_is_laid_out_anew(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };
    bal_json json;

    bal_json_begin(&json, &buf, 2);
    bal_json_object(&json);
    bal_json_key(&json, "raw");
    bal_json_raw(&json, " { \"a\" : [1,-2.5e3, \"x,]\\\"}\" ],\"b\":{ } }\n");
    bal_json_key(&json, "word");
    bal_json_raw(&json, "null");
    bal_json_close(&json);
    CHECK_OK(bal_json_end(&json, &check_err));
    check_text(&buf, "{\n  \"raw\": {\n    \"a\": [\n      1,\n      -2.5e3,\n"
                     "      \"x,]\\\"}\"\n    ],\n    \"b\": {}\n  },\n"
                     "  \"word\": null\n}");
}

static void members_go_into_the_open_object(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };
    bal_json json;

    bal_json_begin(&json, &buf, 0);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, "x/1");
    bal_json_members(&json, "{ }");
    bal_json_members(&json, " {\"a\": {\"b\": 1}, \"c\": []} ");
    bal_json_key(&json, "last");
    bal_json_null(&json);
    bal_json_close(&json);
    CHECK_OK(bal_json_end(&json, &check_err));
    check_text(&buf, "{\"schema\":\"x/1\",\"a\":{\"b\":1},\"c\":[],"
                     "\"last\":null}");
}

static void what_cannot_be_written_is_told_at_the_end(void)
{
    static const char *const bad[] = { "}", "[", "[}", "{\"a\":[}", "]" };
    BAL_LOCAL(bal_buf) small = { .ceiling = 4 };
    bal_json json;

    bal_json_begin(&json, &small, 0);
    bal_json_string(&json, "too long");
    CHECK_RC(BAL_EINVAL, bal_json_end(&json, &check_err));
    for (size_t i = 0; i < COUNT(bad); i++) {
        BAL_LOCAL(bal_buf) buf = { 0 };
        check_row(bad[i]);
        bal_json_begin(&json, &buf, 0);
        bal_json_array(&json);
        bal_json_raw(&json, bad[i]);
        CHECK_RC(BAL_EINVAL, bal_json_end(&json, &check_err));
    }
    for (size_t depth = 64; depth < 66; depth++) {
        BAL_LOCAL(bal_buf) buf = { 0 };
        bal_json_begin(&json, &buf, 0);
        for (size_t i = 0; i < depth; i++)
            bal_json_array(&json);
        CHECK_RC(depth > 64 ? BAL_EINVAL : 0, bal_json_end(&json, &check_err));
    }
}

static void quoting_escapes_what_must_be_and_nothing_else(void)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        { "", "\"\"" },
        { "\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"" },
        { "\x01\x0b\x1f\x7f", "\"\\u0001\\u000b\\u001f\x7f\"" },
        { "\"\\/", "\"\\\"\\\\/\"" },
        { "\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "a\xff"
          "b\xc3",
          "\"a\xef\xbf\xbd"
          "b\xef\xbf\xbd\"" },
        { "\xe2\x80\xa8", "\"\xe2\x80\xa8\"" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) buf = { 0 };
        check_row(rows[i].want);
        CHECK_OK(bal_json_quote(&buf, rows[i].text, strlen(rows[i].text),
                                &check_err));
        check_text(&buf, rows[i].want);
    }
}

static void nul_is_quoted_by_its_length(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    CHECK_OK(bal_json_quote(&buf, "a\0b", 3, &check_err));
    check_text(&buf, "\"a\\u0000b\"");
}

static void the_canonical_form_is_that_of_rfc_8785(void)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        /* Section 3.2.2, without its numbers. */
        { "{\"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c"
          "\\\\\\\"\\/\", \"literals\": [null, true, false]}",
          "{\"literals\":[null,true,false],\"string\":\"\xe2\x82\xac$\\u000f"
          "\\nA'B\\\"\\\\\\\\\\\"/\"}" },
        /* Section 3.2.3. */
        { "{\"\\u20ac\": \"Euro Sign\", \"\\r\": \"Carriage Return\","
          "\"\\ufb33\": \"Hebrew Letter Dalet With Dagesh\","
          "\"1\": \"One\", \"\\ud83d\\ude00\": \"Emoji: Grinning Face\","
          "\"\\u0080\": \"Control\","
          "\"\\u00f6\": \"Latin Small Letter O With Diaeresis\"}",
          "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
          "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\","
          "\"\xe2\x82\xac\":\"Euro Sign\","
          "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\","
          "\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}" },
        { "{\"b\": {\"z\": [], \"a\": {}}, \"a\": [[1, -0, -12], {}], "
          "\"aa\": 0, \"\": 9223372036854775807}",
          "{\"\":9223372036854775807,\"a\":[[1,0,-12],{}],\"aa\":0,"
          "\"b\":{\"a\":{},\"z\":[]}}" },
        { "\"text\"", "\"text\"" },
        { "null", "null" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(json_t) value = NULL;
        BAL_LOCAL(bal_buf) buf = { 0 };
        check_row(rows[i].want);
        CHECK_OK(bal_json_parse(&value, rows[i].text, strlen(rows[i].text),
                                "row", &check_err));
        CHECK_OK(bal_json_canonical(&buf, value, &check_err));
        check_text(&buf, rows[i].want);
    }
}

static void reals_have_no_canonical_form(void)
{
    BAL_OWN(json_t) value = NULL;
    BAL_LOCAL(bal_buf) buf = { 0 };

    CHECK_OK(bal_buf_text(&buf, "kept", &check_err));
    CHECK_OK(bal_json_parse(&value, "[1, {\"a\": 1.5}]", 15, "x", &check_err));
    CHECK_RC(BAL_EINVAL, bal_json_canonical(&buf, value, &check_err));
    check_text(&buf, "kept");
}

static void the_depth_of_a_canonical_form_is_bounded(void)
{
    for (size_t depth = 64; depth < 66; depth++) {
        BAL_OWN(json_t) value = json_array();
        BAL_LOCAL(bal_buf) buf = { 0 };
        for (size_t i = 1; i < depth; i++) {
            json_t *outer = json_array();
            CHECK(!json_array_append_new(outer, value));
            value = outer;
        }
        CHECK_RC(depth > 64 ? BAL_EINVAL : 0,
                 bal_json_canonical(&buf, value, &check_err));
    }
}

static void json_that_is_valid_is_parsed(void)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "0",
        "-0",
        "\"\"",
        "true",
        " null ",
        "[1e1000]",
        "-1.5E+3",
        "\t[\r\n]",
        "[[],[[]]]",
        "\"\\ud83d\\ude00\"",
        "{\"a\":{\"a\":1}}",
        "\"\x7f\"",
        "{\"\":0}",
        "-9223372036854775808",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_OWN(json_t) value = NULL;
        bool overflow = !strcmp(rows[i], "[1e1000]");
        check_row(rows[i]);
        CHECK_RC(overflow ? BAL_ECORRUPT : 0,
                 bal_json_parse(&value, rows[i], strlen(rows[i]), "row",
                                &check_err));
    }
}

static void json_that_is_not_valid_is_refused(void)
{
    static const char *const rows[] = {
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
        "Infinity",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x1",
        "[1]x",
        "{}{}",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ude00\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "\xef\xbb\xbf{}",
        "/**/1",
        "{\"a\":1,\"a\":2}",
        "\"\\u0000\"",
        "9223372036854775808",
        "{\"\\u0061\":1,\"a\":2}",
        "\"\xed\xa0\x80\"",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *value = NULL;
        check_row(rows[i]);
        CHECK_RC(BAL_ECORRUPT, bal_json_parse(&value, rows[i], strlen(rows[i]),
                                              "row", &check_err));
        CHECK(!value && !strncmp(check_err.text, "row: ", 5));
    }
}

static void a_nul_byte_is_refused_wherever_it_is(void)
{
    static const char text[] = "\0[\0\"\0\"]";
    json_t *value = NULL;

    CHECK_RC(BAL_ECORRUPT, bal_json_parse(&value, "2\0", 2, "x", &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_json_parse(&value, text, 1, "x", &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_json_parse(&value, text, 7, "x", &check_err));
    CHECK(!value);
}

static void the_place_of_a_mistake_is_told(void)
{
    json_t *value = NULL;

    CHECK_RC(BAL_ECORRUPT, bal_json_parse(&value, "{\n \"a\": x}", 10,
                                          "config.json", &check_err));
    CHECK(strstr(check_err.text, "config.json: ") == check_err.text);
    CHECK(strstr(check_err.text, "line 2, column"));
}

static void deep_nesting_is_refused_before_it_is_parsed(void)
{
    char text[200001];

    for (size_t depth = 1; depth <= 100000; depth = depth * 8) {
        BAL_OWN(json_t) value = NULL;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK_RC(depth > 64 ? BAL_ECORRUPT : 0,
                 bal_json_parse(&value, text, 2 * depth, "x", &check_err));
    }
    /* Brackets in strings are none. */
    BAL_OWN(json_t) value = NULL;
    memset(text, '[', 1000);
    text[0] = '"';
    memcpy(text + 998, "\\\"\"", 3);
    CHECK_OK(bal_json_parse(&value, text, 1001, "x", &check_err));
}

static const check_test tests[] = {
    { TEST(the_writer_puts_commas_and_colons) },
    { TEST(the_writer_indents) },
    { TEST(floats_are_short_and_what_is_not_finite_is_null) },
    { TEST(raw_json_is_laid_out_anew) },
    { TEST(members_go_into_the_open_object) },
    { TEST(what_cannot_be_written_is_told_at_the_end) },
    { TEST(quoting_escapes_what_must_be_and_nothing_else) },
    { TEST(nul_is_quoted_by_its_length) },
    { TEST(the_canonical_form_is_that_of_rfc_8785) },
    { TEST(reals_have_no_canonical_form) },
    { TEST(the_depth_of_a_canonical_form_is_bounded) },
    { TEST(json_that_is_valid_is_parsed) },
    { TEST(json_that_is_not_valid_is_refused) },
    { TEST(a_nul_byte_is_refused_wherever_it_is) },
    { TEST(the_place_of_a_mistake_is_told) },
    { TEST(deep_nesting_is_refused_before_it_is_parsed) },
};

CHECK_MAIN(tests)
