#include "support/strange.h"

#include <string.h>

uint64_t strange_bits(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Bits of exponent of the floats that have them. */
static unsigned exponent_bits(bal_dtype dtype)
{
    static const unsigned bits[BAL_DTYPES] = {
        [BAL_BF16] = 8,
        [BAL_F16] = 5,
        [BAL_F32] = 8,
        [BAL_F64] = 11,
    };

    return bits[dtype];
}

/* A quarter of the exponents are all ones or all zeros, a quarter of the
 * fractions have few bits set. */
static uint64_t strange_float(unsigned width, unsigned exponents,
                              uint64_t *state)
{
    uint64_t value = strange_bits(state);
    uint64_t how = strange_bits(state);
    unsigned digits = width - 1 - exponents;
    uint64_t mask = (((uint64_t)1 << exponents) - 1) << digits;

    if (how % 8 == 0)
        value |= mask;
    if (how % 8 == 1)
        value &= ~mask;
    if (how / 8 % 8 == 0)
        value &= ~((((uint64_t)1 << digits) - 1) & strange_bits(state) &
                   strange_bits(state));
    if (how / 64 % 4 == 0)
        value &= ~(((uint64_t)1 << digits) - 1);
    return value;
}

void strange_fill(void *to, uint64_t size, bal_dtype dtype, uint64_t *state)
{
    unsigned width = bal_dtype_bits(dtype);
    unsigned exponents = exponent_bits(dtype);
    unsigned step = exponents ? width / 8 : 1;

    for (uint64_t at = 0; at < size; at += step) {
        uint64_t value = exponents ? strange_float(width, exponents, state)
                                   : strange_bits(state);
        memcpy((char *)to + at, &value, step);
    }
}
