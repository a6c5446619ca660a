/* Arrays in memory as a model. */
#include <string.h>

#include "model/model.h"
#include "support/check.h"

static const uint64_t two[] = { 2 };
static const uint64_t zero[] = { 0, 3 };
static const float numbers[] = { 1, 2 };

static const bal_array good[] = {
    { "w", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 8 },
    { "empty", BAL_PART_TENSOR, BAL_BF16, 2, zero, NULL, 0 },
    { "scalar", BAL_PART_TENSOR, BAL_F32, 0, NULL, numbers + 1, 4 },
    { "config.json", BAL_PART_FILE, BAL_U8, 0, NULL, "{}", 2 },
};

static int released;

static void release(void *ctx)
{
    released += *(int *)ctx;
}

static int make(bal_model **out, const bal_array *rows, size_t count)
{
    static int one = 1;
    const bal_arrays arrays = {
        .kind = BAL_KIND_WEIGHTS,
        .rows = rows,
        .count = count,
        .release = release,
        .ctx = &one,
    };

    released = 0;
    return bal_model_from_arrays(out, &arrays, &check_err);
}

static void arrays_are_read_where_they_are(void)
{
    bal_model *model = NULL;
    float got[2];
    char text[2];

    CHECK_OK(make(&model, good, 4));
    CHECK(bal_model_count(model) == 4);
    size_t w = bal_model_find(model, BAL_PART_TENSOR, "w");
    size_t scalar = bal_model_find(model, BAL_PART_TENSOR, "scalar");
    size_t file = bal_model_find(model, BAL_PART_FILE, "config.json");
    CHECK_OK(bal_model_read(model, w, 0, got, 8, &check_err));
    CHECK(!memcmp(got, numbers, 8));
    CHECK_OK(bal_model_read(model, scalar, 0, got, 4, &check_err));
    CHECK(!memcmp(got, numbers + 1, 4));
    CHECK_OK(bal_model_read(model, file, 0, text, 2, &check_err));
    CHECK(!memcmp(text, "{}", 2));
    CHECK(bal_model_at(model, w)->size == 8);
    bal_model *again = bal_model_ref(model);
    bal_model_free(model);
    CHECK(!released);
    bal_model_free(again);
    CHECK(released == 1);
}

static const struct {
    const char *what;
    bal_array row;
} bad[] = {
    { "no name", { NULL, BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 8 } },
    { "an empty name", { "", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 8 } },
    { "no UTF-8", { "\xff", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 8 } },
    { "too few bytes", { "x", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 4 } },
    { "too many", { "x", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 12 } },
    { "no data", { "x", BAL_PART_TENSOR, BAL_F32, 1, two, NULL, 8 } },
    { "no shape", { "x", BAL_PART_TENSOR, BAL_F32, 1, NULL, numbers, 8 } },
    { "no dtype", { "x", BAL_PART_TENSOR, BAL_DTYPES, 1, two, numbers, 8 } },
    { "a rank", { "x", BAL_PART_TENSOR, BAL_F32, 65, two, numbers, 8 } },
    { "twice", { "w", BAL_PART_TENSOR, BAL_F32, 1, two, numbers, 8 } },
    { "upwards", { "../x", BAL_PART_FILE, BAL_U8, 0, NULL, "{}", 2 } },
    { "a header", { "x", BAL_PART_HEADER, BAL_U8, 0, NULL, "{}", 2 } },
};

static void what_is_no_model_is_refused(void)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const bal_array rows[] = { good[0], bad[i].row };
        bal_model *model = NULL;
        check_row(bad[i].what);
        CHECK_RC(BAL_EINVAL, make(&model, rows, 2));
        CHECK(!model && !released);
    }
}

static const check_test tests[] = {
    { TEST(arrays_are_read_where_they_are) },
    { TEST(what_is_no_model_is_refused) },
};

CHECK_MAIN(tests)
