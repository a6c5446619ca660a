/* Blocks: there, back, and gone. */
#include <blake3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/file.h"
#include "core/hash.h"
#include "support/blocks.h"

static const bal_block_kind of_two = { .width = 2 };

static void what_is_put_is_read(void)
{
    static const struct {
        size_t offset;
        size_t len;
    } ranges[] = { { 0, BLOCKS_SIZE },      { 0, 1 },
                   { BLOCKS_SIZE - 1, 1 },  { 5, BLOCKS_SIZE - 5 },
                   { BLOCKS_SIZE / 2, 77 }, { 3, 0 } };
    blocks_fixture self;
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE];
    bal_put put = { 0 };
    bal_block_info info;

    blocks_begin(&self);
    for (size_t k = 0; k < BLOCKS_KINDS; k++) {
        check_row(blocks_kinds[k].name);
        blocks_data(data, k);
        bal_id id = blocks_put(&self, (bal_bytes){ data, BLOCKS_SIZE },
                               blocks_kinds[k].width, &put);
        CHECK(put.codec == blocks_kinds[k].codec);
        for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
            memset(back, 0, BLOCKS_SIZE);
            CHECK_OK(bal_blocks_read(
                self.blocks,
                &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE },
                ranges[i].offset, back, ranges[i].len, &check_err));
            CHECK(!memcmp(back, data + ranges[i].offset, ranges[i].len));
        }
        CHECK_OK(bal_blocks_verify(self.blocks, blocks_tenant, &id, 0, &info,
                                   &check_err));
        CHECK(info.logical == BLOCKS_SIZE && info.stored == put.stored);
        CHECK(info.codec == blocks_kinds[k].codec);
        CHECK_OK(blocks_verify(self.blocks, &id, BAL_VERIFY_HEADER));
    }
    blocks_done(&self);
}

static void a_block_of_no_bytes_is_a_block(void)
{
    blocks_fixture self;
    bal_put put = { 0 };
    uint8_t none = 0;

    blocks_begin(&self);
    bal_id id = blocks_put(&self, (bal_bytes){ &none, 0 }, 2, &put);
    CHECK(put.stored == BAL_BLOCK_HEADER);
    CHECK_OK(bal_blocks_read(self.blocks,
                             &(bal_block_ref){ blocks_tenant, &id, 0 }, 0,
                             &none, 0, &check_err));
    blocks_done(&self);
}

/* By docs/format.md, and by BLAKE3 itself. */
static void at_rest_it_is_as_described(void)
{
    static const uint8_t magic[8] = "\x89"
                                    "BALBLK\n";
    blocks_fixture self;
    BAL_LOCAL(bal_buf) bytes = { 0 };
    uint8_t payload[32];
    uint8_t check[32];

    blocks_begin(&self);
    for (size_t k = 0; k < BLOCKS_KINDS; k++) {
        bal_id id = blocks_put_kind(&self, k);
        char *path = blocks_path(&self, &id);
        blake3_hasher hasher;
        check_row(blocks_kinds[k].name);
        blocks_slurp(&bytes, path);
        const uint8_t *at = (const uint8_t *)bytes.data;
        CHECK(!memcmp(at, magic, 8));
        CHECK(at[8] == 1 && at[9] == blocks_kinds[k].codec);
        CHECK(at[10] == blocks_kinds[k].width && at[11] == 0);
        CHECK(bal_get32(at + 12) == 0 && bal_get64(at + 16) == BLOCKS_SIZE);
        CHECK(bal_get64(at + 24) == bytes.len - 64);
        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, at + 64, bytes.len - 64);
        blake3_hasher_finalize(&hasher, payload, 32);
        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, at, 32);
        blake3_hasher_update(&hasher, payload, 32);
        blake3_hasher_finalize(&hasher, check, 32);
        CHECK(!memcmp(at + 32, check, 32));
        free(path);
    }
    blocks_done(&self);
}

typedef struct census {
    size_t blocks;
    size_t others;
    bal_id id;
} census;

static int find(void *ctx, const bal_id *id, const char *name, uint64_t size,
                bal_error *err)
{
    census *self = ctx;

    (void)err;
    CHECK(!strncmp(name, "acme/", 5));
    CHECK(size > 0);
    self->blocks += id != NULL;
    self->others += id == NULL;
    if (id)
        self->id = *id;
    return 0;
}

static void count_blocks(bal_blocks *blocks, census *found)
{
    *found = (census){ 0 };
    CHECK_OK(bal_blocks_each(blocks, blocks_tenant, find, found, &check_err));
}

static void the_same_block_is_put_once(void)
{
    blocks_fixture self;
    uint8_t data[BLOCKS_SIZE];
    bal_batch batch = { 0 };
    bal_put first = { 0 };
    bal_put second = { 0 };
    census found;
    bal_id id;

    blocks_begin(&self);
    blocks_data(data, 2);
    bal_hash_of(&id, data, BLOCKS_SIZE);
    CHECK_OK(bal_batch_begin(&batch, self.blocks, blocks_tenant,
                             BAL_EFFORT_AUTO, &check_err));
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ data, BLOCKS_SIZE },
                           &of_two, &first, &check_err));
    /* Not even looked at: the id is what counts. */
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ NULL, 0 }, &of_two,
                           &second, &check_err));
    CHECK(first.stored == second.stored && first.codec == second.codec);
    CHECK_OK(bal_batch_settle(&batch, self.work, &check_err));
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ NULL, 0 }, &of_two,
                           &second, &check_err));
    CHECK_OK(bal_batch_settle(&batch, self.work, &check_err));
    bal_batch_done(&batch);
    count_blocks(self.blocks, &found);
    CHECK(found.blocks == 1 && found.others == 0);
    blocks_done(&self);
}

typedef struct putting {
    bal_batch batch;
    bal_blocks *blocks;
} putting;

/* Every block is put by four items. */
static int put_one(size_t i, void *ctx, bal_error *err)
{
    putting *self = ctx;
    uint8_t data[BLOCKS_SIZE];
    bal_put put = { 0 };
    bal_id id;

    blocks_data(data, 2);
    data[0] = (uint8_t)(i / 4);
    bal_hash_of(&id, data, BLOCKS_SIZE);
    return bal_batch_put(&self->batch, &id, (bal_bytes){ data, BLOCKS_SIZE },
                         &of_two, &put, err);
}

static int read_one(size_t i, void *ctx, bal_error *err)
{
    putting *self = ctx;
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE];
    bal_id id;

    blocks_data(data, 2);
    data[0] = (uint8_t)(i / 4);
    bal_hash_of(&id, data, BLOCKS_SIZE);
    int rc = bal_blocks_read(
        self->blocks, &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE },
        i % 4, back, BLOCKS_SIZE - 4, err);
    if (rc)
        return rc;
    return memcmp(back, data + i % 4, BLOCKS_SIZE - 4) ? BAL_ECORRUPT : 0;
}

static void many_threads_put_and_read(void)
{
    blocks_fixture self;
    putting all = { 0 };
    census found;
    bal_work *four = NULL;

    blocks_begin(&self);
    CHECK_OK(bal_work_new(&four, 4, &check_err));
    all.blocks = self.blocks;
    CHECK_OK(bal_batch_begin(&all.batch, self.blocks, blocks_tenant,
                             BAL_EFFORT_AUTO, &check_err));
    CHECK_OK(bal_pool_run(four, 160, put_one, &all, &check_err));
    CHECK_OK(bal_batch_settle(&all.batch, four, &check_err));
    bal_batch_done(&all.batch);
    count_blocks(self.blocks, &found);
    CHECK(found.blocks == 40 && found.others == 0);
    CHECK_OK(bal_pool_run(four, 160, read_one, &all, &check_err));
    bal_work_free(four);
    blocks_done(&self);
}

/* Nothing but the file: no row, no size. */
static void an_orphan_is_read_by_itself(void)
{
    blocks_fixture self;
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE];
    bal_block_info info = { 0 };
    census found;

    blocks_begin(&self);
    blocks_data(data, 2);
    blocks_put_kind(&self, 2);
    bal_blocks *other = blocks_open(self.root, 0);
    count_blocks(other, &found);
    CHECK(found.blocks == 1);
    CHECK_OK(bal_blocks_verify(other, blocks_tenant, &found.id, 0, &info,
                               &check_err));
    CHECK(info.logical == BLOCKS_SIZE);
    CHECK_OK(blocks_read(other, &found.id, back));
    CHECK(!memcmp(back, data, BLOCKS_SIZE));
    bal_blocks_free(other);
    blocks_done(&self);
}

static void names_that_are_no_blocks_are_told(void)
{
    blocks_fixture self;
    census found;
    char path[4096];

    blocks_begin(&self);
    bal_id id = blocks_put_kind(&self, 0);
    char *block = blocks_path(&self, &id);
    snprintf(path, sizeof(path), "%s.old", block);
    blocks_overwrite(path, "x", 1);
    snprintf(path, sizeof(path), "%s/blocks/acme/stray", self.root);
    blocks_overwrite(path, "x", 1);
    count_blocks(self.blocks, &found);
    CHECK(found.blocks == 1 && found.others == 2);
    free(block);
    blocks_done(&self);
}

/* ---- removing ----------------------------------------------------------- */

static void a_removed_block_is_gone_from_the_cache_too(void)
{
    blocks_fixture self;
    uint8_t back[BLOCKS_SIZE];
    uint64_t freed = 0;

    blocks_begin(&self);
    bal_id id = blocks_put_kind(&self, 2);
    CHECK_OK(bal_blocks_read(
        self.blocks, &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE }, 1,
        back, 1, &check_err));
    CHECK_OK(bal_blocks_remove(self.blocks, blocks_tenant, &id, 1, &freed,
                               &check_err));
    CHECK(freed > BAL_BLOCK_HEADER);
    CHECK_RC(
        BAL_ENOTFOUND,
        bal_blocks_read(self.blocks,
                        &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE }, 1,
                        back, 1, &check_err));
    CHECK_OK(bal_blocks_remove(self.blocks, blocks_tenant, &id, 1, &freed,
                               &check_err));
    CHECK(freed == 0);
    blocks_done(&self);
}

/* Of three blocks one stays, then none; a directory that holds what is no block
 * stays. */
static void directories_that_are_empty_go_with_the_last_block(void)
{
    blocks_fixture self;
    char tenant[160], stray[200];
    uint64_t freed = 0;

    blocks_begin(&self);
    bal_id ids[] = { blocks_put_kind(&self, 0), blocks_put_kind(&self, 1),
                     blocks_put_kind(&self, 2) };
    snprintf(tenant, sizeof(tenant), "%s/blocks/acme", self.root);
    CHECK_OK(bal_blocks_remove(self.blocks, blocks_tenant, ids, 2, &freed,
                               &check_err));
    CHECK(bal_path_type_of(tenant) == BAL_PATH_DIR);
    CHECK_OK(bal_blocks_remove(self.blocks, blocks_tenant, ids, 3, &freed,
                               &check_err));
    CHECK(bal_path_type_of(tenant) == BAL_PATH_ABSENT);

    bal_id again = blocks_put_kind(&self, 2);
    snprintf(stray, sizeof(stray), "%s/stray", tenant);
    blocks_overwrite(stray, "x", 1);
    CHECK_OK(bal_blocks_remove(self.blocks, blocks_tenant, &again, 1, &freed,
                               &check_err));
    CHECK(bal_path_type_of(stray) == BAL_PATH_FILE);
    blocks_done(&self);
}

static void parts_are_decoded_once(void)
{
    blocks_fixture self;
    uint8_t back[BLOCKS_SIZE];

    blocks_begin(&self);
    bal_id id = blocks_put_kind(&self, 2);
    char *path = blocks_path(&self, &id);
    CHECK_OK(bal_blocks_read(
        self.blocks, &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE }, 1,
        back, 1, &check_err));
    /* Only the cache can have it now; and only for this blocks_tenant. */
    CHECK(!unlink(path));
    CHECK_OK(bal_blocks_read(
        self.blocks, &(bal_block_ref){ blocks_tenant, &id, BLOCKS_SIZE }, 9,
        back, 5, &check_err));
    CHECK_RC(BAL_ENOTFOUND,
             bal_blocks_read(self.blocks,
                             &(bal_block_ref){ "other", &id, BLOCKS_SIZE }, 9,
                             back, 5, &check_err));
    CHECK_RC(BAL_ECORRUPT, bal_blocks_read(self.blocks,
                                           &(bal_block_ref){ blocks_tenant, &id,
                                                             BLOCKS_SIZE - 1 },
                                           9, back, 5, &check_err));
    CHECK_RC(BAL_ENOTFOUND, blocks_read(self.blocks, &id, back));
    free(path);
    blocks_done(&self);
}

/* ---- temporaries -------------------------------------------------------- */

static int count_name(void *ctx, const char *name, bal_error *err)
{
    size_t *count = ctx;

    (void)err;
    *count += strcmp(name, "lock") != 0;
    return 0;
}

static size_t sessions_of(const blocks_fixture *self)
{
    char path[4096];
    size_t count = 0;

    snprintf(path, sizeof(path), "%s/blocks/.tmp", self->root);
    CHECK_OK(bal_dir_each(path, count_name, &count, &check_err));
    return count;
}

static void what_is_not_settled_leaves_nothing(void)
{
    blocks_fixture self;
    uint8_t data[BLOCKS_SIZE];
    uint8_t back[BLOCKS_SIZE];
    bal_batch batch = { 0 };
    bal_put put = { 0 };
    bal_id id;

    blocks_begin(&self);
    blocks_data(data, 0);
    bal_hash_of(&id, data, BLOCKS_SIZE);
    CHECK_OK(bal_batch_begin(&batch, self.blocks, blocks_tenant,
                             BAL_EFFORT_AUTO, &check_err));
    CHECK_OK(bal_batch_put(&batch, &id, (bal_bytes){ data, BLOCKS_SIZE },
                           &of_two, &put, &check_err));
    CHECK_RC(BAL_ENOTFOUND, blocks_read(self.blocks, &id, back));
    bal_batch_done(&batch);
    bal_batch_done(&batch);
    CHECK_RC(BAL_ENOTFOUND, blocks_read(self.blocks, &id, back));
    CHECK(sessions_of(&self) == 1);
    bal_blocks_free(self.blocks);
    CHECK(sessions_of(&self) == 0);
    self.blocks = NULL;
    blocks_done(&self);
}

static void stage_and_die(const char *root)
{
    bal_backend *backend = NULL;
    bal_staged staged;
    bal_bytes part = { "left behind", 11 };

    if (bal_backend_open(&backend, "file:blocks", root, NULL) ||
        bal_backend_stage(backend, &staged, "acme/0/00", &part, 1, NULL))
        _exit(1);
    _exit(0);
}

static void a_sweep_takes_the_dead_only(void)
{
    blocks_fixture self;
    uint64_t bytes = 0;
    int status = 0;
    bal_staged staged;
    bal_bytes part = { "in work", 7 };

    blocks_begin(&self);
    bal_backend *backend = bal_blocks_backend(self.blocks);
    CHECK_OK(
        bal_backend_stage(backend, &staged, "acme/1/11", &part, 1, &check_err));
    pid_t child = fork();
    if (!child)
        stage_and_die(self.root);
    CHECK(waitpid(child, &status, 0) == child && !status);
    CHECK(sessions_of(&self) == 2);

    CHECK_OK(bal_backend_sweep(backend, &bytes, BAL_SWEEP_DRY, &check_err));
    CHECK(bytes == 11 && sessions_of(&self) == 2);
    CHECK_OK(bal_backend_sweep(backend, &bytes, 0, &check_err));
    CHECK(bytes == 11 && sessions_of(&self) == 1);
    CHECK_OK(bal_backend_sweep(backend, &bytes, 0, &check_err));
    CHECK(bytes == 0);
    CHECK_OK(bal_backend_settle(backend, &staged, 1, self.work, &check_err));
    CHECK(staged.name == NULL && staged.temp == NULL);
    CHECK_OK(bal_backend_size(backend, "acme/1/11", &bytes, &check_err));
    CHECK(bytes == 7);
    blocks_done(&self);
}

static const check_test tests[] = {
    { TEST(what_is_put_is_read) },
    { TEST(a_block_of_no_bytes_is_a_block) },
    { TEST(at_rest_it_is_as_described) },
    { TEST(the_same_block_is_put_once) },
    { TEST(many_threads_put_and_read) },
    { TEST(an_orphan_is_read_by_itself) },
    { TEST(names_that_are_no_blocks_are_told) },
    { TEST(a_removed_block_is_gone_from_the_cache_too) },
    { TEST(directories_that_are_empty_go_with_the_last_block) },
    { TEST(parts_are_decoded_once) },
    { TEST(what_is_not_settled_leaves_nothing) },
    { TEST(a_sweep_takes_the_dead_only) },
};

CHECK_MAIN(tests)
