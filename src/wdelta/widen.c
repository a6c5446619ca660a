/* Integers as F32 and back. Floats have kernels; integers are a few buffers of
 * a model, so that one loop over 64 bits does for all of them: every integer of
 * a dtype is one of these or of its unsigned twin. */
#include "wdelta/widen.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/kernels.h"

typedef struct integer {
    bool is;
    bool is_signed;
    double low, high; /* the ends: what is at them or beyond does not fit */
} integer;

/* -2^63 - 1 is no double; the next one below -2^63 is. */
static const integer integers[BAL_DTYPES] = {
    [BAL_BOOL] = { true, false, -1.0, 256.0 },
    [BAL_U8] = { true, false, -1.0, 256.0 },
    [BAL_I8] = { true, true, -129.0, 128.0 },
    [BAL_U16] = { true, false, -1.0, 65536.0 },
    [BAL_I16] = { true, true, -32769.0, 32768.0 },
    [BAL_U32] = { true, false, -1.0, 4294967296.0 },
    [BAL_I32] = { true, true, -2147483649.0, 2147483648.0 },
    [BAL_U64] = { true, false, -1.0, 18446744073709551616.0 },
    [BAL_I64] = { true, true, -9223372036854777856.0, 9223372036854775808.0 },
};

bool bal_wd_widens(bal_dtype dtype)
{
    return integers[dtype].is ||
           bal_dtype_row_of(dtype)->class_of == BAL_CLASS_FLOAT;
}

static uint64_t load(const uint8_t *from, size_t width)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < width; i++)
        bits |= (uint64_t)from[i] << (8 * i);
    return bits;
}

static void store(uint8_t *to, uint64_t bits, size_t width)
{
    for (size_t i = 0; i < width; i++)
        to[i] = (uint8_t)(bits >> (8 * i));
}

static float value_of(uint64_t bits, size_t width, bool is_signed)
{
    unsigned spare = 64 - 8 * (unsigned)width;

    assert(width && width <= 8);
    if (!is_signed)
        return (float)bits;
    return (float)((int64_t)(bits << spare) >> spare);
}

static uint64_t bits_of(float value, const integer *row)
{
    double near = nearbyint((double)value);

    if (near != near)
        return 0;
    if (row->is_signed) {
        uint64_t half = (uint64_t)(row->high / 2);
        if (near >= row->high)
            return 2 * half - 1;
        return near <= row->low ? 0 - 2 * half : (uint64_t)(int64_t)near;
    }
    if (near >= row->high)
        return UINT64_MAX;
    return near <= row->low ? 0 : (uint64_t)near;
}

void bal_wd_widen(float *to, bal_dtype from, const void *in, size_t n)
{
    const integer *row = &integers[from];
    size_t width = bal_dtype_bits(from) / 8;

    if (!row->is) {
        bal_kernels_use()->to_f32[from](to, in, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = value_of(load((const uint8_t *)in + i * width, width), width,
                         row->is_signed);
}

void bal_wd_narrow(bal_dtype to, void *out, const float *in, size_t n)
{
    const integer *row = &integers[to];
    size_t width = bal_dtype_bits(to) / 8;

    if (!row->is) {
        bal_kernels_use()->from_f32[to](out, in, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = bits_of(in[i], row);
        if (to == BAL_BOOL)
            bits = bits != 0;
        store((uint8_t *)out + i * width, bits, width);
    }
}
