/* Every table of loops gives base's bits, and base's are right by definition:
 * what a half is worth is computed with ldexp, rounding with nearbyint. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/strange.h"

enum { HALVES = 65536, MANY = 1 << 16 };

/* ---- inputs -------------------------------------------------------------- */

/* Bits of doubles of every kind: any at all, near the ends of the narrower
 * floats, on ties and one off them, NaNs and infinities, zeros. */
static uint64_t strange64(uint64_t *state)
{
    static const int middles[] = { 0,    -14,  -15,   -24,   -25,  15,   16,
                                   -126, -127, -149,  -150,  127,  128,  -133,
                                   -134, 1023, -1022, -1000, -200, -1022 };
    uint64_t random = strange_bits(state);
    uint64_t sign = random << 63;
    uint64_t fraction = strange_bits(state) >> 12;
    unsigned which = random >> 8 & 15;

    if (which == 0)
        return strange_bits(state);
    if (which == 1)
        return sign | (uint64_t)0x7ff << 52 |
               (random & 0x10000 ? 0 : fraction >> (random >> 20) % 52);
    if (which == 2)
        return sign | (random & 0x10000 ? 0 : fraction);
    int middle = middles[(random >> 32) % (sizeof(middles) / sizeof(int))];
    int exponent = middle + (int)(random >> 40) % 3 - 1 + 1023;
    exponent = exponent < 0 ? 0 : exponent;
    if (which < 10) {
        static const unsigned tails[] = { 29, 28, 42, 41, 43, 45, 44, 46 };
        unsigned tail = tails[(random >> 48) % 8];
        fraction = fraction >> tail << tail;
        fraction += (random >> 52) % 3;
        fraction -= random >> 56 & 1;
        fraction &= ((uint64_t)1 << 52) - 1;
    }
    return sign | (uint64_t)exponent << 52 | fraction;
}

static uint32_t strange32(uint64_t *state)
{
    uint64_t bits = strange64(state);
    double value;
    float narrow;
    uint32_t out;

    if (bits & 7)
        return (uint32_t)(bits >> 13 ^ bits << 29);
    memcpy(&value, &bits, 8);
    narrow = (float)value;
    memcpy(&out, &narrow, 4);
    return out + (uint32_t)(strange_bits(state) % 3) - 1;
}

typedef struct inputs {
    uint64_t f64[MANY];
    uint32_t f32[MANY];
    uint16_t halves[HALVES];
} inputs;

static const inputs *strange(void)
{
    static inputs all;
    static bool made;
    uint64_t state = 42;

    for (size_t i = 0; !made && i < MANY; i++) {
        all.f64[i] = strange64(&state);
        all.f32[i] = strange32(&state);
        all.halves[i] = (uint16_t)i;
    }
    made = true;
    return &all;
}

static const void *inputs_of(bal_dtype dtype)
{
    if (dtype == BAL_F64)
        return strange()->f64;
    return dtype == BAL_F32 ? (const void *)strange()->f32
                            : (const void *)strange()->halves;
}

/* ---- the oracle ---------------------------------------------------------- */

typedef struct form {
    bal_dtype dtype;
    unsigned digits; /* of the significand, the hidden one included */
    int low;         /* exponent of the smallest normal */
    int high;        /* exponent of the largest */
} form;

static const form forms[] = {
    { BAL_BF16, 8, -126, 127 },
    { BAL_F16, 11, -14, 15 },
    { BAL_F32, 24, -126, 127 },
    { BAL_F64, 53, -1022, 1023 },
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static uint64_t bits_at(bal_dtype dtype, const void *from, size_t i)
{
    size_t width = bal_dtype_bits(dtype) / 8;
    uint64_t bits = 0;

    memcpy(&bits, (const char *)from + i * width, width);
    return bits;
}

static uint64_t fraction_of(const form *f, uint64_t bits)
{
    return bits & (((uint64_t)1 << (f->digits - 1)) - 1);
}

static uint64_t sign_of(const form *f, uint64_t bits)
{
    return bits >> (bal_dtype_bits(f->dtype) - 1);
}

static bool nan_of(const form *f, uint64_t bits)
{
    uint64_t all = ((uint64_t)1 << (bal_dtype_bits(f->dtype) - f->digits)) - 1;

    return (bits >> (f->digits - 1) & all) == all && fraction_of(f, bits);
}

/* What bits mean, by the definition of the format. */
static double worth(const form *f, uint64_t bits)
{
    int exponents = f->high - f->low + 3;
    int exponent = (int)(bits >> (f->digits - 1)) & (exponents - 1);
    double fraction = ldexp((double)fraction_of(f, bits), 1 - (int)f->digits);
    double sign = sign_of(f, bits) ? -1 : 1;

    if (exponent == exponents - 1)
        return sign * (fraction != 0 ? (double)NAN : (double)INFINITY);
    if (!exponent)
        return sign * ldexp(fraction, f->low);
    return sign * ldexp(1 + fraction, exponent - 1 + f->low);
}

/* value, rounded once to the format, ties to even. */
static double rounded(const form *f, double value)
{
    int exponent;

    if (value == 0 || isinf(value))
        return value;
    frexp(value, &exponent);
    exponent = exponent - 1 < f->low ? f->low : exponent - 1;
    int last = exponent - (int)f->digits + 1;
    double near = ldexp(nearbyint(ldexp(value, -last)), last);
    double largest = ldexp(2 - ldexp(1, 1 - (int)f->digits), f->high);
    return fabs(near) > largest ? copysign((double)INFINITY, value) : near;
}

/* ---- every conversion, by its two ends ----------------------------------- */

static void convert(const bal_kernels *kernels, bal_dtype to, void *out,
                    bal_dtype from, const void *in, size_t n)
{
    if (from == BAL_F64)
        kernels->from_f64[to](out, in, n);
    else if (from == BAL_F32)
        kernels->from_f32[to](out, in, n);
    else if (to == BAL_F64)
        kernels->to_f64[from](out, in, n);
    else
        kernels->to_f32[from](out, in, n);
}

static bool converts(bal_dtype to, bal_dtype from)
{
    return from == BAL_F64 || from == BAL_F32 || to == BAL_F64 || to == BAL_F32;
}

static void check_conversion(const form *to, const form *from)
{
    static uint64_t out[MANY];
    const void *in = inputs_of(from->dtype);

    convert(bal_kernels_at(0), to->dtype, out, from->dtype, in, MANY);
    for (size_t i = 0; i < MANY; i++) {
        uint64_t bits = bits_at(from->dtype, in, i);
        uint64_t got = bits_at(to->dtype, out, i);
        CHECK(sign_of(from, bits) == sign_of(to, got));
        CHECK(nan_of(from, bits) == nan_of(to, got));
        if (nan_of(from, bits))
            continue;
        double value = worth(from, bits);
        CHECK(worth(to, got) == rounded(to, value));
    }
}

static void rounds_once_to_nearest_even(void)
{
    for (size_t i = 0; i < FORMS * FORMS; i++) {
        const form *to = &forms[i / FORMS];
        const form *from = &forms[i % FORMS];
        check_row(bal_dtype_name(from->dtype));
        if (converts(to->dtype, from->dtype))
            check_conversion(to, from);
    }
}

/* The wider of two payloads, cut to the narrower, is the narrower; if nothing
 * is left, the top bit is set. */
static void check_payload(const form *to, const form *from)
{
    static uint64_t out[MANY];
    const void *in = inputs_of(from->dtype);
    int cut = (int)from->digits - (int)to->digits;

    convert(bal_kernels_at(0), to->dtype, out, from->dtype, in, MANY);
    for (size_t i = 0; i < MANY; i++) {
        uint64_t bits = bits_at(from->dtype, in, i);
        if (!nan_of(from, bits))
            continue;
        uint64_t want = fraction_of(from, bits);
        want = cut > 0 ? want >> cut : want << -cut;
        want = want ? want : (uint64_t)1 << (to->digits - 2);
        CHECK(fraction_of(to, bits_at(to->dtype, out, i)) == want);
    }
}

static void a_nan_keeps_the_top_of_its_payload(void)
{
    for (size_t i = 0; i < FORMS * FORMS; i++) {
        const form *to = &forms[i / FORMS];
        const form *from = &forms[i % FORMS];
        check_row(bal_dtype_name(from->dtype));
        if (converts(to->dtype, from->dtype))
            check_payload(to, from);
    }
}

static void widening_and_back_changes_no_bit(void)
{
    static const bal_dtype halves[] = { BAL_BF16, BAL_F16 };
    static uint16_t back[HALVES];
    static float wide[HALVES];
    static double wider[HALVES];
    const uint16_t *in = strange()->halves;

    for (size_t i = 0; i < 2 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 2);
        bal_dtype dtype = halves[i % 2];
        check_row(kernels->isa);
        kernels->to_f32[dtype](wide, in, HALVES);
        kernels->from_f32[dtype](back, wide, HALVES);
        CHECK(!memcmp(back, in, sizeof(back)));
        kernels->to_f64[dtype](wider, in, HALVES);
        kernels->from_f64[dtype](back, wider, HALVES);
        CHECK(!memcmp(back, in, sizeof(back)));
    }
}

/* ---- every table against base -------------------------------------------- */

static void every_table_converts_as_base_does(void)
{
    static uint64_t want[MANY], got[MANY];

    for (size_t i = 0; i < bal_kernels_count() * FORMS * FORMS; i++) {
        const bal_kernels *kernels = bal_kernels_at(i / FORMS / FORMS);
        bal_dtype to = forms[i / FORMS % FORMS].dtype;
        bal_dtype from = forms[i % FORMS].dtype;
        if (!converts(to, from))
            continue;
        check_row(kernels->isa);
        size_t len = MANY * bal_dtype_bits(to) / 8;
        convert(bal_kernels_at(0), to, want, from, inputs_of(from), MANY);
        convert(kernels, to, got, from, inputs_of(from), MANY);
        CHECK(!memcmp(want, got, len));
    }
}

/* Through offsets into bytes, so that nothing is aligned. */
static void conversions_take_any_length_and_alignment(void)
{
    static char in[600], want[600], got[600];
    const bal_kernels *base = bal_kernels_at(0);
    const void *from = strange()->f32;

    for (size_t i = 0; i < 70 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 70);
        size_t n = i % 70;
        memcpy(in + i % 7, from, 4 * n);
        memset(got, 0x55, sizeof(got));
        base->from_f32[BAL_F16](want, from, n);
        kernels->from_f32[BAL_F16](got + 3, (void *)(in + i % 7), n);
        CHECK(!memcmp(want, got + 3, 2 * n));
        CHECK(got[2] == 0x55 && got[3 + 2 * n] == 0x55);
    }
}

typedef void binary32(float *out, const float *a, const float *b, size_t n);
typedef void binary64(double *out, const double *a, const double *b, size_t n);

static bool nan32(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

static void check_binary32(binary32 *base, binary32 *other)
{
    static float a[MANY], b[MANY], want[MANY], got[MANY];

    memcpy(a, strange()->f32, sizeof(a));
    memcpy(b, strange()->f32 + MANY / 2, sizeof(b) / 2);
    memcpy(b + MANY / 2, strange()->f32, sizeof(b) / 2);
    base(want, a, b, MANY);
    other(got, a, b, MANY);
    CHECK(!memcmp(want, got, sizeof(got)));
    for (size_t i = 0; i < MANY; i++) {
        uint32_t bits = (uint32_t)bits_at(BAL_F32, got, i);
        CHECK(!nan32(bits) || bits == 0x7fc00000);
    }
    memcpy(got, a, sizeof(a));
    other(got, got, b, MANY - 3);
    CHECK(!memcmp(want, got, sizeof(got) - 12));
    memcpy(got, b, sizeof(b));
    other(got, a, got, MANY - 3);
    CHECK(!memcmp(want, got, sizeof(got) - 12));
}

static void check_binary64(binary64 *base, binary64 *other)
{
    static double a[MANY], b[MANY], want[MANY], got[MANY];

    memcpy(a, strange()->f64, sizeof(a));
    memcpy(b, strange()->f64 + MANY / 2, sizeof(b) / 2);
    memcpy(b + MANY / 2, strange()->f64, sizeof(b) / 2);
    base(want, a, b, MANY);
    other(got, a, b, MANY);
    CHECK(!memcmp(want, got, sizeof(got)));
    for (size_t i = 0; i < MANY; i++) {
        uint64_t bits = bits_at(BAL_F64, got, i);
        CHECK(got[i] == got[i] || bits == (uint64_t)0x7ff8 << 48);
    }
    memcpy(got, a, sizeof(a));
    other(got, got, b, MANY - 3);
    CHECK(!memcmp(want, got, sizeof(got) - 24));
}

static void every_table_calculates_as_base_does(void)
{
    const bal_kernels *base = bal_kernels_at(0);

    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *other = bal_kernels_at(i);
        check_row(other->isa);
        check_binary32(base->sub_f32, other->sub_f32);
        check_binary32(base->add_f32, other->add_f32);
        check_binary64(base->sub_f64, other->sub_f64);
        check_binary64(base->add_f64, other->add_f64);
        check_binary64(base->mul_f64, other->mul_f64);
        check_binary64(base->div_f64, other->div_f64);
    }
}

static void every_table_scales_as_base_does(void)
{
    static double x[MANY], want[MANY], got[MANY];
    static float narrow[MANY];
    const bal_kernels *base = bal_kernels_at(0);

    memcpy(x, strange()->f64, sizeof(x));
    memcpy(narrow, strange()->f32, sizeof(narrow));
    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *other = bal_kernels_at(i);
        check_row(other->isa);
        memcpy(want, x, sizeof(x));
        memcpy(got, x, sizeof(x));
        base->axpy(want, 0.3, narrow, MANY);
        other->axpy(got, 0.3, narrow, MANY);
        base->axpy64(want, -1.7, x, MANY);
        other->axpy64(got, -1.7, x, MANY);
        base->scale(want, 0.1, MANY);
        other->scale(got, 0.1, MANY);
        CHECK(!memcmp(want, got, sizeof(got)));
    }
}

/* What narrowing to F32, then to the dtype, and widening again give. */
static void every_table_rounds_as_it_narrows(void)
{
    static double x[MANY], want[MANY];
    static float once[MANY];
    static char narrow[4 * MANY];
    const bal_kernels *base = bal_kernels_at(0);

    for (size_t i = 0; i < 3 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 3);
        bal_dtype dtype = forms[i % 3].dtype;
        check_row(kernels->isa);
        memcpy(x, strange()->f64, sizeof(x));
        base->from_f64[BAL_F32](once, x, MANY);
        base->from_f32[dtype](narrow, once, MANY);
        base->to_f64[dtype](want, narrow, MANY);
        kernels->round[dtype](x, MANY - 3);
        for (size_t k = 0; k < MANY - 3; k++) {
            uint64_t bits = bits_at(BAL_F64, x, k);
            bool nan = nan_of(&forms[3], bits_at(BAL_F64, want, k));
            CHECK(nan ? bits == (uint64_t)0x7ff8 << 48
                      : bits == bits_at(BAL_F64, want, k));
        }
    }
}

static void bit_patterns_wrap_and_come_back(void)
{
    static uint64_t out[MANY], back[MANY], want[MANY];
    const void *a = strange()->f64;
    const void *b = strange()->f32;

    for (size_t i = 0; i < 4 * bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i / 4);
        size_t n = sizeof(strange()->f32) >> i % 4;
        check_row(kernels->isa);
        kernels->sub_bits[i % 4](out, a, b, n);
        bal_kernels_at(0)->sub_bits[i % 4](want, a, b, n);
        CHECK(!memcmp(out, want, n << i % 4));
        kernels->add_bits[i % 4](back, out, b, n);
        CHECK(!memcmp(back, a, n << i % 4));
    }
}

static void bit_patterns_are_unsigned_little_endian(void)
{
    static const uint8_t a[8] = { 0, 0, 0, 0, 0, 0, 0, 1 };
    static const uint8_t one[8] = { 1 };
    static const uint8_t want[8] = { 255, 255, 255, 255, 255, 255, 255, 0 };
    uint8_t out[8];

    bal_kernels_use()->sub_bits[3](out, a, one, 1);
    CHECK(!memcmp(out, want, 8));
    bal_kernels_use()->sub_bits[0](out, a, one, 1);
    CHECK(out[0] == 255);
}

static void zero_sees_every_byte(void)
{
    static char data[1300];

    for (size_t i = 0; i < bal_kernels_count(); i++) {
        const bal_kernels *kernels = bal_kernels_at(i);
        check_row(kernels->isa);
        CHECK(kernels->zero(data, sizeof(data)) && kernels->zero(data, 0));
        for (size_t at = 0; at < sizeof(data); at++) {
            data[at] = (char)0x80;
            CHECK(!kernels->zero(data, sizeof(data)));
            CHECK(kernels->zero(data, at));
            data[at] = 0;
        }
    }
}

static const check_test tests[] = {
    { TEST(rounds_once_to_nearest_even) },
    { TEST(a_nan_keeps_the_top_of_its_payload) },
    { TEST(widening_and_back_changes_no_bit) },
    { TEST(every_table_converts_as_base_does) },
    { TEST(conversions_take_any_length_and_alignment) },
    { TEST(every_table_calculates_as_base_does) },
    { TEST(every_table_scales_as_base_does) },
    { TEST(every_table_rounds_as_it_narrows) },
    { TEST(bit_patterns_wrap_and_come_back) },
    { TEST(bit_patterns_are_unsigned_little_endian) },
    { TEST(zero_sees_every_byte) },
};

CHECK_MAIN(tests)
