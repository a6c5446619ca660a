/* Statements: their canonical text, times, ids, and what is no statement. The
 * times that are compared were made by python. */
#include <stdlib.h>
#include <string.h>

#include "store/statement.h"
#include "support/check.h"

#define ID_A "aa00000000000000000000000000000000000000000000000000000000000000"
#define ID_B "bb00000000000000000000000000000000000000000000000000000000000000"

static json_t *plan_new(void)
{
    return json_pack("{s:s, s:s, s:[s,s], s:[s], s:[], s:{s:s}}", "tenant",
                     "acme", "reason", "say \"why\"", "commits", ID_B, ID_A,
                     "manifests", ID_A, "blocks", "private", "key_path",
                     "/secret/place");
}

static void written_is_canonical_and_keeps_what_is_private(void)
{
    static const char want[] =
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{"
        "\"blocks\":[],\"commits\":[\"" ID_B "\",\"" ID_A "\"],"
        "\"completed_at\":\"2026-11-30T05:38:32.000000007Z\","
        "\"log\":{\"index\":3,\"origin\":\"ballast/s1\"},"
        "\"manifests\":[\"" ID_A "\"],"
        "\"not_covered\":[";
    static const char last[] =
        "],\"reason\":\"say \\\"why\\\"\",\"schema\":\"ballast/deletion/1\","
        "\"signing\":{\"algorithm\":\"none\",\"key_id\":null},"
        "\"store\":\"s1\",\"tenant\":\"acme\"},"
        "\"predicateType\":\"urn:ballast:deletion:1\",\"subject\":["
        "{\"digest\":{\"blake3\":\"" ID_A "\"},\"name\":\"commit:acme/" ID_A
        "\"},{\"digest\":{\"blake3\":\"" ID_B "\"},\"name\":\"commit:acme/" ID_B
        "\"},{\"digest\":{\"blake3\":\"" ID_A
        "\"},\"name\":\"manifest:acme/" ID_A "\"}]}";
    const bal_statement_facts facts = {
        .store = "s1",
        .completed_at = INT64_C(1796017112000000007),
        .index = 3,
    };
    BAL_OWN(json_t) plan = plan_new();
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_statement_write(&text, plan, &facts, &check_err));
    CHECK(!strncmp(text.data, want, sizeof(want) - 1));
    CHECK(text.len > sizeof(last) &&
          !strcmp(text.data + text.len - (sizeof(last) - 1), last));
    CHECK(!strstr(text.data, "/secret/place"));
    CHECK(json_object_get(plan, "private"));
}

/* The allocation of jansson's that fails next; 0: none. */
static long failing;

static void *allocate(size_t size)
{
    return failing && !--failing ? NULL : malloc(size);
}

static void without_memory_no_statement_lacks_anything(void)
{
    enum { MOST = 4000 };
    const bal_statement_facts facts = { .store = "s1", .index = 3 };
    BAL_OWN(json_t) plan = plan_new();
    BAL_LOCAL(bal_buf) whole = { 0 };
    long turn = 0;
    int rc;

    CHECK_OK(bal_statement_write(&whole, plan, &facts, &check_err));
    json_set_alloc_funcs(allocate, free);
    do {
        BAL_LOCAL(bal_buf) text = { 0 };
        failing = ++turn;
        rc = bal_statement_write(&text, plan, &facts, &check_err);
        bool failed = !failing;
        failing = 0;
        CHECK(rc || !strcmp(bal_buf_string(&text), whole.data));
        CHECK(!rc || (failed && rc == BAL_ENOMEM));
        if (!failed)
            break;
    } while (turn < MOST);
    CHECK(turn > 50 && turn < MOST);
    json_set_alloc_funcs(malloc, free);
}

static void times_are_read_as_they_are_written(void)
{
    static const struct {
        const char *text;
        int64_t at;
    } rows[] = {
        { "1970-01-01T00:00:00.000000000Z", 0 },
        { "2026-11-30T05:38:32.123456789Z", INT64_C(1796017112123456789) },
        { "2024-02-29T23:59:59.999999999Z", INT64_C(1709251199999999999) },
        { "2000-03-01T00:00:00.000000001Z", INT64_C(951868800000000001) },
        { "2100-12-31T12:00:00.000000000Z", INT64_C(4133937600000000000) },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t at = -1;
        check_row(rows[i].text);
        CHECK(bal_statement_time(&at, rows[i].text));
        CHECK(at == rows[i].at);
    }
}

static void other_times_are_refused(void)
{
    static const char *const rows[] = {
        "",
        "2026-11-30T05:38:32Z",
        "2026-11-30T05:38:32.123456789z",
        "2026-11-30 05:38:32.123456789Z",
        "2026-13-30T05:38:32.123456789Z",
        "2025-02-29T05:38:32.123456789Z",
        "2026-11-30T24:38:32.123456789Z",
        "2026-11-30T05:61:32.123456789Z",
        "1969-12-31T23:59:59.000000000Z",
        "9999-12-31T23:59:59.000000000Z",
        "2026-11-30T05:38:32.12345678-Z",
        "2026-11-30T05:38:32.123456789ZZ",
    };
    int64_t at;

    CHECK(!bal_statement_time(&at, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i]);
        CHECK(!bal_statement_time(&at, rows[i]));
    }
}

static void ids_that_are_none_are_refused(void)
{
    BAL_OWN(json_t) good = json_pack("[s,s]", ID_A, ID_B);
    BAL_OWN(json_t) number = json_pack("[s,i]", ID_A, 7);
    BAL_OWN(json_t) digits = json_pack("[s]", "AA");
    BAL_LOCAL(bal_buf) ids = { 0 };

    CHECK_OK(bal_statement_ids(&ids, good, &check_err));
    CHECK(ids.len == 2 * sizeof(bal_id) && (uint8_t)ids.data[32] == 0xbb);
    CHECK_RC(BAL_ECORRUPT, bal_statement_ids(&ids, number, &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_statement_ids(&ids, digits, &check_err));
    bal_buf_clear(&ids);
    CHECK_OK(bal_statement_ids(&ids, NULL, &check_err));
    CHECK(!ids.len);
}

static void more_values_than_text_are_refused(void)
{
    size_t len = (size_t)8 << 20;
    char *text = malloc(len);
    json_t *out = NULL;

    CHECK(text);
    memset(text, ',', len);
    text[0] = '[';
    CHECK_RC(BAL_ECORRUPT,
             bal_statement_read(&out, (bal_bytes){ text, len }, &check_err));
    CHECK(strstr(check_err.text, "not one of a deletion"));
    free(text);
    CHECK_RC(BAL_ECORRUPT,
             bal_statement_read(&out, (bal_bytes){ NULL, 0 }, &check_err));
    CHECK_RC(BAL_ECORRUPT,
             bal_statement_read(&out, (bal_bytes){ "{\"a\":1,\"a\":2}", 13 },
                                &check_err));
}

static const check_test tests[] = {
    { TEST(written_is_canonical_and_keeps_what_is_private) },
    { TEST(times_are_read_as_they_are_written) },
    { TEST(other_times_are_refused) },
    { TEST(ids_that_are_none_are_refused) },
    { TEST(more_values_than_text_are_refused) },
    { TEST(without_memory_no_statement_lacks_anything) },
};

CHECK_MAIN(tests)
