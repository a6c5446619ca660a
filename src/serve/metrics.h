/* What the server counts, and its text for Prometheus. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include "ballast.h"

#include "core/buf.h"
#include "core/own.h"

typedef enum bal_count {
    BAL_COUNT_CONNECTIONS, /* ever */
    BAL_COUNT_OPEN,        /* connections now */
    BAL_COUNT_IN_FLIGHT,   /* requests now */
    BAL_COUNT_BYTES_IN,    /* bodies */
    BAL_COUNT_BYTES_OUT,
    BAL_COUNT_UPLOAD,  /* bytes of bodies that went to disk */
    BAL_COUNT_HITS,    /* replies that were ready */
    BAL_COUNT_TIMEOUT, /* connections ended for being slow */
    BAL_COUNT_QUEUE,   /* requests that wait for a worker now */
    BAL_COUNT_SPOOL,   /* bytes now */
    BAL_COUNTS,
} bal_count;

typedef struct bal_metrics bal_metrics;

BAL_CHECK int bal_metrics_new(bal_metrics **out, bal_error *err);
void bal_metrics_free(bal_metrics *self);
BAL_OWNABLE(bal_metrics)

void bal_metrics_add(bal_metrics *self, bal_count what, int64_t more);
void bal_metrics_set(bal_metrics *self, bal_count what, int64_t value);
int64_t bal_metrics_get(const bal_metrics *self, bal_count what);
/* A request is done. route: an index of bal_routes, bal_route_count where there
 * was none. */
void bal_metrics_request(bal_metrics *self, size_t route, int status,
                         double seconds);
BAL_CHECK int bal_metrics_text(const bal_metrics *self, bal_buf *to,
                               bal_error *err);

#endif
