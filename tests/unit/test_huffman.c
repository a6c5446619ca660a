/* Huffman planes: what is coded comes back, by ours and by a reader that knows
 * docs/format.md alone; what nobody coded is refused by both. Sizes are held
 * against the entropy, lengths against all trees there are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/huffman.h"
#include "core/arith.h"
#include "support/bytes.h"
#include "support/check.h"
#include "support/plain_huffman.h"

enum { MOST = 1 << 20, SMALL = 700, HEADER = BAL_HUFFMAN_HEADER };

static uint8_t data[MOST];
static uint8_t noise[MOST];
static uint8_t back[MOST];

/* ---- planes ------------------------------------------------------------- */

/* One of many planes, whose values fall off by this factor. */
static void fill_falling(uint8_t *to, size_t len, unsigned keep)
{
    bytes_random(noise, len);
    for (size_t i = 0; i < len; i++) {
        uint32_t random = noise[i] * 0x9e3779b9u + (uint32_t)i * 0x85ebca6bu;
        uint8_t value = 0;
        for (; value < 255 && random % 256 < keep; value++)
            random = random * 0x0019660du + 0x3c6ef35fu, random ^= random >> 16;
        to[i] = value;
    }
}

static void fill_even(uint8_t *to, size_t len)
{
    fill_falling(to, len, 253);
}

static void fill_steep(uint8_t *to, size_t len)
{
    fill_falling(to, len, 100);
}

static void fill_two(uint8_t *to, size_t len)
{
    bytes_random(to, len);
    for (size_t i = 0; i < len; i++)
        to[i] = to[i] < 100 ? 7 : 248;
}

static void fill_high(uint8_t *to, size_t len)
{
    bytes_bf16(noise, MOST);
    for (size_t i = 0; i < len; i++)
        to[i] = noise[(2 * i + 1) % MOST];
}

/* Now and then a value that a sample may miss. */
static void fill_rare(uint8_t *to, size_t len)
{
    fill_steep(to, len);
    for (size_t i = 5000; i < len; i += 9973)
        to[i] = (uint8_t)(i % 256);
}

/* Counts like Fibonacci's: the tree without a limit would be 24 deep. */
static void fill_deep(uint8_t *to, size_t len)
{
    size_t at = 0;
    size_t count = 1;
    size_t before = 1;

    for (unsigned value = 0; at < len; value++) {
        for (size_t i = 0; i < count && at < len; i++)
            to[at++] = (uint8_t)(value * 37);
        count += before;
        before = count - before;
    }
    for (size_t i = len; i-- > 1;) {
        size_t k = (size_t)(i * 0x9e3779b97f4a7c15u % (i + 1));
        uint8_t swap = to[i];
        to[i] = to[k];
        to[k] = swap;
    }
}

/* Zero wherever samples are looked at, other values between. */
static void fill_hidden(uint8_t *to, size_t len)
{
    fill_even(to, len);
    for (size_t i = 0; i < len; i++)
        to[i] = i % 8192 < 1024 ? 0 : to[i] % 40;
}

/* The same where two values are looked at. */
static void fill_half_hidden(uint8_t *to, size_t len)
{
    fill_hidden(to, len);
    for (size_t i = 0; i < len; i += 3)
        to[i] = 9;
}

/* A second half that is nothing like the first. */
static void fill_halves(uint8_t *to, size_t len)
{
    memset(to, 0, len / 2);
    fill_even(to + len / 2, len - len / 2);
}

static const bytes_kind kinds[] = {
    { "even", fill_even },     { "steep", fill_steep },
    { "two", fill_two },       { "high bytes of bf16", fill_high },
    { "rare", fill_rare },     { "deep", fill_deep },
    { "hidden", fill_hidden }, { "half hidden", fill_half_hidden },
    { "halves", fill_halves },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const size_t lengths[] = { 300,   1000,   4096,       32767,
                                  65536, 200001, MOST - 123, MOST };

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static double entropy_bytes(const uint8_t *from, size_t len)
{
    size_t count[256] = { 0 };
    double bits = 0;

    for (size_t i = 0; i < len; i++)
        count[from[i]]++;
    for (size_t i = 0; i < 256; i++) {
        if (count[i])
            bits += (double)count[i] * log2((double)len / (double)count[i]);
    }
    return bits / 8;
}

static bal_coder *coder_of_test(void)
{
    bal_coder *coder = NULL;

    CHECK_OK(bal_coder_new(&coder, &check_err));
    return coder;
}

/* Decode from the very end of an allocation. */
static int decode(bal_coder *coder, size_t n, const void *plane, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    CHECK(copy != NULL);
    if (len)
        memcpy(copy, plane, len);
    int rc =
        bal_huffman_fill(coder, back, n, (bal_bytes){ copy, len }, &check_err);
    free(copy);
    return rc;
}

/* ---- what is coded ------------------------------------------------------ */

static void check_plane(bal_coder *coder, size_t len)
{
    BAL_LOCAL(bal_buf) to = { 0 };
    bool gains = false;

    CHECK_OK(bal_buf_text(&to, "before", &check_err));
    CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, len }, 2 * len,
                                &gains, &check_err));
    CHECK(gains && !memcmp(to.data, "before", 6));
    size_t size = to.len - 6;
    double least = entropy_bytes(data, len);
    CHECK((double)size >= least);
    CHECK((double)size <= HEADER + 8 + fmax(1.05 * least, (double)len / 8) +
                              0.05 * (double)len);

    memset(back, 0x5a, len);
    CHECK_OK(decode(coder, len, to.data + 6, size));
    CHECK(!memcmp(back, data, len));
    memset(back, 0x5a, len);
    CHECK(plain_huffman(back, len, (uint8_t *)to.data + 6, size));
    CHECK(!memcmp(back, data, len));

    to.len = 6;
    CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, len }, size,
                                &gains, &check_err));
    CHECK(gains && to.len == 6 + size);
    to.len = 6;
    CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, len }, size - 1,
                                &gains, &check_err));
    CHECK(!gains && to.len == 6);
}

static void what_goes_in_comes_out_near_the_entropy(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t k = 0; k < KINDS; k++) {
        check_row(kinds[k].name);
        for (size_t l = 0; l < LENGTHS; l++) {
            bytes_seed(100 * k + l);
            kinds[k].fill(data, lengths[l]);
            if (memcmp(data, data + 1, lengths[l] - 1) != 0)
                check_plane(coder, lengths[l]);
        }
    }
}

static size_t code_plane(bal_coder *coder, bal_buf *to, size_t len)
{
    bool gains = false;

    CHECK_OK(bal_huffman_append(coder, to, (bal_bytes){ data, len }, 2 * len,
                                &gains, &check_err));
    CHECK(gains);
    return bal_get32(to->data + BAL_HUFFMAN_AT_PATCHES);
}

static void what_a_sample_misses_is_patched(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) few = { 0 };
    BAL_LOCAL(bal_buf) many = { 0 };

    fill_two(data, MOST);
    data[1024 * 8 - 1] = 1;
    data[MOST - 1] = 2;
    CHECK(code_plane(coder, &few, MOST) == 2);
    fill_hidden(data, MOST);
    CHECK(code_plane(coder, &many, MOST) == 0);
}

/* A plane that is not worth it is left alone, whatever it is. */
static void nothing_is_gained_where_there_is_nothing(void)
{
    static const size_t few[] = { 0, 1, 2, 7, 8, 9, 100 };
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) to = { 0 };
    bool gains = true;

    bytes_random(data, MOST);
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, few[i] },
                                    few[i], &gains, &check_err));
        CHECK(!gains && to.len == 0);
    }
    CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, MOST }, MOST,
                                &gains, &check_err));
    CHECK(!gains && to.len == 0);
    memset(data, 7, MOST);
    CHECK_OK(bal_huffman_append(coder, &to, (bal_bytes){ data, MOST }, MOST,
                                &gains, &check_err));
    CHECK(!gains && to.len == 0);
}

/* ---- lengths ------------------------------------------------------------ */

/* The fewest bits that any complete code with lengths 1 to limit makes, by
 * trying all: counts ascend, so lengths descend. */
static uint64_t fewest_bits(const uint32_t *count, size_t n, unsigned longest,
                            unsigned room)
{
    uint64_t best = UINT64_MAX / 2;

    if (n == 0)
        return room ? best : 0;
    for (unsigned length = longest; length > 0; length--) {
        unsigned cost = 1u << (BAL_HUFFMAN_BITS - length);
        if (cost > room)
            break;
        uint64_t bits = (uint64_t)*count * length +
                        fewest_bits(count + 1, n - 1, length, room - cost);
        best = bits < best ? bits : best;
    }
    return best;
}

static void lengths_are_the_best_there_are(void)
{
    static const uint32_t rows[][13] = {
        { 1, 1 },
        { 1, 1, 1 },
        { 1, 2, 3, 4, 5 },
        { 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144 },
        { 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233 },
        { 1, 1, 1, 1, 1, 1000000, 1000000000, 4000000000 },
        { 5, 5, 5, 5, 5, 5, 5, 5, 5 },
    };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        bal_huffman_code code = { 0 };
        uint32_t count[BAL_HUFFMAN_SYMBOLS] = { 0 };
        uint64_t bits = 0;
        size_t n = 0;
        for (; n < 13 && rows[r][n]; n++)
            count[255 - 11 * n] = rows[r][n];
        bal_huffman_lengths(code.length, count);
        CHECK(bal_huffman_number(&code));
        for (size_t i = 0; i < BAL_HUFFMAN_SYMBOLS; i++) {
            CHECK(!count[i] == !code.length[i]);
            bits += (uint64_t)count[i] * code.length[i];
        }
        CHECK(bits ==
              fewest_bits(rows[r], n, BAL_HUFFMAN_BITS, 1 << BAL_HUFFMAN_BITS));
    }
}

/* ---- what nobody coded -------------------------------------------------- */

static const size_t hostile[] = { 1, 4, 5 }; /* of kinds */

static void every_truncation_is_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        BAL_LOCAL(bal_buf) to = { 0 };
        kinds[hostile[i]].fill(data, SMALL);
        (void)code_plane(coder, &to, SMALL);
        for (size_t len = 0; len < to.len; len++)
            CHECK_RC(BAL_ECORRUPT, decode(coder, SMALL, to.data, len));
        CHECK_OK(bal_buf_append(&to, "\0\0\0\0\0", 5, &check_err));
        CHECK_RC(BAL_ECORRUPT, decode(coder, SMALL, to.data, to.len));
    }
}

/* With one bit flipped, ours and the plain reader say the same. */
static void flipped_bits_are_judged_as_described(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t plain[SMALL];

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        BAL_LOCAL(bal_buf) to = { 0 };
        kinds[hostile[i]].fill(data, SMALL);
        (void)code_plane(coder, &to, SMALL);
        for (size_t bit = 0; bit < 8 * to.len; bit++) {
            to.data[bit / 8] ^= (char)(1 << (bit % 8));
            bool holds =
                plain_huffman(plain, SMALL, (uint8_t *)to.data, to.len);
            CHECK_RC(holds ? 0 : BAL_ECORRUPT,
                     decode(coder, SMALL, to.data, to.len));
            CHECK(!holds || !memcmp(plain, back, SMALL));
            to.data[bit / 8] ^= (char)(1 << (bit % 8));
        }
    }
}

/* Two values of one bit each, eight of them a stream of one byte; then changed
 * at one place. */
static void lies_are_corrupt(void)
{
    static const struct {
        const char *name;
        size_t at;
        uint8_t value;
        int rc;
    } rows[] = {
        { "as it was", 0, 0x11, 0 },
        { "a code of 12 bits", 0, 0xc1, BAL_ECORRUPT },
        { "one code alone", 0, 0x01, BAL_ECORRUPT },
        { "codes for more than there is", 1, 0x01, BAL_ECORRUPT },
        { "codes for less than there is", 0, 0x21, BAL_ECORRUPT },
        { "no code", 0, 0, BAL_ECORRUPT },
        { "segments too long", BAL_HUFFMAN_AT_SEGMENT, 10, BAL_ECORRUPT },
        { "segments much too long", BAL_HUFFMAN_AT_SEGMENT + 3, 0xff,
          BAL_ECORRUPT },
        { "segments too short", BAL_HUFFMAN_AT_SEGMENT, 7, BAL_ECORRUPT },
        { "patches out of nowhere", BAL_HUFFMAN_AT_PATCHES, 3, BAL_ECORRUPT },
        { "a patch that is bytes", BAL_HUFFMAN_AT_PATCHES, 1, BAL_ECORRUPT },
        { "a stream too long", BAL_HUFFMAN_AT_SIZES, 2, BAL_ECORRUPT },
        { "a stream past all", BAL_HUFFMAN_AT_SIZES + 3, 0xff, BAL_ECORRUPT },
        { "an empty stream", BAL_HUFFMAN_AT_SIZES, 0, BAL_ECORRUPT },
        { "other bits", HEADER, 0xff, 0 },
        { "padding that is not zero", HEADER + 7, 1, BAL_ECORRUPT },
        { "a patch past the end", HEADER + 8, 63, BAL_ECORRUPT },
        { "a patch elsewhere", HEADER + 8, 61, 0 },
        { "a patch twice", HEADER + 8, 62, BAL_ECORRUPT },
    };
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t plane[HEADER + 8 + 10] = { [0] = 0x11 };
        uint8_t plain[63];
        bal_put32(plane + BAL_HUFFMAN_AT_SEGMENT, 8);
        bal_put32(plane + BAL_HUFFMAN_AT_PATCHES, 2);
        for (size_t s = 0; s < 8; s++)
            bal_put32(plane + BAL_HUFFMAN_AT_SIZES + 4 * s, 1);
        plane[HEADER + 8] = 3;
        plane[HEADER + 8 + 5] = 62;
        plane[rows[i].at] = rows[i].value;
        check_row(rows[i].name);
        CHECK(plain_huffman(plain, 63, plane, sizeof(plane)) == !rows[i].rc);
        CHECK_RC(rows[i].rc, decode(coder, 63, plane, sizeof(plane)));
        CHECK(rows[i].rc || !memcmp(plain, back, 63));
    }
}

static const check_test tests[] = {
    { TEST(what_goes_in_comes_out_near_the_entropy) },
    { TEST(what_a_sample_misses_is_patched) },
    { TEST(nothing_is_gained_where_there_is_nothing) },
    { TEST(lengths_are_the_best_there_are) },
    { TEST(every_truncation_is_corrupt) },
    { TEST(flipped_bits_are_judged_as_described) },
    { TEST(lies_are_corrupt) },
};

CHECK_MAIN(tests)
