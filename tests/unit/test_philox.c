/* Philox against the known answers of Random123 (kat_vectors, philox4x32 10),
 * and draws against Philox. */
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *name;
    uint32_t counter[4], key[2], want[4];
} answers[] = {
    { "zeros",
      { 0, 0, 0, 0 },
      { 0, 0 },
      { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { "ones",
      { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { "pi",
      { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void words_are_the_known_answers(void)
{
    for (size_t i = 0; i < COUNT(answers); i++) {
        uint32_t out[4];
        check_row(answers[i].name);
        bal_philox(out, answers[i].counter, answers[i].key);
        CHECK(!memcmp(out, answers[i].want, sizeof(out)));
    }
}

/* Elements 0 … 3 of the row of zeros. */
static void a_draw_is_the_upper_24_bits_of_its_word(void)
{
    bal_draws draws = { { 0, 0 }, { 0, 0 } };
    float out[4];

    bal_draws_take(&draws, 0, out, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK(out[i] * 0x1p24f == (float)(answers[0].want[i] >> 8));
}

static void the_element_is_the_lower_half_of_the_counter(void)
{
    bal_draws draws = { { 5, 6 }, { 7, 8 } };
    uint32_t counter[4] = { 0x89abcdef, 0x01234567, 7, 8 };
    uint32_t words[4];
    float out[3];

    bal_philox(words, counter, draws.key);
    bal_draws_take(&draws, (uint64_t)0x0123456789abcdef * 4 + 1, out, 3);
    for (size_t i = 0; i < 3; i++)
        CHECK(out[i] * 0x1p24f == (float)(words[i + 1] >> 8));
}

static void any_cut_gives_the_same_draws(void)
{
    bal_draws draws;
    float all[64], some[64];

    bal_draws_init(&draws, 42, 1, "model.layers.0.mlp.up_proj.weight");
    bal_draws_take(&draws, 1000001, all, 64);
    for (size_t start = 0; start < 64; start++) {
        bal_draws_take(&draws, 1000001 + start, some, 64 - start);
        CHECK(!memcmp(some, all + start, (64 - start) * sizeof(*all)));
    }
}

/* b3sum of (seed, input, name), by the b3sum program:
 *   printf '\x2a\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0w' | b3sum */
static void key_and_stream_are_a_hash_of_seed_input_and_name(void)
{
    bal_draws draws;

    bal_draws_init(&draws, 42, 1, "w");
    CHECK(draws.key[0] == 0xba6d2e51 && draws.key[1] == 0xf8955654);
    CHECK(draws.stream[0] == 0xcb162691 && draws.stream[1] == 0x23aa7995);
}

static void seed_input_and_name_each_matter(void)
{
    static const struct {
        uint64_t seed;
        size_t input;
        const char *name;
    } rows[] = { { 42, 1, "w" },
                 { 43, 1, "w" },
                 { 42, 2, "w" },
                 { 42, 1, "v" },
                 { 1, 42, "w" } };
    bal_draws draws[COUNT(rows)];

    for (size_t i = 0; i < COUNT(rows); i++)
        bal_draws_init(&draws[i], rows[i].seed, rows[i].input, rows[i].name);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < i; k++)
            CHECK(memcmp(&draws[i], &draws[k], sizeof(draws[i])) != 0);
    }
}

static const check_test tests[] = {
    { TEST(words_are_the_known_answers) },
    { TEST(a_draw_is_the_upper_24_bits_of_its_word) },
    { TEST(the_element_is_the_lower_half_of_the_counter) },
    { TEST(any_cut_gives_the_same_draws) },
    { TEST(key_and_stream_are_a_hash_of_seed_input_and_name) },
    { TEST(seed_input_and_name_each_matter) },
};

CHECK_MAIN(tests)
