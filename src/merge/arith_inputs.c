/* Sums over inputs, column by column. torch takes 32 columns at once (16 of
 * F64) and adds row upon row; what columns are left it takes alone or by
 * vectors, four rows at a time. */
#include <string.h>

#include "core/arith.h"
#include "merge/arith.h"
#include "merge/arith_sum.h"

enum { PIECE = 512, SHORT = 16 };

/* The rows of some columns of a few inputs, and where torch changes its way. */
typedef struct columns {
    const bal_arith *arith;
    const double *const *in;
    size_t first, stride, rows; /* in[first], in[first + stride], … */
    size_t at, n;               /* n <= PIECE columns from here on */
} columns;

/* What sums are rounded to while they run. */
static bal_dtype single_of(const bal_arith *arith)
{
    return arith->mergekit && arith->work != BAL_F64 ? BAL_F32 : BAL_F64;
}

static void add(const bal_arith *arith, double *to, const double *x, size_t n)
{
    bal_kernels_use()->op[single_of(arith)](BAL_OP_ADD, to, to, x, n);
}

static void chain(double *out, const columns *c)
{
    double levels[BAL_SUM_LEVELS][PIECE];
    unsigned power = bal_sum_power(c->rows);

    memset(levels, 0, sizeof(levels));
    for (size_t i = 0; i < c->rows; i++) {
        add(c->arith, levels[0], c->in[c->first + i * c->stride] + c->at, c->n);
        unsigned carries = bal_sum_carries(i + 1, power);
        for (unsigned j = 0; j < carries; j++) {
            add(c->arith, levels[j + 1], levels[j], c->n);
            memset(levels[j], 0, sizeof(levels[j]));
        }
    }
    for (size_t j = 1; j < BAL_SUM_LEVELS; j++)
        add(c->arith, levels[0], levels[j], c->n);
    memcpy(out, levels[0], c->n * sizeof(*out));
}

static void four(double *out, const columns *all)
{
    double sums[BAL_SUM_CHAINS][PIECE];
    size_t whole = all->rows / BAL_SUM_CHAINS * BAL_SUM_CHAINS;

    for (size_t k = 0; k < BAL_SUM_CHAINS; k++) {
        columns some = *all;
        some.first = k;
        some.stride = BAL_SUM_CHAINS;
        some.rows = all->rows / BAL_SUM_CHAINS;
        chain(sums[k], &some);
    }
    for (size_t i = whole; i < all->rows; i++)
        add(all->arith, sums[0], all->in[i] + all->at, all->n);
    for (size_t k = 1; k < BAL_SUM_CHAINS; k++)
        add(all->arith, sums[0], sums[k], all->n);
    memcpy(out, sums[0], all->n * sizeof(*out));
}

/* In the order of inputs; a short chain is no other. Rounded at once. */
static void plain(double *out, const columns *c)
{
    bool f32 = single_of(c->arith) == BAL_F32;
    bal_columns which = { .count = c->rows, .at = c->at, .n = c->n };

    if (c->rows)
        bal_kernels_use()->rows[f32 ? c->arith->work : BAL_F64](out, c->in,
                                                                &which);
    else
        memset(out, 0, c->n * sizeof(*out));
}

/* A tensor of one element: its column is a contiguous run to torch. */
static void single(double *out, const columns *c)
{
    bal_sum sum;

    bal_sum_init(&sum, c->arith, BAL_FOLD_SUM, c->rows);
    for (size_t i = 0; i < c->rows; i++)
        bal_sum_add(&sum, c->in[i] + c->at, NULL, 1);
    *out = bal_sum_f32(&sum);
}

/* The first column of the tensor that is not one of a block. Tensors shorter
 * than one of torch's vectors have blocks of four. */
static uint64_t blocks_end(const bal_arith *arith, uint64_t total)
{
    static const struct {
        uint64_t vector, block;
    } rows[BAL_DTYPES] = {
        [BAL_BF16] = { 16, 32 },
        [BAL_F16] = { 16, 32 },
        [BAL_F32] = { 8, 32 },
        [BAL_F64] = { 4, 16 },
    };
    uint64_t block = 4;

    if (!arith->mergekit)
        return total;
    if (rows[arith->work].block && total >= rows[arith->work].vector)
        block = rows[arith->work].block;
    return total - total % block;
}

static bool in_order(const columns *c, bool block)
{
    return !c->arith->mergekit || c->rows <= BAL_SUM_CHAINS ||
           (block && c->rows < SHORT);
}

static void some_columns(double *out, const columns *c, bool block,
                         uint64_t total)
{
    if (in_order(c, block)) {
        plain(out, c);
        return;
    }
    if (total == 1)
        single(out, c);
    else if (block)
        chain(out, c);
    else
        four(out, c);
    bal_arith_round(c->arith, out, c->n);
}

void bal_op_sum(const bal_arith *self, double *out, const double *const *in,
                size_t count, const bal_range *range)
{
    uint64_t end = blocks_end(self, range->total);

    for (size_t at = 0; at < range->n;) {
        uint64_t column = range->start + at;
        uint64_t left = range->n - at;
        bool block = column < end;
        if (block)
            left = bal_min(left, end - column);
        columns c = { .arith = self,
                      .in = in,
                      .stride = 1,
                      .rows = count,
                      .at = at,
                      .n = (size_t)bal_min(left, PIECE) };
        some_columns(out + at, &c, block, range->total);
        at += c.n;
    }
}
