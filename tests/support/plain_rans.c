/* By the description, slowly. */
#include "support/plain_rans.h"

#include <string.h>

enum { TABLES = 16, SLOTS = 4096, LANES = 128 };

typedef struct plain {
    const uint8_t *at;
    const uint8_t *end;
    unsigned freq[TABLES][256];
    uint32_t state[LANES];
    size_t lanes;
} plain;

static unsigned get16(const uint8_t *from)
{
    return from[0] | (unsigned)from[1] << 8;
}

static uint32_t get32(const uint8_t *from)
{
    return get16(from) | (uint32_t)get16(from + 2) << 16;
}

static unsigned bit_at(const uint8_t *from, size_t *bit)
{
    unsigned value = from[*bit / 8] >> (*bit % 8) & 1;

    ++*bit;
    return value;
}

static unsigned bits_at(const uint8_t *from, size_t *bit, unsigned count)
{
    unsigned value = 0;

    for (unsigned i = 0; i < count; i++)
        value |= bit_at(from, bit) << i;
    return value;
}

static void read_table(plain *in, size_t table, const uint8_t *from,
                       size_t *bit)
{
    unsigned before[2] = { 0 };
    unsigned last = bits_at(from, bit, 8);

    for (unsigned token = 0; token <= last; token++) {
        unsigned *length = &before[token % 2];
        unsigned zeros = 0;
        while (!bit_at(from, bit))
            zeros++;
        *length = zeros % 2 ? *length + (zeros + 1) / 2 : *length - zeros / 2;
        in->freq[table][token] =
            (1u << *length | bits_at(from, bit, *length)) - 1;
    }
}

/* Rough: heights by magnitude, then weights, then slots. */
static void read_rough(plain *in, size_t table, const uint8_t *from,
                       size_t *bit)
{
    unsigned last = bits_at(from, bit, 7);
    int height[128] = { 0 };
    int highest = 0;
    uint64_t weight[128];
    uint64_t total = 0;
    unsigned *freq = in->freq[table];
    unsigned sum = 0;

    for (unsigned m = 1; m <= last; m++) {
        int zeros = 0;
        while (!bit_at(from, bit))
            zeros++;
        height[m] = height[m - 1] + (zeros % 2 ? -(zeros + 1) / 2 : zeros / 2);
        highest = height[m] > highest ? height[m] : highest;
    }
    for (unsigned m = 0; m <= last; m++) {
        int down = highest - height[m] < 62 ? highest - height[m] : 62;
        weight[m] = (down % 2 ? UINT64_C(46341) : 65536) * 65536;
        weight[m] /= UINT64_C(1) << (down / 2);
        total += m ? 2 * weight[m] : weight[m];
    }
    for (unsigned m = 0; m <= last; m++) {
        unsigned share = (unsigned)(weight[m] * SLOTS / total);
        freq[2 * m] = share ? share : 1;
        freq[2 * m + 1] = m ? freq[2 * m] : 0;
        sum += freq[2 * m] + freq[2 * m + 1];
    }
    for (unsigned i = 0; sum < SLOTS; i = (i + 1) % (2 * last + 2)) {
        freq[i] += i != 1;
        sum += i != 1;
    }
    for (unsigned i = 0; sum > SLOTS; i = (i + 1) % (2 * last + 2)) {
        unsigned gives = i != 1 && freq[i] > 1;
        freq[i] -= gives;
        sum -= gives;
    }
}

static void open_stream(plain *in, const uint8_t *from)
{
    static const size_t lanes[] = { 64, 8, 1, LANES };
    unsigned starts = get16(from);
    unsigned sizes = get16(from + 2);
    size_t bit = 0;

    for (size_t i = 0; i < TABLES; i++) {
        if (!(starts & 1) && (!i || starts >> i & 1))
            read_rough(in, i, from + 4, &bit);
        else if (starts >> i & 1)
            read_table(in, i, from + 4, &bit);
        else
            memcpy(in->freq[i], in->freq[i - 1], sizeof(in->freq[i]));
    }
    in->lanes = lanes[sizes >> 14];
    in->at = from + 4 + (sizes & 0x3fff);
    for (size_t i = 0; i < in->lanes; i++, in->at += 4)
        in->state[i] = get32(in->at);
}

static void refill(plain *in, size_t lane)
{
    if (in->state[lane] >= 1u << 15 || in->at == in->end)
        return;
    in->state[lane] = in->state[lane] << 16 | get16(in->at);
    in->at += 2;
}

static unsigned take_token(plain *in, size_t lane, size_t table)
{
    uint32_t x = in->state[lane];
    unsigned slot = x % SLOTS;
    unsigned token = 0;
    unsigned start = 0;

    while (slot >= start + in->freq[table][token])
        start += in->freq[table][token++];
    in->state[lane] = in->freq[table][token] * (x / SLOTS) + slot - start;
    refill(in, lane);
    return token;
}

static uint32_t take_bits(plain *in, size_t lane, unsigned count)
{
    uint32_t raw = in->state[lane] & ((1u << count) - 1);

    in->state[lane] >>= count;
    refill(in, lane);
    return raw;
}

static unsigned raw_of(unsigned token, unsigned sub)
{
    unsigned q = token >> (sub + 1);

    return q > 1 ? q - 1 : 0;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* What is known of a kind: width, the exponent's place, its mask. */
static const unsigned kinds[8][3] = {
    [2] = { 2, 7, 255 }, [3] = { 2, 10, 31 }, [4] = { 4, 23, 255 },
    [6] = { 1, 3, 15 },  [7] = { 1, 2, 31 },
};

typedef struct element {
    size_t table;
    unsigned token;
    uint32_t raw;
} element;

static void take_round(plain *in, element *of, size_t n, unsigned sub)
{
    for (size_t i = 0; i < n; i++)
        of[i].token = take_token(in, i, of[i].table);
    for (size_t i = 0; i < n; i++)
        of[i].raw = take_bits(in, i, least(15, raw_of(of[i].token, sub)));
    for (size_t i = 0; i < n; i++) {
        unsigned k = raw_of(of[i].token, sub);
        of[i].raw |= take_bits(in, i, k > 15 ? k - 15 : 0) << 15;
    }
}

static uint32_t number_at(const uint8_t *from, size_t i, unsigned width)
{
    uint32_t value = 0;

    for (unsigned b = 0; b < width; b++)
        value |= (uint32_t)from[i * width + b] << (8 * b);
    return value;
}

static uint32_t distance_of(const element *of, unsigned sub)
{
    unsigned m = of->token >> 1;
    unsigned k = raw_of(of->token, sub);
    uint32_t far = ((m - (k << sub)) << k) + of->raw;

    return of->token & 1 ? 0 - far : far;
}

bool plain_anchored(uint8_t *to, const uint8_t *base, size_t n,
                    const uint8_t *payload, size_t len)
{
    static plain in;
    const unsigned *kind = kinds[payload[0] & 7];
    unsigned sub = kind[0] == 4 ? 2 : 3;
    unsigned low = get16(payload + 2);
    element of[LANES];

    memset(&in, 0, sizeof(in));
    in.end = payload + len;
    open_stream(&in, payload + 8);
    for (size_t at = 0; at < n; at += in.lanes) {
        size_t many = n - at < in.lanes ? n - at : in.lanes;
        for (size_t i = 0; i < many; i++) {
            uint32_t near = number_at(base, at + i, kind[0]);
            unsigned e = near >> kind[1] & kind[2];
            of[i].table = e < low ? 0 : least(e - low, TABLES - 1);
        }
        take_round(&in, of, many, sub);
        for (size_t i = 0; i < many; i++) {
            uint32_t near = number_at(base, at + i, kind[0]);
            near += distance_of(&of[i], sub);
            for (unsigned b = 0; b < kind[0]; b++)
                to[(at + i) * kind[0] + b] = (uint8_t)(near >> (8 * b));
        }
    }
    for (size_t i = 0; i < in.lanes; i++) {
        if (in.state[i] != 1u << 15)
            return false;
    }
    return in.at == in.end;
}
