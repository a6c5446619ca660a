/* Blocks that say of their base what is not so are refused, and nobody waits
 * for ever. What lies is made by docs/format.md and BLAKE3 itself, so that its
 * check is right. */
#include <blake3.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "support/based.h"

/* A based block as it is at rest, in parts that can be changed. */
typedef struct forged {
    bal_id id;
    uint8_t head[64];
    uint8_t extra[BASED_HEAD + 1025 * BASED_SPAN];
    size_t extra_len;
    bal_buf payload;
} forged;

static void forged_done(forged *self)
{
    bal_buf_done(&self->payload);
}

static void hash_of(uint8_t out[32], const void *one, size_t one_len,
                    const void *two, size_t two_len)
{
    blake3_hasher hasher;

    blake3_hasher_init(&hasher);
    blake3_hasher_update(&hasher, one, one_len);
    blake3_hasher_update(&hasher, two, two_len);
    blake3_hasher_finalize(&hasher, out, 32);
}

/* Version v as a block of depth 1 that is coded by the base. */
static void forge(forged *out, blocks_fixture *self, const bal_id *base,
                  size_t v)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    bal_put put = { 0 };

    memset(out, 0, sizeof(*out));
    out->id = based_version(self, v, base, &put);
    CHECK(put.base_count == 1);
    char *path = blocks_path(self, &out->id);
    blocks_slurp(&bytes, path);
    free(path);
    memcpy(out->head, bytes.data, 64);
    out->extra_len = BASED_HEAD + BASED_SPAN;
    memcpy(out->extra, bytes.data + 64, out->extra_len);
    CHECK_OK(bal_buf_append(&out->payload, bytes.data + 64 + out->extra_len,
                            bytes.len - 64 - out->extra_len, &check_err));
}

/* With a check that is right. */
static void forged_write(forged *self, const blocks_fixture *fixture)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };
    BAL_LOCAL(bal_buf) covered = { 0 };
    uint8_t payload[32];

    bal_put32(self->head + 12, (uint32_t)self->extra_len);
    hash_of(payload, self->payload.data, self->payload.len, "", 0);
    CHECK_OK(bal_buf_append(&covered, self->head, 32, &check_err));
    CHECK_OK(
        bal_buf_append(&covered, self->extra, self->extra_len, &check_err));
    hash_of(self->head + 32, covered.data, covered.len, payload, 32);
    CHECK_OK(bal_buf_append(&bytes, self->head, 64, &check_err));
    CHECK_OK(bal_buf_append(&bytes, self->extra, self->extra_len, &check_err));
    CHECK_OK(bal_buf_append(&bytes, self->payload.data, self->payload.len,
                            &check_err));
    char *path = blocks_path(fixture, &self->id);
    blocks_overwrite(path, bytes.data, bytes.len);
    free(path);
}

static int read_part(bal_blocks *blocks, const bal_id *id)
{
    uint8_t back[8];

    return bal_blocks_read(blocks,
                           &(bal_block_ref){ blocks_tenant, id, BLOCKS_SIZE },
                           4, back, sizeof(back), &check_err);
}

/* Whoever reads or decodes it is told the block, and what of it. */
static void is_refused(bal_blocks *blocks, const bal_id *id, int rc,
                       const char *what)
{
    uint8_t back[BLOCKS_SIZE];
    char start[32];
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    snprintf(start, sizeof(start), "block %.12s: ", hex);
    CHECK_RC(rc, blocks_read(blocks, id, back));
    CHECK_RC(rc, read_part(blocks, id));
    CHECK_RC(rc, blocks_verify(blocks, id, 0));
    CHECK(!strncmp(check_err.text, start, strlen(start)));
    CHECK(strstr(check_err.text, what) != NULL);
}

/* len: of all that stands before the payload, 0: as it is. at: where in that
 * the value goes. */
typedef struct lie {
    const char *name;
    size_t at, width;
    uint64_t value;
    size_t len;
} lie;

enum {
    SIZE_AT = BASED_HEAD + 32,
    OFFSET_AT = BASED_HEAD + 40,
    LEN_AT = BASED_HEAD + 48
};

static const lie lies[] = {
    { "depth 0", 0, 1, 0, 0 },
    { "depth 7", 0, 1, 7, 0 },
    { "depth 255", 0, 1, 255, 0 },
    { "a byte that is to be 0", 3, 1, 1, 0 },
    { "the last byte that is to be 0", 7, 1, 128, 0 },
    { "from its last byte on", OFFSET_AT, 8, BLOCKS_SIZE - 1, 0 },
    { "from behind it on", OFFSET_AT, 8, BLOCKS_SIZE + 1, 0 },
    { "an offset that overflows", OFFSET_AT, 8, UINT64_MAX, 0 },
    { "a length that overflows", LEN_AT, 8, UINT64_MAX, 0 },
    { "an element too few", LEN_AT, 8, BLOCKS_SIZE - 2, 0 },
    { "none of its bytes", LEN_AT, 8, 0, 0 },
    { "a block longer than any", SIZE_AT, 8, ((uint64_t)1 << 30) + 1, 0 },
    { "a block longer than it is", SIZE_AT, 8, BLOCKS_SIZE + 2, 0 },
    { "another size of all bits", SIZE_AT, 8, UINT64_MAX, 0 },
    { "nothing", 0, 1, 1, SIZE_MAX },
    { "the depth alone", 0, 1, 1, 1 },
    { "no span", 0, 1, 1, BASED_HEAD },
    { "a span cut short", 0, 1, 1, BASED_HEAD + BASED_SPAN - 1 },
    { "a byte too many", 0, 1, 1, BASED_HEAD + BASED_SPAN + 1 },
    { "the same again", 0, 1, 1, BASED_HEAD + 2 * BASED_SPAN },
    { "1024 of the same", 0, 1, 1, BASED_HEAD + 1024 * BASED_SPAN },
    { "1025 of the same", 0, 1, 1, BASED_HEAD + 1025 * BASED_SPAN },
};

static void tell_lie(forged *self, const lie *row)
{
    for (size_t i = 1; i < 1025; i++)
        memcpy(self->extra + BASED_HEAD + i * BASED_SPAN,
               self->extra + BASED_HEAD, BASED_SPAN);
    if (row->width == 8)
        bal_put64(self->extra + row->at, row->value);
    else
        self->extra[row->at] = (uint8_t)row->value;
    if (row->len)
        self->extra_len = row->len == SIZE_MAX ? 0 : row->len;
}

static void what_is_no_base_is_refused(void)
{
    blocks_fixture self;
    bal_put put = { 0 };

    blocks_begin(&self);
    bal_id base = based_version(&self, 0, NULL, &put);
    for (size_t r = 0; r < sizeof(lies) / sizeof(lies[0]); r++) {
        BAL_LOCAL(forged) block = { 0 };
        check_row(lies[r].name);
        forge(&block, &self, &base, 1);
        forged_write(&block, &self);
        based_check(self.blocks, &block.id, 1);
        /* Another handle, whose cache has nothing. */
        bal_blocks *other = blocks_open(self.root, 1 << 20);
        tell_lie(&block, &lies[r]);
        forged_write(&block, &self);
        is_refused(other, &block.id, BAL_ECORRUPT, "");
        bal_blocks_free(other);
    }
    blocks_done(&self);
}

/* 1024 spans are fine, if there is so much of their blocks. */
static void as_many_spans_as_there_may_be_are_read(void)
{
    blocks_fixture self;
    BAL_LOCAL(forged) block = { 0 };
    bal_put put = { 0 };

    blocks_begin(&self);
    bal_id base = based_version(&self, 0, NULL, &put);
    forge(&block, &self, &base, 1);
    tell_lie(&block, &(lie){ "", 0, 1, 1, BASED_HEAD + 1024 * BASED_SPAN });
    for (size_t i = 0; i < 1024; i++) {
        uint64_t len = i < 1023 ? 18 : BLOCKS_SIZE - 1023 * 18;
        bal_put64(block.extra + i * BASED_SPAN + OFFSET_AT, 18 * i);
        bal_put64(block.extra + i * BASED_SPAN + LEN_AT, len);
    }
    forged_write(&block, &self);
    based_check(self.blocks, &block.id, 1);
    blocks_done(&self);
}

static void flags_that_are_not_known_are_unsupported(void)
{
    static const uint8_t flags[] = { 0, 1, 3, 4, 6, 128, 130, 255 };
    blocks_fixture self;
    bal_put put = { 0 };

    blocks_begin(&self);
    bal_id base = based_version(&self, 0, NULL, &put);
    for (size_t i = 0; i < sizeof(flags); i++) {
        BAL_LOCAL(forged) block = { 0 };
        bal_blocks *other = blocks_open(self.root, 1 << 20);
        forge(&block, &self, &base, 1);
        block.head[11] = flags[i];
        forged_write(&block, &self);
        is_refused(other, &block.id, BAL_EUNSUPPORTED, "flags");
        bal_blocks_free(other);
    }
    blocks_done(&self);
}

/* The child's reader is told of the base, which is what is to be mended. */
static void a_lost_or_damaged_base_is_named(void)
{
    static const char *const names[] = { "lost", "damaged", "of another" };
    char hex[BAL_ID_HEX + 1];

    for (size_t r = 0; r < 3; r++) {
        blocks_fixture self;
        BAL_LOCAL(forged) block = { 0 };
        BAL_LOCAL(bal_buf) bytes = { 0 };
        bal_put put = { 0 };
        check_row(names[r]);
        blocks_begin(&self);
        bal_id base = based_version(&self, 0, NULL, &put);
        bal_id another = based_version(&self, 5, &base, &put);
        forge(&block, &self, &base, 1);
        char *path = blocks_path(&self, &base);
        char *from = blocks_path(&self, &another);
        blocks_slurp(&bytes, path);
        bytes.data[bytes.len / 2] ^= 1;
        if (r == 0)
            CHECK(!remove(path));
        if (r == 1)
            blocks_overwrite(path, bytes.data, bytes.len);
        if (r == 2)
            CHECK(!rename(from, path));
        bal_id_hex(hex, &base);
        hex[12] = '\0';
        is_refused(self.blocks, &block.id, BAL_ECORRUPT, hex);
        free(path);
        free(from);
        blocks_done(&self);
    }
}

/* ---- circles ------------------------------------------------------------ */

enum { READERS = 4, READS = 400 };

typedef struct circling {
    bal_blocks *blocks;
    bal_id ids[2];
} circling;

/* Both at once: who waits for a block that waits for his is there for ever. */
static int read_either(size_t i, void *ctx, bal_error *err)
{
    circling *self = ctx;
    uint8_t back[BLOCKS_SIZE];
    const bal_block_ref ref = { blocks_tenant, &self->ids[i % 2], BLOCKS_SIZE };
    size_t len = i % 3 ? 8 : BLOCKS_SIZE;
    int rc = bal_blocks_read(self->blocks, &ref, 0, back, len, NULL);

    return rc == BAL_ECORRUPT ? 0 : bal_fail(err, BAL_EINVAL, "code %d", rc);
}

/* a by b, which is by a; spans: the bytes of the first element of each (then
 * they are read through the cache), or all. */
static void make_circle(circling *out, blocks_fixture *self,
                        const unsigned depths[2], uint64_t len)
{
    forged blocks[2];
    bal_put put = { 0 };
    bal_id base = based_version(self, 0, NULL, &put);

    for (size_t i = 0; i < 2; i++) {
        forge(&blocks[i], self, &base, i + 1);
        out->ids[i] = blocks[i].id;
    }
    for (size_t i = 0; i < 2; i++) {
        blocks[i].extra[0] = (uint8_t)depths[i];
        memcpy(blocks[i].extra + BASED_HEAD, out->ids[!i].bytes, 32);
        bal_put64(blocks[i].extra + LEN_AT, len);
        forged_write(&blocks[i], self);
        forged_done(&blocks[i]);
    }
}

static void blocks_in_a_circle_are_refused_and_nobody_waits(void)
{
    static const struct {
        const char *name;
        unsigned depths[2];
    } rows[] = { { "1 and 1", { 1, 1 } }, { "1 and 2", { 1, 2 } },
                 { "2 and 1", { 2, 1 } }, { "5 and 6", { 5, 6 } },
                 { "6 and 6", { 6, 6 } }, { "0 and 0", { 0, 0 } },
                 { "0 and 6", { 0, 6 } }, { "255 and 1", { 255, 1 } } };
    bal_work *many = NULL;

    CHECK_OK(bal_work_new(&many, READERS, &check_err));
    for (size_t r = 0; r < 2 * sizeof(rows) / sizeof(rows[0]); r++) {
        blocks_fixture self;
        circling circle = { 0 };
        check_row(rows[r / 2].name);
        blocks_begin(&self);
        make_circle(&circle, &self, rows[r / 2].depths,
                    r % 2 ? 2 : BLOCKS_SIZE);
        circle.blocks = blocks_open(self.root, 1 << 20);
        CHECK_OK(bal_pool_run(many, READS, read_either, &circle, &check_err));
        is_refused(circle.blocks, &circle.ids[0], BAL_ECORRUPT, "base");
        is_refused(circle.blocks, &circle.ids[1], BAL_ECORRUPT, "base");
        bal_blocks_free(circle.blocks);
        blocks_done(&self);
    }
    bal_work_free(many);
}

static void a_block_that_is_its_own_base_is_refused(void)
{
    blocks_fixture self;
    bal_put put = { 0 };

    blocks_begin(&self);
    bal_id base = based_version(&self, 0, NULL, &put);
    for (uint8_t depth = 1; depth <= BASED_DEPTHS; depth++) {
        BAL_LOCAL(forged) block = { 0 };
        bal_blocks *other = blocks_open(self.root, 1 << 20);
        forge(&block, &self, &base, 1);
        block.extra[0] = depth;
        memcpy(block.extra + BASED_HEAD, block.id.bytes, 32);
        bal_put64(block.extra + LEN_AT, depth % 2 ? 2 : BLOCKS_SIZE);
        forged_write(&block, &self);
        is_refused(other, &block.id, BAL_ECORRUPT, "base");
        bal_blocks_free(other);
    }
    blocks_done(&self);
}

/* Also of a chain that is right the whole way down. */
static void a_base_as_deep_as_its_child_is_refused(void)
{
    blocks_fixture self;
    BAL_LOCAL(forged) block = { 0 };
    bal_put put = { 0 };
    bal_id ids[4];

    blocks_begin(&self);
    for (size_t v = 0; v < 4; v++)
        ids[v] = based_version(&self, v, v ? &ids[v - 1] : NULL, &put);
    forge(&block, &self, &ids[3], 4);
    for (uint8_t depth = 1; depth <= BASED_DEPTHS; depth++) {
        bal_blocks *other = blocks_open(self.root, 1 << 20);
        block.extra[0] = depth;
        forged_write(&block, &self);
        if (depth > 3)
            based_check(other, &block.id, 4);
        else
            is_refused(other, &block.id, BAL_ECORRUPT, "base");
        /* What fsck asks, which does not decode. */
        BAL_LOCAL(bal_buf) bases = { 0 };
        CHECK_RC(depth > 3 ? 0 : BAL_ECORRUPT,
                 bal_blocks_bases(other, blocks_tenant, &block.id, &bases,
                                  &check_err));
        bal_blocks_free(other);
    }
    blocks_done(&self);
}

static const check_test tests[] = {
    { TEST(what_is_no_base_is_refused) },
    { TEST(as_many_spans_as_there_may_be_are_read) },
    { TEST(flags_that_are_not_known_are_unsupported) },
    { TEST(a_lost_or_damaged_base_is_named) },
    { TEST(blocks_in_a_circle_are_refused_and_nobody_waits) },
    { TEST(a_block_that_is_its_own_base_is_refused) },
    { TEST(a_base_as_deep_as_its_child_is_refused) },
};

CHECK_MAIN(tests)
