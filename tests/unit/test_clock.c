/* Time and its texts; the expected ones are from date(1). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "support/check.h"

static const int64_t second = INT64_C(1000000000);

static void times_print_in_utc_with_nanoseconds(void)
{
    static const struct {
        int64_t at;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000000000Z" },
        { 1, "1970-01-01T00:00:00.000000001Z" },
        { -1, "1969-12-31T23:59:59.999999999Z" },
        { INT64_C(1796017112123456789), "2026-11-30T05:38:32.123456789Z" },
        { INT64_C(951782400000000000), "2000-02-29T00:00:00.000000000Z" },
        { INT64_MAX, "2262-04-11T23:47:16.854775807Z" },
        { INT64_MIN, "1677-09-21T00:12:43.145224192Z" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[40];
        check_row(rows[i].text);
        bal_clock_rfc3339(text, rows[i].at);
        CHECK(!strcmp(text, rows[i].text));
    }
}

/* Expected ones from date -u -d TEXT +%s.%N. */
static void what_rfc_3339_allows_is_read(void)
{
    static const struct {
        const char *text;
        int64_t at;
    } rows[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1969-12-31T23:59:59.999999999Z", -1 },
        { "2026-11-30T05:38:32.123456789Z", INT64_C(1796017112123456789) },
        { "2026-11-30t06:38:32.1234567894+01:00",
          INT64_C(1796017112123456789) },
        { "2026-11-29 20:08:32.5-09:30", INT64_C(1796017112500000000) },
        { "2000-02-29T00:00:00z", INT64_C(951782400000000000) },
        { "2016-12-31T23:59:60Z", INT64_C(1483228800000000000) },
        { "1678-01-01T00:00:00Z", INT64_C(-9214560000000000000) },
        { "2261-12-31T23:59:59-23:59", INT64_C(9214732739000000000) },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t at = 1;
        check_row(rows[i].text);
        CHECK(bal_clock_read(&at, rows[i].text));
        CHECK(at == rows[i].at);
    }
}

static void what_is_no_time_is_refused(void)
{
    static const char *const rows[] = {
        "",
        "2026",
        "2026-11-30",
        "2026-11-30T05:38:32",
        "2026-11-30T05:38Z",
        "2026-11-30T05:38:32.Z",
        "2026-11-30T05:38:32,5Z",
        "2026-11-30T05:38:32ZZ",
        "2026-11-30T05:38:32+0100",
        "2026-11-30T05:38:32+24:00",
        "2026-11-30T05:38:32+01:60",
        "2026-11-30T24:00:00Z",
        "2026-11-30T05:60:00Z",
        "2026-11-30T05:38:61Z",
        "2026-11-31T05:38:32Z",
        "2026-13-30T05:38:32Z",
        "2026-00-30T05:38:32Z",
        "2026-11-00T05:38:32Z",
        "1900-02-29T05:38:32Z",
        "1677-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z",
        "+026-11-30T05:38:32Z",
        " 2026-11-30T05:38:32Z",
        "1796017112",
    };
    int64_t at;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i]);
        CHECK(!bal_clock_read(&at, rows[i]));
    }
}

static void the_local_text_has_its_offset(void)
{
    char text[40];

    setenv("TZ", "CET-1", 1);
    tzset();
    bal_clock_local(text, INT64_C(1796017112123456789));
    CHECK(!strcmp(text, "2026-11-30 06:38:32 +0100"));
    bal_clock_local(text, -1);
    CHECK(!strcmp(text, "1970-01-01 00:59:59 +0100"));
}

static void clocks_go_forward(void)
{
    double before = bal_clock_ticks();
    int64_t now = bal_clock_now();

    CHECK(now / second - (int64_t)time(NULL) <= 1);
    bal_clock_sleep(0.02);
    CHECK(bal_clock_ticks() - before >= 0.02);
    bal_clock_sleep(0);
    bal_clock_sleep(-1);
    CHECK(bal_clock_ticks() - before < 10);
}

static const check_test tests[] = {
    { TEST(times_print_in_utc_with_nanoseconds) },
    { TEST(what_rfc_3339_allows_is_read) },
    { TEST(what_is_no_time_is_refused) },
    { TEST(the_local_text_has_its_offset) },
    { TEST(clocks_go_forward) },
};

CHECK_MAIN(tests)
