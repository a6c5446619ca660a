/* The mean is a weighted sum of the units all the while, so all that a step
 * needs of them is their dot products. In mergekit's arithmetic it is not: see
 * karcher_steps.c. */
#include "merge/karcher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/karcher_in.h"
#include "merge/rows.h"
#include "merge/vectors.h"

enum { MOST_STEPS = 1000 };

/* Below this sine an angle near π says nothing of the direction. */
static const double opposite = 1e-6;

const bal_param bal_karcher_params[] = {
    {
        .name = "max_iter",
        .type = BAL_PARAM_INT,
        .fallback = "10",
        .low = 0,
        .high = MOST_STEPS,
        .mergekit = "max_iter",
        .help = "steps at most",
    },
    {
        .name = "tol",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1e-5",
        .low = 0,
        .high = HUGE_VAL,
        .mergekit = "tol",
        .help = "length of a step that is the last, and norm that is zero",
    },
    { 0 },
};

/* ---- precise: on dot products ------------------------------------------- */

typedef struct gram {
    bal_karcher *self;
    double *dots; /* count by count, of the units */
    double *mean; /* as a sum of units */
    double *step;
    double *along; /* the mean's cosine to each unit */
} gram;

static void gram_done(gram *self)
{
    free(self->dots);
}

static int gram_init(gram *self, bal_karcher *of, bal_error *err)
{
    uint64_t size;

    self->self = of;
    if (bal_mul(&size, of->count, of->count + 3) &&
        bal_mul(&size, size, sizeof(double)))
        self->dots = calloc(1, (size_t)size);
    if (!self->dots)
        return bal_fail_memory(err, "dot products of a tensor");
    self->mean = self->dots + of->count * of->count;
    self->step = self->mean + of->count;
    self->along = self->step + of->count;
    return 0;
}

static int set_dot(void *ctx, size_t i, size_t j, const double *dots,
                   bal_error *err)
{
    gram *self = ctx;
    size_t count = self->self->count;
    const double *norms = self->self->norms;
    double dot = dots[0] / norms[i] / norms[j];
    (void)err;

    self->dots[i * count + j] = dot;
    self->dots[j * count + i] = dot;
    return 0;
}

/* out[i]: the dot product of sum, of units, with unit i. Its norm. */
static double dots_with(const gram *self, double *out, const double *sum)
{
    const bal_karcher *of = self->self;
    double square = 0;

    for (size_t i = 0; i < of->count; i++) {
        out[i] = 0;
        for (size_t j = 0; of->shares[i] != 0 && j < of->count; j++) {
            if (of->shares[j] != 0)
                out[i] += sum[j] * self->dots[i * of->count + j];
        }
        square += out[i] * sum[i];
    }
    return sqrt(fmax(square, 0));
}

static void divide(double *sum, size_t count, double by)
{
    for (size_t i = 0; i < count; i++)
        sum[i] /= by;
}

static void begin(gram *self, double tol)
{
    const bal_karcher *of = self->self;
    size_t first = 0;

    memcpy(self->mean, of->shares, of->count * sizeof(*self->mean));
    double norm = dots_with(self, self->along, self->mean);
    if (norm >= tol && norm > 0) {
        divide(self->mean, of->count, norm);
        return;
    }
    while (of->shares[first] == 0)
        first++;
    memset(self->mean, 0, of->count * sizeof(*self->mean));
    self->mean[first] = 1;
}

/* Σ k (u - d mean), of cosines d. Its length. */
static double pull(gram *self, const bal_arith *arith, double tol)
{
    const bal_karcher *of = self->self;
    double back = 0;

    (void)dots_with(self, self->along, self->mean);
    for (size_t i = 0; i < of->count; i++) {
        double cosine = bal_cosine(self->along[i]);
        double angle = bal_fn_acos(arith, cosine);
        double sine = bal_fn_sin(arith, angle);

        self->step[i] = 0;
        if (of->shares[i] == 0 || angle < tol || sine == 0 ||
            (cosine < 0 && sine < opposite))
            continue;
        self->step[i] = of->shares[i] * angle / sine;
        back += self->step[i] * cosine;
    }
    for (size_t i = 0; i < of->count; i++)
        self->step[i] -= back * self->mean[i];
    return dots_with(self, self->along, self->step);
}

static void iterate(gram *self, const bal_arith *arith, double tol)
{
    bal_karcher *of = self->self;

    begin(self, tol);
    for (size_t s = 0; s < of->most; s++) {
        double length = pull(self, arith, tol);
        if (length < tol || length == 0)
            break;
        double here = bal_fn_cos(arith, length);
        double there = bal_fn_sin(arith, length) / length;

        for (size_t i = 0; i < of->count; i++)
            self->mean[i] = here * self->mean[i] + there * self->step[i];
        double norm = dots_with(self, self->along, self->mean);
        if (norm > tol)
            divide(self->mean, of->count, norm);
    }
    for (size_t i = 0; i < of->count; i++) {
        if (of->shares[i] != 0)
            of->factors[i] = of->size * self->mean[i] / of->norms[i];
    }
}

/* ---- both --------------------------------------------------------------- */

static int karcher_new(bal_karcher **out, size_t count, size_t most,
                       bal_error *err)
{
    uint64_t numbers, size;
    uint64_t each = 2 * count + sizeof(bal_karcher_step) / sizeof(double);
    bal_karcher *self = NULL;

    if (bal_mul(&numbers, each, most) &&
        bal_add(&numbers, numbers, 3 * count) &&
        bal_mul(&size, numbers, sizeof(double)) &&
        bal_add(&size, size, sizeof(*self)))
        self = calloc(1, (size_t)size);
    if (!self)
        return bal_fail_memory(err, "preparing a merge");
    self->count = count;
    self->most = most;
    self->factors = self->numbers;
    self->norms = self->factors + count;
    self->shares = self->norms + count;
    self->along = self->shares + count;
    self->pull = self->along + most * count;
    self->step = (bal_karcher_step *)(self->pull + most * count);
    *out = self;
    return 0;
}

/* False: no input counts. */
static bool set_shares(bal_karcher *self, const bal_arith *arith, double tol)
{
    bal_arith single = bal_arith_single(arith);
    double least = bal_arith_term(&single, tol);
    double share = 1 / (double)self->count;
    double sum = 0;

    for (size_t i = 0; i < self->count; i++) {
        double part = bal_arith_round1(
            &single, bal_arith_factor(&single, share) * self->norms[i]);

        self->size = bal_arith_round1(&single, self->size + part);
        self->shares[i] = self->norms[i] > least ? share : 0;
        sum += self->shares[i];
    }
    self->size = bal_arith_round1(arith, self->size);
    for (size_t i = 0; sum != 0 && i < self->count; i++)
        self->shares[i] /= sum;
    return sum != 0;
}

/* mergekit's norms are of F32, of whatever dtype the inputs are. */
static int measure_mergekit(bal_karcher *self, bal_walk *walk,
                            const bal_tile *tile, double tol, bal_error *err)
{
    bal_arith single = bal_arith_single(tile->arith);
    bal_pairs pairs = {
        .lines = bal_lines_whole(tile->extent),
        .arith = &single,
        .count = self->count,
        .norms = self->norms,
    };
    int rc = bal_pairs_walk(&pairs, walk, err);
    if (rc || !set_shares(self, tile->arith, tol))
        return rc;
    return bal_karcher_follow(self, walk, tile, tol, err);
}

static int measure_precise(bal_karcher *self, bal_walk *walk,
                           const bal_tile *tile, double tol, bal_error *err)
{
    BAL_LOCAL(gram) job = { 0 };
    bal_pairs pairs = {
        .lines = bal_lines_whole(tile->extent),
        .arith = tile->arith,
        .count = self->count,
        .norms = self->norms,
        .fn = set_dot,
        .ctx = &job,
    };
    int rc = gram_init(&job, self, err);
    if (!rc)
        rc = bal_pairs_walk(&pairs, walk, err);
    if (rc || !set_shares(self, tile->arith, tol))
        return rc;
    for (size_t i = 0; i < self->count; i++)
        job.dots[i * self->count + i] = 1;
    iterate(&job, tile->arith, tol);
    return 0;
}

int bal_karcher_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                        const bal_values *values, bal_error *err)
{
    double tol = bal_value_float(values, "tol");
    size_t most = (size_t)bal_value_float(values, "max_iter");
    bal_karcher *self = NULL;

    *out = NULL;
    if (tile->count < 2)
        return 0;
    int rc =
        karcher_new(&self, tile->count, tile->arith->mergekit ? most : 0, err);
    if (rc)
        return rc;
    self->most = most;
    rc = tile->arith->mergekit ? measure_mergekit(self, walk, tile, tol, err)
                               : measure_precise(self, walk, tile, tol, err);
    if (rc) {
        free(self);
        return rc;
    }
    *out = self;
    return 0;
}

int bal_karcher_merge(double *out, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    const bal_karcher *self = tile->prepared;
    bool none = true;
    (void)values;
    (void)err;

    if (tile->count < 2) {
        memcpy(out, tile->inputs[0], tile->n * sizeof(*out));
        return 0;
    }
    for (size_t i = 0; i < self->count; i++)
        none = none && self->shares[i] == 0;
    if (tile->arith->mergekit && !none) {
        bal_karcher_replay(out, self, tile);
        return 0;
    }
    memset(out, 0, tile->n * sizeof(*out));
    for (size_t i = 0; !none && i < tile->count; i++)
        bal_kernels_use()->axpy64(out, self->factors[i], tile->inputs[i],
                                  tile->n);
    return 0;
}

bool bal_karcher_same(double weight, const bal_values *values)
{
    (void)weight;
    (void)values;
    return true;
}
