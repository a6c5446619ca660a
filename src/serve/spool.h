/* Safetensors files ready to be sent: a commit's stream is written once, by one
 * worker, to a file that has no name, and everybody who asks for it reads that
 * file, while it grows and after. So a slow client holds no worker, two hundred
 * downloads decode once, and what is complete goes out by sendfile. Bytes were
 * verified as they came out of their blocks; docs/decisions has why that is
 * enough. Kept by commit id up to a size; the least recently used goes first,
 * and whatever the graph does not have any more. */
#ifndef SERVE_SPOOL_H
#define SERVE_SPOOL_H

#include "ballast.h"

#include "core/own.h"
#include "serve/request.h"

typedef struct bal_spool bal_spool;

/* dir: where files may be made without a name (O_TMPFILE), or are removed at
 * once. */
BAL_CHECK int bal_spool_new(bal_spool **out, const char *dir, uint64_t limit,
                            bal_error *err);
void bal_spool_free(bal_spool *self);

/* What there is of a tenant's commit, NULL: nothing yet. Counted. */
bal_spooled *bal_spool_find(bal_spool *self, const char *tenant,
                            const bal_id *commit);
/* A new, empty one of `size` bytes, or the one that somebody else made
 * meanwhile (*mine false): who made it fills it. */
BAL_CHECK int bal_spool_make(bal_spooled **out, bool *mine, bal_spool *self,
                             const char *tenant, const bal_id *commit,
                             uint64_t size, bal_error *err);
/* Is it to stop? Any thread may say so meanwhile. */
static inline bool bal_stopped(const volatile bool *stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_ACQUIRE);
}
/* Writes the next pieces of the stream into it, about `most` bytes; everybody
 * who waits is woken as it grows. bal_spooled_fd tells when it is complete. On
 * failure they are told, and it leaves the spool. Fails where `stop` becomes
 * true. */
BAL_CHECK int bal_spooled_fill(bal_spooled *self, bal_stream *stream,
                               uint64_t most, const volatile bool *stop,
                               bal_error *err);
/* All of it, from any function that reads bytes [offset, offset + len). */
typedef int bal_spool_read_fn(void *ctx, uint64_t offset, void *to, size_t len,
                              bal_error *err);
BAL_CHECK int bal_spooled_feed(bal_spooled *self, bal_spool_read_fn *read,
                               void *ctx, const volatile bool *stop,
                               bal_error *err);
/* Forgotten or revoked: nobody finds it any more, and who reads it fails. */
void bal_spool_drop(bal_spool *self, bal_spooled *gone);

/* Drops all that may not stay; `stays` is asked without a lock. */
typedef bool bal_spool_stays_fn(void *ctx, const char *tenant,
                                const bal_id *commit);
void bal_spool_sift(bal_spool *self, bal_spool_stays_fn *stays, void *ctx);

uint64_t bal_spooled_size(const bal_spooled *self);
/* The file, if it is complete; else -1. */
int bal_spooled_fd(const bal_spooled *self);
/* Who is woken, once, when there is more, or when it failed. */
typedef struct bal_waker {
    void (*wake)(void *ctx);
    void *ctx;
} bal_waker;
/* Bytes that are there from offset on, `len` at most; *got 0: none yet, and
 * waker (NULL: nobody) is called. */
BAL_CHECK int bal_spooled_read(bal_spooled *self, uint64_t offset, void *to,
                               size_t len, size_t *got, const bal_waker *waker,
                               bal_error *err);
void bal_spooled_free(bal_spooled *self); /* one reference less */
bal_spooled *bal_spooled_ref(bal_spooled *self);
/* Bytes of all that can be found. */
uint64_t bal_spool_bytes(bal_spool *self);
BAL_OWNABLE(bal_spooled)

#endif
