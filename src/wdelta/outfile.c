/* core/file.h replaces small files whole; this is for those that are written
 * in pieces. */
#include "wdelta/outfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"

static const char ending[] = ".wdelta";

static bool same_file(const char *a, const char *b)
{
    struct stat left;
    struct stat right;

    return !stat(a, &left) && !stat(b, &right) && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

static bool ends_so(const char *path)
{
    size_t len = strlen(path);
    size_t tail = sizeof(ending) - 1;

    return len > tail && !strcmp(path + len - tail, ending);
}

static int check_apart(const char *real, const char *path, const char *avoid,
                       bal_error *err)
{
    char *other = NULL;
    int rc = bal_path_real(&other, avoid, err);
    if (rc)
        return rc;

    if (!strcmp(real, other) || same_file(real, other))
        rc = bal_fail(err, BAL_EINVAL, "'%s' is '%s', which is read", path,
                      avoid);
    else if (bal_path_holds(other, real) && !ends_so(real))
        rc = bal_fail(err, BAL_EINVAL, "'%s' lies inside '%s'", path, avoid);
    bal_str_free(other);
    return rc ? bal_hint(err, rc, "choose another place to write to") : 0;
}

static int check_place(const char *real, const char *path,
                       const char *const *avoid, size_t count, bal_error *err)
{
    bal_path_type type = bal_path_type_of(real);

    if (type == BAL_PATH_DIR || type == BAL_PATH_OTHER)
        return bal_fail(err, BAL_EINVAL, "'%s' is not a regular file", path);
    for (size_t i = 0; i < count; i++) {
        int rc = check_apart(real, path, avoid[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_outfile_make(bal_outfile *out, const char *path,
                     const char *const *avoid, size_t count, bal_error *err)
{
    uint64_t random = 0;
    int rc = bal_path_real(&out->path, path, err);
    if (!rc)
        rc = check_place(out->path, path, avoid, count, err);
    if (rc)
        return rc;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)bal_clock_now();
    rc = bal_buf_format(&out->name, err, "%s.tmp-%016" PRIx64, out->path,
                        random);
    if (rc)
        return rc;
    out->fd = open(out->name.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out->fd >= 0)
        return 0;
    rc = bal_fail_errno(err, "making '%s'", path);
    bal_buf_clear(&out->name);
    return rc;
}

int bal_outfile_publish(bal_outfile *self, bal_error *err)
{
    int rc = bal_sync_fd(self->fd, self->path, err);
    if (!rc)
        rc = bal_rename(self->name.data, self->path, err);
    if (!rc)
        bal_buf_clear(&self->name);
    return rc;
}

void bal_outfile_done(bal_outfile *self)
{
    if (self->fd >= 0)
        close(self->fd);
    if (self->name.len)
        unlink(self->name.data);
    bal_buf_done(&self->name);
    bal_str_free(self->path);
}
