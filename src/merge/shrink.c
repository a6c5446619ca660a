/* An adapter of lower rank. Reading a factor takes an SVD that gives its
 * partner as well, so both are kept until room is needed for other modules: who
 * reads a model through asks for one right after the other. */
#include "merge/shrink.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/concat.h"
#include "merge/lowrank.h"

enum { SLOTS = 4, PIECE = 64 * 1024 };

/* Factors as they are read. The lock guards the others, and is held while they
 * are computed, so that nobody computes them twice. */
typedef struct slot {
    pthread_mutex_t lock;
    size_t module;    /* BAL_NONE: none yet */
    char *factors[2]; /* A, B */
} slot;

typedef struct shrink {
    bal_model model;
    bal_model *adapter;
    bal_loras loras;
    bal_joined *modules; /* beside the rows of loras, without shares */
    bal_dtype dtype;
    bal_buf config;
    slot slots[SLOTS];
} shrink;

/* ---- factors ------------------------------------------------------------ */

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "an adapter of lower rank");
}

static int spectrum_of(bal_spectrum *out, const shrink *self, size_t i,
                       bal_error *err)
{
    const bal_lora *lora = &self->loras.rows[i];
    BAL_LOCAL(bal_lowrank) map = { 0 };
    int rc = bal_lowrank_init(&map, (size_t)lora->out, (size_t)lora->in,
                              (size_t)lora->rank, err);

    if (!rc)
        rc = bal_lowrank_read(&map, 0, 1, self->adapter, lora, err);
    if (!rc)
        rc = bal_spectrum_init(out, &map, err);
    return rc ? bal_within(err, rc, "module '%s'", lora->module) : 0;
}

/* Columns as rows of the dtype. */
static int turn_over(char *to, bal_dtype dtype, const double *columns,
                     size_t length, size_t count, bal_error *err)
{
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t most = bal_max(PIECE / count, 1);
    double *rows = malloc(most * count * sizeof(*rows));
    if (!rows)
        return no_memory(err);

    for (size_t start = 0; start < length; start += most) {
        size_t n = bal_min(length - start, most) * count;
        for (size_t at = 0; at < n; at++)
            rows[at] = columns[at % count * length + start + at / count];
        bal_kernels_use()->from_f64[dtype](to + start * count * width, rows, n);
    }
    free(rows);
    return 0;
}

static int narrow(slot *to, const shrink *self, const bal_lowrank *cut,
                  bal_error *err)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;

    to->factors[0] = malloc(cut->r * cut->n * width + 1);
    to->factors[1] = malloc(cut->r * cut->m * width + 1);
    if (!to->factors[0] || !to->factors[1])
        return no_memory(err);
    bal_kernels_use()->from_f64[self->dtype](to->factors[0], cut->a,
                                             cut->r * cut->n);
    return turn_over(to->factors[1], self->dtype, cut->b, cut->m, cut->r, err);
}

static void empty(slot *self)
{
    self->module = BAL_NONE;
    for (size_t i = 0; i < 2; i++) {
        free(self->factors[i]);
        self->factors[i] = NULL;
    }
}

static int compute(slot *to, const shrink *self, size_t i, bal_error *err)
{
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    BAL_LOCAL(bal_lowrank) cut = { 0 };
    size_t rank = (size_t)self->modules[i].rank;
    int rc = spectrum_of(&spectrum, self, i, err);

    if (!rc)
        rc = bal_spectrum_cut(&cut, &spectrum, rank, err);
    bal_spectrum_done(&spectrum);
    empty(to);
    if (!rc)
        rc = narrow(to, self, &cut, err);
    if (rc)
        empty(to);
    else
        to->module = i;
    return rc;
}

static int read_factor(shrink *self, size_t i, size_t which, uint64_t offset,
                       void *to, size_t len, bal_error *err)
{
    slot *from = &self->slots[i % SLOTS];
    int rc = 0;

    pthread_mutex_lock(&from->lock);
    if (from->module != i)
        rc = compute(from, self, i, err);
    if (!rc)
        memcpy(to, from->factors[which] + offset, len);
    pthread_mutex_unlock(&from->lock);
    return rc;
}

/* ---- the model ---------------------------------------------------------- */

static int read_a(shrink *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    return read_factor(self, index, 0, offset, to, len, err);
}

static int read_b(shrink *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    return read_factor(self, index, 1, offset, to, len, err);
}

static int read_config(shrink *self, size_t index, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    (void)index;
    (void)err;
    memcpy(to, self->config.data + offset, len);
    return 0;
}

static int read_other(shrink *self, size_t index, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    return bal_model_read(self->adapter, index, offset, to, len, err);
}

static int (*const readers[])(shrink *self, size_t index, uint64_t offset,
                              void *to, size_t len, bal_error *err) = {
    [BAL_MADE_A] = read_a,
    [BAL_MADE_B] = read_b,
    [BAL_MADE_CONFIG] = read_config,
    [BAL_MADE_OTHER] = read_other,
};

static int shrink_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    size_t index;
    bal_made what = bal_made_of(&index, model, i);

    return readers[what]((shrink *)model, index, offset, to, len, err);
}

static void shrink_free(bal_model *model)
{
    shrink *self = (shrink *)model;

    for (size_t i = 0; i < SLOTS; i++) {
        empty(&self->slots[i]);
        pthread_mutex_destroy(&self->slots[i].lock);
    }
    bal_model_free(self->adapter);
    bal_loras_done(&self->loras);
    bal_buf_done(&self->config);
    free(self->modules);
}

static const bal_model_ops shrink_ops = {
    .read = shrink_read,
    .free = shrink_free,
};

/* ---- ranks -------------------------------------------------------------- */

typedef struct rank_job {
    shrink *self;
    double energy;
} rank_job;

static int find_rank(size_t i, void *ctx, bal_error *err)
{
    const rank_job *job = ctx;
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    int rc = spectrum_of(&spectrum, job->self, i, err);

    if (!rc)
        job->self->modules[i].rank =
            bal_max(bal_spectrum_rank(&spectrum, job->energy), 1);
    return rc;
}

/* A recipe out of a database may say anything. */
static int told_rank(uint64_t *out, const json_t *ranks, const char *module,
                     bal_error *err)
{
    json_int_t rank = json_integer_value(json_object_get(ranks, module));

    if (rank < 1 || rank > (json_int_t)BAL_LORA_RANK_MAX)
        return bal_fail(err, BAL_ECORRUPT,
                        "the recipe does not tell the rank of module '%s'",
                        module);
    *out = (uint64_t)rank;
    return 0;
}

static int choose_ranks(shrink *self, const bal_shrink *how, bal_work *work,
                        bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->loras.count && !rc; i++) {
        const bal_lora *lora = &self->loras.rows[i];
        self->modules[i] = (bal_joined){ .module = lora->module,
                                         .in = lora->in,
                                         .out = lora->out,
                                         .rank = how->rank };
        if (!how->rank && how->ranks)
            rc = told_rank(&self->modules[i].rank, how->ranks, lora->module,
                           err);
    }
    if (rc || how->rank || how->ranks)
        return rc;
    rank_job job = { self, how->energy };
    return bal_pool_run(work, self->loras.count, find_rank, &job, err);
}

/* ---- opening ------------------------------------------------------------ */

static int list(shrink *self, bal_error *err)
{
    const bal_entries entries = {
        .modules = self->modules,
        .count = self->loras.count,
        .dtype = self->dtype,
        .config = &self->config,
        .files = self->adapter,
    };
    int rc = bal_concat_config(&self->config, &self->loras, 1, self->modules,
                               self->loras.count, err);

    if (!rc)
        rc = bal_entries_add(&self->model, &entries, err);
    for (size_t i = 0; !rc && i < self->loras.whole_count; i++)
        rc = bal_entries_pass(&self->model, self->adapter,
                              self->loras.wholes[i].entry, err);
    return rc;
}

static int plan(shrink *self, const bal_shrink *how, bal_work *work,
                bal_error *err)
{
    bal_facts facts = *bal_model_facts(self->adapter);
    int rc = bal_loras_read(&self->loras, self->adapter, err);
    if (rc)
        return rc;

    self->modules = calloc(self->loras.count + 1, sizeof(*self->modules));
    if (!self->modules)
        return no_memory(err);
    int dtype = how->dtype >= 0
                    ? how->dtype
                    : bal_loras_join(-1, &self->loras, self->adapter);
    self->dtype = dtype >= 0 ? (bal_dtype)dtype : BAL_F32;
    rc = choose_ranks(self, how, work, err);
    if (!rc)
        rc = list(self, err);
    if (!rc)
        rc = bal_model_tell(&self->model, &facts, err);
    return rc ? rc : bal_model_ready(&self->model, err);
}

int bal_shrink_open(bal_model **out, bal_model *adapter, const bal_shrink *how,
                    bal_work *work, bal_error *err)
{
    shrink *self = bal_model_alloc(sizeof(*self), &shrink_ops);
    if (!self)
        return no_memory(err);
    for (size_t i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&self->slots[i].lock, NULL);
        self->slots[i].module = BAL_NONE;
    }
    self->adapter = bal_model_ref(adapter);
    BAL_OWN(bal_model) model = &self->model;

    int rc = plan(self, how, work, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
