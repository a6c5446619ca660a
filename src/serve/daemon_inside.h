/* The server as its own parts see it. */
#ifndef SERVE_DAEMON_INSIDE_H
#define SERVE_DAEMON_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/access_log.h"
#include "serve/daemon.h"
#include "serve/keyring.h"
#include "serve/limits.h"
#include "serve/links.h"
#include "serve/listen.h"
#include "serve/metrics.h"
#include "serve/mhd.h"
#include "serve/reply_cache.h"
#include "serve/serve.h"
#include "serve/upload.h"
#include "serve/workers.h"

struct bal_daemon {
    const bal_serve_options *options;
    const bal_mhd *mhd;
    struct MHD_Daemon *http;
    bal_metrics *metrics;
    bal_links *links;
    bal_keyring *keyring;
    bal_limits *limits;
    bal_reply_cache *cache;
    bal_spool *spool;
    bal_home *home;
    bal_workers *workers;
    bal_log_kind log;
    uint64_t max_body;
    bal_buf cert, key;
    bal_work *work;     /* of watched */
    bal_work *sifting;  /* of bal_daemon_sift */
    uint64_t sifted;    /* the changes that it saw last */
    bal_store *watched; /* asked whether anything has changed */
    uint64_t moves;     /* how often it was found elsewhere */
    pthread_mutex_t watching;
    atomic_bool stopping;  /* new requests are refused */
    volatile bool stopped; /* what runs is to end */
    atomic_uint suspended; /* connections */
};

/* As bal_store_changes; EIO and the like: nothing is known. */
BAL_CHECK int bal_daemon_changes(bal_daemon *self, uint64_t *out);
/* Lets go of what is kept of commits that somebody else forgot or revoked, as
 * soon as the store has changed. For one thread. */
void bal_daemon_sift(bal_daemon *self);
void bal_daemon_suspend(bal_daemon *self, struct MHD_Connection *connection);
void bal_daemon_resume(bal_daemon *self, struct MHD_Connection *connection);

/* Everything but listening. */
BAL_CHECK int bal_daemon_new(bal_daemon **out, const bal_serve_options *options,
                             bal_error *err);
/* Serves the socket, which it takes. */
BAL_CHECK int bal_daemon_start(bal_daemon *self, int fd, bal_error *err);
/* Accepts nothing more and refuses new requests. */
void bal_daemon_quiesce(bal_daemon *self);
/* Requests that are not answered yet. */
int64_t bal_daemon_busy(const bal_daemon *self);
/* Ends what runs and closes. */
void bal_daemon_free(bal_daemon *self);
BAL_OWNABLE(bal_daemon)

#endif
