#include "serve/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

static const char mark[] = "serve.ballast-";

/* Most uploads are gone before the kernel would write them out by itself; of
 * larger ones that is begun in time. */
enum { TRIES = 3, RANDOM_LEN = 16, STEP = 256 << 20 };

struct bal_home {
    char *path;
    int lock; /* the folder, open */
    atomic_uint_fast64_t next;
};

/* An open folder whose lock is ours; -1: it is somebody's, or gone. */
static int lock_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int sweep_one(void *ctx, const char *name, bal_error *err)
{
    const char *root = ctx;
    size_t len = sizeof(mark) - 1;

    if (strncmp(name, mark, len) != 0 || !bal_hex_valid(name + len, RANDOM_LEN))
        return 0;
    char *path = bal_path_join(root, name);
    if (!path)
        return bal_fail_memory(err, "looking for what was left");
    int fd = lock_dir(path);
    int rc = fd >= 0 ? bal_remove_tree(path, err) : 0;
    if (fd >= 0)
        close(fd);
    bal_str_free(path);
    return rc;
}

static int name_home(char **out, const char *root, bal_error *err)
{
    uint8_t random[RANDOM_LEN / 2];
    char name[sizeof(mark) + RANDOM_LEN];

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return bal_fail_errno(err, "asking for random bytes");
    memcpy(name, mark, sizeof(mark) - 1);
    bal_hex_write(name + sizeof(mark) - 1, random, sizeof(random));
    name[sizeof(name) - 1] = '\0';
    *out = bal_path_join(root, name);
    return *out ? 0 : bal_fail_memory(err, "naming a folder");
}

/* BUSY: another server, which starts just now, took it for one left behind. */
static int try_home(bal_home **out, const char *root, bal_error *err)
{
    BAL_OWN(bal_home) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "making a folder");
    self->lock = -1;
    int rc = name_home(&self->path, root, err);
    if (rc)
        return rc;
    if (mkdir(self->path, 0700))
        return bal_fail_errno(err, "making '%s'", self->path);
    self->lock = lock_dir(self->path);
    if (self->lock < 0)
        return bal_fail(err, BAL_EBUSY, "'%s' is locked by someone else",
                        self->path);
    *out = BAL_TAKE(self);
    return 0;
}

int bal_home_make(bal_home **out, const char *root, bal_error *err)
{
    int rc = bal_dir_each(root, sweep_one, (void *)root, err);
    if (rc)
        return rc;

    rc = BAL_EBUSY;
    for (int i = 0; i < TRIES && rc == BAL_EBUSY; i++)
        rc = try_home(out, root, err);
    return rc;
}

const char *bal_home_path(const bal_home *self)
{
    return self->path;
}

void bal_home_free(bal_home *self)
{
    if (!self)
        return;
    if (self->lock >= 0) {
        if (bal_remove_tree(self->path, NULL))
            bal_warn("serve", "not-removed=%s", self->path);
        close(self->lock);
    }
    bal_str_free(self->path);
    free(self);
}

/* ---- one upload --------------------------------------------------------- */

static int name_upload(char **out, bal_home *home, bal_error *err)
{
    char name[32];

    snprintf(name, sizeof(name), "%" PRIu64,
             (uint64_t)atomic_fetch_add(&home->next, 1));
    *out = bal_path_join(home->path, name);
    return *out ? 0 : bal_fail_memory(err, "naming an upload");
}

int bal_upload_begin(bal_upload *self, bal_home *home, bal_error *err)
{
    self->fd = -1;
    int rc = name_upload(&self->dir, home, err);
    if (rc)
        return rc;
    if (mkdir(self->dir, 0700))
        return bal_fail_errno(err, "making '%s'", self->dir);
    char *path = bal_path_join(self->dir, "adapter_model.safetensors");
    if (!path)
        return bal_fail_memory(err, "naming an upload");
    self->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (self->fd < 0)
        rc = bal_fail_errno(err, "making '%s'", path);
    bal_str_free(path);
    return rc;
}

int bal_upload_add(bal_upload *self, uint64_t at, const void *data, size_t len,
                   bal_error *err)
{
    int rc = bal_write_at(self->fd, at, data, len, "an upload", err);

    if (!rc && at + len - self->begun >= STEP) {
        bal_sync_begin(self->fd, self->begun, at + len - self->begun);
        self->begun = at + len;
    }
    return rc;
}

void bal_upload_end(bal_upload *self)
{
    if (self->dir && self->fd >= 0)
        close(self->fd);
    self->fd = -1;
}

void bal_upload_done(bal_upload *self)
{
    if (!self->dir)
        return;
    bal_upload_end(self);
    if (bal_remove_tree(self->dir, NULL))
        bal_warn("serve", "not-removed=%s", self->dir);
    bal_str_free(self->dir);
    self->dir = NULL;
}
