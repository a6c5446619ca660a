/* Frequencies: from counts, to bytes and back. All in whole numbers, so that
 * every machine writes the same.
 *
 * On disk a frequency f is the bit length of f + 1, as what it is more than
 * that of the last token but one (whose sign is the same, where there are
 * signs), and the bits below the highest. Where all tables are rough, a table
 * is how much higher or lower each magnitude stands than the one before it. */
#include <assert.h>
#include <string.h>

#include "codec/rans.h"
#include "core/error.h"

enum {
    TOKENS = BAL_RANS_TOKENS,
    SLOTS = BAL_RANS_SLOTS,
    FRACTION = 16, /* bits behind the point of a logarithm */
    MOST_ZEROS = 128,
};

/* ---- logarithms --------------------------------------------------------- */

static uint32_t length_of(uint64_t value)
{
    return 63 - (uint32_t)__builtin_clzll(value);
}

/* By squaring: each square that reaches 2 is a one bit. */
static uint32_t log_by_squares(uint64_t value)
{
    uint32_t whole = length_of(value);
    uint64_t x = value << (31 - whole);
    uint32_t part = 0;

    for (size_t i = 0; i < FRACTION; i++) {
        x = x * x >> 31;
        part = part << 1 | (uint32_t)(x >> 32);
        x >>= x >> 32;
    }
    return whole << FRACTION | part;
}

void bal_rans_prepare(bal_rans *self)
{
    for (uint32_t i = 1; i <= SLOTS; i++)
        self->log[i] = log_by_squares(i);
}

uint32_t bal_rans_log(const bal_rans *self, uint64_t value)
{
    uint32_t whole = length_of(value);

    if (whole < BAL_RANS_BITS)
        return self->log[value];
    uint32_t over = whole - (BAL_RANS_BITS - 1);
    return self->log[value >> over] + (over << FRACTION);
}

uint64_t bal_rans_cost(const bal_rans *self, const uint32_t *count)
{
    uint64_t total = 0;
    uint64_t cost = 0;

    for (size_t i = 0; i < TOKENS; i++)
        total += count[i];
    for (size_t i = 0; i < TOKENS; i++) {
        if (count[i])
            cost += (uint64_t)count[i] *
                    (bal_rans_log(self, total) - bal_rans_log(self, count[i]));
    }
    return cost;
}

/* ---- scaling ------------------------------------------------------------ */

/* What one slot more or less for a token of this count and frequency is
 * worth. */
static uint64_t worth(const bal_rans *self, uint32_t count, uint32_t freq)
{
    return (uint64_t)count * (self->log[freq + 1] - self->log[freq]);
}

static void take_slot(const bal_rans *self, uint16_t *freq,
                      const uint32_t *count)
{
    uint64_t least = UINT64_MAX;
    size_t from = 0;

    for (size_t i = 0; i < TOKENS; i++) {
        if (freq[i] < 2)
            continue;
        uint64_t cost = worth(self, count[i], freq[i] - 1u);
        if (cost < least) {
            least = cost;
            from = i;
        }
    }
    freq[from]--;
}

static void give_slot(const bal_rans *self, uint16_t *freq,
                      const uint32_t *count)
{
    uint64_t most = 0;
    size_t to = 0;

    for (size_t i = 0; i < TOKENS; i++) {
        if (!freq[i])
            continue;
        uint64_t gain = worth(self, count[i], freq[i]) + 1;
        if (gain > most) {
            most = gain;
            to = i;
        }
    }
    freq[to]++;
}

void bal_rans_scale(const bal_rans *self, uint16_t *freq, const uint32_t *count)
{
    uint64_t total = 0;
    uint32_t sum = 0;

    memset(freq, 0, TOKENS * sizeof(*freq));
    for (size_t i = 0; i < TOKENS; i++)
        total += count[i];
    if (!total) {
        freq[0] = SLOTS;
        return;
    }
    for (size_t i = 0; i < TOKENS; i++) {
        if (!count[i])
            continue;
        uint64_t share = ((uint64_t)count[i] * SLOTS + total / 2) / total;
        freq[i] = (uint16_t)(share ? share : 1);
        sum += freq[i];
    }
    for (; sum > SLOTS; sum--)
        take_slot(self, freq, count);
    for (; sum < SLOTS; sum++)
        give_slot(self, freq, count);
}

/* ---- to bytes ----------------------------------------------------------- */

static size_t used_of(const uint16_t *freq)
{
    size_t used = TOKENS;

    while (used > 1 && !freq[used - 1])
        used--;
    return used;
}

/* How many zeros come before the one that ends a change of length. */
static uint32_t zeros_of(uint32_t length, uint32_t before)
{
    return length > before ? 2 * (length - before) - 1 : 2 * (before - length);
}

uint64_t bal_rans_table_bits(const uint16_t *freq)
{
    size_t used = used_of(freq);
    uint32_t before[2] = { 0 };
    uint64_t bits = 8;

    for (size_t i = 0; i < used; i++) {
        uint32_t length = length_of(freq[i] + 1u);
        bits += zeros_of(length, before[i % 2]) + 1 + length;
        before[i % 2] = length;
    }
    return bits;
}

/* Zeros before the one that ends a step of height: down is more likely. */
static uint32_t zeros_of_step(const bal_rans_shape *shape, size_t m)
{
    int32_t step = shape->height[m] - shape->height[m - 1];

    return step < 0 ? 2 * (uint32_t)-step - 1 : 2 * (uint32_t)step;
}

uint64_t bal_rans_shape_bits(const bal_rans_shape *shape)
{
    uint64_t bits = 7;

    for (size_t m = 1; m <= shape->last; m++)
        bits += zeros_of_step(shape, m) + 1;
    return bits;
}

/* Bits from the lowest of a byte up. */
typedef struct writer {
    uint8_t *to;
    uint64_t acc;
    uint32_t bits;
} writer;

static void put_bits(writer *out, uint64_t value, uint32_t bits)
{
    out->acc |= value << out->bits;
    out->bits += bits;
    for (; out->bits >= 8; out->bits -= 8) {
        *out->to++ = (uint8_t)out->acc;
        out->acc >>= 8;
    }
}

static void put_table(writer *out, const uint16_t *freq)
{
    size_t used = used_of(freq);
    uint32_t before[2] = { 0 };

    put_bits(out, used - 1, 8);
    for (size_t i = 0; i < used; i++) {
        uint32_t length = length_of(freq[i] + 1u);
        uint32_t zeros = zeros_of(length, before[i % 2]);
        put_bits(out, (uint64_t)1 << zeros, zeros + 1);
        put_bits(out, (freq[i] + 1u) ^ 1u << length, length);
        before[i % 2] = length;
    }
}

static void put_shape(writer *out, const bal_rans_shape *shape)
{
    put_bits(out, shape->last, 7);
    for (size_t m = 1; m <= shape->last; m++) {
        uint32_t zeros = zeros_of_step(shape, m);
        for (; zeros > 32; zeros -= 32)
            put_bits(out, 0, 32);
        put_bits(out, (uint64_t)1 << zeros, zeros + 1);
    }
}

size_t bal_rans_put_tables(uint8_t *to, const bal_rans *self)
{
    writer out = { .to = to };

    for (size_t i = 0; i < BAL_RANS_TABLES; i++) {
        if (i && !(self->starts >> i & 1))
            continue;
        if (self->form == BAL_RANS_ROUGH)
            put_shape(&out, &self->shape[i]);
        else
            put_table(&out, self->freq[i]);
    }
    put_bits(&out, 0, 7);
    assert(out.to - to <= BAL_RANS_TABLES_MOST);
    return (size_t)(out.to - to);
}

/* ---- from bytes --------------------------------------------------------- */

typedef struct reader {
    const uint8_t *from;
    const uint8_t *end;
    uint64_t acc;
    uint32_t bits;
} reader;

/* Up to 32 bits; false: there are not as many. */
static bool get_bits(reader *in, uint32_t *value, uint32_t bits)
{
    while (in->bits < bits) {
        if (in->from == in->end)
            return false;
        in->acc |= (uint64_t)*in->from++ << in->bits;
        in->bits += 8;
    }
    *value = (uint32_t)(in->acc & (((uint64_t)1 << bits) - 1));
    in->acc >>= bits;
    in->bits -= bits;
    return true;
}

/* f + 1, and its length in place of that before. */
static bool get_freq(reader *in, uint32_t *value, uint32_t *before)
{
    uint32_t bit = 0;
    uint32_t zeros = 0;
    uint32_t low = 0;

    while (get_bits(in, &bit, 1) && !bit) {
        if (zeros++ == 2 * BAL_RANS_BITS)
            return false;
    }
    uint32_t more = (zeros + 1) / 2;
    uint32_t length = zeros % 2 ? *before + more : *before - more;
    if (!bit || length > BAL_RANS_BITS || !get_bits(in, &low, length))
        return false;
    *value = 1u << length | low;
    *before = length;
    return true;
}

/* False: not the frequencies of a table, of which the sum is not looked at. */
static bool get_exact(reader *in, uint16_t *freq)
{
    uint32_t before[2] = { 0 };
    uint32_t used = 0;

    memset(freq, 0, TOKENS * sizeof(*freq));
    if (!get_bits(in, &used, 8))
        return false;
    for (uint32_t token = 0; token <= used; token++) {
        uint32_t value = 0;
        if (!get_freq(in, &value, &before[token % 2]) || value > SLOTS + 1)
            return false;
        freq[token] = (uint16_t)(value - 1);
    }
    return true;
}

static bool get_step(reader *in, int32_t *height)
{
    uint32_t bit = 0;
    uint32_t zeros = 0;

    while (get_bits(in, &bit, 1) && !bit) {
        if (zeros++ == MOST_ZEROS)
            return false;
    }
    *height += zeros % 2 ? -(int32_t)(zeros / 2 + 1) : (int32_t)(zeros / 2);
    return bit;
}

static bool get_rough(reader *in, uint16_t *freq)
{
    bal_rans_shape shape = { 0 };
    uint32_t last = 0;

    if (!get_bits(in, &last, 7))
        return false;
    shape.last = last;
    for (size_t m = 1; m <= last; m++) {
        shape.height[m] = shape.height[m - 1];
        if (!get_step(in, &shape.height[m]))
            return false;
    }
    bal_rans_from_shape(freq, &shape);
    return true;
}

/* One table's slots; false: not the frequencies of one. */
static bool set_slots(uint32_t *slots, const uint16_t *freq, bool *there)
{
    uint32_t at = 0;

    for (uint32_t token = 0; token < TOKENS; token++) {
        if (freq[token] > SLOTS - at)
            return false;
        for (uint32_t k = 0; k < freq[token]; k++)
            slots[at + k] = token | (freq[token] - 1u) << 8 | k << 20;
        there[token] = there[token] || freq[token];
        at += freq[token];
    }
    return at == SLOTS;
}

int bal_rans_get_tables(bal_rans *self, unsigned starts, bal_bytes from,
                        bal_error *err)
{
    static bool (*const forms[])(reader * in, uint16_t * freq) = {
        [BAL_RANS_EXACT] = get_exact,
        [BAL_RANS_ROUGH] = get_rough,
    };
    const uint8_t *data = from.data;
    reader in = { .from = data, .end = data + from.len };
    bal_rans_form form = starts & 1 ? BAL_RANS_EXACT : BAL_RANS_ROUGH;
    uint16_t freq[TOKENS];

    memset(self->used, 0, sizeof(self->used));
    for (size_t i = 0; i < BAL_RANS_TABLES; i++) {
        uint32_t *slots = self->slots + i * SLOTS;
        if (i && !(starts >> i & 1))
            memcpy(slots, self->slots + (i - 1) * SLOTS,
                   SLOTS * sizeof(*slots));
        else if (!forms[form](&in, freq) || !set_slots(slots, freq, self->used))
            return bal_fail(err, BAL_ECORRUPT, "table %zu is damaged", i);
    }
    if (in.from != in.end || in.acc)
        return bal_fail(err, BAL_ECORRUPT, "bytes behind the tables");
    return 0;
}
