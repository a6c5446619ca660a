/* Runs as files below one directory: the way there and back, and the list of
 * what there is. How they come to be is in stage.c, how they go in
 * remove.c. */
#include "blocks/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"

/* How deep names go, with room for what others may have put there. */
enum { DEPTH = 8 };

static file_backend *of(bal_backend *self)
{
    return (file_backend *)self;
}

static void file_free(bal_backend *base)
{
    file_backend *self = of(base);

    bal_file_backend_leave(self);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->dir);
    free(self);
}

static int file_open(bal_backend **out, const char *rest, const char *root,
                     bal_error *err)
{
    if (!rest[0])
        return bal_fail(err, BAL_EINVAL, "'file:' names no directory");
    file_backend *self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a backend");
    self->base.ops = &bal_backend_file;
    pthread_mutex_init(&self->lock, NULL);
    BAL_OWN(bal_backend) base = &self->base;

    self->dir = rest[0] == '/' ? bal_str_copy(rest) : bal_path_join(root, rest);
    if (!self->dir)
        return bal_fail_memory(err, "a backend");
    *out = BAL_TAKE(base);
    return 0;
}

/* A directory is beside its database, or was named by whoever made the store.
 */
static int file_claim(bal_backend *self, const char *store, unsigned flags,
                      bal_error *err)
{
    (void)self;
    (void)store;
    (void)flags;
    (void)err;
    return 0;
}

int bal_file_backend_path(const file_backend *self, bal_buf *out,
                          const char *name, bal_error *err)
{
    bal_buf_clear(out);
    return bal_buf_format(out, err, "%s/%s", self->dir, name);
}

static int file_get(bal_backend *self, const char *name, uint64_t offset,
                    uint64_t len, bal_buf *to, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_OWN(bal_file) file = NULL;
    int rc = bal_file_backend_path(of(self), &path, name, err);
    if (rc)
        return rc;
    rc = bal_file_open(&file, path.data, err);
    if (rc)
        return rc;

    if (offset > file->size || len > file->size - offset)
        return bal_fail(err, BAL_ECORRUPT, "'%s' has only %llu bytes", name,
                        (unsigned long long)file->size);
    if (!len)
        len = file->size - offset;
    rc = bal_buf_reserve(to, len, err);
    if (rc)
        return rc;
    rc = bal_file_read(file, offset, to->data + to->len, len, err);
    if (rc)
        return rc;
    to->len += len;
    return 0;
}

static int file_size(bal_backend *self, const char *name, uint64_t *size,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    struct stat info;
    int rc = bal_file_backend_path(of(self), &path, name, err);
    if (rc)
        return rc;

    if (lstat(path.data, &info))
        return bal_fail_errno(err, "looking at '%s'", path.data);
    if (!S_ISREG(info.st_mode))
        return bal_fail(err, BAL_EIO, "'%s' is not a regular file", path.data);
    *size = (uint64_t)info.st_size;
    return 0;
}

/* ---- list --------------------------------------------------------------- */

/* Open directories from the first to the one being read. Their number is
 * bounded, whatever others have made below ours. */
typedef struct tree_walk {
    const file_backend *backend;
    DIR *dirs[DEPTH];
    size_t lens[DEPTH]; /* of name, with each directory's slash */
    size_t depth;
    bal_buf name; /* of the entry, from the backend's directory on */
    bal_listed_fn *fn;
    void *ctx;
} tree_walk;

static void tree_walk_done(tree_walk *self)
{
    while (self->depth)
        closedir(self->dirs[--self->depth]);
    bal_buf_done(&self->name);
}

/* Go into the directory that name, which is empty or ends with a slash, now
 * is. One that has gone meanwhile is passed over. */
static int walk_into(tree_walk *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_file_backend_path(self->backend, &path,
                                   bal_buf_string(&self->name), err);
    if (rc)
        return rc;

    if (self->depth == DEPTH)
        return bal_fail(err, BAL_EIO, "'%s' is too deep", path.data);
    DIR *dir = opendir(path.data);
    if (!dir && errno == ENOENT)
        return 0;
    if (!dir)
        return bal_fail_errno(err, "opening '%s'", path.data);
    self->lens[self->depth] = self->name.len;
    self->dirs[self->depth] = dir;
    self->depth++;
    return 0;
}

static int walk_entry(tree_walk *self, DIR *dir, const char *entry,
                      bal_error *err)
{
    struct stat info;
    int rc = bal_buf_text(&self->name, entry, err);
    if (rc)
        return rc;

    if (fstatat(dirfd(dir), entry, &info, AT_SYMLINK_NOFOLLOW)) {
        if (errno == ENOENT)
            return 0;
        return bal_fail_errno(err, "looking at '%s'", self->name.data);
    }
    if (S_ISDIR(info.st_mode)) {
        rc = bal_buf_text(&self->name, "/", err);
        if (rc)
            return rc;
        return walk_into(self, err);
    }
    return self->fn(self->ctx, self->name.data, (uint64_t)info.st_size, err);
}

/* One entry of the deepest directory, or out of it. */
static int walk_step(tree_walk *self, bal_error *err)
{
    size_t top = self->depth - 1;

    self->name.len = self->lens[top];
    errno = 0;
    const struct dirent *entry = readdir(self->dirs[top]);
    if (!entry && errno)
        return bal_fail_errno(err, "listing '%s'", self->backend->dir);
    if (!entry) {
        closedir(self->dirs[top]);
        self->depth = top;
        return 0;
    }
    if (entry->d_name[0] == '.')
        return 0;
    return walk_entry(self, self->dirs[top], entry->d_name, err);
}

static int file_list(bal_backend *self, const char *prefix, bal_listed_fn *fn,
                     void *ctx, bal_error *err)
{
    BAL_LOCAL(tree_walk) walk = { .backend = of(self), .fn = fn, .ctx = ctx };
    int rc = bal_buf_text(&walk.name, prefix, err);
    if (rc)
        return rc;

    rc = walk_into(&walk, err);
    while (!rc && walk.depth)
        rc = walk_step(&walk, err);
    return rc;
}

const bal_backend_ops bal_backend_file = {
    .scheme = "file",
    .open = file_open,
    .claim = file_claim,
    .get = file_get,
    .stage = bal_file_backend_stage,
    .settle = bal_file_backend_settle,
    .discard = bal_file_backend_discard,
    .size = file_size,
    .remove = bal_file_backend_remove,
    .list = file_list,
    .sweep = bal_file_backend_sweep,
    .free = file_free,
};
