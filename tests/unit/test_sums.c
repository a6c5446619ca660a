/* Sums in the order of a tree: a range's is a node of the whole's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "model/sums.h"
#include "support/check.h"
#include "support/strange.h"

enum { LEAVES = 300 };

static double values[LEAVES];

static void fill(void)
{
    uint64_t state = 3;

    for (size_t i = 0; i < LEAVES; i++)
        values[i] = (double)(strange_bits(&state) >> 11) * 0x1p-40;
}

/* Leaf by leaf. */
static double sum_of(size_t from, size_t to)
{
    bal_tree tree = { .depth = 0 };

    for (size_t i = from; i < to; i++)
        bal_tree_add(&tree, 0, values[i]);
    return bal_tree_sum(&tree);
}

/* By the definition: the left half of a range is the largest power of two that
 * is less than the range. */
static double defined(size_t from, size_t to)
{
    double sum = 0;
    size_t half = 1;

    if (to - from < 2)
        return to > from ? values[from] : 0;
    while (2 * half < to - from)
        half *= 2;
    /* The right part is not longer, so this ends soon. */
    sum = defined(from, from + half);
    return sum + defined(from + half, to);
}

static void sums_are_those_of_the_definition(void)
{
    fill();
    for (size_t n = 0; n <= LEAVES; n++)
        CHECK(sum_of(0, n) == defined(0, n));
}

static void nodes_of_any_size_give_the_same_bits(void)
{
    fill();
    for (size_t n = 1; n <= LEAVES; n++) {
        for (unsigned level = 0; level < 7; level++) {
            bal_tree tree = { .depth = 0 };
            size_t size = (size_t)1 << level;
            for (size_t at = 0; at < n; at += size)
                bal_tree_add(&tree, level,
                             sum_of(at, at + size < n ? at + size : n));
            CHECK(bal_tree_sum(&tree) == sum_of(0, n));
        }
    }
}

static void an_empty_sum_is_zero(void)
{
    bal_tree tree = { .depth = 0 };

    CHECK(bal_tree_sum(&tree) == 0);
}

static const struct {
    bal_dtype dtype;
    uint64_t block;
    bool kept;
    unsigned level;
} blocks[] = {
    { BAL_BF16, 4 << 20, true, 9 },
    { BAL_F16, 4 << 20, true, 9 },
    { BAL_F32, 4 << 20, true, 8 },
    { BAL_F64, 4 << 20, true, 7 },
    { BAL_BF16, 8192, true, 0 },
    { BAL_F64, 32768, true, 0 },
    { BAL_BF16, 4096, false, 0 },
    { BAL_F64, 16384, false, 0 },
    { BAL_F32, 12 << 10, false, 0 },
    { BAL_F32, 48 << 10, false, 0 },
    { BAL_I32, 4 << 20, false, 0 },
    { BAL_F8_E4M3, 4 << 20, false, 0 },
    { BAL_F4, 4 << 20, false, 0 },
    { BAL_F32, 64 << 20, true, 12 },
    { BAL_BF16, (4 << 20) + 4096, false, 0 },
};

static void blocks_that_are_nodes_are_measured(void)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        unsigned level = 0;
        check_row(bal_dtype_name(blocks[i].dtype));
        CHECK(bal_squares_kept(&level, blocks[i].dtype, blocks[i].block) ==
              blocks[i].kept);
        CHECK(!blocks[i].kept || level == blocks[i].level);
    }
}

static void squares_are_near_those_of_long_doubles(void)
{
    enum { MANY = 3 * BAL_LEAF + 77 };
    float *data = malloc(MANY * sizeof(*data));
    long double want = 0;
    double got = 0;
    uint64_t state = 8;

    CHECK(data);
    for (size_t i = 0; i < MANY; i++) {
        data[i] = (float)(int32_t)strange_bits(&state) * 0x1p-31f;
        want += (long double)data[i] * (long double)data[i];
    }
    CHECK(
        bal_squares(&got, BAL_F32, (bal_bytes){ data, MANY * sizeof(*data) }));
    CHECK(fabsl((long double)got - want) < 1e-13L * want);
    data[MANY - 1] = (float)INFINITY;
    CHECK(
        !bal_squares(&got, BAL_F32, (bal_bytes){ data, MANY * sizeof(*data) }));
    data[MANY - 1] = (float)NAN;
    CHECK(
        !bal_squares(&got, BAL_F32, (bal_bytes){ data, MANY * sizeof(*data) }));
    free(data);
}

static const check_test tests[] = {
    { TEST(sums_are_those_of_the_definition) },
    { TEST(nodes_of_any_size_give_the_same_bits) },
    { TEST(an_empty_sum_is_zero) },
    { TEST(blocks_that_are_nodes_are_measured) },
    { TEST(squares_are_near_those_of_long_doubles) },
};

CHECK_MAIN(tests)
