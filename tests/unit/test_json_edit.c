/* Changing values in a JSON text: what is changed, and that nothing else is.
 * The texts that are wanted were written by hand. */
#include <stdlib.h>
#include <string.h>

#include "core/json_edit.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

typedef struct edit_row {
    const char *text, *path, *value;
    bool add;
    const char *want; /* NULL: ECORRUPT */
} edit_row;

static void check_rows(const edit_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const edit_row *row = &rows[i];
        BAL_LOCAL(bal_buf) out = { 0 };
        bal_bytes text = { row->text, strlen(row->text) };
        bal_json_change change = { row->path, row->value, row->add };

        CHECK_OK(bal_buf_text(&out, "<", &check_err));
        CHECK_RC(row->want ? 0 : BAL_ECORRUPT,
                 bal_json_edit(&out, text, &change, 1, "file 'c'", &check_err));
        const char *got = bal_buf_string(&out) + 1;
        const char *want = row->want ? row->want : "";
        if (strcmp(got, want))
            print_error("row %zu: got %s\n", i, got);
        CHECK(!strcmp(got, want));
        if (!row->want)
            CHECK(!strncmp(check_err.text, "file 'c': ", 10));
    }
}

static void a_value_is_changed_and_no_other_byte(void)
{
    static const edit_row rows[] = {
        { "{\"a\": 1, \"n\":  32000 ,\n\"b\":1.50}\n", "n", "12", false,
          "{\"a\": 1, \"n\":  12 ,\n\"b\":1.50}\n" },
        { " {\"n\":[1,{\"n\":2}]}", "n", "false", false, " {\"n\":false}" },
        { "{\"n\":{\"x\":\"}\\\"\"},\"m\":\"\\u00e9\"}", "n", "[]", false,
          "{\"n\":[],\"m\":\"\\u00e9\"}" },
        { "{\"n\":null}", "n", "\"t\"", true, "{\"n\":\"t\"}" },
        { "{\"\":1,\"b\":2}", "", "3", false, "{\"\":3,\"b\":2}" },
        { "{\"a\":{\"\":1}}", "a.", "3", false, "{\"a\":{\"\":3}}" },
    };

    check_rows(rows, COUNT(rows));
}

static void a_member_is_found_by_its_whole_path_alone(void)
{
    static const edit_row rows[] = {
        { "{\"n\":1,\"t\":{\"n\":2,\"u\":{\"n\":3}},\"v\":{\"n\":4}}", "t.n",
          "9", false,
          "{\"n\":1,\"t\":{\"n\":9,\"u\":{\"n\":3}},\"v\":{\"n\":4}}" },
        { "{\"t\":{\"u\":{\"n\":3}},\"n\":4}", "t.u.n", "9", false,
          "{\"t\":{\"u\":{\"n\":9}},\"n\":4}" },
        { "{\"t\":{\"m\":1},\"n\":4}", "t.n", "9", false,
          "{\"t\":{\"m\":1},\"n\":4}" },
        { "{\"t.n\":1}", "t.n", "9", false, "{\"t.n\":1}" },
        { "{\"nn\":1,\"N\":2,\"n \":3}", "n", "9", false,
          "{\"nn\":1,\"N\":2,\"n \":3}" },
        { "{\"t\":[{\"n\":1}]}", "t.n", "9", true, "{\"t\":[{\"n\":1}]}" },
        { "{\"t\":\"n\"}", "t.n", "9", true, "{\"t\":\"n\"}" },
        { "[1]", "n", "9", true, "[1]" },
        { "7", "n", "9", true, "7" },
    };

    check_rows(rows, COUNT(rows));
}

static void escapes_in_a_key_are_read(void)
{
    static const edit_row rows[] = {
        { "{\"\\u006e\":1}", "n", "2", true, "{\"\\u006e\":2}" },
        { "{\"a\\\"b\":1}", "a\"b", "2", false, "{\"a\\\"b\":2}" },
        { "{\"n\\u0000\":1}", "n", "2", false, "{\"n\\u0000\":1}" },
        { "{\"a\":1}", "q\"", "2", true, "{\"a\":1,\"q\\\"\":2}" },
    };

    check_rows(rows, COUNT(rows));
}

static void of_a_key_that_is_there_twice_the_last_is_changed(void)
{
    static const edit_row rows[] = {
        { "{\"n\":1,\"n\":2,\"m\":3}", "n", "9", true,
          "{\"n\":1,\"n\":9,\"m\":3}" },
        { "{\"t\":{\"n\":1},\"t\":{\"n\":2}}", "t.n", "9", true,
          "{\"t\":{\"n\":1},\"t\":{\"n\":9}}" },
        { "{\"t\":{\"n\":1},\"t\":2}", "t.n", "9", true,
          "{\"t\":{\"n\":1},\"t\":2}" },
    };

    check_rows(rows, COUNT(rows));
}

static void what_is_added_is_laid_out_like_its_neighbour(void)
{
    static const edit_row rows[] = {
        { "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "n", "3", true,
          "{\n  \"a\": 1,\n  \"b\": 2,\n  \"n\": 3\n}\n" },
        { "{\n\t\"a\" : 1\n}", "n", "3", true,
          "{\n\t\"a\" : 1,\n\t\"n\" : 3\n}" },
        { "{\n  \"t\": {\n    \"a\": []\n  }\n}", "t.n", "3", true,
          "{\n  \"t\": {\n    \"a\": [],\n    \"n\": 3\n  }\n}" },
        { "{\"a\":1,\"b\":2}", "n", "3", true, "{\"a\":1,\"b\":2,\"n\":3}" },
        { "{\"a\": 1, \"b\": 2}", "n", "3", true,
          "{\"a\": 1, \"b\": 2, \"n\": 3}" },
        { "{\"a\": 1}", "n", "3", true, "{\"a\": 1, \"n\": 3}" },
        { "{\"a\":1}", "n", "3", true, "{\"a\":1,\"n\":3}" },
        { "{}", "n", "3", true, "{\"n\": 3}" },
        { "{\"t\":{ },\"a\":1}", "t.n", "3", true,
          "{\"t\":{\"n\": 3 },\"a\":1}" },
        { "{\"a\":1}", "n", "3", false, "{\"a\":1}" },
        { "{\"a\":1}", "t.n", "3", true, "{\"a\":1}" },
    };

    check_rows(rows, COUNT(rows));
}

static void what_is_not_json_is_refused_by_its_name(void)
{
    static const edit_row rows[] = {
        { "", "n", "1", true, NULL },
        { " ", "n", "1", true, NULL },
        { "{", "n", "1", true, NULL },
        { "{\"n\":1", "n", "1", true, NULL },
        { "{\"n\":1,}", "n", "1", true, NULL },
        { "{\"n\" 1}", "n", "1", true, NULL },
        { "{\"n\":}", "n", "1", true, NULL },
        { "{n:1}", "n", "1", true, NULL },
        { "{\"n\":1} x", "n", "1", true, NULL },
        { "{\"n\":1}{}", "n", "1", true, NULL },
        { "{\"n\":1,\"b\":[}", "n", "1", true, NULL },
        { "{\"n\":NaN}", "n", "1", true, NULL },
        { "{\"a\\\":1}", "n", "1", true, NULL },
        { "{\"\\ud800\":1}", "n", "1", true, NULL },
        { "{\"n\":1}", "n", "1,2", true, NULL },
        { "{\"a\":1}", "n", "", true, NULL },
    };

    check_rows(rows, COUNT(rows));
}

static void a_text_that_nests_without_end_is_refused(void)
{
    char text[4096];
    BAL_LOCAL(bal_buf) out = { 0 };

    memset(text, '[', sizeof(text));
    CHECK(bal_json_edit(&out, (bal_bytes){ text, sizeof(text) }, NULL, 0, "x",
                        &check_err) == BAL_ECORRUPT);
    CHECK(bal_json_edit(&out, (bal_bytes){ 0 }, NULL, 0, "x", &check_err) ==
          BAL_ECORRUPT);
}

static void changes_are_made_one_after_the_other(void)
{
    static const char text[] = "{\"a\": 1, \"t\": {\"b\": 2}}";
    static const bal_json_change changes[] = {
        { "t.b", "20", false },
        { "a", "10", false },
        { "n", "{\"x\": 1}", true },
        { "n.x", "2", false },
    };
    bal_bytes from = { text, sizeof(text) - 1 };
    BAL_LOCAL(bal_buf) out = { 0 };

    CHECK_OK(
        bal_json_edit(&out, from, changes, COUNT(changes), "x", &check_err));
    CHECK(!strcmp(bal_buf_string(&out),
                  "{\"a\": 10, \"t\": {\"b\": 20}, \"n\": {\"x\": 2}}"));
    bal_buf_clear(&out);
    CHECK_OK(bal_json_edit(&out, from, NULL, 0, "x", &check_err));
    CHECK(!strcmp(bal_buf_string(&out), text));
}

static void every_cut_of_a_text_is_refused(void)
{
    static const char text[] =
        "{\"a\": [1.5e3, true, null], \"t\": {\"n\": \"\\u00e9\"}}";
    bal_json_change change = { "t.n", "1", true };

    /* The bytes are copied to a place of that size, for the sanitizers. */
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        BAL_LOCAL(bal_buf) out = { 0 };
        char *part = malloc(len + 1);

        CHECK(part != NULL);
        memcpy(part, text, len);
        char *exact = realloc(part, len ? len : 1);
        CHECK(exact != NULL);
        CHECK(bal_json_edit(&out, (bal_bytes){ exact, len }, &change, 1, "x",
                            &check_err) == BAL_ECORRUPT);
        free(exact);
    }
}

static void a_value_is_found_where_it_lies(void)
{
    static const char text[] =
        "{\"a\": 1, \"t\": {\"b\": [2, 3] }, \"a\": null}";
    static const struct {
        const char *path, *want;
    } rows[] = {
        { "a", "null" }, { "t", "{\"b\": [2, 3] }" }, { "t.b", "[2, 3]" },
        { "b", NULL },   { "t.b.c", NULL },           { "x.b", NULL },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_bytes from = { text, sizeof(text) - 1 };
        bal_bytes got = { text, 1 };

        check_row(rows[i].path);
        CHECK_OK(bal_json_find(&got, from, rows[i].path, "x", &check_err));
        CHECK(!got.data == !rows[i].want);
        if (rows[i].want)
            CHECK(got.len == strlen(rows[i].want) &&
                  !memcmp(got.data, rows[i].want, got.len));
    }
}

static void looking_for_a_value_refuses_what_is_no_json(void)
{
    static const char *const texts[] = {
        "{1:2}", "{\"a\" 1}", "{\"a\":1", "{\"a\":}", "{",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        bal_bytes got = { 0 };

        check_row(texts[i]);
        CHECK_RC(BAL_ECORRUPT,
                 bal_json_find(&got, (bal_bytes){ texts[i], strlen(texts[i]) },
                               "a", "x", &check_err));
    }
}

static const check_test tests[] = {
    { TEST(a_value_is_changed_and_no_other_byte) },
    { TEST(a_member_is_found_by_its_whole_path_alone) },
    { TEST(escapes_in_a_key_are_read) },
    { TEST(of_a_key_that_is_there_twice_the_last_is_changed) },
    { TEST(what_is_added_is_laid_out_like_its_neighbour) },
    { TEST(what_is_not_json_is_refused_by_its_name) },
    { TEST(a_text_that_nests_without_end_is_refused) },
    { TEST(changes_are_made_one_after_the_other) },
    { TEST(every_cut_of_a_text_is_refused) },
    { TEST(a_value_is_found_where_it_lies) },
    { TEST(looking_for_a_value_refuses_what_is_no_json) },
};

CHECK_MAIN(tests)
