/* The view cache's files; see view_files.h. */
#include "store/view_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

enum {
    AT_MANIFEST = 8,
    AT_NUMBER = 40,
    AT_BLOCK_SIZE = 48,
    AT_SIZE = 56,
    AT_HASH = 64,
    HEAD = 96,
    PIECE = 256 << 10,
    EPOCH_MAX = 64,
};

/* The last byte is the format of file and packing. */
static const uint8_t magic[8] = { 'b', 'a', 'l', 'v', 'i', 'e', 'w', 1 };
static const char temporaries[] = ".tmp";
/* No tenant is called so. */
static const char epoch_name[] = ".epoch";

/* ---- paths -------------------------------------------------------------- */

int bal_view_path(bal_buf *out, const bal_store *self, const char *tenant,
                  const bal_id *manifest, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    /* It may come out of a database that somebody else has written to. */
    if (tenant && !bal_name_valid(tenant) && strcmp(tenant, temporaries) != 0)
        return bal_fail(err, BAL_ECORRUPT, "'%s' is not a tenant's name",
                        tenant);
    int rc = bal_buf_format(out, err, "%s/cache", self->root);
    if (!rc && tenant)
        rc = bal_buf_format(out, err, "/%s", tenant);
    if (rc || !manifest)
        return rc;
    bal_id_hex(hex, manifest);
    return bal_buf_format(out, err, "/%s", hex);
}

static int block_path(bal_buf *out, const bal_store *self,
                      const bal_view_block *block, bal_error *err)
{
    int rc = bal_view_path(out, self, block->tenant, &block->manifest, err);

    return rc ? rc : bal_buf_format(out, err, "/%" PRIu64, block->number);
}

/* ---- the file ----------------------------------------------------------- */

static void make_head(uint8_t head[HEAD], const bal_view_block *block)
{
    memcpy(head, magic, sizeof(magic));
    memcpy(head + AT_MANIFEST, block->manifest.bytes, sizeof(bal_id));
    bal_put64(head + AT_NUMBER, block->number);
    bal_put64(head + AT_BLOCK_SIZE, block->block_size);
    bal_put64(head + AT_SIZE, block->size);
}

static void hash_file(bal_id *out, const uint8_t head[HEAD], const void *data,
                      size_t len)
{
    bal_hash hash;

    bal_hash_init(&hash);
    bal_hash_add(&hash, head, AT_HASH);
    bal_hash_add(&hash, data, len);
    bal_hash_end(&hash, out);
}

/* Is what lies at path the block? Its bytes are at `to` then. */
static bool fits(const char *path, const bal_view_block *block, uint8_t *to)
{
    uint8_t want[HEAD], got[HEAD];
    BAL_OWN(bal_file) file = NULL;
    bal_id id;

    make_head(want, block);
    if (bal_file_open(&file, path, NULL) || file->size != HEAD + block->size ||
        bal_file_read(file, 0, got, HEAD, NULL) ||
        memcmp(want, got, AT_HASH) != 0 ||
        bal_file_read(file, HEAD, to, (size_t)block->size, NULL))
        return false;
    hash_file(&id, got, to, (size_t)block->size);
    return !memcmp(id.bytes, got + AT_HASH, sizeof(id));
}

void bal_view_file_read(bool *there, const bal_store *self,
                        const bal_view_block *block, uint8_t *to)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    *there = false;
    if (block_path(&path, self, block, NULL) ||
        bal_path_type_of(path.data) == BAL_PATH_ABSENT)
        return;
    *there = fits(path.data, block, to);
    if (*there)
        return;
    bal_warn("store", "view-cache=%s damaged=1", path.data);
    (void)unlink(path.data);
}

/* Piece by piece: its length is what somebody has written. */
static int hash_open(bal_id *out, const bal_file *file,
                     const uint8_t head[HEAD])
{
    uint8_t *piece = malloc(PIECE);
    uint64_t at = HEAD;
    bal_hash hash;
    int rc = piece ? 0 : BAL_ENOMEM;

    bal_hash_init(&hash);
    bal_hash_add(&hash, head, AT_HASH);
    while (!rc && at < file->size) {
        size_t len = (size_t)bal_min(file->size - at, PIECE);
        rc = bal_file_read(file, at, piece, len, NULL);
        if (!rc)
            bal_hash_add(&hash, piece, len);
        at += len;
    }
    free(piece);
    bal_hash_end(&hash, out);
    return rc;
}

bool bal_view_file_whole(const char *path, const bal_id *manifest,
                         uint64_t number)
{
    uint8_t head[HEAD], want[HEAD];
    bal_view_block block = { .manifest = *manifest, .number = number };
    BAL_OWN(bal_file) file = NULL;
    bal_id id;

    if (bal_file_open(&file, path, NULL) ||
        bal_file_read(file, 0, head, HEAD, NULL))
        return false;
    block.block_size = bal_get64(head + AT_BLOCK_SIZE);
    block.size = bal_get64(head + AT_SIZE);
    make_head(want, &block);
    if (file->size < HEAD || block.size != file->size - HEAD ||
        memcmp(want, head, AT_HASH) != 0 || hash_open(&id, file, head))
        return false;
    return !memcmp(id.bytes, head + AT_HASH, sizeof(id));
}

static int write_temporary(const char *path, const uint8_t head[HEAD],
                           const uint8_t *data, size_t len, bal_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return bal_fail_errno(err, "making '%s'", path);
    int rc = bal_write_all(fd, head, HEAD, path, err);

    if (!rc)
        rc = bal_write_all(fd, data, len, path, err);
    if (close(fd) && !rc)
        rc = bal_fail_errno(err, "closing '%s'", path);
    return rc;
}

static int make_dir(const char *path, bal_error *err)
{
    if (!mkdir(path, 0777) || errno == EEXIST)
        return 0;
    return bal_fail_errno(err, "making '%s'", path);
}

/* "cache/.tmp/<tenant>:<manifest>:<random>", and the folder for it. */
static int temporary_path(bal_buf *out, const bal_store *self,
                          const bal_view_block *block, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    uint64_t noise = 0;
    int rc = bal_view_path(out, self, temporaries, NULL, err);
    if (!rc)
        rc = make_dir(out->data, err);
    if (rc)
        return rc;

    if (getrandom(&noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
        return bal_fail_errno(err, "drawing a name");
    bal_id_hex(hex, &block->manifest);
    return bal_buf_format(out, err, "/%s:%s:%016" PRIx64, block->tenant, hex,
                          noise);
}

/* The two folders that a block's file lies in. */
static int make_place(const bal_store *self, const bal_view_block *block,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_view_path(&path, self, block->tenant, NULL, err);
    if (!rc)
        rc = make_dir(path.data, err);
    bal_buf_clear(&path);
    if (!rc)
        rc = bal_view_path(&path, self, block->tenant, &block->manifest, err);
    return rc ? rc : make_dir(path.data, err);
}

int bal_view_file_write(const bal_store *self, const bal_view_block *block,
                        const uint8_t *data, bal_error *err)
{
    BAL_LOCAL(bal_buf) temporary = { 0 };
    BAL_LOCAL(bal_buf) path = { 0 };
    uint8_t head[HEAD];
    bal_id id;
    int rc = temporary_path(&temporary, self, block, err);
    if (!rc)
        rc = block_path(&path, self, block, err);
    if (!rc)
        rc = make_place(self, block, err);
    if (rc)
        return rc;

    make_head(head, block);
    hash_file(&id, head, data, (size_t)block->size);
    memcpy(head + AT_HASH, id.bytes, sizeof(id));
    rc = write_temporary(temporary.data, head, data, (size_t)block->size, err);
    if (!rc && rename(temporary.data, path.data))
        rc = bal_fail_errno(err, "renaming '%s'", temporary.data);
    if (rc)
        (void)unlink(temporary.data);
    return rc;
}

/* ---- the epoch ---------------------------------------------------------- */

static int epoch_path(bal_buf *out, const bal_store *self, bal_error *err)
{
    int rc = bal_view_path(out, self, NULL, NULL, err);

    return rc ? rc : bal_buf_format(out, err, "/%s", epoch_name);
}

int bal_view_epoch_read(bal_view_epoch *out, const bal_store *self,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_view_path(&path, self, NULL, NULL, err);
    if (rc)
        return rc;

    *out = (bal_view_epoch){ 0 };
    out->any = bal_path_type_of(path.data) != BAL_PATH_ABSENT;
    bal_buf_clear(&path);
    rc = out->any ? epoch_path(&path, self, err) : 0;
    if (rc || !out->any)
        return rc;
    /* What cannot be read says nothing. */
    out->there = !bal_file_slurp(&text, path.data, EPOCH_MAX, NULL) &&
                 !bal_parse_u64(&out->epoch, bal_buf_string(&text), NULL);
    return 0;
}

int bal_view_epoch_write(const bal_store *self, uint64_t epoch, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    char text[EPOCH_MAX];
    int len = snprintf(text, sizeof(text), "%" PRIu64, epoch);
    int rc = bal_view_path(&path, self, NULL, NULL, err);
    if (!rc)
        rc = bal_make_dirs(path.data, err);
    bal_buf_clear(&path);
    if (!rc)
        rc = epoch_path(&path, self, err);
    return rc ? rc : bal_file_replace(path.data, text, (size_t)len, err);
}

int bal_view_wipe(const bal_store *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_view_path(&path, self, NULL, NULL, err);
    if (!rc)
        rc = bal_remove_tree(path.data, err);
    return rc ? rc : bal_sync_dir(self->root, err);
}

int bal_view_lock(bal_db_lock **out, const bal_store *self,
                  enum bal_lock_mode mode, bal_error *err)
{
    return bal_graph_lock(out, self->graph, mode, 0, err);
}

/* ---- temporaries -------------------------------------------------------- */

/* Beside the epoch's file, where its writer was killed. */
static int sweep_epoch(void *ctx, const char *name, bal_error *err)
{
    const char *dir = ctx;
    size_t len = strlen(epoch_name);

    if (strncmp(name, epoch_name, len) != 0 || !name[len])
        return 0;
    char *path = bal_path_join(dir, name);
    if (!path)
        return bal_fail_memory(err, name);
    int rc = bal_remove_tree(path, err);
    bal_str_free(path);
    return rc;
}

int bal_view_sweep(const bal_store *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) inner = { 0 };
    int rc = bal_view_path(&path, self, NULL, NULL, err);
    if (rc || bal_path_type_of(path.data) != BAL_PATH_DIR)
        return rc;
    rc = bal_view_path(&inner, self, temporaries, NULL, err);
    if (!rc)
        rc = bal_remove_tree(inner.data, err);
    return rc ? rc : bal_dir_each(path.data, sweep_epoch, path.data, err);
}
