/* What blocks.c and batch.c share. */
#ifndef BLOCKS_INSIDE_H
#define BLOCKS_INSIDE_H

#include <pthread.h>

#include "blocks/blocks.h"
#include "blocks/cache.h"

/* What one thread needs to code a block; kept for the next. */
typedef struct bal_bench {
    struct bal_bench *next;
    bal_coder *coder;
    bal_buf bytes; /* a payload, or a block as it is at rest */
    bal_buf base;  /* what a block is coded by */
} bal_bench;

struct bal_blocks {
    bal_backend *backend;
    bal_cache *cache;
    pthread_mutex_t lock; /* guards idle */
    bal_bench *idle;
};

/* An idle one or a new one, its bytes empty. */
BAL_CHECK int bal_bench_take(bal_bench **out, bal_blocks *blocks,
                             bal_error *err);
void bal_bench_give(bal_blocks *blocks, bal_bench *bench);
/* All idle ones; none is in use. */
void bal_benches_free(bal_blocks *blocks);

/* "acme/3/3f0a…": one hex digit of fan-out, so that a commit of some tens of
 * blocks has few directories to sync. */
#define BAL_BLOCK_NAME_ROOM (64 + 3 + BAL_ID_HEX + 1)
/* EINVAL: not a tenant's name. */
BAL_CHECK int bal_block_name(char out[BAL_BLOCK_NAME_ROOM], const char *tenant,
                             const bal_id *id, bal_error *err);

BAL_CHECK int bal_block_key(bal_cache_key *key, const char *tenant,
                            const bal_id *id, bal_error *err);

/* What header->check must be; payload is the hash of the payload. */
void bal_block_check(uint8_t out[32], const bal_block_header *header,
                     bal_bytes extra, const bal_id *payload);

#endif
