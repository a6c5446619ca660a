/* One pool with one verb. A run is a count of items on its caller's stack, in
 * a list that the pool's threads take items from; its caller takes part, so a
 * pool of one job has no thread at all, and callers at once share the threads.
 * Items start in rising order and every item that started is waited for: so
 * whatever fails, the failure of the lowest index is the same on every machine.
 *
 * A work has one lock. Nothing is called while it is held. */
#include "core/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/arith.h"
#include "core/buf.h"
#include "core/clock.h"
#include "core/cores.h"
#include "core/error.h"
#include "core/pool_member.h"

static const double watch_interval = 0.1; /* seconds */

/* Guarded by the work's lock; n, fn and ctx do not change. */
typedef struct run {
    struct run *next;
    size_t n;
    bal_item_fn *fn;
    void *ctx;
    size_t at;             /* the next item to start */
    size_t active;         /* items that have started and not ended */
    size_t failed;         /* the lowest item that failed, n: none */
    int rc;                /* of that item */
    bal_error err;         /* of that item */
    atomic_bool cancelled; /* also read without the lock, by nested runs */
} run;

struct bal_work {
    _Atomic unsigned jobs;
    bool asked;             /* for so many, by who made it */
    _Atomic uint64_t done;  /* progress */
    _Atomic uint64_t total; /* 0: not known */
    pthread_mutex_t lock;   /* guards all that follows */
    pthread_cond_t wake;    /* for threads: a run came, or the end */
    pthread_cond_t ended;   /* for callers: the last item of a run ended */
    run *runs;
    bool stop;
    unsigned threads;
    pthread_t thread[BAL_JOBS_MAX];
    bal_watch_fn *watch;
    void *watch_ctx;
    double watched;      /* when watch was last called, in ticks */
    bal_members members; /* what threads have of it */
};

void *bal_pool_scratch(bal_work *work, unsigned slot, size_t len)
{
    bal_member *self = bal_member_of(work, &work->members);

    assert(slot < BAL_SCRATCH_SLOTS);
    if (!self)
        return NULL;
    if (self->scratch[slot] && self->room[slot] >= len)
        return self->scratch[slot];
    /* Freed first: what was in it is not promised to stay, and two at once
     * would be the peak of our memory. */
    free(self->scratch[slot]);
    self->scratch[slot] = bal_pages(len);
    self->room[slot] = self->scratch[slot] ? len : 0;
    return self->scratch[slot];
}

/* ---- progress ---------------------------------------------------------- */

void bal_work_expect(bal_work *work, uint64_t total)
{
    atomic_store(&work->done, 0);
    atomic_store(&work->total, total);
}

void bal_work_advance(bal_work *work, uint64_t done)
{
    atomic_fetch_add(&work->done, done);
}

void bal_work_watch(bal_work *self, bal_watch_fn *fn, void *ctx)
{
    pthread_mutex_lock(&self->lock);
    self->watch = fn;
    self->watch_ctx = ctx;
    pthread_mutex_unlock(&self->lock);
}

/* True if the watch function was asked and said stop. */
static bool says_stop(bal_work *work)
{
    double now = bal_clock_ticks();

    pthread_mutex_lock(&work->lock);
    bool due = work->watch && now - work->watched >= watch_interval;
    bal_watch_fn *watch = work->watch;
    void *ctx = work->watch_ctx;
    if (due)
        work->watched = now;
    pthread_mutex_unlock(&work->lock);
    return due &&
           watch(ctx, atomic_load(&work->done), atomic_load(&work->total)) != 0;
}

static int cancelled(bal_error *err)
{
    return bal_fail(err, BAL_ECANCELLED, "cancelled");
}

int bal_work_poll(bal_work *work, bal_error *err)
{
    return says_stop(work) ? cancelled(err) : 0;
}

/* ---- runs -------------------------------------------------------------- */

static bool has_items(const run *self)
{
    return self->at < self->n && self->failed == self->n &&
           !atomic_load(&self->cancelled);
}

/* Start the run's next item and note how it ends. Called with the lock, which
 * is let go of meanwhile; a run whose last item ended may be gone after it. */
static void run_item_locked(run *self, bal_member *thread)
{
    bal_work *work = thread->work;
    bal_error err = { 0 };
    size_t i = self->at++;

    self->active++;
    pthread_mutex_unlock(&work->lock);
    thread->inside = self;
    int rc = self->fn(i, self->ctx, &err);
    thread->inside = NULL;
    pthread_mutex_lock(&work->lock);
    if (rc && i < self->failed) {
        self->failed = i;
        self->rc = rc;
        self->err = err;
    }
    self->active--;
    if (!self->active)
        pthread_cond_broadcast(&work->ended);
}

static run *next_run_locked(bal_work *work)
{
    run *next = work->runs;

    while (next && !has_items(next))
        next = next->next;
    return next;
}

static void *thread_main(void *arg)
{
    bal_work *work = arg;
    bal_member *self = bal_member_of(work, &work->members);

    /* Without memory for its member the thread is no use; callers take their
     * items themselves. */
    if (!self)
        return NULL;
    pthread_mutex_lock(&work->lock);
    while (!work->stop) {
        run *next = next_run_locked(work);
        if (next)
            run_item_locked(next, self);
        else
            pthread_cond_wait(&work->wake, &work->lock);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

/* Threads as they are first of use: a command that only reads a row has none.
 * Too few, or none, is no failure. Signals are for the program's own thread. */
static void start_threads_locked(bal_work *work, size_t items)
{
    size_t want = bal_min(work->jobs - 1, items - 1);
    sigset_t all;
    sigset_t before;

    if (work->threads >= want)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (work->threads < want && !pthread_create(&work->thread[work->threads],
                                                   NULL, thread_main, work))
        work->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Nothing for this thread to do: wait for the run's last item, but no longer
 * than until the watch function is to be asked again. */
static void wait_locked(bal_work *work)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(watch_interval * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&work->ended, &work->lock, &until);
}

static void link_locked(bal_work *work, run *self)
{
    run **end = &work->runs;

    while (*end)
        end = &(*end)->next;
    *end = self;
}

static void unlink_locked(bal_work *work, const run *self)
{
    run **link = &work->runs;

    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
}

/* The caller's part: items and, ten times a second, the watch function. */
static void take_part_locked(run *self, bal_member *thread)
{
    bal_work *work = thread->work;

    while (has_items(self) || self->active) {
        if (has_items(self))
            run_item_locked(self, thread);
        else
            wait_locked(work);
        pthread_mutex_unlock(&work->lock);
        if (says_stop(work))
            atomic_store(&self->cancelled, true);
        pthread_mutex_lock(&work->lock);
    }
}

static int result_of(const run *self, bal_error *err)
{
    if (self->failed < self->n) {
        if (err)
            *err = self->err;
        return self->rc;
    }
    return atomic_load(&self->cancelled) ? cancelled(err) : 0;
}

static int run_shared(bal_work *work, bal_member *thread, run *self,
                      bal_error *err)
{
    pthread_mutex_lock(&work->lock);
    start_threads_locked(work, self->n);
    link_locked(work, self);
    pthread_cond_broadcast(&work->wake);
    take_part_locked(self, thread);
    unlink_locked(work, self);
    pthread_mutex_unlock(&work->lock);
    return result_of(self, err);
}

/* Within an item of another run: one after the other, and the watch function
 * is left to the thread that called into the library. */
static int run_nested(const run *outer, run *self, bal_error *err)
{
    for (size_t i = 0; i < self->n; i++) {
        if (atomic_load(&outer->cancelled))
            return cancelled(err);
        int rc = self->fn(i, self->ctx, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* With one job, or one item (which may then run the pool itself). */
static int run_alone(bal_work *work, run *self, bal_error *err)
{
    for (size_t i = 0; i < self->n; i++) {
        int rc = bal_work_poll(work, err);
        if (rc)
            return rc;
        rc = self->fn(i, self->ctx, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_pool_run(bal_work *work, size_t n, bal_item_fn *fn, void *ctx,
                 bal_error *err)
{
    run self = { .n = n, .fn = fn, .ctx = ctx, .failed = n };
    bal_member *thread = bal_member_of(work, &work->members);

    if (!thread)
        return bal_fail_memory(err, "starting work");
    if (thread->inside)
        return run_nested(thread->inside, &self, err);
    if (work->jobs == 1 || n <= 1)
        return run_alone(work, &self, err);
    return run_shared(work, thread, &self, err);
}

/* ---- the pool ---------------------------------------------------------- */

/* Condition variables that wait by the clock that only goes forward. */
static int init_conditions(bal_work *work)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);

    if (error)
        return error;
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!error)
        error = pthread_cond_init(&work->wake, &attributes);
    if (!error)
        error = pthread_cond_init(&work->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    return error;
}

int bal_work_new(bal_work **out, unsigned jobs, bal_error *err)
{
    if (jobs > BAL_JOBS_MAX)
        return bal_fail(err, BAL_EINVAL, "%u jobs are more than %d", jobs,
                        BAL_JOBS_MAX);
    bal_work *work = calloc(1, sizeof(*work));
    if (!work)
        return bal_fail_memory(err, "starting work");
    atomic_init(&work->jobs, jobs ? jobs : bal_cores_usable());
    work->asked = jobs != 0;
    work->watched = bal_clock_ticks();
    int error = bal_members_ready();
    if (!error)
        error = pthread_mutex_init(&work->lock, NULL);
    if (!error)
        error = init_conditions(work);
    if (error) {
        free(work);
        errno = error;
        return bal_fail_errno(err, "starting work");
    }
    *out = work;
    return 0;
}

unsigned bal_work_jobs(const bal_work *self)
{
    return atomic_load(&self->jobs);
}

void bal_work_widen(bal_work *work, unsigned jobs)
{
    pthread_mutex_lock(&work->lock);
    if (!work->asked && jobs > work->jobs && jobs <= BAL_JOBS_MAX)
        atomic_store(&work->jobs, jobs);
    pthread_mutex_unlock(&work->lock);
}

void bal_work_free(bal_work *self)
{
    if (!self)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    pthread_cond_broadcast(&self->wake);
    pthread_mutex_unlock(&self->lock);
    for (unsigned i = 0; i < self->threads; i++)
        pthread_join(self->thread[i], NULL);
    bal_members_end(&self->members);
    pthread_cond_destroy(&self->ended);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    free(self);
}
