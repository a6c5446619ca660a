/* How the bytes of a model are cut into blocks.
 *
 * An entry of more than half a block is cut at fixed offsets into blocks of its
 * own, so that one changed value costs one block. Smaller ones share: entries
 * that follow each other and have one element width fill a block together; when
 * the next does not fit, the block ends behind the one whose name has the
 * smallest hash, of those that leave it at least half full. Ends then depend on
 * names near them, so that adding a tensor leaves nearly all blocks as they
 * are. */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include "store/manifest.h"

/* A run of one entry's bytes within a block. */
typedef struct bal_run {
    size_t entry;
    uint64_t offset; /* in the entry */
    uint64_t len;
} bal_run;

/* One block: runs one behind the other. */
typedef struct bal_pack_block {
    size_t first; /* run */
    size_t count;
    uint64_t size;
    unsigned width; /* bytes an element, 0: not numbers */
} bal_pack_block;

typedef struct bal_pack {
    bal_run *runs;
    size_t run_count, run_room;
    bal_pack_block *blocks;
    size_t block_count, block_room;
} bal_pack;

BAL_CHECK int bal_pack_plan(bal_pack *out, const bal_model *model,
                            uint64_t block_size, bal_error *err);
void bal_pack_done(bal_pack *self);

#endif
