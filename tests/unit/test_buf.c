/* Buffers, arenas and checked arithmetic. */
#include <string.h>

#include "core/arith.h"
#include "core/buf.h"
#include "support/check.h"

static void zero_is_empty(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    CHECK(!strcmp(bal_buf_string(&buf), ""));
    bal_buf_clear(&buf);
    CHECK_OK(bal_buf_append(&buf, NULL, 0, &check_err));
    CHECK(buf.len == 0 && buf.data && !buf.data[0]);
}

static void appends_in_order_with_a_nul_behind(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    CHECK_OK(bal_buf_append(&buf, "a", 1, &check_err));
    CHECK_OK(bal_buf_text(&buf, "bc", &check_err));
    CHECK_OK(bal_buf_format(&buf, &check_err, "%d-%s", 42, "x"));
    CHECK(buf.len == 7 && !strcmp(bal_buf_string(&buf), "abc42-x"));
    bal_buf_clear(&buf);
    CHECK(!strcmp(bal_buf_string(&buf), ""));
}

static void grows_over_many_appends(void)
{
    BAL_LOCAL(bal_buf) buf = { 0 };

    for (unsigned i = 0; i < 10000; i++)
        CHECK_OK(bal_buf_append(&buf, &"0123456789"[i % 10], 1, &check_err));
    CHECK(buf.len == 10000);
    for (size_t i = 0; i < buf.len; i++)
        CHECK(buf.data[i] == (char)('0' + i % 10));
}

static void the_ceiling_can_be_reached_but_not_passed(void)
{
    BAL_LOCAL(bal_buf) buf = { .ceiling = 100 };
    char block[101] = { 0 };

    CHECK_RC(BAL_EINVAL, bal_buf_append(&buf, block, 101, &check_err));
    CHECK_OK(bal_buf_append(&buf, block, 60, &check_err));
    CHECK_RC(BAL_EINVAL, bal_buf_append(&buf, block, 41, &check_err));
    CHECK_OK(bal_buf_append(&buf, block, 40, &check_err));
    CHECK(buf.len == 100);
    CHECK_RC(BAL_EINVAL, bal_buf_text(&buf, "x", &check_err));
    CHECK_RC(BAL_EINVAL, bal_buf_format(&buf, &check_err, "%d", 1));
    CHECK_RC(BAL_EINVAL, bal_buf_reserve(&buf, SIZE_MAX, &check_err));
    CHECK(buf.len == 100);
}

static void an_arena_gives_zeroed_aligned_memory(void)
{
    BAL_LOCAL(bal_arena) arena = { 0 };

    for (size_t len = 0; len < 5000; len += 7) {
        uint8_t *at = bal_arena_alloc(&arena, len);
        CHECK(at && (uintptr_t)at % 16 == 0);
        for (size_t i = 0; i < len; i++)
            CHECK(!at[i]);
        memset(at, 0xff, len);
    }
    CHECK(bal_arena_alloc(&arena, 3 << 20) != NULL);
    CHECK(bal_arena_alloc(&arena, 1) != NULL);
}

static void an_arena_copies_text(void)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    char *copy = bal_arena_copy(&arena, "a\0bc", 4);

    CHECK(copy && !memcmp(copy, "a\0bc\0", 5));
    CHECK(!strcmp(bal_arena_copy(&arena, NULL, 0), ""));
    CHECK(!bal_arena_copy(&arena, "", SIZE_MAX));
}

static void an_arena_keeps_to_its_ceiling(void)
{
    BAL_LOCAL(bal_arena) arena = { .ceiling = 1000 };

    CHECK(!bal_arena_alloc(&arena, 1001));
    CHECK(!bal_arena_alloc(&arena, SIZE_MAX));
    CHECK(bal_arena_alloc(&arena, 900));
    CHECK(!bal_arena_alloc(&arena, 200));
    bal_arena_done(&arena);
    CHECK(bal_arena_alloc(&arena, 900));
}

static void sums_and_products_that_do_not_fit_are_told(void)
{
    uint64_t out = 7;

    CHECK(!bal_add(&out, UINT64_MAX, 1) && out == 7);
    CHECK(!bal_mul(&out, UINT64_MAX, 2) && out == 7);
    CHECK(bal_add(&out, UINT64_MAX - 1, 1) && out == UINT64_MAX);
    CHECK(bal_mul(&out, UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1));
    CHECK(out == UINT64_C(0xffffffff00000000));
}

static void little_endian_numbers_have_their_first_byte_lowest(void)
{
    uint8_t bytes[8];

    bal_put64(bytes, UINT64_C(0x0102030405060708));
    CHECK(bytes[0] == 8 && bytes[7] == 1);
    CHECK(bal_get64(bytes) == UINT64_C(0x0102030405060708));
    CHECK(bal_get32(bytes) == 0x05060708);
    bal_put32(bytes, 0xfffefdfc);
    CHECK(bytes[0] == 0xfc && bal_get32(bytes) == 0xfffefdfc);
}

static const check_test tests[] = {
    { TEST(zero_is_empty) },
    { TEST(appends_in_order_with_a_nul_behind) },
    { TEST(grows_over_many_appends) },
    { TEST(the_ceiling_can_be_reached_but_not_passed) },
    { TEST(an_arena_gives_zeroed_aligned_memory) },
    { TEST(an_arena_copies_text) },
    { TEST(an_arena_keeps_to_its_ceiling) },
    { TEST(sums_and_products_that_do_not_fit_are_told) },
    { TEST(little_endian_numbers_have_their_first_byte_lowest) },
};

CHECK_MAIN(tests)
