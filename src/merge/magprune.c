/* MAGPRUNE, the way of DELLA: within its row an element of rank k of n (from 0,
 * by magnitude) is kept with probability
 *
 *   density - epsilon + 2 epsilon k / (n - 1)
 *
 * Every rank is wanted; rows are short beside tensors. Magnitudes are counted
 * by their upper bits, as many as there are four bins an element for: where
 * that is all of them, an element's rank is how many came before it. Where it
 * is not, what shares a bin is sorted. */
#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/convert.h"
#include "kernel/kernels.h"
#include "merge/sparsify.h"

enum {
    DIGITS = 8,
    RADIX = 256,
    EACH = 2,   /* bins an element */
    MOVES = 16, /* an element, until sorting by digit is better */
    PIECE = 512,
};

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

static void count_digits(size_t counts[DIGITS][RADIX], const sorting *self)
{
    memset(counts, 0, DIGITS * sizeof(*counts));
    for (size_t k = 0; k < self->n; k++) {
        uint64_t bits = bits64(self->keys[0][k]);

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
        size_t to = counts[(bits64(keys[k]) >> (8 * d)) & 0xff]++;

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
        uint64_t first = (bits64(self->keys[from][0]) >> (8 * d)) & 0xff;

        if (counts[d][first] == self->n)
            continue;
        sort_digit(self, from, d, counts[d]);
        from = !from;
    }
    return self->places[from];
}

/* ---- counting ----------------------------------------------------------- */

/* A row in scratch of four rows: the elements in the first if they lie apart,
 * what is counted in the others. */
typedef struct counting {
    const double *x;
    size_t n;
    char *digits; /* n of 4 bytes each */
    char *order;  /* n of 4: elements by their digits */
    char *keys;   /* n of 8: theirs */
    char *counts; /* EACH * n of 4 */
    bool exact;   /* digits tell all */
} counting;

/* Bins, and the first place of each. */
static void count(counting *self)
{
    const bal_kernels *kernels = bal_kernels_use();
    uint64_t least, most, bits;
    size_t room = EACH * self->n - 2;
    unsigned shift = 0;

    kernels->extent(&least, &most, &bits, self->x, self->n);
    least = bal_min(least, most);
    unsigned loose = bits ? (unsigned)__builtin_ctzll(bits) : 0;
    while ((most - least) >> shift >= room)
        shift++;
    shift = shift > loose ? shift : loose;
    self->exact = shift == loose;
    kernels->digits(self->digits, self->x, least, shift, self->n);
    size_t bins = (size_t)((most - least) >> shift) + 2;
    memset(self->counts, 0, 4 * bins);
    for (size_t k = 0; k < self->n; k++) {
        uint32_t bin = load32(self->digits, k);
        store32(self->counts, bin, load32(self->counts, bin) + 1);
    }
    uint32_t at = 0;
    for (size_t bin = 0; bin < bins; bin++) {
        uint32_t here = load32(self->counts, bin);
        store32(self->counts, bin, at);
        at += here;
    }
}

/* The place of element k among those of its bin. */
static inline uint32_t take_place(const counting *self, size_t k)
{
    uint32_t bin = load32(self->digits, k);
    uint32_t place = load32(self->counts, bin);

    store32(self->counts, bin, place + 1);
    return place;
}

/* Put the element at a place where it belongs among those before it. Gives how
 * far it went. */
static size_t insert(const counting *self, size_t place)
{
    uint32_t moving = load32(self->order, place);
    uint64_t key = load64(self->keys, place);
    size_t to = place;

    for (; to > 0; to--) {
        uint64_t before = load64(self->keys, to - 1);
        if (before <= key)
            break;
        store64(self->keys, to, before);
        store32(self->order, to, load32(self->order, to - 1));
    }
    store64(self->keys, to, key);
    store32(self->order, to, moving);
    return place - to;
}

/* False: so many share a bin that it takes too long. */
static bool order(const counting *self)
{
    size_t left = MOVES * self->n;

    for (size_t k = 0; k < self->n; k++) {
        uint32_t place = take_place(self, k);

        store32(self->order, place, (uint32_t)k);
        store64(self->keys, place, bits64(fabs(self->x[k])));
    }
    for (size_t place = 1; place < self->n; place++) {
        if (load64(self->keys, place - 1) <= load64(self->keys, place))
            continue;
        size_t moved = insert(self, place);
        if (moved > left)
            return false;
        left -= moved;
    }
    return true;
}

/* out[k * step] = rank of x[k * step] */
static void sort_row(double *out, const double *x, size_t step,
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

static void rank_row(double *out, const double *x, size_t step,
                     const sorting *rows)
{
    char *digits = (char *)rows->keys[1];
    counting self = {
        .x = step > 1 ? rows->keys[0] : x,
        .n = rows->n,
        .digits = digits,
        .order = digits + 4 * rows->n,
        .keys = (char *)rows->places[1],
        .counts = (char *)rows->places[0],
    };

    for (size_t k = 0; step > 1 && k < rows->n; k++)
        rows->keys[0][k] = x[k * step];
    count(&self);
    if (self.exact) {
        for (size_t k = 0; k < self.n; k++)
            out[k * step] = (double)take_place(&self, k);
    } else if (order(&self)) {
        for (size_t rank = 0; rank < self.n; rank++)
            out[load32(self.order, rank) * step] = (double)rank;
    } else {
        sort_row(out, x, step, rows);
    }
}

/* ---- probabilities ------------------------------------------------------ */

/* From ranks, which BF16 counts to 256, in mergekit's steps. */
static void chances_of(double *x, const bal_sparse *self, size_t length,
                       size_t n)
{
    const bal_arith *work = &self->work;
    double last = bal_arith_round1(work, (double)(length - 1));
    double span = bal_arith_round1(work, bal_arith_round1(work, last + 1) - 1);

    for (; n; n -= bal_min(n, PIECE), x += PIECE) {
        size_t some = bal_min(n, PIECE);

        bal_arith_round(work, x, some);
        bal_op_plus(work, x, x, 1, some);
        bal_op_plus(work, x, x, -1, some);
        bal_op_over(work, x, x, span, some);
        bal_op_scale(work, x, x, 2, some);
        bal_op_scale(work, x, x, self->epsilon, some);
        bal_op_plus(work, x, x, self->density - self->epsilon, some);
    }
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
