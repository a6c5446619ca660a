/* The cache of decoded blocks: what goes, what stays, who waits for whom. */
#include <pthread.h>
#include <string.h>

#include "blocks/cache.h"
#include "core/clock.h"
#include "support/check.h"

enum { CACHE = 1 << 20 };

typedef struct caching {
    bal_cache *cache;
    bal_cache_key key;
    pthread_mutex_t lock; /* guards fills */
    size_t fills;
    int rc;
    double pause;
} caching;

static int fill(void *ctx, uint8_t *to, size_t size, bal_error *err)
{
    caching *self = ctx;

    pthread_mutex_lock(&self->lock);
    self->fills++;
    pthread_mutex_unlock(&self->lock);
    bal_clock_sleep(self->pause);
    memset(to, 7, size);
    if (self->rc && err)
        snprintf(err->text, sizeof(err->text), "as told");
    return self->rc;
}

static const bal_cached *take(caching *self, uint8_t which, size_t size)
{
    const bal_cached *cached = NULL;

    self->key.id.bytes[0] = which;
    CHECK_OK(bal_cache_take(self->cache, &cached, &self->key, size, fill, self,
                            &check_err));
    return cached;
}

static void the_least_recently_used_goes_first(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 3 * 6000, &check_err));
    for (uint8_t i = 0; i < 3; i++)
        bal_cache_give(self.cache, take(&self, i, 4000));
    CHECK(self.fills == 3);
    bal_cache_give(self.cache, take(&self, 0, 4000));
    CHECK(self.fills == 3);
    bal_cache_give(self.cache, take(&self, 3, 4000));
    bal_cache_give(self.cache, take(&self, 0, 4000));
    CHECK(self.fills == 4);
    bal_cache_give(self.cache, take(&self, 1, 4000));
    CHECK(self.fills == 5);
    CHECK(bal_cache_held(self.cache) <= 3 * 6000);
    bal_cache_free(self.cache);
}

static void what_is_in_use_stays(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
    const bal_cached *first = take(&self, 0, 4000);
    const bal_cached *second = take(&self, 1, 4000);
    CHECK(bal_cache_held(self.cache) >= 8000);
    CHECK(first->data[3999] == 7 && second->data[3999] == 7);
    bal_cache_give(self.cache, second);
    CHECK(bal_cache_held(self.cache) <= 6000);
    bal_cache_forget(self.cache, &self.key);
    self.key.id.bytes[0] = 0;
    bal_cache_forget(self.cache, &self.key);
    CHECK(first->data[0] == 7);
    CHECK(bal_cache_held(self.cache) > 0);
    bal_cache_give(self.cache, first);
    CHECK(bal_cache_held(self.cache) == 0);
    bal_cache_free(self.cache);
}

static void a_cache_of_nothing_keeps_nothing(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 0, &check_err));
    bal_cache_give(self.cache, take(&self, 0, 4000));
    CHECK(bal_cache_held(self.cache) == 0);
    bal_cache_free(self.cache);
}

static void *take_one(void *ctx)
{
    caching *self = ctx;
    const bal_cached *cached = NULL;
    bal_error err = { 0 };

    int rc = bal_cache_take(self->cache, &cached, &self->key, 4000, fill, self,
                            &err);
    if (!rc)
        bal_cache_give(self->cache, cached);
    return rc == self->rc && (!rc || !strcmp(err.text, "as told")) ? ctx : NULL;
}

static void take_by_threads(caching *self)
{
    pthread_t threads[6];
    void *right = NULL;

    for (size_t i = 0; i < 6; i++)
        CHECK(!pthread_create(&threads[i], NULL, take_one, self));
    for (size_t i = 0; i < 6; i++) {
        CHECK(!pthread_join(threads[i], &right));
        CHECK(right == self);
    }
}

static void one_thread_fills_and_others_wait(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER, .pause = 0.2 };

    CHECK_OK(bal_cache_new(&self.cache, CACHE, &check_err));
    take_by_threads(&self);
    CHECK(self.fills == 1);
    bal_cache_free(self.cache);
}

static void a_failure_is_shared_and_not_kept(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER,
                     .pause = 0.2,
                     .rc = BAL_EIO };

    CHECK_OK(bal_cache_new(&self.cache, CACHE, &check_err));
    take_by_threads(&self);
    CHECK(self.fills >= 1 && self.fills <= 6);
    CHECK(bal_cache_held(self.cache) == 0);
    self.rc = 0;
    bal_cache_give(self.cache, take(&self, 0, 4000));
    CHECK(bal_cache_held(self.cache) > 0);
    bal_cache_free(self.cache);
}

static const check_test tests[] = {
    { TEST(the_least_recently_used_goes_first) },
    { TEST(what_is_in_use_stays) },
    { TEST(a_cache_of_nothing_keeps_nothing) },
    { TEST(one_thread_fills_and_others_wait) },
    { TEST(a_failure_is_shared_and_not_kept) },
};

CHECK_MAIN(tests)
