/* Counters that any thread adds to without a lock. */
#include "serve/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "serve/routes.h"

static const int statuses[] = { 200, 201, 206, 304, 400, 403, 404,
                                405, 408, 409, 411, 412, 413, 414,
                                416, 429, 500, 501, 503, 505 };

enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) };

static const double bounds[] = { 0.001, 0.005, 0.01, 0.05, 0.1,
                                 0.5,   1,     5,    30,   120 };

enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

static const struct {
    const char *name, *type, *help;
} rows[] = {
    [BAL_COUNT_CONNECTIONS] = { "connections_total", "counter",
                                "connections that were accepted" },
    [BAL_COUNT_OPEN] = { "connections_open", "gauge", "connections now" },
    [BAL_COUNT_IN_FLIGHT] = { "requests_in_flight", "gauge", "requests now" },
    [BAL_COUNT_BYTES_IN] = { "received_bytes_total", "counter",
                             "bytes of bodies that came" },
    [BAL_COUNT_BYTES_OUT] = { "sent_bytes_total", "counter",
                              "bytes of bodies that were sent" },
    [BAL_COUNT_UPLOAD] = { "upload_bytes_total", "counter",
                           "bytes of uploads that came" },
    [BAL_COUNT_HITS] = { "cache_hits_total", "counter",
                         "replies that were ready" },
    [BAL_COUNT_TIMEOUT] = { "slow_connections_total", "counter",
                            "connections that were ended for being slow" },
    [BAL_COUNT_QUEUE] = { "queue_length", "gauge",
                          "requests that wait for a worker" },
    [BAL_COUNT_SPOOL] = { "spool_bytes", "gauge",
                          "bytes of adapters kept ready" },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_COUNTS,
               "a row for each count");

struct bal_metrics {
    atomic_int_fast64_t counts[BAL_COUNTS];
    atomic_uint_fast64_t buckets[BOUNDS + 1];
    atomic_uint_fast64_t microseconds;
    atomic_uint_fast64_t requests[]; /* route by status */
};

static size_t cells(void)
{
    return (bal_route_count + 1) * (STATUSES + 1);
}

int bal_metrics_new(bal_metrics **out, bal_error *err)
{
    bal_metrics *self =
        calloc(1, sizeof(*self) + cells() * sizeof(self->requests[0]));

    if (!self)
        return bal_fail_memory(err, "making counters");
    *out = self;
    return 0;
}

void bal_metrics_free(bal_metrics *self)
{
    free(self);
}

void bal_metrics_add(bal_metrics *self, bal_count what, int64_t more)
{
    atomic_fetch_add_explicit(&self->counts[what], more, memory_order_relaxed);
}

void bal_metrics_set(bal_metrics *self, bal_count what, int64_t value)
{
    atomic_store_explicit(&self->counts[what], value, memory_order_relaxed);
}

int64_t bal_metrics_get(const bal_metrics *self, bal_count what)
{
    return (int64_t)atomic_load(&self->counts[what]);
}

static size_t status_index(int status)
{
    size_t i = 0;

    while (i < STATUSES && statuses[i] != status)
        i++;
    return i;
}

void bal_metrics_request(bal_metrics *self, size_t route, int status,
                         double seconds)
{
    size_t cell = route * (STATUSES + 1) + status_index(status);
    size_t bucket = 0;

    while (bucket < BOUNDS && seconds > bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&self->requests[cell], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->microseconds, (uint64_t)(seconds * 1e6),
                              memory_order_relaxed);
}

static int head(bal_buf *to, const char *name, const char *type,
                const char *help, bal_error *err)
{
    return bal_buf_format(to, err,
                          "# HELP ballast_%s %s\n# TYPE ballast_%s %s\n", name,
                          help, name, type);
}

static int requests_text(const bal_metrics *self, bal_buf *to, bal_error *err)
{
    int rc = head(to, "requests_total", "counter",
                  "requests by route and status", err);

    for (size_t i = 0; !rc && i < cells(); i++) {
        uint64_t value = atomic_load(&self->requests[i]);
        size_t route = i / (STATUSES + 1);
        size_t at = i % (STATUSES + 1);
        bool known = route < bal_route_count;
        if (!value)
            continue;
        rc = bal_buf_format(to, err,
                            "ballast_requests_total{method=\"%s\",route=\"%s\","
                            "status=\"%d\"} %" PRIu64 "\n",
                            known ? bal_routes[route].method : "",
                            known ? bal_routes[route].path : "",
                            at < STATUSES ? statuses[at] : 0, value);
    }
    return rc;
}

static int durations_text(const bal_metrics *self, bal_buf *to, bal_error *err)
{
    uint64_t sum = 0;

    int rc = head(to, "request_seconds", "histogram",
                  "from a request's head to the end of its reply", err);
    for (size_t i = 0; !rc && i <= BOUNDS; i++) {
        sum += atomic_load(&self->buckets[i]);
        rc =
            i < BOUNDS
                ? bal_buf_format(
                      to, err,
                      "ballast_request_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                      bounds[i], sum)
                : bal_buf_format(
                      to, err,
                      "ballast_request_seconds_bucket{le=\"+Inf\"} %" PRIu64
                      "\n",
                      sum);
    }
    if (rc)
        return rc;
    return bal_buf_format(to, err,
                          "ballast_request_seconds_sum %.6f\n"
                          "ballast_request_seconds_count %" PRIu64 "\n",
                          (double)atomic_load(&self->microseconds) / 1e6, sum);
}

int bal_metrics_text(const bal_metrics *self, bal_buf *to, bal_error *err)
{
    int rc = requests_text(self, to, err);

    if (!rc)
        rc = durations_text(self, to, err);
    for (size_t i = 0; !rc && i < BAL_COUNTS; i++) {
        rc = head(to, rows[i].name, rows[i].type, rows[i].help, err);
        if (!rc)
            rc = bal_buf_format(to, err, "ballast_%s %" PRId64 "\n",
                                rows[i].name,
                                bal_metrics_get(self, (bal_count)i));
    }
    return rc;
}
