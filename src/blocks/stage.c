/* How a run comes to be in the file backend: written to a session's directory,
 * synced, renamed; then each directory that has a new entry is synced, once.
 * Killed anywhere, a name is absent or whole, and what lies in the session is
 * swept by whoever finds that its owner's lock is free. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "blocks/dirs.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"

enum { PARTS = 8, PIECE = 128 << 10 };

static const char temporaries[] = ".tmp";
/* A sweep may remove gigabytes meanwhile. */
static const double sweep_wait = 60;

static file_backend *of(bal_backend *self)
{
    return (file_backend *)self;
}

/* ---- session ------------------------------------------------------------ */

static int lock_path(bal_buf *out, const char *dir, bal_error *err)
{
    bal_buf_clear(out);
    return bal_buf_format(out, err, "%s/lock", dir);
}

/* A new directory and the lock in it. While tmp's own lock is shared nobody
 * sweeps, so that the directory is not seen without an owner. */
static int make_session(file_backend *self, const char *tmp, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_OWN(bal_lock) busy = NULL;
    uint8_t noise[8];
    char hex[2 * sizeof(noise) + 1];
    int rc = lock_path(&path, tmp, err);
    if (rc)
        return rc;
    rc = bal_lock_take(&busy, path.data, BAL_LOCK_SHARED, sweep_wait, err);
    if (rc)
        return rc;

    if (getrandom(noise, sizeof(noise), 0) != sizeof(noise))
        return bal_fail_errno(err, "drawing a session's name");
    bal_hex_write(hex, noise, sizeof(noise));
    hex[2 * sizeof(noise)] = '\0';
    char *session = bal_path_join(tmp, hex);
    if (!session)
        return bal_fail_memory(err, "a session");
    if (mkdir(session, 0777)) {
        rc = bal_fail_errno(err, "making '%s'", session);
        bal_str_free(session);
        return rc;
    }
    self->session = session;
    rc = lock_path(&path, session, err);
    if (rc)
        return rc;
    return bal_lock_take(&self->owner, path.data, BAL_LOCK_EXCLUSIVE, 0, err);
}

void bal_file_backend_leave(file_backend *self)
{
    if (self->session)
        (void)!bal_remove_tree(self->session, NULL);
    bal_str_free(self->session);
    bal_lock_free(self->owner);
    self->session = NULL;
    self->owner = NULL;
}

static int open_session(file_backend *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) tmp = { 0 };
    BAL_LOCAL(bal_buf) above = { 0 };
    int rc = bal_file_backend_path(self, &tmp, temporaries, err);
    if (rc)
        return rc;
    rc = bal_make_dirs(tmp.data, err);
    if (rc)
        return rc;
    /* Whoever made the backend's directory may not have synced its entry. */
    rc = bal_file_backend_path(self, &above, "..", err);
    if (rc)
        return rc;
    rc = bal_sync_dir(above.data, err);
    if (rc)
        return rc;
    rc = make_session(self, tmp.data, err);
    if (rc)
        bal_file_backend_leave(self);
    return rc;
}

/* The path of a new temporary. */
static int draw_temp(file_backend *self, bal_buf *path, bal_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&self->lock);
    if (!self->session)
        rc = open_session(self, err);
    if (!rc)
        rc = bal_buf_format(path, err, "%s/%" PRIu64, self->session,
                            self->next++);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* ---- stage -------------------------------------------------------------- */

/* Step over len bytes that were written; what is left starts at parts[0]. */
static size_t step_over(struct iovec *parts, size_t count, size_t len)
{
    size_t first = 0;

    while (first < count && len >= parts[first].iov_len)
        len -= parts[first++].iov_len;
    memmove(parts, parts + first, (count - first) * sizeof(*parts));
    if (first < count) {
        parts[0].iov_base = (char *)parts[0].iov_base + len;
        parts[0].iov_len -= len;
    }
    return count - first;
}

/* The first PIECE bytes of parts; how many parts that is. Larger writes make
 * the kernel look for large runs of free memory, which a virtual machine often
 * does not have at hand: they were up to five times slower. */
static size_t first_piece(struct iovec *out, const struct iovec *parts,
                          size_t count)
{
    size_t left = PIECE;
    size_t used = 0;

    while (used < count && left) {
        out[used] = parts[used];
        out[used].iov_len = bal_min(parts[used].iov_len, left);
        left -= out[used].iov_len;
        used++;
    }
    return used;
}

static int write_parts(int fd, const bal_bytes *from, size_t count,
                       const char *path, bal_error *err)
{
    struct iovec parts[PARTS];
    struct iovec piece[PARTS];

    if (count > PARTS)
        return bal_fail(err, BAL_EINVAL, "%zu parts are too many", count);
    for (size_t i = 0; i < count; i++) {
        parts[i].iov_base = (void *)(uintptr_t)from[i].data;
        parts[i].iov_len = from[i].len;
    }
    count = step_over(parts, count, 0);
    while (count) {
        size_t pieces = first_piece(piece, parts, count);
        ssize_t wrote = writev(fd, piece, (int)pieces);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return bal_fail_errno(err, "writing '%s'", path);
        count = step_over(parts, count, (size_t)wrote);
    }
    return 0;
}

static int write_temp(const char *path, const bal_bytes *parts, size_t count,
                      uint64_t size, bal_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return bal_fail_errno(err, "making '%s'", path);

    int rc = write_parts(fd, parts, count, path, err);
    if (!rc)
        bal_sync_begin(fd, 0, size);
    if (close(fd) && !rc)
        rc = bal_fail_errno(err, "writing '%s'", path);
    if (rc)
        unlink(path);
    return rc;
}

int bal_file_backend_stage(bal_backend *self, bal_staged *out, const char *name,
                           const bal_bytes *parts, size_t count, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    bal_staged staged = { 0 };
    int rc = draw_temp(of(self), &path, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++)
        staged.size += parts[i].len;
    rc = write_temp(path.data, parts, count, staged.size, err);
    if (rc)
        return rc;
    staged.name = bal_str_copy(name);
    staged.temp = bal_str_copy(path.data);
    if (!staged.name || !staged.temp) {
        unlink(path.data);
        bal_str_free(staged.name);
        bal_str_free(staged.temp);
        return bal_fail_memory(err, "a staged block");
    }
    *out = staged;
    return 0;
}

static void empty(bal_staged *staged)
{
    bal_str_free(staged->name);
    bal_str_free(staged->temp);
    *staged = (bal_staged){ 0 };
}

void bal_file_backend_discard(bal_backend *self, bal_staged *staged)
{
    (void)self;
    if (staged->temp)
        unlink(staged->temp);
    empty(staged);
}

/* ---- settle ------------------------------------------------------------- */

typedef struct settling {
    file_backend *backend;
    bal_staged *staged;
    bal_dirs dirs;
} settling;

static void settling_done(settling *self)
{
    bal_dirs_done(&self->dirs);
}

static int add_dirs(settling *self, size_t count, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++)
        rc = bal_dirs_add(&self->dirs, self->staged[i].name, err);
    return rc;
}

static int make_dirs(const settling *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    for (size_t i = 0; i < bal_dirs_count(&self->dirs); i++) {
        int rc = bal_dirs_path(&self->dirs, i, self->backend, &path, err);
        if (rc)
            return rc;
        if (mkdir(path.data, 0777) && errno != EEXIST)
            return bal_fail_errno(err, "making '%s'", path.data);
    }
    return 0;
}

static int sync_temp(size_t i, void *ctx, bal_error *err)
{
    const settling *self = ctx;
    const char *path = self->staged[i].temp;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return bal_fail_errno(err, "opening '%s'", path);

    int rc = bal_sync_fd(fd, path, err);
    close(fd);
    return rc;
}

static int sync_dir(size_t i, void *ctx, bal_error *err)
{
    const settling *self = ctx;
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_dirs_path(&self->dirs, i, self->backend, &path, err);
    if (rc)
        return rc;
    return bal_sync_dir(path.data, err);
}

/* Rename unless the new name is there: EEXIST then. Not every file system can
 * do that; a second name and then none of the first is the same, and where
 * there are no second names a look must do. */
static int rename_new(const char *from, const char *to)
{
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (!link(from, to))
        return unlink(from);
    if (errno == EEXIST)
        return -1;
    if (!access(to, F_OK)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

/* What has its name keeps no temp, so that discarding it removes nothing. */
static int rename_one(const settling *self, bal_staged *staged, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_file_backend_path(self->backend, &path, staged->name, err);
    if (rc)
        return rc;

    rc = staged->keeps ? rename_new(staged->temp, path.data)
                       : rename(staged->temp, path.data);
    staged->kept = rc && staged->keeps && errno == EEXIST;
    if (staged->kept)
        return 0;
    if (rc)
        return bal_fail_errno(err, "renaming '%s' to '%s'", staged->temp,
                              path.data);
    bal_str_free(staged->temp);
    staged->temp = NULL;
    return 0;
}

static int rename_all(const settling *self, size_t count, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i++)
        rc = rename_one(self, &self->staged[i], err);
    return rc;
}

/* Every directory on the way is synced, not only those made now: who made one
 * may have been killed before syncing it. */
int bal_file_backend_settle(bal_backend *self, bal_staged *staged, size_t count,
                            bal_work *work, bal_error *err)
{
    BAL_LOCAL(settling) all = { .backend = of(self), .staged = staged };
    int rc = add_dirs(&all, count, err);
    if (rc)
        return rc;
    rc = bal_pool_run(work, count, sync_temp, &all, err);
    if (rc)
        return rc;
    rc = make_dirs(&all, err);
    if (rc)
        return rc;
    rc = rename_all(&all, count, err);
    if (rc)
        return rc;
    rc = bal_pool_run(work, bal_dirs_count(&all.dirs), sync_dir, &all, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (!staged[i].kept)
            empty(&staged[i]);
    }
    return 0;
}

/* ---- sweep -------------------------------------------------------------- */

typedef struct sweeping {
    const char *dir; /* whose entries are looked at */
    uint64_t bytes;
    unsigned flags;
} sweeping;

/* The owner's lock, held; *lives is set instead if somebody has it. A session
 * without a lock was made by nobody who lives: see make_session. */
static int seize(int *fd, bool *lives, const char *session, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = lock_path(&path, session, err);
    if (rc)
        return rc;

    *lives = false;
    /* Whatever lies there, opening it does not wait. */
    *fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT)
        return 0;
    if (*fd < 0)
        return bal_fail_errno(err, "opening '%s'", path.data);
    if (!flock(*fd, LOCK_EX | LOCK_NB))
        return 0;
    *lives = errno == EWOULDBLOCK;
    rc = *lives ? 0 : bal_fail_errno(err, "locking '%s'", path.data);
    close(*fd);
    *fd = -1;
    return rc;
}

static int add_size(void *ctx, const char *name, bal_error *err)
{
    sweeping *self = ctx;
    struct stat info;
    char *path = bal_path_join(self->dir, name);
    if (!path)
        return bal_fail_memory(err, "a path");

    if (!lstat(path, &info))
        self->bytes += (uint64_t)info.st_size;
    bal_str_free(path);
    return 0;
}

static int sweep_session(sweeping *all, const char *session, bal_error *err)
{
    sweeping own = { .dir = session };
    bool lives = false;
    int fd = -1;
    int rc = seize(&fd, &lives, session, err);
    if (rc || lives)
        return rc;

    rc = bal_dir_each(session, add_size, &own, err);
    if (!rc && !(all->flags & BAL_SWEEP_DRY))
        rc = bal_remove_tree(session, err);
    if (!rc)
        all->bytes += own.bytes;
    if (fd >= 0)
        close(fd);
    /* Its owner came back to leave by itself. */
    return rc == BAL_ENOTFOUND ? 0 : rc;
}

static int sweep_entry(void *ctx, const char *name, bal_error *err)
{
    sweeping *self = ctx;
    char *path = bal_path_join(self->dir, name);
    if (!path)
        return bal_fail_memory(err, "a path");

    int rc = 0;
    if (bal_path_type_of(path) == BAL_PATH_DIR)
        rc = sweep_session(self, path, err);
    bal_str_free(path);
    return rc;
}

int bal_file_backend_sweep(bal_backend *self, uint64_t *bytes, unsigned flags,
                           bal_error *err)
{
    BAL_LOCAL(bal_buf) tmp = { 0 };
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_OWN(bal_lock) busy = NULL;
    int rc = bal_file_backend_path(of(self), &tmp, temporaries, err);
    if (rc)
        return rc;
    sweeping all = { .dir = tmp.data, .flags = flags };

    *bytes = 0;
    if (bal_path_type_of(tmp.data) != BAL_PATH_DIR)
        return 0;
    rc = lock_path(&path, tmp.data, err);
    if (!rc && !(flags & BAL_SWEEP_DRY))
        rc = bal_lock_take(&busy, path.data, BAL_LOCK_EXCLUSIVE, 0, err);
    /* Somebody else sweeps, or a session begins: the next one will do it. */
    if (rc == BAL_EBUSY)
        return 0;
    if (!rc)
        rc = bal_dir_each(tmp.data, sweep_entry, &all, err);
    *bytes = all.bytes;
    return rc;
}
