/* An adapter of lower rank: each module's map is replaced by the nearest one of
 * the rank that is asked for. */
#ifndef MERGE_SHRINK_H
#define MERGE_SHRINK_H

#include <jansson.h>

#include "model/model.h"

typedef struct bal_shrink {
    uint64_t rank;       /* of every module; 0: what energy says, of each */
    double energy;       /* the share of the sum of squares that is kept */
    const json_t *ranks; /* what it said before: module to rank. NULL: to be
                            found out */
    int dtype;           /* of the result, -1: of the adapter's factors */
} bal_shrink;

/* EINVAL: not just one of a rank and an energy, or no such. */
BAL_CHECK int bal_rank_choice(const bal_lora_options *options, bal_error *err);
/* EINVAL: more than there can be. */
BAL_CHECK int bal_rank_check(uint64_t rank, double energy, bal_error *err);

/* What a recipe out of a database says of a module, which may be anything.
 * ECORRUPT: not 1 … most. */
BAL_CHECK int bal_rank_told(uint64_t *out, const json_t *ranks,
                            const char *module, uint64_t most, bal_error *err);

/* Every module has just that rank, with zeros where its map's own is lower; of
 * what energy says, at least 1. Whole tensors and files come along. A module's
 * factors are computed when they are read, and kept for a while. Keeps a
 * reference on the adapter. work is used before it returns alone, and may be
 * NULL where ranks are told. EUNSUPPORTED as bal_loras_read; when a factor is
 * read that is not finite. */
BAL_CHECK int bal_shrink_open(bal_model **out, bal_model *adapter,
                              const bal_shrink *how, bal_work *work,
                              bal_error *err);

#endif
