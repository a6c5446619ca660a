/* The mean of a tensor's rows, which rows beyond the vocabulary are. torch adds
 * rows up column by column, in chains (merge/arith_sum.h); here they come by in
 * their order once, and each chain keeps its levels. precise: one sum in
 * double, row upon row. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/arith_sum.h"
#include "merge/vocab_inside.h"

enum { STEP = 64 * 1024 }; /* elements that are read at once, or one row */

/* Some of the columns, summed in as many chains: row i goes to chain i mod
 * count. */
typedef struct chains {
    const bal_arith *arith;
    double *levels; /* count times BAL_SUM_LEVELS times n */
    size_t count;
    size_t first, n; /* columns */
    uint64_t each;   /* rows of a chain; what is left over comes last */
    unsigned power;
} chains;

static void add(const bal_arith *arith, double *to, const double *x, size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();

    kernels->add_f64(to, to, x, n);
    if (arith->mergekit && arith->work != BAL_F64)
        kernels->round[BAL_F32](to, n);
}

/* The first column that torch does not take by blocks; see bal_op_sum. */
static size_t blocks_end(const bal_arith *arith, size_t n)
{
    static const struct {
        size_t vector, block;
    } rows[BAL_DTYPES] = {
        [BAL_BF16] = { 16, 32 },
        [BAL_F16] = { 16, 32 },
        [BAL_F32] = { 8, 32 },
        [BAL_F64] = { 4, 16 },
    };
    size_t block = 4;

    if (!arith->mergekit)
        return n;
    if (rows[arith->work].block && n >= rows[arith->work].vector)
        block = rows[arith->work].block;
    return n - n % block;
}

static int chains_init(chains *self, const bal_arith *arith, uint64_t rows,
                       bal_error *err)
{
    self->arith = arith;
    self->each = rows / self->count;
    self->power = arith->mergekit ? bal_sum_power(self->each) : 64;
    self->levels = calloc(self->count * BAL_SUM_LEVELS * self->n + 1,
                          sizeof(*self->levels));
    return self->levels ? 0 : bal_fail_memory(err, "a mean of rows");
}

static void chains_done(chains *self)
{
    free(self->levels);
}

static double *level(const chains *self, size_t chain, size_t j)
{
    return self->levels + (chain * BAL_SUM_LEVELS + j) * self->n;
}

static void fold(const chains *self)
{
    for (size_t k = 0; k < self->count; k++) {
        for (size_t j = 1; j < BAL_SUM_LEVELS; j++)
            add(self->arith, level(self, k, 0), level(self, k, j), self->n);
    }
}

static void add_row(const chains *self, const double *row, uint64_t i)
{
    uint64_t whole = self->each * self->count;
    size_t chain = i < whole ? (size_t)(i % self->count) : 0;

    if (!self->n)
        return;
    if (i == whole)
        fold(self);
    add(self->arith, level(self, chain, 0), row + self->first, self->n);
    if (i >= whole || self->power >= 64)
        return;
    unsigned carries = bal_sum_carries(i / self->count + 1, self->power);
    for (unsigned j = 0; j < carries; j++) {
        add(self->arith, level(self, chain, j + 1), level(self, chain, j),
            self->n);
        memset(level(self, chain, j), 0, self->n * sizeof(double));
    }
}

static void end(double *out, const chains *self, uint64_t rows)
{
    if (!self->n)
        return;
    if (self->each * self->count == rows)
        fold(self);
    for (size_t k = 1; k < self->count; k++)
        add(self->arith, level(self, 0, 0), level(self, k, 0), self->n);
    memcpy(out + self->first, self->levels, self->n * sizeof(*out));
}

/* ---- reading ------------------------------------------------------------- */

typedef void row_fn(void *ctx, const double *row, uint64_t i);

/* Every row of the vocabulary, in order. */
static int each_row(const bal_vocab *self, const bal_row_tensor *tensor,
                    size_t input, row_fn *fn, void *ctx, bal_error *err)
{
    size_t width = (size_t)tensor->width;
    size_t most = (size_t)bal_max(STEP / width, 1);
    size_t bytes = bal_dtype_bits(tensor->dtype) / 8;
    double *wide = malloc(width * sizeof(*wide));
    uint8_t *raw = malloc(most * width * bytes);
    int rc = wide && raw ? 0 : bal_fail_memory(err, "a mean of rows");

    for (uint64_t row = 0; row < self->rows && !rc; row += most) {
        size_t some = (size_t)bal_min(most, self->rows - row);
        rc = bal_vocab_read(raw, self, tensor, input, row * width, some * width,
                            err);
        for (size_t i = 0; i < some && !rc; i++) {
            bal_kernels_use()->to_f64[tensor->dtype](
                wide, raw + i * width * bytes, width);
            fn(ctx, wide, row + i);
        }
    }
    free(wide);
    free(raw);
    return rc;
}

typedef struct columns {
    chains blocks; /* in one chain */
    chains rest;   /* in four */
} columns;

static void add_columns(void *ctx, const double *row, uint64_t i)
{
    const columns *self = ctx;

    add_row(&self->blocks, row, i);
    add_row(&self->rest, row, i);
}

static int sum_columns(double *out, const bal_vocab *self,
                       const bal_row_tensor *tensor, size_t input,
                       bal_error *err)
{
    bal_arith arith = { self->mergekit, tensor->dtype };
    size_t width = (size_t)tensor->width;
    size_t first = blocks_end(&arith, width);
    columns all = {
        .blocks = { .count = 1, .n = first },
        .rest = { .count = BAL_SUM_CHAINS, .first = first, .n = width - first },
    };
    int rc = chains_init(&all.blocks, &arith, self->rows, err);

    if (!rc)
        rc = chains_init(&all.rest, &arith, self->rows, err);
    if (!rc)
        rc = each_row(self, tensor, input, add_columns, &all, err);
    if (!rc) {
        end(out, &all.blocks, self->rows);
        end(out, &all.rest, self->rows);
    }
    chains_done(&all.blocks);
    chains_done(&all.rest);
    return rc;
}

static void add_single(void *ctx, const double *row, uint64_t i)
{
    (void)i;
    bal_sum_add(ctx, row, NULL, 1);
}

/* Of one column: a run of numbers. */
static int sum_single(double *out, const bal_vocab *self,
                      const bal_row_tensor *tensor, size_t input,
                      bal_error *err)
{
    bal_arith arith = { self->mergekit, tensor->dtype };
    bal_sum sum;

    bal_sum_init(&sum, &arith, BAL_FOLD_SUM, self->rows);
    int rc = each_row(self, tensor, input, add_single, &sum, err);
    *out = bal_sum_f32(&sum);
    return rc;
}

int bal_vocab_pad(void **out, const bal_vocab *self,
                  const bal_row_tensor *tensor, size_t input, bal_error *err)
{
    bal_arith work = { self->mergekit, tensor->dtype };
    size_t width = (size_t)tensor->width;
    double *sum = calloc(width, sizeof(*sum));
    void *row = malloc(width * sizeof(double));
    int rc = sum && row ? 0 : bal_fail_memory(err, "a mean of rows");

    if (!rc)
        rc = width == 1 ? sum_single(sum, self, tensor, input, err)
                        : sum_columns(sum, self, tensor, input, err);
    if (!rc) {
        bal_op_over(&work, sum, sum, (double)self->rows, width);
        for (size_t i = 0; i < width; i++)
            sum[i] = sum[i] != sum[i] ? __builtin_nan("") : sum[i];
        bal_kernels_use()->from_f64[tensor->dtype](row, sum, width);
        *out = row;
        row = NULL;
    }
    free(sum);
    free(row);
    return rc;
}
