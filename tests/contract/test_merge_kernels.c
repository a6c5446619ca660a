/* The loops that merges are made of: every table gives base's bits, and base's
 * are those of the single steps that a loop does at once, one element at a time
 * in plain C. */
#include <math.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/strange.h"

enum { MANY = 1 << 13, LESS = MANY - 3 };

static double a[MANY], b[MANY], want[MANY], got[MANY];
static double want_too[MANY], got_too[MANY];

/* Anything; or what a model has: near 0, some of it 0, some equal. */
static void fill(double *x, uint64_t seed)
{
    uint64_t state = seed;

    strange_fill(x, sizeof(a), BAL_F64, &state);
    for (size_t i = 0; i < MANY; i += 2) {
        uint64_t bits = strange_bits(&state);
        double size = (double)(bits >> 50) * 0x1p-16;
        x[i] = bits & 1 ? size : -size;
    }
}

static void fill_all(void)
{
    fill(a, 1);
    fill(b, 2);
}

/* Of F32 alone, so that sums and products of them in double are exact enough.
 */
static void narrow(double *x)
{
    bal_kernels_at(0)->round[BAL_F32](x, MANY);
}

static bool same(const double *x, const double *y, size_t n)
{
    return !memcmp(x, y, n * sizeof(*x));
}

/* ---- operations ---------------------------------------------------------- */

static const bal_dtype dtypes[] = { BAL_BF16, BAL_F16, BAL_F32, BAL_F64 };

static double plain_op(bal_op op, double x, double y)
{
    double results[] = {
        [BAL_OP_ADD] = x + y,
        [BAL_OP_SUB] = x - y,
        [BAL_OP_MUL] = x * y,
        [BAL_OP_DIV] = x / y,
    };

    return results[op];
}

static void settle(double *x, bal_dtype dtype, size_t n)
{
    const uint64_t nan = (uint64_t)0x7ff8 << 48;

    if (dtype != BAL_F64)
        bal_kernels_at(0)->round[dtype](x, n);
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            memcpy(&x[i], &nan, sizeof(nan));
    }
}

static void check_op(const bal_kernels *kernels, bal_op op, bal_dtype dtype)
{
    for (size_t i = 0; i < LESS; i++) {
        want[i] = plain_op(op, a[i], b[i]);
        want_too[i] = plain_op(op, a[i], 0.7);
    }
    settle(want, dtype, LESS);
    settle(want_too, dtype, LESS);
    kernels->op[dtype](op, got, a, b, LESS);
    kernels->number[dtype](op, got_too, a, 0.7, LESS);
    CHECK(same(got, want, LESS) && same(got_too, want_too, LESS));
    memcpy(got, a, sizeof(a));
    kernels->op[dtype](op, got, got, b, LESS);
    CHECK(same(got, want, LESS));
    memcpy(got, b, sizeof(b));
    kernels->op[dtype](op, got, a, got, LESS);
    CHECK(same(got, want, LESS));
    memcpy(got, a, sizeof(a));
    kernels->number[dtype](op, got, got, 0.7, LESS);
    CHECK(same(got, want_too, LESS));
}

static void an_operation_is_rounded_as_if_it_were_rounded_after(void)
{
    fill_all();
    for (size_t i = 0; i < 16 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 16);

        check_row(kernels->isa);
        check_op(kernels, (bal_op)(i % 4), dtypes[i / 4 % 4]);
    }
}

static void check_rows(const bal_kernels *kernels, bal_dtype dtype,
                       size_t count)
{
    const double *rows[] = { a, b, a, b, b };
    bal_columns which = { .count = count, .at = 5, .n = LESS - 5 };

    memset(want, 0, sizeof(want));
    for (size_t k = 0; k < count; k++) {
        for (size_t j = 0; j < which.n; j++)
            want[j] += rows[k][5 + j];
        settle(want, dtype == BAL_F64 ? BAL_F64 : BAL_F32, which.n);
    }
    settle(want, dtype, which.n);
    kernels->rows[dtype](got, rows, &which);
    CHECK(same(got, want, which.n));
}

static void rows_are_summed_in_order_from_0_on(void)
{
    fill_all();
    for (size_t i = 0; i < 4 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 4);

        check_row(kernels->isa);
        for (size_t count = 1; count <= 5; count++)
            check_rows(kernels, dtypes[i % 4], count);
    }
}

static void check_fma(const bal_kernels *kernels, float weight)
{
    memcpy(got, b, sizeof(b));
    kernels->fma_f32(got, (double)weight, a, LESS);
    for (size_t k = 0; k < LESS; k++) {
        double sum = (double)fmaf(weight, (float)a[k], (float)b[k]);
        CHECK(isnan(sum) ? isnan(got[k]) : got[k] == sum);
    }
}

/* With a weight of 1 + 2^-15, some sums lie so near the middle of two F32 that
 * they are there once they are rounded to double. */
static void a_fused_sum_is_that_of_fmaf(void)
{
    fill_all();
    narrow(a);
    narrow(b);
    for (size_t k = 0; k < 4; k++) {
        a[k] = k % 2 ? -0x1.fffcp-25 : 0x1.fffcp-25;
        b[k] = k / 2 ? -0x1.000002p0 : 0x1.000002p0;
    }
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        check_row(bal_kernels_at(i)->isa);
        check_fma(bal_kernels_at(i), 0.3f);
        check_fma(bal_kernels_at(i), 0x1.0002p0f);
    }
}

/* ---- signs --------------------------------------------------------------- */

static bool agrees(double sum, double x)
{
    return sum >= 0 ? x > 0 : x < 0;
}

static void those_of_the_sign_of_the_sum_are_elected(void)
{
    fill_all();
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);

        check_row(kernels->isa);
        memcpy(got, a, sizeof(a));
        kernels->elect(got, got_too, b, -0.5, LESS);
        for (size_t k = 0; k < LESS; k++) {
            want[k] = a[k] * agrees(b[k], a[k]);
            want_too[k] = agrees(b[k], a[k]) ? -0.5 : 0;
        }
        CHECK(same(got, want, LESS) && same(got_too, want_too, LESS));
        kernels->agree(got, a, b, -0.5, LESS);
        CHECK(same(got, want_too, LESS));
    }
}

static void divisors_of_nothing_are_1(void)
{
    fill_all();
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);

        check_row(kernels->isa);
        memcpy(got, a, sizeof(a));
        kernels->sizes(got_too, b, LESS);
        kernels->add_sizes(got_too, a, LESS);
        for (size_t k = 0; k < LESS; k++) {
            double size = fabs(b[k]) + fabs(a[k]);
            CHECK(isnan(size) ? isnan(got_too[k]) : got_too[k] == size);
            want[k] = fabs(a[k]) <= 0.25 * got_too[k] ? 1 : a[k];
        }
        kernels->divisors(got, got_too, 0.25, LESS);
        CHECK(same(got, want, LESS));
        memcpy(got, a, sizeof(a));
        kernels->at_least(got, 1e-2, LESS);
        for (size_t k = 0; k < LESS; k++)
            want[k] = a[k] < 1e-2 ? 1e-2 : a[k];
        CHECK(same(got, want, LESS));
    }
}

static void variance_goes_by_steps(void)
{
    fill_all();
    for (size_t i = 0; i < 3 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 3);
        double seen = (double)(i % 3 + 1);

        check_row(kernels->isa);
        memcpy(got, b, sizeof(b));
        memset(got_too, 0, sizeof(got_too));
        kernels->spread(got, got_too, a, seen, LESS);
        for (size_t k = 0; k < LESS; k++) {
            double off = a[k] - b[k];
            double mean = b[k] + off / seen;
            double square = 0 + off * (a[k] - mean);
            CHECK(isnan(mean) ? isnan(got[k]) : got[k] == mean);
            CHECK(isnan(square) ? isnan(got_too[k]) : got_too[k] == square);
        }
    }
}

/* ---- lanes --------------------------------------------------------------- */

typedef void lanes_fn(double *lanes, const double *x, size_t n);

/* One element after another; halves: the lane of element k of each 16 is that
 * of k + 8. */
static void plain_lanes(double *lanes, size_t width, bool halves, bool square)
{
    for (size_t k = 0; k < MANY; k++) {
        size_t lane = k % width;
        float x = (float)a[k];

        if (halves && k % 16 >= 8)
            continue;
        if (halves) {
            lane = k % 64 / 16 * 8 + k % 8;
            x += (float)a[k + 8];
        }
        if (square)
            x *= x;
        lanes[lane] = (double)((float)lanes[lane] + x);
    }
}

static void check_lanes(lanes_fn *fn, size_t width, bool halves, bool square)
{
    memset(want, 0, sizeof(want));
    memset(got, 0, sizeof(got));
    plain_lanes(want, width, halves, square);
    fn(got, a, MANY / 2 + 64);
    fn(got, a + MANY / 2 + 64, MANY / 2 - 64);
    CHECK(same(got, want, width));
}

static void lanes_are_summed_in_order(void)
{
    fill_all();
    narrow(a);
    for (size_t k = 1; k < MANY; k += 2)
        a[k] = a[k - 1] * 0x1.1p-3;
    narrow(a);
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);

        check_row(kernels->isa);
        check_lanes(kernels->lanes_f32, 32, false, false);
        check_lanes(kernels->lanes_halves, 32, true, false);
        check_lanes(kernels->squares_f32, 8, false, true);
        memset(want, 0, sizeof(want));
        memset(got, 0, sizeof(got));
        for (size_t k = 0; k < MANY; k++)
            want[k % 16] += a[k] * 0.1;
        kernels->number[BAL_F64](BAL_OP_MUL, got_too, a, 0.1, MANY);
        kernels->lanes16(got, got_too, MANY);
        CHECK(same(got, want, 16));
    }
}

/* ---- magnitudes ---------------------------------------------------------- */

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits & INT64_MAX;
}

static uint64_t key_of(double x)
{
    return isnan(x) ? BAL_KEY_NAN : bits_of(x);
}

static const uint64_t ranges[][2] = {
    { 0, BAL_KEY_NAN },
    { 0, 0 },
    { 1, 0 },
    { 0, UINT64_MAX },
    { BAL_KEY_NAN, BAL_KEY_NAN },
    { BAL_KEY_NAN + 1, BAL_KEY_NAN },
    { (uint64_t)1000 << 52, ((uint64_t)1015 << 52) + 7 },
};
enum { RANGES = sizeof(ranges) / sizeof(ranges[0]) };

/* "High" of UINT64_MAX stands for one less than 0: nothing is in. */
static bool in_range(double x, const uint64_t range[2])
{
    return range[1] != UINT64_MAX && key_of(x) >= range[0] &&
           key_of(x) <= range[1];
}

static void what_lies_in_a_range_is_kept(void)
{
    fill_all();
    for (size_t i = 0; i < RANGES * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / RANGES);
        const uint64_t *range = ranges[i % RANGES];

        check_row(kernels->isa);
        kernels->keep(got, a, range[0], range[1], LESS);
        for (size_t k = 0; k < LESS; k++)
            CHECK(got[k] == (in_range(a[k], range) ? 1 : 0));
    }
}

static void places_within_a_range_come_in_order(void)
{
    static uint32_t places[MANY + 1];

    fill_all();
    for (size_t i = 0; i < RANGES * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / RANGES);
        const uint64_t *range = ranges[i % RANGES];
        size_t next = 0;

        if (range[0] > range[1] || range[1] == UINT64_MAX)
            continue;
        check_row(kernels->isa);
        size_t count = kernels->within(places, a, range[0], range[1], LESS);
        for (size_t k = 0; k < LESS; k++) {
            if (in_range(a[k], range))
                CHECK(next < count && places[next++] == k);
        }
        CHECK(next == count);
    }
}

static void bins_are_exponent_and_7_bits(void)
{
    static uint32_t bins[MANY];

    fill_all();
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);
        uint64_t bits = 0, all = 0;
        bool plain = true;

        check_row(kernels->isa);
        CHECK(!kernels->bins(bins, &bits, a, LESS));
        for (size_t k = 0; k < LESS; k++) {
            double size = fabs(a[k]);
            int exponent;
            double part = frexp(size, &exponent);

            plain &= size == 0 || (size >= 0x1p-149 && size < 0x1p128);
            if (!(size >= 0x1p-149 && size < 0x1p128))
                continue;
            all |= bits_of(a[k]);
            CHECK(bins[k] == (uint32_t)((exponent + 148) * 128 + 2 +
                                        (int)(part * 256) - 128));
        }
        CHECK(bits == all && !plain);
        memset(got, 0, sizeof(got));
        CHECK(kernels->bins(bins, &bits, got, LESS) && !bins[LESS - 1]);
    }
}

static void digits_count_from_the_least_on(void)
{
    static uint32_t digits[MANY];

    fill_all();
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);
        uint64_t least = INT64_MAX, most = 0, all = 0, found[3];

        check_row(kernels->isa);
        for (size_t k = 0; k < LESS; k++) {
            uint64_t bits = bits_of(a[k]);

            least = bits && bits < least ? bits : least;
            most = bits > most ? bits : most;
            all |= bits;
        }
        kernels->extent(&found[0], &found[1], &found[2], a, LESS);
        CHECK(found[0] == least && found[1] == most && found[2] == all);
        kernels->digits(digits, a, least, 40, LESS);
        for (size_t k = 0; k < LESS; k++) {
            uint64_t bits = bits_of(a[k]);
            CHECK(digits[k] == (bits ? ((bits - least) >> 40) + 1 : 0));
        }
        memset(got, 0, sizeof(got));
        kernels->extent(&found[0], &found[1], &found[2], got, LESS);
        CHECK(found[0] == INT64_MAX && !found[1] && !found[2]);
    }
}

/* ---- chance -------------------------------------------------------------- */

static void what_is_drawn_below_a_chance_counts(void)
{
    static uint32_t words[MANY];
    static float drawn[MANY];
    uint64_t state = 3;

    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);

        check_row(kernels->isa);
        for (size_t k = 0; k < MANY; k++) {
            words[k] = (uint32_t)strange_bits(&state);
            got[k] = got_too[k] = (double)(words[k] >> 8) * 0x1p-24;
            if (k % 3)
                got[k] = got_too[k] = (double)(k % 64) / 64;
            want[k] = (double)(words[k] >> 8) * 0x1p-24 < got[k];
            want_too[k] = (double)(words[k] & 0xffffff) * 0x1p-24 < got[k];
        }
        kernels->upper24(drawn, words, LESS);
        kernels->below(got, drawn, LESS);
        kernels->below_torch(got_too, words, LESS);
        CHECK(same(got, want, LESS) && same(got_too, want_too, LESS));
    }
}

static void every_table_draws_as_base_does(void)
{
    static const uint32_t key[2] = { 0xa4093822, 0x299f31d0 };
    static const uint32_t stream[2] = { 0x13198a2e, 0x03707344 };
    const bal_kernels *base = bal_kernels_at(0);
    uint32_t first[624], other[624], out[624];

    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);
        uint64_t state = 4;

        check_row(kernels->isa);
        base->philox(first, key, stream, UINT32_MAX - (uint64_t)5);
        kernels->philox(other, key, stream, UINT32_MAX - (uint64_t)5);
        CHECK(!memcmp(first, other, 256 * sizeof(*first)));
        strange_fill(first, sizeof(first), BAL_U32, &state);
        memcpy(other, first, sizeof(first));
        base->twist(first);
        kernels->twist(other);
        CHECK(!memcmp(first, other, sizeof(first)));
        base->temper(out, first, 624);
        kernels->temper(first, other, 624);
        CHECK(!memcmp(first, out, sizeof(first)));
    }
}

static const check_test tests[] = {
    { TEST(an_operation_is_rounded_as_if_it_were_rounded_after) },
    { TEST(rows_are_summed_in_order_from_0_on) },
    { TEST(a_fused_sum_is_that_of_fmaf) },
    { TEST(those_of_the_sign_of_the_sum_are_elected) },
    { TEST(divisors_of_nothing_are_1) },
    { TEST(variance_goes_by_steps) },
    { TEST(lanes_are_summed_in_order) },
    { TEST(what_lies_in_a_range_is_kept) },
    { TEST(places_within_a_range_come_in_order) },
    { TEST(bins_are_exponent_and_7_bits) },
    { TEST(digits_count_from_the_least_on) },
    { TEST(what_is_drawn_below_a_chance_counts) },
    { TEST(every_table_draws_as_base_does) },
};

CHECK_MAIN(tests)
