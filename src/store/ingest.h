/* A model into blocks: read, hash, encode, stage, in parallel, one block a
 * work item. */
#ifndef STORE_INGEST_H
#define STORE_INGEST_H

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

BAL_CHECK int bal_ingest_model(bal_ingest *out, bal_tenant *tenant,
                               bal_model *model, bal_error *err);
void bal_ingest_done(bal_ingest *self);

#endif
