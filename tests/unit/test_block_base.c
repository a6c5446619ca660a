/* Blocks that are coded by their distance from others are read as they were
 * put, whatever they are coded by. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/hash.h"
#include "support/based.h"

enum { VERSIONS = 12 };

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
    bal_id base = based_version(&self, 0, NULL, &put);
    CHECK(put.base_count == 0);
    uint64_t alone = put.stored;
    bal_id id = based_version(&self, 1, &base, &put);
    CHECK(put.base_count == 1 && put.codec == BAL_CODEC_ANCHORED);
    CHECK(put.stored < alone * 3 / 4);

    char *path = blocks_path(&self, &id);
    blocks_slurp(&bytes, path);
    const uint8_t *at = (const uint8_t *)bytes.data;
    CHECK(at[8] == 1 && at[9] == BAL_CODEC_ANCHORED && at[11] == 2);
    CHECK(bal_get32(at + 12) == BASED_HEAD + BASED_SPAN);
    CHECK(bal_get64(at + 24) == bytes.len - 64 - BASED_HEAD - BASED_SPAN);
    CHECK(at[64] == 1 && !memcmp(at + 65, none, sizeof(none)));
    CHECK(!memcmp(at + 72, base.bytes, 32));
    CHECK(bal_get64(at + 104) == BLOCKS_SIZE && bal_get64(at + 112) == 0);
    CHECK(bal_get64(at + 120) == BLOCKS_SIZE);
    based_check(self.blocks, &id, 1);
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
        ids[v] = based_version(&self, v, v ? &ids[v - 1] : NULL, &put);
        unsigned depth = depth_at_rest(&self, &ids[v]);
        CHECK(depth == (v < BASED_DEPTHS ? v : BASED_DEPTHS));
        CHECK(put.base_count == (v ? 1 : 0));
    }
    for (size_t cache = 0; cache < 2; cache++) {
        bal_blocks *other = blocks_open(self.root, cache << 20);
        for (size_t v = VERSIONS; v-- > 0;)
            based_check(other, &ids[v], v);
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
        based_data(data, 0);
        uint8_t moved[BLOCKS_SIZE] = { 0 };
        size_t to = (i * 3 % PIECES) * PIECE;
        moved[0] = (uint8_t)i;
        memcpy(moved + to, data + i * PIECE, PIECE);
        bal_id id =
            blocks_put(&self, (bal_bytes){ moved, BLOCKS_SIZE }, 2, &put);
        spans[i] = (bal_block_span){ id, BLOCKS_SIZE, to, PIECE };
    }
    based_data(data, 1);
    bal_id id = based_put(&self, data, spans, PIECES, BAL_EFFORT_AUTO, &put);
    CHECK(put.base_count == PIECES);
    based_check(self.blocks, &id, 1);
    blocks_done(&self);
}

typedef struct no_base {
    const char *name;
    size_t count;
    bool none, itself, lost, damaged, deep;
} no_base;

static void make_unfit(blocks_fixture *self, const no_base *row, bal_id *base)
{
    char *path = blocks_path(self, base);
    bal_put put = { 0 };

    if (row->lost)
        CHECK(!remove(path));
    if (row->damaged)
        blocks_overwrite(path, "damaged", 7);
    for (size_t v = 1; row->deep && v <= BASED_DEPTHS; v++)
        *base = based_version(self, v, base, &put);
    free(path);
}

/* Of one block, which all of them are, in order. */
static void cut(bal_block_span *spans, size_t count)
{
    uint64_t at = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t len = i ? 16 : BLOCKS_SIZE - 16 * (count - 1);
        spans[i].offset = at;
        spans[i].len = len;
        at += len;
    }
}

/* And the block is written all the same. */
static void a_base_that_will_not_do_is_not_used(void)
{
    static const no_base rows[] = {
        { .name = "more spans than there may be", .count = 1025 },
        { .name = "no compression", .count = 1, .none = true },
        { .name = "itself", .count = 1, .itself = true },
        { .name = "lost", .count = 1, .lost = true },
        { .name = "damaged", .count = 1, .damaged = true },
        /* Not whole, so that its own base is no base. */
        { .name = "too deep", .count = 2, .deep = true },
    };
    uint8_t data[BLOCKS_SIZE];

    based_data(data, 9);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const no_base *row = &rows[r];
        blocks_fixture self;
        bal_put put = { 0 };
        bal_block_span *spans = calloc(row->count, sizeof(*spans));
        check_row(row->name);
        blocks_begin(&self);
        bal_id base = based_version(&self, 0, NULL, &put);
        make_unfit(&self, row, &base);
        if (row->itself)
            bal_hash_of(&base, data, BLOCKS_SIZE);
        for (size_t i = 0; i < row->count; i++)
            spans[i] = based_whole(&base);
        cut(spans, row->count);
        bal_effort effort = row->none ? BAL_EFFORT_NONE : BAL_EFFORT_AUTO;
        bal_id id = based_put(&self, data, spans, row->count, effort, &put);
        CHECK(put.base_count == 0 && depth_at_rest(&self, &id) == 0);
        based_check(self.blocks, &id, 9);
        free(spans);
        blocks_done(&self);
    }
}

typedef struct second_writer {
    const char *name;
    bool damaged, replaces;
    size_t its; /* bases, of the block at rest after it */
} second_writer;

/* Version 1 by version 0, of which it is there by itself; how it is told to be
 * at rest then. */
static bal_put put_again(blocks_fixture *self, const bal_id *base,
                         const second_writer *row)
{
    const bal_block_span span = based_whole(base);
    const bal_block_kind kind = { .width = 2,
                                  .kind = BAL_NUMBER_BF16,
                                  .base_kind = BAL_NUMBER_BF16,
                                  .base = &span,
                                  .base_count = 1 };
    uint8_t data[BLOCKS_SIZE];
    bal_batch batch = { 0 };
    bal_put put = { 0 };
    bal_id id;

    based_data(data, 1);
    bal_hash_of(&id, data, BLOCKS_SIZE);
    CHECK_OK(bal_batch_begin(&batch, self->blocks, blocks_tenant,
                             BAL_EFFORT_AUTO, &check_err));
    batch.replaces = row->replaces;
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ data, BLOCKS_SIZE }, &kind,
                           &put, &check_err));
    CHECK(put.base_count == 1);
    CHECK_OK(bal_batch_settle(&batch, self->work, &check_err));
    bal_put settled = bal_batch_settled(&batch, &id);
    bal_batch_done(&batch);
    return settled;
}

/* Two who write one block by different bases leave it as the first one did, and
 * both know how that is; unless it is no good. */
static void the_later_of_two_writers_learns_how_a_block_is_at_rest(void)
{
    static const second_writer rows[] = {
        { .name = "good" },
        { .name = "damaged", .damaged = true, .its = 1 },
        { .name = "to be replaced", .replaces = true, .its = 1 },
    };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const second_writer *row = &rows[r];
        blocks_fixture self;
        bal_put first = { 0 };
        bal_block_info info;
        check_row(row->name);
        blocks_begin(&self);
        bal_id base = based_version(&self, 0, NULL, &first);
        bal_id id = based_version(&self, 1, NULL, &first);
        char *path = blocks_path(&self, &id);
        if (row->damaged)
            blocks_overwrite(path, "damaged", 7);
        bal_put second = put_again(&self, &base, row);
        CHECK(second.base_count == row->its);
        CHECK(depth_at_rest(&self, &id) == row->its);
        CHECK_OK(bal_blocks_verify(self.blocks, blocks_tenant, &id, 0, &info,
                                   &check_err));
        CHECK(info.stored == second.stored && info.codec == second.codec);
        CHECK(bal_id_equal(&info.check, &second.check));
        based_check(self.blocks, &id, 1);
        free(path);
        blocks_done(&self);
    }
}

static const check_test tests[] = {
    { TEST(at_rest_the_base_stands_between_header_and_payload) },
    { TEST(a_chain_is_no_deeper_than_it_may_be_and_each_link_is_exact) },
    { TEST(a_base_may_be_pieces_of_many_blocks) },
    { TEST(a_base_that_will_not_do_is_not_used) },
    { TEST(the_later_of_two_writers_learns_how_a_block_is_at_rest) },
};

CHECK_MAIN(tests)
