/* Ids as text; the serving ids are from Python's
 * int(hex[:15], 16) % (2**31 - 1) + 1. */
#include <string.h>

#include "ballast.h"

#include "core/hash.h"
#include "support/check.h"

#define EMPTY "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

static void an_id_comes_back_as_it_was_written(void)
{
    char hex[BAL_ID_HEX + 1];
    bal_id id;

    CHECK_OK(bal_id_parse(&id, EMPTY, &check_err));
    CHECK(id.bytes[0] == 0xaf && id.bytes[31] == 0x62);
    bal_id_hex(hex, &id);
    CHECK(!strcmp(hex, EMPTY));
}

static void anything_but_64_lower_case_digits_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "af13",
        "AF1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "gf1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "f1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "0af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        " f1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    };
    bal_id id = { { 7 } };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_row(bad[i]);
        CHECK_RC(BAL_EINVAL, bal_id_parse(&id, bad[i], &check_err));
        CHECK(id.bytes[0] == 7);
    }
}

static void engines_know_a_commit_by_31_bits(void)
{
    static const struct {
        const char *hex;
        uint32_t serving;
    } rows[] = {
        { "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
          893518674 },
        { "0000000000000000000000000000000000000000000000000000000000000000",
          1 },
        { "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
          536870912 },
        { "000000007fffffe0000000000000000000000000000000000000000000000000",
          134217727 },
        { "000000007fffffffffffffffffffffffffffffffffffffffffffffffffffffff",
          134217728 },
        { "0000000ffffffff0000000000000000000000000000000000000000000000000",
          2 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_id id;
        check_row(rows[i].hex);
        CHECK_OK(bal_id_parse(&id, rows[i].hex, &check_err));
        CHECK(bal_id_serving(&id) == rows[i].serving);
    }
}

static void ids_are_sorted_and_each_is_left_once(void)
{
    bal_id ids[] = { { { 2, 1 } }, { { 1 } }, { { 2 } }, { { 1 } }, { { 2 } } };

    CHECK(bal_ids_unique(ids, 5) == 3);
    CHECK(ids[0].bytes[0] == 1 && ids[1].bytes[0] == 2 && !ids[1].bytes[1]);
    CHECK(ids[2].bytes[1] == 1);
    CHECK(bal_ids_unique(ids, 0) == 0);
    CHECK(bal_ids_unique(NULL, 0) == 0);
}

static const check_test tests[] = {
    { TEST(an_id_comes_back_as_it_was_written) },
    { TEST(anything_but_64_lower_case_digits_is_refused) },
    { TEST(engines_know_a_commit_by_31_bits) },
    { TEST(ids_are_sorted_and_each_is_left_once) },
};

CHECK_MAIN(tests)
