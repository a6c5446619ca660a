/* The functions that methods need, because libm's differ in the last bit from
 * one machine and one version to the next. Only + - * / and sqrt of double are
 * used, which IEEE 754 defines to the bit, in a fixed order. Arguments are cut
 * down to where a short polynomial does, with what the cut loses kept in a
 * second double; what is large is added last and added exactly, so that the
 * error is little more than that of one rounding. */
#include <math.h>

#include "kernel/convert.h"
#include "merge/arith.h"

/* A value as the sum of two doubles, the second below half an ulp. */
typedef struct pair {
    double high, low;
} pair;

static const pair half_pi = { 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54 };
/* ln 2; times any exponent, the first part is exact. */
static const pair ln2 = { 0x1.62e42feep-1, 0x1.a39ef35793c76p-33 };

static double power_of_2(int exponent)
{
    return as_f64((uint64_t)(exponent + 1023) << 52);
}

/* Even and odd powers apart, so that the CPU can work on both at once. */
static inline double polynomial(const double *factors, size_t count, double x)
{
    double square = x * x;
    double even = count % 2 ? factors[count - 1] : 0;
    double odd = 0;

    for (size_t i = count / 2; i > 0; i--) {
        odd = odd * square + factors[2 * i - 1];
        even = even * square + factors[2 * i - 2];
    }
    return even + odd * x;
}

#define POLYNOMIAL(factors, x)                                                 \
    polynomial(factors, sizeof(factors) / sizeof((factors)[0]), x)

/* a + b and what is lost (Knuth). */
static pair add_exactly(double a, double b)
{
    double sum = a + b;
    double part = sum - a;

    return (pair){ sum, (a - (sum - part)) + (b - part) };
}

/* a * b and what is lost (Dekker); for what cannot overflow. */
static pair mul_exactly(double a, double b)
{
    double wide_a = a * 0x1.0000002p+27;
    double wide_b = b * 0x1.0000002p+27;
    pair x = { .high = wide_a - (wide_a - a) };
    pair y = { .high = wide_b - (wide_b - b) };
    double product = a * b;

    x.low = a - x.high;
    y.low = b - y.high;
    double lost = x.high * y.high - product;
    lost = lost + x.high * y.low + x.low * y.high + x.low * y.low;
    return (pair){ product, lost };
}

/* ---- sin, cos ------------------------------------------------------------ */

/* 64 zeros, and the bits of 2 / pi after the point. */
static const uint64_t two_over_pi[21] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

/* 64 bits of that from a bit on. */
static uint64_t bits_from(unsigned from)
{
    unsigned cut = from & 63;
    uint64_t left = two_over_pi[from >> 6];
    uint64_t right = two_over_pi[(from >> 6) + 1];

    return cut ? left << cut | right >> (64 - cut) : left;
}

static uint64_t mul_high(uint64_t a, uint64_t b)
{
    uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
    uint64_t left = (a >> 32) * (b & 0xffffffff) + (low >> 32);
    uint64_t right = (a & 0xffffffff) * (b >> 32) + (left & 0xffffffff);

    return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);
}

/* A fraction of 128 bits, not less than 2^-63, times pi / 2. */
static pair times_half_pi(uint64_t high, uint64_t low)
{
    unsigned zeros = (unsigned)__builtin_clzll(high | 1);
    double unit = power_of_2(-(int)zeros);

    if (zeros)
        high = high << zeros | low >> (64 - zeros);
    low <<= zeros;
    double first = (double)(high >> 11) * 0x1p-53 * unit;
    double second = (double)(high << 53 >> 11 | low >> 22) * 0x1p-106 * unit;
    pair fraction = add_exactly(first, second);
    pair product = mul_exactly(fraction.high, half_pi.high);

    product.low += fraction.high * half_pi.low + fraction.low * half_pi.high;
    return add_exactly(product.high, product.low);
}

/* x mod pi / 2, nearest to 0, and the quarter of the circle (Payne and Hanek,
 * "Radian reduction for trigonometric functions", 1983): the whole number that
 * x is, times the bits of 2 / pi that make a product between 0 and 4 of it. */
static pair reduce(unsigned *quarter, double x)
{
    uint64_t bits = bits64(x);
    uint64_t whole = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    unsigned from = (unsigned)(bits >> 52 & 0x7ff) - 1023 - 52 - 2 + 64;

    /* Of 192 bits of the product the upper two count quarters; what would be
     * above is whole circles. */
    uint64_t a = bits_from(from);
    uint64_t b = bits_from(from + 64);
    uint64_t c = bits_from(from + 128);
    uint64_t low = whole * b + mul_high(whole, c);
    uint64_t high = whole * a + mul_high(whole, b) + (low < whole * b);

    *quarter = (unsigned)(high >> 62);
    high = high << 2 | low >> 62;
    low <<= 2;
    if (!(high >> 63))
        return times_half_pi(high, low);
    *quarter += 1;
    pair back = times_half_pi(~high, ~low);
    return (pair){ -back.high, -back.low };
}

/* Of |x| up to pi / 4: Taylor's series. */
static double sin_near(pair x)
{
    static const double factors[] = {
        -1.0 / 6,
        1.0 / 120,
        -1.0 / 5040,
        1.0 / 362880,
        -1.0 / 39916800,
        1.0 / 6227020800,
        -1.0 / 1307674368000,
        1.0 / 355687428096000,
        -1.0 / 121645100408832000.0,
    };
    double square = x.high * x.high;
    double rest = x.high * square * POLYNOMIAL(factors, square);

    return x.high + (rest + x.low * (1 - square / 2));
}

static double cos_near(pair x)
{
    static const double factors[] = {
        1.0 / 24,
        -1.0 / 720,
        1.0 / 40320,
        -1.0 / 3628800,
        1.0 / 479001600,
        -1.0 / 87178291200,
        1.0 / 20922789888000,
        -1.0 / 6402373705728000,
        1.0 / 2432902008176640000.0,
    };
    pair square = mul_exactly(x.high, x.high);
    double rest = square.high * square.high * POLYNOMIAL(factors, square.high);
    pair sum = add_exactly(1, -square.high / 2);

    return sum.high + (sum.low + (rest - square.low / 2 - x.high * x.low));
}

/* sin(x + quarters * pi / 2) */
static double circle(double x, unsigned quarters)
{
    unsigned quarter = 0;
    pair near = { fabs(x), 0 };
    bool negative = x < 0;

    if (near.high > 0x1.921fbp-1)
        near = reduce(&quarter, near.high);
    if (negative) {
        near = (pair){ -near.high, -near.low };
        quarter = 0 - quarter;
    }
    quarter = (quarter + quarters) & 3;
    double value = quarter & 1 ? cos_near(near) : sin_near(near);
    return quarter & 2 ? -value : value;
}

static double sin_of(double x)
{
    if (x == 0)
        return x;
    return isfinite(x) ? circle(x, 0) : pure64(x - x);
}

static double cos_of(double x)
{
    return isfinite(x) ? circle(x, 1) : pure64(x - x);
}

/* ---- acos ---------------------------------------------------------------- */

/* asin(x) / x - 1 for |x| up to 1/2: a polynomial in x * x that is nearest
 * to it on that range by Chebyshev's points, off by less than 2^-60. */
static double asin_rest(double square)
{
    static const double factors[] = {
        0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5,
        0x1.f1c71c1db0623p-6, 0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6,
        0x1.c9cf07674736ap-7, 0x1.782651caa6547p-7, 0x1.52420b04b37bep-7,
        0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6, -0x1.e6aaa8a0a04ccp-7,
        0x1.d72b2bc8155f8p-6,
    };

    return square * POLYNOMIAL(factors, square);
}

/* Twice asin(sqrt(square)), exact up to the last addition. */
static pair asin_of_root(double square)
{
    double root = sqrt(square);
    pair back = mul_exactly(root, root);
    double lost =
        root > 0 ? (square - back.high - back.low) / (root + root) : 0;

    return (pair){ 2 * root, 2 * (lost + root * asin_rest(square)) };
}

static double acos_of(double x)
{
    if (!(fabs(x) <= 1))
        return pure64((double)NAN);
    if (x > 0.5) {
        pair twice = asin_of_root((1 - x) / 2);
        return twice.high + twice.low;
    }
    pair sum = add_exactly(half_pi.high, -x);
    double rest = half_pi.low - x * asin_rest(x * x);
    if (x < -0.5) {
        pair twice = asin_of_root((1 + x) / 2);
        sum = add_exactly(2 * half_pi.high, -twice.high);
        rest = 2 * half_pi.low - twice.low;
    }
    return sum.high + (sum.low + rest);
}

/* ---- exp ----------------------------------------------------------------- */

/* e^x - 1 - x, for |x| up to ln 2 / 2: Taylor's series. */
static double exp_rest(double x)
{
    static const double factors[] = {
        1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
        1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
    };

    return x * x * POLYNOMIAL(factors, x);
}

static double exp_of(double x)
{
    if (x != x)
        return pure64(x);
    if (x > 710)
        return HUGE_VAL;
    if (x < -746)
        return 0;
    double twos = floor(x * 0x1.71547652b82fep+0 + 0.5);
    pair near = add_exactly(x - twos * ln2.high, -twos * ln2.low);
    pair sum = add_exactly(1, near.high);
    double value =
        sum.high +
        (sum.low + (exp_rest(near.high) + near.low * (1 + near.high)));
    /* In two steps, as half of an exponent always is in range. */
    int half = (int)twos / 2;
    return value * power_of_2(half) * power_of_2((int)twos - half);
}

/* ---- log ----------------------------------------------------------------- */

/* x = 2^twos * value, value from sqrt(1/2) to sqrt(2). */
static double split(int *twos, double x)
{
    uint64_t fraction = ((uint64_t)1 << 52) - 1;
    bool tiny = x < 0x1p-1022;
    uint64_t bits = bits64(tiny ? x * 0x1p54 : x);
    bool upper = (bits & fraction) > 0x6a09e667f3bcc;

    *twos = (int)(bits >> 52) - 1023 - (tiny ? 54 : 0) + upper;
    return as_f64((bits & fraction) | (uint64_t)(1023 - upper) << 52);
}

/* log(1 + x) - x + x^2 / 2 is s (x^2 / 2 + what this gives), s = x / (2 + x):
 * the series of 2 artanh(s), 2/3 s^2 and on. */
static double log_rest(double square)
{
    static const double factors[] = {
        2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
        2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21,
    };

    return square * POLYNOMIAL(factors, square);
}

static double log_of(double x)
{
    if (x != x || x < 0)
        return pure64((double)NAN);
    if (x == 0)
        return -HUGE_VAL;
    if (x == HUGE_VAL)
        return x;
    int twos = 0;
    double near = split(&twos, x) - 1;
    double ratio = near / (2 + near);
    pair square = mul_exactly(near, near);
    double rest = ratio * (square.high / 2 + log_rest(ratio * ratio));
    pair sum = add_exactly(near, -square.high / 2);
    sum.low -= square.low / 2;
    if (!twos)
        return sum.high + (sum.low + rest);
    pair all = add_exactly(twos * ln2.high, sum.high);
    return all.high + (all.low + (sum.low + rest + twos * ln2.low));
}

/* ---- in an arithmetic ---------------------------------------------------- */

double bal_fn_sin(const bal_arith *self, double x)
{
    return bal_arith_f32(self, sin_of(x));
}

double bal_fn_cos(const bal_arith *self, double x)
{
    return bal_arith_f32(self, cos_of(x));
}

double bal_fn_acos(const bal_arith *self, double x)
{
    return bal_arith_f32(self, acos_of(x));
}

double bal_fn_exp(const bal_arith *self, double x)
{
    return bal_arith_f32(self, exp_of(x));
}

double bal_fn_log(const bal_arith *self, double x)
{
    return bal_arith_f32(self, log_of(x));
}

double bal_fn_sqrt(const bal_arith *self, double x)
{
    return bal_arith_f32(self, pure64(sqrt(x)));
}
