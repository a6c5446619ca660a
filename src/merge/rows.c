#include "merge/rows.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"

int bal_rows_new(const double ***out, const double *first, size_t count,
                 size_t n, bal_error *err)
{
    const double **rows = calloc(count + 1, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "merging");

    for (size_t i = 0; i < count; i++)
        rows[i] = first + i * n;
    *out = rows;
    return 0;
}

const double bal_rounded_zero = 1e-12;

int bal_weights_divisible(const double *weights, size_t count, const char *hint,
                          bal_error *err)
{
    double sum = 0, size = 0;

    for (size_t i = 0; i < count; i++) {
        sum += weights[i];
        size += fabs(weights[i]);
    }
    if (!isfinite(size))
        return bal_fail(err, BAL_EINVAL,
                        "weights whose sum is too large cannot be normalized");
    if (fabs(sum) > bal_rounded_zero * size)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "weights that sum to zero cannot be normalized"),
                    "%s", hint);
}

bal_arith bal_arith_single(const bal_arith *self)
{
    return (bal_arith){
        .mergekit = self->mergekit,
        .work = self->work == BAL_F64 ? BAL_F64 : BAL_F32,
    };
}

bal_range bal_tile_range(const bal_tile *tile)
{
    return (bal_range){
        .start = tile->start,
        .total = tile->extent->total,
        .n = tile->n,
    };
}
