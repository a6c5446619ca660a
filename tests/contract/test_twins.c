/* What the loops over two tensors of one dtype do at once is, bit for bit, what
 * the single loops of the base table do in steps. */
#include <string.h>

#include "kernel/kernels.h"
#include "support/check.h"
#include "support/strange.h"

enum { MANY = 1 << 16, SOME = 61, TURNS = 10 };

static const bal_dtype twins[] = { BAL_BF16, BAL_F16, BAL_F32 };
enum { TWINS = sizeof(twins) / sizeof(twins[0]) };

static uint32_t tuned[MANY], base[MANY]; /* as many as 4 bytes need */
static float change[MANY];

static size_t width_of(bal_dtype dtype)
{
    return bal_dtype_bits(dtype) / 8;
}

/* Anything at all, and in every other run of 64 small steps away from it. */
static void fill(bal_dtype dtype, uint64_t turn)
{
    uint64_t state = turn * 1000 + (uint64_t)dtype;
    size_t width = width_of(dtype);
    char *to = (char *)base;

    strange_fill(tuned, MANY * width, dtype, &state);
    strange_fill(base, MANY * width, dtype, &state);
    strange_fill(change, sizeof(change), BAL_F32, &state);
    for (size_t i = 0; i < MANY; i++) {
        if (i % 128 < 64)
            continue;
        memcpy(to + i * width, (const char *)tuned + i * width, width);
        to[i * width] = (char)(to[i * width] ^ (strange_bits(&state) % 4));
    }
}

/* ---- in steps ----------------------------------------------------------- */

typedef struct steps {
    float diff[MANY];
    uint32_t sum[MANY], regained[MANY];
} steps;

static void take_steps(steps *out, bal_dtype dtype)
{
    static float left[MANY], right[MANY], wide[MANY];
    const bal_kernels *kernels = bal_kernels_at(0);

    kernels->to_f32[dtype](left, tuned, MANY);
    kernels->to_f32[dtype](right, base, MANY);
    kernels->sub_f32(out->diff, left, right, MANY);
    kernels->add_f32(wide, right, out->diff, MANY);
    kernels->from_f32[dtype](out->regained, wide, MANY);
    kernels->add_f32(wide, right, change, MANY);
    kernels->from_f32[dtype](out->sum, wide, MANY);
}

/* ---- at once ------------------------------------------------------------ */

/* Runs of every length up to SOME, from everywhere. */
static void check_regains(const bal_kernels *kernels, bal_dtype dtype,
                          const steps *want)
{
    size_t width = width_of(dtype);
    size_t count = 0;

    for (size_t i = 0; i < MANY - SOME; i++) {
        size_t n = 1 + i % SOME;
        const char *a = (const char *)tuned + i * width;
        const char *b = (const char *)base + i * width;
        const char *regained = (const char *)want->regained + i * width;
        bool is = !memcmp(a, regained, n * width);
        CHECK(kernels->regains[dtype](a, b, n) == is);
        count += is;
    }
    CHECK(count > MANY / 100 && count < MANY / 2);
    CHECK(kernels->regains[dtype](tuned, base, 0));
}

static void check_twins(const bal_kernels *kernels, bal_dtype dtype)
{
    static steps want;
    static float diff[MANY];
    static uint32_t sum[MANY];

    take_steps(&want, dtype);
    for (size_t n = MANY; n; n = n > 70 ? 70 : n - 1) {
        memset(diff, 0x55, sizeof(diff));
        memset(sum, 0x55, sizeof(sum));
        kernels->diff[dtype](diff, tuned, base, n);
        kernels->sum[dtype](sum, base, change, n);
        CHECK(!memcmp(diff, want.diff, n * sizeof(*diff)));
        CHECK(!memcmp(sum, want.sum, n * width_of(dtype)));
        CHECK(n == MANY || ((char *)diff)[4 * n] == 0x55);
        CHECK(n == MANY || ((char *)sum)[n * width_of(dtype)] == 0x55);
    }
    check_regains(kernels, dtype, &want);
}

static void at_once_gives_what_steps_give(void)
{
    for (size_t i = 0; i < bal_kernels_count() * TWINS; i++) {
        const bal_kernels *kernels = bal_kernels_at(i / TWINS);
        check_row(kernels->isa);
        for (uint64_t turn = 0; turn < TURNS; turn++) {
            fill(twins[i % TWINS], turn);
            check_twins(kernels, twins[i % TWINS]);
        }
    }
}

static void other_dtypes_take_steps(void)
{
    const bal_kernels *kernels = bal_kernels_use();

    for (size_t dtype = 0; dtype < BAL_DTYPES; dtype++) {
        bool there = dtype == BAL_BF16 || dtype == BAL_F16 || dtype == BAL_F32;
        CHECK(!kernels->diff[dtype] == !there);
        CHECK(!kernels->sum[dtype] == !there);
        CHECK(!kernels->regains[dtype] == !there);
    }
}

static const check_test tests[] = {
    { TEST(at_once_gives_what_steps_give) },
    { TEST(other_dtypes_take_steps) },
};

CHECK_MAIN(tests)
