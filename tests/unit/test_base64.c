/* Base64 against the examples of RFC 4648, and what stands for nothing. */
#include <string.h>

#include "core/base64.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *bytes;
    const char *text;
} examples[] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xfb\xef\xff", "++//" },
};

static void texts_are_those_of_the_rfc(void)
{
    for (size_t i = 0; i < COUNT(examples); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        check_row(examples[i].text);
        CHECK_OK(bal_base64_encode(&text, examples[i].bytes,
                                   strlen(examples[i].bytes), &check_err));
        CHECK(!strcmp(bal_buf_string(&text), examples[i].text));
    }
}

static void texts_are_read_back_behind_what_is_there(void)
{
    for (size_t i = 0; i < COUNT(examples); i++) {
        BAL_LOCAL(bal_buf) bytes = { 0 };
        check_row(examples[i].text);
        CHECK_OK(bal_buf_text(&bytes, "x", &check_err));
        CHECK_OK(bal_base64_decode(&bytes, examples[i].text,
                                   strlen(examples[i].text), &check_err));
        CHECK(bytes.data[0] == 'x');
        CHECK(!strcmp(bytes.data + 1, examples[i].bytes));
    }
}

static void the_url_alphabet_is_read_too(void)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };

    CHECK_OK(bal_base64_decode(&bytes, "--__", 4, &check_err));
    CHECK(bytes.len == 3 && !memcmp(bytes.data, "\xfb\xef\xff", 3));
}

static void long_texts_come_back_whole(void)
{
    uint8_t data[5000];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t len = 760; len < sizeof(data); len += 97) {
        BAL_LOCAL(bal_buf) text = { 0 };
        BAL_LOCAL(bal_buf) back = { 0 };
        CHECK_OK(bal_base64_encode(&text, data, len, &check_err));
        CHECK(text.len == (len + 2) / 3 * 4);
        CHECK_OK(bal_base64_decode(&back, text.data, text.len, &check_err));
        CHECK(back.len == len && !memcmp(back.data, data, len));
    }
}

static void what_is_not_base64_is_corrupt_and_leaves_nothing(void)
{
    static const char *const texts[] = {
        "Z",        "Zg",   "Zg=",     "Zg===", "====",         "=AAA", "Z===",
        "Zh==",     "Zm9=", "Zm 8",    "Zm8\n", "Zg==Zg==",     "+-AA", "-/AA",
        "AAA+AA_A", "Zm9*", "Z\x80==", "AA=A",  "Zm9vZm9vZh==",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        BAL_LOCAL(bal_buf) bytes = { 0 };
        check_row(texts[i]);
        CHECK_OK(bal_buf_text(&bytes, "x", &check_err));
        CHECK_RC(BAL_ECORRUPT, bal_base64_decode(&bytes, texts[i],
                                                 strlen(texts[i]), &check_err));
        CHECK(!strcmp(bytes.data, "x"));
    }
}

static void a_text_that_breaks_off_is_corrupt(void)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };

    for (size_t len = 1; len < 8; len++) {
        if (len != 4)
            CHECK_RC(BAL_ECORRUPT,
                     bal_base64_decode(&bytes, "Zm9vYmFy", len, &check_err));
    }
}

static void nothing_stays_of_a_long_text_that_is_bad_at_its_end(void)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    char text[4096];

    memset(text, 'A', sizeof(text));
    text[sizeof(text) - 1] = '*';
    CHECK_OK(bal_buf_text(&bytes, "x", &check_err));
    CHECK_RC(BAL_ECORRUPT,
             bal_base64_decode(&bytes, text, sizeof(text), &check_err));
    CHECK(bytes.len == 1 && !strcmp(bytes.data, "x"));
}

static void a_ceiling_holds(void)
{
    BAL_LOCAL(bal_buf) text = { .ceiling = 7 };

    CHECK_RC(BAL_EINVAL, bal_base64_encode(&text, "foob", 4, &check_err));
}

static const check_test tests[] = {
    { TEST(texts_are_those_of_the_rfc) },
    { TEST(texts_are_read_back_behind_what_is_there) },
    { TEST(the_url_alphabet_is_read_too) },
    { TEST(long_texts_come_back_whole) },
    { TEST(what_is_not_base64_is_corrupt_and_leaves_nothing) },
    { TEST(a_text_that_breaks_off_is_corrupt) },
    { TEST(nothing_stays_of_a_long_text_that_is_bad_at_its_end) },
    { TEST(a_ceiling_holds) },
};

CHECK_MAIN(tests)
