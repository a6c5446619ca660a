/* A store of blocks in an empty directory, and three blocks, one a codec. */
#ifndef SUPPORT_BLOCKS_H
#define SUPPORT_BLOCKS_H

#include "blocks/blocks.h"
#include "support/check.h"

enum { BLOCKS_SIZE = 20000, BLOCKS_KINDS = 3 };

extern const char blocks_tenant[];

typedef struct blocks_kind {
    const char *name;
    unsigned width;
    unsigned codec;
} blocks_kind;

extern const blocks_kind blocks_kinds[BLOCKS_KINDS];

typedef struct blocks_fixture {
    char root[128];
    bal_blocks *blocks;
    bal_work *work;
} blocks_fixture;

/* Every call has a directory of its own. */
void blocks_begin(blocks_fixture *self);
void blocks_done(blocks_fixture *self);
/* Another handle on the same directory. */
bal_blocks *blocks_open(const char *root, size_t cache);

/* BLOCKS_SIZE bytes, the same each time. */
void blocks_data(uint8_t *data, size_t kind);
/* Put and settle; the id. */
bal_id blocks_put(blocks_fixture *self, bal_bytes data, unsigned width,
                  bal_put *put);
bal_id blocks_put_kind(blocks_fixture *self, size_t kind);
/* Where a block is at rest; to be freed. */
char *blocks_path(const blocks_fixture *self, const bal_id *id);
void blocks_slurp(bal_buf *out, const char *path);
void blocks_overwrite(const char *path, const void *data, size_t len);
/* All of a block of BLOCKS_SIZE bytes; the result is to be checked. */
int blocks_read(bal_blocks *blocks, const bal_id *id, uint8_t *to);
int blocks_verify(bal_blocks *blocks, const bal_id *id, unsigned flags);

#endif
