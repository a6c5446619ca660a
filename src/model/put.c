/* Writing in pieces: a file is made at its full size, then filled by whichever
 * thread is free, so that one tensor of 4 GB keeps all of them busy and 400 of
 * 100 KB cost a few large writes. A piece of a large tensor is one of its
 * tiles, since that is what its bytes come in below; small tensors share a
 * piece. */
#include "model/put.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/file.h"
#include "core/room.h"

enum { GROUP = 64, SYNC_FROM = 1 << 20 };

typedef struct piece {
    size_t file;     /* in the group */
    size_t turn;     /* of the file's pieces */
    size_t first;    /* of the file's entries */
    size_t count;    /* of them; 1 where offset is not 0 */
    uint64_t offset; /* in the entry */
    uint64_t at;     /* in the file */
    size_t len;
} piece;

/* Files that are written at once, and then synced at once. */
typedef struct group {
    const char *dir;
    const bal_put_file *files;
    size_t count;
    bal_model *model;
    bal_work *work;
    piece *pieces;
    size_t piece_count, piece_room;
    size_t turn; /* of the next piece of the file being cut */
    int fd[GROUP];
} group;

static void group_done(group *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->fd[i] >= 0)
            close(self->fd[i]);
    }
    free(self->pieces);
}

static uint64_t head_len(const bal_put_file *file)
{
    return (uint64_t)file->head[0].len + file->head[1].len;
}

/* ---- cutting ------------------------------------------------------------ */

static int add_piece(group *self, const piece *next, bal_error *err)
{
    piece *pieces = bal_room_for_one(self->pieces, self->piece_count,
                                     &self->piece_room, sizeof(*pieces));
    if (!pieces)
        return bal_fail_memory(err, "writing a model");

    self->pieces = pieces;
    self->pieces[self->piece_count] = *next;
    self->pieces[self->piece_count++].turn = self->turn++;
    return 0;
}

static int cut_large(group *self, piece next, uint64_t size, bal_error *err)
{
    uint64_t at = next.at;
    int rc = 0;

    next.count = 1;
    for (uint64_t offset = 0; offset < size && !rc; offset += BAL_TILE) {
        next.offset = offset;
        next.at = at + offset;
        next.len = (size_t)bal_min(BAL_TILE, size - offset);
        rc = add_piece(self, &next, err);
    }
    return rc;
}

/* A tensor joins the ones before it if all fit a tile, and if it is aligned
 * behind them in memory as it would be alone. */
static bool joins(const piece *run, uint64_t size)
{
    return size <= BAL_TILE && run->len + size <= BAL_TILE && !(run->len % 8);
}

static int cut(group *self, size_t file, bal_error *err)
{
    const bal_put_file *from = &self->files[file];
    piece run = { .file = file, .at = head_len(from) };
    uint64_t at = run.at;
    int rc = 0;

    self->turn = 0;
    for (size_t i = 0; i < from->count && !rc; i++) {
        uint64_t size = bal_model_at(self->model, from->entries[i])->size;
        if (run.count && !joins(&run, size)) {
            rc = add_piece(self, &run, err);
            run.count = 0;
        }
        if (!run.count)
            run = (piece){ .file = file, .first = i, .at = at };
        at += size;
        if (size > BAL_TILE && !rc) {
            rc = cut_large(self, run, size, err);
            continue;
        }
        run.count++;
        run.len += (size_t)size;
    }
    if (!rc && run.count)
        rc = add_piece(self, &run, err);
    return rc;
}

/* Files take turns: two writes into one file wait for each other in the
 * kernel. */
static int by_turn(const void *a, const void *b)
{
    const piece *left = a;
    const piece *right = b;

    if (left->turn != right->turn)
        return left->turn < right->turn ? -1 : 1;
    return left->file < right->file ? -1 : left->file > right->file;
}

/* ---- writing ------------------------------------------------------------ */

static int put_piece(size_t i, void *ctx, bal_error *err)
{
    group *self = ctx;
    const piece *one = &self->pieces[i];
    const bal_put_file *file = &self->files[one->file];
    /* As far behind a multiple of 64 as its place in the file: see bal_pages.
     */
    size_t skew = one->at % 64;
    char *room = bal_pool_scratch(self->work, 0, one->len + skew);
    size_t done = 0;
    int rc = 0;

    if (!room)
        return bal_fail_memory(err, "writing a model");
    char *data = room + skew;
    for (size_t k = 0; k < one->count && !rc; k++) {
        size_t entry = file->entries[one->first + k];
        uint64_t size = bal_model_at(self->model, entry)->size - one->offset;
        size_t len = (size_t)bal_min(size, one->len - done);
        rc = bal_model_read(self->model, entry, one->offset, data + done, len,
                            err);
        done += len;
    }
    if (!rc)
        rc = bal_write_at(self->fd[one->file], one->at, data, done, file->path,
                          err);
    if (rc)
        return rc;
    /* Otherwise the disk idles until the fsync at the end. */
    if (done >= SYNC_FROM)
        bal_sync_begin(self->fd[one->file], one->at, done);
    bal_work_advance(self->work, done);
    return 0;
}

static int sync_file(size_t i, void *ctx, bal_error *err)
{
    group *self = ctx;

    return bal_sync_fd(self->fd[i], self->files[i].path, err);
}

/* ---- files -------------------------------------------------------------- */

/* The folder of a file below dir, in `to`. */
static int parent_of(bal_buf *to, const char *dir, const char *path,
                     bal_error *err)
{
    const char *slash = strrchr(path, '/');

    bal_buf_clear(to);
    if (!slash)
        return bal_buf_text(to, dir, err);
    return bal_buf_format(to, err, "%s/%.*s", dir, (int)(slash - path), path);
}

static int size_of(uint64_t *out, const group *self, const bal_put_file *file,
                   bal_error *err)
{
    uint64_t size = head_len(file);
    bool fits = true;

    for (size_t i = 0; i < file->count && fits; i++)
        fits = bal_add(&size, size,
                       bal_model_at(self->model, file->entries[i])->size);
    if (!fits || size > INT64_MAX)
        return bal_fail(err, BAL_EINVAL, "'%s' would be over 2^63 bytes",
                        file->path);
    *out = size;
    return 0;
}

static int open_file(group *self, size_t i, bal_error *err)
{
    const bal_put_file *file = &self->files[i];
    BAL_LOCAL(bal_buf) path = { 0 };
    uint64_t size = 0;
    int rc = size_of(&size, self, file, err);
    if (!rc)
        rc = parent_of(&path, self->dir, file->path, err);
    if (!rc && strchr(file->path, '/'))
        rc = bal_make_dirs(path.data, err);
    bal_buf_clear(&path);
    if (!rc)
        rc = bal_buf_format(&path, err, "%s/%s", self->dir, file->path);
    if (rc)
        return rc;

    self->fd[i] = open(
        path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (self->fd[i] < 0)
        return bal_fail_errno(err, "making '%s'", file->path);
    if (ftruncate(self->fd[i], (off_t)size))
        return bal_fail_errno(err, "making '%s' of its size", file->path);
    for (size_t k = 0; k < 2 && !rc; k++)
        rc = bal_write_at(self->fd[i], k ? file->head[0].len : 0,
                          file->head[k].data, file->head[k].len, file->path,
                          err);
    return rc;
}

static int put_group(group *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < self->count && !rc; i++) {
        rc = open_file(self, i, err);
        if (!rc)
            rc = cut(self, i, err);
    }
    if (!rc && self->piece_count)
        qsort(self->pieces, self->piece_count, sizeof(piece), by_turn);
    if (!rc)
        rc = bal_pool_run(self->work, self->piece_count, put_piece, self, err);
    if (!rc)
        rc = bal_pool_run(self->work, self->count, sync_file, self, err);
    return rc;
}

static void expect(const bal_put_file *files, size_t count,
                   const bal_model *model, bal_work *work)
{
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < files[i].count; k++)
            total += bal_model_at(model, files[i].entries[k])->size;
    }
    bal_work_expect(work, total);
}

/* Each folder that holds a file, once where they come sorted. */
static int sync_folders(const char *dir, const bal_put_file *files,
                        size_t count, bal_error *err)
{
    BAL_LOCAL(bal_buf) last = { 0 };
    BAL_LOCAL(bal_buf) parent = { 0 };
    int rc = bal_buf_text(&last, dir, err);

    for (size_t i = 0; i < count && !rc; i++) {
        rc = parent_of(&parent, dir, files[i].path, err);
        if (rc || !strcmp(parent.data, last.data))
            continue;
        rc = bal_sync_dir(parent.data, err);
        bal_buf_clear(&last);
        if (!rc)
            rc = bal_buf_text(&last, parent.data, err);
    }
    return rc ? rc : bal_sync_dir(dir, err);
}

int bal_put_files(const char *dir, const bal_put_file *files, size_t count,
                  bal_model *model, bal_work *work, bal_error *err)
{
    expect(files, count, model, work);
    for (size_t at = 0; at < count; at += GROUP) {
        BAL_LOCAL(group)
        one = {
            .dir = dir,
            .files = files + at,
            .count = (size_t)bal_min(GROUP, count - at),
            .model = model,
            .work = work,
        };
        for (size_t i = 0; i < GROUP; i++)
            one.fd[i] = -1;
        int rc = put_group(&one, err);
        if (rc)
            return rc;
    }
    return sync_folders(dir, files, count, err);
}
