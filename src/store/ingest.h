/* A model into blocks: read, hash, encode, stage, in parallel, one block a
 * work item. */
#ifndef STORE_INGEST_H
#define STORE_INGEST_H

#include "store/anchor.h"
#include "store/manifest.h"
#include "store/store.h"

/* What came of it. The batch holds what is staged; leaf says where the bytes
 * are. */
typedef struct bal_ingest {
    bal_batch batch;
    bal_leaf leaf;
    bal_block_row *rows; /* blocks that are new to the tenant */
    size_t row_count;
    bal_id *ids; /* every block used, sorted, without repetition */
    size_t id_count;
    uint64_t stored; /* bytes of the new ones at rest */
} bal_ingest;

/* How it is stored. */
typedef struct bal_ingest_how {
    /* By its distance from this, if that is there; asked for by the threads
     * that have a new block, and not at all where nothing is new. NULL: by
     * none. */
    int (*anchor)(void *ctx, const bal_anchor **out, bal_error *err);
    void *ctx;
    /* Ids of blocks that are left as they are; all others are put, though they
     * may be there. NULL: what is there is left. */
    const bal_map *kept;
    uint64_t block_size; /* 0: the store's */
} bal_ingest_how;
BAL_CHECK int bal_ingest_model(bal_ingest *out, bal_tenant *tenant,
                               bal_model *model, const bal_ingest_how *how,
                               bal_error *err);
/* Publish its blocks; then rows say how these are at rest, which another writer
 * may have decided. */
BAL_CHECK int bal_ingest_settle(bal_ingest *self, bal_work *work,
                                bal_error *err);
/* Is a block in the graph, and its bytes in the backend? Then *out is its row.
 * One whose bytes are gone or cut is to be put again (*lost): others may be
 * coded by it, and so by none of them. */
BAL_CHECK int bal_block_look_up(bal_block_row *out, const bal_tenant *tenant,
                                const bal_id *id, bool *there, bool *lost,
                                bal_error *err);
/* Of a block that one tensor of floats has for itself, what its squares sum up
 * to: it is in the cache, and whoever compares commits need not read it. */
void bal_row_measure(bal_block_row *row, const bal_tensor *entry,
                     uint64_t block_size, bal_bytes bytes);
/* How a block is at rest, into its row; the bases are the batch's, which is to
 * stay. */
void bal_row_fill(bal_block_row *row, const bal_put *put);
void bal_ingest_done(bal_ingest *self);

#endif
