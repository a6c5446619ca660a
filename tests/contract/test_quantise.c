/* The loops of .wdelta files: every table gives the bits that each loop's plain
 * meaning gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/strange.h"

enum { MANY = 5003 };

static float input[MANY];
static size_t sizes[] = { 0, 1, 7, 8, 31, 32, 33, 511, 512, 513, MANY };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static uint32_t magnitude(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits & 0x7fffffff;
}

/* Half of them strange, half of them ordinary. */
static void fill(void)
{
    uint64_t state = 17;

    strange_fill(input, sizeof(input), BAL_F32, &state);
    for (size_t i = 0; i < MANY; i += 2)
        input[i] = (float)((double)(int64_t)strange_bits(&state) / 9.3e21);
}

typedef void case_fn(const bal_kernels *kernels, size_t n);

static void each(case_fn *fn)
{
    fill();
    for (size_t k = 0; k < bal_kernels_count(); k++) {
        check_row(bal_kernels_at(k)->isa);
        for (size_t i = 0; i < SIZES; i++)
            fn(bal_kernels_at(k), sizes[i]);
    }
}

static void tally_case(const bal_kernels *kernels, size_t n)
{
    static uint64_t got[65536];
    static uint64_t want[65536];

    memset(got, 0, sizeof(got));
    memset(want, 0, sizeof(want));
    for (size_t i = 0; i < n; i++)
        want[magnitude(input[i]) >> 15]++;
    kernels->tally(got, input, n);
    CHECK(!memcmp(got, want, sizeof(got)));
}

static void magnitudes_are_counted_by_their_upper_bits(void)
{
    each(tally_case);
}

static const uint32_t limits[] = { 0,          1,          0x33800000,
                                   0x3a83126f, 0x7f800000, 0x7fffffff };
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static void beyond_case(const bal_kernels *kernels, size_t n)
{
    for (size_t k = 0; k < LIMITS; k++) {
        bal_beyond got = { 0 };
        bal_beyond want = { 0 };
        for (size_t i = 0; i < n; i++) {
            bool same = magnitude(input[i]) == limits[k];
            want.over += magnitude(input[i]) > limits[k];
            want.same += same;
            want.minus += same && signbit(input[i]);
        }
        kernels->beyond(&got, input, n, limits[k]);
        CHECK(got.over == want.over && got.same == want.same &&
              got.minus == want.minus);
    }
}

static void what_lies_beyond_a_limit_is_counted(void)
{
    each(beyond_case);
}

static int32_t order_of(float value)
{
    int32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

static void below_case(const bal_kernels *kernels, size_t n)
{
    for (size_t k = 0; k < LIMITS; k++) {
        bal_below got = { .low = INT32_MAX, .high = INT32_MIN };
        bal_below want = got;
        for (size_t i = 0; i < n; i++) {
            int32_t order = order_of(input[i]);
            if (magnitude(input[i]) >= limits[k])
                continue;
            want.count++;
            want.low = order < want.low ? order : want.low;
            want.high = order > want.high ? order : want.high;
        }
        kernels->below_limit(&got, input, n, limits[k]);
        CHECK(got.count == want.count && got.low == want.low &&
              got.high == want.high);
    }
}

static void the_ends_of_what_lies_below_a_limit_are_found(void)
{
    each(below_case);
}

static void pick_case(const bal_kernels *kernels, size_t n)
{
    static uint32_t got[MANY + 1];

    for (size_t k = 0; k < LIMITS; k++) {
        size_t count = kernels->pick(got, input, n, limits[k]);
        size_t want = 0;
        for (size_t i = 0; i < n; i++) {
            if (magnitude(input[i]) < limits[k])
                continue;
            CHECK(want < count && got[want] == i);
            want++;
        }
        CHECK(count == want);
    }
}

static void places_of_large_magnitudes_come_in_order(void)
{
    each(pick_case);
}

static void codes_case(const bal_kernels *kernels, size_t n)
{
    static uint8_t got[MANY];
    const float low = -0.00123f;
    const float range = 0.00251f;

    kernels->codes4(got, input, n, low, range);
    for (size_t i = 0; i < n; i++) {
        float part = (input[i] - low) / range;
        float place = part * 15.0f;
        float near = place > 0.0f ? rintf(place) : 0.0f;
        CHECK(got[i] == (uint8_t)(near < 15.0f ? near : 15.0f));
    }
}

static void codes_are_the_nearest_of_sixteen(void)
{
    each(codes_case);
}

static void ties_go_to_even_codes(void)
{
    static const float x[] = { 0.5f, 1.5f, 2.5f, 13.5f, 14.5f };
    static const uint8_t want[] = { 0, 2, 2, 14, 14 };
    uint8_t got[5];

    for (size_t k = 0; k < bal_kernels_count(); k++) {
        bal_kernels_at(k)->codes4(got, x, 5, 0.0f, 15.0f);
        CHECK(!memcmp(got, want, sizeof(got)));
    }
}

static void signs_case(const bal_kernels *kernels, size_t n)
{
    static uint8_t got[MANY / 8];
    static float back[MANY];
    size_t groups = n / 8;

    kernels->signs(got, input, groups);
    kernels->spread_signs(back, got, groups);
    for (size_t i = 0; i < 8 * groups; i++) {
        bool positive = input[i] >= 0.0f;
        CHECK((got[i / 8] >> (7 - i % 8) & 1) == positive);
        CHECK(back[i] == (positive ? 1.0f : -1.0f));
    }
}

static void signs_go_into_bits_and_back(void)
{
    each(signs_case);
}

static void pack_case(const bal_kernels *kernels, size_t n)
{
    static uint8_t codes[MANY];
    static uint8_t packed[MANY / 2];
    static float table[512];
    static float back[MANY];
    size_t pairs = n / 2;

    for (size_t i = 0; i < 512; i++)
        table[i] = (float)(i % 2 ? i / 2 % 16 : i / 2 / 16);
    for (size_t i = 0; i < MANY; i++)
        codes[i] = (uint8_t)(i * 7 % 16);
    kernels->pack4(packed, codes, pairs);
    kernels->unpack4(back, packed, pairs, table);
    for (size_t i = 0; i < 2 * pairs; i++) {
        CHECK((i % 2 ? packed[i / 2] & 15 : packed[i / 2] >> 4) == codes[i]);
        CHECK(back[i] == (float)codes[i]);
    }
}

static void codes_go_into_half_bytes_and_back(void)
{
    each(pack_case);
}

/* numpy 2: np.add.reduce(np.abs(x)) of x[i] = (-1)^i * (i + 1) / 7 as float32.
 */
static const struct {
    size_t n;
    uint32_t bits;
} sums[] = {
    { 8, 0x40a49249 },   { 9, 0x40cdb6db },   { 15, 0x41892492 },
    { 16, 0x419b6db7 },  { 17, 0x41aedb6e },  { 63, 0x43900001 },
    { 100, 0x44345b6d }, { 127, 0x44912492 }, { 128, 0x44936db7 },
};

static void magnitudes_are_summed_in_numpys_order(void)
{
    float x[128];

    for (size_t i = 0; i < 128; i++)
        x[i] = (i % 2 ? -1.0f : 1.0f) * (float)(i + 1) / 7.0f;
    for (size_t k = 0; k < bal_kernels_count(); k++) {
        for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
            float sum = bal_kernels_at(k)->sum_block(x, sums[i].n);
            CHECK(magnitude(sum) == sums[i].bits);
        }
    }
}

static const check_test tests[] = {
    { TEST(magnitudes_are_counted_by_their_upper_bits) },
    { TEST(what_lies_beyond_a_limit_is_counted) },
    { TEST(the_ends_of_what_lies_below_a_limit_are_found) },
    { TEST(places_of_large_magnitudes_come_in_order) },
    { TEST(codes_are_the_nearest_of_sixteen) },
    { TEST(ties_go_to_even_codes) },
    { TEST(signs_go_into_bits_and_back) },
    { TEST(codes_go_into_half_bytes_and_back) },
    { TEST(magnitudes_are_summed_in_numpys_order) },
};

CHECK_MAIN(tests)
