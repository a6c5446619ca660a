/* Payloads that nobody encoded: refused, or caught by the block's hash later.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codec/codec.h"
#include "support/bytes.h"
#include "support/check.h"

enum { SMALL = 300 };

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

/* A payload of the data, encoded by this codec. */
static void encode_small(bal_coder *coder, bal_codec_id id, bal_buf *to,
                         const uint8_t *data, const bal_grain *grain)
{
    bool gains = false;

    CHECK_OK(bal_codec_find(id)->encode(coder, to, (bal_bytes){ data, SMALL },
                                        grain, BAL_EFFORT_AUTO, &gains,
                                        &check_err));
    CHECK(gains);
}

/* Decode bytes at the end of their allocation into as many as belong. */
static int decode_small(bal_coder *coder, bal_codec_id id, uint8_t *to,
                        const void *payload, size_t len, const bal_grain *grain)
{
    uint8_t *copy = copy_of(payload, len);
    int rc = bal_decode(coder, id, to, SMALL, (bal_bytes){ copy, len }, grain,
                        &check_err);

    free(copy);
    return rc;
}

static const struct {
    const char *name;
    bal_codec_id id;
    uint8_t width;
    void (*fill)(uint8_t *to, size_t len);
} hostile[] = {
    { "zstd", BAL_CODEC_ZSTD, 0, bytes_text },
    { "zstd of numbers", BAL_CODEC_ZSTD, 1, bytes_constant },
    { "split zero", BAL_CODEC_SPLIT, 2, bytes_zero },
    { "split bf16", BAL_CODEC_SPLIT, 2, bytes_bf16 },
    { "split difference", BAL_CODEC_SPLIT, 4, bytes_difference },
    { "split of few", BAL_CODEC_SPLIT, 8, bytes_constant },
};

enum { HOSTILE = sizeof(hostile) / sizeof(hostile[0]) };

static void every_truncation_is_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t data[SMALL];
    uint8_t *back = malloc(SMALL);

    CHECK(back != NULL);
    for (size_t i = 0; i < HOSTILE; i++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = hostile[i].width };
        check_row(hostile[i].name);
        hostile[i].fill(data, SMALL);
        encode_small(coder, hostile[i].id, &packed, data, &grain);
        for (size_t len = 0; len < packed.len; len++)
            CHECK_RC(BAL_ECORRUPT, decode_small(coder, hostile[i].id, back,
                                                packed.data, len, &grain));
        CHECK_OK(bal_buf_append(&packed, "x", 1, &check_err));
        CHECK_RC(BAL_ECORRUPT, decode_small(coder, hostile[i].id, back,
                                            packed.data, packed.len, &grain));
    }
    free(back);
}

/* An error, or other bytes, which the hash of the block tells; or, where zstd
 * ignores the bit, the same. */
static void no_flipped_bit_does_harm(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t data[SMALL];
    uint8_t *back = malloc(SMALL);

    CHECK(back != NULL);
    for (size_t i = 0; i < HOSTILE; i++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = { .width = hostile[i].width };
        check_row(hostile[i].name);
        hostile[i].fill(data, SMALL);
        encode_small(coder, hostile[i].id, &packed, data, &grain);
        for (size_t bit = 0; bit < 8 * packed.len; bit++) {
            packed.data[bit / 8] ^= (char)(1 << (bit % 8));
            int rc = decode_small(coder, hostile[i].id, back, packed.data,
                                  packed.len, &grain);
            CHECK(rc == 0 || rc == BAL_ECORRUPT);
            packed.data[bit / 8] ^= (char)(1 << (bit % 8));
        }
    }
    free(back);
}

static const struct {
    const char *name;
    bal_codec_id id;
    uint8_t width;
    size_t len;
    uint8_t payload[24];
    size_t size;
} lies[] = {
    { "raw short", BAL_CODEC_RAW, 0, 3, { 1, 2 }, 2 },
    { "raw long", BAL_CODEC_RAW, 0, 1, { 1, 2 }, 2 },
    { "split of width 0", BAL_CODEC_SPLIT, 0, 2, { 0 }, 18 },
    { "split of width 3", BAL_CODEC_SPLIT, 3, 3, { 0 }, 24 },
    { "split of nothing", BAL_CODEC_SPLIT, 2, 1, { 0 }, 17 },
    { "mode 4",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 },
      18 },
    { "Huffman plane of 1",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 },
      18 },
    { "bytes behind a mode",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 },
      18 },
    { "a length past all",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 1 },
      18 },
    { "raw plane of 2",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0 },
      18 },
    { "equal plane of 2",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0 },
      18 },
    { "equal plane of 0",
      BAL_CODEC_SPLIT,
      2,
      2,
      { 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 },
      17 },
};

static void lengths_that_lie_are_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t to[4];

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        bal_grain grain = { .width = lies[i].width };
        check_row(lies[i].name);
        CHECK_RC(BAL_ECORRUPT,
                 bal_decode(coder, lies[i].id, to, lies[i].len,
                            (bal_bytes){ lies[i].payload, lies[i].size },
                            &grain, &check_err));
    }
}

/* A frame that says it holds more than belongs, and two frames in one. */
static void frames_of_another_size_are_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t data[SMALL];
    uint8_t two[2 * SMALL];
    uint8_t to[SMALL];
    bal_grain grain = { 0 };

    bytes_text(data, SMALL);
    size_t half = ZSTD_compress(two, sizeof(two), data, SMALL / 2, 1);
    CHECK_RC(BAL_ECORRUPT,
             bal_decode(coder, BAL_CODEC_ZSTD, to, SMALL / 2 - 1,
                        (bal_bytes){ two, half }, &grain, &check_err));
    CHECK_RC(BAL_ECORRUPT,
             bal_decode(coder, BAL_CODEC_ZSTD, to, SMALL,
                        (bal_bytes){ two, half }, &grain, &check_err));
    memcpy(two + half, two, half);
    CHECK_RC(BAL_ECORRUPT,
             bal_decode(coder, BAL_CODEC_ZSTD, to, SMALL,
                        (bal_bytes){ two, 2 * half }, &grain, &check_err));
}

static void an_unknown_codec_is_of_a_newer_version(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    bal_grain grain = { 0 };
    uint8_t to = 0;

    CHECK(bal_codec_find(BAL_CODECS) == NULL);
    CHECK_RC(BAL_EUNSUPPORTED,
             bal_decode(coder, BAL_CODECS, &to, 1, (bal_bytes){ &to, 1 },
                        &grain, &check_err));
}

static const check_test tests[] = {
    { TEST(every_truncation_is_corrupt) },
    { TEST(no_flipped_bit_does_harm) },
    { TEST(lengths_that_lie_are_corrupt) },
    { TEST(frames_of_another_size_are_corrupt) },
    { TEST(an_unknown_codec_is_of_a_newer_version) },
};

CHECK_MAIN(tests)
