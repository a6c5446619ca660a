/* posix_spawn, for a fork of a process with threads may run little else. */
#include "core/child_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/own.h"

extern char **environ;

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
    int rc = high < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK)
                 ? bal_fail_errno(err, "making a pipe")
                 : 0;

    close(*theirs);
    if (rc && high >= 0)
        close(high);
    *theirs = high;
    return rc;
}

/* What is ours alone, and no child's. */
static bool is_secret(const char *variable)
{
    static const char *const names[] = { "BALLAST_SIGNING_KEY=",
                                         "BALLAST_PROBE_API_KEY=" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strncmp(variable, names[i], strlen(names[i])))
            return true;
    }
    return false;
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
    for (size_t i = 0; i < count; i++) {
        if (!is_secret(environ[i]))
            all[added++] = environ[i];
    }
    return all;
}

typedef struct spawning {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **env;
    int theirs[BAL_CHILD_PIPES];
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

static int join(spawning *self, const bal_child_pipe *pipe, bal_error *err)
{
    int rc =
        make_pipe(&self->theirs[self->count], pipe->ours, pipe->they_read, err);
    if (rc)
        return rc;

    int failed = posix_spawn_file_actions_adddup2(
        &self->actions, self->theirs[self->count++], pipe->fd);
    if (!failed)
        return 0;
    errno = failed;
    return bal_fail_errno(err, "making a pipe");
}

int bal_child_spawn(pid_t *pid, const char *const *argv, const char *const *env,
                    const bal_child_pipe *pipes, size_t count, bal_error *err)
{
    BAL_LOCAL(spawning) how = { .count = 0 };
    pid_t made = 0;
    int rc = 0;

    if (prepare(&how, env))
        return bal_fail_memory(err, argv[0]);
    for (size_t i = 0; i < count && !rc; i++)
        rc = join(&how, &pipes[i], err);
    if (rc)
        return rc;
    int failed = posix_spawnp(&made, argv[0], &how.actions, &how.attributes,
                              (char *const *)(uintptr_t)argv, how.env);
    if (!failed) {
        *pid = made;
        return 0;
    }
    errno = failed;
    rc = bal_fail_errno(err, "starting '%s'", argv[0]);
    return rc == BAL_ENOTFOUND
               ? bal_fail(err, BAL_EIO, "no program '%s'", argv[0])
               : rc;
}
