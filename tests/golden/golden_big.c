/* A digest says that something is wrong, the samples say where. */
#include "golden/golden_big.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sha256.h"
#include "core/str.h"
#include "kernel/dtype.h"

static bool digest_is(const bal_buf *bytes, const json_t *want)
{
    bal_bytes part = { bytes->data, bytes->len };
    bal_sha256 sum;
    bal_error err;
    char hex[65];

    if (!want || bal_sha256_of(&sum, &part, 1, &err))
        return false;
    bal_sha256_hex(hex, &sum);
    return !strcmp(hex, json_string_value(want));
}

/* ---- inputs ------------------------------------------------------------- */

/* One term of element i, as README.md tells. */
static float term_of(const json_t *term, uint32_t i)
{
    uint32_t factor = (uint32_t)json_integer_value(json_array_get(term, 0));
    uint32_t plus = (uint32_t)json_integer_value(json_array_get(term, 1));
    int shift = (int)json_integer_value(json_array_get(term, 2));
    uint32_t x = factor * (i + 1) + plus;

    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 12;
    x *= 0x297a2d39u;
    x ^= x >> 15;
    return ldexpf((float)(int32_t)x, -shift);
}

static float value_of(const json_t *terms, uint32_t i)
{
    volatile float sum = 0; /* every step is rounded */

    for (size_t k = 0; k < json_array_size(terms); k++)
        sum = sum + term_of(json_array_get(terms, k), i);
    return sum;
}

static void put(golden_tensor *to, size_t i, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (to->dtype == BAL_F32) {
        memcpy(to->bytes.data + 4 * i, &bits, 4);
        return;
    }
    bits += 0x7fff + (bits >> 16 & 1);
    uint16_t upper = (uint16_t)(bits >> 16);
    memcpy(to->bytes.data + 2 * i, &upper, 2);
}

static bool make(golden_tensor *out, const json_t *one, const json_t *terms)
{
    const char *dtype = json_string_value(json_object_get(one, "input_dtype"));
    const json_t *shape = json_object_get(one, "shape");
    uint64_t elements;
    uint64_t size;
    bal_error err;

    out->rank = 2;
    for (size_t i = 0; i < 2; i++)
        out->shape[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    if (!bal_dtype_find(&out->dtype, dtype, strlen(dtype)) ||
        !bal_shape_size(&elements, &size, out->dtype, out->shape, 2) ||
        bal_buf_reserve(&out->bytes, size, &err))
        return false;
    out->bytes.len = size;
    for (size_t i = 0; i < elements; i++)
        put(out, i, value_of(terms, (uint32_t)i));
    return true;
}

bool golden_big_inputs(golden_inputs *out, const json_t *one)
{
    const json_t *order = json_object_get(one, "order");
    bool good = true;

    for (size_t i = 0; good && i < json_array_size(order); i++) {
        const char *name = json_string_value(json_array_get(order, i));
        const json_t *input =
            json_object_get(json_object_get(one, "inputs"), name);
        golden_tensor tensor = { 0 };

        good = make(&tensor, one, json_object_get(input, "terms")) &&
               digest_is(
                   &tensor.bytes,
                   json_object_get(json_object_get(one, "input_sha256"), name));
        if (good)
            golden_inputs_add(out, name, &tensor);
        golden_tensor_done(&tensor);
    }
    return good;
}

/* ---- outputs ------------------------------------------------------------ */

/* The bytes of one element, in hex, as a tensor of it. */
static bool sample_read(golden_tensor *out, bal_dtype dtype, const char *hex)
{
    bal_error err;
    size_t width = bal_dtype_bits(dtype) / 8;

    *out = (golden_tensor){ .dtype = dtype, .rank = 1, .shape = { 1 } };
    if (bal_buf_reserve(&out->bytes, width, &err))
        return false;
    out->bytes.len = width;
    return bal_hex_read((uint8_t *)out->bytes.data, width, hex);
}

static void compare_sample(golden_finding *out, const golden_tensor *got,
                           const char *index, const char *hex, double tolerance)
{
    golden_tensor want = { 0 };
    uint64_t i = 0;
    bal_error err;

    if (bal_parse_u64(&i, index, &err) || i >= golden_count(got) ||
        !sample_read(&want, got->dtype, hex)) {
        out->verdict = GOLDEN_WRONG;
        return;
    }
    double apart = golden_value(got, i) - golden_value(&want, 0);
    golden_tensor_done(&want);
    if (fabs(apart) <= tolerance)
        return;
    out->verdict = GOLDEN_WRONG;
    snprintf(out->text, sizeof(out->text), "sample %s is %.9g off", index,
             apart);
}

static void compare_samples(golden_finding *out, const golden_tensor *got,
                            const json_t *one, double tolerance)
{
    const char *index;
    json_t *hex;

    json_object_foreach(json_object_get(one, "samples"), index, hex)
    {
        if (out->verdict == GOLDEN_WRONG)
            return;
        compare_sample(out, got, index, json_string_value(hex), tolerance);
    }
}

void golden_big_judge(golden_finding *out, const golden_result *result,
                      const json_t *one)
{
    const json_t *compare = json_object_get(one, "compare");
    const char *class_of = json_string_value(json_object_get(compare, "class"));
    const char *dtype = json_string_value(json_object_get(one, "output_dtype"));
    const golden_tensor *got = &result->tensor;
    bool order = !strcmp(class_of, "order");

    *out = (golden_finding){ .verdict = GOLDEN_SAME };
    if (result->rc) {
        out->verdict = GOLDEN_WRONG;
        snprintf(out->text, sizeof(out->text), "refused: %.180s",
                 result->err.text);
        return;
    }
    if (digest_is(&got->bytes, json_object_get(one, "output_sha256")))
        return;
    out->verdict = GOLDEN_STABLE;
    if (digest_is(&got->bytes, json_object_get(one, "output_sha256_stable")))
        return;
    out->verdict = GOLDEN_NEAR;
    if (strcmp(bal_dtype_name(got->dtype), dtype))
        out->verdict = GOLDEN_WRONG;
    compare_samples(out, got, one,
                    json_number_value(json_object_get(compare, "tol_abs")));
    if (out->verdict == GOLDEN_WRONG || order)
        return;
    out->verdict = GOLDEN_WRONG;
    snprintf(out->text, sizeof(out->text),
             "%s: another digest, though the samples are right", class_of);
}
