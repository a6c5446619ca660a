#include "blocks/near_files.h"

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
#include "core/room.h"
#include "core/str.h"

#define EPOCH_NAME ".epoch"
#define LOCK_NAME  ".lock"
#define TEMPORARY  ".tmp-"

enum { EPOCH_MAX = 32, A_DAY = 86400, A_MINUTE = 60 };

static int path_of(bal_buf *out, const char *dir, const char *name,
                   bal_error *err)
{
    size_t start = strlen(dir) + 1;
    int rc = bal_buf_format(out, err, "%s/%s", dir, name);

    for (size_t i = start; !rc && i < out->len; i++)
        if (out->data[i] == '/')
            out->data[i] = ':';
    return rc;
}

/* The time of a copy is when it was used; to the minute is enough. */
static void note_use(const char *path)
{
    struct stat info;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (!stat(path, &info) && now.tv_sec - info.st_mtim.tv_sec > A_MINUTE)
        utimensat(AT_FDCWD, path, NULL, 0);
}

int bal_near_read(const char *dir, const char *name, bal_buf *to,
                  bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_OWN(bal_file) file = NULL;
    int rc = path_of(&path, dir, name, err);
    if (!rc)
        rc = bal_file_open(&file, path.data, err);
    if (rc)
        return rc;

    rc = bal_buf_reserve(to, file->size, err);
    if (!rc)
        rc = bal_file_read(file, 0, to->data + to->len, file->size, err);
    if (rc)
        return rc;
    to->len += file->size;
    note_use(path.data);
    return 0;
}

static int write_new(const char *path, bal_bytes bytes, bal_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return bal_fail_errno(err, "making '%s'", path);
    int rc = bal_write_all(fd, bytes.data, bytes.len, path, err);

    if (close(fd) && !rc)
        rc = bal_fail_errno(err, "closing '%s'", path);
    return rc;
}

int bal_near_write(const char *dir, const char *name, bal_bytes bytes,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) temporary = { 0 };
    uint64_t noise = 0;
    int rc = path_of(&path, dir, name, err);
    if (rc)
        return rc;
    if (getrandom(&noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
        return bal_fail_errno(err, "drawing a name");

    rc = bal_buf_format(&temporary, err, "%s/" TEMPORARY "%016" PRIx64, dir,
                        noise);
    if (!rc)
        rc = write_new(temporary.data, bytes, err);
    if (!rc && rename(temporary.data, path.data))
        rc = bal_fail_errno(err, "renaming '%s'", temporary.data);
    if (rc && temporary.len)
        unlink(temporary.data);
    return rc;
}

int bal_near_drop(const char *dir, const char *name, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = path_of(&path, dir, name, err);

    if (rc || !unlink(path.data) || errno == ENOENT)
        return rc;
    return bal_fail_errno(err, "removing '%s'", path.data);
}

/* ---- all of them -------------------------------------------------------- */

typedef struct copy {
    char *path;
    uint64_t size;
    int64_t used; /* seconds */
} copy;

typedef struct copies {
    const char *dir;
    int64_t now;
    copy *rows;
    size_t count, room;
    uint64_t held;
} copies;

static void copies_done(copies *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_str_free(self->rows[i].path);
    free(self->rows);
}

static int remove_file(const char *path, bal_error *err)
{
    if (!unlink(path) || errno == ENOENT)
        return 0;
    return bal_fail_errno(err, "removing '%s'", path);
}

static int look_at(void *ctx, const char *name, bal_error *err)
{
    copies *self = ctx;
    struct stat info;
    char *path = bal_path_join(self->dir, name);
    if (!path)
        return bal_fail_memory(err, name);

    bool temporary = !strncmp(name, TEMPORARY, strlen(TEMPORARY));
    bool gone = lstat(path, &info) || !S_ISREG(info.st_mode);
    int rc = 0;
    if (!gone && temporary && self->now - info.st_mtim.tv_sec > A_DAY)
        rc = remove_file(path, err);
    copy *rows = gone || rc || name[0] == '.'
                     ? NULL
                     : bal_room_for_one(self->rows, self->count, &self->room,
                                        sizeof(*rows));
    if (!rows) {
        bal_str_free(path);
        return rc || gone || name[0] == '.' ? rc : bal_fail_memory(err, name);
    }
    self->rows = rows;
    rows[self->count++] =
        (copy){ path, (uint64_t)info.st_size, info.st_mtim.tv_sec };
    self->held += (uint64_t)info.st_size;
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const copy *one = a, *two = b;

    return (one->used > two->used) - (one->used < two->used);
}

int bal_near_trim(const char *dir, uint64_t most, uint64_t *held,
                  bal_error *err)
{
    BAL_LOCAL(copies) all = { .dir = dir, .now = time(NULL) };
    int rc = bal_dir_each(dir, look_at, &all, err);

    if (all.count)
        qsort(all.rows, all.count, sizeof(*all.rows), by_use);
    for (size_t i = 0; i < all.count && !rc && all.held > most; i++) {
        rc = remove_file(all.rows[i].path, err);
        all.held -= all.rows[i].size;
    }
    *held = all.held;
    return rc;
}

static int remove_copy(void *ctx, const char *name, bal_error *err)
{
    const char *dir = ctx;

    if (!strcmp(name, LOCK_NAME) || !strcmp(name, EPOCH_NAME))
        return 0;
    char *path = bal_path_join(dir, name);
    if (!path)
        return bal_fail_memory(err, name);
    int rc = remove_file(path, err);
    bal_str_free(path);
    return rc;
}

int bal_near_empty(const char *dir, bal_error *err)
{
    char *own = bal_str_copy(dir);
    if (!own)
        return bal_fail_memory(err, dir);
    int rc = bal_dir_each(dir, remove_copy, own, err);

    bal_str_free(own);
    return rc ? rc : bal_sync_dir(dir, err);
}

/* ---- the epoch and the lock --------------------------------------------- */

int bal_near_epoch(const char *dir, uint64_t *epoch, bool *there,
                   bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    char *path = bal_path_join(dir, EPOCH_NAME);
    if (!path)
        return bal_fail_memory(err, dir);

    *there = !bal_file_slurp(&text, path, EPOCH_MAX, NULL) &&
             !bal_parse_u64(epoch, bal_buf_string(&text), NULL);
    bal_str_free(path);
    return 0;
}

int bal_near_set_epoch(const char *dir, uint64_t epoch, bal_error *err)
{
    char text[EPOCH_MAX];
    int len = snprintf(text, sizeof(text), "%" PRIu64, epoch);
    char *path = bal_path_join(dir, EPOCH_NAME);
    if (!path)
        return bal_fail_memory(err, dir);

    int rc = bal_file_replace(path, text, (size_t)len, err);
    bal_str_free(path);
    return rc;
}

int bal_near_lock(bal_lock **out, const char *dir, enum bal_lock_mode mode,
                  double wait, bal_error *err)
{
    char *path = bal_path_join(dir, LOCK_NAME);
    if (!path)
        return bal_fail_memory(err, dir);
    int rc = bal_lock_take(out, path, mode, wait, err);

    bal_str_free(path);
    return rc;
}
