/* MAGPRUNE, the way of DELLA: within its row an element of rank k of n (from 0,
 * by magnitude) is kept with probability
 *
 *   density - epsilon + 2 epsilon k / (n - 1)
 *
 * Every rank is wanted, so a row is sorted; rows are short beside tensors. */
#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/sparsify.h"

enum { DIGITS = 8, RADIX = 256 };

/* Elements of a row, and the distance from one to the next. */
static uint64_t row_length(const bal_extent *extent)
{
    return extent->rank < 2 ? extent->total : extent->shape[1];
}

static uint64_t row_step(const bal_extent *extent)
{
    uint64_t step = 1;

    for (uint32_t axis = 2; axis < extent->rank; axis++)
        step *= extent->shape[axis];
    return step;
}

uint64_t bal_magprune_align(const bal_extent *extent)
{
    return bal_max(row_length(extent) * row_step(extent), 1);
}

int bal_magprune_check(double density, double epsilon, bal_error *err)
{
    if (density <= 0 || density >= 1 ||
        (density - epsilon > 0 && density + epsilon < 1))
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "density %g with epsilon %g: probabilities from %g to %g "
                    "do not all lie between 0 and 1",
                    density, epsilon, density - epsilon, density + epsilon);
}

int bal_magprune_plan(bal_sparse *self, const bal_tile *tile, size_t input,
                      const bal_values *values, bal_error *err)
{
    self->epsilon = bal_value_input(values, input, "epsilon");
    int rc = bal_magprune_check(self->density, self->epsilon, err);
    if (rc)
        return rc;

    if (row_length(tile->extent) > 1 || !self->work.mergekit)
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "rows of one element have no order to keep them by");
}

/* ---- sorting ------------------------------------------------------------ */

/* Magnitudes of a row and where they are in it, twice: from one to the other.
 */
typedef struct sorting {
    double *keys[2], *places[2];
    size_t n;
} sorting;

/* In the order of magnitudes; NaN is the largest. */
static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static void count_digits(size_t counts[DIGITS][RADIX], const sorting *self)
{
    memset(counts, 0, DIGITS * sizeof(*counts));
    for (size_t k = 0; k < self->n; k++) {
        uint64_t bits = bits_of(self->keys[0][k]);

        for (unsigned d = 0; d < DIGITS; d++)
            counts[d][(bits >> (8 * d)) & 0xff]++;
    }
}

static void sort_digit(const sorting *self, unsigned from, unsigned d,
                       size_t counts[RADIX])
{
    const double *keys = self->keys[from];
    size_t at = 0;

    for (size_t value = 0; value < RADIX; value++) {
        size_t count = counts[value];
        counts[value] = at;
        at += count;
    }
    for (size_t k = 0; k < self->n; k++) {
        size_t to = counts[(bits_of(keys[k]) >> (8 * d)) & 0xff]++;

        self->keys[!from][to] = keys[k];
        self->places[!from][to] = self->places[from][k];
    }
}

/* Ascending, equal ones in their order: by digit, the least first. Where all
 * have the same digit (the lower ones of BF16) nothing is moved. */
static const double *sort(const sorting *self)
{
    size_t counts[DIGITS][RADIX];
    unsigned from = 0;

    count_digits(counts, self);
    for (unsigned d = 0; d < DIGITS; d++) {
        uint64_t first = (bits_of(self->keys[from][0]) >> (8 * d)) & 0xff;

        if (counts[d][first] == self->n)
            continue;
        sort_digit(self, from, d, counts[d]);
        from = !from;
    }
    return self->places[from];
}

/* out[k * step] = rank of x[k * step] */
static void rank_row(double *out, const double *x, size_t step,
                     const sorting *rows)
{
    for (size_t k = 0; k < rows->n; k++) {
        rows->keys[0][k] = fabs(x[k * step]);
        rows->places[0][k] = (double)k;
    }
    const double *places = sort(rows);
    for (size_t rank = 0; rank < rows->n; rank++)
        out[(size_t)places[rank] * step] = (double)rank;
}

/* ---- probabilities ------------------------------------------------------ */

/* From ranks, which BF16 counts to 256, in mergekit's steps. */
static void chances_of(double *x, const bal_sparse *self, size_t length,
                       size_t n)
{
    const bal_arith *work = &self->work;
    double last = bal_arith_round1(work, (double)(length - 1));
    double span = bal_arith_round1(work, bal_arith_round1(work, last + 1) - 1);

    bal_arith_round(work, x, n);
    bal_op_plus(work, x, x, 1, n);
    bal_op_plus(work, x, x, -1, n);
    bal_op_over(work, x, x, span, n);
    bal_op_scale(work, x, x, 2, n);
    bal_op_scale(work, x, x, self->epsilon, n);
    bal_op_plus(work, x, x, self->density - self->epsilon, n);
}

void bal_magprune_chances(double *out, const bal_sparse *self,
                          const bal_tile *tile, size_t i)
{
    size_t length = (size_t)row_length(tile->extent);
    size_t step = (size_t)row_step(tile->extent);
    double *scratch = tile->scratch;
    sorting rows = {
        .keys = { scratch, scratch + tile->n },
        .places = { scratch + 2 * tile->n, scratch + 3 * tile->n },
        .n = length,
    };

    if (length < 2) {
        for (size_t k = 0; k < tile->n; k++)
            out[k] = self->density;
        return;
    }
    for (size_t at = 0; at < tile->n; at += length * step) {
        for (size_t k = at; k < at + step; k++)
            rank_row(out + k, tile->inputs[i] + k, step, &rows);
    }
    chances_of(out, self, length, tile->n);
}
