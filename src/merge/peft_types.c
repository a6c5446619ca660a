/* What is computed of an element; which factors are merged with what weights is
 * in peft_factors.c. */
#include "merge/peft_types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/rows.h"
#include "merge/values.h"

#define WEIGHT                                                                 \
    {                                                                          \
        .name = BAL_WEIGHT, .type = BAL_PARAM_FLOAT, .fallback = "1",          \
        .low = -HUGE_VAL, .high = HUGE_VAL, .per_input = true,                 \
        .help = "how much of an input goes in",                                \
    }
#define DENSITY                                                                \
    {                                                                          \
        .name = "density", .type = BAL_PARAM_FLOAT, .fallback = "1", .low = 0, \
        .high = HUGE_VAL, .per_input = true,                                   \
        .help = "part of a difference's elements that is kept, all from 1 on", \
    }

const bal_param bal_peft_linear_params[] = { WEIGHT, { 0 } };

const bal_param bal_peft_prune_params[] = { WEIGHT, DENSITY, { 0 } };

static const char majority[] = "majority_sign_method";

const bal_param bal_peft_ties_params[] = {
    WEIGHT,
    DENSITY,
    {
        .name = majority,
        .type = BAL_PARAM_NAME,
        .fallback = "total",
        .choices = "total|frequency",
        .help = "whose sign counts: of the sum, or of most",
    },
    { 0 },
};

static int plan_topk(bal_sparse *self, const bal_tile *tile, size_t input,
                     const bal_values *values, bal_error *err)
{
    uint64_t n = tile->extent->total;
    int rc = bal_sparsify_magnitude.plan(self, tile, input, values, err);

    if (self->density * (double)n < 1)
        self->kept = BAL_KEPT_NONE;
    return rc;
}

static void keep_topk(double *mask, const bal_sparse *self,
                      const bal_tile *tile, size_t i)
{
    bal_sparsify_magnitude.keep(mask, self, tile, i);
}

const bal_sparsify bal_sparsify_topk = { .plan = plan_topk, .keep = keep_topk };

/* "If there is only one adapter, we can only use linear merging." */
static bool is_linear(const bal_values *values)
{
    return values->count == 1;
}

int bal_peft_prepare(void **out, bal_walk *walk, const bal_tile *tile,
                     const bal_values *values, bal_error *err)
{
    bal_sparse *sparse = NULL;
    int rc = tile->method->sparsify && !is_linear(values)
                 ? bal_sparse_find(&sparse, walk, tile, values, err)
                 : 0;

    if (!rc)
        *out = sparse;
    return rc;
}

/* ---- merging ------------------------------------------------------------ */

static double *row_at(const bal_tile *tile, size_t r)
{
    return tile->scratch + r * tile->n;
}

/* What is kept of an input: in its row, or the input itself. */
static const double *take(const bal_tile *tile, size_t i)
{
    double *row = row_at(tile, BAL_PEFT_ROWS + i);
    const bal_sparse *sparse = tile->prepared;

    if (!sparse)
        return tile->inputs[i];
    const double *kept = bal_sparse_take(row, &sparse[i], tile, i);
    bool drawn = tile->method->info.flags & BAL_METHOD_SEEDED;
    if (!drawn || sparse[i].kept != BAL_KEPT_SOME)
        return kept;
    bal_op_over(tile->arith, row, kept, sparse[i].density, tile->n);
    return row;
}

/* The sign that most have, in each element; +1 or -1. */
static void elect(double *sign, const double *const *kept, const bal_tile *tile,
                  bool frequency)
{
    for (size_t k = 0; k < tile->n; k++) {
        double sum = 0;
        for (size_t i = 0; i < tile->count; i++) {
            double x = kept[i][k];
            sum += frequency ? (double)((x > 0) - (x < 0)) : x;
        }
        sign[k] = sum >= 0 ? 1 : -1;
    }
}

/* share becomes 0 where kept has not the sign. */
static void silence(double *share, const double *kept, const double *sign,
                    size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (!(kept[k] * sign[k] > 0))
            share[k] = 0;
    }
}

static void divide(double *out, const double *const *kept, const double *sign,
                   const bal_tile *tile)
{
    for (size_t k = 0; k < tile->n; k++) {
        size_t count = 0;
        for (size_t i = 0; i < tile->count; i++)
            count += kept[i][k] * sign[k] > 0;
        out[k] /= (double)bal_max(count, 1);
    }
    bal_arith_round(tile->arith, out, tile->n);
}

static void merge(double *out, const double **kept, const double **shares,
                  const bal_tile *tile, const bal_values *values)
{
    bool signs = tile->method->consensus && !is_linear(values);
    double *sign = row_at(tile, 0);
    const bal_range range = bal_tile_range(tile);

    for (size_t i = 0; i < tile->count; i++)
        kept[i] = take(tile, i);
    if (signs)
        elect(sign, kept, tile, bal_value_bool(values, majority));
    for (size_t i = 0; i < tile->count; i++) {
        double *share = row_at(tile, BAL_PEFT_ROWS + tile->count + i);
        bal_op_scale(tile->arith, share, kept[i], tile->weights[i], tile->n);
        if (signs)
            silence(share, kept[i], sign, tile->n);
        shares[i] = share;
    }
    bal_op_sum(tile->arith, out, shares, tile->count, &range);
    if (signs)
        divide(out, kept, sign, tile);
}

int bal_peft_merge(double *out, const bal_tile *tile, const bal_values *values,
                   bal_error *err)
{
    const double **rows = calloc(2 * tile->count + 1, sizeof(*rows));

    if (!rows)
        return bal_fail_memory(err, "merging");
    merge(out, rows, rows + tile->count, tile, values);
    free((void *)rows);
    return 0;
}
