/* arXiv:2403.19522, in mergekit's steps. The cosines of a pair are summed as a
 * row of a table that has a column for each vector: so torch averages them. */
#include "merge/model_stock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/vectors.h"

static const double least_norms = 1e-6;
static const double opposite = 1e-6;

const bal_param bal_model_stock_params[] = {
    {
        .name = "filter_wise",
        .type = BAL_PARAM_BOOL,
        .fallback = "false",
        .low = 0,
        .high = 1,
        .mergekit = "filter_wise",
        .help = "decide for each row, not for the tensor",
    },
    { 0 },
};

typedef struct model_stock {
    bal_lines lines;
    double *average, *base; /* factors of each vector */
    double numbers[];
} model_stock;

typedef struct measuring {
    bal_pairs pairs;
    bal_sums mean;   /* of the cosines */
    double *norms;   /* of each input's vectors */
    double *cosines; /* of a pair */
    uint64_t seen;   /* pairs */
} measuring;

static void measuring_done(measuring *self)
{
    bal_sums_done(&self->mean);
    free(self->norms);
}

static int add_pair(void *ctx, size_t i, size_t j, const double *dots,
                    bal_error *err)
{
    measuring *self = ctx;
    const bal_arith *arith = self->pairs.arith;
    size_t each = (size_t)self->pairs.lines.count;
    const double *first = self->norms + i * each;
    const double *second = self->norms + j * each;
    double least = bal_arith_term(arith, least_norms);
    (void)err;

    for (size_t k = 0; k < each; k++) {
        double norms = bal_arith_round1(arith, first[k] * second[k]);
        if (norms < least)
            norms = least;
        self->cosines[k] = bal_cosine(bal_arith_round1(arith, dots[k] / norms));
    }
    bal_sums_add(&self->mean, self->seen++ * each, self->cosines, NULL, each);
    return 0;
}

static int measuring_init(measuring *self, const bal_tile *tile,
                          const bal_lines *lines, double *out, bal_error *err)
{
    uint64_t pairs = bal_pairs_count(tile->count);
    uint64_t shape[2] = { pairs, lines->count };
    uint64_t size;

    if (bal_mul(&size, lines->count, (tile->count + 1) * sizeof(double)))
        self->norms = malloc((size_t)size);
    if (!self->norms)
        return bal_fail_memory(err, "the norms of a tensor");
    self->cosines = self->norms + tile->count * (size_t)lines->count;
    self->pairs = (bal_pairs){
        .lines = *lines,
        .arith = tile->arith,
        .count = tile->count,
        .norms = self->norms,
        .fn = add_pair,
        .ctx = self,
    };
    bal_extent table = { .rank = 2, .shape = shape, .row = lines->count };
    if (!bal_mul(&table.total, pairs, lines->count))
        return bal_fail_memory(err, "the angles of a tensor");
    bal_lines columns = bal_lines_across(&table);
    int rc = bal_sums_init(&self->mean, &columns, tile->arith, BAL_FOLD_SUM,
                           out, err);
    self->mean.unrounded = true;
    return rc;
}

/* The average's factor, of the mean cosine; *broken where inputs are so opposed
 * that it says nothing. */
static double ratio(const bal_arith *arith, double cosine, size_t count,
                    bool *broken)
{
    double n = (double)count;
    double over = bal_arith_round1(arith, (n - 1) * cosine);
    double under = bal_arith_round1(arith, 1 + over);

    *broken = fabs(under) < opposite;
    if (*broken)
        return 0;
    return bal_arith_round1(arith, bal_arith_round1(arith, n * cosine) / under);
}

static int measure(model_stock *of, bal_walk *walk, const bal_tile *tile,
                   bal_error *err)
{
    const bal_arith *arith = tile->arith;
    double pairs = (double)bal_pairs_count(tile->count);
    BAL_LOCAL(measuring) self = { 0 };
    int rc = measuring_init(&self, tile, &of->lines, of->average, err);
    if (!rc)
        rc = bal_pairs_walk(&self.pairs, walk, err);
    if (rc)
        return rc;

    bal_sums_end(&self.mean);
    bool told = false;
    for (size_t k = 0; k < of->lines.count; k++) {
        double mean = bal_arith_f32(arith, of->average[k] / pairs);
        bool broken;
        double t =
            ratio(arith, bal_arith_round1(arith, mean), tile->count, &broken);
        if (broken && !told)
            bal_warn("merge",
                     "tensor=%s method=model_stock degenerate=opposite",
                     tile->tensor);
        told = told || broken;
        of->average[k] = t;
        of->base[k] = bal_arith_round1(arith, 1 - t);
    }
    return 0;
}

int bal_model_stock_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                            const bal_values *values, bal_error *err)
{
    bal_lines lines = bal_value_bool(values, "filter_wise")
                          ? bal_lines_rows(tile->extent)
                          : bal_lines_whole(tile->extent);
    model_stock *self = NULL;
    uint64_t size;

    *out = NULL;
    if (tile->count < 2)
        return 0;
    if (bal_mul(&size, lines.count, 2 * sizeof(double)) &&
        bal_add(&size, size, sizeof(*self)))
        self = malloc((size_t)size);
    if (!self)
        return bal_fail_memory(err, "preparing a merge");
    self->lines = lines;
    self->average = self->numbers;
    self->base = self->average + lines.count;
    int rc = measure(self, walk, tile, err);
    if (rc) {
        free(self);
        return rc;
    }
    *out = self;
    return 0;
}

int bal_model_stock_merge(double *out, const bal_tile *tile,
                          const bal_values *values, bal_error *err)
{
    const model_stock *self = tile->prepared;
    const bal_arith *arith = tile->arith;
    double *base = tile->scratch;
    (void)values;
    (void)err;

    /* Fewer than two cannot agree or disagree. */
    if (!self) {
        memcpy(out, tile->base, tile->n * sizeof(*out));
        return 0;
    }
    memcpy(out, tile->inputs[0], tile->n * sizeof(*out));
    for (size_t i = 1; i < tile->count; i++)
        bal_op_add(arith, out, out, tile->inputs[i], tile->n);
    bal_op_over(arith, out, out, (double)tile->count, tile->n);
    bal_lines_scale(&self->lines, tile, out, out, self->average);
    bal_lines_scale(&self->lines, tile, base, tile->base, self->base);
    bal_op_add(arith, out, out, base, tile->n);
    return 0;
}
