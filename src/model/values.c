/* Differences of integers and of small floats are told, too, so that a reader
 * of a diff need not know which dtype a tensor has. */
#include "model/values.h"

#include "kernel/convert.h"
#include "kernel/kernels.h"

static void read_float(double *to, const void *from, size_t n, bal_dtype dtype)
{
    bal_kernels_use()->to_f64[dtype](to, from, n);
}

/* Complex numbers: pairs of F32. */
static void read_pairs(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    bal_kernels_use()->to_f64[BAL_F32](to, from, n);
}

static void read_u8(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = ((const uint8_t *)from)[i];
}

static void read_i8(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = ((const int8_t *)from)[i];
}

static void read_u16(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = load16(from, i);
}

static void read_i16(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)load16(from, i);
}

static void read_u32(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = load32(from, i);
}

static void read_i32(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = (int32_t)load32(from, i);
}

static void read_u64(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = (double)load64(from, i);
}

static void read_i64(double *to, const void *from, size_t n, bal_dtype dtype)
{
    (void)dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = (double)(int64_t)load64(from, i);
}

/* ---- floats of a byte ---------------------------------------------------- */

/* OCP 8-bit floats (E8M0: a power of two) and the FNUZ ones, which have one
 * zero, one NaN (0x80) and no infinity. */
typedef struct small_row {
    unsigned fraction; /* bits */
    int bias;
    bool has_sign, has_infinity, has_subnormals;
    uint8_t nan;      /* this pattern is no number … */
    uint8_t nan_mask; /* … looked at through this */
} small_row;

static const small_row smalls[BAL_DTYPES] = {
    [BAL_F8_E5M2] = { 2, 15, true, true, true, 0xff, 0x7f },
    [BAL_F8_E4M3] = { 3, 7, true, false, true, 0x7f, 0x7f },
    [BAL_F8_E8M0] = { 0, 127, false, false, false, 0xff, 0xff },
    [BAL_F8_E4M3FNUZ] = { 3, 8, true, false, true, 0x80, 0xff },
    [BAL_F8_E5M2FNUZ] = { 2, 16, true, false, true, 0x80, 0xff },
};

static double power_of_two(int exponent)
{
    return as_f64((uint64_t)(exponent + 1023) << 52);
}

static double small_value(const small_row *row, unsigned bits)
{
    static const double nan = __builtin_nan("");
    unsigned abs = row->has_sign ? bits & 0x7f : bits;
    unsigned exponent = abs >> row->fraction;
    unsigned steps = 1u << row->fraction;
    double part = (double)(abs & (steps - 1)) / steps;
    double sign = row->has_sign && bits & 0x80 ? -1 : 1;

    if ((bits & row->nan_mask) == row->nan)
        return nan;
    if (row->has_infinity && exponent == 31)
        return part > 0 ? nan : sign * __builtin_inf();
    if (!exponent && row->has_subnormals)
        return sign * part * power_of_two(1 - row->bias);
    return sign * (1 + part) * power_of_two((int)exponent - row->bias);
}

static void read_small(double *to, const void *from, size_t n, bal_dtype dtype)
{
    double values[256];

    for (unsigned bits = 0; bits < 256; bits++)
        values[bits] = small_value(&smalls[dtype], bits);
    for (size_t i = 0; i < n; i++)
        to[i] = values[((const uint8_t *)from)[i]];
}

static const bal_values_row rows[] = {
    [BAL_BOOL] = { 1, 1, read_u8 },
    [BAL_F4] = { 1, 0, NULL },
    [BAL_F6_E2M3] = { 1, 0, NULL },
    [BAL_F6_E3M2] = { 1, 0, NULL },
    [BAL_U8] = { 1, 1, read_u8 },
    [BAL_I8] = { 1, 1, read_i8 },
    [BAL_F8_E5M2] = { 1, 1, read_small },
    [BAL_F8_E4M3] = { 1, 1, read_small },
    [BAL_F8_E8M0] = { 1, 1, read_small },
    [BAL_F8_E4M3FNUZ] = { 1, 1, read_small },
    [BAL_F8_E5M2FNUZ] = { 1, 1, read_small },
    [BAL_I16] = { 2, 1, read_i16 },
    [BAL_U16] = { 2, 1, read_u16 },
    [BAL_F16] = { 2, 1, read_float },
    [BAL_BF16] = { 2, 1, read_float },
    [BAL_I32] = { 4, 1, read_i32 },
    [BAL_U32] = { 4, 1, read_u32 },
    [BAL_F32] = { 4, 1, read_float },
    [BAL_C64] = { 4, 2, read_pairs },
    [BAL_F64] = { 8, 1, read_float },
    [BAL_I64] = { 8, 1, read_i64 },
    [BAL_U64] = { 8, 1, read_u64 },
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_DTYPES, "a row a dtype");

const bal_values_row *bal_values_of(bal_dtype dtype)
{
    return &rows[dtype];
}
