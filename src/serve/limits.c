#include "serve/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

typedef struct bucket {
    double left, at;
    uint64_t streams;
    bool begun;
} bucket;

struct bal_limits {
    pthread_mutex_t lock; /* guards the buckets */
    uint64_t rate, streams;
    bucket *buckets; /* by number - 1 */
    size_t count;
};

int bal_limits_new(bal_limits **out, uint64_t rate, uint64_t streams,
                   bal_error *err)
{
    bal_limits *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "making limits");
    self->rate = rate;
    self->streams = streams;
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return 0;
}

void bal_limits_free(bal_limits *self)
{
    if (!self)
        return;
    pthread_mutex_destroy(&self->lock);
    free(self->buckets);
    free(self);
}

/* NULL: no memory. */
static bucket *bucket_of(bal_limits *self, size_t number)
{
    if (number > self->count) {
        bucket *more =
            realloc(self->buckets, number * 2 * sizeof(*self->buckets));
        if (!more)
            return NULL;
        memset(more + self->count, 0,
               (number * 2 - self->count) * sizeof(*more));
        self->buckets = more;
        self->count = number * 2;
    }
    return &self->buckets[number - 1];
}

static void refill(const bal_limits *self, bucket *one, double now)
{
    double most = (double)self->rate;

    if (!one->begun)
        one->left = most;
    else if (now > one->at)
        one->left += (now - one->at) * most;
    if (one->left > most)
        one->left = most;
    one->at = now;
    one->begun = true;
}

bool bal_limits_enter(bal_limits *self, size_t number, double now)
{
    if (!number)
        return true;
    pthread_mutex_lock(&self->lock);
    bucket *one = bucket_of(self, number);
    if (one && self->rate)
        refill(self, one, now);
    bool may = one && (!self->rate || one->left >= 1) &&
               (!self->streams || one->streams < self->streams);
    if (may) {
        one->streams++;
        one->left -= self->rate ? 1 : 0;
    }
    pthread_mutex_unlock(&self->lock);
    return may;
}

void bal_limits_leave(bal_limits *self, size_t number)
{
    if (!number)
        return;
    pthread_mutex_lock(&self->lock);
    if (number <= self->count && self->buckets[number - 1].streams)
        self->buckets[number - 1].streams--;
    pthread_mutex_unlock(&self->lock);
}
