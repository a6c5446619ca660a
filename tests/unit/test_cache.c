/* The cache of decoded blocks: what goes, what stays, who waits for whom. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "blocks/cache.h"
#include "core/clock.h"
#include "core/hash.h"
#include "support/check.h"

enum { CACHE = 1 << 20 };

typedef struct caching {
    bal_cache *cache;
    bal_cache_key key;
    pthread_mutex_t lock; /* guards fills */
    size_t fills;
    uint8_t which; /* what the bytes of the block are made of */
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
    memset(to, 7 + self->which, size);
    if (self->rc && err)
        snprintf(err->text, sizeof(err->text), "as told");
    return self->rc;
}

/* The key is the hash of the bytes. */
static void name(caching *self, uint8_t which, size_t size)
{
    uint8_t bytes[5000];

    CHECK(size <= sizeof(bytes));
    memset(bytes, 7 + which, size);
    bal_hash_of(&self->key.id, bytes, size);
    self->which = which;
}

static const bal_cached *take(caching *self, uint8_t which, size_t size)
{
    const bal_cached *cached = NULL;

    name(self, which, size);
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
    CHECK(first->data[3999] == 7 && second->data[3999] == 8);
    bal_cache_give(self.cache, second);
    CHECK(bal_cache_held(self.cache) <= 6000);
    bal_cache_forget(self.cache, &self.key);
    name(&self, 0, 4000);
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

/* Three blocks come and go while there is memory for one. */
static void come_and_go(caching *self)
{
    for (uint8_t i = 0; i < 3; i++) {
        const bal_cached *cached = take(self, i, 4000);

        CHECK(cached->data[0] == 7 + i && cached->data[3999] == 7 + i);
        bal_cache_give(self->cache, cached);
    }
}

static void what_memory_has_no_room_for_comes_back_from_disk(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
    bal_cache_spill(self.cache, "/tmp", 4000, 3 * 4000);
    come_and_go(&self);
    come_and_go(&self);
    CHECK(self.fills == 3);
    bal_cache_forget(self.cache, &self.key);
    bal_cache_give(self.cache, take(&self, 2, 4000));
    CHECK(self.fills == 4);
    bal_cache_free(self.cache);
}

static void what_was_filled_first_leaves_the_disk_first(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
    bal_cache_spill(self.cache, "/tmp", 4000, 2 * 4000);
    come_and_go(&self);
    bal_cache_give(self.cache, take(&self, 1, 4000));
    CHECK(self.fills == 3);
    bal_cache_give(self.cache, take(&self, 0, 4000));
    CHECK(self.fills == 4);
    bal_cache_give(self.cache, take(&self, 5, 5000)); /* too large for it */
    bal_cache_give(self.cache, take(&self, 0, 4000));
    bal_cache_give(self.cache, take(&self, 5, 5000));
    CHECK(self.fills == 6);
    bal_cache_free(self.cache);
}

static void what_was_passed_makes_room_for_the_others(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 3 * 6000, &check_err));
    bal_cache_spill(self.cache, "/tmp", 4000, 3 * 4000);
    come_and_go(&self);
    bal_cache_pass(self.cache, &self.key); /* 2, in memory and on disk */
    for (uint8_t i = 3; i < 6; i++) {
        bal_cache_give(self.cache, take(&self, i, 4000));
        bal_cache_pass(self.cache, &self.key);
    }
    CHECK(self.fills == 6);
    come_and_go(&self);
    CHECK(self.fills == 7);
    bal_cache_pass(self.cache, &self.key);
    bal_cache_pass(self.cache, &self.key); /* it has no slot now */
    name(&self, 99, 4000);
    bal_cache_pass(self.cache, &self.key); /* nor is it there */
    bal_cache_free(self.cache);
}

/* Zeros over what files without a name have: the spill's. */
static void damage_what_has_no_name(void)
{
    char path[64];
    char to[256];
    uint8_t zeros[3 * 4000] = { 0 };
    size_t found = 0;

    for (int fd = 3; fd < 64; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, to, sizeof(to) - 1);
        to[len > 0 ? len : 0] = '\0';
        if (strncmp(to, "/tmp/#", 6) != 0)
            continue;
        CHECK(pwrite(fd, zeros, sizeof(zeros), 0) == sizeof(zeros));
        found++;
    }
    CHECK(found == 1);
}

static void what_was_damaged_on_disk_is_made_anew(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
    bal_cache_spill(self.cache, "/tmp", 4000, 3 * 4000);
    come_and_go(&self);
    damage_what_has_no_name();
    come_and_go(&self);
    CHECK(self.fills == 6);
    come_and_go(&self);
    CHECK(self.fills == 6);
    bal_cache_free(self.cache);
}

static void without_a_disk_it_is_as_if_none_had_been_asked_for(void)
{
    static const struct {
        const char *folder;
        size_t most;
    } rows[] = { { "/nowhere/at/all", CACHE }, { "/tmp", 3999 } };

    for (size_t i = 0; i < 2; i++) {
        caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };

        CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
        bal_cache_spill(self.cache, rows[i].folder, 4000, rows[i].most);
        come_and_go(&self);
        come_and_go(&self);
        CHECK(self.fills == 6);
        bal_cache_free(self.cache);
    }
}

static void *take_many(void *ctx)
{
    const caching *shared = ctx;
    caching self = *shared; /* keys of its own */
    const bal_cached *cached = NULL;
    bal_error err = { 0 };
    bool right = true;

    for (size_t turn = 0; turn < 2000; turn++) {
        uint8_t which = (uint8_t)(turn * 7 % 11);

        name(&self, which, 4000);
        if (bal_cache_take(self.cache, &cached, &self.key, 4000, fill, &self,
                           &err))
            return NULL;
        right &=
            cached->data[0] == 7 + which && cached->data[3999] == 7 + which;
        bal_cache_give(self.cache, cached);
        if (turn % 100 == 99)
            bal_cache_forget(self.cache, &self.key);
    }
    return right ? ctx : NULL;
}

static void threads_that_come_and_go_see_what_they_asked_for(void)
{
    caching self = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[4];
    void *right = NULL;

    CHECK_OK(bal_cache_new(&self.cache, 6000, &check_err));
    bal_cache_spill(self.cache, "/tmp", 4000, 8 * 4000);
    for (size_t i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, take_many, &self));
    for (size_t i = 0; i < 4; i++) {
        CHECK(!pthread_join(threads[i], &right));
        CHECK(right == &self);
    }
    bal_cache_free(self.cache);
}

static const check_test tests[] = {
    { TEST(the_least_recently_used_goes_first) },
    { TEST(what_is_in_use_stays) },
    { TEST(a_cache_of_nothing_keeps_nothing) },
    { TEST(one_thread_fills_and_others_wait) },
    { TEST(a_failure_is_shared_and_not_kept) },
    { TEST(what_memory_has_no_room_for_comes_back_from_disk) },
    { TEST(what_was_filled_first_leaves_the_disk_first) },
    { TEST(what_was_passed_makes_room_for_the_others) },
    { TEST(what_was_damaged_on_disk_is_made_anew) },
    { TEST(without_a_disk_it_is_as_if_none_had_been_asked_for) },
    { TEST(threads_that_come_and_go_see_what_they_asked_for) },
};

CHECK_MAIN(tests)
