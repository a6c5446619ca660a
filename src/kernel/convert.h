/* One float as another, by its bits: what the loops of kernels.inc do n times.
 * Bits are moved as integers, so that a signalling NaN passes through unharmed.
 * Rounding is the hardware's: to nearest, ties to even. Nothing branches, so
 * that all of it becomes vectors. */
#ifndef KERNEL_CONVERT_H
#define KERNEL_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- bits --------------------------------------------------------------- */

static inline uint16_t load16(const void *from, size_t i)
{
    uint16_t bits;

    memcpy(&bits, (const char *)from + 2 * i, 2);
    return bits;
}

static inline uint32_t load32(const void *from, size_t i)
{
    uint32_t bits;

    memcpy(&bits, (const char *)from + 4 * i, 4);
    return bits;
}

static inline uint64_t load64(const void *from, size_t i)
{
    uint64_t bits;

    memcpy(&bits, (const char *)from + 8 * i, 8);
    return bits;
}

static inline void store16(void *to, size_t i, uint32_t value)
{
    uint16_t bits = (uint16_t)value;

    memcpy((char *)to + 2 * i, &bits, 2);
}

static inline void store32(void *to, size_t i, uint32_t bits)
{
    memcpy((char *)to + 4 * i, &bits, 4);
}

static inline void store64(void *to, size_t i, uint64_t bits)
{
    memcpy((char *)to + 8 * i, &bits, 8);
}

static inline float as_f32(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

static inline double as_f64(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, 8);
    return value;
}

static inline uint32_t bits32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static inline uint64_t bits64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, 8);
    return bits;
}

/* All ones where set, to choose without a branch: compilers will not turn a
 * branch that depends on a comparison of floats into vectors. */
static inline uint32_t mask32(bool set)
{
    return -(uint32_t)set;
}

static inline uint64_t mask64(bool set)
{
    return -(uint64_t)set;
}

/* ---- one value ---------------------------------------------------------- */

static inline uint32_t f32_of_bf16(uint16_t half)
{
    return (uint32_t)half << 16;
}

static inline uint32_t f32_of_f16(uint16_t half)
{
    int32_t abs = half & 0x7fff;
    uint32_t tiny = bits32((float)abs * 0x1p-24f);
    uint32_t wide = ((uint32_t)abs << 13) + (112 << 23);
    uint32_t small = mask32(abs < 0x400);

    wide += mask32(abs >= 0x7c00) & (112 << 23);
    wide = (tiny & small) | (wide & ~small);
    return wide | (uint32_t)(half & 0x8000) << 16;
}

static inline uint32_t bf16_of_f32(uint32_t bits)
{
    int32_t abs = (int32_t)(bits & 0x7fffffff);
    uint32_t top = bits >> 16;
    uint32_t nan = top | (top & 0x7f ? 0 : 0x40);
    uint32_t near = (bits + 0x7fff + (top & 1)) >> 16;

    return abs > 0x7f800000 ? nan : near;
}

/* Below 2^-14, adding 0.5 moves the bits of weight 2^-24 to the end of the
 * fraction and rounds there. */
static inline uint32_t f16_of_f32(uint32_t bits)
{
    int32_t abs = (int32_t)(bits & 0x7fffffff);
    uint32_t tiny = bits32(as_f32((uint32_t)abs) + 0.5f) - 0x3f000000;
    uint32_t near = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
    uint32_t nan = bits >> 13 & 0x3ff;
    uint32_t small = mask32(abs < 0x38800000);

    near = (near - (112 << 23)) >> 13;
    nan = 0x7c00 | (nan ? nan : 0x200);
    near = abs >= 0x477ff000 ? 0x7c00 : near;
    near = abs > 0x7f800000 ? nan : near;
    return (tiny & small) | (near & ~small) | (bits >> 16 & 0x8000);
}

/* Widening quiets a NaN, and keeps all else of it. */
static inline uint64_t f64_of_f32(uint32_t bits)
{
    double wide = (double)as_f32(bits);
    uint64_t loud = (uint64_t)(~bits & 0x400000) << 29;

    return bits64(wide) & ~(mask64(wide != wide) & loud);
}

static inline uint32_t nan32_of_nan64(uint64_t bits)
{
    uint32_t sign = (uint32_t)(bits >> 32) & 0x80000000;
    uint32_t top = (uint32_t)(bits >> 29) & 0x7fffff;

    return sign | 0x7f800000 | top | (mask32(top == 0) & 0x400000);
}

static inline uint32_t f32_of_f64(uint64_t bits)
{
    float near = (float)as_f64(bits);

    uint32_t odd = mask32(near != near);

    return (nan32_of_nan64(bits) & odd) | (bits32(near) & ~odd);
}

/* Rounded to odd: cut, and the last bit set if anything was cut off. Rounding
 * that to fewer bits gives what rounding once would. */
static inline uint32_t odd32_of_f64(uint64_t bits)
{
    double exact = as_f64(bits);
    float near = (float)exact;
    double back = (double)near;
    uint32_t odd = bits32(near);

    uint32_t nan = mask32(near != near);

    odd -= (uint32_t)(__builtin_fabs(back) > __builtin_fabs(exact));
    odd |= (uint32_t)(back != exact);
    return (nan32_of_nan64(bits) & nan) | (odd & ~nan);
}

static inline float pure32(float value)
{
    return value != value ? as_f32(0x7fc00000) : value;
}

static inline double pure64(double value)
{
    return value != value ? as_f64((uint64_t)0x7ff8 << 48) : value;
}

#endif
