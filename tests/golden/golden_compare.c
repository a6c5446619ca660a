/* Bits first: only where they differ is it asked by how much they may. */
#include "golden/golden_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/dtype.h"

static uint32_t bits_of(const golden_tensor *self, size_t i)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;
    uint32_t bits = 0;

    for (size_t k = 0; k < width && k < 4; k++)
        bits |= (uint32_t)(uint8_t)self->bytes.data[i * width + k] << 8 * k;
    return bits;
}

static double half_value(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double size =
        exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

    if (exponent == 31)
        size = bits & 1023 ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -size : size;
}

double golden_value(const golden_tensor *self, size_t i)
{
    uint32_t bits = bits_of(self, i);
    float value;

    if (self->dtype == BAL_F16)
        return half_value(bits);
    if (self->dtype == BAL_BF16)
        bits <<= 16;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

size_t golden_count(const golden_tensor *self)
{
    return self->bytes.len / (bal_dtype_bits(self->dtype) / 8);
}

static bool same_form(const golden_tensor *a, const golden_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) &&
           a->bytes.len == b->bytes.len;
}

/* BAL_NONE: none. */
static size_t first_difference(const golden_tensor *a, const golden_tensor *b)
{
    for (size_t i = 0; i < golden_count(a); i++) {
        if (bits_of(a, i) == bits_of(b, i))
            continue;
        if (!isnan(golden_value(a, i)) || !isnan(golden_value(b, i)))
            return i;
    }
    return BAL_NONE;
}

bool golden_same(const golden_tensor *a, const golden_tensor *b)
{
    return same_form(a, b) && first_difference(a, b) == BAL_NONE;
}

static void say_form(golden_finding *out, const golden_tensor *got,
                     const golden_tensor *want)
{
    out->verdict = GOLDEN_WRONG;
    snprintf(out->text, sizeof(out->text),
             "%s, %u axes, the first of %zu, %zu bytes, not %s, %u, %zu, %zu",
             bal_dtype_name(got->dtype), got->rank, (size_t)got->shape[0],
             got->bytes.len, bal_dtype_name(want->dtype), want->rank,
             (size_t)want->shape[0], want->bytes.len);
}

static void say_element(golden_finding *out, const golden_tensor *got,
                        const golden_tensor *want, size_t i, const char *why)
{
    out->verdict = GOLDEN_WRONG;
    snprintf(out->text, sizeof(out->text),
             "%s: element %zu of %zu is %08x (%.9g), not %08x (%.9g)", why, i,
             golden_count(got), bits_of(got, i), golden_value(got, i),
             bits_of(want, i), golden_value(want, i));
}

/* Infinities and NaNs in the same places, the others no more than tolerance
 * away from each other. */
static bool is_near(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= tolerance;
}

static void judge_output(golden_finding *out, const golden_tensor *got,
                         const golden_tensor *want, const json_t *compare)
{
    const char *class_of = json_string_value(json_object_get(compare, "class"));
    double tolerance = json_number_value(json_object_get(compare, "tol_abs"));

    if (!same_form(got, want)) {
        say_form(out, got, want);
        return;
    }
    size_t first = first_difference(got, want);
    if (first == BAL_NONE) {
        out->verdict = GOLDEN_SAME;
        return;
    }
    if (strcmp(class_of, "order")) {
        say_element(out, got, want, first, class_of);
        return;
    }
    out->verdict = GOLDEN_NEAR;
    for (size_t i = first; i < golden_count(got); i++) {
        if (is_near(golden_value(got, i), golden_value(want, i), tolerance))
            continue;
        say_element(out, got, want, i, "too far");
        return;
    }
}

static bool is_stable(const golden_tensor *got, const json_t *stable)
{
    golden_tensor want = { 0 };
    bool same =
        stable && golden_tensor_read(&want, stable) && golden_same(got, &want);

    golden_tensor_done(&want);
    return same;
}

static void say_refused(golden_finding *out, const golden_result *result)
{
    out->verdict = GOLDEN_WRONG;
    snprintf(out->text, sizeof(out->text), "refused: %.180s", result->err.text);
}

void golden_judge(golden_finding *out, const golden_result *result,
                  const json_t *one)
{
    const char *error = json_string_value(json_object_get(one, "error"));
    golden_tensor want = { 0 };

    *out = (golden_finding){ .verdict = GOLDEN_WRONG };
    if (error && result->rc)
        out->verdict = GOLDEN_SAME;
    else if (error)
        snprintf(out->text, sizeof(out->text), "must be refused: %s", error);
    else if (result->rc)
        say_refused(out, result);
    else if (is_stable(&result->tensor, json_object_get(one, "output_stable")))
        out->verdict = GOLDEN_STABLE;
    else if (golden_tensor_read(&want, json_object_get(one, "output")))
        judge_output(out, &result->tensor, &want,
                     json_object_get(one, "compare"));
    golden_tensor_done(&want);
}

/* ---- truth -------------------------------------------------------------- */

/* Numbers in order of value, neighbours one apart, both zeros the same. */
static int64_t place_of(const golden_tensor *self, size_t i)
{
    unsigned width = bal_dtype_bits(self->dtype);
    int64_t bits = bits_of(self, i);
    int64_t sign = (int64_t)1 << (width - 1);

    return bits & sign ? -(bits & (sign - 1)) : bits;
}

static void judge_finite(golden_finding *out, const golden_tensor *got)
{
    for (size_t i = 0; i < golden_count(got); i++) {
        if (isfinite(golden_value(got, i)))
            continue;
        out->verdict = GOLDEN_WRONG;
        snprintf(out->text, sizeof(out->text), "element %zu is not finite", i);
        return;
    }
}

static void judge_elements(golden_finding *out, const golden_tensor *got,
                           const golden_tensor *want)
{
    for (size_t i = 0; i < golden_count(got); i++) {
        int64_t apart = place_of(got, i) - place_of(want, i);

        if (apart && isfinite(golden_value(got, i)) && apart >= -1 &&
            apart <= 1) {
            out->verdict = GOLDEN_NEAR;
        } else if (apart) {
            say_element(out, got, want, i, "truth");
            return;
        }
    }
}

void golden_judge_truth(golden_finding *out, const golden_result *result,
                        const json_t *truth)
{
    golden_tensor want = { 0 };

    *out = (golden_finding){ .verdict = GOLDEN_SAME };
    if (!truth) {
        if (!result->rc)
            judge_finite(out, &result->tensor);
        return;
    }
    if (result->rc) {
        say_refused(out, result);
    } else if (!golden_tensor_read(&want, truth)) {
        out->verdict = GOLDEN_WRONG;
        snprintf(out->text, sizeof(out->text), "no truth");
    } else if (!same_form(&result->tensor, &want)) {
        say_form(out, &result->tensor, &want);
    } else {
        judge_elements(out, &result->tensor, &want);
    }
    golden_tensor_done(&want);
}
