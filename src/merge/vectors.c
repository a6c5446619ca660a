/* A tensor streams by once for each thing that is asked of it, so a sum for
 * every row or column is kept at once and nothing else is. */
#include "merge/vectors.h"

#include <math.h>
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"

enum {
    LEVELS = 4,
    CHAINS = 4,
    AT_ONCE = 32, /* columns, of torch's vectors; of few columns 4 */
    AT_ONCE_FEW = 4,
    FEW = 8,
};

/* ---- cutting ------------------------------------------------------------ */

bal_lines bal_lines_runs(const bal_extent *extent, uint64_t length)
{
    uint64_t most = bal_max(bal_min(length, extent->total), 1);
    uint64_t count = extent->total / most + (extent->total % most != 0);

    return (bal_lines){
        .total = extent->total,
        .count = bal_max(count, 1),
        .length = most,
    };
}

bal_lines bal_lines_whole(const bal_extent *extent)
{
    return bal_lines_runs(extent, extent->total);
}

bal_lines bal_lines_rows(const bal_extent *extent)
{
    return bal_lines_runs(extent, extent->row);
}

bal_lines bal_lines_across(const bal_extent *extent)
{
    uint64_t length = extent->rank ? extent->shape[0] : 1;

    /* A single column is a run. */
    if (extent->rank < 2 || length < 1 || length >= extent->total)
        return bal_lines_whole(extent);
    return (bal_lines){
        .total = extent->total,
        .count = extent->total / length,
        .length = length,
        .across = true,
    };
}

bal_stretch bal_lines_at(const bal_lines *self, uint64_t start, size_t n)
{
    uint64_t at = self->across ? start % self->count : start / self->length;
    uint64_t left =
        self->across ? self->count - at : self->length - start % self->length;

    return (bal_stretch){ .vector = (size_t)at, .n = bal_min(n, left) };
}

typedef void scale_fn(const bal_arith *self, double *out, const double *a,
                      double s, size_t n);
typedef void product_fn(const bal_arith *self, double *out, const double *a,
                        const double *b, size_t n);

void bal_lines_scale(const bal_lines *self, const bal_tile *tile, double *out,
                     const double *a, const double *s)
{
    for (size_t at = 0; at < tile->n;) {
        bal_stretch part = bal_lines_at(self, tile->start + at, tile->n - at);

        if (self->across)
            bal_op_mul(tile->arith, out + at, a + at, s + part.vector, part.n);
        else
            bal_op_scale(tile->arith, out + at, a + at, s[part.vector], part.n);
        at += part.n;
    }
}

void bal_lines_over(const bal_lines *self, const bal_tile *tile, double *out,
                    const double *a, const double *s)
{
    for (size_t at = 0; at < tile->n;) {
        bal_stretch part = bal_lines_at(self, tile->start + at, tile->n - at);

        if (self->across)
            bal_op_div(tile->arith, out + at, a + at, s + part.vector, part.n);
        else
            bal_op_over(tile->arith, out + at, a + at, s[part.vector], part.n);
        at += part.n;
    }
}

/* ---- sums --------------------------------------------------------------- */

/* How many values go to a level before they go on to the next, as a power of
 * 2, of a chain of m values. */
static unsigned level_power(uint64_t m)
{
    unsigned bits = 0;

    while (bits < 63 && (UINT64_C(1) << bits) < m)
        bits++;
    return (unsigned)bal_max(4, bits / 4);
}

int bal_sums_init(bal_sums *self, const bal_lines *lines,
                  const bal_arith *arith, bal_fold fold, double *out,
                  bal_error *err)
{
    *self = (bal_sums){
        .lines = *lines,
        .arith = arith,
        .fold = fold,
        .out = out,
        .block = lines->count,
        .power = level_power(lines->length),
        .chains_power = level_power(lines->length / CHAINS),
    };
    if (!lines->across) {
        bal_sum_init(&self->run, arith, fold,
                     bal_min(lines->length, lines->total));
        return 0;
    }
    /* Norms are summed one after another. */
    if (arith->mergekit && fold != BAL_FOLD_NORM)
        self->block = lines->count >= FEW
                          ? lines->count - lines->count % AT_ONCE
                          : lines->count - lines->count % AT_ONCE_FEW;
    size_t left = (size_t)(lines->count - self->block);
    self->levels = calloc((size_t)lines->count, LEVELS * sizeof(double));
    self->chains = calloc(left + 1, (size_t)LEVELS * CHAINS * sizeof(double));
    if (!self->levels || !self->chains)
        return bal_fail_memory(err, "summing a tensor's columns");
    return 0;
}

void bal_sums_done(bal_sums *self)
{
    free(self->levels);
    free(self->chains);
    self->levels = NULL;
    self->chains = NULL;
}

static double term_of(const bal_sums *self, const double *x, const double *y,
                      size_t k)
{
    if (y)
        return bal_arith_round1(self->arith, x[k] * y[k]);
    if (self->fold == BAL_FOLD_NORM)
        return bal_arith_f32(self->arith, x[k] * x[k]);
    return self->fold == BAL_FOLD_ABS ? fabs(x[k]) : x[k];
}

/* Add the at-th (from 1) of a chain. Levels lie stride apart. */
static void chain_add(const bal_arith *arith, double *levels, size_t stride,
                      double x, uint64_t at, unsigned power)
{
    levels[0] = bal_arith_f32(arith, levels[0] + x);
    for (unsigned i = 1; i < LEVELS; i++) {
        if (at % (UINT64_C(1) << (power * i)))
            return;
        levels[i * stride] =
            bal_arith_f32(arith, levels[i * stride] + levels[(i - 1) * stride]);
        levels[(i - 1) * stride] = 0;
    }
}

/* The chain's sum, which stays in its first level. */
static double chain_end(const bal_arith *arith, double *levels, size_t stride)
{
    for (unsigned i = 1; i < LEVELS; i++) {
        levels[0] = bal_arith_f32(arith, levels[0] + levels[i * stride]);
        levels[i * stride] = 0;
    }
    return levels[0];
}

/* Row `row` of a column that four chains share; what is left over when rows are
 * taken by four goes to the first when that is complete. */
static void four_add(const bal_sums *self, double *chains, double x,
                     uint64_t row)
{
    uint64_t each = self->lines.length / CHAINS;
    double *chain = chains + row % CHAINS * LEVELS;

    if (row < each * CHAINS) {
        chain_add(self->arith, chain, 1, x, row / CHAINS + 1,
                  self->chains_power);
        return;
    }
    if (row == each * CHAINS)
        chain_end(self->arith, chains, 1);
    chains[0] = bal_arith_f32(self->arith, chains[0] + x);
}

static void add_across(bal_sums *self, const bal_stretch *part, uint64_t row,
                       const double *x, const double *y)
{
    size_t stride = (size_t)self->lines.count;
    bool plain = !self->arith->mergekit || self->fold == BAL_FOLD_NORM;

    for (size_t k = 0; k < part->n; k++) {
        size_t column = part->vector + k;
        double term = term_of(self, x, y, k);
        double *level = self->levels + column;

        if (plain)
            *level = bal_arith_f32(self->arith, *level + term);
        else if (column < self->block)
            chain_add(self->arith, level, stride, term, row + 1, self->power);
        else
            four_add(self,
                     self->chains + (column - self->block) * LEVELS * CHAINS,
                     term, row);
    }
}

static void run_end(bal_sums *self, size_t vector)
{
    self->out[vector] =
        self->unrounded ? bal_sum_f32(&self->run) : bal_sum_end(&self->run);
}

static void add_along(bal_sums *self, uint64_t start, const bal_stretch *part,
                      const double *x, const double *y)
{
    uint64_t first = part->vector * self->lines.length;
    uint64_t total = bal_min(self->lines.length, self->lines.total - first);

    if (start == first)
        bal_sum_init(&self->run, self->arith, self->fold, total);
    bal_sum_add(&self->run, x, y, part->n);
    if (start + part->n == first + total)
        run_end(self, part->vector);
}

void bal_sums_add(bal_sums *self, uint64_t start, const double *x,
                  const double *y, size_t n)
{
    for (size_t at = 0; at < n;) {
        bal_stretch part = bal_lines_at(&self->lines, start + at, n - at);
        const double *other = y ? y + at : NULL;

        if (self->lines.across)
            add_across(self, &part, (start + at) / self->lines.count, x + at,
                       other);
        else
            add_along(self, start + at, &part, x + at, other);
        at += part.n;
    }
}

static double column_end(bal_sums *self, size_t column)
{
    double sum;

    if (column < self->block) {
        sum = chain_end(self->arith, self->levels + column,
                        (size_t)self->lines.count);
    } else {
        double *chains =
            self->chains + (column - self->block) * LEVELS * CHAINS;

        sum = chain_end(self->arith, chains, 1);
        for (size_t i = 1; i < CHAINS; i++)
            sum = bal_arith_f32(
                self->arith,
                sum + chain_end(self->arith, chains + i * LEVELS, 1));
    }
    if (self->fold == BAL_FOLD_NORM)
        sum = bal_arith_f32(self->arith, sqrt(sum));
    return self->unrounded ? sum : bal_arith_round1(self->arith, sum);
}

void bal_sums_end(bal_sums *self)
{
    if (self->lines.across) {
        for (size_t i = 0; i < self->lines.count; i++)
            self->out[i] = column_end(self, i);
        return;
    }
    /* Of nothing, no element came to end it. */
    if (!self->lines.total)
        run_end(self, 0);
}

double bal_cosine(double x)
{
    if (x < -1)
        return -1;
    return x > 1 ? 1 : x;
}
