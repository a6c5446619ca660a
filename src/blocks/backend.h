/* Somewhere to keep named byte runs ("acme/3/3f0a…"). Knows no ids, tenants or
 * models. One vtable, a row a scheme; callers use the bal_backend_verb doors.
 */
#ifndef BLOCKS_BACKEND_H
#define BLOCKS_BACKEND_H

#include "core/buf.h"
#include "core/pool.h"

typedef struct bal_backend bal_backend;

/* A byte run written but not yet to be seen under its name. */
typedef struct bal_staged {
    char *name;
    char *temp; /* the backend's own */
    uint64_t size;
    bool keeps; /* what has the name already stays, at settling */
    bool kept;  /* it did: this is still staged */
} bal_staged;

typedef int bal_listed_fn(void *ctx, const char *name, uint64_t size,
                          bal_error *err);

typedef struct bal_backend_ops {
    const char *scheme; /* "file" */
    /* url without its scheme; root: what a relative path is below of. */
    int (*open)(bal_backend **out, const char *rest, const char *root,
                bal_error *err);
    /* Runs are those of this store from now on, as its id says. ECONFLICT:
     * somewhere it is written that they are another's; seen at the next call
     * that needs to, with BAL_CLAIM_NOW at once. */
    int (*claim)(bal_backend *self, const char *store, unsigned flags,
                 bal_error *err);
    /* Appends bytes [offset, offset + len); len 0: to the end. ENOTFOUND. */
    int (*get)(bal_backend *self, const char *name, uint64_t offset,
               uint64_t len, bal_buf *to, bal_error *err);
    /* The same of a whole run, where a copy that this machine has will do;
     * *copy: it was one. NULL: there are none. */
    int (*get_near)(bal_backend *self, const char *name, bal_buf *to,
                    bool *copy, bal_error *err);
    /* A copy was not what it should be: it goes. */
    void (*drop_near)(bal_backend *self, const char *name);
    /* Write all parts, one behind the other; write-back begins. Any number of
     * threads. */
    int (*stage)(bal_backend *self, bal_staged *out, const char *name,
                 const bal_bytes *parts, size_t count, bal_error *err);
    /* Make each staged run durable, then seen under its name whole, then its
     * directories durable, each synced once. One that is there already is
     * replaced (it has the same content), or with staged->keeps stays, however
     * many settle at once: then staged->kept is set and the staged run is left
     * as it is. Empties what it has settled, also when it fails half way.
     * work NULL: in the calling thread, where the backend is `at_once`. */
    int (*settle)(bal_backend *self, bal_staged *staged, size_t count,
                  bal_work *work, bal_error *err);
    /* Remove what was staged and not settled, and empty it. */
    void (*discard)(bal_backend *self, bal_staged *staged);
    int (*size)(bal_backend *self, const char *name, uint64_t *size,
                bal_error *err); /* ENOTFOUND is sure; EIO: cannot tell */
    /* Absent is fine; *freed: bytes that went, also when it fails half way.
     * Durable once returned; each directory is synced once, and those that
     * are empty then go as well. So nobody may stage meanwhile, and of long
     * ones, each part asks whether that still holds: see bal_backend_may. */
    int (*remove)(bal_backend *self, const char *const *names, size_t count,
                  uint64_t *freed, bal_error *err);
    /* Names below prefix, which is empty or ends with a slash, in no order. */
    int (*list)(bal_backend *self, const char *prefix, bal_listed_fn *fn,
                void *ctx, bal_error *err);
    /* Temporaries of processes that are no more; with DRY only counted, with
     * NEAR those alone that no request is needed for. */
    int (*sweep)(bal_backend *self, uint64_t *bytes, unsigned flags,
                 bal_error *err);
    void (*free)(bal_backend *self);
} bal_backend_ops;

typedef int bal_may_fn(void *ctx, bal_error *err);

struct bal_backend {
    const bal_backend_ops *ops;
    char *url;         /* as given, whole; bal_backend_free's */
    unsigned parallel; /* how many calls at once serve it best; 0: one a core */
    bool at_once;      /* what is staged takes memory: settle each by itself */
    bal_may_fn *may;   /* asked before some are removed; NULL: nobody is */
    void *may_ctx;
};

enum bal_claim_flags { BAL_CLAIM_NOW = 1 };

enum bal_sweep_flags { BAL_SWEEP_DRY = 1, BAL_SWEEP_NEAR = 2 };

/* EINVAL: no such scheme, names those there are. */
BAL_CHECK int bal_backend_open(bal_backend **out, const char *url,
                               const char *root, bal_error *err);
void bal_backend_free(bal_backend *self);
BAL_OWNABLE(bal_backend)
BAL_CHECK int bal_backend_claim(bal_backend *self, const char *store,
                                unsigned flags, bal_error *err);
BAL_CHECK int bal_backend_get(bal_backend *self, const char *name,
                              uint64_t offset, uint64_t len, bal_buf *to,
                              bal_error *err);
BAL_CHECK int bal_backend_get_near(bal_backend *self, const char *name,
                                   bal_buf *to, bool *copy, bal_error *err);
void bal_backend_drop_near(bal_backend *self, const char *name);
BAL_CHECK int bal_backend_stage(bal_backend *self, bal_staged *out,
                                const char *name, const bal_bytes *parts,
                                size_t count, bal_error *err);
BAL_CHECK int bal_backend_settle(bal_backend *self, bal_staged *staged,
                                 size_t count, bal_work *work, bal_error *err);
void bal_backend_discard(bal_backend *self, bal_staged *staged);
BAL_CHECK int bal_backend_size(bal_backend *self, const char *name,
                               uint64_t *size, bal_error *err);
BAL_CHECK int bal_backend_remove(bal_backend *self, const char *const *names,
                                 size_t count, uint64_t *freed, bal_error *err);
/* Whoever removes may go on; for those that implement it. */
BAL_CHECK int bal_backend_may(const bal_backend *self, bal_error *err);
BAL_CHECK int bal_backend_list(bal_backend *self, const char *prefix,
                               bal_listed_fn *fn, void *ctx, bal_error *err);
BAL_CHECK int bal_backend_sweep(bal_backend *self, uint64_t *bytes,
                                unsigned flags, bal_error *err);

#endif
