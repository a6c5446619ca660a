/* What two models have in common, and how far apart they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ballast.h"

#include "support/check.h"
#include "support/memory_model.h"
#include "support/strange.h"

enum { ROWS = 16 };

static bal_work *work;

typedef struct seen {
    bal_diff_row rows[ROWS];
    char names[ROWS][32];
    size_t count;
} seen;

static int see(void *ctx, const bal_diff_row *row)
{
    seen *all = ctx;

    CHECK(all->count < ROWS);
    snprintf(all->names[all->count], sizeof(all->names[0]), "%s", row->name);
    all->rows[all->count++] = *row;
    return 0;
}

static const bal_diff_row *row_of(const seen *all, const char *name)
{
    size_t i = 0;

    while (i < all->count && strcmp(all->names[i], name) != 0)
        i++;
    CHECK(i < all->count);
    return &all->rows[i];
}

static void put(bal_model *model, const char *name, bal_dtype dtype, uint64_t n,
                const void *data)
{
    memory_tensor(model, name, dtype, 1, &n, data);
}

/* NULL data: an entry without bytes. */
static void put_form(bal_model *model, const char *name, bal_form form,
                     bal_dtype dtype, uint64_t n, const void *data)
{
    bal_tensor entry = {
        .name = name,
        .form = form,
        .dtype = dtype,
        .of = dtype == BAL_F32 ? BAL_BF16 : dtype,
        .rank = 1,
        .shape = &n,
    };

    memory_entry(model, &entry, data);
}

static seen differ(bal_model *a, bal_model *b)
{
    seen all = { .count = 0 };

    memory_finish(a);
    memory_finish(b);
    CHECK_OK(bal_diff(a, b, work, see, &all, &check_err));
    return all;
}

/* ---- one tensor, by rows --------------------------------------------------
 */

static const float ones[] = { 3, 4, 0, 0, 0, 0, 0, 0 };
static const float others[] = { 3, 4, 0, 1, 0, 0, -2, 0 };
static const float zeros[8] = { 0 };
static const float minus_zeros[] = { -0.0f, 0, 0, 0, 0, 0, 0, 0 };
static const uint16_t half_ones[] = { 0x4040, 0x4080, 0, 0, 0, 0, 0, 0 };
static const uint32_t nans[] = { 0x40400000, 0x40800000, 0x7fc00000, 0,
                                 0,          0,          0,          0 };
static const uint32_t infs[] = { 0x40400000, 0x40800000, 0x7f800000, 0,
                                 0,          0,          0,          0 };
static const int8_t bytes[] = { -3, 4, 0, 0, 0, 0, 0, 0 };
static const int8_t bytes2[] = { -3, 4, 0, 0, 0, 0, 0, 12 };
static const int64_t longs[] = { -3, 4, 0, 0, 0, 0, 0, 0 };
/* 1, -2, 0.5, the largest, the smallest subnormal … */
static const uint8_t e4m3[] = { 0x38, 0xc0, 0x30, 0x7e, 0x01, 0, 0, 0 };
static const uint16_t as_e4m3[] = { 0x3c00, 0xc000, 0x3800, 0x5f00,
                                    0x1800, 0,      0,      0 };
static const uint8_t e5m2[] = { 0x3c, 0xc0, 0x38, 0x7b, 0x01, 0, 0, 0 };
static const uint16_t as_e5m2[] = { 0x3c00, 0xc000, 0x3800, 0x7b00,
                                    0x0100, 0,      0,      0 };
static const uint8_t e8m0[] = { 127, 128, 126, 0, 254, 127, 127, 127 };
static const uint32_t as_e8m0[] = { 0x3f800000, 0x40000000, 0x3f000000,
                                    0x00400000, 0x7f000000, 0x3f800000,
                                    0x3f800000, 0x3f800000 };
static const uint8_t fnuz4[] = { 0x40, 0xc8, 0x38, 0x01, 0x7f, 0, 0, 0 };
static const uint16_t as_fnuz4[] = { 0x3c00, 0xc000, 0x3800, 0x1400,
                                     0x5b80, 0,      0,      0 };
static const uint8_t fnuz5[] = { 0x40, 0xc4, 0x3c, 0x01, 0x7f, 0, 0, 0 };
static const uint32_t as_fnuz5[] = { 0x3f800000, 0xc0000000, 0x3f000000,
                                     0x37000000, 0x47600000, 0,
                                     0,          0 };

static const struct {
    const char *what;
    bal_dtype a_dtype, b_dtype;
    const void *a, *b;
    bal_change change;
    bool finite;
    double relative, max_abs;
} cases[] = {
    { "equal", BAL_F32, BAL_F32, ones, ones, BAL_UNCHANGED, true, 0, 0 },
    { "changed", BAL_F32, BAL_F32, ones, others, BAL_CHANGED, true,
      0.44721359549995793, 2 },
    { "from zero", BAL_F32, BAL_F32, zeros, ones, BAL_CHANGED, true,
      (double)INFINITY, 4 },
    { "to zero", BAL_F32, BAL_F32, ones, zeros, BAL_CHANGED, true, 1, 4 },
    { "a sign of zero", BAL_F32, BAL_F32, zeros, minus_zeros, BAL_CHANGED, true,
      0, 0 },
    { "another dtype", BAL_F32, BAL_BF16, ones, half_ones, BAL_DTYPE_CHANGED,
      true, 0, 0 },
    { "another dtype and values", BAL_F32, BAL_BF16, others, half_ones,
      BAL_CHANGED, true, 0.40824829046386302, 2 },
    { "a NaN", BAL_F32, BAL_F32, ones, nans, BAL_CHANGED, false,
      (double)INFINITY, (double)INFINITY },
    { "a NaN on both sides", BAL_F32, BAL_F32, nans, nans, BAL_CHANGED, false,
      (double)INFINITY, (double)INFINITY },
    { "an infinity", BAL_F32, BAL_F32, infs, ones, BAL_CHANGED, false,
      (double)INFINITY, (double)INFINITY },
    { "integers", BAL_I8, BAL_I8, bytes, bytes2, BAL_CHANGED, true, 2.4, 12 },
    { "wider integers", BAL_I8, BAL_I64, bytes, longs, BAL_DTYPE_CHANGED, true,
      0, 0 },
    { "half bytes", BAL_F4, BAL_F4, bytes, bytes, BAL_UNCHANGED, true, 0, 0 },
    { "other half bytes", BAL_F4, BAL_F4, bytes, bytes + 1, BAL_CHANGED, true,
      (double)INFINITY, 0 },
    { "E4M3", BAL_F8_E4M3, BAL_F16, e4m3, as_e4m3, BAL_DTYPE_CHANGED, true, 0,
      0 },
    { "E5M2", BAL_F8_E5M2, BAL_F16, e5m2, as_e5m2, BAL_DTYPE_CHANGED, true, 0,
      0 },
    { "E8M0", BAL_F8_E8M0, BAL_F32, e8m0, as_e8m0, BAL_DTYPE_CHANGED, true, 0,
      0 },
    { "E4M3FNUZ", BAL_F8_E4M3FNUZ, BAL_F16, fnuz4, as_fnuz4, BAL_DTYPE_CHANGED,
      true, 0, 0 },
    { "E5M2FNUZ", BAL_F8_E5M2FNUZ, BAL_F32, fnuz5, as_fnuz5, BAL_DTYPE_CHANGED,
      true, 0, 0 },
};

static bool close_to(double got, double want)
{
    return got == want || fabs(got - want) <= 1e-15 * fabs(want);
}

static void tells_how_far_a_tensor_moved(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        BAL_OWN(bal_model) a = memory_new(BAL_KIND_WEIGHTS, "a");
        BAL_OWN(bal_model) b = memory_new(BAL_KIND_WEIGHTS, "b");
        check_row(cases[i].what);
        put(a, "w", cases[i].a_dtype, 8, cases[i].a);
        put(b, "w", cases[i].b_dtype, 8, cases[i].b);
        seen all = differ(a, b);
        CHECK(all.count == 1);
        CHECK(all.rows[0].change == cases[i].change);
        CHECK(all.rows[0].finite == cases[i].finite);
        CHECK(close_to(all.rows[0].relative, cases[i].relative));
        CHECK(all.rows[0].max_abs == cases[i].max_abs);
        CHECK(all.rows[0].dtype_changed ==
              (cases[i].a_dtype != cases[i].b_dtype));
    }
}

static void names_what_only_one_has(void)
{
    BAL_OWN(bal_model) a = memory_new(BAL_KIND_WEIGHTS, "a");
    BAL_OWN(bal_model) b = memory_new(BAL_KIND_WEIGHTS, "b");

    put(a, "gone", BAL_F32, 8, ones);
    put(a, "long", BAL_F32, 8, ones);
    put(b, "long", BAL_F32, 7, ones);
    put(b, "new", BAL_F32, 8, ones);
    memory_file(b, BAL_PART_FILE, "config.json", "{}", 2);
    seen all = differ(a, b);
    CHECK(all.count == 3);
    CHECK(row_of(&all, "gone")->change == BAL_REMOVED);
    CHECK(row_of(&all, "long")->change == BAL_RESHAPED);
    CHECK(row_of(&all, "new")->change == BAL_ADDED);
}

static void what_a_delta_lacks_is_zero_there(void)
{
    BAL_OWN(bal_model) a = memory_new(BAL_KIND_DELTA, "a");
    BAL_OWN(bal_model) b = memory_new(BAL_KIND_DELTA, "b");

    put_form(a, "both", BAL_FORM_DIFFERENCE, BAL_F32, 8, ones);
    put_form(b, "both", BAL_FORM_DIFFERENCE, BAL_F32, 8, others);
    put_form(a, "one", BAL_FORM_DIFFERENCE, BAL_F32, 8, ones);
    put_form(b, "other", BAL_FORM_DIFFERENCE, BAL_F32, 8, ones);
    put_form(b, "one", BAL_FORM_SAME, BAL_BF16, 8, NULL);
    put_form(a, "none", BAL_FORM_SAME, BAL_BF16, 8, NULL);
    put_form(b, "added", BAL_FORM_WHOLE, BAL_BF16, 8, half_ones);
    put_form(b, "removed", BAL_FORM_REMOVED, BAL_BF16, 8, NULL);
    put_form(a, "away", BAL_FORM_REMOVED, BAL_BF16, 8, NULL);
    put_form(b, "away", BAL_FORM_REMOVED, BAL_BF16, 8, NULL);
    seen all = differ(a, b);
    CHECK(all.count == 6);
    CHECK(row_of(&all, "both")->change == BAL_CHANGED);
    CHECK(row_of(&all, "both")->max_abs == 2);
    CHECK(row_of(&all, "one")->change == BAL_CHANGED);
    CHECK(row_of(&all, "one")->relative == 1);
    CHECK(row_of(&all, "other")->change == BAL_CHANGED);
    CHECK(isinf(row_of(&all, "other")->relative));
    CHECK(row_of(&all, "none")->change == BAL_UNCHANGED);
    CHECK(row_of(&all, "added")->change == BAL_ADDED);
    CHECK(row_of(&all, "removed")->change == BAL_REMOVED);
}

static void a_delta_is_not_compared_with_a_model(void)
{
    BAL_OWN(bal_model) a = memory_new(BAL_KIND_DELTA, "a");
    BAL_OWN(bal_model) b = memory_new(BAL_KIND_WEIGHTS, "b");
    seen all = { .count = 0 };

    memory_finish(a);
    memory_finish(b);
    CHECK_RC(BAL_EINVAL, bal_diff(a, b, work, see, &all, &check_err));
}

/* ---- threads ------------------------------------------------------------- */

static seen differ_with(unsigned jobs, bal_model *a, bal_model *b)
{
    seen all = { .count = 0 };
    bal_work *some = NULL;

    CHECK_OK(bal_work_new(&some, jobs, &check_err));
    CHECK_OK(bal_diff(a, b, some, see, &all, &check_err));
    bal_work_free(some);
    return all;
}

static void sums_do_not_depend_on_threads(void)
{
    enum { COUNT = 3 << 20 };
    float *data = malloc(COUNT * sizeof(*data));
    BAL_OWN(bal_model) a = memory_new(BAL_KIND_WEIGHTS, "a");
    BAL_OWN(bal_model) b = memory_new(BAL_KIND_WEIGHTS, "b");
    uint64_t state = 1;

    CHECK(data);
    for (size_t i = 0; i < COUNT; i++)
        data[i] = (float)(int64_t)strange_bits(&state);
    put(a, "w", BAL_F32, COUNT, data);
    put(a, "x", BAL_F32, 100, data);
    for (size_t i = 0; i < COUNT; i++)
        data[i] += (float)(int32_t)strange_bits(&state);
    put(b, "w", BAL_F32, COUNT, data);
    put(b, "x", BAL_F32, 100, data);
    free(data);
    memory_finish(a);
    memory_finish(b);
    seen one = differ_with(1, a, b);
    seen three = differ_with(3, a, b);
    for (size_t i = 0; i < 2; i++) {
        CHECK(one.rows[i].diff2 == three.rows[i].diff2);
        CHECK(one.rows[i].norm2 == three.rows[i].norm2);
        CHECK(one.rows[i].relative > 0 && one.rows[i].relative < 1e-6);
    }
}

static int stop(void *ctx, const bal_diff_row *row)
{
    (void)row;
    ++*(int *)ctx;
    return 1;
}

static void stops_when_told(void)
{
    BAL_OWN(bal_model) a = memory_new(BAL_KIND_WEIGHTS, "a");
    BAL_OWN(bal_model) b = memory_new(BAL_KIND_WEIGHTS, "b");
    int calls = 0;

    put(a, "x", BAL_F32, 8, ones);
    put(a, "y", BAL_F32, 8, ones);
    memory_finish(a);
    memory_finish(b);
    CHECK_OK(bal_diff(a, b, work, stop, &calls, &check_err));
    CHECK(calls == 1);
}

/* ---- what is not read ------------------------------------------------------
 */

typedef struct counting {
    bal_model model;
    atomic_size_t bytes; /* that were read */
} counting;

static int count_read(bal_model *model, size_t i, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    (void)i;
    (void)offset;
    (void)err;
    memset(to, 0x3f, len);
    atomic_fetch_add(&((counting *)model)->bytes, len);
    return 0;
}

static void count_free(bal_model *model)
{
    (void)model;
}

static const bal_model_ops count_ops = { .read = count_read,
                                         .free = count_free };

/* One tensor, and a model in front of it that passes it on. */
static void one_model_behind_both_sides_is_read_once_if_at_all(void)
{
    static const struct {
        bal_dtype dtype;
        unsigned times; /* its bytes are read */
    } rows[] = {
        { BAL_F32, 1 },
        { BAL_I32, 1 },
        { BAL_F8_E4M3, 1 },
        { BAL_F4, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint64_t n = 3000000;
        bal_tensor entry = {
            .name = "w", .dtype = rows[i].dtype, .rank = 1, .shape = &n
        };
        BAL_OWN(bal_model) front = NULL;
        BAL_OWN(bal_model) back = bal_model_alloc(sizeof(counting), &count_ops);
        CHECK(back);
        check_row(bal_dtype_name(rows[i].dtype));
        CHECK_OK(bal_model_add(back, &entry, 0, &check_err));
        CHECK_OK(bal_model_ready(back, &check_err));
        CHECK_OK(bal_model_cast(&front, back, BAL_F32, &check_err));
        seen all = { .count = 0 };
        CHECK_OK(bal_diff(front, back, work, see, &all, &check_err));
        CHECK(all.count == 1 && all.rows[0].change == BAL_UNCHANGED);
        CHECK(atomic_load(&((counting *)back)->bytes) ==
              rows[i].times * bal_model_at(back, 0)->size);
    }
}

static const check_test tests[] = {
    { TEST(tells_how_far_a_tensor_moved) },
    { TEST(names_what_only_one_has) },
    { TEST(what_a_delta_lacks_is_zero_there) },
    { TEST(a_delta_is_not_compared_with_a_model) },
    { TEST(sums_do_not_depend_on_threads) },
    { TEST(stops_when_told) },
    { TEST(one_model_behind_both_sides_is_read_once_if_at_all) },
};

int main(void)
{
    if (bal_work_new(&work, 2, &check_err))
        return 1;
    int status = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    bal_work_free(work);
    return status;
}
