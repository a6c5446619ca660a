/* A lock that ends with the process, by flock: unlike fcntl's it belongs to the
 * open file, so two threads of one process exclude each other too. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/signals.h"

static const double first_sleep = 0.001;
static const double last_sleep = 0.05;

static int open_lock(const char *path, enum bal_lock_mode mode)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    /* Reading a store on a read-only disk takes a lock, too. */
    if (fd < 0 && mode == BAL_LOCK_SHARED &&
        (errno == EROFS || errno == EACCES))
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd;
}

/* flock has no time limit, so ask again and again. */
static int wait_for(int fd, const char *path, enum bal_lock_mode mode,
                    double wait, bal_error *err)
{
    int operation = mode == BAL_LOCK_SHARED ? LOCK_SH : LOCK_EX;
    double until = bal_clock_ticks() + wait;
    double pause = first_sleep;

    while (flock(fd, operation | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return bal_fail_errno(err, "locking '%s'", path);
        if (bal_signals_pending())
            return bal_fail(err, BAL_ECANCELLED, "waiting for '%s': cancelled",
                            path);
        double left = until - bal_clock_ticks();
        if (left <= 0)
            return bal_fail(err, BAL_EBUSY, "'%s' is locked by someone else",
                            path);
        bal_clock_sleep(pause < left ? pause : left);
        pause = pause * 2 < last_sleep ? pause * 2 : last_sleep;
    }
    return 0;
}

int bal_lock_take(bal_lock **out, const char *path, enum bal_lock_mode mode,
                  double wait, bal_error *err)
{
    BAL_OWN(bal_lock) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "locking a file");
    self->fd = open_lock(path, mode);
    if (self->fd < 0)
        return bal_fail_errno(err, "opening '%s'", path);
    int rc = wait_for(self->fd, path, mode, wait, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(self);
    return 0;
}

/* Closing lets go: the descriptor is not shared. */
void bal_lock_free(bal_lock *self)
{
    if (!self)
        return;
    if (self->fd >= 0)
        close(self->fd);
    free(self);
}
