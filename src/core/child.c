/* One poll loop over all pipes in the calling thread: whoever feeds a child
 * while it fills its output waits for it forever. */
#include "core/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arith.h"
#include "core/child_spawn.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/str.h"

enum {
    FEEDS_MAX = BAL_CHILD_PIPES - 2,
    PIECE = 64 << 10,
    TAIL = 4 << 10,
    LAST = 64,  /* reads of what a pipe may hold at the end */
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

static int start(child *self, bal_error *err)
{
    const bal_child_job *job = self->job;
    bal_child_pipe pipes[FEEDS_MAX + 2];
    size_t count = 0;

    for (; count < job->feed_count; count++) {
        self->feeds[count].feed = &job->feeds[count];
        pipes[count] = (bal_child_pipe){ job->feeds[count].fd, true,
                                         &self->feeds[count].fd };
    }
    pipes[count++] = (bal_child_pipe){ 1, false, &self->out };
    pipes[count++] = (bal_child_pipe){ 2, false, &self->errors };
    return bal_child_spawn(&self->pid, job->argv, job->env, pipes, count, err);
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

/* A last line without a line feed. */
static int take_rest(child *self, bal_error *err)
{
    return self->line.len ? take_line(self, "", 0, err) : 0;
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
        bool out = fd == &self->out;
        shut(fd);
        return out ? take_rest(self, err) : 0;
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

/* Nothing of its output is there to be read. */
static bool is_quiet(const child *self, const watch *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (!all->feeds[i] && all->fds[i].fd == self->out)
            return !all->fds[i].revents;
    }
    return true;
}

static bool is_ready(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };

    return fd >= 0 && poll(&one, 1, 0) > 0;
}

/* What it wrote before it ended may have come after the last look. Of what it
 * left running no more is taken than that: it may go on for ever. */
static int take_last(child *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < LAST && is_ready(self->out) && !rc; i++)
        rc = drain(self, &self->out, err);
    for (size_t i = 0; i < LAST && is_ready(self->errors) && !rc; i++)
        rc = drain(self, &self->errors, err);
    return rc ? rc : take_rest(self, err);
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
        if (poll(all.fds, all.count, TICK) < 0 && errno != EINTR)
            return bal_fail_errno(err, "waiting for '%s'", self->job->argv[0]);
        if (is_quiet(self, &all) && has_ended(self))
            return take_last(self, err);
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
    /* One that wants to read on without being heard gets an end. */
    for (size_t i = 0; i < FEEDS_MAX; i++)
        shut(&self.feeds[i].fd);
    if (rc)
        return died_first(&self, rc, err);
    return wait_for(&self, err);
}
