/* Views of every method: how a tensor is cut into tiles and ranges, how many
 * threads read and what the CPU can do does not show in one bit. Each way is a
 * process of its own, for instructions are chosen once. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/pool.h"
#include "merge/merge.h"
#include "support/check.h"
#include "support/made_model.h"

enum {
    SHAPES = 4,
    INPUTS = 5,      /* and a base */
    PIECE = 1000,    /* elements that one item reads */
    METHODS = 64,    /* at most */
    WIDEST = 8,      /* bytes of an element */
    LARGEST = 20011, /* elements */
};

typedef struct way {
    const char *tile, *isa, *threads;
} way;

/* The first is what the others are compared with. */
static const way ways[] = {
    { "0", "v4", "1" }, { "8", "v4", "1" },    { "13", "base", "8" },
    { "8", "v3", "8" }, { "1024", "v4", "8" }, { "0", "base", "1" },
    { "0", "v3", "8" }, { "0", "v4", "8" },    { "1024", "base", "1" },
};

static const made_row shapes[SHAPES] = {
    { .name = "a", .dtype = BAL_F32, .rank = 1, .shape = { LARGEST } },
    { .name = "b", .dtype = BAL_BF16, .rank = 2, .shape = { 61, 67 } },
    { .name = "c", .dtype = BAL_F32, .rank = 3, .shape = { 3, 17, 40 } },
    { .name = "d", .dtype = BAL_F32, .rank = 2, .shape = { 5, 2100 } },
};

/* What is set where a method has such a parameter, so that it has something to
 * do. */
static const struct {
    const char *name, *value;
} told[] = {
    { "density", "0.4" },     { "t", "0.3" },        { "lambda", "0.9" },
    { "select_topk", "0.5" }, { "rescale", "true" }, { "weight", "0.7" },
    { "scale", "0.3" },
};

static size_t elements(const made_row *row)
{
    size_t n = 1;

    for (uint32_t k = 0; k < row->rank; k++)
        n *= row->shape[k];
    return n;
}

/* Input 0 is the base, the others are not far from it. */
static void *fill(const made_row *row, unsigned input)
{
    size_t n = elements(row);
    float *base = malloc(n * sizeof(float));
    float *change = malloc(n * sizeof(float));
    uint16_t *half = malloc(n * sizeof(uint16_t));
    bool wide = row->dtype == BAL_F32;

    made_floats(base, n, (unsigned)row->name[0]);
    made_floats(change, n, (unsigned)row->name[0] + 100 * input);
    for (size_t k = 0; k < n; k++) {
        if (input)
            base[k] += change[k] / 8;
        half[k] = bf16_round((double)base[k]);
    }
    free(change);
    free(wide ? (void *)half : (void *)base);
    return wide ? (void *)base : (void *)half;
}

typedef struct models {
    bal_model *inputs[INPUTS + 1];
    void *bytes[INPUTS + 1][SHAPES];
} models;

static void models_make(models *self)
{
    for (unsigned i = 0; i <= INPUTS; i++) {
        made_row rows[SHAPES];

        memcpy(rows, shapes, sizeof(rows));
        for (size_t k = 0; k < SHAPES; k++) {
            self->bytes[i][k] = fill(&rows[k], i);
            rows[k].bytes = self->bytes[i][k];
        }
        self->inputs[i] = made_model(BAL_KIND_WEIGHTS, NULL, rows, SHAPES);
    }
}

static void models_done(models *self)
{
    for (size_t i = 0; i <= INPUTS; i++) {
        bal_model_free(self->inputs[i]);
        for (size_t k = 0; k < SHAPES; k++)
            free(self->bytes[i][k]);
    }
}

static bool has(const bal_method_info *info, const char *name)
{
    for (const bal_param *param = info->params; param->name; param++) {
        if (!strcmp(param->name, name))
            return true;
    }
    return false;
}

/* In which arithmetic, with whose random numbers. */
typedef enum draws {
    PRECISE,
    MERGEKIT,
    MERGEKIT_STREAM,
    DRAWS,
} draws;

/* The method with as many inputs as it takes, the base first. */
static bal_recipe *recipe_of(const bal_method *method, draws draw)
{
    size_t count = method->info.max_inputs ? method->info.max_inputs : INPUTS;
    bool based = method->role != BAL_ROLE_NONE;
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, method->info.name, &check_err));
    for (size_t i = 0; i < count + based; i++) {
        bal_input input = { .tenant = "acme", .weight = 1 };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->slices[0].base = based ? 0 : BAL_NONE;
    recipe->mergekit = draw != PRECISE;
    recipe->seed = 42;
    recipe->seeded = draw != MERGEKIT_STREAM || !method->draws;
    if (!recipe->seeded)
        CHECK_OK(bal_recipe_set(recipe, "mergekit_stream", "42", &check_err));
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        if (has(&method->info, told[i].name))
            CHECK_OK(bal_recipe_set(recipe, told[i].name, told[i].value,
                                    &check_err));
    }
    return recipe;
}

/* ---- one way ------------------------------------------------------------ */

typedef struct reading {
    bal_model *view;
    size_t i;
    uint8_t *to;
} reading;

static int read_piece(size_t piece, void *ctx, bal_error *err)
{
    const reading *self = ctx;
    const bal_tensor *entry = bal_model_at(self->view, self->i);
    size_t most = PIECE * bal_dtype_bits(entry->dtype) / 8;
    size_t at = piece * most;
    size_t len = entry->size - at < most ? entry->size - at : most;

    return bal_model_read(self->view, self->i, at, self->to + at, len, err);
}

static void read_view(bal_hash *hash, bal_model *view, bal_work *pool)
{
    uint8_t *bytes = malloc(WIDEST * (size_t)LARGEST);

    CHECK(bal_model_count(view) == SHAPES);
    for (size_t i = 0; i < bal_model_count(view); i++) {
        reading job = { view, i, bytes };
        size_t pieces = (elements(&shapes[i]) + PIECE - 1) / PIECE;

        CHECK_OK(bal_pool_run(pool, pieces, read_piece, &job, &check_err));
        bal_hash_add(hash, bytes, bal_model_at(view, i)->size);
    }
    free(bytes);
}

/* A digest for each method. */
static void all_methods(bal_id *out, const way *how)
{
    models made;
    BAL_OWN(bal_work) pool = NULL;

    setenv("BAL_TILE", how->tile, 1);
    setenv("BALLAST_ISA", how->isa, 1);
    CHECK_OK(
        bal_work_new(&pool, (unsigned)(how->threads[0] - '0'), &check_err));
    models_make(&made);
    for (size_t m = 0; m < bal_methods_count; m++) {
        bal_hash hash;

        check_row(bal_methods[m].info.name);
        bal_hash_init(&hash);
        for (draws draw = PRECISE; draw < DRAWS; draw++) {
            BAL_OWN(bal_recipe) recipe = recipe_of(&bal_methods[m], draw);
            BAL_OWN(bal_model) view = NULL;

            CHECK_OK(bal_recipe_settle(recipe, made.inputs, &check_err));
            CHECK_OK(
                bal_view_open(&view, recipe, made.inputs, NULL, &check_err));
            read_view(&hash, view, pool);
        }
        bal_hash_end(&hash, &out[m]);
    }
    models_done(&made);
}

/* The same in a process of its own. */
static void in_process(bal_id *out, const way *how)
{
    size_t size = bal_methods_count * sizeof(*out);
    int ends[2];
    int status;

    CHECK(!pipe(ends));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        all_methods(out, how);
        _exit(write(ends[1], out, size) != (ssize_t)size);
    }
    close(ends[1]);
    CHECK(read(ends[0], out, size) == (ssize_t)size);
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child && !status);
}

static void no_way_of_reading_shows_in_any_method(void)
{
    static bal_id want[METHODS];
    static bal_id got[METHODS];

    CHECK(bal_methods_count <= METHODS);
    in_process(want, &ways[0]);
    for (size_t i = 1; i < sizeof(ways) / sizeof(ways[0]); i++) {
        in_process(got, &ways[i]);
        for (size_t m = 0; m < bal_methods_count; m++) {
            char name[128];

            snprintf(name, sizeof(name), "%s: tiles of %s, %s, %s threads",
                     bal_methods[m].info.name, ways[i].tile, ways[i].isa,
                     ways[i].threads);
            check_row(name);
            CHECK(bal_id_equal(&want[m], &got[m]));
        }
    }
}

static const check_test tests[] = {
    { TEST(no_way_of_reading_shows_in_any_method) },
};

CHECK_MAIN(tests)
