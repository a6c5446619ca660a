/* Replies that are ready, and the limits of a token. */
#include <stdlib.h>
#include <string.h>

#include "serve/limits.h"
#include "serve/reply_cache.h"
#include "support/check.h"

static size_t alive;

static void gone(bal_ready *self)
{
    alive--;
    free(self);
}

static bal_ready *ready(uint64_t length)
{
    bal_ready *self = calloc(1, sizeof(*self));

    CHECK(self != NULL);
    atomic_init(&self->references, 1);
    self->length = length;
    self->free = gone;
    alive++;
    return self;
}

static bool has(bal_reply_cache *cache, const char *key, uint64_t changes)
{
    BAL_OWN(bal_ready)
    one = bal_reply_cache_find(cache, key, strlen(key), changes);
    return one != NULL;
}

static void put(bal_reply_cache *cache, const char *key, uint64_t changes,
                uint64_t length)
{
    BAL_OWN(bal_ready) one = ready(length);

    bal_reply_cache_put(cache, key, strlen(key), changes, one);
}

static void a_reply_is_good_until_the_store_changes(void)
{
    bal_reply_cache *cache = NULL;

    CHECK_OK(bal_reply_cache_new(&cache, 64, 1 << 20, &check_err));
    put(cache, "a", 7, 10);
    put(cache, "b", 7, 10);
    CHECK(has(cache, "a", 7) && has(cache, "b", 7) && !has(cache, "c", 7));
    CHECK(!has(cache, "a", 8));
    CHECK(!has(cache, "a", 7));
    put(cache, "a", 8, 10);
    CHECK(has(cache, "a", 8) && alive == 2);
    bal_reply_cache_free(cache);
    CHECK(alive == 0);
}

static void who_has_a_reply_keeps_it(void)
{
    bal_reply_cache *cache = NULL;

    CHECK_OK(bal_reply_cache_new(&cache, 64, 1 << 20, &check_err));
    put(cache, "a", 1, 10);
    bal_ready *held = bal_reply_cache_find(cache, "a", 1, 1);
    bal_reply_cache_free(cache);
    CHECK(alive == 1 && held->length == 10);
    bal_ready_free(held);
    CHECK(alive == 0);
}

static void there_are_never_more_than_the_limits(void)
{
    bal_reply_cache *cache = NULL;
    char key[32];

    CHECK_OK(bal_reply_cache_new(&cache, 64, 1 << 20, &check_err));
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        put(cache, key, 1, 100);
        CHECK(has(cache, key, 1));
        CHECK(alive <= 64);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        put(cache, key, 1, 100000);
    }
    CHECK(alive <= 10);
    put(cache, "large", 1, 1 << 19);
    CHECK(!has(cache, "large", 1));
    bal_reply_cache_free(cache);
    CHECK(alive == 0);
}

static void a_token_has_a_rate_of_its_own(void)
{
    bal_limits *limits = NULL;

    CHECK_OK(bal_limits_new(&limits, 2, 0, &check_err));
    CHECK(bal_limits_enter(limits, 1, 100));
    CHECK(bal_limits_enter(limits, 1, 100));
    CHECK(!bal_limits_enter(limits, 1, 100));
    CHECK(bal_limits_enter(limits, 2, 100));
    CHECK(!bal_limits_enter(limits, 1, 100.4));
    CHECK(bal_limits_enter(limits, 1, 100.5));
    CHECK(!bal_limits_enter(limits, 1, 100.5));
    /* What was not used is not saved up. */
    CHECK(bal_limits_enter(limits, 1, 500));
    CHECK(bal_limits_enter(limits, 1, 500));
    CHECK(!bal_limits_enter(limits, 1, 500));
    for (int i = 0; i < 100; i++)
        CHECK(bal_limits_enter(limits, 0, 100));
    bal_limits_free(limits);
}

static void a_token_has_so_many_requests_at_once(void)
{
    bal_limits *limits = NULL;

    CHECK_OK(bal_limits_new(&limits, 0, 2, &check_err));
    CHECK(bal_limits_enter(limits, 9, 1));
    CHECK(bal_limits_enter(limits, 9, 1));
    CHECK(!bal_limits_enter(limits, 9, 1));
    CHECK(bal_limits_enter(limits, 1, 1));
    bal_limits_leave(limits, 9);
    CHECK(bal_limits_enter(limits, 9, 1));
    CHECK(!bal_limits_enter(limits, 9, 1));
    bal_limits_free(limits);
}

static const check_test tests[] = {
    { TEST(a_reply_is_good_until_the_store_changes) },
    { TEST(who_has_a_reply_keeps_it) },
    { TEST(there_are_never_more_than_the_limits) },
    { TEST(a_token_has_a_rate_of_its_own) },
    { TEST(a_token_has_so_many_requests_at_once) },
};

CHECK_MAIN(tests)
