#include "merge/rows.h"

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
