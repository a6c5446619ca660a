/* Every codec gives back what it was given. The oracles: ZSTD_decompress for
 * frames, a naive loop for planes. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codec/codec.h"
#include "core/arith.h"
#include "support/bytes.h"
#include "support/check.h"
#include "support/plain_huffman.h"

enum { MOST = 40007 };

static const size_t lengths[] = { 0,  1,  2,  3,   4,    5,    7,     8,    9,
                                  15, 16, 17, 255, 1024, 4097, 32768, 40007 };
static const uint8_t widths[] = { 0, 1, 2, 3, 4, 8, 255 };

enum {
    LENGTHS = sizeof(lengths) / sizeof(lengths[0]),
    WIDTHS = sizeof(widths) / sizeof(widths[0]),
};

static bal_coder *coder_of_test(void)
{
    bal_coder *coder = NULL;

    CHECK_OK(bal_coder_new(&coder, &check_err));
    return coder;
}

/* Exactly len bytes on the heap, so that a sanitizer sees one too many. */
static uint8_t *copy_of(const void *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    CHECK(copy != NULL);
    if (len)
        memcpy(copy, data, len);
    return copy;
}

/* ---- round trips -------------------------------------------------------- */

static void check_round_trip(bal_coder *coder, bal_bytes from, uint8_t width,
                             bal_effort effort)
{
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_grain grain = { .width = width };
    bal_codec_id used = BAL_CODECS;
    uint8_t *back = copy_of(from.data, from.len);

    memset(back, 0x5a, from.len);
    CHECK_OK(
        bal_encode(coder, &used, &packed, from, &grain, effort, &check_err));
    bal_bytes payload = { packed.data, packed.len };
    if (used == BAL_CODEC_RAW) {
        CHECK(packed.len == 0);
        payload = from;
    } else {
        CHECK(packed.len < from.len);
    }
    CHECK_OK(
        bal_decode(coder, used, back, from.len, payload, &grain, &check_err));
    CHECK(from.len == 0 || !memcmp(back, from.data, from.len));
    free(back);
}

static void check_all_ways(bal_coder *coder, bal_bytes from)
{
    for (size_t w = 0; w < WIDTHS; w++) {
        for (int e = BAL_EFFORT_NONE; e <= BAL_EFFORT_BEST; e++)
            check_round_trip(coder, from, widths[w], (bal_effort)e);
    }
}

static void what_goes_in_comes_out(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    static uint8_t data[MOST];

    for (size_t k = 0; k < BYTES_KINDS; k++) {
        check_row(bytes_kinds[k].name);
        for (size_t l = 0; l < LENGTHS; l++) {
            bytes_seed(k * 100 + l);
            bytes_kinds[k].fill(data, lengths[l]);
            check_all_ways(coder, (bal_bytes){ data, lengths[l] });
        }
    }
}

/* Planes that are one value up to somewhere, near where tiles end, or but for
 * one byte. */
static void planes_may_be_constant_for_a_while(void)
{
    static const size_t places[] = { 0,     1,     8190,  8192,  16383, 16384,
                                     16387, 20002, 32767, 32768, 40000, 40006 };
    static uint8_t data[MOST];
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        check_row("one byte");
        memset(data, 3, MOST);
        data[places[i]] = 4;
        check_all_ways(coder, (bal_bytes){ data, MOST });
        check_row("noise behind");
        bytes_seed(i);
        bytes_random(data + places[i], MOST - places[i]);
        check_all_ways(coder, (bal_bytes){ data, MOST });
        check_row("one plane");
        for (size_t k = 0; k < MOST; k++)
            data[k] = k % 8 == places[i] % 8 && k >= places[i] ? data[k] : 0;
        check_all_ways(coder, (bal_bytes){ data, MOST });
    }
}

static bal_codec_id codec_for(const char *kind, uint8_t width,
                              bal_effort effort, size_t *len)
{
    static uint8_t data[MOST];
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) packed = { 0 };
    bal_grain grain = { .width = width };
    bal_codec_id used = BAL_CODECS;

    for (size_t k = 0; k < BYTES_KINDS; k++) {
        if (!strcmp(bytes_kinds[k].name, kind))
            bytes_kinds[k].fill(data, MOST);
    }
    CHECK_OK(bal_encode(coder, &used, &packed, (bal_bytes){ data, MOST },
                        &grain, effort, &check_err));
    *len = packed.len;
    return used;
}

static void the_choice_follows_what_the_bytes_are(void)
{
    static const struct {
        const char *kind;
        uint8_t width;
        bal_effort effort;
        bal_codec_id want;
        size_t most; /* bytes of MOST */
    } rows[] = {
        { "random", 2, BAL_EFFORT_AUTO, BAL_CODEC_RAW, 0 },
        { "random", 1, BAL_EFFORT_FAST, BAL_CODEC_RAW, 0 },
        { "random", 0, BAL_EFFORT_BEST, BAL_CODEC_RAW, 0 },
        { "text", 0, BAL_EFFORT_AUTO, BAL_CODEC_ZSTD, 4000 },
        { "text", 0, BAL_EFFORT_NONE, BAL_CODEC_RAW, 0 },
        { "bf16", 2, BAL_EFFORT_FAST, BAL_CODEC_SPLIT, MOST * 10 / 14 },
        { "bf16", 2, BAL_EFFORT_AUTO, BAL_CODEC_SPLIT, MOST * 10 / 14 },
        { "bf16", 2, BAL_EFFORT_BEST, BAL_CODEC_SPLIT, MOST * 10 / 14 },
        { "f32", 4, BAL_EFFORT_AUTO, BAL_CODEC_SPLIT, MOST * 10 / 11 },
        { "difference", 4, BAL_EFFORT_AUTO, BAL_CODEC_SPLIT, MOST / 2 },
        { "zero", 8, BAL_EFFORT_AUTO, BAL_CODEC_SPLIT, 80 },
        { "zero", 1, BAL_EFFORT_AUTO, BAL_CODEC_ZSTD, 80 },
    };
    size_t len = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i].kind);
        bytes_seed(i);
        CHECK(codec_for(rows[i].kind, rows[i].width, rows[i].effort, &len) ==
              rows[i].want);
        CHECK(len <= rows[i].most);
    }
}

static void encoding_appends(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) to = { 0 };
    uint8_t zero[64] = { 0 };
    bal_grain grain = { .width = 2 };
    bool gains = false;
    const bal_codec *codec = bal_codec_find(BAL_CODEC_SPLIT);

    CHECK_OK(bal_buf_text(&to, "before", &check_err));
    CHECK_OK(codec->encode(coder, &to, (bal_bytes){ zero, sizeof(zero) },
                           &grain, BAL_EFFORT_AUTO, &gains, &check_err));
    CHECK(gains && !memcmp(to.data, "before", 6) && to.len > 6);
    to.len = 6;
    CHECK_OK(codec->encode(coder, &to, (bal_bytes){ zero, 3 }, &grain,
                           BAL_EFFORT_AUTO, &gains, &check_err));
    CHECK(!gains && to.len == 6);
}

/* ---- oracles ------------------------------------------------------------ */

static void frames_are_ordinary_zstd(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    BAL_LOCAL(bal_buf) packed = { 0 };
    static uint8_t data[MOST];
    static uint8_t back[MOST];
    bal_grain grain = { 0 };
    bal_codec_id used = BAL_CODECS;

    bytes_text(data, MOST);
    CHECK_OK(bal_encode(coder, &used, &packed, (bal_bytes){ data, MOST },
                        &grain, BAL_EFFORT_AUTO, &check_err));
    CHECK(used == BAL_CODEC_ZSTD);
    CHECK(ZSTD_decompress(back, MOST, packed.data, packed.len) == MOST);
    CHECK(!memcmp(back, data, MOST));
}

/* Read a split payload by its description alone. */
static void check_planes(const uint8_t *payload, size_t len,
                         const uint8_t *data, size_t width)
{
    size_t count = MOST / width;
    size_t at = width * 8;
    uint8_t *plane = malloc(count);

    CHECK(plane != NULL);
    for (size_t p = 0; p < width; p++) {
        const uint8_t *entry = payload + 8 * p;
        size_t size = bal_get32(entry + 4);
        CHECK(!entry[1] && !entry[2] && !entry[3]);
        CHECK(entry[0] <= 3 && size <= len - at);
        if (entry[0] == 0)
            memcpy(plane, payload + at, count);
        if (entry[0] == 1)
            memset(plane, payload[at], count);
        if (entry[0] == 2)
            CHECK(ZSTD_decompress(plane, count, payload + at, size) == count);
        if (entry[0] == 3)
            CHECK(plain_huffman(plane, count, payload + at, size));
        for (size_t i = 0; i < count; i++)
            CHECK(plane[i] == data[i * width + p]);
        at += size;
    }
    CHECK(len - at == MOST % width);
    CHECK(!memcmp(payload + at, data + count * width, len - at));
    free(plane);
}

static void split_payloads_are_as_described(void)
{
    static const struct {
        const char *name;
        uint8_t width;
        void (*fill)(uint8_t *to, size_t len);
    } rows[] = {
        { "bf16", 2, bytes_bf16 },
        { "f32", 4, bytes_f32 },
        { "difference", 4, bytes_difference },
        { "f64", 8, bytes_f64 },
    };
    BAL_OWN(bal_coder) coder = coder_of_test();
    static uint8_t data[MOST];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = rows[i].width };
        bal_codec_id used = BAL_CODECS;
        check_row(rows[i].name);
        rows[i].fill(data, MOST);
        CHECK_OK(bal_encode(coder, &used, &packed, (bal_bytes){ data, MOST },
                            &grain, BAL_EFFORT_AUTO, &check_err));
        CHECK(used == BAL_CODEC_SPLIT);
        check_planes((uint8_t *)packed.data, packed.len, data, rows[i].width);
    }
}

static const check_test tests[] = {
    { TEST(what_goes_in_comes_out) },
    { TEST(planes_may_be_constant_for_a_while) },
    { TEST(the_choice_follows_what_the_bytes_are) },
    { TEST(encoding_appends) },
    { TEST(frames_are_ordinary_zstd) },
    { TEST(split_payloads_are_as_described) },
};

CHECK_MAIN(tests)
