#include "merge/rank_walk.h"

#include "core/arith.h"
#include "merge/view.h"

/* What is wanted of end i % 2 of ranking i / 2. */
static bool wants(bal_ranking *const *rankings, size_t i, uint64_t *from,
                  uint64_t *to)
{
    const bal_ranking *ranking = rankings[i / 2];

    return ranking && bal_ranking_wants(ranking, i % 2, from, to);
}

/* Are a few stretches enough, shorter together than half the tensor? */
static bool few(bal_ranking *const *rankings, size_t count, uint64_t total)
{
    uint64_t sum = 0;
    uint64_t from, to;

    for (size_t i = 0; i < 2 * count; i++) {
        if (!wants(rankings, i, &from, &to))
            continue;
        if (to > total || to - from > total / 2 - sum)
            return false;
        sum += to - from;
    }
    return true;
}

int bal_rank_walk(bal_walk *walk, bal_ranking *const *rankings, size_t count,
                  bal_tile_fn *fn, void *ctx, bal_error *err)
{
    uint64_t from, to;
    int rc = 0;

    if (!few(rankings, count, walk->row->extent.total))
        return bal_view_tiles(walk, fn, ctx, err);
    for (size_t i = 0; !rc && i < 2 * count; i++) {
        if (wants(rankings, i, &from, &to))
            rc = bal_view_each(walk->view, walk->row, from, to - from, fn, ctx,
                               err);
    }
    return rc;
}
