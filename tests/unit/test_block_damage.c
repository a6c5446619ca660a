/* Blocks that are not what they should be: told, and told which. */
#include <stdlib.h>
#include <string.h>

#include "support/blocks.h"

/* Refused by whoever verifies; and a read that does not refuse (it does not
 * look at the check) gives the right bytes. */
static void every_flipped_header_bit_is_refused(void)
{
    blocks_fixture self;
    BAL_LOCAL(bal_buf) bytes = { 0 };
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE];

    blocks_begin(&self);
    for (size_t k = 0; k < BLOCKS_KINDS; k++) {
        bal_id id = blocks_put_kind(&self, k);
        char *path = blocks_path(&self, &id);
        blocks_data(data, k);
        blocks_slurp(&bytes, path);
        for (size_t bit = 0; bit < 8 * BAL_BLOCK_HEADER; bit++) {
            char row[64];
            snprintf(row, sizeof(row), "%s, bit %zu", blocks_kinds[k].name,
                     bit);
            check_row(row);
            bytes.data[bit / 8] ^= (char)(1 << bit % 8);
            blocks_overwrite(path, bytes.data, bytes.len);
            int rc = blocks_verify(self.blocks, &id, 0);
            CHECK(rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED);
            rc = blocks_read(self.blocks, &id, back);
            CHECK(rc || !memcmp(back, data, BLOCKS_SIZE));
            bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        free(path);
    }
    blocks_done(&self);
}

static void a_damaged_payload_is_refused(void)
{
    blocks_fixture self;
    BAL_LOCAL(bal_buf) bytes = { 0 };
    uint8_t back[BLOCKS_SIZE];

    blocks_begin(&self);
    for (size_t k = 0; k < BLOCKS_KINDS; k++) {
        bal_id id = blocks_put_kind(&self, k);
        char *path = blocks_path(&self, &id);
        check_row(blocks_kinds[k].name);
        blocks_slurp(&bytes, path);
        for (size_t at = 64 + 90; at < bytes.len; at += bytes.len / 7) {
            bytes.data[at] ^= 4;
            blocks_overwrite(path, bytes.data, bytes.len);
            CHECK_RC(BAL_ECORRUPT, blocks_verify(self.blocks, &id, 0));
            CHECK_OK(blocks_verify(self.blocks, &id, BAL_VERIFY_HEADER));
            CHECK_RC(BAL_ECORRUPT, blocks_read(self.blocks, &id, back));
            CHECK_RC(BAL_ECORRUPT,
                     bal_blocks_read(
                         self.blocks,
                         &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE }, 1,
                         back, 2, &check_err));
            bytes.data[at] ^= 4;
        }
        blocks_overwrite(path, bytes.data, bytes.len);
        CHECK_OK(blocks_read(self.blocks, &id, back));
        free(path);
    }
    blocks_done(&self);
}

static void every_length_but_its_own_is_refused(void)
{
    blocks_fixture self;
    BAL_LOCAL(bal_buf) bytes = { 0 };
    uint8_t back[BLOCKS_SIZE];

    blocks_begin(&self);
    bal_id id = blocks_put_kind(&self, 1);
    char *path = blocks_path(&self, &id);
    blocks_slurp(&bytes, path);
    CHECK_OK(bal_buf_append(&bytes, "x", 1, &check_err));
    for (size_t len = 0; len <= bytes.len; len += len < 70 ? 1 : 97) {
        if (len == bytes.len - 1)
            continue;
        blocks_overwrite(path, bytes.data, len);
        CHECK_RC(BAL_ECORRUPT, blocks_read(self.blocks, &id, back));
        CHECK_RC(BAL_ECORRUPT, blocks_verify(self.blocks, &id, 0));
        CHECK_RC(BAL_ECORRUPT,
                 blocks_verify(self.blocks, &id, BAL_VERIFY_HEADER));
    }
    free(path);
    blocks_done(&self);
}

/* A good block under the name of another. */
static void a_block_of_another_name_is_refused(void)
{
    blocks_fixture self;
    uint8_t back[BLOCKS_SIZE];

    blocks_begin(&self);
    for (size_t k = 0; k < BLOCKS_KINDS; k++) {
        bal_id id = blocks_put_kind(&self, k);
        bal_id other = blocks_put_kind(&self, (k + 1) % BLOCKS_KINDS);
        char *from = blocks_path(&self, &id);
        char *to = blocks_path(&self, &other);
        check_row(blocks_kinds[k].name);
        CHECK(!rename(from, to));
        CHECK_RC(BAL_ECORRUPT, blocks_read(self.blocks, &other, back));
        CHECK_RC(BAL_ECORRUPT, blocks_verify(self.blocks, &other, 0));
        CHECK(strstr(check_err.text, ": hash: ") != NULL);
        free(from);
        free(to);
    }
    blocks_done(&self);
}

static void errors_name_the_block(void)
{
    blocks_fixture self;
    uint8_t back[BLOCKS_SIZE];
    bal_id none = { { 0x3f, 0x0a, 0x1b, 0x2c, 0x3d, 0x4e } };

    blocks_begin(&self);
    CHECK_RC(BAL_ENOTFOUND, blocks_read(self.blocks, &none, back));
    CHECK(!strcmp(check_err.text, "no block 3f0a1b2c3d4e"));
    CHECK_RC(BAL_ENOTFOUND, blocks_verify(self.blocks, &none, 0));
    CHECK(!strcmp(check_err.text, "no block 3f0a1b2c3d4e"));
    CHECK_RC(BAL_ENOTFOUND,
             blocks_verify(self.blocks, &none, BAL_VERIFY_HEADER));

    bal_id id = blocks_put_kind(&self, 0);
    CHECK_RC(BAL_ECORRUPT, bal_blocks_read(self.blocks,
                                           &(bal_block_ref){ blocks_tenant, &id,
                                                             BLOCKS_SIZE + 1 },
                                           0, back, 1, &check_err));
    CHECK(!strncmp(check_err.text, "block ", 6));
    CHECK(strstr(check_err.text, ": size: ") != NULL);
    CHECK_RC(BAL_ENOTFOUND,
             bal_blocks_read(self.blocks,
                             &(bal_block_ref){ "other", &id, BLOCKS_SIZE }, 0,
                             back, BLOCKS_SIZE, &check_err));
    CHECK_RC(BAL_EINVAL, bal_blocks_read(self.blocks,
                                         &(bal_block_ref){ blocks_tenant, &id,
                                                           BLOCKS_SIZE },
                                         BLOCKS_SIZE, back, 1, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_blocks_read(self.blocks,
                             &(bal_block_ref){ "..", &id, BLOCKS_SIZE }, 0,
                             back, BLOCKS_SIZE, &check_err));
    blocks_done(&self);
}

static const check_test tests[] = {
    { TEST(every_flipped_header_bit_is_refused) },
    { TEST(a_damaged_payload_is_refused) },
    { TEST(every_length_but_its_own_is_refused) },
    { TEST(a_block_of_another_name_is_refused) },
    { TEST(errors_name_the_block) },
};

CHECK_MAIN(tests)
