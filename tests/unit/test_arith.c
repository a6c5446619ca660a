/* Operations of the two arithmetics: mergekit's against torch 2.13.0 on a CPU,
 * precise against double. */
#include <math.h>
#include <string.h>

#include "merge/arith.h"
#include "support/check.h"
#include "support/strange.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
enum { MANY = 1300 };

static const bal_arith precise = { 0 };

/* torch.tensor([a], dtype), torch.tensor([b], dtype) and the number b:
 * a + b, a - b, a * b, a / b of tensors; a * b, a / b, a + b with the number.
 */
static const struct {
    bal_dtype dtype;
    double a, b;
    double add, sub, mul, div, scale, over, plus;
} rows[] = {
    { BAL_F32, 0.1, 0.3, 0x1.99999ap-2, -0x1.99999cp-3, 0x1.eb852p-6,
      0x1.555554p-2, 0x1.eb852p-6, 0x1.555554p-2, 0x1.99999ap-2 },
    { BAL_F32, 1.0, 0.3333333333333333, 0x1.555556p+0, 0x1.555554p-1,
      0x1.555556p-2, 0x1.8p+1, 0x1.555556p-2, 0x1.8p+1, 0x1.555556p+0 },
    { BAL_F32, -1.7, 0.001, -0x1.b2f1aap+0, -0x1.b374bep+0, -0x1.bda514p-10,
      -0x1.a9p+10, -0x1.bda514p-10, -0x1.a9p+10, -0x1.b2f1aap+0 },
    { BAL_F32, 3.14159, -2.71828, 0x1.b1783p-2, 0x1.77081cp+2, -0x1.114566p+3,
      -0x1.27ddbcp+0, -0x1.114566p+3, -0x1.27ddbcp+0, 0x1.b1783p-2 },
    { BAL_F32, 1e-05, 0.001, 0x1.08c3f4p-10, -0x1.0385c8p-10, 0x1.5798eep-27,
      0x1.47ae12p-7, 0x1.5798eep-27, 0x1.47ae12p-7, 0x1.08c3f4p-10 },
    { BAL_F32, 60000.0, 5000.0, 0x1.fbdp+15, 0x1.adbp+15, 0x1.1e1a3p+28,
      0x1.8p+3, 0x1.1e1a3p+28, 0x1.8p+3, 0x1.fbdp+15 },
    { BAL_F32, 1e-39, 0.7, 0x1.666666p-1, -0x1.666666p-1, 0x1.e7d44p-131,
      0x1.f1c8ep-130, 0x1.e7d44p-131, 0x1.f1c8ep-130, 0x1.666666p-1 },
    { BAL_F32, 1e+30, 1e-10, 0x1.93e594p+99, 0x1.93e594p+99, 0x1.5af1d8p+66,
      (double)INFINITY, 0x1.5af1d8p+66, (double)INFINITY, 0x1.93e594p+99 },
    { BAL_F32, 0.0, 1e-08, 0x1.5798eep-27, -0x1.5798eep-27, 0x0p+0, 0x0p+0,
      0x0p+0, 0x0p+0, 0x1.5798eep-27 },
    { BAL_F32, 255.0, 0.999, 0x1.ffff7cp+7, 0x1.fc0084p+7, 0x1.fd7d72p+7,
      0x1.fe82bp+7, 0x1.fd7d72p+7, 0x1.fe82bp+7, 0x1.ffff7cp+7 },
    { BAL_BF16, 0.1, 0.3, 0x1.9ap-2, -0x1.9cp-3, 0x1.eep-6, 0x1.54p-2,
      0x1.ecp-6, 0x1.56p-2, 0x1.9ap-2 },
    { BAL_BF16, 1.0, 0.3333333333333333, 0x1.56p+0, 0x1.54p-1, 0x1.56p-2,
      0x1.8p+1, 0x1.56p-2, 0x1.8p+1, 0x1.56p+0 },
    { BAL_BF16, -1.7, 0.001, -0x1.b4p+0, -0x1.b4p+0, -0x1.bep-10, -0x1.aap+10,
      -0x1.bep-10, -0x1.aap+10, -0x1.b4p+0 },
    { BAL_BF16, 3.14159, -2.71828, 0x1.bp-2, 0x1.78p+2, -0x1.12p+3, -0x1.28p+0,
      -0x1.12p+3, -0x1.28p+0, 0x1.bp-2 },
    { BAL_BF16, 1e-05, 0.001, 0x1.08p-10, -0x1.04p-10, 0x1.58p-27, 0x1.48p-7,
      0x1.58p-27, 0x1.48p-7, 0x1.08p-10 },
    { BAL_BF16, 60000.0, 5000.0, 0x1.fcp+15, 0x1.acp+15, 0x1.1ep+28, 0x1.8p+3,
      0x1.1ep+28, 0x1.8p+3, 0x1.fcp+15 },
    { BAL_BF16, 1e-39, 0.7, 0x1.66p-1, -0x1.66p-1, 0x1p-130, 0x1p-129, 0x1p-130,
      0x1p-129, 0x1.66p-1 },
    { BAL_BF16, 1e+30, 1e-10, 0x1.94p+99, 0x1.94p+99, 0x1.5cp+66,
      (double)INFINITY, 0x1.5cp+66, (double)INFINITY, 0x1.94p+99 },
    { BAL_BF16, 0.0, 1e-08, 0x1.58p-27, -0x1.58p-27, 0x0p+0, 0x0p+0, 0x0p+0,
      0x0p+0, 0x1.58p-27 },
    { BAL_BF16, 255.0, 0.999, 0x1p+8, 0x1.fcp+7, 0x1.fep+7, 0x1.fep+7,
      0x1.fep+7, 0x1.fep+7, 0x1p+8 },
    { BAL_F16, 0.1, 0.3, 0x1.998p-2, -0x1.99cp-3, 0x1.eb8p-6, 0x1.554p-2,
      0x1.eb8p-6, 0x1.554p-2, 0x1.998p-2 },
    { BAL_F16, 1.0, 0.3333333333333333, 0x1.554p+0, 0x1.558p-1, 0x1.554p-2,
      0x1.8p+1, 0x1.554p-2, 0x1.8p+1, 0x1.554p+0 },
    { BAL_F16, -1.7, 0.001, -0x1.b3p+0, -0x1.b38p+0, -0x1.bep-10, -0x1.a9p+10,
      -0x1.bdcp-10, -0x1.a9p+10, -0x1.b3p+0 },
    { BAL_F16, 3.14159, -2.71828, 0x1.bp-2, 0x1.77p+2, -0x1.114p+3, -0x1.27cp+0,
      -0x1.114p+3, -0x1.27cp+0, 0x1.bp-2 },
    { BAL_F16, 1e-05, 0.001, 0x1.09p-10, -0x1.038p-10, 0x0p+0, 0x1.48p-7,
      0x0p+0, 0x1.48p-7, 0x1.09p-10 },
    { BAL_F16, 60000.0, 5000.0, 0x1.fbcp+15, 0x1.adcp+15, (double)INFINITY,
      0x1.8p+3, (double)INFINITY, 0x1.8p+3, 0x1.fbcp+15 },
    { BAL_F16, 1e-39, 0.7, 0x1.668p-1, -0x1.668p-1, 0x0p+0, 0x0p+0, 0x0p+0,
      0x0p+0, 0x1.668p-1 },
    { BAL_F16, 1e+30, 1e-10, (double)INFINITY, (double)INFINITY, (double)NAN,
      (double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY },
    { BAL_F16, 0.0, 1e-08, 0x0p+0, 0x0p+0, 0x0p+0, (double)NAN, 0x0p+0, 0x0p+0,
      0x0p+0 },
    { BAL_F16, 255.0, 0.999, 0x1p+8, 0x1.fcp+7, 0x1.fd8p+7, 0x1.fe8p+7,
      0x1.fd8p+7, 0x1.fe8p+7, 0x1p+8 },
    { BAL_F64, 0.1, 0.3, 0x1.999999999999ap-2, -0x1.9999999999999p-3,
      0x1.eb851eb851eb8p-6, 0x1.5555555555556p-2, 0x1.eb851eb851eb8p-6,
      0x1.5555555555556p-2, 0x1.999999999999ap-2 },
    { BAL_F64, 1.0, 0.3333333333333333, 0x1.5555555555555p+0,
      0x1.5555555555556p-1, 0x1.5555555555555p-2, 0x1.8p+1,
      0x1.5555555555555p-2, 0x1.8p+1, 0x1.5555555555555p+0 },
    { BAL_F64, -1.7, 0.001, -0x1.b2f1a9fbe76c9p+0, -0x1.b374bc6a7ef9dp+0,
      -0x1.bda5119ce075fp-10, -0x1.a9p+10, -0x1.bda5119ce075fp-10, -0x1.a9p+10,
      -0x1.b2f1a9fbe76c9p+0 },
    { BAL_F64, 3.14159, -2.71828, 0x1.b1782d38476fp-2, 0x1.77081c2e33effp+2,
      -0x1.11456587dfabfp+3, -0x1.27ddbc0c9cb9dp+0, -0x1.11456587dfabfp+3,
      -0x1.27ddbc0c9cb9dp+0, 0x1.b1782d38476fp-2 },
    { BAL_F64, 1e-05, 0.001, 0x1.08c3f3e0370cep-10, -0x1.0385c67dfe32ap-10,
      0x1.5798ee2308c3ap-27, 0x1.47ae147ae147bp-7, 0x1.5798ee2308c3ap-27,
      0x1.47ae147ae147bp-7, 0x1.08c3f3e0370cep-10 },
    { BAL_F64, 60000.0, 5000.0, 0x1.fbdp+15, 0x1.adbp+15, 0x1.1e1a3p+28,
      0x1.8p+3, 0x1.1e1a3p+28, 0x1.8p+3, 0x1.fbdp+15 },
    { BAL_F64, 1e-39, 0.7, 0x1.6666666666666p-1, -0x1.6666666666666p-1,
      0x1.e7d42c510d95p-131, 0x1.f1c8d4679aebcp-130, 0x1.e7d42c510d95p-131,
      0x1.f1c8d4679aebcp-130, 0x1.6666666666666p-1 },
    { BAL_F64, 1e+30, 1e-10, 0x1.93e5939a08ceap+99, 0x1.93e5939a08ceap+99,
      0x1.5af1d78b58c4p+66, 0x1.d6329f1c35ca5p+132, 0x1.5af1d78b58c4p+66,
      0x1.d6329f1c35ca5p+132, 0x1.93e5939a08ceap+99 },
    { BAL_F64, 0.0, 1e-08, 0x1.5798ee2308c3ap-27, -0x1.5798ee2308c3ap-27,
      0x0p+0, 0x0p+0, 0x0p+0, 0x0p+0, 0x1.5798ee2308c3ap-27 },
    { BAL_F64, 255.0, 0.999, 0x1.ffff7ced91687p+7, 0x1.fc0083126e979p+7,
      0x1.fd7d70a3d70a4p+7, 0x1.fe82b0d11ae83p+7, 0x1.fd7d70a3d70a4p+7,
      0x1.fe82b0d11ae83p+7, 0x1.ffff7ced91687p+7 },
};

static bool same(double a, double b)
{
    return !memcmp(&a, &b, sizeof(a));
}

static void operations_are_those_of_torch(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        bal_arith arith = { true, rows[i].dtype };
        double a = bal_arith_round1(&arith, rows[i].a);
        double b = bal_arith_round1(&arith, rows[i].b);
        double out;
        check_row(bal_dtype_name(arith.work));
        bal_op_add(&arith, &out, &a, &b, 1);
        CHECK(same(out, rows[i].add));
        bal_op_sub(&arith, &out, &a, &b, 1);
        CHECK(same(out, rows[i].sub));
        bal_op_mul(&arith, &out, &a, &b, 1);
        CHECK(same(out, rows[i].mul));
        bal_op_div(&arith, &out, &a, &b, 1);
        CHECK(same(out, rows[i].div));
        bal_op_scale(&arith, &out, &a, rows[i].b, 1);
        CHECK(same(out, rows[i].scale));
        bal_op_over(&arith, &out, &a, rows[i].b, 1);
        CHECK(same(out, rows[i].over));
        bal_op_plus(&arith, &out, &a, rows[i].b, 1);
        CHECK(same(out, rows[i].plus));
    }
}

/* ---- many elements ------------------------------------------------------- */

static double a[MANY], b[MANY];

/* F32 of every kind, subnormals, infinities and NaNs among them. */
static void fill(void)
{
    static float narrow[MANY];
    uint64_t state = 7;

    for (size_t i = 0; i < 2; i++) {
        strange_fill(narrow, sizeof(narrow), BAL_F32, &state);
        for (size_t k = 0; k < MANY; k++)
            (i ? b : a)[k] = (double)narrow[k];
    }
}

static double f32_of(size_t op, double x, double y)
{
    float left = (float)x;
    float right = (float)y;
    const float all[] = { left + right, left - right, left * right,
                          left / right };

    return isnan(all[op]) ? (double)NAN : (double)all[op];
}

typedef void operation(const bal_arith *self, double *out, const double *x,
                       const double *y, size_t n);
static operation *const operations[] = { bal_op_add, bal_op_sub, bal_op_mul,
                                         bal_op_div };

static void f32_operations_are_those_of_the_machine(void)
{
    bal_arith arith = { true, BAL_F32 };
    double out[MANY];

    fill();
    for (size_t i = 0; i < COUNT(operations); i++) {
        operations[i](&arith, out, a, b, MANY);
        for (size_t k = 0; k < MANY; k++)
            CHECK(same(out[k], f32_of(i, a[k], b[k])));
    }
}

static void precise_operations_do_not_round(void)
{
    static const double want[] = { 0.1 + 0.3, 0.1 - 0.3, 0.1 * 0.3, 0.1 / 0.3 };
    const double x = 0.1;
    const double y = 0.3;
    double out;

    for (size_t i = 0; i < COUNT(operations); i++) {
        operations[i](&precise, &out, &x, &y, 1);
        CHECK(same(out, want[i]));
    }
    bal_op_scale(&precise, &out, &x, 0.3, 1);
    CHECK(same(out, want[2]));
    bal_op_over(&precise, &out, &x, 0.3, 1);
    CHECK(same(out, want[3]));
    bal_op_plus(&precise, &out, &x, 0.3, 1);
    CHECK(same(out, want[0]));
    CHECK(same(bal_arith_round1(&precise, 0.1), 0.1));
    CHECK(same(bal_arith_f32(&precise, 0.1), 0.1));
    CHECK(same(bal_arith_factor(&precise, 0.1), 0.1));
    CHECK(same(bal_arith_term(&precise, 0.1), 0.1));
}

static void the_result_may_stand_where_an_operand_stood(void)
{
    static const bal_arith ariths[] = { { false, BAL_F32 },
                                        { true, BAL_BF16 } };
    double want[MANY], out[MANY];

    fill();
    for (size_t i = 0; i < COUNT(operations) * COUNT(ariths); i++) {
        const bal_arith *arith = &ariths[i / COUNT(operations)];
        operation *op = operations[i % COUNT(operations)];
        op(arith, want, a, b, MANY);
        memcpy(out, a, sizeof(out));
        op(arith, out, out, b, MANY);
        CHECK(!memcmp(out, want, sizeof(out)));
        memcpy(out, b, sizeof(out));
        op(arith, out, a, out, MANY);
        CHECK(!memcmp(out, want, sizeof(out)));
    }
}

/* By the definition of the format: p digits, exponents from low on. */
static double near(double x, int digits, int low, double most)
{
    double first = (double)(float)x;
    int exponent;

    if (isnan(first))
        return (double)NAN;
    if (first == 0 || isinf(first))
        return first;
    frexp(first, &exponent);
    int last = (exponent - 1 < low ? low : exponent - 1) - digits + 1;
    double out = ldexp(nearbyint(ldexp(first, -last)), last);
    return fabs(out) > most ? copysign((double)INFINITY, x) : out;
}

static void rounding_is_to_f32_and_from_there_to_the_dtype(void)
{
    static const bal_arith bf16 = { true, BAL_BF16 };
    static const bal_arith f16 = { true, BAL_F16 };
    double out[MANY];

    fill();
    for (size_t k = 0; k < MANY; k++)
        a[k] *= 1 + b[k] * 0x1p-160;
    memcpy(out, a, sizeof(out));
    bal_arith_round(&bf16, out, MANY);
    for (size_t k = 0; k < MANY; k++)
        CHECK(same(out[k], near(a[k], 8, -126, 0x1.fep127)));
    memcpy(out, a, sizeof(out));
    bal_arith_round(&f16, out, MANY);
    for (size_t k = 0; k < MANY; k++)
        CHECK(same(out[k], near(a[k], 11, -14, 65504)));
}

/* 1 + 2^-8 + 2^-30 is above the middle of two BF16, but not its F32. */
static void both_roundings_show(void)
{
    bal_arith bf16 = { true, BAL_BF16 };

    CHECK(bal_arith_round1(&bf16, 1 + 0x1p-8 + 0x1p-30) == 1);
    CHECK(bal_arith_round1(&bf16, 1 + 0x1p-8 + 0x1p-20) == 1 + 0x1p-7);
}

static const check_test tests[] = {
    { TEST(operations_are_those_of_torch) },
    { TEST(f32_operations_are_those_of_the_machine) },
    { TEST(precise_operations_do_not_round) },
    { TEST(the_result_may_stand_where_an_operand_stood) },
    { TEST(rounding_is_to_f32_and_from_there_to_the_dtype) },
    { TEST(both_roundings_show) },
};

CHECK_MAIN(tests)
