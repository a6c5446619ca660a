/* Inside the S3 backend (docs/decisions/025). A bucket's prefix holds
 *
 *   acme/3/3f0a…   runs, under their names
 *   .ballast       whose it is: {"schema": "ballast/backend/1", "store": …}
 *
 * No part of a name starts with a dot, so names and .ballast cannot meet. What
 * is staged is here, and goes out when it is settled. */
#ifndef BLOCKS_S3_H
#define BLOCKS_S3_H

#include "blocks/backend.h"
#include "blocks/s3_client.h"
#include "blocks/s3_hold.h"

extern const bal_backend_ops bal_backend_s3;

/* What a server or a bucket can do, as far as was asked. */
typedef enum bal_s3_can {
    BAL_S3_UNKNOWN,
    BAL_S3_CAN,
    BAL_S3_CANNOT
} bal_s3_can;

typedef struct s3_backend {
    bal_backend base;
    bal_s3_client client;
    bal_s3_room room;       /* for what is staged */
    pthread_mutex_t lock;   /* guards all that follows; requests are made while
                               it is held */
    char *store;            /* whose runs these are, NULL: nobody has said */
    bool ours;              /* .ballast says so too */
    bal_s3_can conditional; /* puts that leave what is there */
    bal_s3_can versioned;   /* what is replaced or removed stays */
} s3_backend;

static inline s3_backend *bal_s3_of(bal_backend *self)
{
    return (s3_backend *)self;
}

/* "3f0a… in 's3://…'" as bal_s3_refused tells it: of an action and a name. */
int bal_s3_wrong(const bal_s3_reply *reply, const char *doing, const char *name,
                 bal_error *err);
BAL_CHECK int bal_s3_size(bal_backend *self, const char *name, uint64_t *size,
                          bal_error *err);

/* ---- s3_claim.c --------------------------------------------------------- */

/* Is the prefix ours? Asked once; write: it becomes ours where it is nobody's.
 * ECONFLICT: another store's. */
BAL_CHECK int bal_s3_ready(s3_backend *self, bool write, bal_error *err);
int bal_s3_claim(bal_backend *self, const char *store, unsigned flags,
                 bal_error *err);
/* Does the server know puts that leave what is there? */
BAL_CHECK int bal_s3_conditional(s3_backend *self, bool *can, bal_error *err);
void bal_s3_not_conditional(s3_backend *self);
/* Does the bucket keep versions, or has it once done so? */
BAL_CHECK int bal_s3_versioned(s3_backend *self, bool *is, bal_error *err);

/* ---- s3_list.c ---------------------------------------------------------- */

/* A key as it is listed; with versions also those that are not current. */
typedef struct bal_s3_entry {
    const char *name;    /* behind the prefix */
    const char *version; /* "": none */
    uint64_t size;
    bool marker; /* of a deletion; it has no bytes */
} bal_s3_entry;
typedef int bal_s3_entry_fn(void *ctx, const bal_s3_entry *entry,
                            bal_error *err);
/* All that begins with `begin`, or every version of it. */
BAL_CHECK int bal_s3_each(s3_backend *self, const char *begin, bool versions,
                          bal_s3_entry_fn *fn, void *ctx, bal_error *err);
int bal_s3_list(bal_backend *self, const char *prefix, bal_listed_fn *fn,
                void *ctx, bal_error *err);

/* ---- s3_put.c ----------------------------------------------------------- */

int bal_s3_stage(bal_backend *self, bal_staged *out, const char *name,
                 const bal_bytes *parts, size_t count, bal_error *err);
int bal_s3_settle(bal_backend *self, bal_staged *staged, size_t count,
                  bal_work *work, bal_error *err);
void bal_s3_discard(bal_backend *self, bal_staged *staged);
/* s3_parts.c: what is too long for one request. */
BAL_CHECK int bal_s3_put_parts(s3_backend *self, const char *name,
                               bal_bytes bytes, bal_error *err);
int bal_s3_sweep(bal_backend *self, uint64_t *bytes, unsigned flags,
                 bal_error *err);

/* ---- s3_remove.c -------------------------------------------------------- */

int bal_s3_remove(bal_backend *self, const char *const *names, size_t count,
                  uint64_t *freed, bal_error *err);

#endif
