/* One poll loop over all pipes in the calling thread: whoever feeds a child
 * while it fills its output waits for it forever. */
#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/str.h"

extern char **environ;

enum {
    FEEDS_MAX = 4,
    PIECE = 64 << 10,
    TAIL = 4 << 10,
    TICK = 100, /* milliseconds between looks at the clock */
};

typedef struct feeding {
    const bal_child_feed *feed;
    int fd; /* our end; -1: closed */
    bal_buf buf;
    size_t at; /* written of buf */
} feeding;

typedef struct child {
    const bal_child_job *job;
    bal_work *work;
    pid_t pid; /* 0: not there, or waited for */
    feeding feeds[FEEDS_MAX];
    int out, errors; /* our ends; -1: closed */
    bal_buf line;    /* of output, not ended yet */
    char tail[TAIL]; /* of standard error */
    size_t tail_len;
    double end; /* on the clock of ticks */
} child;

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* All of its process group, which outlives it where it leaves children. */
static void end_it(child *self)
{
    int status;

    if (!self->pid)
        return;
    kill(-self->pid, SIGKILL);
    kill(self->pid, SIGKILL);
    while (waitpid(self->pid, &status, 0) < 0 && errno == EINTR)
        ;
    self->pid = 0;
}

static void child_done(child *self)
{
    end_it(self);
    for (size_t i = 0; i < FEEDS_MAX; i++) {
        shut(&self->feeds[i].fd);
        bal_buf_done(&self->feeds[i].buf);
    }
    shut(&self->out);
    shut(&self->errors);
    bal_buf_done(&self->line);
}

/* ---- starting ----------------------------------------------------------- */

/* What it gets, and what we keep, not blocking. */
static int make_pipe(int *theirs, int *ours, bool they_read, bal_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return bal_fail_errno(err, "making a pipe");
    *theirs = ends[they_read ? 0 : 1];
    *ours = ends[they_read ? 1 : 0];
    /* Above those that the child's are moved to. */
    int high = fcntl(*theirs, F_DUPFD_CLOEXEC, 64);
    if (high < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK))
        return bal_fail_errno(err, "making a pipe");
    close(*theirs);
    *theirs = high;
    return 0;
}

/* NULL: no memory. */
static char **join_env(const char *const *more)
{
    size_t count = 0;
    size_t added = 0;

    while (environ[count])
        count++;
    while (more && more[added])
        added++;
    char **all = calloc(count + added + 1, sizeof(*all));
    if (!all)
        return NULL;
    /* The first of a name counts. */
    for (size_t i = 0; i < added; i++)
        all[i] = (char *)(uintptr_t)more[i];
    for (size_t i = 0; i < count; i++)
        all[added + i] = environ[i];
    return all;
}

typedef struct spawning {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **env;
    int theirs[FEEDS_MAX + 2];
    size_t count;
    bool ready;
} spawning;

static void spawning_done(spawning *self)
{
    for (size_t i = 0; i < self->count; i++)
        close(self->theirs[i]);
    free(self->env);
    if (!self->ready)
        return;
    posix_spawn_file_actions_destroy(&self->actions);
    posix_spawnattr_destroy(&self->attributes);
}

/* Signals as a program finds them, and a group of its own. */
static int prepare(spawning *self, const char *const *env)
{
    sigset_t all;
    sigset_t none;

    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGXFSZ);
    self->env = join_env(env);
    if (!self->env || posix_spawn_file_actions_init(&self->actions))
        return ENOMEM;
    if (posix_spawnattr_init(&self->attributes)) {
        posix_spawn_file_actions_destroy(&self->actions);
        return ENOMEM;
    }
    self->ready = true;
    int rc = posix_spawnattr_setsigdefault(&self->attributes, &all);
    if (!rc)
        rc = posix_spawnattr_setsigmask(&self->attributes, &none);
    if (!rc)
        rc = posix_spawnattr_setpgroup(&self->attributes, 0);
    if (!rc)
        rc = posix_spawnattr_setflags(
            &self->attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                   POSIX_SPAWN_SETPGROUP);
    return rc;
}

static int join(spawning *self, int fd, int *ours, bool they_read,
                bal_error *err)
{
    int rc = make_pipe(&self->theirs[self->count], ours, they_read, err);
    if (rc)
        return rc;

    int failed = posix_spawn_file_actions_adddup2(
        &self->actions, self->theirs[self->count++], fd);
    if (!failed)
        return 0;
    errno = failed;
    return bal_fail_errno(err, "making a pipe");
}

static int start(child *self, bal_error *err)
{
    const bal_child_job *job = self->job;
    BAL_LOCAL(spawning) how = { .count = 0 };
    int failed = prepare(&how, job->env);
    int rc = 0;

    if (failed)
        return bal_fail_memory(err, job->what);
    for (size_t i = 0; i < job->feed_count && !rc; i++) {
        self->feeds[i].feed = &job->feeds[i];
        rc = join(&how, job->feeds[i].fd, &self->feeds[i].fd, true, err);
    }
    if (!rc)
        rc = join(&how, 1, &self->out, false, err);
    if (!rc)
        rc = join(&how, 2, &self->errors, false, err);
    if (rc)
        return rc;
    failed =
        posix_spawnp(&self->pid, job->argv[0], &how.actions, &how.attributes,
                     (char *const *)(uintptr_t)job->argv, how.env);
    if (!failed)
        return 0;
    self->pid = 0;
    errno = failed;
    rc = bal_fail_errno(err, "starting '%s'", job->argv[0]);
    return rc == BAL_ENOTFOUND
               ? bal_fail(err, BAL_EIO, "no program '%s'", job->argv[0])
               : rc;
}

/* ---- going on ----------------------------------------------------------- */

static int refill(feeding *self, bal_error *err)
{
    if (self->at < self->buf.len)
        return 0;
    bal_buf_clear(&self->buf);
    self->at = 0;
    int rc = self->feed->fill(self->feed->ctx, &self->buf, err);
    if (!rc && !self->buf.len)
        shut(&self->fd);
    return rc;
}

/* One that does not want to read any more is left alone. */
static int feed(feeding *self, bal_error *err)
{
    int rc = refill(self, err);

    if (rc || self->fd < 0)
        return rc;
    size_t len = bal_min(self->buf.len - self->at, PIECE);
    ssize_t wrote = write(self->fd, self->buf.data + self->at, len);
    if (wrote >= 0)
        self->at += (size_t)wrote;
    else if (errno == EPIPE)
        shut(&self->fd);
    else if (errno != EAGAIN && errno != EINTR)
        return bal_fail_errno(err, "writing to a pipe");
    return 0;
}

static int take_line(child *self, const char *text, size_t len, bal_error *err)
{
    const bal_child_job *job = self->job;

    if (self->line.len + len > job->line_max)
        return bal_fail(err, BAL_EIO, "%s wrote a line of over %zu bytes",
                        job->what, job->line_max);
    int rc = bal_buf_append(&self->line, text, len, err);
    if (!rc)
        rc = job->line(job->ctx, bal_buf_string(&self->line), self->line.len,
                       err);
    bal_buf_clear(&self->line);
    return rc;
}

static int take_output(child *self, const char *text, size_t len,
                       bal_error *err)
{
    while (len) {
        const char *end = memchr(text, '\n', len);
        if (!end)
            break;
        int rc = take_line(self, text, (size_t)(end - text), err);
        if (rc)
            return rc;
        len -= (size_t)(end - text) + 1;
        text = end + 1;
    }
    if (self->line.len + len > self->job->line_max)
        return bal_fail(err, BAL_EIO, "%s wrote a line of over %zu bytes",
                        self->job->what, self->job->line_max);
    return bal_buf_append(&self->line, text, len, err);
}

static void take_errors(child *self, const char *text, size_t len)
{
    if (len > TAIL) {
        text += len - TAIL;
        len = TAIL;
    }
    size_t kept = bal_min(self->tail_len, TAIL - len);
    memmove(self->tail, self->tail + self->tail_len - kept, kept);
    memcpy(self->tail + kept, text, len);
    self->tail_len = kept + len;
}

/* Some of what can be read; at the end the descriptor is closed. */
static int drain(child *self, int *fd, bal_error *err)
{
    char piece[PIECE];
    ssize_t got = read(*fd, piece, sizeof(piece));

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0)
        return bal_fail_errno(err, "reading from a pipe");
    if (!got) {
        bool rest = fd == &self->out && self->line.len;
        shut(fd);
        return rest ? take_line(self, "", 0, err) : 0;
    }
    if (fd == &self->out)
        return take_output(self, piece, (size_t)got, err);
    take_errors(self, piece, (size_t)got);
    return 0;
}

static int too_slow(child *self, bal_error *err)
{
    if (bal_clock_ticks() < self->end)
        return 0;
    return bal_fail(err, BAL_EIO, "%s took more than %g seconds",
                    self->job->what, self->job->timeout);
}

/* The descriptors that are open, and whose they are. */
typedef struct watch {
    struct pollfd fds[FEEDS_MAX + 2];
    feeding *feeds[FEEDS_MAX + 2]; /* NULL: read from */
    size_t count;
} watch;

static void watch_add(watch *self, int fd, feeding *feed)
{
    if (fd < 0)
        return;
    self->fds[self->count].fd = fd;
    self->fds[self->count].events = feed ? POLLOUT : POLLIN;
    self->feeds[self->count++] = feed;
}

static int serve(child *self, const watch *all, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < all->count && !rc; i++) {
        if (!all->fds[i].revents)
            continue;
        if (all->feeds[i])
            rc = feed(all->feeds[i], err);
        else
            rc = drain(self,
                       all->fds[i].fd == self->out ? &self->out : &self->errors,
                       err);
    }
    return rc;
}

/* It ended, though something that it began may hold its output open. */
static bool has_ended(const child *self)
{
    siginfo_t info = { .si_pid = 0 };

    return !waitid(P_PID, (id_t)self->pid, &info,
                   WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid == self->pid;
}

/* Until it has closed its output. */
static int attend(child *self, bal_error *err)
{
    while (self->out >= 0 || self->errors >= 0) {
        watch all = { .count = 0 };
        for (size_t i = 0; i < self->job->feed_count; i++)
            watch_add(&all, self->feeds[i].fd, &self->feeds[i]);
        watch_add(&all, self->out, NULL);
        watch_add(&all, self->errors, NULL);
        int ready = poll(all.fds, all.count, TICK);
        if (ready < 0 && errno != EINTR)
            return bal_fail_errno(err, "waiting for '%s'", self->job->argv[0]);
        if (!ready && has_ended(self))
            return 0;
        int rc = bal_work_poll(self->work, err);
        if (!rc)
            rc = too_slow(self, err);
        if (!rc)
            rc = serve(self, &all, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- ending ------------------------------------------------------------- */

/* The last line of what it said, fit to be shown. */
static int last_words(child *self, bal_buf *to)
{
    size_t end = self->tail_len;

    while (end && (self->tail[end - 1] == '\n' || self->tail[end - 1] == '\r'))
        end--;
    size_t start = end;
    while (start && self->tail[start - 1] != '\n')
        start--;
    size_t len = bal_min(end - start, 300);
    if (!len)
        return 0;
    int rc = bal_buf_text(to, ": ", NULL);
    return rc ? rc : bal_printable(to, self->tail + start, len, false, NULL);
}

static int judge(child *self, int status, bal_error *err)
{
    BAL_LOCAL(bal_buf) words = { 0 };

    if (WIFEXITED(status) && self->job->status)
        *self->job->status = WEXITSTATUS(status);
    if (WIFEXITED(status) && (!WEXITSTATUS(status) || self->job->status))
        return 0;
    if (last_words(self, &words))
        bal_buf_clear(&words);
    if (WIFSIGNALED(status))
        return bal_fail(err, BAL_EIO, "%s was killed by signal %d%s",
                        self->job->what, WTERMSIG(status),
                        bal_buf_string(&words));
    return bal_fail(err, BAL_EIO, "%s ended with status %d%s", self->job->what,
                    WEXITSTATUS(status), bal_buf_string(&words));
}

/* It may close its output and go on. */
static int wait_for(child *self, bal_error *err)
{
    int status = 0;

    for (;;) {
        pid_t got = waitpid(self->pid, &status, WNOHANG);
        if (got == self->pid)
            break;
        if (got < 0 && errno != EINTR)
            return bal_fail_errno(err, "waiting for '%s'", self->job->argv[0]);
        int rc = bal_work_poll(self->work, err);
        if (!rc)
            rc = too_slow(self, err);
        if (rc)
            return rc;
        bal_clock_sleep(0.002);
    }
    /* What it left running of its own group. */
    kill(-self->pid, SIGKILL);
    self->pid = 0;
    return judge(self, status, err);
}

/* What went wrong in reading it may be because it died: that is told then. */
static int died_first(child *self, int rc, bal_error *err)
{
    int status = 0;
    bal_error why = { 0 };

    if (rc != BAL_EIO || waitpid(self->pid, &status, WNOHANG) != self->pid)
        return rc;
    kill(-self->pid, SIGKILL);
    self->pid = 0;
    if (!judge(self, status, &why))
        return rc;
    return bal_fail(err, BAL_EIO, "%s", why.text);
}

int bal_child_run(const bal_child_job *job, bal_work *work, bal_error *err)
{
    BAL_LOCAL(child)
    self = {
        .job = job,
        .work = work,
        .out = -1,
        .errors = -1,
        .end = bal_clock_ticks() + job->timeout,
    };

    for (size_t i = 0; i < FEEDS_MAX; i++)
        self.feeds[i].fd = -1;
    int rc = start(&self, err);
    if (rc)
        return rc;
    rc = attend(&self, err);
    if (rc)
        return died_first(&self, rc, err);
    return wait_for(&self, err);
}
