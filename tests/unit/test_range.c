/* Ranges and conditions, by the examples and rules of RFC 9110, 13 and 14. */
#include <string.h>

#include "serve/range.h"
#include "serve/request.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void a_range_is_cut_to_what_is_there(void)
{
    static const struct {
        const char *text;
        uint64_t size;
        bal_range_kind kind;
        uint64_t offset, length;
    } rows[] = {
        { NULL, 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=0-499", 10000, BAL_RANGE_PART, 0, 500 },
        { "bytes=500-999", 10000, BAL_RANGE_PART, 500, 500 },
        { "bytes=-500", 10000, BAL_RANGE_PART, 9500, 500 },
        { "bytes=9500-", 10000, BAL_RANGE_PART, 9500, 500 },
        { "Bytes=0-0", 10000, BAL_RANGE_PART, 0, 1 },
        { "bytes= 0-0 ", 10000, BAL_RANGE_PART, 0, 1 },
        { "bytes=0-99999", 10000, BAL_RANGE_PART, 0, 10000 },
        { "bytes=-99999", 10000, BAL_RANGE_PART, 0, 10000 },
        { "bytes=9999-", 10000, BAL_RANGE_PART, 9999, 1 },
        { "bytes=10000-", 10000, BAL_RANGE_NOWHERE, 0, 0 },
        { "bytes=-0", 10000, BAL_RANGE_NOWHERE, 0, 0 },
        { "bytes=0-", 0, BAL_RANGE_NOWHERE, 0, 0 },
        { "bytes=-5", 0, BAL_RANGE_NOWHERE, 0, 0 },
        { "bytes=0-0,-1", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=5-4", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=-", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "lines=0-4", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=a-b", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=+1-2", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=--1", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=1-2x", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=0x1-2", 10000, BAL_RANGE_WHOLE, 0, 10000 },
        { "bytes=0-18446744073709551615", 10, BAL_RANGE_PART, 0, 10 },
        { "bytes=0-99999999999999999999999", 10, BAL_RANGE_PART, 0, 10 },
        { "bytes=99999999999999999999999-", 10, BAL_RANGE_NOWHERE, 0, 0 },
        { "bytes=-99999999999999999999999", 10, BAL_RANGE_PART, 0, 10 },
        { "bytes=1-18446744073709551615", UINT64_MAX, BAL_RANGE_PART, 1,
          UINT64_MAX - 1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t offset = 0;
        uint64_t length = 0;

        check_row(rows[i].text);
        CHECK(bal_range_of(rows[i].text, rows[i].size, &offset, &length) ==
              rows[i].kind);
        if (rows[i].kind == BAL_RANGE_NOWHERE)
            continue;
        CHECK(offset == rows[i].offset);
        CHECK(length == rows[i].length);
    }
}

static void a_tag_is_found_in_a_list(void)
{
    static const struct {
        const char *field;
        bool weak, strong; /* named by a comparison of that kind */
    } rows[] = {
        { NULL, false, false },
        { "", false, false },
        { "*", true, true },
        { "\"xyzzy\"", true, true },
        { "W/\"xyzzy\"", true, false },
        { "\"r2d2xxxx\", \"xyzzy\"", true, true },
        { "\"r2d2xxxx\",W/\"xyzzy\",\"c3piozzzz\"", true, false },
        { "\"a,\", , \"xyzzy\"", true, true },
        { "\"xyzz\"", false, false },
        { "\"xyzzyy\"", false, false },
        { "xyzzy", false, false },
        { "\"xyzzy", false, false },
        { "w/\"xyzzy\"", false, false },
        { "\"\"", false, false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(rows[i].field);
        CHECK(bal_etag_named(rows[i].field, "\"xyzzy\"", true) == rows[i].weak);
        CHECK(bal_etag_named(rows[i].field, "\"xyzzy\"", false) ==
              rows[i].strong);
        CHECK(!bal_etag_named(rows[i].field, NULL, true));
    }
}

static const char *header(const bal_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        if (!strcmp(reply->headers[i].name, name))
            return reply->headers[i].value;
    }
    return "";
}

static void a_reply_says_which_part_it_is(void)
{
    static const struct {
        const char *range, *if_range;
        int status;
        uint64_t length;
        const char *content_range;
    } rows[] = {
        { NULL, NULL, 200, 100, "" },
        { "bytes=10-19", NULL, 206, 10, "bytes 10-19/100" },
        { "bytes=10-19", "\"t\"", 206, 10, "bytes 10-19/100" },
        { "bytes=10-19", "\"u\"", 200, 100, "" },
        { "bytes=10-19", "W/\"t\"", 200, 100, "" },
        { "bytes=10-19", "Tue, 01 Dec 2026 12:00:00 GMT", 200, 100, "" },
        { "bytes=100-", NULL, 416, 0, "bytes */100" },
        { "bytes=100-", "\"u\"", 200, 100, "" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_arena) arena = { 0 };
        BAL_LOCAL(bal_reply) reply = { 0 };
        bal_request request = { .range = rows[i].range,
                                .if_range = rows[i].if_range,
                                .arena = &arena };

        check_row(rows[i].range);
        CHECK_OK(bal_reply_range(&reply, &request, 100, "\"t\"", &check_err));
        CHECK(reply.status == rows[i].status);
        CHECK(!strcmp(header(&reply, "content-range"), rows[i].content_range));
        CHECK(!strcmp(header(&reply, "accept-ranges"), "bytes"));
        if (reply.status != 416)
            CHECK(reply.length == rows[i].length);
        else
            CHECK(strstr(reply.body.data, "\"usage\"") != NULL);
    }
}

static const check_test tests[] = {
    { TEST(a_range_is_cut_to_what_is_there) },
    { TEST(a_tag_is_found_in_a_list) },
    { TEST(a_reply_says_which_part_it_is) },
};

CHECK_MAIN(tests)
