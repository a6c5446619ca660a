/* The rows of dtypes, and how large shapes are. */
#include <string.h>

#include "kernel/dtype.h"
#include "support/check.h"

static const struct {
    const char *name;
    uint64_t shape[3];
    uint32_t rank;
    bool fits;
    uint64_t elements, bytes;
} shapes[] = {
    { "F32", { 0 }, 0, true, 1, 4 },
    { "F4", { 2 }, 1, true, 2, 1 },
    { "F4", { 3 }, 1, false, 0, 0 },
    { "F4", { 0 }, 0, false, 0, 0 },
    { "F6_E2M3", { 4 }, 1, true, 4, 3 },
    { "F6_E3M2", { 2 }, 1, false, 0, 0 },
    { "F6_E3M2", { 0 }, 1, true, 0, 0 },
    { "C64", { 2, 3, 5 }, 3, true, 30, 240 },
    { "U8", { 0, (uint64_t)1 << 63, 4 }, 3, true, 0, 0 },
    { "U8", { (uint64_t)1 << 63, 4, 0 }, 3, true, 0, 0 },
    { "U8", { (uint64_t)1 << 63, 2 }, 2, false, 0, 0 },
    { "I64", { (uint64_t)1 << 61, 1 }, 2, false, 0, 0 },
};

static void shapes_have_sizes_or_do_not_fit(void)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        bal_dtype dtype;
        uint64_t elements = 0;
        uint64_t bytes = 0;
        check_row(shapes[i].name);
        CHECK(bal_dtype_find(&dtype, shapes[i].name, strlen(shapes[i].name)));
        CHECK(!strcmp(bal_dtype_name(dtype), shapes[i].name));
        CHECK(bal_shape_size(&elements, &bytes, dtype, shapes[i].shape,
                             shapes[i].rank) == shapes[i].fits);
        CHECK(elements == shapes[i].elements && bytes == shapes[i].bytes);
    }
}

static void unknown_dtypes_are_not_found(void)
{
    bal_dtype dtype;

    CHECK(!bal_dtype_find(&dtype, "f32", 3));
    CHECK(!bal_dtype_find(&dtype, "F3", 2));
    CHECK(!bal_dtype_find(&dtype, "F32 ", 4));
    CHECK(!bal_dtype_find(&dtype, "", 0));
}

static const check_test tests[] = {
    { TEST(shapes_have_sizes_or_do_not_fit) },
    { TEST(unknown_dtypes_are_not_found) },
};

CHECK_MAIN(tests)
