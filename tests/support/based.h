/* Blocks that are coded by their distance from others: versions of the same
 * numbers, each near the last one. */
#ifndef SUPPORT_BASED_H
#define SUPPORT_BASED_H

#include "support/blocks.h"

/* By docs/format.md: bytes of what stands before the spans, and of a span. */
enum { BASED_HEAD = 8, BASED_SPAN = 56, BASED_DEPTHS = 6 };

/* Version v of the same BLOCKS_SIZE bytes. */
void based_data(uint8_t *data, size_t v);
/* All of a block. */
bal_block_span based_whole(const bal_id *id);
/* Put by spans of the base and settle; put->bases is not to be looked at. */
bal_id based_put(blocks_fixture *self, const uint8_t *data,
                 const bal_block_span *spans, size_t count, bal_effort effort,
                 bal_put *put);
/* Version v by all of the base, NULL: by none. */
bal_id based_version(blocks_fixture *self, size_t v, const bal_id *base,
                     bal_put *put);
/* Read whole and in part, and verified in every way, it is version v. */
void based_check(bal_blocks *blocks, const bal_id *id, size_t v);

#endif
