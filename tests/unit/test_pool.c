/* The pool: every item once, the lowest failure, cancelling, nesting, two
 * callers. Run under ThreadSanitizer too. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/pool.h"
#include "support/check.h"

enum { ITEMS = 1000 };

static const unsigned job_counts[] = { 1, 2, 3, 8 };

enum { JOB_COUNTS = sizeof(job_counts) / sizeof(job_counts[0]) };

static bal_work *work_of(unsigned jobs)
{
    bal_work *work = NULL;

    CHECK_OK(bal_work_new(&work, jobs, &check_err));
    return work;
}

static int count_one(size_t i, void *ctx, bal_error *err)
{
    unsigned *counts = ctx;

    (void)err;
    counts[i]++;
    return 0;
}

static void every_item_runs_once(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        BAL_OWN(bal_work) work = work_of(job_counts[j]);
        for (size_t n = 0; n <= ITEMS; n = n * 3 + 1) {
            unsigned counts[ITEMS + 1] = { 0 };
            CHECK_OK(bal_pool_run(work, n, count_one, counts, &check_err));
            for (size_t i = 0; i <= ITEMS; i++)
                CHECK(counts[i] == (i < n));
        }
    }
}

typedef struct failing {
    size_t lowest;
    atomic_size_t started;
} failing;

/* Later items fail at once, the lowest one late. */
static int fail_from(size_t i, void *ctx, bal_error *err)
{
    failing *self = ctx;

    atomic_fetch_add(&self->started, 1);
    if (i == self->lowest)
        bal_clock_sleep(0.01);
    if (i < self->lowest)
        return 0;
    return bal_fail(err, i == self->lowest ? BAL_ECORRUPT : BAL_EIO, "item %zu",
                    i);
}

static void the_failure_of_the_lowest_index_is_told(void)
{
    static const size_t lows[] = { 0, 1, 7, 500, ITEMS - 1 };

    for (size_t j = 0; j < JOB_COUNTS; j++) {
        BAL_OWN(bal_work) work = work_of(job_counts[j]);
        for (size_t i = 0; i < sizeof(lows) / sizeof(lows[0]); i++) {
            failing ctx = { .lowest = lows[i] };
            char want[32];
            CHECK_RC(BAL_ECORRUPT,
                     bal_pool_run(work, ITEMS, fail_from, &ctx, &check_err));
            snprintf(want, sizeof(want), "item %zu", lows[i]);
            CHECK(!strcmp(check_err.text, want));
            CHECK(ctx.started <= lows[i] + 1 + job_counts[j]);
        }
        failing last = { .lowest = 3 };
        CHECK(bal_pool_run(work, ITEMS, fail_from, &last, NULL) ==
              BAL_ECORRUPT);
    }
}

static int rest(size_t i, void *ctx, bal_error *err)
{
    (void)i;
    (void)err;
    atomic_fetch_add((atomic_size_t *)ctx, 1);
    bal_clock_sleep(0.01);
    return 0;
}

typedef struct watcher {
    pthread_t thread;
    unsigned calls;
    unsigned stop_at;
    bool elsewhere;
    uint64_t done, total;
} watcher;

static int watch(void *ctx, uint64_t done, uint64_t total)
{
    watcher *self = ctx;

    self->calls++;
    self->done = done;
    self->total = total;
    if (!pthread_equal(self->thread, pthread_self()))
        self->elsewhere = true;
    return self->stop_at && self->calls >= self->stop_at;
}

static void the_watch_function_can_cancel(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        BAL_OWN(bal_work) work = work_of(job_counts[j]);
        watcher self = { .thread = pthread_self(), .stop_at = 2 };
        atomic_size_t started = 0;
        double before = bal_clock_ticks();

        bal_work_watch(work, watch, &self);
        CHECK_RC(BAL_ECANCELLED,
                 bal_pool_run(work, 100000, rest, &started, &check_err));
        CHECK(!strcmp(check_err.text, "cancelled"));
        CHECK(started < 100000 && self.calls == 2 && !self.elsewhere);
        CHECK(bal_clock_ticks() - before < 5);
        /* It is the call that was cancelled, not the pool. */
        bal_work_watch(work, NULL, NULL);
        CHECK_OK(bal_pool_run(work, 10, rest, &started, &check_err));
    }
}

static int long_item(size_t i, void *ctx, bal_error *err)
{
    (void)err;
    bal_work_advance(ctx, 10);
    bal_clock_sleep(i == 0 ? 0.01 : 0.45);
    return 0;
}

static void progress_is_polled_while_others_work(void)
{
    BAL_OWN(bal_work) work = work_of(2);
    watcher self = { .thread = pthread_self() };

    bal_work_watch(work, watch, &self);
    bal_work_expect(work, 20);
    CHECK_OK(bal_pool_run(work, 2, long_item, work, &check_err));
    CHECK(self.calls <= 6 && !self.elsewhere);
    bal_clock_sleep(0.11);
    CHECK_OK(bal_work_poll(work, &check_err));
    CHECK(self.calls && self.done == 20 && self.total == 20);
    bal_work_expect(work, 5);
    self.stop_at = 1;
    CHECK_OK(bal_work_poll(work, &check_err)); /* too early to ask again */
    bal_clock_sleep(0.11);
    CHECK_RC(BAL_ECANCELLED, bal_work_poll(work, &check_err));
    CHECK(self.done == 0 && self.total == 5);
}

typedef struct nesting {
    bal_work *work;
    unsigned inner[20][50];
    bool order[20];
    pthread_t owner[20];
} nesting;

typedef struct inner {
    nesting *all;
    size_t row;
    size_t next;
} inner;

static int inner_item(size_t i, void *ctx, bal_error *err)
{
    inner *self = ctx;

    (void)err;
    self->all->inner[self->row][i]++;
    if (i != self->next++ ||
        !pthread_equal(self->all->owner[self->row], pthread_self()))
        self->all->order[self->row] = false;
    return 0;
}

static int outer_item(size_t i, void *ctx, bal_error *err)
{
    nesting *all = ctx;
    inner self = { .all = all, .row = i };

    all->order[i] = true;
    all->owner[i] = pthread_self();
    return bal_pool_run(all->work, 50, inner_item, &self, err);
}

static void nested_calls_run_in_order_in_their_worker(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        BAL_OWN(bal_work) work = work_of(job_counts[j]);
        nesting all = { .work = work };
        CHECK_OK(bal_pool_run(work, 20, outer_item, &all, &check_err));
        for (size_t i = 0; i < 20; i++) {
            CHECK(all.order[i]);
            for (size_t k = 0; k < 50; k++)
                CHECK(all.inner[i][k] == 1);
        }
    }
}

static int nested_fail(size_t i, void *ctx, bal_error *err)
{
    failing low = { .lowest = i == 4 ? 3 : 100 };

    return bal_pool_run(ctx, 10, fail_from, &low, err);
}

static void a_nested_failure_comes_out(void)
{
    BAL_OWN(bal_work) work = work_of(8);

    CHECK_RC(BAL_ECORRUPT,
             bal_pool_run(work, 20, nested_fail, work, &check_err));
    CHECK(!strcmp(check_err.text, "item 3"));
}

static int use_scratch(size_t i, void *ctx, bal_error *err)
{
    bal_work *work = ctx;
    size_t len = 1 + i * 37 % 5000;
    uint8_t *a = bal_pool_scratch(work, 0, len);
    uint8_t *b = bal_pool_scratch(work, 1, len);

    if (!a || !b || a == b || (uintptr_t)a % 64 || (uintptr_t)b % 64)
        return bal_fail(err, BAL_EINVAL, "scratch of item %zu", i);
    memset(a, (int)(i & 0xff), len);
    memset(b, (int)(~i & 0xff), len);
    for (size_t k = 0; k < len; k++) {
        if (a[k] != (i & 0xff) || b[k] != (~i & 0xff))
            return bal_fail(err, BAL_EINVAL, "item %zu is disturbed", i);
    }
    return 0;
}

static void scratch_is_each_threads_own(void)
{
    BAL_OWN(bal_work) work = work_of(8);
    void *mine = bal_pool_scratch(work, 15, 1000);

    CHECK(mine && bal_pool_scratch(work, 15, 10) == mine);
    CHECK(!bal_pool_scratch(work, 15, SIZE_MAX));
    CHECK_OK(bal_pool_run(work, ITEMS, use_scratch, work, &check_err));
    CHECK(bal_pool_scratch(work, 14, 0) != NULL);
}

typedef struct user {
    bal_work *work;
    int rc;
} user;

static void *many_runs(void *arg)
{
    user *self = arg;

    for (size_t i = 0; i < 50 && !self->rc; i++) {
        unsigned counts[100] = { 0 };
        self->rc = bal_pool_run(self->work, 100, count_one, counts, NULL);
        for (size_t k = 0; k < 100 && !self->rc; k++)
            self->rc = counts[k] == 1 ? 0 : BAL_EIO;
        if (!self->rc)
            self->rc =
                bal_pool_run(self->work, 64, use_scratch, self->work, NULL);
    }
    return NULL;
}

static void several_threads_may_call_at_once(void)
{
    for (size_t j = 0; j < JOB_COUNTS; j++) {
        BAL_OWN(bal_work) work = work_of(job_counts[j]);
        pthread_t threads[4];
        user users[4];
        for (size_t i = 0; i < 4; i++) {
            users[i] = (user){ .work = work };
            CHECK(!pthread_create(&threads[i], NULL, many_runs, &users[i]));
        }
        for (size_t i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        for (size_t i = 0; i < 4; i++)
            CHECK(users[i].rc == 0);
    }
}

static void jobs_are_bounded(void)
{
    bal_work *work = NULL;

    CHECK_RC(BAL_EINVAL, bal_work_new(&work, 257, &check_err));
    CHECK(!work);
    CHECK_OK(bal_work_new(&work, 0, &check_err));
    CHECK(bal_work_jobs(work) >= 1 && bal_work_jobs(work) <= 256);
    bal_work_free(work);
    bal_work_free(NULL);
}

/* A thread that uses a work and ends while the work is freed: their memory is
 * freed once. */
typedef struct leaver {
    bal_work *work;
    atomic_int used;
} leaver;

/* What was asked for stays, and a pool never becomes narrower. */
static void a_pool_is_widened_where_nobody_asked_for_a_number(void)
{
    BAL_OWN(bal_work) asked = work_of(2);
    BAL_OWN(bal_work) open = work_of(0);
    unsigned usual = bal_work_jobs(open);
    unsigned counts[ITEMS] = { 0 };

    bal_work_widen(asked, 40);
    CHECK(bal_work_jobs(asked) == 2);
    bal_work_widen(open, 0);
    CHECK(bal_work_jobs(open) == usual);
    CHECK_OK(bal_pool_run(open, ITEMS, count_one, counts, &check_err));
    bal_work_widen(open, usual + 5);
    CHECK(bal_work_jobs(open) == usual + 5);
    bal_work_widen(open, 1);
    CHECK(bal_work_jobs(open) == usual + 5);
    CHECK_OK(bal_pool_run(open, ITEMS, count_one, counts, &check_err));
    for (size_t i = 0; i < ITEMS; i++)
        CHECK(counts[i] == 2);
}

static void *use_and_end(void *ctx)
{
    leaver *self = ctx;

    CHECK(bal_pool_scratch(self->work, 0, 4096));
    atomic_store(&self->used, 1);
    return NULL;
}

static void a_thread_may_end_while_its_work_is_freed(void)
{
    for (int i = 0; i < 300; i++) {
        leaver self = { .work = work_of(1 + i % 2) };
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, use_and_end, &self));
        while (!atomic_load(&self.used))
            ;
        bal_work_free(self.work);
        CHECK(!pthread_join(thread, NULL));
    }
}

/* Whoever lives on has nothing of it, and begins anew with the next one. */
static void a_work_that_is_gone_leaves_nothing_to_the_next(void)
{
    for (int i = 0; i < 300; i++) {
        BAL_OWN(bal_work) one = work_of(1);
        BAL_OWN(bal_work) other = work_of(1);
        char *a = bal_pool_scratch(one, 0, 64);
        char *b = bal_pool_scratch(other, 0, 64);
        CHECK(a && b && a != b);
        CHECK(bal_pool_scratch(one, 0, 64) == a);
    }
}

static const check_test tests[] = {
    { TEST(every_item_runs_once) },
    { TEST(the_failure_of_the_lowest_index_is_told) },
    { TEST(the_watch_function_can_cancel) },
    { TEST(progress_is_polled_while_others_work) },
    { TEST(nested_calls_run_in_order_in_their_worker) },
    { TEST(a_nested_failure_comes_out) },
    { TEST(scratch_is_each_threads_own) },
    { TEST(several_threads_may_call_at_once) },
    { TEST(jobs_are_bounded) },
    { TEST(a_pool_is_widened_where_nobody_asked_for_a_number) },
    { TEST(a_thread_may_end_while_its_work_is_freed) },
    { TEST(a_work_that_is_gone_leaves_nothing_to_the_next) },
};

CHECK_MAIN(tests)
