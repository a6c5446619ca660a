/* What is longer than the screen goes through a pager, as with git. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"

/* $BALLAST_PAGER, $PAGER, less where there is one; NULL: none is wanted. */
static const char *chosen(void)
{
    static const char *const names[] = { "BALLAST_PAGER", "PAGER" };

    for (size_t i = 0; i < 2; i++) {
        const char *pager = getenv(names[i]);
        if (pager)
            return pager[0] && strcmp(pager, "cat") != 0 ? pager : NULL;
    }
    return "command -v less >/dev/null && exec less; exec cat";
}

static void run_pager(const char *pager, const int pipe_ends[2])
{
    dup2(pipe_ends[0], STDIN_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    setenv("LESS", "FRX", 0);
    execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
    _exit(127);
}

void bal_out_page(bal_out *self)
{
    const char *pager = chosen();
    int ends[2];

    if (!self->terminal || self->json || !pager || pipe(ends))
        return;
    pid_t pid = fork();
    if (!pid)
        run_pager(pager, ends);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return;
    }
    self->pager = pid;
    self->fd = ends[1];
}

void bal_out_unpage(bal_out *self)
{
    int status;

    if (!self->pager)
        return;
    close(self->fd);
    self->fd = STDOUT_FILENO;
    while (waitpid(self->pager, &status, 0) < 0 && errno == EINTR)
        continue;
    self->pager = 0;
    /* Who leaves the pager early has seen enough: that is no failure. */
    self->gone = false;
}
