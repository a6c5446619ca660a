/* HTTP client (libcurl): several requests at once over connections that are
 * kept, one thread. */
#ifndef CORE_HTTP_H
#define CORE_HTTP_H

#include <jansson.h>

#include "core/buf.h"
#include "core/own.h"

typedef struct bal_http bal_http;

typedef struct bal_http_options {
    double timeout;    /* seconds of one request, retries apart; 0: 300 */
    double deadline;   /* seconds from open on for all of it; 0: none */
    size_t parallel;   /* requests at once, 0: 1 */
    size_t answer_max; /* bytes of a body, 0: 16 MiB; more is EIO */
    unsigned retries;  /* of one request, 0: 4; with growing waits and jitter */
    const char *token; /* Authorization: Bearer; never told, NULL: none */
} bal_http_options;

typedef struct bal_http_request {
    const char *method; /* NULL: GET, or POST with a body */
    const char *url;
    const char *type; /* of the body; NULL: application/json */
    bal_bytes body;
    const char *const *headers; /* further lines, NULL behind the last */
    const char *ca;             /* file of certificates; NULL: the system's */
    unsigned flags;
} bal_http_request;

enum bal_http_flags {
    BAL_HTTP_HEAD = 1, /* keep what the answer has before its body */
    BAL_HTTP_BULK = 2, /* many bytes: large buffers; a stall ends it, and so
                          does a signal that the program was told to watch */
};

typedef struct bal_http_answer {
    int status;
    bal_bytes body;   /* NUL behind it */
    const char *type; /* "" where the server does not say */
} bal_http_answer;

/* EINVAL unless it is a URL of http or https without user and password: what
 * every request checks. */
BAL_CHECK int bal_http_check(const char *url, bal_error *err);
/* The text of an answer that is an error, borrowed: {"error": {"message"}} as
 * OpenAI has it, {"error": text}, {"error_message"}, {"message"}, {"detail"};
 * NULL: none of these. */
const char *bal_http_error_text(const json_t *value);
/* http and https only, no redirects, no proxies for loopback. EINVAL: a token
 * that no header can hold. */
BAL_CHECK int bal_http_open(bal_http **out, const bal_http_options *options,
                            bal_error *err);
void bal_http_free(bal_http *self);
BAL_OWNABLE(bal_http)

/* One request: any status is success, its answer in body (cleared first). EIO:
 * there was none; names the server, never the token. Retried: what could not be
 * reached or was cut off, 429 and 503, as long as Retry-After and the deadline
 * allow. */
BAL_CHECK int bal_http_send(bal_http *self, int *status, bal_buf *body,
                            const bal_http_request *request, bal_work *work,
                            bal_error *err);

/* n requests, `parallel` at once, begun in order. make fills request i, what it
 * borrows must stay until take was called; take is called once for each, in the
 * order of their ends. The first failure of either ends it all. */
typedef int bal_http_make_fn(void *ctx, size_t i, bal_http_request *request,
                             bal_error *err);
typedef int bal_http_take_fn(void *ctx, size_t i, const bal_http_answer *answer,
                             bal_error *err);
BAL_CHECK int bal_http_all(bal_http *self, size_t n, bal_http_make_fn *make,
                           bal_http_take_fn *take, void *ctx, bal_work *work,
                           bal_error *err);

#endif
