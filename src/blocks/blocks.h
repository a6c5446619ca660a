/* Blocks: bytes by the hash of what they decode to, verified at every read.
 * At rest a block describes itself (docs/format.md, "Block"), so that one
 * without a row can be read, checked and reported. Knows tenants as the first
 * part of a name, and nothing of models. */
#ifndef BLOCKS_BLOCKS_H
#define BLOCKS_BLOCKS_H

#include "blocks/backend.h"
#include "codec/codec.h"

typedef struct bal_blocks bal_blocks;

/* No block is longer, so that a header cannot make a reader allocate more. */
#define BAL_BLOCK_LONGEST ((uint64_t)1 << 30)

/* Takes the backend, unless it fails. cache: bytes of decoded blocks kept at
 * most (a block that several tensors share is decoded once). */
BAL_CHECK int bal_blocks_open(bal_blocks **out, bal_backend *backend,
                              size_t cache, bal_error *err);
/* Keep more of them from now on, if it is more. */
void bal_blocks_keep(bal_blocks *self, size_t cache);
/* Tensors are about to be read several times over: keep on disk, in the folder,
 * up to `most` bytes of decoded blocks of at most `block` bytes that there is
 * no room for in memory. A help: what cannot be kept is decoded again. */
void bal_blocks_spill(bal_blocks *self, const char *folder, size_t block,
                      size_t most);
void bal_blocks_free(bal_blocks *self);
BAL_OWNABLE(bal_blocks)
bal_backend *bal_blocks_backend(bal_blocks *self);

/* Bytes of another block of the tenant, which decodes to size bytes. */
typedef struct bal_block_span {
    bal_id id;
    uint64_t size, offset, len;
} bal_block_span;

/* A block that is coded by its distance from others has these spans, which one
 * behind the other are the base's elements; more are not taken. */
#define BAL_BASE_SPANS_MAX 1024
/* A block that needs no base has depth 0, one that does is deeper than each of
 * its base's blocks, and none is deeper than this: so long is the longest chain
 * that is decoded for one block. */
#define BAL_BASE_DEPTH_MAX 6

/* What a block's bytes are. base: where the same elements of the base are. */
typedef struct bal_block_kind {
    unsigned width; /* as in bal_grain, and so the next three */
    bal_number kind, base_kind;
    bool difference;
    const bal_block_span *base;
    size_t base_count; /* 0: none */
    /* It is there, and is not to be deeper than it is: others are coded by it,
     * and are read only while they are deeper. */
    bool keeps_depth;
} bal_block_kind;

/* Writing: put stages, settle publishes, done discards what was not settled.
 * One batch may be put to by many threads. */
typedef struct bal_batch {
    bal_blocks *blocks;
    const char *tenant;
    bal_effort effort;
    bool replaces; /* good blocks too, by whoever is alone in the store */
    struct bal_batch_list *list;
} bal_batch;

typedef struct bal_put {
    uint64_t stored; /* bytes at rest, header included */
    unsigned codec;
    bal_id check; /* the header's, which covers every byte at rest */
    /* The distinct blocks that it is coded by, the batch's; none: by none. They
     * may be others than it was put with. */
    const bal_id *bases;
    size_t base_count;
} bal_put;

BAL_CHECK int bal_batch_begin(bal_batch *out, bal_blocks *blocks,
                              const char *tenant, bal_effort effort,
                              bal_error *err);
/* id is the hash of data, taken by the caller. A base that is too deep, has
 * more spans than there may be, or cannot be read, is not used. Base and block
 * are of one tenant, and what is put is not to be its own base. */
BAL_CHECK int bal_batch_put(bal_batch *self, const bal_id *id, bal_bytes data,
                            const bal_block_kind *kind, bal_put *put,
                            bal_error *err);
/* A block that is there and good stays as it is, so that of several writers of
 * one the first has its way, and what is coded by it stays readable; unless
 * self->replaces. */
BAL_CHECK int bal_batch_settle(bal_batch *self, bal_work *work, bal_error *err);
/* How a block that was put and settled is at rest: as it was put, or as it was
 * there. */
bal_put bal_batch_settled(bal_batch *self, const bal_id *id);
void bal_batch_done(bal_batch *self);

/* Which block, and how many bytes it decodes to. */
typedef struct bal_block_ref {
    const char *tenant;
    const bal_id *id;
    uint64_t size;
} bal_block_ref;

/* Bytes [offset, offset + len) of the block. The whole block is read, decoded
 * and its hash compared, or was just now. ENOTFOUND: no such block. ECORRUPT:
 * not what its name says. */
BAL_CHECK int bal_blocks_read(bal_blocks *self, const bal_block_ref *block,
                              uint64_t offset, void *to, size_t len,
                              bal_error *err);

/* It will not be read again before long: what is kept of it may go. */
void bal_blocks_pass(bal_blocks *self, const char *tenant, const bal_id *id);

typedef struct bal_block_info {
    uint64_t logical;
    uint64_t stored;
    unsigned codec;
    bal_id check; /* the header's */
    unsigned width;
    bool based;
} bal_block_info;
/* Every byte at rest against the header's check, and decoded, against the name.
 * A payload that is not decoded may be another block's whole: that its bytes
 * are what was put under the name is known where info->check is what the put
 * had, and then as sure as by decoding. ENOTFOUND, ECORRUPT. */
enum bal_verify_flags {
    BAL_VERIFY_HEADER = 1,  /* size and header alone */
    BAL_VERIFY_PAYLOAD = 2, /* header and payload, not decoded */
};
BAL_CHECK int bal_blocks_verify(bal_blocks *self, const char *tenant,
                                const bal_id *id, unsigned flags,
                                bal_block_info *info, bal_error *err);
/* The distinct blocks that a block is coded by, as it says itself, appended to
 * `to` as bal_ids. ENOTFOUND; ECORRUPT, also where one that is there is not
 * less deep than the block, which cannot be read then. */
BAL_CHECK int bal_blocks_bases(bal_blocks *self, const char *tenant,
                               const bal_id *id, bal_buf *to, bal_error *err);
/* The spans that a block is coded by, one behind the other, as it says itself,
 * appended to `to` as bal_block_spans; none of one that needs no base.
 * ENOTFOUND, ECORRUPT. */
BAL_CHECK int bal_blocks_spans(bal_blocks *self, const char *tenant,
                               const bal_id *id, bal_buf *to, bal_error *err);
/* Their bytes, here and in the cache of decoded blocks; one that is absent is
 * fine. *freed: bytes at rest that went, also when it fails half way. Durable
 * once returned. Directories that are empty then go too, so the caller holds
 * the store's lock alone. */
BAL_CHECK int bal_blocks_remove(bal_blocks *self, const char *tenant,
                                const bal_id *ids, size_t count,
                                uint64_t *freed, bal_error *err);
/* Every name the backend has for a tenant; id is NULL for one that is not a
 * block's. */
typedef int bal_block_fn(void *ctx, const bal_id *id, const char *name,
                         uint64_t size, bal_error *err);
BAL_CHECK int bal_blocks_each(bal_blocks *self, const char *tenant,
                              bal_block_fn *fn, void *ctx, bal_error *err);

/* ---- the header, for the fuzz target ------------------------------------ */

#define BAL_BLOCK_HEADER 64
#define BAL_BLOCK_BASED  2 /* flags: extra says where the base is */
typedef struct bal_block_header {
    uint8_t codec;
    uint8_t width;
    uint8_t flags;  /* what extra holds */
    uint32_t extra; /* bytes between header and payload */
    uint64_t logical;
    uint64_t payload;
    uint8_t check[32];
} bal_block_header;
void bal_block_header_write(uint8_t out[BAL_BLOCK_HEADER],
                            const bal_block_header *header);
/* ECORRUPT, or EUNSUPPORTED for a newer version. */
BAL_CHECK int bal_block_header_read(bal_block_header *out, bal_bytes bytes,
                                    bal_error *err);

#endif
