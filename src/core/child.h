/* A child process: fed through pipes, its output taken line by line, ended with
 * all that it began. */
#ifndef CORE_CHILD_H
#define CORE_CHILD_H

#include "core/buf.h"
#include "core/own.h"

/* What goes into a descriptor of the child's. */
typedef struct bal_child_feed {
    int fd; /* 0, or 3 and up, one behind the other */
    /* Append more to an empty buffer, a piece of whatever size is handy;
     * nothing appended ends it. */
    int (*fill)(void *ctx, bal_buf *to, bal_error *err);
    void *ctx;
} bal_child_feed;

typedef struct bal_child_job {
    const char *const *argv; /* ends with NULL; found by PATH */
    const char *const *env;  /* "NAME=value" beside what we have; ends with
                                NULL */
    const bal_child_feed *feeds;
    size_t feed_count;
    /* A line of its standard output, without the line feed; NUL behind it. */
    int (*line)(void *ctx, const char *text, size_t len, bal_error *err);
    void *ctx;
    double timeout;   /* seconds for all of it */
    size_t line_max;  /* bytes of a line; more is EIO */
    const char *what; /* named in messages: "the runner" */
    int *status;      /* its exit status, which is no failure then; NULL */
} bal_child_job;

/* Run it to its end. A descriptor that it does not read to the end is no
 * failure. EIO: it cannot be started, ends with another status than 0, or takes
 * too long: then it is killed, with its process group; the last line of its
 * standard error is in the message. What fill and line fail with ends it, too.
 * ECANCELLED as work is. */
BAL_CHECK int bal_child_run(const bal_child_job *job, bal_work *work,
                            bal_error *err);

#endif
