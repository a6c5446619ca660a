/* Bytes like those that models have, drawn from a seed. */
#include "support/bytes.h"

#include <math.h>
#include <string.h>

static uint64_t state;

void bytes_seed(uint64_t seed)
{
    state = seed;
}

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double draw_normal(void)
{
    double u = ((double)(draw() >> 11) + 1) * 0x1p-53;
    double v = (double)(draw() >> 11) * 0x1p-53;

    return 0.02 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* ---- bytes_kinds of data
 * ------------------------------------------------------ */

static void put_bytes(uint8_t *to, size_t len, const void *value, size_t at,
                      size_t width)
{
    if (at < len)
        memcpy(to + at, value, width < len - at ? width : len - at);
}

void bytes_zero(uint8_t *to, size_t len)
{
    memset(to, 0, len);
}

void bytes_constant(uint8_t *to, size_t len)
{
    memset(to, 0xa5, len);
}

void bytes_random(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t)draw();
}

void bytes_text(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t) "the quick brown fox "[(i + i / 97) % 20];
}

void bytes_bf16(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += 2) {
        float value = (float)draw_normal();
        put_bytes(to, len, (uint8_t *)&value + 2, i, 2);
    }
}

void bytes_f16(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += 2) {
        uint16_t value = (uint16_t)(0x2400 + draw() % 0x800);
        put_bytes(to, len, &value, i, 2);
    }
}

void bytes_f32(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += 4) {
        float value = (float)draw_normal();
        put_bytes(to, len, &value, i, 4);
    }
}

/* Values of few bits: the two low planes are zero. */
void bytes_difference(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += 4) {
        float value = (float)draw_normal();
        memset(&value, 0, 2);
        put_bytes(to, len, &value, i, 4);
    }
}

void bytes_f64(uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        double value = draw_normal();
        put_bytes(to, len, &value, i, 8);
    }
}

const bytes_kind bytes_kinds[BYTES_KINDS] = {
    { "zero", bytes_zero },     { "constant", bytes_constant },
    { "random", bytes_random }, { "text", bytes_text },
    { "bf16", bytes_bf16 },     { "f16", bytes_f16 },
    { "f32", bytes_f32 },       { "difference", bytes_difference },
    { "f64", bytes_f64 },
};
