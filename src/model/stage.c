/* A writer's folder is <out>.ballast-<random>, open to nobody else and locked
 * by an flock on itself, which ends with the process: so the next writer in the
 * same place can tell what a killed one left from what another is at, without a
 * lock file that would have to go before the rename. What is published lies one
 * level deeper, made with the mode that any new folder has.
 *
 * Replacing: the old folder and the new one change places in one step where the
 * file system can do that. Elsewhere the old one is moved to <home>/old first;
 * killed between the two steps, it is put back by the next writer. */
#include "model/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

enum { TRIES = 16, STEM_MAX = 200, RANDOM_LEN = 16 };

static const char mark[] = ".ballast-";

/* ---- names -------------------------------------------------------------- */

/* The folder above a real path, to be freed; NULL: no memory. */
static char *parent_of(const char *path)
{
    char *copy = bal_str_copy(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;

    if (slash)
        slash[slash == copy] = '\0';
    return copy;
}

/* The topmost of path and the folders above it that is not there, to be freed;
 * NULL: all are, or no memory. */
static char *topmost_absent(const char *path)
{
    char *found = NULL;
    char *at = bal_str_copy(path);

    while (at && bal_path_type_of(at) == BAL_PATH_ABSENT) {
        bal_str_free(found);
        found = at;
        at = parent_of(found);
    }
    bal_str_free(at);
    return found;
}

/* Folders above path up to the one that was made first, while they are empty.
 */
static void remove_made(const char *path, const char *made)
{
    char *at = parent_of(path);
    bool more = at && bal_path_holds(made, at);

    while (more && !rmdir(at)) {
        char *above = parent_of(at);
        bal_str_free(at);
        at = above;
        more = at && bal_path_holds(made, at);
    }
    bal_str_free(at);
}

/* The length of the name that a temporary was made for; 0: none of ours. */
static size_t stem_of(const char *name)
{
    size_t len = strlen(name);
    size_t tail = sizeof(mark) - 1 + RANDOM_LEN;

    if (len <= tail || strncmp(name + len - tail, mark, sizeof(mark) - 1) != 0)
        return 0;
    return bal_hex_valid(name + len - RANDOM_LEN, RANDOM_LEN) ? len - tail : 0;
}

/* ---- locks -------------------------------------------------------------- */

static int open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Is what was opened what the path names? It may have been renamed away, or
 * removed, before it was locked. */
static bool is_there(int fd, const char *path)
{
    struct stat named;
    struct stat opened;

    return !lstat(path, &named) && !fstat(fd, &opened) &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/* ---- what killed writers left ------------------------------------------- */

/* The old folder back to its place, if it was taken from there and nothing
 * came instead. */
static int put_back(const char *home, const char *out, bal_error *err)
{
    char *old = bal_path_join(home, "old");
    if (!old)
        return bal_fail_memory(err, "putting a folder back");
    bool lost = bal_path_type_of(old) == BAL_PATH_DIR &&
                bal_path_type_of(out) == BAL_PATH_ABSENT;
    int rc = lost ? bal_rename(old, out, err) : 0;

    if (lost && !rc)
        bal_warn("model", "put-back=%s", out);
    bal_str_free(old);
    return rc;
}

static int sweep_one(void *ctx, const char *name, bal_error *err)
{
    const char *dir = ctx;
    size_t stem = stem_of(name);
    bal_error why = { 0 };

    if (!stem || stem >= STEM_MAX)
        return 0;
    char *home = bal_path_join(dir, name);
    char *out = bal_path_join(dir, name);
    if (!home || !out) {
        bal_str_free(home);
        bal_str_free(out);
        return bal_fail_memory(err, "listing a folder");
    }
    out[strlen(out) - (strlen(name) - stem)] = '\0';
    int fd = open_dir(home);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && is_there(fd, home)) {
        int rc = put_back(home, out, &why);
        if (!rc)
            rc = bal_remove_tree(home, &why);
        bal_warn("model", "left-over=%s %s%s", home, rc ? "not removed: " : "",
                 rc ? why.text : "removed");
    }
    if (fd >= 0)
        close(fd);
    bal_str_free(home);
    bal_str_free(out);
    return 0;
}

static int sweep(char *dir, bal_error *err)
{
    return bal_dir_each(dir, sweep_one, dir, err);
}

int bal_stage_sweep(const char *dir, bal_error *err)
{
    char *copy = bal_str_copy(dir);
    int rc = copy ? sweep(copy, err) : bal_fail_memory(err, "listing a folder");

    bal_str_free(copy);
    return rc;
}

/* ---- making ------------------------------------------------------------- */

/* A new home under a random name; EEXISTS if it is to be tried again. */
static int make_home(bal_stage *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    const char *base = strrchr(self->out, '/') + 1;
    int above = (int)(base - self->out);
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)bal_clock_now();
    int rc = bal_buf_format(&name, err, "%.*s%.*s%s%016" PRIx64, above,
                            self->out, STEM_MAX, base, mark, random);
    if (rc)
        return rc;
    if (mkdir(name.data, 0700))
        return bal_fail_errno(err, "making '%s'", name.data);
    int fd = open_dir(name.data);
    /* Where nothing can be locked, nothing is swept away either. */
    bool swept =
        fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK);
    if (swept || !is_there(fd, name.data)) {
        if (fd >= 0)
            close(fd);
        return bal_fail(err, BAL_EEXISTS, "'%s' was removed", name.data);
    }
    self->lock = fd;
    self->home = bal_str_copy(name.data);
    return self->home ? 0 : bal_fail_memory(err, "making a folder");
}

static int make_dir(bal_stage *self, bal_error *err)
{
    int rc = BAL_EEXISTS;

    for (size_t i = 0; i < TRIES && rc == BAL_EEXISTS; i++)
        rc = make_home(self, err);
    if (rc)
        return rc;
    self->dir = bal_path_join(self->home, "new");
    if (!self->dir)
        return bal_fail_memory(err, "making a folder");
    if (mkdir(self->dir, 0777))
        return bal_fail_errno(err, "making '%s'", self->dir);
    return 0;
}

int bal_stage_make(bal_stage *out, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_stage) self = { .lock = -1 };
    char *parent = parent_of(path);

    self.out = bal_str_copy(path);
    if (!parent || !self.out) {
        bal_str_free(parent);
        return bal_fail_memory(err, "making a folder");
    }
    self.made = topmost_absent(parent);
    int rc = bal_make_dirs(parent, err);
    if (!rc)
        rc = sweep(parent, err);
    if (!rc)
        rc = make_dir(&self, err);
    bal_str_free(parent);
    if (rc)
        return rc;
    *out = self;
    self = (bal_stage){ .lock = -1 };
    return 0;
}

/* ---- publishing --------------------------------------------------------- */

static int count_name(void *ctx, const char *name, bal_error *err)
{
    size_t *count = ctx;

    (void)name;
    (void)err;
    ++*count;
    return 0;
}

/* Is there something at path that would be lost? */
static int look(bool *full, const char *path, unsigned flags, bal_error *err)
{
    bal_path_type type = bal_path_type_of(path);
    size_t names = 0;

    *full = false;
    if (type == BAL_PATH_ABSENT)
        return 0;
    if (type != BAL_PATH_DIR)
        return bal_fail(err, BAL_EEXISTS, "'%s' is there and is not a folder",
                        path);
    int rc = bal_dir_each(path, count_name, &names, err);
    if (rc)
        return rc;
    *full = names > 0;
    if (!names || flags & BAL_WRITE_FORCE)
        return 0;
    rc = bal_fail(err, BAL_EEXISTS, "'%s' is there and is not empty", path);
    return bal_hint(err, rc,
                    "choose another place, or replace it with --force");
}

int bal_stage_check(const char *path, unsigned flags, bal_error *err)
{
    bool full = false;

    return look(&full, path, flags, err);
}

static int sync_parent(const char *path, bal_error *err)
{
    char *parent = parent_of(path);
    if (!parent)
        return bal_fail_memory(err, "syncing a folder");
    int rc = bal_sync_dir(parent, err);

    bal_str_free(parent);
    return rc;
}

/* Two steps, for file systems that cannot exchange. */
static int replace(bal_stage *self, bal_error *err)
{
    bal_error ignored = { 0 };
    char *old = bal_path_join(self->home, "old");
    if (!old)
        return bal_fail_memory(err, "replacing a folder");
    int rc = bal_rename(self->out, old, err);

    if (!rc) {
        rc = bal_rename(self->dir, self->out, err);
        /* Where that fails, too, it stays for the next writer to put back. */
        if (rc && bal_rename(old, self->out, &ignored)) {
            bal_warn("model", "kept=%s", old);
            bal_str_free(BAL_TAKE(self->home));
        }
    }
    bal_str_free(old);
    return rc;
}

static int exchange(bal_stage *self, bal_error *err)
{
    if (!renameat2(AT_FDCWD, self->dir, AT_FDCWD, self->out, RENAME_EXCHANGE))
        return sync_parent(self->out, err);
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
        return replace(self, err);
    return bal_fail_errno(err, "replacing '%s'", self->out);
}

int bal_stage_publish(bal_stage *self, unsigned flags, bal_error *err)
{
    bool full = false;
    int rc = look(&full, self->out, flags, err);
    if (rc)
        return rc;
    if (full)
        return exchange(self, err);

    /* A rename takes the place of an empty folder. */
    rc = bal_rename(self->dir, self->out, err);
    if (rc != BAL_EEXISTS)
        return rc;
    /* Somebody has filled it since. */
    rc = look(&full, self->out, flags, err);
    return rc ? rc : exchange(self, err);
}

void bal_stage_done(bal_stage *self)
{
    bal_error err = { 0 };

    if (self->home && bal_remove_tree(self->home, &err))
        bal_warn("model", "left-over=%s why=\"%s\"", self->home, err.text);
    if (self->lock >= 0)
        close(self->lock);
    /* What was published keeps them from being empty. */
    if (self->made)
        remove_made(self->out, self->made);
    bal_str_free(self->made);
    bal_str_free(self->out);
    bal_str_free(self->home);
    bal_str_free(self->dir);
    *self = (bal_stage){ .lock = -1 };
}
