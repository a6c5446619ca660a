/* Starting a child with pipes; what core/child.c stands on. */
#ifndef CORE_CHILD_SPAWN_H
#define CORE_CHILD_SPAWN_H

#include <sys/types.h>

#include "core/buf.h"

enum { BAL_CHILD_PIPES = 6 };

typedef struct bal_child_pipe {
    int fd;         /* the child's descriptor */
    bool they_read; /* or write */
    int *ours;      /* where our end goes, which does not block */
} bal_child_pipe;

/* In a process group of its own, with signals as a program finds them, and the
 * environment but for our keys. argv ends with NULL, env (NULL: nothing more)
 * too. Our ends are set as far as they were made, on failure too. */
BAL_CHECK int bal_child_spawn(pid_t *pid, const char *const *argv,
                              const char *const *env,
                              const bal_child_pipe *pipes, size_t count,
                              bal_error *err);

#endif
