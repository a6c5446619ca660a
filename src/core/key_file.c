/* Keys in files and in the environment. A private key is read into memory that
 * is wiped, and no message holds what a variable held: it may be a secret. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/key_inside.h"

/* Far more than a key with its comments, small enough for any stack. */
enum { FILE_MAX_BYTES = 16384 };

static const char variable[] = "BALLAST_SIGNING_KEY";

static int not_regular(const char *path, bal_error *err)
{
    return bal_fail(err, BAL_EINVAL, "'%s' is not a regular file", path);
}

static int fail_open(const char *path, bal_error *err)
{
    if (errno == ENXIO) /* a socket */
        return not_regular(path, err);
    return bal_fail_errno(err, "opening '%s'", path);
}

static int check_file(const struct stat *info, const char *path, bal_error *err)
{
    if (!S_ISREG(info->st_mode))
        return not_regular(path, err);
    if (info->st_size > FILE_MAX_BYTES)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is too large for a key: %" PRIu64 " bytes", path,
                        (uint64_t)info->st_size);
    return 0;
}

/* All of a file that is no larger than FILE_MAX_BYTES, whatever it was when it
 * was looked at. */
static int read_fd(int fd, const char *path, char text[FILE_MAX_BYTES + 1],
                   size_t *len, bal_error *err)
{
    size_t done = 0;

    while (done <= FILE_MAX_BYTES) {
        ssize_t got = read(fd, text + done, FILE_MAX_BYTES + 1 - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bal_fail_errno(err, "reading '%s'", path);
        if (!got) {
            *len = done;
            return 0;
        }
        done += (size_t)got;
    }
    return bal_fail(err, BAL_EINVAL, "'%s' is too large for a key", path);
}

static int load_fd(bal_key **out, int fd, const char *path, bal_error *err)
{
    char text[FILE_MAX_BYTES + 1];
    size_t len = 0;
    struct stat info;

    if (fstat(fd, &info))
        return bal_fail_errno(err, "looking at '%s'", path);
    int rc = check_file(&info, path, err);
    if (rc)
        return rc;
    rc = read_fd(fd, path, text, &len, err);
    if (!rc)
        rc = bal_key_parse(out, (bal_bytes){ text, len }, path, err);
    OPENSSL_cleanse(text, sizeof(text));
    if (rc)
        return rc;
    if (bal_key_signs(*out) && (info.st_mode & 077))
        bal_warn("key", "private-key=%s mode=%04o readable-by-others", path,
                 (unsigned)(info.st_mode & 07777));
    return 0;
}

int bal_key_load(bal_key **out, const char *path, bal_error *err)
{
    /* Links are followed: secrets are often mounted so. Without O_NONBLOCK a
     * named pipe would keep us waiting. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_open(path, err);
    int rc = load_fd(out, fd, path, err);

    close(fd);
    return rc;
}

static int write_fd(int fd, const char *pem, const char *path, bal_error *err)
{
    /* A umask may have taken what the owner needs. */
    if (fchmod(fd, 0600))
        return bal_fail_errno(err, "setting the mode of '%s'", path);
    int rc = bal_write_all(fd, pem, strlen(pem), path, err);
    if (rc)
        return rc;
    return bal_sync_fd(fd, path, err);
}

static int write_new(const char *pem, const char *path, bal_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return bal_fail_errno(err, "making '%s'", path);
    int rc = write_fd(fd, pem, path, err);

    if (close(fd) && !rc)
        rc = bal_fail_errno(err, "closing '%s'", path);
    if (!rc)
        rc = bal_sync_parent(path, err);
    if (rc)
        unlink(path);
    return rc;
}

int bal_key_write(const bal_key *self, const char *path, bal_error *err)
{
    char pem[BAL_PEM_ROOM];
    int rc = bal_key_private(self, pem, err);
    if (rc)
        return rc;
    rc = write_new(pem, path, err);

    OPENSSL_cleanse(pem, sizeof(pem));
    return rc;
}

/* ---- the environment -------------------------------------------------------
 */

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t tail = strlen(end);

    return len >= tail && !strcmp(text + len - tail, end);
}

/* What looks like a path is one, whether or not there is such a file: else a
 * path with a slip of the pen in it would be a secret that anybody can guess.
 */
static bool means_path(const char *value)
{
    struct stat info;

    return strchr(value, '/') || ends_in(value, ".pem") || !lstat(value, &info);
}

static int load_named(bal_key **out, const char *path, bal_error *err)
{
    struct stat info;

    /* Only what is there can be named: it is a path, and no secret. */
    if (!lstat(path, &info)) {
        int rc = bal_key_load(out, path, err);
        return rc ? bal_within(err, rc, "%s", variable) : 0;
    }
    int rc = bal_fail_errno(err, "the file that %s names", variable);
    return bal_hint(err, rc,
                    "a shared secret holds no '/' and does not end in '.pem'");
}

int bal_key_environment(bal_key **out, bal_error *err)
{
    const char *value = getenv(variable);

    if (!value || !value[0]) {
        *out = NULL;
        return 0;
    }
    if (!strncmp(value, "-----BEGIN", 10))
        return bal_hint(
            err, bal_fail(err, BAL_EINVAL, "%s holds a key itself", variable),
            "put the key into a file and its path into %s", variable);
    if (means_path(value))
        return load_named(out, value, err);
    int rc = bal_key_of_secret(out, (bal_bytes){ value, strlen(value) }, err);
    return rc ? bal_within(err, rc, "%s is no file", variable) : 0;
}
