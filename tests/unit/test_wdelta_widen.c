/* Integers as floats and back: nearest, ties to even, never out of range. */
#include <math.h>
#include <string.h>

#include "support/check.h"
#include "wdelta/widen.h"

static const struct {
    bal_dtype dtype;
    float value;
    int64_t want;
} rows[] = {
    { BAL_I32, 2.5f, 2 },
    { BAL_I32, 3.5f, 4 },
    { BAL_I32, -2.5f, -2 },
    { BAL_I32, 2.75f, 3 },
    { BAL_I32, 3e9f, INT32_MAX },
    { BAL_I32, -3e9f, INT32_MIN },
    { BAL_I32, NAN, 0 },
    { BAL_I16, 40000.0f, INT16_MAX },
    { BAL_I16, -40000.0f, INT16_MIN },
    { BAL_I8, 127.4f, 127 },
    { BAL_I8, 127.6f, 127 },
    { BAL_I8, -128.5f, -128 },
    { BAL_I8, -1000.0f, -128 },
    { BAL_U8, 255.5f, 255 },
    { BAL_U8, -0.25f, 0 },
    { BAL_U8, -7.0f, 0 },
    { BAL_U16, 65535.0f, 65535 },
    { BAL_U32, 4294967296.0f, 4294967295 },
    { BAL_I64, 1e30f, INT64_MAX },
    { BAL_I64, -1e30f, INT64_MIN },
    { BAL_I64, -9007199254740994.0f, -9007199254740992 },
    { BAL_BOOL, 0.4f, 0 },
    { BAL_BOOL, 0.6f, 1 },
    { BAL_BOOL, -0.9f, 0 },
    { BAL_BOOL, 3.0f, 1 },
};

static int64_t value_of(bal_dtype dtype, uint64_t bits)
{
    static const bool is_signed[BAL_DTYPES] = {
        [BAL_I8] = true,
        [BAL_I16] = true,
        [BAL_I32] = true,
        [BAL_I64] = true,
    };
    unsigned spare = 64 - bal_dtype_bits(dtype);

    if (!is_signed[dtype])
        return (int64_t)bits;
    return (int64_t)(bits << spare) >> spare;
}

static void floats_become_the_nearest_integer_that_fits(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bits = 0;
        char name[64];
        snprintf(name, sizeof(name), "%s %g", bal_dtype_name(rows[i].dtype),
                 (double)rows[i].value);
        check_row(name);
        bal_wd_narrow(rows[i].dtype, &bits, &rows[i].value, 1);
        CHECK(value_of(rows[i].dtype, bits) == rows[i].want);
    }
}

static const struct {
    bal_dtype dtype;
    uint64_t bits;
    float want;
} integers[] = {
    { BAL_I8, 0xff, -1.0f },
    { BAL_U8, 0xff, 255.0f },
    { BAL_BOOL, 1, 1.0f },
    { BAL_I16, 0x8000, -32768.0f },
    { BAL_U16, 0x8000, 32768.0f },
    { BAL_I32, 16777217, 16777216.0f },
    { BAL_I32, 16777219, 16777220.0f },
    { BAL_U32, 0xffffffff, 4294967296.0f },
    { BAL_I64, UINT64_MAX, -1.0f },
    /* Rounded once: by way of a double this would be 2^60. */
    { BAL_I64, ((uint64_t)1 << 60) + ((uint64_t)1 << 36) + 1,
      1152921642045800448.0f },
    { BAL_U64, UINT64_MAX, 18446744073709551616.0f },
};

static void integers_become_the_nearest_float(void)
{
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        float got = 0;
        check_row(bal_dtype_name(integers[i].dtype));
        bal_wd_widen(&got, integers[i].dtype, &integers[i].bits, 1);
        CHECK(got == integers[i].want);
    }
}

static const check_test tests[] = {
    { TEST(floats_become_the_nearest_integer_that_fits) },
    { TEST(integers_become_the_nearest_float) },
};

CHECK_MAIN(tests)
