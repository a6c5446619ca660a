/* Shoemake's formula (SIGGRAPH '85), on unit vectors for the angle and on the
 * vectors as they are for the sum, as mergekit has it. */
#include "merge/slerp.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "merge/rows.h"
#include "merge/vectors.h"

enum { CHUNK = 1024 * 1024 }; /* elements that mergekit sums at once */

static const double on_a_line = 0.9995;
static const double no_norm = 1e-8;

const bal_param bal_slerp_params[] = {
    {
        .name = "t",
        .type = BAL_PARAM_FLOAT,
        .low = -HUGE_VAL,
        .high = HUGE_VAL,
        .mergekit = "t",
        .help = "where between the base (0) and the other (1)",
    },
    { 0 },
};

typedef struct slerp {
    double base, other;
} slerp;

typedef struct measuring {
    bal_arith arith;
    bal_lines lines;
    bal_sums norms[2];
    bal_sums dot;
    double *memory; /* of the three */
    double norm[2];
} measuring;

static void measuring_done(measuring *self)
{
    bal_sums_done(&self->norms[0]);
    bal_sums_done(&self->norms[1]);
    bal_sums_done(&self->dot);
    free(self->memory);
}

/* precise needs no units for the angle, so it takes one walk. */
static int norms_of_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    measuring *self = ctx;
    const double *a = tile->base, *b = tile->inputs[0];
    (void)err;

    bal_sums_add(&self->norms[0], tile->start, a, NULL, tile->n);
    bal_sums_add(&self->norms[1], tile->start, b, NULL, tile->n);
    if (!self->arith.mergekit)
        bal_sums_add(&self->dot, tile->start, a, b, tile->n);
    return 0;
}

static int dot_of_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    measuring *self = ctx;
    double *a = tile->scratch, *b = tile->scratch + tile->n;
    (void)err;

    bal_op_over(&self->arith, a, tile->base, self->norm[0], tile->n);
    bal_op_over(&self->arith, b, tile->inputs[0], self->norm[1], tile->n);
    bal_sums_add(&self->dot, tile->start, a, b, tile->n);
    return 0;
}

/* Of chunks' norms or dots, those of the whole. */
static double together(const measuring *self, const bal_sums *sums,
                       bal_fold fold)
{
    bal_sum all;
    double sum = 0;

    if (self->lines.count == 1)
        return sums->out[0];
    if (fold == BAL_FOLD_NORM) {
        bal_sum_init(&all, &self->arith, fold, self->lines.count);
        bal_sum_add(&all, sums->out, NULL, (size_t)self->lines.count);
        return bal_sum_end(&all);
    }
    for (size_t i = 0; i < self->lines.count; i++)
        sum = bal_arith_round1(&self->arith, sum + sums->out[i]);
    return sum;
}

static int measuring_init(measuring *self, const bal_tile *tile, bal_error *err)
{
    const bal_extent *extent = tile->extent;

    self->arith = bal_arith_single(tile->arith);
    self->lines = self->arith.mergekit ? bal_lines_runs(extent, CHUNK)
                                       : bal_lines_whole(extent);
    size_t each = (size_t)self->lines.count;
    self->memory = calloc(each, 3 * sizeof(*self->memory));
    if (!self->memory)
        return bal_fail_memory(err, "the norms of a tensor");
    int rc = bal_sums_init(&self->norms[0], &self->lines, &self->arith,
                           BAL_FOLD_NORM, self->memory, err);
    if (!rc)
        rc = bal_sums_init(&self->norms[1], &self->lines, &self->arith,
                           BAL_FOLD_NORM, self->memory + each, err);
    if (!rc)
        rc = bal_sums_init(&self->dot, &self->lines, &self->arith, BAL_FOLD_DOT,
                           self->memory + 2 * each, err);
    return rc;
}

static int measure(double *cosine, bal_walk *walk, const bal_tile *tile,
                   bal_error *err)
{
    BAL_LOCAL(measuring) self = { 0 };
    int rc = measuring_init(&self, tile, err);
    if (!rc)
        rc = bal_view_tiles(walk, norms_of_tile, &self, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < 2; i++) {
        bal_sums_end(&self.norms[i]);
        self.norm[i] = together(&self, &self.norms[i], BAL_FOLD_NORM);
        if (!(self.norm[i] > bal_arith_term(&self.arith, no_norm)))
            self.norm[i] = 1;
    }
    if (self.arith.mergekit)
        rc = bal_view_tiles(walk, dot_of_tile, &self, err);
    if (rc)
        return rc;
    bal_sums_end(&self.dot);
    *cosine = together(&self, &self.dot, BAL_FOLD_DOT);
    if (!self.arith.mergekit)
        *cosine = *cosine / self.norm[0] / self.norm[1];
    *cosine = bal_cosine(*cosine);
    return 0;
}

static slerp coefficients(const bal_arith *arith, double cosine, double t)
{
    double rest = bal_arith_round1(arith, 1 - t);

    if (fabs(cosine) > bal_arith_term(arith, on_a_line))
        return (slerp){ .base = rest, .other = t };
    double angle = bal_fn_acos(arith, cosine);
    double sine = bal_fn_sin(arith, angle);
    double a = bal_fn_sin(arith, bal_arith_round1(arith, rest * angle));
    double b = bal_fn_sin(arith, bal_arith_round1(arith, t * angle));
    return (slerp){
        .base = bal_arith_round1(arith, a / sine),
        .other = bal_arith_round1(arith, b / sine),
    };
}

int bal_slerp_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                      const bal_values *values, bal_error *err)
{
    bal_arith arith = bal_arith_single(tile->arith);
    double cosine;
    int rc = measure(&cosine, walk, tile, err);
    if (rc)
        return rc;

    slerp *self = malloc(sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "preparing a merge");
    double t = bal_arith_factor(&arith, bal_value_float(values, "t"));
    *self = coefficients(&arith, cosine, t);
    *out = self;
    return 0;
}

int bal_slerp_merge(double *out, const bal_tile *tile, const bal_values *values,
                    bal_error *err)
{
    const slerp *self = tile->prepared;
    bal_arith arith = bal_arith_single(tile->arith);
    (void)values;
    (void)err;

    bal_op_scale(&arith, out, tile->base, self->base, tile->n);
    bal_op_scale(&arith, tile->scratch, tile->inputs[0], self->other, tile->n);
    bal_op_add(&arith, out, out, tile->scratch, tile->n);
    bal_arith_round(tile->arith, out, tile->n);
    return 0;
}
