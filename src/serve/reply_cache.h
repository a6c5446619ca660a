/* Replies that are made already, by what was asked, each good for one value of
 * bal_store_changes. */
#ifndef SERVE_REPLY_CACHE_H
#define SERVE_REPLY_CACHE_H

#include <stdatomic.h>

#include "ballast.h"

#include "core/own.h"

/* A reply ready to be sent, as often as one likes. Counted. */
typedef struct bal_ready bal_ready;
struct bal_ready {
    atomic_uint references;
    int status;
    uint64_t length;  /* of the body */
    const char *etag; /* NULL: none */
    void (*free)(bal_ready *self);
};
bal_ready *bal_ready_ref(bal_ready *self);
void bal_ready_free(bal_ready *self); /* one reference less */
BAL_OWNABLE(bal_ready)

typedef struct bal_reply_cache bal_reply_cache;
BAL_CHECK int bal_reply_cache_new(bal_reply_cache **out, size_t entries,
                                  uint64_t bytes, bal_error *err);
void bal_reply_cache_free(bal_reply_cache *self);
BAL_OWNABLE(bal_reply_cache)

/* A reference on what was put under the key with this value of changes; NULL:
 * none. What has another value goes. */
bal_ready *bal_reply_cache_find(bal_reply_cache *self, const void *key,
                                size_t len, uint64_t changes);
/* Takes a reference; what is there goes, and the least recently used while
 * there are too many. Nothing happens where there is no memory, or for one that
 * is more than an eighth of all. */
void bal_reply_cache_put(bal_reply_cache *self, const void *key, size_t len,
                         uint64_t changes, bal_ready *ready);

#endif
