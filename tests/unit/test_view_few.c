/* Views: what becomes of tensors that not all inputs have, rows that stay
 * whole, and preparing. The methods here are made up. */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/pool.h"
#include "support/check.h"
#include "support/made_model.h"
#include "support/watch_method.h"

/* ---- tensors that some lack --------------------------------------------- */

typedef struct lack {
    const char *name;
    bal_role role;
    bal_few few;
    size_t min;
    size_t base;
    bal_space space;
    bool mergekit;
    const char *has; /* of inputs 8, 16, 32: which have it */
    int rc;
    double result; /* -1: the view has no such tensor */
} lack;

#define N  BAL_ROLE_NONE
#define O  BAL_ROLE_ORIGIN
#define P  BAL_ROLE_OPERAND
#define NO BAL_NONE
#define W  BAL_SPACE_WEIGHTS
#define D  BAL_SPACE_DELTA

static const lack lacks[] = {
    { "some are left", O, BAL_FEW_RUN, 1, 0, W, true, "110", 0, 16 },
    { "the base is left", O, BAL_FEW_RUN, 1, 0, W, true, "100", 0, 8 },
    { "the base lacks it", O, BAL_FEW_RUN, 1, 0, W, true, "011", BAL_EINVAL,
      0 },
    { "the base lacks it, precise", O, BAL_FEW_RUN, 1, 0, W, false, "010",
      BAL_EINVAL, 0 },
    { "no base", N, BAL_FEW_RUN, 1, NO, W, true, "011", 0, 48 },
    { "too few", N, BAL_FEW_RUN, 2, NO, W, true, "010", BAL_EINVAL, 0 },
    { "copied: the base", P, BAL_FEW_COPY, 1, 0, W, true, "100", 0, 8 },
    { "copied: another", P, BAL_FEW_COPY, 1, 0, W, true, "010", 0, 16 },
    { "copied: without a base", O, BAL_FEW_COPY, 2, NO, W, true, "001", 0, 32 },
    { "not copied: two", O, BAL_FEW_COPY, 2, NO, W, true, "011", 0, 48 },
    { "not copied: base and one of two", O, BAL_FEW_COPY, 2, 0, W, true, "110",
      BAL_EINVAL, 0 },
    { "not copied: two, not the base", O, BAL_FEW_COPY, 2, 0, W, true, "011",
      BAL_EINVAL, 0 },
    { "left out", P, BAL_FEW_DROP, 2, 0, W, true, "110", 0, -1 },
    { "left out: the base lacks it", P, BAL_FEW_DROP, 2, 0, W, true, "010", 0,
      -1 },
    { "the base alone", P, BAL_FEW_DROP, 2, 0, W, true, "100", 0, 8 },
    { "the base's", P, BAL_FEW_DROP, 2, 0, W, false, "110", 0, 8 },
    { "nobody's", P, BAL_FEW_DROP, 2, 0, W, false, "010", BAL_EINVAL, 0 },
    { "enough, but the base lacks it", P, BAL_FEW_DROP, 2, 0, W, true, "011",
      BAL_EINVAL, 0 },
    { "added by one", P, BAL_FEW_DROP, 2, NO, D, true, "010", 0, 16 },
    { "added by one to a base", P, BAL_FEW_COPY, 1, 0, D, false, "010", 0, 16 },
    { "added by two to a base", O, BAL_FEW_RUN, 1, 0, D, false, "011", 0, 48 },
};

static bal_model *maybe(bal_kind kind, bool has, const float *value)
{
    const made_row rows[] = {
        { .name = "w",
          .dtype = BAL_F32,
          .rank = 1,
          .shape = { 1 },
          .bytes = value },
    };

    return made_model(kind, NULL, rows, has);
}

static void what_some_inputs_lack_is_decided_by_the_methods_row(void)
{
    static const float values[] = { 8, 16, 32 };

    for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
        const lack *row = &lacks[i];
        bal_method method = watch_method(row->role, row->min);
        BAL_OWN(bal_recipe) recipe = NULL;
        bal_model *inputs[3];
        BAL_OWN(bal_model) view = NULL;
        float got;

        check_row(row->name);
        method.few = row->few;
        recipe = watch_recipe(&method, row->space, 3, row->base);
        recipe->mergekit = row->mergekit;
        for (size_t k = 0; k < 3; k++)
            inputs[k] =
                maybe(watch_kind(row->space), row->has[k] == '1', &values[k]);
        CHECK_RC(row->rc,
                 bal_view_open(&view, recipe, inputs, NULL, &check_err));
        for (size_t k = 0; k < 3; k++)
            bal_model_free(inputs[k]);
        CHECK(!row->rc || strstr(check_err.text, "'w'"));
        if (row->rc)
            continue;
        CHECK(bal_model_count(view) == (row->result >= 0));
        if (row->result < 0)
            continue;
        watch_read(view, &got, sizeof(got));
        CHECK((double)got == row->result);
    }
}

/* What is passed on comes out in the dtype that was asked for. */
static void what_is_passed_on_is_cast_where_a_dtype_is_told(void)
{
    enum { LONG = 20000 };
    float *values = malloc(LONG * sizeof(float));
    uint16_t *got = malloc(LONG * sizeof(uint16_t));
    bal_method method = watch_method(BAL_ROLE_ORIGIN, 1);

    made_floats(values, LONG, 3);
    BAL_OWN(bal_recipe) recipe = watch_recipe(&method, W, 2, 0);
    BAL_OWN(bal_model)
    base = watch_input(BAL_KIND_WEIGHTS, BAL_F32, LONG, values);
    BAL_OWN(bal_model) other = made_model(BAL_KIND_WEIGHTS, NULL, NULL, 0);
    bal_model *inputs[] = { base, other };
    BAL_OWN(bal_model) view = NULL;

    recipe->dtype = BAL_BF16;
    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    watch_read(view, got, LONG * sizeof(*got));
    for (size_t k = 0; k < LONG; k++)
        CHECK(got[k] == bf16_round((double)values[k]));
    free(values);
    free(got);
}

/* ---- rows --------------------------------------------------------------- */

static uint64_t by_row(const bal_extent *extent)
{
    return extent->row;
}

/* Each element is its place in its tile plus the tile's start: a row that is
 * not whole shows. */
static int place_merge(double *out, const bal_tile *tile,
                       const bal_values *values, bal_error *err)
{
    uint64_t row = tile->extent->row;
    (void)values;
    (void)err;

    CHECK(tile->start % row == 0 && tile->n % row == 0);
    CHECK(tile->extent->rank == 2 && tile->extent->total == 12 * 100);
    for (size_t k = 0; k < tile->n; k++)
        out[k] = (double)(tile->start + k);
    return 0;
}

static void a_method_of_rows_gets_whole_rows_and_any_range_is_cut(void)
{
    float values[1200] = { 0 };
    made_row rows[] = { { .name = "w",
                          .dtype = BAL_F32,
                          .rank = 2,
                          .shape = { 12, 100 },
                          .bytes = values } };
    bal_method method = watch_method(BAL_ROLE_NONE, 1);
    float got[1200];

    method.align = by_row;
    method.merge = place_merge;
    BAL_OWN(bal_recipe) recipe = watch_recipe(&method, W, 1, NO);
    BAL_OWN(bal_model) input = made_model(BAL_KIND_WEIGHTS, NULL, rows, 1);
    BAL_OWN(bal_model) view = NULL;

    CHECK_OK(bal_view_open(&view, recipe, &input, NULL, &check_err));
    for (size_t from = 0; from < 1200; from += 8) {
        for (size_t n = 8; from + n <= 1200; n += 104) {
            CHECK_OK(bal_model_read(view, 0, from * 4, got, n * 4, &check_err));
            CHECK(got[0] == (float)from && got[n - 1] == (float)(from + n - 1));
        }
    }
}

static void rows_that_are_too_long_are_refused_by_name(void)
{
    const uint64_t most = (uint64_t)64 << 20;

    for (uint64_t more = 0; more < 2; more++) {
        made_row rows[] = { { .name = "w",
                              .dtype = BAL_F32,
                              .rank = 2,
                              .shape = { 2, most + more } } };
        bal_method method = watch_method(BAL_ROLE_NONE, 1);

        method.align = by_row;
        BAL_OWN(bal_recipe) recipe = watch_recipe(&method, W, 1, NO);
        BAL_OWN(bal_model) input = made_model(BAL_KIND_WEIGHTS, NULL, rows, 1);
        BAL_OWN(bal_model) view = NULL;

        CHECK_RC(more ? BAL_EUNSUPPORTED : 0,
                 bal_view_open(&view, recipe, &input, NULL, &check_err));
        CHECK(!more || strstr(check_err.text, "'w'"));
    }
}

/* ---- preparing ---------------------------------------------------------- */

static sem_t begun[2];

/* Comes back when the other tensor is being prepared, too. */
static int meet_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                        const bal_values *values, bal_error *err)
{
    struct timespec until;
    size_t me = tile->tensor[0] == 'b';
    (void)walk;
    (void)values;
    (void)err;

    *out = NULL;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    sem_post(&begun[!me]);
    CHECK(!sem_timedwait(&begun[me], &until));
    CHECK(tile->n == 0 && !tile->inputs && tile->extent->total == 8);
    return 0;
}

static int zero_merge(double *out, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    (void)values;
    (void)err;
    memset(out, 0, tile->n * sizeof(*out));
    return 0;
}

static int read_one(size_t i, void *ctx, bal_error *err)
{
    float got[8];

    return bal_model_read(ctx, i, 0, got, sizeof(got), err);
}

static void two_tensors_are_prepared_at_once(void)
{
    static const float values[8] = { 0 };
    made_row rows[2] = {
        { .name = "a", .dtype = BAL_F32, .rank = 1, .shape = { 8 } },
        { .name = "b", .dtype = BAL_F32, .rank = 1, .shape = { 8 } },
    };
    bal_method method = watch_method(BAL_ROLE_NONE, 1);
    BAL_OWN(bal_work) pool = NULL;

    rows[0].bytes = values;
    rows[1].bytes = values;
    method.prepare = meet_prepare;
    method.merge = zero_merge;
    sem_init(&begun[0], 0, 0);
    sem_init(&begun[1], 0, 0);
    BAL_OWN(bal_recipe) recipe = watch_recipe(&method, W, 1, NO);
    BAL_OWN(bal_model) input = made_model(BAL_KIND_WEIGHTS, NULL, rows, 2);
    BAL_OWN(bal_model) view = NULL;

    CHECK_OK(bal_view_open(&view, recipe, &input, NULL, &check_err));
    CHECK_OK(bal_work_new(&pool, 2, &check_err));
    CHECK_OK(bal_pool_run(pool, 2, read_one, view, &check_err));
}

static const check_test tests[] = {
    { TEST(what_some_inputs_lack_is_decided_by_the_methods_row) },
    { TEST(what_is_passed_on_is_cast_where_a_dtype_is_told) },
    { TEST(a_method_of_rows_gets_whole_rows_and_any_range_is_cut) },
    { TEST(rows_that_are_too_long_are_refused_by_name) },
    { TEST(two_tensors_are_prepared_at_once) },
};

CHECK_MAIN(tests)
