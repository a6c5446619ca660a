/* A child that does much between two looks of ours: poll is held up until the
 * child has ended, and then tells what it saw before. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/child.h"
#include "core/pool.h"
#include "support/check.h"

static char go[256]; /* the child waits for this file */
static bool hold;    /* the next look that finds something */

/* Under either name, for a fortified build has another one. */
int __real_poll(struct pollfd *fds, nfds_t count, int wait);
int __wrap_poll(struct pollfd *fds, nfds_t count, int wait);
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int wait, size_t room);

int __wrap_poll(struct pollfd *fds, nfds_t count, int wait)
{
    int ready = __real_poll(fds, count, wait);
    siginfo_t info;

    if (ready <= 0 || !hold)
        return ready;
    hold = false;
    close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
    return ready;
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int wait, size_t room)
{
    (void)room;
    return __wrap_poll(fds, count, wait);
}

static int take(void *ctx, const char *text, size_t len, bal_error *err)
{
    bal_buf *lines = ctx;
    int rc = bal_buf_append(lines, text, len, err);

    return rc ? rc : bal_buf_text(lines, "\n", err);
}

/* Noise on standard error, then, while nobody looks, all of the rest. */
static int run(bal_buf *lines, const char *rest)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_LOCAL(bal_buf) script = { 0 };
    int rc = 0;

    snprintf(go, sizeof(go), "%s/go", check_dir());
    remove(go);
    CHECK_OK(bal_work_new(&work, 1, &check_err));
    CHECK_OK(bal_buf_format(
        &script, &check_err,
        "echo noise >&2; while [ ! -e '%s' ]; do :; done; %s", go, rest));
    const char *const argv[] = { "/bin/sh", "-c", bal_buf_string(&script),
                                 NULL };
    const bal_child_job job = {
        .argv = argv,
        .line = take,
        .ctx = lines,
        .timeout = 60,
        .line_max = 1000,
        .what = "the child",
    };

    hold = true;
    rc = bal_child_run(&job, work, &check_err);
    CHECK(!hold);
    return rc;
}

static void what_is_written_right_before_the_end_is_taken(void)
{
    BAL_LOCAL(bal_buf) lines = { 0 };

    CHECK_OK(run(&lines, "echo one; echo two; printf three"));
    CHECK(!strcmp(bal_buf_string(&lines), "one\ntwo\nthree\n"));
}

static void last_words_are_told(void)
{
    BAL_LOCAL(bal_buf) lines = { 0 };

    CHECK(run(&lines, "echo why not >&2; exit 3") == BAL_EIO);
    CHECK(!strcmp(check_err.text, "the child ended with status 3: why not"));
}

static const check_test tests[] = {
    { TEST(what_is_written_right_before_the_end_is_taken) },
    { TEST(last_words_are_told) },
};

CHECK_MAIN(tests)
