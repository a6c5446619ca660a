/* The threads that may take time, each with a store of its own, and the queue
 * before them. */
#ifndef SERVE_WORKERS_H
#define SERVE_WORKERS_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_turn bal_turn;
typedef struct bal_workers bal_workers;

/* What is left to do of a request that was answered, step by step. */
typedef struct bal_job {
    bool (*step)(void *ctx, const volatile bool *stop); /* false: it is done */
    void *ctx;
    bal_tenant *tenant; /* ours; freed when it is done */
    struct bal_job *next;
} bal_job;

typedef struct bal_worker {
    bal_workers *all;
    bal_work *work;
    bal_store *store; /* NULL: not open */
    bool stale;       /* to be opened anew when no job needs it */
    bal_job *jobs;    /* the next one first */
} bal_worker;

BAL_CHECK int bal_workers_new(bal_workers **out, unsigned count,
                              const bal_store_options *store,
                              const volatile bool *stop, bal_error *err);
/* Those that run are waited for; all in the queue are done first. After that
 * the queue takes nothing. */
void bal_workers_end(bal_workers *self);
/* Ends them, if that was not done. */
void bal_workers_free(bal_workers *self);
BAL_OWNABLE(bal_workers)

/* False: the queue is full, or the workers have ended. */
bool bal_workers_queue(bal_workers *self, bal_turn *turn);
size_t bal_workers_waiting(bal_workers *self);
const volatile bool *bal_workers_stop(const bal_workers *self);
/* The worker's store, opened if need be. */
BAL_CHECK int bal_worker_store(bal_store **out, bal_worker *self,
                               bal_error *err);
/* It is opened anew for the next request, or when its jobs are done. */
void bal_worker_close(bal_worker *self);
/* Has the worker do a step of it after each request, and all of it while there
 * are none. */
void bal_worker_take(bal_worker *self, const bal_job *job);

#endif
