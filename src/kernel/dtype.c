/* The dtypes as rows. Whoever adds one adds its name to ballast.h, a row here
 * and one in model/values.c (how diff reads it); the compiler counts both. To
 * take part in arithmetic it needs conversions in kernels.inc as well. */
#include "kernel/dtype.h"

#include <string.h>

#include "core/arith.h"

/* Name, bits, class, what differences are in, bits as. */
static const bal_dtype_row rows[] = {
    [BAL_BOOL] = { "BOOL", 8, BAL_CLASS_OTHER, BAL_BOOL, BAL_U8 },
    [BAL_F4] = { "F4", 4, BAL_CLASS_SMALL, BAL_F4, BAL_U8 },
    [BAL_F6_E2M3] = { "F6_E2M3", 6, BAL_CLASS_SMALL, BAL_F6_E2M3, BAL_U8 },
    [BAL_F6_E3M2] = { "F6_E3M2", 6, BAL_CLASS_SMALL, BAL_F6_E3M2, BAL_U8 },
    [BAL_U8] = { "U8", 8, BAL_CLASS_OTHER, BAL_U8, BAL_U8 },
    [BAL_I8] = { "I8", 8, BAL_CLASS_OTHER, BAL_I8, BAL_U8 },
    [BAL_F8_E5M2] = { "F8_E5M2", 8, BAL_CLASS_SMALL, BAL_F8_E5M2, BAL_U8 },
    [BAL_F8_E4M3] = { "F8_E4M3", 8, BAL_CLASS_SMALL, BAL_F8_E4M3, BAL_U8 },
    [BAL_F8_E8M0] = { "F8_E8M0", 8, BAL_CLASS_SMALL, BAL_F8_E8M0, BAL_U8 },
    [BAL_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8, BAL_CLASS_SMALL, BAL_F8_E4M3FNUZ,
                          BAL_U8 },
    [BAL_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8, BAL_CLASS_SMALL, BAL_F8_E5M2FNUZ,
                          BAL_U8 },
    [BAL_I16] = { "I16", 16, BAL_CLASS_OTHER, BAL_I16, BAL_U16 },
    [BAL_U16] = { "U16", 16, BAL_CLASS_OTHER, BAL_U16, BAL_U16 },
    [BAL_F16] = { "F16", 16, BAL_CLASS_FLOAT, BAL_F32, BAL_U16 },
    [BAL_BF16] = { "BF16", 16, BAL_CLASS_FLOAT, BAL_F32, BAL_U16 },
    [BAL_I32] = { "I32", 32, BAL_CLASS_OTHER, BAL_I32, BAL_U32 },
    [BAL_U32] = { "U32", 32, BAL_CLASS_OTHER, BAL_U32, BAL_U32 },
    [BAL_F32] = { "F32", 32, BAL_CLASS_FLOAT, BAL_F32, BAL_U32 },
    [BAL_C64] = { "C64", 64, BAL_CLASS_OTHER, BAL_C64, BAL_U64 },
    [BAL_F64] = { "F64", 64, BAL_CLASS_FLOAT, BAL_F64, BAL_U64 },
    [BAL_I64] = { "I64", 64, BAL_CLASS_OTHER, BAL_I64, BAL_U64 },
    [BAL_U64] = { "U64", 64, BAL_CLASS_OTHER, BAL_U64, BAL_U64 },
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_DTYPES, "a row a dtype");

const bal_dtype_row *bal_dtype_row_of(bal_dtype dtype)
{
    return &rows[dtype];
}

const char *bal_dtype_name(bal_dtype dtype)
{
    return (unsigned)dtype < BAL_DTYPES ? rows[dtype].name : "unknown";
}

unsigned bal_dtype_bits(bal_dtype dtype)
{
    return (unsigned)dtype < BAL_DTYPES ? rows[dtype].bits : 0;
}

bool bal_dtype_find(bal_dtype *out, const char *name, size_t len)
{
    for (size_t i = 0; i < BAL_DTYPES; i++) {
        if (strlen(rows[i].name) == len && !memcmp(rows[i].name, name, len)) {
            *out = (bal_dtype)i;
            return true;
        }
    }
    return false;
}

bool bal_shape_size(uint64_t *elements, uint64_t *bytes, bal_dtype dtype,
                    const uint64_t *shape, uint32_t rank)
{
    uint64_t count = 1;
    uint64_t bits = 0;

    for (uint32_t i = 0; i < rank; i++) {
        if (!shape[i]) {
            *elements = 0;
            *bytes = 0;
            return true;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (!bal_mul(&count, count, shape[i]))
            return false;
    }
    if (!bal_mul(&bits, count, rows[dtype].bits) || bits % 8)
        return false;
    *elements = count;
    *bytes = bits / 8;
    return true;
}
