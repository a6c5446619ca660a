/* How runs go from the file backend: directory by directory, each opened once
 * for all that goes from it; what is empty then goes as well, and last each
 * directory on the way is synced, once. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blocks/dirs.h"
#include "core/error.h"

/* A file that is to go. */
typedef struct target {
    const char *entry; /* in its directory */
    uint64_t inode;
    uint64_t size;
} target;

typedef struct removing {
    const file_backend *backend;
    const char **names; /* sorted by directory */
    size_t count;
    bal_dirs dirs;
    bal_buf targets; /* of one directory */
    uint64_t freed;
} removing;

static void removing_done(removing *self)
{
    free(self->names);
    bal_dirs_done(&self->dirs);
    bal_buf_done(&self->targets);
}

/* Length of a name's directory; a name without one is in "". */
static size_t dir_len(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? (size_t)(slash - name) : 0;
}

static bool same_dir(const char *a, const char *b)
{
    size_t len = dir_len(a);

    return len == dir_len(b) && !memcmp(a, b, len);
}

static int by_dir(const void *a, const void *b)
{
    const char *one = *(const char *const *)a;
    const char *two = *(const char *const *)b;
    size_t len = dir_len(one), other = dir_len(two);
    int order = memcmp(one, two, len < other ? len : other);

    if (!order && len != other)
        order = len < other ? -1 : 1;
    return order ? order : strcmp(one, two);
}

static int sort_names(removing *self, const char *const *names, size_t count,
                      bal_error *err)
{
    self->names = calloc(count, sizeof(*self->names));
    if (!self->names)
        return bal_fail_memory(err, "names to remove");
    memcpy(self->names, names, count * sizeof(*names));
    self->count = count;
    qsort(self->names, count, sizeof(*self->names), by_dir);
    return 0;
}

/* Open the directory of a name; -1 in *fd: there is none. */
static int open_dir(const removing *self, const char *name, int *fd,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_buf_format(&path, err, "%s/%.*s", self->backend->dir,
                            (int)dir_len(name), name);
    if (rc)
        return rc;

    *fd = open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 && errno != ENOENT)
        return bal_fail_errno(err, "opening '%s'", path.data);
    return 0;
}

/* Look at one entry of the directory; one that is absent is not added. */
static int look_at(removing *self, int dir, const char *name, bal_error *err)
{
    size_t len = dir_len(name);
    target found = { .entry = name + len + (len ? 1 : 0) };
    struct stat info;

    if (fstatat(dir, found.entry, &info, AT_SYMLINK_NOFOLLOW)) {
        if (errno == ENOENT)
            return 0;
        return bal_fail_errno(err, "looking at '%s'", name);
    }
    if (!S_ISREG(info.st_mode))
        return bal_fail(err, BAL_EIO, "'%s' is not a regular file", name);
    found.inode = (uint64_t)info.st_ino;
    found.size = (uint64_t)info.st_size;
    return bal_buf_append(&self->targets, &found, sizeof(found), err);
}

static int by_inode(const void *a, const void *b)
{
    const target *one = a, *two = b;

    return (one->inode > two->inode) - (one->inode < two->inode);
}

/* In the order of their inodes, as rm does it: by name, every one would be
 * somewhere else in the inode tables. */
static int unlink_targets(removing *self, int dir, bal_error *err)
{
    target *targets = (target *)(void *)self->targets.data;
    size_t count = self->targets.len / sizeof(*targets);

    if (count)
        qsort(targets, count, sizeof(*targets), by_inode);
    for (size_t i = 0; i < count; i++) {
        if (!unlinkat(dir, targets[i].entry, 0))
            self->freed += targets[i].size;
        else if (errno != ENOENT)
            return bal_fail_errno(err, "removing '%s'", targets[i].entry);
    }
    return 0;
}

/* Names from `first` up to `end`, which are in one directory. */
static int remove_group(removing *self, size_t first, size_t end,
                        bal_error *err)
{
    int dir = -1;
    int rc = bal_dirs_add(&self->dirs, self->names[first], err);
    if (!rc)
        rc = open_dir(self, self->names[first], &dir, err);
    if (rc || dir < 0)
        return rc;

    bal_buf_clear(&self->targets);
    for (size_t i = first; i < end && !rc; i++)
        rc = look_at(self, dir, self->names[i], err);
    if (!rc)
        rc = unlink_targets(self, dir, err);
    close(dir);
    return rc;
}

static size_t group_end(const removing *self, size_t first)
{
    size_t end = first;

    while (end < self->count && same_dir(self->names[first], self->names[end]))
        end++;
    return end;
}

/* What rmdir says of a directory that stays: it holds something, it is gone, or
 * somebody has put a link or another disk there. */
static bool stays(int error)
{
    return error == ENOTEMPTY || error == EEXIST || error == ENOENT ||
           error == ENOTDIR || error == EBUSY;
}

/* From below upwards; the backend's own directory, which is the first, stays.
 */
static int remove_empty(const removing *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    for (size_t i = bal_dirs_count(&self->dirs); i-- > 1;) {
        int rc = bal_dirs_path(&self->dirs, i, self->backend, &path, err);
        if (rc)
            return rc;
        if (rmdir(path.data) && !stays(errno))
            return bal_fail_errno(err, "removing '%s'", path.data);
    }
    return 0;
}

/* Also where nothing was removed now: whoever removed it may have been killed
 * before syncing. */
static int sync_dirs(const removing *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    for (size_t i = 0; i < bal_dirs_count(&self->dirs); i++) {
        int rc = bal_dirs_path(&self->dirs, i, self->backend, &path, err);
        if (rc)
            return rc;
        rc = bal_sync_dir(path.data, err);
        if (rc && rc != BAL_ENOTFOUND)
            return rc;
    }
    return 0;
}

int bal_file_backend_remove(bal_backend *self, const char *const *names,
                            size_t count, uint64_t *freed, bal_error *err)
{
    BAL_LOCAL(removing) all = { .backend = (const file_backend *)self };
    int rc = sort_names(&all, names, count, err);

    for (size_t at = 0, end = 0; at < count && !rc; at = end) {
        end = group_end(&all, at);
        rc = bal_backend_may(self, err);
        if (!rc)
            rc = remove_group(&all, at, end, err);
    }
    *freed = all.freed;
    if (rc)
        return rc;
    rc = remove_empty(&all, err);
    if (rc)
        return rc;
    return sync_dirs(&all, err);
}
