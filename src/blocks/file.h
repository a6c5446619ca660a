/* Inside the file backend. Its directory holds
 *
 *   acme/3/3f0a…       runs, under their names
 *   .tmp/lock          shared by who makes a session, exclusive for who sweeps
 *   .tmp/<session>/lock   held by the session's process as long as it lives
 *   .tmp/<session>/N      staged runs
 *
 * No part of a name starts with a dot, so names and .tmp cannot meet. */
#ifndef BLOCKS_FILE_H
#define BLOCKS_FILE_H

#include <pthread.h>

#include "blocks/backend.h"
#include "core/file.h"

extern const bal_backend_ops bal_backend_file;

typedef struct file_backend {
    bal_backend base;
    char *dir;            /* absolute or as the root is */
    pthread_mutex_t lock; /* guards session, owner and next */
    char *session;        /* its directory, NULL: nothing was staged yet */
    bal_lock *owner;
    uint64_t next; /* name of the next staged run */
} file_backend;

/* "<dir>/<name>". */
BAL_CHECK int bal_file_backend_path(const file_backend *self, bal_buf *out,
                                    const char *name, bal_error *err);

/* ---- stage.c ------------------------------------------------------------ */

int bal_file_backend_stage(bal_backend *self, bal_staged *out, const char *name,
                           const bal_bytes *parts, size_t count,
                           bal_error *err);
int bal_file_backend_settle(bal_backend *self, bal_staged *staged, size_t count,
                            bal_work *work, bal_error *err);
void bal_file_backend_discard(bal_backend *self, bal_staged *staged);
/* remove.c */
int bal_file_backend_remove(bal_backend *self, const char *const *names,
                            size_t count, uint64_t *freed, bal_error *err);
/* Remove the session and what is left in it. */
void bal_file_backend_leave(file_backend *self);
int bal_file_backend_sweep(bal_backend *self, uint64_t *bytes, unsigned flags,
                           bal_error *err);

#endif
