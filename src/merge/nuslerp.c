/* The factors of every vector first, in place of its norms and dot product. */
#include "merge/nuslerp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/vectors.h"

static const double least_norm = 1e-7;
static const double least_sum = 1e-6;
static const double one_line = 1e-16;
static const double opposite = -0.9995;

const bal_param bal_nuslerp_params[] = {
    {
        .name = "weight",
        .type = BAL_PARAM_FLOAT,
        .fallback = "1",
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .per_input = true,
        .mergekit = "weight",
        .help = "how far the result lies towards an input",
    },
    {
        .name = "nuslerp_flatten",
        .type = BAL_PARAM_BOOL,
        .fallback = "true",
        .low = 0,
        .high = 1,
        .mergekit = "nuslerp_flatten",
        .help = "take a tensor as one vector",
    },
    {
        .name = "nuslerp_row_wise",
        .type = BAL_PARAM_BOOL,
        .fallback = "false",
        .low = 0,
        .high = 1,
        .mergekit = "nuslerp_row_wise",
        .help = "without nuslerp_flatten: vectors along the first axis, not "
                "the last",
    },
    { 0 },
};

/* out = r((first * x + second * y) / sine) */
typedef struct nuslerp {
    bal_lines lines;
    double *first, *second, *sine; /* of each vector */
    double numbers[];
} nuslerp;

typedef struct measuring {
    nuslerp *self;
    const bal_arith *arith;
    bal_sums norms[2];
    bal_sums dot;
} measuring;

static void measuring_done(measuring *self)
{
    bal_sums_done(&self->norms[0]);
    bal_sums_done(&self->norms[1]);
    bal_sums_done(&self->dot);
}

static bal_lines lines_of(const bal_extent *extent, const bal_values *values)
{
    if (bal_value_bool(values, "nuslerp_flatten"))
        return bal_lines_whole(extent);
    if (bal_value_bool(values, "nuslerp_row_wise"))
        return bal_lines_across(extent);
    return bal_lines_rows(extent);
}

static int nuslerp_new(nuslerp **out, const bal_lines *lines, bal_error *err)
{
    uint64_t size;

    *out = NULL;
    if (bal_mul(&size, lines->count, 3 * sizeof(double)) &&
        bal_add(&size, size, sizeof(**out)))
        *out = malloc((size_t)size);
    if (!*out)
        return bal_fail_memory(err, "the norms of a tensor");
    (*out)->lines = *lines;
    (*out)->first = (*out)->numbers;
    (*out)->second = (*out)->first + lines->count;
    (*out)->sine = (*out)->second + lines->count;
    return 0;
}

static int norms_of_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    measuring *self = ctx;
    (void)err;

    for (size_t i = 0; i < 2; i++)
        bal_sums_add(&self->norms[i], tile->start, tile->inputs[i], NULL,
                     tile->n);
    if (!self->arith->mergekit)
        bal_sums_add(&self->dot, tile->start, tile->inputs[0], tile->inputs[1],
                     tile->n);
    return 0;
}

static int dot_of_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    measuring *self = ctx;
    const nuslerp *of = self->self;
    double *a = tile->scratch, *b = tile->scratch + tile->n;
    (void)err;

    bal_lines_over(&of->lines, tile, a, tile->inputs[0], of->first);
    bal_lines_over(&of->lines, tile, b, tile->inputs[1], of->second);
    bal_sums_add(&self->dot, tile->start, a, b, tile->n);
    return 0;
}

/* Norms into first and second, cosines into sine. */
static int measure(nuslerp *of, bal_walk *walk, const bal_tile *tile,
                   bal_error *err)
{
    const bal_arith *arith = tile->arith;
    double least = bal_arith_term(arith, least_norm);
    BAL_LOCAL(measuring) self = { .self = of, .arith = arith };
    int rc = bal_sums_init(&self.norms[0], &of->lines, arith, BAL_FOLD_NORM,
                           of->first, err);
    if (!rc)
        rc = bal_sums_init(&self.norms[1], &of->lines, arith, BAL_FOLD_NORM,
                           of->second, err);
    if (!rc)
        rc = bal_sums_init(&self.dot, &of->lines, arith, BAL_FOLD_DOT, of->sine,
                           err);
    if (!rc)
        rc = bal_view_tiles(walk, norms_of_tile, &self, err);
    if (rc)
        return rc;

    bal_sums_end(&self.norms[0]);
    bal_sums_end(&self.norms[1]);
    for (size_t i = 0; i < of->lines.count; i++) {
        if (of->first[i] < least)
            of->first[i] = least;
        if (of->second[i] < least)
            of->second[i] = least;
    }
    if (arith->mergekit)
        rc = bal_view_tiles(walk, dot_of_tile, &self, err);
    if (rc)
        return rc;
    bal_sums_end(&self.dot);
    for (size_t i = 0; !arith->mergekit && i < of->lines.count; i++)
        of->sine[i] = of->sine[i] / of->first[i] / of->second[i];
    return 0;
}

static bool on_a_line(const bal_arith *arith, double cosine)
{
    double square = bal_arith_round1(arith, cosine * cosine);

    if (bal_arith_round1(arith, 1 - square) <= one_line)
        return true;
    return !arith->mergekit && cosine < opposite;
}

static void set_factors(nuslerp *self, size_t i, const bal_arith *arith,
                        double t)
{
    double cosine = bal_cosine(self->sine[i]);
    double here = bal_arith_factor(arith, 1 - t);
    double there = bal_arith_factor(arith, t);

    self->first[i] = here;
    self->second[i] = there;
    self->sine[i] = 1;
    if (on_a_line(arith, cosine))
        return;
    double angle = bal_arith_round1(arith, bal_fn_acos(arith, cosine));
    here = bal_arith_round1(arith, here * angle);
    there = bal_arith_round1(arith, there * angle);
    self->first[i] = bal_arith_round1(arith, bal_fn_sin(arith, here));
    self->second[i] = bal_arith_round1(arith, bal_fn_sin(arith, there));
    self->sine[i] = bal_arith_round1(arith, bal_fn_sin(arith, angle));
}

static double part_of_second(const double *weights)
{
    double sum = weights[0] + weights[1];

    return fabs(sum) < least_sum ? 0.5 : weights[1] / sum;
}

int bal_nuslerp_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                        const bal_values *values, bal_error *err)
{
    bal_lines lines = lines_of(tile->extent, values);
    nuslerp *self = NULL;

    *out = NULL;
    if (tile->count < 2)
        return 0;
    int rc = nuslerp_new(&self, &lines, err);
    if (rc)
        return rc;
    rc = measure(self, walk, tile, err);
    if (rc) {
        free(self);
        return rc;
    }
    double t = part_of_second(tile->weights);
    for (size_t i = 0; i < lines.count; i++)
        set_factors(self, i, tile->arith, t);
    *out = self;
    return 0;
}

int bal_nuslerp_merge(double *out, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    const nuslerp *self = tile->prepared;
    const double *const *in = tile->inputs;
    double *other = tile->scratch;
    (void)values;
    (void)err;

    if (tile->count < 2) {
        memcpy(out, in[0], tile->n * sizeof(*out));
        return 0;
    }
    bal_lines_scale(&self->lines, tile, out, in[0], self->first);
    bal_lines_scale(&self->lines, tile, other, in[1], self->second);
    bal_op_add(tile->arith, out, out, other, tile->n);
    bal_lines_over(&self->lines, tile, out, out, self->sine);
    return 0;
}

bool bal_nuslerp_same(double weight, const bal_values *values)
{
    (void)weight;
    (void)values;
    return true;
}
