/* Blocks that are coded by their distance from others: read as they were put,
 * and, where what they say of their base is not so, refused. What lies is made
 * by docs/format.md and BLAKE3 itself, so that its check is right. */
#include <blake3.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/hash.h"
#include "support/blocks.h"
#include "support/bytes.h"

enum { HEAD = 8, SPAN = 56, DEPTHS = 6, VERSIONS = 12 };

/* Version v of the same numbers: BF16, each one near the last version's. */
static void version(uint8_t *data, size_t v)
{
    bytes_seed(5);
    bytes_bf16(data, BLOCKS_SIZE);
    for (size_t i = 0; i < BLOCKS_SIZE; i += 2)
        data[i] = (uint8_t)((data[i] & 0x80) + (data[i] / 2 + v * (i % 7)) % 64);
}

static bal_block_span whole(const bal_id *id)
{
    return (bal_block_span){ *id, BLOCKS_SIZE, 0, BLOCKS_SIZE };
}

static bal_id put_by(blocks_fixture *self, const uint8_t *data,
                     const bal_block_span *spans, size_t count,
                     bal_effort effort, bal_put *put)
{
    const bal_block_kind kind = { .width = 2,
                                  .kind = BAL_NUMBER_BF16,
                                  .base_kind = BAL_NUMBER_BF16,
                                  .base = spans,
                                  .base_count = count };
    bal_batch batch = { 0 };
    bal_id id;

    bal_hash_of(&id, data, BLOCKS_SIZE);
    CHECK_OK(bal_batch_begin(&batch, self->blocks, blocks_tenant, effort,
                             &check_err));
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ data, BLOCKS_SIZE }, &kind,
                           put, &check_err));
    put->bases = NULL;
    CHECK_OK(bal_batch_settle(&batch, self->work, &check_err));
    bal_batch_done(&batch);
    return id;
}

/* By the version before it; version 0 by none. */
static bal_id put_version(blocks_fixture *self, size_t v, const bal_id *base,
                          bal_put *put)
{
    uint8_t data[BLOCKS_SIZE];
    const bal_block_span span = whole(base);

    version(data, v);
    return put_by(self, data, &span, v ? 1 : 0, BAL_EFFORT_AUTO, put);
}

static void is_version(bal_blocks *blocks, const bal_id *id, size_t v)
{
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE] = { 0 };

    version(data, v);
    CHECK_OK(blocks_read(blocks, id, back));
    CHECK(!memcmp(back, data, BLOCKS_SIZE));
    memset(back, 0, sizeof(back));
    CHECK_OK(bal_blocks_read(blocks,
                             &(bal_block_ref){ blocks_tenant, id, BLOCKS_SIZE },
                             33, back, 777, &check_err));
    CHECK(!memcmp(back, data + 33, 777));
    CHECK_OK(blocks_verify(blocks, id, 0));
    CHECK_OK(blocks_verify(blocks, id, BAL_VERIFY_PAYLOAD));
    CHECK_OK(blocks_verify(blocks, id, BAL_VERIFY_HEADER));
}

/* The bytes at rest; depth is 0 for a block without a base. */
static unsigned depth_at_rest(const blocks_fixture *self, const bal_id *id)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    char *path = blocks_path(self, id);

    blocks_slurp(&bytes, path);
    free(path);
    CHECK(bytes.data[11] == 0 || bytes.data[11] == 2);
    CHECK((bytes.data[11] == 2) == (bal_get32(bytes.data + 12) != 0));
    return bytes.data[11] ? (uint8_t)bytes.data[64] : 0;
}

/* ---- what is put -------------------------------------------------------- */

static void at_rest_the_base_stands_between_header_and_payload(void)
{
    blocks_fixture self;
    BAL_LOCAL(bal_buf) bytes = { 0 };
    static const uint8_t none[7];
    bal_put put = { 0 };

    blocks_begin(&self);
    bal_id base = put_version(&self, 0, NULL, &put);
    CHECK(put.base_count == 0);
    uint64_t alone = put.stored;
    bal_id id = put_version(&self, 1, &base, &put);
    CHECK(put.base_count == 1 && put.codec == BAL_CODEC_ANCHORED);
    CHECK(put.stored < alone * 3 / 4);

    char *path = blocks_path(&self, &id);
    blocks_slurp(&bytes, path);
    const uint8_t *at = (const uint8_t *)bytes.data;
    CHECK(at[8] == 1 && at[9] == BAL_CODEC_ANCHORED && at[11] == 2);
    CHECK(bal_get32(at + 12) == HEAD + SPAN);
    CHECK(bal_get64(at + 24) == bytes.len - 64 - HEAD - SPAN);
    CHECK(at[64] == 1 && !memcmp(at + 65, none, sizeof(none)));
    CHECK(!memcmp(at + 72, base.bytes, 32));
    CHECK(bal_get64(at + 104) == BLOCKS_SIZE && bal_get64(at + 112) == 0);
    CHECK(bal_get64(at + 120) == BLOCKS_SIZE);
    is_version(self.blocks, &id, 1);
    free(path);
    blocks_done(&self);
}

/* And a handle that has nothing in its cache reads what another one wrote. */
static void a_chain_is_no_deeper_than_it_may_be_and_each_link_is_exact(void)
{
    blocks_fixture self;
    bal_id ids[VERSIONS];
    bal_put put = { 0 };

    blocks_begin(&self);
    for (size_t v = 0; v < VERSIONS; v++) {
        ids[v] = put_version(&self, v, v ? &ids[v - 1] : NULL, &put);
        unsigned depth = depth_at_rest(&self, &ids[v]);
        CHECK(depth == (v < DEPTHS ? v : DEPTHS));
        CHECK(put.base_count == (v ? 1 : 0));
    }
    for (size_t cache = 0; cache < 2; cache++) {
        bal_blocks *other = blocks_open(self.root, cache << 20);
        for (size_t v = VERSIONS; v-- > 0;)
            is_version(other, &ids[v], v);
        bal_blocks_free(other);
    }
    blocks_done(&self);
}

/* Its base's elements are in pieces of several blocks, in any order. */
static void a_base_may_be_pieces_of_many_blocks(void)
{
    blocks_fixture self;
    enum { PIECES = 10, PIECE = BLOCKS_SIZE / PIECES };
    bal_block_span spans[PIECES];
    uint8_t data[BLOCKS_SIZE];
    bal_put put = { 0 };

    blocks_begin(&self);
    for (size_t i = 0; i < PIECES; i++) {
        version(data, 0);
        uint8_t moved[BLOCKS_SIZE] = { 0 };
        size_t to = (i * 3 % PIECES) * PIECE;
        moved[0] = (uint8_t)i;
        memcpy(moved + to, data + i * PIECE, PIECE);
        bal_id id = blocks_put(&self, (bal_bytes){ moved, BLOCKS_SIZE }, 2,
                               &put);
        spans[i] = (bal_block_span){ id, BLOCKS_SIZE, to, PIECE };
    }
    version(data, 1);
    bal_id id = put_by(&self, data, spans, PIECES, BAL_EFFORT_AUTO, &put);
    CHECK(put.base_count == PIECES);
    is_version(self.blocks, &id, 1);
    blocks_done(&self);
}

typedef struct no_base {
    const char *name;
    size_t count;
    bal_effort effort;
    bool itself, lost, damaged, deep;
} no_base;

static void make_unfit(blocks_fixture *self, const no_base *row, bal_id *base)
{
    char *path = blocks_path(self, base);
    bal_put put = { 0 };

    if (row->lost)
        CHECK(!remove(path));
    if (row->damaged)
        blocks_overwrite(path, "damaged", 7);
    for (size_t v = 1; row->deep && v <= DEPTHS; v++)
        *base = put_version(self, v, base, &put);
    free(path);
}

/* And the block is written all the same. */
static void a_base_that_will_not_do_is_not_used(void)
{
    static const no_base rows[] = {
        { .name = "more spans than there may be", .count = 1025 },
        { .name = "no compression", .count = 1, .effort = BAL_EFFORT_NONE },
        { .name = "itself", .count = 1, .itself = true },
        { .name = "lost", .count = 1, .lost = true },
        { .name = "damaged", .count = 1, .damaged = true },
        /* Not whole, so that its own base is no base. */
        { .name = "too deep", .count = 2, .deep = true },
    };
    uint8_t data[BLOCKS_SIZE];

    version(data, 9);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const no_base *row = &rows[r];
        blocks_fixture self;
        bal_put put = { 0 };
        bal_block_span *spans = calloc(row->count, sizeof(*spans));
        check_row(row->name);
        blocks_begin(&self);
        bal_id base = put_version(&self, 0, NULL, &put);
        make_unfit(&self, row, &base);
        if (row->itself)
            bal_hash_of(&base, data, BLOCKS_SIZE);
        for (size_t i = 0; i < row->count; i++)
            spans[i] = whole(&base);
        for (size_t i = 0; row->count > 1 && i < row->count; i++)
            spans[i].len = i ? 16 : BLOCKS_SIZE - 16 * (row->count - 1);
        bal_id id = put_by(&self, data, spans, row->count, row->effort, &put);
        CHECK(put.base_count == 0 && depth_at_rest(&self, &id) == 0);
        is_version(self.blocks, &id, 9);
        free(spans);
        blocks_done(&self);
    }
}

/* ---- what lies ---------------------------------------------------------- */

/* A based block as it is at rest, in parts that can be changed. */
typedef struct forged {
    uint8_t head[64];
    BAL_LOCAL_NONE uint8_t extra[HEAD + 1025 * SPAN];
    size_t extra_len;
    bal_buf payload;
} forged;
