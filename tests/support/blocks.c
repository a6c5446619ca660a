/* A store of blocks in an empty directory. */
#include "support/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/hash.h"

enum { CACHE = 1 << 20 };

const char blocks_tenant[] = "acme";

bal_blocks *blocks_open(const char *root, size_t cache)
{
    bal_backend *backend = NULL;
    bal_blocks *blocks = NULL;

    CHECK_OK(bal_backend_open(&backend, "file:blocks", root, &check_err));
    CHECK_OK(bal_blocks_open(&blocks, backend, cache, &check_err));
    return blocks;
}

void blocks_begin(blocks_fixture *self)
{
    snprintf(self->root, sizeof(self->root), "%s/XXXXXX", check_dir());
    CHECK(mkdtemp(self->root) != NULL);
    self->blocks = blocks_open(self->root, CACHE);
    CHECK_OK(bal_work_new(&self->work, 2, &check_err));
}

void blocks_done(blocks_fixture *self)
{
    bal_blocks_free(self->blocks);
    bal_work_free(self->work);
}

const blocks_kind blocks_kinds[BLOCKS_KINDS] = {
    { "random", 2, BAL_CODEC_RAW },
    { "text", 0, BAL_CODEC_ZSTD },
    { "numbers", 2, BAL_CODEC_SPLIT },
};

void blocks_data(uint8_t *data, size_t kind)
{
    uint64_t state = 7;

    for (size_t i = 0; i < BLOCKS_SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (uint8_t)(state >> 56);
        if (kind == 1 || (kind == 2 && i % 2))
            data[i] = (uint8_t)("abcdefgh"[data[i] % 8]);
    }
}

bal_id blocks_put(blocks_fixture *self, bal_bytes data, unsigned width,
                  bal_put *put)
{
    bal_batch batch = { 0 };
    bal_id id;

    bal_hash_of(&id, data.data, data.len);
    CHECK_OK(bal_batch_begin(&batch, self->blocks, blocks_tenant,
                             BAL_EFFORT_AUTO, &check_err));
    const bal_block_kind kind = { .width = width };
    CHECK_OK(bal_batch_put(&batch, &id, data, &kind, put, &check_err));
    CHECK_OK(bal_batch_settle(&batch, self->work, &check_err));
    bal_batch_done(&batch);
    return id;
}

bal_id blocks_put_kind(blocks_fixture *self, size_t kind)
{
    uint8_t data[BLOCKS_SIZE];
    bal_put put = { 0 };

    blocks_data(data, kind);
    return blocks_put(self, (bal_bytes){ data, BLOCKS_SIZE },
                      blocks_kinds[kind].width, &put);
}

char *blocks_path(const blocks_fixture *self, const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];
    char path[4096];

    bal_id_hex(hex, id);
    snprintf(path, sizeof(path), "%s/blocks/%s/%c/%s", self->root,
             blocks_tenant, hex[0], hex);
    return strdup(path);
}

void blocks_slurp(bal_buf *out, const char *path)
{
    bal_buf_clear(out);
    CHECK_OK(bal_file_slurp(out, path, 1 << 20, &check_err));
}

void blocks_overwrite(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wb");

    CHECK(file != NULL);
    CHECK(fwrite(data, 1, len, file) == len);
    CHECK(!fclose(file));
}

int blocks_read(bal_blocks *blocks, const bal_id *id, uint8_t *to)
{
    return bal_blocks_read(blocks,
                           &(bal_block_ref){ blocks_tenant, id, BLOCKS_SIZE },
                           0, to, BLOCKS_SIZE, &check_err);
}

int blocks_verify(bal_blocks *blocks, const bal_id *id, unsigned flags)
{
    bal_block_info info;

    return bal_blocks_verify(blocks, blocks_tenant, id, flags, &info,
                             &check_err);
}
