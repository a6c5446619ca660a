/* Files: read whole or by range, replaced whole or not at all. A name that
 * holds ".tmp-" is a temporary of ours; a killed process may leave one. */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"

enum { CHUNK = 65536, PIECE = 256 * 1024 };

static uint64_t stamp_of(const struct stat *info)
{
    uint64_t seconds = (uint64_t)info->st_mtim.tv_sec;
    uint64_t time = seconds * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;

    return time ^ (uint64_t)info->st_ino * UINT64_C(0x9e3779b97f4a7c15);
}

static int open_regular(bal_file *file, const char *path, bal_error *err)
{
    struct stat info;

    /* Without O_NONBLOCK a named pipe would keep us waiting. */
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0)
        return bal_fail_errno(err, "opening '%s'", path);
    if (fstat(file->fd, &info))
        return bal_fail_errno(err, "looking at '%s'", path);
    if (!S_ISREG(info.st_mode))
        return bal_fail(err, BAL_EINVAL, "'%s' is not a regular file", path);
    file->size = (uint64_t)info.st_size;
    file->stamp = stamp_of(&info);
    return 0;
}

int bal_file_open(bal_file **out, const char *path, bal_error *err)
{
    BAL_OWN(bal_file) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "opening a file");
    self->fd = -1;
    self->path = bal_str_copy(path);
    if (!self->path)
        return bal_fail_memory(err, "opening a file");
    int rc = open_regular(self, path, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(self);
    return 0;
}

int bal_file_read(const bal_file *self, uint64_t offset, void *to, size_t len,
                  bal_error *err)
{
    uint64_t end;

    if (!bal_add(&end, offset, len) || end > INT64_MAX)
        return bal_fail(err, BAL_EINVAL, "'%s': no bytes at %" PRIu64,
                        self->path, offset);
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(self->fd, (char *)to + done, len - done,
                            (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bal_fail_errno(err, "reading '%s'", self->path);
        if (!got)
            return bal_fail(err, BAL_ECORRUPT,
                            "'%s' ends at byte %" PRIu64 ", before %" PRIu64,
                            self->path, offset + done, end);
        done += (size_t)got;
    }
    return 0;
}

int bal_file_unchanged(const bal_file *self, bal_error *err)
{
    struct stat info;

    if (fstat(self->fd, &info))
        return bal_fail_errno(err, "looking at '%s'", self->path);
    if ((uint64_t)info.st_size != self->size || stamp_of(&info) != self->stamp)
        return bal_fail(err, BAL_EIO, "'%s' changed while it was read",
                        self->path);
    return 0;
}

void bal_file_free(bal_file *self)
{
    if (!self)
        return;
    if (self->fd >= 0)
        close(self->fd);
    bal_str_free(self->path);
    free(self);
}

/* Read on until the end, whatever size the file had when it was opened. */
static int slurp_fd(bal_buf *to, int fd, const char *path, size_t ceiling,
                    bal_error *err)
{
    for (;;) {
        if (to->len > ceiling)
            return bal_fail(err, BAL_EINVAL, "'%s' is larger than %zu bytes",
                            path, ceiling);
        size_t want = bal_min(CHUNK, ceiling - to->len) + 1;
        int rc = bal_buf_reserve(to, want, err);
        if (rc)
            return rc;
        ssize_t got = read(fd, to->data + to->len, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bal_fail_errno(err, "reading '%s'", path);
        to->len += (size_t)got;
        to->data[to->len] = '\0';
        if (!got)
            return 0;
    }
}

int bal_file_slurp(bal_buf *out, const char *path, size_t ceiling,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) all = { .ceiling = ceiling + 1 };
    bal_file file = { .fd = -1 };
    int rc = open_regular(&file, path, err);

    if (!rc)
        rc = slurp_fd(&all, file.fd, path, ceiling, err);
    if (file.fd >= 0)
        close(file.fd);
    if (rc)
        return rc;
    bal_buf_clear(out);
    return bal_buf_append(out, all.data, all.len, err);
}

/* A piece of what is left; at NULL: where the file is. */
static ssize_t write_some(int fd, const uint64_t *at, const char *data,
                          size_t len)
{
    size_t most = bal_min(len, PIECE);

    return at ? pwrite(fd, data, most, (off_t)*at) : write(fd, data, most);
}

static int write_pieces(int fd, uint64_t *at, const char *data, size_t len,
                        const char *path, bal_error *err)
{
    while (len) {
        ssize_t put = write_some(fd, at, data, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && !path)
            return bal_fail_errno(err, "writing it");
        if (put < 0)
            return bal_fail_errno(err, "writing '%s'", path);
        data += put;
        len -= (size_t)put;
        if (at)
            *at += (uint64_t)put;
    }
    return 0;
}

int bal_write_all(int fd, const void *data, size_t len, const char *path,
                  bal_error *err)
{
    return write_pieces(fd, NULL, data, len, path, err);
}

int bal_write_at(int fd, uint64_t at, const void *data, size_t len,
                 const char *path, bal_error *err)
{
    return write_pieces(fd, &at, data, len, path, err);
}

int bal_sync_fd(int fd, const char *path, bal_error *err)
{
    int rc = fsync(fd);

    while (rc && errno == EINTR)
        rc = fsync(fd);
    /* What cannot be synced at all (a directory on some network file systems)
     * says EINVAL. */
    if (rc && errno != EINVAL)
        return bal_fail_errno(err, "syncing '%s'", path);
    return 0;
}

int bal_sync_dir(const char *path, bal_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return bal_fail_errno(err, "opening '%s'", path);
    int rc = bal_sync_fd(fd, path, err);

    close(fd);
    return rc;
}

void bal_sync_begin(int fd, uint64_t offset, uint64_t len)
{
    if (offset > INT64_MAX || len > INT64_MAX - offset)
        return;
    /* A hint: where it fails, fsync does all of the work later. */
    (void)sync_file_range(fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
}

/* A name beside path that nobody else has. */
static int temporary_name(bal_buf *out, const char *path, bal_error *err)
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)bal_clock_now();
    return bal_buf_format(out, err, "%s.tmp-%016" PRIx64, path, random);
}

static int write_new(const char *name, const void *data, size_t len,
                     bal_error *err)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return bal_fail_errno(err, "making '%s'", name);
    int rc = bal_write_all(fd, data, len, name, err);

    if (!rc)
        rc = bal_sync_fd(fd, name, err);
    if (close(fd) && !rc)
        rc = bal_fail_errno(err, "closing '%s'", name);
    return rc;
}

int bal_file_replace(const char *path, const void *data, size_t len,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };

    /* A rename would put a file where a device or a pipe was. */
    if (bal_path_type_of(path) == BAL_PATH_OTHER)
        return bal_fail(err, BAL_EINVAL, "'%s' is not a regular file", path);
    int rc = temporary_name(&name, path, err);
    if (rc)
        return rc;
    rc = write_new(name.data, data, len, err);
    if (!rc)
        rc = bal_rename(name.data, path, err);
    if (rc)
        unlink(name.data);
    return rc;
}
