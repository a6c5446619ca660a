/* Codecs of numbers, with a base and without, give back what they were given,
 * every bit of it, on every machine level. The oracles: the data itself, a
 * plain reader of the description, and arithmetic of the compiler's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/coder.h"
#include "codec/numbers.h"
#include "support/bytes.h"
#include "support/check.h"
#include "support/plain_rans.h"

enum { MANY = 1 << 18, MOST = MANY * 8, WIDEST = 8 };

static uint8_t base[MOST + 16];
static uint8_t tuned[MOST + 16];
static uint8_t back[MOST + 16];

static bal_coder *coder_of_test(void)
{
    bal_coder *coder = NULL;

    CHECK_OK(bal_coder_new(&coder, &check_err));
    return coder;
}

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- one block, on all machine levels ----------------------------------- */

/* Encoded by one level and decoded by each; all must encode alike. */
static bal_codec_id check_block(bal_coder *coder, size_t len,
                                const bal_grain *grain, bal_buf *packed)
{
    BAL_LOCAL(bal_buf) again = { 0 };
    bal_bytes from = { tuned, len };
    bal_codec_id used = BAL_CODECS;
    bal_codec_id other = BAL_CODECS;

    coder->loops = &bal_loops_base;
    CHECK_OK(bal_encode(coder, &used, packed, from, grain, BAL_EFFORT_AUTO,
                        &check_err));
    bal_bytes payload =
        used == BAL_CODEC_RAW ? from : (bal_bytes){ packed->data, packed->len };
    CHECK(payload.len <= len);
    for (size_t i = 0; i < bal_loops_count(); i++) {
        if (!bal_loops_at(i))
            continue;
        coder->loops = bal_loops_at(i);
        bal_buf_clear(&again);
        CHECK_OK(bal_encode(coder, &other, &again, from, grain, BAL_EFFORT_AUTO,
                            &check_err));
        CHECK(other == used && again.len == packed->len);
        CHECK(!again.len || !memcmp(again.data, packed->data, again.len));
        memset(back, 0x5a, len);
        CHECK_OK(
            bal_decode(coder, used, back, len, payload, grain, &check_err));
        CHECK(!len || !memcmp(back, tuned, len));
    }
    return used;
}

static bal_codec_id check_against_base(size_t len, bal_number kind)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_grain grain = { .width = bal_number_find(kind)->width,
                        .kind = kind,
                        .base_kind = kind,
                        .base = { base, len } };

    return check_block(coder, len, &grain, &packed);
}

/* ---- exactness ---------------------------------------------------------- */

static void put2(uint8_t *to, size_t i, uint64_t value)
{
    to[2 * i] = (uint8_t)value;
    to[2 * i + 1] = (uint8_t)(value >> 8);
}

/* Both signs and all exponents of one against those of the other, the mantissas
 * by chance: NaNs with payloads, infinities, zeros and subnormals are there. */
static void every_pair_of_bf16_exponents_is_exact(void)
{
    size_t n = 0;

    state = 1;
    for (uint64_t near = 0; near < 512; near++) {
        for (uint64_t far = 0; far < 512; far++, n++) {
            uint64_t value = near << 7 | (draw() & 0x7f);
            put2(base, 4 * n, value);
            put2(tuned, 4 * n, far << 7 | (draw() & 0x7f));
            for (size_t i = 1; i < 4; i++) {
                put2(base, 4 * n + i, value);
                put2(tuned, 4 * n + i, value + (draw() & 1));
            }
        }
    }
    CHECK(n == MANY);
    CHECK(check_against_base(8 * n, BAL_NUMBER_BF16) == BAL_CODEC_ANCHORED);
}

static void every_f16_is_exact(void)
{
    state = 2;
    for (size_t i = 0; i < MANY; i++) {
        uint64_t step = i >> 16;
        put2(base, i, i & 0xffff);
        put2(tuned, i, (i & 0xffff) + (step == 3 ? 0x7fff : step - 1));
    }
    CHECK(check_against_base(2 * MANY, BAL_NUMBER_F16) == BAL_CODEC_ANCHORED);
}

/* Changes of all lengths of bits, the longest included. */
static void fill_changes(bal_number kind, size_t len)
{
    size_t width = bal_number_find(kind)->width;

    for (size_t i = 0; i < len; i++)
        base[i] = (uint8_t)draw();
    memcpy(tuned, base, len);
    for (size_t i = 0; i + width <= len; i += width) {
        uint64_t value = 0;
        uint64_t length = draw() % (draw() % 4 ? 3 : 8 * width + 1);
        uint64_t change = length ? draw() >> (64 - length) : 0;
        memcpy(&value, base + i, width);
        value += draw() & 1 ? change : 0 - change;
        memcpy(tuned + i, &value, width);
    }
}

static const struct {
    const char *name;
    bal_number kind;
} numbers[] = {
    { "bf16", BAL_NUMBER_BF16 }, { "f16", BAL_NUMBER_F16 },
    { "f32", BAL_NUMBER_F32 },   { "f64", BAL_NUMBER_F64 },
    { "e4m3", BAL_NUMBER_E4M3 }, { "e5m2", BAL_NUMBER_E5M2 },
};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static void changes_of_any_length_are_exact(void)
{
    for (size_t k = 0; k < NUMBERS; k++) {
        check_row(numbers[k].name);
        state = k;
        fill_changes(numbers[k].kind, MOST / 4);
        CHECK(check_against_base(MOST / 4, numbers[k].kind) ==
              BAL_CODEC_ANCHORED);
    }
}

static void any_number_of_elements_is_exact(void)
{
    static const size_t lengths[] = { 1,    2,    7,     64,    65,    255,
                                      1000, 4093, 16383, 16387, 40007, 131071 };

    for (size_t k = 0; k < NUMBERS; k++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            check_row(numbers[k].name);
            state = i;
            fill_changes(numbers[k].kind, lengths[i]);
            (void)check_against_base(lengths[i], numbers[k].kind);
        }
    }
}

/* ---- differences -------------------------------------------------------- */

static float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void put_difference(size_t i, float to, float from)
{
    float value = to - from;
    uint32_t none = 0x7fc00000;

    memcpy(tuned + 4 * i, isnan(value) ? (void *)&none : (void *)&value, 4);
}

static bal_codec_id check_difference(size_t n, bal_number kind, bal_buf *packed)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    bal_grain grain = { .width = bal_number_find(kind)->wide,
                        .kind = BAL_NUMBER_F32,
                        .base_kind = kind,
                        .difference = true,
                        .base = { base, n * bal_number_find(kind)->width } };

    return check_block(coder, n * grain.width, &grain, packed);
}

/* Of all strata of bf16: what the integers cannot say is patched. */
static void differences_of_bf16_are_exact(void)
{
    BAL_LOCAL(bal_buf) packed = { 0 };
    size_t n = 0;

    state = 3;
    for (uint32_t near = 0; near < 512; near++) {
        for (uint32_t far = 0; far < 512; far++, n++) {
            uint32_t from = near << 7 | (draw() & 0x7f);
            uint32_t to = n % 4 ? from + (draw() & 1)
                                : (far << 7 | (uint32_t)(draw() & 0x7f));
            put2(base, n, from);
            put_difference(n, f32_of(to << 16), f32_of(from << 16));
        }
    }
    CHECK(check_difference(n, BAL_NUMBER_BF16, &packed) == BAL_CODEC_ANCHORED);
    CHECK(packed.len < n);
}

static void differences_of_f32_are_exact(void)
{
    BAL_LOCAL(bal_buf) packed = { 0 };

    state = 4;
    for (size_t i = 0; i < MANY; i++) {
        uint32_t from = (uint32_t)draw();
        uint32_t to = from + (uint32_t)(draw() >> (40 + draw() % 24));
        memcpy(base + 4 * i, &from, 4);
        put_difference(i, f32_of(to), f32_of(from));
    }
    CHECK(check_difference(MANY, BAL_NUMBER_F32, &packed) ==
          BAL_CODEC_ANCHORED);
}

/* What no difference of the base can be: patched, as long as it is rare. */
static void what_is_no_difference_survives(void)
{
    BAL_LOCAL(bal_buf) packed = { 0 };
    uint32_t odd[] = { 0x7fc00001, 0xffc00000, 0x80000000, 0x00000001 };

    state = 5;
    for (size_t i = 0; i < MANY; i++) {
        uint32_t from = 0x3c00 + (uint32_t)(draw() & 0x7ff);
        put2(base, i, from);
        put_difference(i, f32_of((from + (uint32_t)(draw() & 1)) << 16),
                       f32_of(from << 16));
        if (i % 1000 == 7)
            memcpy(tuned + 4 * i, &odd[i / 1000 % 4], 4);
    }
    CHECK(check_difference(MANY, BAL_NUMBER_BF16, &packed) ==
          BAL_CODEC_ANCHORED);
    CHECK(packed.len < MANY / 4);
}

static void without_a_base_differences_are_trimmed(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_grain grain = { .width = 4, .kind = BAL_NUMBER_F32 };
    uint32_t odd[] = { 0x7fc00001, 0xffffffff, 0x80000000, 0x00000001 };

    state = 6;
    for (size_t i = 0; i < MANY; i++) {
        uint32_t from = 0x3800 + (uint32_t)(draw() & 0x7ff);
        put_difference(i, f32_of((from + (uint32_t)(draw() & 7) - 4) << 16),
                       f32_of(from << 16));
        if (i % 1000 == 7)
            memcpy(tuned + 4 * i, &odd[i / 1000 % 4], 4);
    }
    CHECK(check_block(coder, 4 * (size_t)MANY + 3, &grain, &packed) ==
          BAL_CODEC_TRIMMED);
    CHECK(packed.len < MANY);
}

/* ---- few changes -------------------------------------------------------- */

static void few_changes_take_few_bytes(void)
{
    static const struct {
        const char *name;
        size_t every;
        size_t most;
    } rows[] = { { "none", 0, 32 },
                 { "one", MANY, 64 },
                 { "0.01 %", 10000, 150 },
                 { "0.1 %", 1000, 700 },
                 { "1 %", 100, 4000 } };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        BAL_OWN(bal_coder) coder = coder_of_test();
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = 2,
                            .kind = BAL_NUMBER_BF16,
                            .base_kind = BAL_NUMBER_BF16,
                            .base = { base, 2 * MANY + 1 } };
        check_row(rows[r].name);
        bytes_seed(r);
        bytes_bf16(base, 2 * MANY + 1);
        memcpy(tuned, base, 2 * MANY + 1);
        state = r;
        for (size_t i = 0; rows[r].every && i < MANY; i++) {
            if (draw() % rows[r].every == 0)
                tuned[2 * i]++;
        }
        CHECK(check_block(coder, 2 * MANY + 1, &grain, &packed) ==
              BAL_CODEC_SPARSE);
        CHECK(packed.len < rows[r].most);
    }
}

static void one_value_takes_no_room(void)
{
    static const uint8_t widths[] = { 1, 2, 4, 8 };

    for (size_t w = 0; w < sizeof(widths); w++) {
        BAL_OWN(bal_coder) coder = coder_of_test();
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = widths[w], .kind = BAL_NUMBER_INT };
        memset(tuned, 0x3c, MANY);
        CHECK(check_block(coder, MANY - 1, &grain, &packed) ==
              BAL_CODEC_SPARSE);
        CHECK(packed.len < 40);
        bal_buf_clear(&packed);
        tuned[1000] = 1;
        CHECK(check_block(coder, MANY - 1, &grain, &packed) ==
              BAL_CODEC_SPARSE);
        CHECK(packed.len < 80);
    }
}

/* ---- no base ------------------------------------------------------------ */

static void numbers_without_a_base_shrink(void)
{
    static const struct {
        const char *name;
        bal_number kind;
        void (*fill)(uint8_t *to, size_t len);
        bal_codec_id want;
        size_t most; /* of 1000 */
    } rows[] = {
        { "bf16", BAL_NUMBER_BF16, bytes_bf16, BAL_CODEC_TURNED, 666 },
        { "f32", BAL_NUMBER_F32, bytes_f32, BAL_CODEC_TURNED, 840 },
        { "f64", BAL_NUMBER_F64, bytes_f64, BAL_CODEC_TURNED, 875 },
        { "random", BAL_NUMBER_BF16, bytes_random, BAL_CODEC_RAW, 0 },
    };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        BAL_OWN(bal_coder) coder = coder_of_test();
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = bal_number_find(rows[r].kind)->width,
                            .kind = rows[r].kind };
        check_row(rows[r].name);
        bytes_seed(r);
        rows[r].fill(tuned, MANY + 3);
        CHECK(check_block(coder, MANY + 3, &grain, &packed) == rows[r].want);
        CHECK(packed.len <= (size_t)MANY / 1000 * rows[r].most);
    }
}

/* ---- the description ---------------------------------------------------- */

static void anchored_payloads_are_as_described(void)
{
    static const size_t counts[] = { 1000, 4095, 4096, 150001 };

    for (size_t k = 0; k < NUMBERS; k++) {
        size_t width = bal_number_find(numbers[k].kind)->width;
        for (size_t i = 0; i < 4 && width <= 4; i++) {
            BAL_OWN(bal_coder) coder = coder_of_test();
            BAL_LOCAL(bal_buf) packed = { 0 };
            size_t len = counts[i] * width;
            bal_grain grain = { .width = (uint8_t)width,
                                .kind = numbers[k].kind,
                                .base_kind = numbers[k].kind,
                                .base = { base, len } };
            check_row(numbers[k].name);
            state = k + i;
            fill_changes(numbers[k].kind, len);
            CHECK(check_block(coder, len, &grain, &packed) ==
                  BAL_CODEC_ANCHORED);
            CHECK(plain_anchored(back, base, counts[i],
                                 (const uint8_t *)packed.data, packed.len));
            CHECK(!memcmp(back, tuned, len));
        }
    }
}

/* What is long, what takes little, what is short. */
static void streams_are_made_for_their_length(void)
{
    static const struct {
        size_t count;
        unsigned every; /* how few change */
        unsigned lanes; /* as on disk */
        unsigned exact;
    } rows[] = {
        { MANY, 1, 3, 1 }, { MANY, 4, 0, 1 }, { 65536, 1, 1, 0 },
        { 5000, 1, 1, 0 }, { 4000, 1, 2, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_OWN(bal_coder) coder = coder_of_test();
        BAL_LOCAL(bal_buf) packed = { 0 };
        size_t len = 2 * rows[i].count;
        bal_grain grain = { .width = 2,
                            .kind = BAL_NUMBER_BF16,
                            .base_kind = BAL_NUMBER_BF16,
                            .base = { base, len } };
        state = i;
        for (size_t k = 0; k < rows[i].count; k++) {
            uint64_t far = draw() % (rows[i].every > 1 ? 3 : 41) - 20;
            put2(base, k, 0x3f80 + (draw() & 0x3ff));
            put2(tuned, k, base[2 * k] | (uint64_t)base[2 * k + 1] << 8);
            if (k % rows[i].every == 0)
                put2(tuned, k, (base[2 * k] | base[2 * k + 1] << 8) + far);
        }
        CHECK(check_block(coder, len, &grain, &packed) == BAL_CODEC_ANCHORED);
        const uint8_t *stream = (const uint8_t *)packed.data + 8;
        check_row(rows[i].every > 1 ? "few" : "many");
        CHECK((stream[0] & 1u) == rows[i].exact);
        CHECK(stream[3] >> 6 == rows[i].lanes);
        CHECK(
            plain_anchored(back, base, rows[i].count, stream - 8, packed.len));
        CHECK(!memcmp(back, tuned, len));
    }
}

static const check_test tests[] = {
    { TEST(streams_are_made_for_their_length) },
    { TEST(every_pair_of_bf16_exponents_is_exact) },
    { TEST(every_f16_is_exact) },
    { TEST(changes_of_any_length_are_exact) },
    { TEST(any_number_of_elements_is_exact) },
    { TEST(differences_of_bf16_are_exact) },
    { TEST(differences_of_f32_are_exact) },
    { TEST(what_is_no_difference_survives) },
    { TEST(without_a_base_differences_are_trimmed) },
    { TEST(few_changes_take_few_bytes) },
    { TEST(one_value_takes_no_room) },
    { TEST(numbers_without_a_base_shrink) },
    { TEST(anchored_payloads_are_as_described) },
};

CHECK_MAIN(tests)
