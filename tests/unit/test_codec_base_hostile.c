/* Payloads of numbers that nobody encoded, and bases that are not the ones they
 * were encoded against: refused, or caught by the block's hash later. */
#include <stdlib.h>
#include <string.h>

#include "codec/coder.h"
#include "support/bytes.h"
#include "support/check.h"

enum { SMALL = 1203, LARGE = 540003, TAIL = 3 };

static uint8_t data[LARGE];
static uint8_t base[LARGE];

static bal_coder *coder_of_test(void)
{
    bal_coder *coder = NULL;

    CHECK_OK(bal_coder_new(&coder, &check_err));
    return coder;
}

/* Exactly len bytes on the heap, so that a sanitizer sees one too many. */
static uint8_t *copy_of(const void *from, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    CHECK(copy != NULL);
    if (len)
        memcpy(copy, from, len);
    return copy;
}

/* Changes that are small, or hardly any. */
static void tune(size_t len, size_t every)
{
    bytes_seed(len);
    bytes_bf16(base, len);
    memcpy(data, base, len);
    for (size_t i = 0; i + 1 < len; i += 2 * every)
        data[i] = (uint8_t)(data[i] + 1 + i / 2 % 3);
}

static void fill_tuned(size_t len)
{
    tune(len, 2);
}

static void fill_touched(size_t len)
{
    tune(len, 90);
}

/* Floats of the base's kind, with something that is no difference. */
static void fill_difference(size_t len)
{
    uint32_t odd = 0x7fc00001;

    bytes_bf16(base, len / 2);
    for (size_t i = 0; i < len / 4; i++) {
        float value[2];
        uint32_t near = (uint32_t)base[2 * i] << 16 | (uint32_t)base[2 * i + 1]
                                                          << 24;
        uint32_t far = near + ((uint32_t)(i % 3) << 16);
        memcpy(&value[0], &far, 4);
        memcpy(&value[1], &near, 4);
        value[0] -= value[1];
        memcpy(data + 4 * i, i == 5 ? (void *)&odd : (void *)&value[0], 4);
    }
}

static void fill_alone(size_t len)
{
    bytes_bf16(data, len);
}

static void fill_zeros(size_t len)
{
    memset(data, 0, len);
    data[len / 2] = 1;
}

static const struct {
    const char *name;
    bal_codec_id id;
    bal_grain grain; /* base.len: of 4 bytes of data, how many it has */
    void (*fill)(size_t len);
} rows[] = {
    { "anchored",
      BAL_CODEC_ANCHORED,
      { .width = 2,
        .kind = BAL_NUMBER_BF16,
        .base_kind = BAL_NUMBER_BF16,
        .base = { base, 4 } },
      fill_tuned },
    { "anchored difference",
      BAL_CODEC_ANCHORED,
      { .width = 4,
        .kind = BAL_NUMBER_F32,
        .base_kind = BAL_NUMBER_BF16,
        .difference = true,
        .base = { base, 2 } },
      fill_difference },
    { "trimmed",
      BAL_CODEC_TRIMMED,
      { .width = 4, .kind = BAL_NUMBER_F32 },
      fill_difference },
    { "turned",
      BAL_CODEC_TURNED,
      { .width = 2, .kind = BAL_NUMBER_BF16 },
      fill_alone },
    { "sparse",
      BAL_CODEC_SPARSE,
      { .width = 2,
        .kind = BAL_NUMBER_BF16,
        .base_kind = BAL_NUMBER_BF16,
        .base = { base, 4 } },
      fill_touched },
    { "sparse zeros",
      BAL_CODEC_SPARSE,
      { .width = 4, .kind = BAL_NUMBER_F32 },
      fill_zeros },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bal_grain grain_of(size_t row, size_t len)
{
    bal_grain grain = rows[row].grain;

    grain.base.len =
        grain.difference ? len / 4 * 2 : (grain.base.len ? len : 0);
    return grain;
}

static void encode(bal_coder *coder, size_t row, bal_buf *to, size_t len)
{
    bal_grain grain = grain_of(row, len);
    bool gains = false;

    check_row(rows[row].name);
    rows[row].fill(len);
    CHECK_OK(bal_codec_find(rows[row].id)
                 ->encode(coder, to, (bal_bytes){ data, len }, &grain,
                          BAL_EFFORT_AUTO, &gains, &check_err));
    CHECK(gains);
}

/* With each table of loops, payload and base at the ends of their
 * allocations; all must say the same. */
static int decode(bal_coder *coder, size_t row, const void *payload,
                  size_t size, size_t len)
{
    bal_grain grain = grain_of(row, len);
    uint8_t *copy = copy_of(payload, size);
    uint8_t *near = copy_of(base, grain.base.len);
    uint8_t *to = malloc(len);
    int rc = 1;

    CHECK(to != NULL);
    grain.base.data = grain.base.len ? near : NULL;
    for (size_t i = 0; i < bal_loops_count(); i++) {
        if (!bal_loops_at(i))
            continue;
        coder->loops = bal_loops_at(i);
        int now = bal_decode(coder, rows[row].id, to, len,
                             (bal_bytes){ copy, size }, &grain, &check_err);
        CHECK(rc == 1 || rc == now);
        rc = now;
    }
    free(copy);
    free(near);
    free(to);
    return rc;
}

static void every_truncation_is_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t r = 0; r < ROWS; r++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        encode(coder, r, &packed, SMALL);
        CHECK_OK(decode(coder, r, packed.data, packed.len, SMALL));
        for (size_t len = 0; len < packed.len; len++)
            CHECK_RC(BAL_ECORRUPT, decode(coder, r, packed.data, len, SMALL));
        CHECK_OK(bal_buf_append(&packed, "xx", 2, &check_err));
        CHECK_RC(BAL_ECORRUPT,
                 decode(coder, r, packed.data, packed.len - 1, SMALL));
        CHECK_RC(BAL_ECORRUPT,
                 decode(coder, r, packed.data, packed.len, SMALL));
    }
}

/* Streams of many lanes, cut where vectors would read on. */
static void long_streams_cut_short_are_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t r = 0; r < ROWS; r++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        encode(coder, r, &packed, LARGE);
        for (size_t cut = 1; cut < 600 && cut <= packed.len; cut += 3)
            CHECK_RC(BAL_ECORRUPT,
                     decode(coder, r, packed.data, packed.len - cut, LARGE));
    }
}

/* An error, or other bytes, which the hash of the block tells. */
static void no_flipped_bit_does_harm(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t r = 0; r < ROWS; r++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        encode(coder, r, &packed, SMALL);
        for (size_t bit = 0; bit < 8 * packed.len; bit++) {
            packed.data[bit / 8] ^= (char)(1 << (bit % 8));
            int rc = decode(coder, r, packed.data, packed.len, SMALL);
            CHECK(rc == 0 || rc == BAL_ECORRUPT || rc == BAL_EINVAL);
            packed.data[bit / 8] ^= (char)(1 << (bit % 8));
        }
    }
}

static void another_length_is_corrupt(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t r = 0; r < ROWS; r++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        encode(coder, r, &packed, SMALL);
        for (size_t len = SMALL - 9; len < SMALL + 9; len++) {
            if (len != SMALL && rows[r].id != BAL_CODEC_SPARSE)
                CHECK_RC(BAL_ECORRUPT,
                         decode(coder, r, packed.data, packed.len, len));
        }
    }
}

static void a_base_must_be_there_and_as_long(void)
{
    BAL_OWN(bal_coder) coder = coder_of_test();
    uint8_t to[SMALL];

    for (size_t r = 0; r < ROWS; r++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        bal_grain grain = grain_of(r, SMALL);
        if (!grain.base.len)
            continue;
        encode(coder, r, &packed, SMALL);
        bal_bytes payload = { packed.data, packed.len };
        grain.base.len--;
        CHECK_RC(BAL_ECORRUPT, bal_decode(coder, rows[r].id, to, SMALL, payload,
                                          &grain, &check_err));
        grain.base = (bal_bytes){ 0 };
        CHECK_RC(rows[r].id == BAL_CODEC_ANCHORED ? BAL_EINVAL : BAL_ECORRUPT,
                 bal_decode(coder, rows[r].id, to, SMALL, payload, &grain,
                            &check_err));
    }
}

/* The payload of an element, and what is changed of it. */
static void heads_that_lie_are_corrupt(void)
{
    static const struct {
        const char *name;
        size_t row;
        size_t at;
        uint8_t value;
    } lies[] = {
        { "a kind that is none", 0, 0, 1 },
        { "a kind of another width", 0, 0, BAL_NUMBER_F32 },
        { "fp8 has no differences", 0, 0, 0x80 | BAL_NUMBER_E4M3 },
        { "patches past the end", 0, 7, 0xff },
        { "an exponent past all", 0, 3, 0xff },
        { "the first context without a table", 0, 9, 0x02 },
        { "tables past the end", 0, 12, 0x3f },
        { "a patch in no place", 1, 11, 0xff },
        { "turned by all bits", 3, 0, 16 },
        { "turned by none", 3, 0, 0 },
        { "a form that is none", 4, 0, 2 },
        { "a width that is none", 4, 1, 3 },
        { "values that are sparse", 4, 2, BAL_CODEC_SPARSE },
        { "more changes than elements", 4, 7, 1 },
        { "gaps past the end", 4, 11, 1 },
    };
    BAL_OWN(bal_coder) coder = coder_of_test();

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        BAL_LOCAL(bal_buf) packed = { 0 };
        encode(coder, lies[i].row, &packed, SMALL);
        check_row(lies[i].name);
        packed.data[lies[i].at] = (char)lies[i].value;
        CHECK_RC(BAL_ECORRUPT,
                 decode(coder, lies[i].row, packed.data, packed.len, SMALL));
    }
}

static const check_test tests[] = {
    { TEST(every_truncation_is_corrupt) },
    { TEST(long_streams_cut_short_are_corrupt) },
    { TEST(no_flipped_bit_does_harm) },
    { TEST(another_length_is_corrupt) },
    { TEST(a_base_must_be_there_and_as_long) },
    { TEST(heads_that_lie_are_corrupt) },
};

CHECK_MAIN(tests)
