/* Functions: a few values by mpmath to 300 bits, many by the C library's long
 * double functions where those have more bits than double. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"
#include "support/strange.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
enum { MANY = 100000 };

typedef double function(const bal_arith *self, double x);

static const bal_arith precise = { 0 };
static const bal_arith f32 = { true, BAL_BF16 };

/* The nearest double to the exact value, by mpmath. */
static const struct {
    const char *name;
    function *call;
    double x, want;
} rows[] = {
    { "sin", bal_fn_sin, 0x1p-1, 0x1.eaee8744b05fp-2 },
    { "sin", bal_fn_sin, 0x1p+0, 0x1.aed548f090ceep-1 },
    { "sin", bal_fn_sin, -0x1.4p+1, -0x1.326af0dcfcab1p-1 },
    { "sin", bal_fn_sin, 0x1.8p+1, 0x1.210386db6d55bp-3 },
    { "sin", bal_fn_sin, 0x1.6p+4, -0x1.220a29f6eb9f4p-7 },
    { "sin", bal_fn_sin, 0x1.86ap+16, 0x1.24daa9c527e96p-5 },
    { "sin", bal_fn_sin, 0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1 },
    { "sin", bal_fn_sin, 0x1.6ac5b262ca1ffp+849, 0x1p+0 },
    { "cos", bal_fn_cos, 0x1p-1, 0x1.c1528065b7d5p-1 },
    { "cos", bal_fn_cos, 0x1p+0, 0x1.14a280fb5068cp-1 },
    { "cos", bal_fn_cos, -0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54 },
    { "cos", bal_fn_cos, 0x1.8p+1, -0x1.fae04be85e5d2p-1 },
    { "cos", bal_fn_cos, 0x1.6p+3, 0x1.220ae41ee2fdfp-8 },
    { "cos", bal_fn_cos, 0x1.86ap+16, -0x1.ffac3841b3da7p-1 },
    { "cos", bal_fn_cos, 0x1.0f0cf064dd592p+73, 0x1.0be2cef01c8f4p-1 },
    { "cos", bal_fn_cos, 0x1.6ac5b262ca1ffp+849, -0x1.14ae72e6ba22fp-61 },
    { "acos", bal_fn_acos, 0, 0x1.921fb54442d18p+0 },
    { "acos", bal_fn_acos, 0x1p-2, 0x1.51700e0c14b25p+0 },
    { "acos", bal_fn_acos, -0x1p-1, 0x1.0c152382d7366p+1 },
    { "acos", bal_fn_acos, 0x1.8p-1, 0x1.720a392c1d955p-1 },
    { "acos", bal_fn_acos, -0x1.8p-1, 0x1.359d26f93b6c3p+1 },
    { "acos", bal_fn_acos, 0x1.fffffca501acbp-1, 0x1.d4effc851e7f2p-12 },
    { "acos", bal_fn_acos, -0x1.fffffca501acbp-1, 0x1.92110dc45ea89p+1 },
    { "acos", bal_fn_acos, 0x1.79ca10c924223p-67, 0x1.921fb54442d18p+0 },
    { "exp", bal_fn_exp, 0x1p+0, 0x1.5bf0a8b145769p+1 },
    { "exp", bal_fn_exp, -0x1p+0, 0x1.78b56362cef38p-2 },
    { "exp", bal_fn_exp, 0x1.999999999999ap-4, 0x1.1aec7b35a00d4p+0 },
    { "exp", bal_fn_exp, 0x1.b7cdfd9d7bdbbp-34, 0x1.000000006df38p+0 },
    { "exp", bal_fn_exp, 0x1.62ccccccccccdp+6, 0x1.f4705bbffae5cp+127 },
    { "exp", bal_fn_exp, -0x1.5d33333333333p+6, 0x1.09874c0b9cacbp-126 },
    { "exp", bal_fn_exp, 0x1.5ep+9, 0x1.d945df4f8ec8ep+1009 },
    { "exp", bal_fn_exp, -0x1.72p+9, 0x0.0000000000055p-1022 },
    { "log", bal_fn_log, 0x1p+1, 0x1.62e42fefa39efp-1 },
    { "log", bal_fn_log, 0x1.4p+3, 0x1.26bb1bbb55516p+1 },
    { "log", bal_fn_log, 0x1p-1, -0x1.62e42fefa39efp-1 },
    { "log", bal_fn_log, 0x1.000001ad7f29bp+0, 0x1.ad7f2847b6492p-24 },
    { "log", bal_fn_log, 0x1.fffffca501acbp-1, -0x1.ad7f2b1049b9fp-24 },
    { "log", bal_fn_log, 0x0.0000000000001p-1022, -0x1.74385446d71c3p+9 },
    { "log", bal_fn_log, 0x1.e42d130773b76p+1023, 0x1.62dd08fdc6f88p+9 },
    { "log", bal_fn_log, 0x1.6a0902de00d1bp-1, -0x1.62e6b3842a25ep-2 },
};

static double ulps(double got, long double want)
{
    double near = fabs((double)want);
    double ulp = nextafter(near, (double)INFINITY) - near;

    return (double)(fabsl((long double)got - want) / (long double)ulp);
}

static void values_are_within_an_ulp_of_the_exact_ones(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        double got = rows[i].call(&precise, rows[i].x);
        check_row(rows[i].name);
        CHECK(ulps(got, (long double)rows[i].want) <= 1);
    }
}

static void in_mergekit_they_are_rounded_to_f32(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        double got = rows[i].call(&f32, rows[i].x);
        check_row(rows[i].name);
        CHECK(got == (double)(float)rows[i].want);
    }
}

/* ---- many values --------------------------------------------------------- */

/* Spread evenly, or by powers of 2 over all of that range. */
static const struct {
    const char *name;
    function *call;
    long double (*exact)(long double x);
    double low, high;
    bool powers;
    double most; /* ulps, found to be enough: what corrects a result counts */
} ranges[] = {
    { "sin", bal_fn_sin, sinl, -0.8, 0.8, false, 0.85 },
    { "sin", bal_fn_sin, sinl, -100, 100, false, 0.85 },
    { "sin", bal_fn_sin, sinl, -1000, 1023, true, 0.85 },
    { "cos", bal_fn_cos, cosl, -0.8, 0.8, false, 0.85 },
    { "cos", bal_fn_cos, cosl, -100, 100, false, 0.85 },
    { "cos", bal_fn_cos, cosl, -1000, 1023, true, 0.85 },
    { "acos", bal_fn_acos, acosl, -1, 1, false, 0.66 },
    { "acos", bal_fn_acos, acosl, 0.999, 1, false, 0.66 },
    { "acos", bal_fn_acos, acosl, -100, 0, true, 0.66 },
    { "exp", bal_fn_exp, expl, -1, 1, false, 0.67 },
    { "exp", bal_fn_exp, expl, -708, 709.7, false, 0.67 },
    { "exp", bal_fn_exp, expl, -745, -708, false, 0.8 },
    { "exp", bal_fn_exp, expl, -80, 9, true, 0.67 },
    { "log", bal_fn_log, logl, 0.5, 2, false, 0.67 },
    { "log", bal_fn_log, logl, 0.999, 1.001, false, 0.67 },
    { "log", bal_fn_log, logl, -1074, 1023, true, 0.67 },
};

static void errors_are_below_an_ulp_everywhere(void)
{
    uint64_t state = 1;

    if (LDBL_MANT_DIG <= DBL_MANT_DIG)
        return;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        check_row(ranges[i].name);
        for (size_t k = 0; k < MANY; k++) {
            double unit = (double)(strange_bits(&state) >> 11) * 0x1p-53;
            double x = ranges[i].low + unit * (ranges[i].high - ranges[i].low);
            x = ranges[i].powers ? exp2(x) : x;
            double got = ranges[i].call(&precise, x);
            CHECK(ulps(got, ranges[i].exact((long double)x)) < ranges[i].most);
        }
    }
}

/* ---- the ends ------------------------------------------------------------ */

static bool same(double a, double b)
{
    return !memcmp(&a, &b, sizeof(a));
}

static void ends_of_the_ranges_are_exact(void)
{
    static const struct {
        const char *name;
        function *call;
        double x, want;
    } ends[] = {
        { "sin", bal_fn_sin, 0.0, 0.0 },
        { "sin", bal_fn_sin, -0.0, -0.0 },
        { "sin", bal_fn_sin, 0x1p-1074, 0x1p-1074 },
        { "sin", bal_fn_sin, -(double)NAN, (double)NAN },
        { "sin", bal_fn_sin, HUGE_VAL, (double)NAN },
        { "cos", bal_fn_cos, 0.0, 1.0 },
        { "cos", bal_fn_cos, 0x1p-1074, 1.0 },
        { "cos", bal_fn_cos, -HUGE_VAL, (double)NAN },
        { "acos", bal_fn_acos, 1.0, 0.0 },
        { "acos", bal_fn_acos, -1.0, 0x1.921fb54442d18p+1 },
        { "acos", bal_fn_acos, 1.0000000001, (double)NAN },
        { "acos", bal_fn_acos, -1.0000000001, (double)NAN },
        { "acos", bal_fn_acos, -(double)NAN, (double)NAN },
        { "exp", bal_fn_exp, 0.0, 1.0 },
        { "exp", bal_fn_exp, -0.0, 1.0 },
        { "exp", bal_fn_exp, 709.79, HUGE_VAL },
        { "exp", bal_fn_exp, 1e300, HUGE_VAL },
        { "exp", bal_fn_exp, HUGE_VAL, HUGE_VAL },
        { "exp", bal_fn_exp, -745.14, 0.0 },
        { "exp", bal_fn_exp, -1e300, 0.0 },
        { "exp", bal_fn_exp, -HUGE_VAL, 0.0 },
        { "exp", bal_fn_exp, -(double)NAN, (double)NAN },
        { "log", bal_fn_log, 1.0, 0.0 },
        { "log", bal_fn_log, 0.0, -HUGE_VAL },
        { "log", bal_fn_log, -0.0, -HUGE_VAL },
        { "log", bal_fn_log, HUGE_VAL, HUGE_VAL },
        { "log", bal_fn_log, -1.0, (double)NAN },
        { "log", bal_fn_log, -(double)NAN, (double)NAN },
        { "sqrt", bal_fn_sqrt, 2.0, 0x1.6a09e667f3bcdp+0 },
        { "sqrt", bal_fn_sqrt, -1.0, (double)NAN },
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        check_row(ends[i].name);
        CHECK(same(ends[i].call(&precise, ends[i].x), ends[i].want));
    }
}

static const check_test tests[] = {
    { TEST(values_are_within_an_ulp_of_the_exact_ones) },
    { TEST(in_mergekit_they_are_rounded_to_f32) },
    { TEST(errors_are_below_an_ulp_everywhere) },
    { TEST(ends_of_the_ranges_are_exact) },
};

CHECK_MAIN(tests)
