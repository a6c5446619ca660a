/* Inside blocks/ only: the base that a block is coded by, as the block has it
 * between header and payload:
 *
 *    u8 depth, u8[7] 0, and for each span: u8[32] id, u64 size, offset, len */
#ifndef BLOCKS_BASE_H
#define BLOCKS_BASE_H

#include "blocks/blocks.h"

enum {
    BAL_BASE_HEAD = 8,
    BAL_BASE_SPAN = 56,
    BAL_BASE_MOST = BAL_BASE_HEAD + BAL_BASE_SPANS_MAX * BAL_BASE_SPAN,
};

typedef struct bal_base {
    unsigned depth; /* of the block that it is the base of */
    const bal_block_span *spans;
    size_t count;
    uint64_t len; /* bytes of all of them */
} bal_base;

BAL_CHECK int bal_base_write(bal_buf *to, const bal_base *self, bal_error *err);
/* Spans in the arena. ECORRUPT: no spans, some that are not in their blocks, or
 * more than `most` bytes of them. */
BAL_CHECK int bal_base_read(bal_base *out, bal_arena *arena, bal_bytes extra,
                            uint64_t most, bal_error *err);
/* What a block is coded by, as it says: without spans if by nothing. ENOTFOUND,
 * ECORRUPT. */
BAL_CHECK int bal_base_of(bal_base *out, bal_arena *arena, bal_blocks *blocks,
                          const char *tenant, const bal_id *id, bal_error *err);
/* How deep a block is, by its header. ENOTFOUND, ECORRUPT. */
BAL_CHECK int bal_block_depth(unsigned *out, bal_blocks *blocks,
                              const char *tenant, const bal_id *id,
                              bal_error *err);
/* The base's bytes, into self->len at `to`. Before a block of it is decoded its
 * header has to say that it is less deep than self->depth, so that blocks that
 * name each other in a circle are ECORRUPT and nobody waits for another. */
BAL_CHECK int bal_base_gather(uint8_t *to, bal_blocks *blocks,
                              const char *tenant, const bal_base *self,
                              bal_error *err);

/* The base that a block is to be coded by: where it is, and its bytes. */
typedef struct bal_ground {
    bal_base base;
    unsigned deepest; /* that the block may be */
    uint8_t *bytes;   /* NULL: by none */
    bal_arena arena;  /* of spans that are not the caller's */
} bal_ground;

/* Left without bytes where kind names no base, or none that can be used: a
 * block is not lost with another one. Spans may be kind's. ENOMEM. */
BAL_CHECK int bal_ground_find(bal_ground *self, const bal_batch *batch,
                              const bal_id *id, const bal_block_kind *kind,
                              bal_error *err);
void bal_ground_done(bal_ground *self);

#endif
