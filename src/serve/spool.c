/* Two kinds of locks: the spool's guards the list and what it sums up to, each
 * spooled file's guards how far it is and who waits. The spool's is taken
 * first. What leaves the list lives on while somebody has a reference; its
 * bytes go with the last one, since the file has no name. */
#include "serve/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/str.h"

enum { PIECE = 1 << 20 };

typedef struct waiter {
    struct waiter *next;
    bal_waker waker;
} waiter;

struct bal_spooled {
    atomic_uint references;
    int fd;
    uint64_t size;
    char *tenant;
    bal_id commit;
    bal_spool *home;
    pthread_mutex_t lock; /* guards what follows */
    uint64_t written;
    bal_error failed; /* code 0: it did not */
    waiter *waiters;
    /* The spool's: */
    bal_spooled *newer, *older;
    bool listed;
};

struct bal_spool {
    pthread_mutex_t lock;
    char *dir;
    uint64_t limit, bytes;
    bal_spooled *newest, *oldest;
};

/* ---- one file ----------------------------------------------------------- */

bal_spooled *bal_spooled_ref(bal_spooled *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

void bal_spooled_free(bal_spooled *self)
{
    if (!self || atomic_fetch_sub(&self->references, 1) > 1)
        return;
    if (self->fd >= 0)
        close(self->fd);
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->tenant);
    free(self);
}

static waiter *take_waiters(bal_spooled *self)
{
    return BAL_TAKE(self->waiters);
}

/* Without the lock: who is woken may read at once. */
static void wake_all(waiter *first)
{
    while (first) {
        waiter *next = first->next;
        first->waker.wake(first->waker.ctx);
        free(first);
        first = next;
    }
}

static bool is_complete(bal_spooled *self)
{
    pthread_mutex_lock(&self->lock);
    bool complete = self->written == self->size && !self->failed.code;
    pthread_mutex_unlock(&self->lock);
    return complete;
}

static void tell_failed(bal_spooled *self, const bal_error *why)
{
    pthread_mutex_lock(&self->lock);
    if (!self->failed.code)
        self->failed = *why;
    waiter *waiting = take_waiters(self);
    pthread_mutex_unlock(&self->lock);
    wake_all(waiting);
}

static void tell_written(bal_spooled *self, uint64_t written)
{
    pthread_mutex_lock(&self->lock);
    self->written = written;
    waiter *waiting = take_waiters(self);
    pthread_mutex_unlock(&self->lock);
    wake_all(waiting);
}

uint64_t bal_spooled_size(const bal_spooled *self)
{
    return self->size;
}

int bal_spooled_fd(const bal_spooled *self)
{
    return is_complete((bal_spooled *)self) ? self->fd : -1;
}

static int wait_locked(bal_spooled *self, const bal_waker *waker,
                       bal_error *err)
{
    waiter *one = malloc(sizeof(*one));

    if (!one)
        return bal_fail_memory(err, "waiting for a file");
    *one = (waiter){ self->waiters, *waker };
    self->waiters = one;
    return 0;
}

/* How much there is from offset on; fails where it failed. */
static int there_is(bal_spooled *self, uint64_t offset, uint64_t *there,
                    const bal_waker *waker, bal_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&self->lock);
    *there = self->written > offset ? self->written - offset : 0;
    if (self->failed.code) {
        rc = bal_fail(err, self->failed.code, "%s", self->failed.text);
    } else if (!*there && offset < self->size && waker) {
        rc = wait_locked(self, waker, err);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int bal_spooled_read(bal_spooled *self, uint64_t offset, void *to, size_t len,
                     size_t *got, const bal_waker *waker, bal_error *err)
{
    uint64_t there = 0;

    *got = 0;
    int rc = there_is(self, offset, &there, waker, err);
    if (rc || !there || !len)
        return rc;
    ssize_t n =
        pread(self->fd, to, there < len ? (size_t)there : len, (off_t)offset);
    if (n < 0)
        return bal_fail_errno(err, "reading a spooled file");
    if (!n)
        return bal_fail(err, BAL_ENOTFOUND, "the spooled file is gone");
    *got = (size_t)n;
    return 0;
}

/* ---- the list ----------------------------------------------------------- */

static void unlink_locked(bal_spool *self, bal_spooled *one)
{
    *(one->newer ? &one->newer->older : &self->newest) = one->older;
    *(one->older ? &one->older->newer : &self->oldest) = one->newer;
    one->newer = NULL;
    one->older = NULL;
    one->listed = false;
    self->bytes -= one->size;
}

static void link_locked(bal_spool *self, bal_spooled *one)
{
    one->older = self->newest;
    one->newer = NULL;
    *(self->newest ? &self->newest->newer : &self->oldest) = one;
    self->newest = one;
    one->listed = true;
    self->bytes += one->size;
}

static bal_spooled *find_locked(bal_spool *self, const char *tenant,
                                const bal_id *commit)
{
    bal_spooled *one = self->newest;

    while (one && (!bal_id_equal(&one->commit, commit) ||
                   strcmp(one->tenant, tenant) != 0))
        one = one->older;
    if (!one)
        return NULL;
    unlink_locked(self, one);
    link_locked(self, one);
    return bal_spooled_ref(one);
}

/* The oldest that are complete go until there is room for more bytes. */
static void make_room_locked(bal_spool *self, uint64_t more)
{
    bal_spooled *one = self->oldest;

    while (one && self->bytes > 0 &&
           (more > self->limit || self->bytes > self->limit - more)) {
        bal_spooled *next = one->newer;
        if (is_complete(one)) {
            unlink_locked(self, one);
            bal_spooled_free(one);
        }
        one = next;
    }
}

int bal_spool_new(bal_spool **out, const char *dir, uint64_t limit,
                  bal_error *err)
{
    bal_spool *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "making a spool");
    self->dir = bal_str_copy(dir);
    if (!self->dir) {
        free(self);
        return bal_fail_memory(err, "making a spool");
    }
    self->limit = limit;
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return 0;
}

void bal_spool_free(bal_spool *self)
{
    if (!self)
        return;
    while (self->newest) {
        bal_spooled *one = self->newest;
        unlink_locked(self, one);
        bal_spooled_free(one);
    }
    pthread_mutex_destroy(&self->lock);
    bal_str_free(self->dir);
    free(self);
}

uint64_t bal_spool_bytes(bal_spool *self)
{
    pthread_mutex_lock(&self->lock);
    uint64_t bytes = self->bytes;
    pthread_mutex_unlock(&self->lock);
    return bytes;
}

bal_spooled *bal_spool_find(bal_spool *self, const char *tenant,
                            const bal_id *commit)
{
    pthread_mutex_lock(&self->lock);
    bal_spooled *one = find_locked(self, tenant, commit);
    pthread_mutex_unlock(&self->lock);
    return one;
}

/* ---- making and filling ------------------------------------------------- */

/* A file without a name; -1 with errno. */
static int open_nameless(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;

    char *path = bal_path_join(dir, "spool-XXXXXX");
    if (!path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    bal_str_free(path);
    return fd;
}

/* Room on the disk before anybody is promised a length. */
static int set_aside(int fd, uint64_t size, bal_error *err)
{
    if (size > INT64_MAX)
        return bal_fail(err, BAL_EINVAL, "a file of that size cannot be");
    int failed = size ? posix_fallocate(fd, 0, (off_t)size) : 0;
    if (!failed || failed == EOPNOTSUPP || failed == EINVAL)
        return 0;
    errno = failed;
    return bal_fail_errno(err, "making room for a file of the spool");
}

static int spooled_new(bal_spooled **out, bal_spool *spool, const char *tenant,
                       const bal_id *commit, uint64_t size, bal_error *err)
{
    BAL_OWN(bal_spooled) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "making a file of the spool");
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    self->size = size;
    self->home = spool;
    self->commit = *commit;
    self->tenant = bal_str_copy(tenant);
    self->fd = open_nameless(spool->dir);
    if (!self->tenant)
        return bal_fail_memory(err, "making a file of the spool");
    if (self->fd < 0)
        return bal_fail_errno(err, "making a file in '%s'", spool->dir);
    int rc = set_aside(self->fd, size, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

int bal_spool_make(bal_spooled **out, bool *mine, bal_spool *self,
                   const char *tenant, const bal_id *commit, uint64_t size,
                   bal_error *err)
{
    BAL_OWN(bal_spooled) fresh = NULL;

    *mine = false;
    *out = bal_spool_find(self, tenant, commit);
    if (*out)
        return 0;
    pthread_mutex_lock(&self->lock);
    make_room_locked(self, size);
    pthread_mutex_unlock(&self->lock);
    int rc = spooled_new(&fresh, self, tenant, commit, size, err);
    if (rc)
        return rc;

    pthread_mutex_lock(&self->lock);
    *out = find_locked(self, tenant, commit);
    *mine = !*out;
    if (*mine) {
        make_room_locked(self, size);
        link_locked(self, fresh);
        *out = bal_spooled_ref(fresh);
        fresh = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    return 0;
}

static bool unlist(bal_spool *self, bal_spooled *one)
{
    pthread_mutex_lock(&self->lock);
    bool was = one->listed;
    if (was)
        unlink_locked(self, one);
    pthread_mutex_unlock(&self->lock);
    return was;
}

void bal_spool_drop(bal_spool *self, bal_spooled *gone)
{
    bal_error why = { 0 };

    (void)bal_fail(&why, BAL_ENOTFOUND, "not found");
    bool was = unlist(self, gone);
    tell_failed(gone, &why);
    /* Not even who has it open reads on. */
    if (ftruncate(gone->fd, 0))
        bal_warn("serve", "truncating-spooled=failed");
    if (was)
        bal_spooled_free(gone);
}

static uint64_t written_of(bal_spooled *self)
{
    pthread_mutex_lock(&self->lock);
    uint64_t written = self->written;
    pthread_mutex_unlock(&self->lock);
    return written;
}

/* All that can be found, a reference each; NULL: nothing, or no memory. */
static bal_spooled **list_all(bal_spool *self, size_t *count)
{
    bal_spooled **all = NULL;
    size_t many = 0;

    *count = 0;
    pthread_mutex_lock(&self->lock);
    for (bal_spooled *one = self->newest; one; one = one->older)
        many++;
    if (many)
        all = calloc(many, sizeof(bal_spooled *));
    for (bal_spooled *one = self->newest; all && one; one = one->older)
        all[(*count)++] = bal_spooled_ref(one);
    pthread_mutex_unlock(&self->lock);
    return all;
}

void bal_spool_sift(bal_spool *self, bal_spool_stays_fn *stays, void *ctx)
{
    size_t count;
    bal_spooled **all = list_all(self, &count);

    for (size_t i = 0; i < count; i++) {
        if (!stays(ctx, all[i]->tenant, &all[i]->commit))
            bal_spool_drop(self, all[i]);
        bal_spooled_free(all[i]);
    }
    free(all);
}

static int feed_piece(bal_spooled *self, bal_spool_read_fn *read, void *ctx,
                      void *memory, uint64_t at, bal_error *err)
{
    uint64_t left = self->size - at;
    size_t len = left < PIECE ? (size_t)left : PIECE;

    int rc = read(ctx, at, memory, len, err);
    if (!rc)
        rc = bal_write_at(self->fd, at, memory, len, NULL, err);
    if (!rc)
        tell_written(self, at + len);
    return rc;
}

/* The next pieces, `most` bytes or a piece more. */
static int feed(bal_spooled *self, bal_spool_read_fn *read, void *ctx,
                uint64_t most, const volatile bool *stop, bal_error *err)
{
    uint64_t from = written_of(self);
    void *memory = bal_pages(PIECE);
    int rc = memory ? 0 : bal_fail_memory(err, "filling the spool");

    for (uint64_t at = from; !rc && at < self->size && at - from < most;
         at += PIECE) {
        if (bal_stopped(stop))
            rc = bal_fail(err, BAL_ECANCELLED, "the server stops");
        else
            rc = feed_piece(self, read, ctx, memory, at, err);
    }
    free(memory);
    return rc;
}

static int feed_or_tell(bal_spooled *self, bal_spool_read_fn *read, void *ctx,
                        uint64_t most, const volatile bool *stop,
                        bal_error *err)
{
    bal_error why = { 0 };
    int rc = feed(self, read, ctx, most, stop, &why);

    if (!rc)
        return 0;
    bool was = unlist(self->home, self);
    tell_failed(self, &why);
    if (was)
        bal_spooled_free(self);
    if (err)
        *err = why;
    return rc;
}

int bal_spooled_feed(bal_spooled *self, bal_spool_read_fn *read, void *ctx,
                     const volatile bool *stop, bal_error *err)
{
    return feed_or_tell(self, read, ctx, UINT64_MAX, stop, err);
}

static int read_stream(void *ctx, uint64_t offset, void *to, size_t len,
                       bal_error *err)
{
    return bal_stream_read(ctx, offset, to, len, err);
}

int bal_spooled_fill(bal_spooled *self, bal_stream *stream, uint64_t most,
                     const volatile bool *stop, bal_error *err)
{
    return feed_or_tell(self, read_stream, stream, most, stop, err);
}
