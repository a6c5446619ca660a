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
    { TEST(the_local_text_has_its_offset) },
    { TEST(clocks_go_forward) },
};

CHECK_MAIN(tests)
