#include "serve/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/pool.h"
#include "serve/turn.h"

enum { QUEUE_MAX = 1024 };

struct bal_workers {
    pthread_mutex_t lock; /* guards the queue */
    pthread_cond_t more;
    bal_turn *first, *last;
    size_t waiting;
    size_t writing, most_writing; /* requests that write, of those that run */
    bool over;
    const volatile bool *stop;
    bal_store_options store;
    size_t count;
    pthread_t *threads;
    bal_worker *each;
};

static int watch(void *ctx, uint64_t done, uint64_t total)
{
    const bal_workers *self = ctx;

    (void)done;
    (void)total;
    return bal_stopped(self->stop);
}

const volatile bool *bal_workers_stop(const bal_workers *self)
{
    return self->stop;
}

void bal_worker_close(bal_worker *self)
{
    self->stale = self->jobs != NULL;
    if (self->stale)
        return;
    bal_store_free(self->store);
    self->store = NULL;
}

int bal_worker_store(bal_store **out, bal_worker *self, bal_error *err)
{
    bal_store_options options = self->all->store;

    uint64_t changes = 0;
    bal_error why;

    if (self->store &&
        bal_store_changes(&changes, self->store, &why) == BAL_ECONFLICT)
        bal_worker_close(self);
    if (self->stale)
        bal_worker_close(self);
    options.work = self->work;
    options.flags &= ~(unsigned)(BAL_OPEN_CREATE | BAL_OPEN_INIT);
    int rc = self->store ? 0 : bal_store_open(&self->store, &options, err);
    if (!rc)
        *out = self->store;
    return rc;
}

/* ---- jobs --------------------------------------------------------------- */

void bal_worker_take(bal_worker *self, const bal_job *job)
{
    bal_job *kept = malloc(sizeof(*kept));
    bal_job **last = &self->jobs;

    if (!kept) {
        while (job->step(job->ctx, self->all->stop))
            ;
        bal_tenant_free(job->tenant);
        return;
    }
    while (*last)
        last = &(*last)->next;
    *kept = *job;
    kept->next = NULL;
    *last = kept;
}

/* A step of the first one, which is the last one after it. */
static void step_job(bal_worker *self)
{
    bal_job *job = self->jobs;

    self->jobs = job->next;
    if (job->step(job->ctx, self->all->stop))
        bal_worker_take(self, job);
    else
        bal_tenant_free(job->tenant);
    free(job);
}

/* ---- the queue ---------------------------------------------------------- */

/* Who writes may wait long: for the store's lock, or somebody's transaction. So
 * they leave one worker to the others. */
static bool writes(const bal_turn *turn)
{
    const bal_route *route = turn->request.route;

    return route && route->need == BAL_NEED_WRITE;
}

/* The first that may begin; NULL: none. */
static bal_turn *take_locked(bal_workers *self)
{
    bool full = self->writing >= self->most_writing;
    bal_turn **at = &self->first;
    bal_turn *before = NULL;

    while (*at && full && writes(*at)) {
        before = *at;
        at = &before->next;
    }
    bal_turn *turn = *at;
    if (!turn)
        return NULL;
    *at = turn->next;
    if (self->last == turn)
        self->last = before;
    self->waiting--;
    self->writing += writes(turn);
    return turn;
}

/* NULL: there will be none; or, if it need not wait, there is none now. */
static bal_turn *next_of(bal_workers *self, bool wait)
{
    pthread_mutex_lock(&self->lock);
    bal_turn *turn = take_locked(self);
    while (!turn && wait && (self->first || !self->over)) {
        pthread_cond_wait(&self->more, &self->lock);
        turn = take_locked(self);
    }
    pthread_mutex_unlock(&self->lock);
    return turn;
}

static void serve_one(bal_worker *worker, bal_turn *turn)
{
    bal_workers *self = worker->all;
    bool wrote = writes(turn);

    bal_turn_by_worker(turn, worker);
    if (!wrote)
        return;
    pthread_mutex_lock(&self->lock);
    self->writing--;
    pthread_cond_broadcast(&self->more);
    pthread_mutex_unlock(&self->lock);
}

static void *run(void *ctx)
{
    bal_worker *self = ctx;

    bal_turn *turn = next_of(self->all, true);
    while (turn || self->jobs) {
        if (turn)
            serve_one(self, turn);
        if (self->jobs)
            step_job(self);
        turn = next_of(self->all, !self->jobs);
    }
    bal_worker_close(self);
    return NULL;
}

bool bal_workers_queue(bal_workers *self, bal_turn *turn)
{
    pthread_mutex_lock(&self->lock);
    bool room = self->waiting < QUEUE_MAX && !self->over;
    if (room) {
        turn->next = NULL;
        *(self->last ? &self->last->next : &self->first) = turn;
        self->last = turn;
        self->waiting++;
        pthread_cond_signal(&self->more);
    }
    pthread_mutex_unlock(&self->lock);
    return room;
}

size_t bal_workers_waiting(bal_workers *self)
{
    pthread_mutex_lock(&self->lock);
    size_t waiting = self->waiting;
    pthread_mutex_unlock(&self->lock);
    return waiting;
}

static int start_one(bal_workers *self, bal_error *err)
{
    bal_worker *worker = &self->each[self->count];

    worker->all = self;
    int rc = bal_work_new(&worker->work, 1, err);
    if (rc)
        return rc;
    bal_work_watch(worker->work, watch, self);
    if (pthread_create(&self->threads[self->count], NULL, run, worker)) {
        bal_work_free(worker->work);
        return bal_fail(err, BAL_EIO, "a thread could not be started");
    }
    self->count++;
    return 0;
}

int bal_workers_new(bal_workers **out, unsigned count,
                    const bal_store_options *store, const volatile bool *stop,
                    bal_error *err)
{
    BAL_OWN(bal_workers) self = calloc(1, sizeof(*self));
    int rc = 0;

    if (!self)
        return bal_fail_memory(err, "starting workers");
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->more, NULL);
    self->store = *store;
    self->stop = stop;
    self->most_writing = count > 1 ? count - 1 : 1;
    self->threads = calloc(count, sizeof(*self->threads));
    self->each = calloc(count, sizeof(*self->each));
    if (!self->threads || !self->each)
        return bal_fail_memory(err, "starting workers");
    for (unsigned i = 0; !rc && i < count; i++)
        rc = start_one(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_workers_end(bal_workers *self)
{
    if (!self)
        return;
    pthread_mutex_lock(&self->lock);
    self->over = true;
    pthread_cond_broadcast(&self->more);
    pthread_mutex_unlock(&self->lock);
    for (size_t i = 0; i < self->count; i++) {
        pthread_join(self->threads[i], NULL);
        bal_work_free(self->each[i].work);
    }
    self->count = 0;
}

void bal_workers_free(bal_workers *self)
{
    if (!self)
        return;
    bal_workers_end(self);
    pthread_cond_destroy(&self->more);
    pthread_mutex_destroy(&self->lock);
    free(self->threads);
    free(self->each);
    free(self);
}
