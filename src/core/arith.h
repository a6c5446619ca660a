/* Sums, products and little-endian numbers of what comes from outside. */
#ifndef CORE_ARITH_H
#define CORE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* False, and out untouched, when the result does not fit. */
static inline bool bal_add(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool bal_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline uint64_t bal_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t bal_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t bal_get32(const void *from)
{
    const uint8_t *byte = from;

    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 |
           (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static inline uint64_t bal_get64(const void *from)
{
    const uint8_t *byte = from;

    return (uint64_t)bal_get32(byte) | (uint64_t)bal_get32(byte + 4) << 32;
}

static inline void bal_put32(void *to, uint32_t value)
{
    uint8_t *byte = to;

    for (size_t i = 0; i < 4; i++)
        byte[i] = (uint8_t)(value >> (8 * i));
}

static inline void bal_put64(void *to, uint64_t value)
{
    uint8_t *byte = to;

    for (size_t i = 0; i < 8; i++)
        byte[i] = (uint8_t)(value >> (8 * i));
}

#endif
