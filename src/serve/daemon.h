/* The server as handlers see it. */
#ifndef SERVE_DAEMON_H
#define SERVE_DAEMON_H

#include "ballast.h"

#include "core/buf.h"
#include "serve/spool.h"

typedef struct bal_daemon bal_daemon;

bal_spool *bal_daemon_spool(bal_daemon *self);
/* Appends what it counts, as Prometheus reads it. */
BAL_CHECK int bal_daemon_metrics(bal_daemon *self, bal_buf *to, bal_error *err);
/* A folder for what is made for a while, below the store's root. */
const char *bal_daemon_home(const bal_daemon *self);

#endif
