/* A pass of rankings over a tensor, or over what of it they still want. */
#ifndef MERGE_RANK_WALK_H
#define MERGE_RANK_WALK_H

#include "merge/merge.h"

/* fn gives (bal_ranking_see) each tile's values to rankings, of which there are
 * count; NULL: one that wants nothing. */
BAL_CHECK int bal_rank_walk(bal_walk *walk, bal_ranking *const *rankings,
                            size_t count, bal_tile_fn *fn, void *ctx,
                            bal_error *err);

#endif
