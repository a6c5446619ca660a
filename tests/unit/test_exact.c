/* base + (tuned - base) is tuned, bit for bit, whatever is in them. */
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "model/arithmetic.h"
#include "model/digest.h"
#include "support/check.h"
#include "support/memory_model.h"
#include "support/strange.h"

enum { FLOATS = 4 };
static const bal_dtype floats[FLOATS] = { BAL_BF16, BAL_F16, BAL_F32, BAL_F64 };

static bal_work *work;

/* Finishes both. The delta, if out is not NULL. */
static void check_exact(bal_model *tuned, bal_model *base, bal_model **out)
{
    BAL_OWN(bal_model) delta = NULL;
    BAL_OWN(bal_model) again = NULL;

    memory_finish(tuned);
    memory_finish(base);
    CHECK_OK(bal_model_minus(&delta, tuned, base, work, &check_err));
    CHECK(bal_model_facts(delta)->kind == BAL_KIND_DELTA);
    CHECK_OK(bal_model_plus(&again, base, delta, 0, work, &check_err));
    memory_check_equal(tuned, again);
    if (out)
        *out = BAL_TAKE(delta);
}

static const bal_tensor *find(const bal_model *model, const char *name)
{
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);

    CHECK(i != BAL_NONE);
    return bal_model_at(model, i);
}

/* What minus takes along the way is what bal_digest_model takes. */
static void check_digests(bal_model *tuned, bal_model *delta)
{
    bal_id *ids = calloc(bal_model_count(tuned), sizeof(*ids));

    CHECK(ids);
    CHECK_OK(bal_digest_model(ids, tuned, work, &check_err));
    for (size_t i = 0; i < bal_model_count(tuned); i++) {
        const bal_tensor *entry = bal_model_at(tuned, i);
        size_t n = bal_model_find(delta, entry->part, entry->name);
        CHECK(!memcmp(bal_model_at(delta, n)->tuned, &ids[i], sizeof(*ids)));
    }
    free(ids);
}

/* ---- exactness ---------------------------------------------------------- */

static void every_pair_of_float_dtypes_comes_back(void)
{
    for (size_t i = 0; i < FLOATS * FLOATS; i++) {
        bal_dtype a = floats[i / FLOATS];
        bal_dtype b = floats[i % FLOATS];
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        BAL_OWN(bal_model) delta = NULL;
        check_row(bal_dtype_name(a));
        memory_strange1(tuned, "w", a, 100003, 1 + i);
        memory_strange1(base, "w", b, 100003, 100 + i);
        check_exact(tuned, base, &delta);
        bool wide = a == BAL_F64 || b == BAL_F64;
        CHECK(find(delta, "w")->form == BAL_FORM_DIFFERENCE);
        CHECK(find(delta, "w")->dtype == (wide ? BAL_F64 : BAL_F32));
        CHECK(find(delta, "w")->of == a);
        const bal_tensor *residual = bal_model_at(delta, 1);
        CHECK(residual->form == BAL_FORM_RESIDUAL);
        CHECK(residual->dtype == bal_dtype_row_of(a)->bits_as);
    }
}

static const struct {
    const char *name;
    uint32_t rank;
    uint64_t shape[3];
} shapes[] = {
    { "scalar", 0, { 0 } },
    { "empty", 1, { 0 } },
    { "one", 1, { 1 } },
    { "empty, of many", 3, { 5, 0, (uint64_t)1 << 62 } },
    { "matrix", 2, { 13, 17 } },
    { "cube", 3, { 3, 5, 7 } },
    { "a step and one", 2, { 1, 32769 } },
    { "a step", 1, { 32768 } },
};

static void every_shape_of_every_dtype_comes_back(void)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        check_row(shapes[i].name);
        for (size_t dtype = 0; dtype < BAL_DTYPES; dtype++) {
            const char *name = bal_dtype_name((bal_dtype)dtype);
            uint64_t elements;
            uint64_t size;
            if (!bal_shape_size(&elements, &size, (bal_dtype)dtype,
                                shapes[i].shape, shapes[i].rank))
                continue;
            memory_strange(tuned, name, (bal_dtype)dtype, shapes[i].rank,
                           shapes[i].shape, 7 + dtype);
            memory_strange(base, name, (bal_dtype)dtype, shapes[i].rank,
                           shapes[i].shape,
                           dtype % 3 ? 700 + dtype : 7 + dtype);
        }
        check_exact(tuned, base, NULL);
    }
}

/* A difference may come anywhere in a tile, and end again before the next. */
static void one_byte_in_a_tile_comes_back(void)
{
    static const uint64_t places[] = { 0,       300000,  4194303,
                                       4194304, 6000000, 8388610 };
    static const uint64_t shape[] = { 8388611 };
    char *data = calloc(1, shape[0]);

    CHECK(data);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        BAL_OWN(bal_model) delta = NULL;
        memory_tensor(base, "w", BAL_U8, 1, shape, data);
        data[places[i]] = 1;
        memory_tensor(tuned, "w", BAL_U8, 1, shape, data);
        data[places[i]] = 0;
        check_exact(tuned, base, &delta);
        CHECK(find(delta, "w")->form == BAL_FORM_WHOLE);
        CHECK(memcmp(find(delta, "w")->base, find(delta, "w")->tuned,
                     sizeof(bal_id)));
        check_digests(tuned, delta);
    }
    free(data);
}

/* Tuned and base dtypes whose tiles have different numbers of elements. */
static void tensors_of_several_tiles_come_back(void)
{
    static const uint64_t sizes[] = { 2097151, 2097152, 2097153, 4194305 };
    static const bal_dtype dtypes[][2] = {
        { BAL_BF16, BAL_BF16 },
        { BAL_BF16, BAL_F64 },
        { BAL_F32, BAL_F16 },
        { BAL_I8, BAL_I64 },
    };

    for (size_t i = 0; i < 4; i++) {
        BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
        BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
        BAL_OWN(bal_model) delta = NULL;
        check_row(bal_dtype_name(dtypes[i][1]));
        memory_strange1(tuned, "w", dtypes[i][0], sizes[i], 3);
        memory_strange1(base, "w", dtypes[i][1], sizes[i], 4);
        memory_strange1(tuned, "same", dtypes[i][0], sizes[i], 5);
        memory_strange1(base, "same", dtypes[i][0], sizes[i], 5);
        check_exact(tuned, base, &delta);
        check_digests(tuned, delta);
    }
}

static void new_removed_and_reshaped_tensors_come_back(void)
{
    static const uint64_t flat[] = { 12 };
    static const uint64_t deep[] = { 3, 4 };
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;
    bal_minus_report report;

    memory_strange(tuned, "reshaped", BAL_F32, 2, deep, 1);
    memory_strange(base, "reshaped", BAL_F32, 1, flat, 1);
    memory_strange1(tuned, "new", BAL_BF16, 9, 2);
    memory_strange1(base, "gone", BAL_BF16, 9, 3);
    memory_strange1(tuned, "same", BAL_F32, 9, 4);
    memory_strange1(base, "same", BAL_F32, 9, 4);
    memory_strange1(tuned, "integers", BAL_I64, 9, 5);
    memory_strange1(base, "integers", BAL_I64, 9, 6);
    memory_strange1(tuned, "signs", BAL_U8, 8, 7);
    memory_strange1(base, "signs", BAL_I8, 8, 7);
    memory_strange1(tuned, "floats", BAL_F16, 9, 8);
    memory_strange1(base, "floats", BAL_F16, 9, 9);
    check_exact(tuned, base, &delta);
    CHECK(find(delta, "reshaped")->form == BAL_FORM_WHOLE);
    CHECK(find(delta, "new")->form == BAL_FORM_WHOLE);
    CHECK(!find(delta, "new")->base && find(delta, "new")->tuned);
    CHECK(find(delta, "gone")->form == BAL_FORM_REMOVED);
    CHECK(find(delta, "same")->form == BAL_FORM_SAME);
    CHECK(find(delta, "integers")->form == BAL_FORM_WHOLE);
    CHECK(find(delta, "signs")->form == BAL_FORM_WHOLE);
    bal_minus_count(&report, delta);
    CHECK(report.changed == 3 && report.unchanged == 1);
    CHECK(report.added == 1 && report.removed == 1 && report.reshaped == 1);
}

static void side_files_come_back(void)
{
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;

    memory_file(tuned, BAL_PART_FILE, "config.json", "{\"a\":1}", 7);
    memory_file(base, BAL_PART_FILE, "config.json", "{\"a\":2}", 7);
    memory_file(tuned, BAL_PART_FILE, "tokenizer.json", "{}", 2);
    memory_file(base, BAL_PART_FILE, "tokenizer.json", "{}", 2);
    memory_file(tuned, BAL_PART_FILE, "README.md", "", 0);
    memory_file(base, BAL_PART_FILE, "LICENSE", "mine", 4);
    check_exact(tuned, base, &delta);
    size_t same = bal_model_find(delta, BAL_PART_FILE, "tokenizer.json");
    CHECK(bal_model_at(delta, same)->form == BAL_FORM_SAME);
    CHECK(bal_model_at(delta, same)->base);
}

static void a_change_that_adds_up_has_no_residual(void)
{
    static const float before[] = { 1, 2, 3, -4, 0.5f, 0 };
    static const float after[] = { 1.5f, 2, 2, -4.25f, 0.5f, 8 };
    static const uint64_t shape[] = { 6 };
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;
    float difference[6];

    memory_tensor(tuned, "w", BAL_F32, 1, shape, after);
    memory_tensor(base, "w", BAL_F32, 1, shape, before);
    check_exact(tuned, base, &delta);
    CHECK(bal_model_count(delta) == 1);
    CHECK_OK(bal_model_read(delta, 0, 0, difference, sizeof(difference),
                            &check_err));
    for (size_t i = 0; i < 6; i++)
        CHECK(difference[i] == after[i] - before[i]);
}

static void a_minus_zero_has_a_residual(void)
{
    static const float before[] = { -0.0f, 1 };
    static const float after[] = { -0.0f, 2 };
    static const uint64_t shape[] = { 2 };
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;
    uint32_t residual[2];

    memory_tensor(tuned, "w", BAL_F32, 1, shape, after);
    memory_tensor(base, "w", BAL_F32, 1, shape, before);
    check_exact(tuned, base, &delta);
    CHECK(bal_model_count(delta) == 2);
    CHECK_OK(
        bal_model_read(delta, 1, 0, residual, sizeof(residual), &check_err));
    CHECK(residual[0] == 0x80000000 && residual[1] == 0);
}

static void nothing_changed_is_all_the_same(void)
{
    BAL_OWN(bal_model) tuned = memory_new(BAL_KIND_WEIGHTS, "tuned");
    BAL_OWN(bal_model) base = memory_new(BAL_KIND_WEIGHTS, "base");
    BAL_OWN(bal_model) delta = NULL;

    for (uint64_t i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%llu", (unsigned long long)i);
        memory_strange1(tuned, name, BAL_BF16, i % 7, i);
        memory_strange1(base, name, BAL_BF16, i % 7, i);
    }
    check_exact(tuned, base, &delta);
    for (size_t i = 0; i < bal_model_count(delta); i++)
        CHECK(bal_model_at(delta, i)->form == BAL_FORM_SAME);
}

static const check_test tests[] = {
    { TEST(every_pair_of_float_dtypes_comes_back) },
    { TEST(every_shape_of_every_dtype_comes_back) },
    { TEST(one_byte_in_a_tile_comes_back) },
    { TEST(tensors_of_several_tiles_come_back) },
    { TEST(new_removed_and_reshaped_tensors_come_back) },
    { TEST(side_files_come_back) },
    { TEST(a_change_that_adds_up_has_no_residual) },
    { TEST(a_minus_zero_has_a_residual) },
    { TEST(nothing_changed_is_all_the_same) },
};

int main(void)
{
    if (bal_work_new(&work, 2, &check_err))
        return 1;
    int status = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    bal_work_free(work);
    return status;
}
