/* Requests side by side in one thread, by libcurl's multi interface, which
 * keeps connections and shares them among requests. */
#include "core/http.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/http_transfer.h"
#include "core/pool.h"

enum {
    ANSWER_MAX = 16 * 1024 * 1024,
    RETRIES = 4,
    PARALLEL_MAX = 1024,
    TOKEN_MAX = 8192,
    POLL_MS = 100, /* between two looks at whether to stop */
};

static const double default_timeout = 300;

struct bal_http {
    bal_http_options options; /* without the token */
    double end;               /* bal_clock_ticks; 0: none */
    uint64_t random;
    CURLM *multi;
    bal_buf bearer; /* a header line; empty: none */
    bal_transfer *transfers;
    bool busy;
};

/* A call of bal_http_all. */
typedef struct run {
    bal_http *http;
    size_t n;
    size_t next; /* the first that was not begun */
    size_t ended;
    bal_http_make_fn *make;
    bal_http_take_fn *take;
    void *ctx;
    /* The answer that is taken; its transfer is at work again by then. */
    bal_buf body;
    bal_buf type;
} run;

static void run_done(run *self)
{
    bal_buf_done(&self->body);
    bal_buf_done(&self->type);
}

/* ---- opening ----------------------------------------------------------- */

static int set_bearer(bal_http *self, const char *token, bal_error *err)
{
    size_t len = 0;

    if (!token || !token[0])
        return 0;
    while (token[len] > ' ' && token[len] <= '~')
        len++;
    if (token[len] || len > TOKEN_MAX)
        return bal_fail(err, BAL_EINVAL,
                        "the key has characters that no header can hold");
    return bal_buf_format(&self->bearer, err, "Authorization: Bearer %s",
                          token);
}

static void set_defaults(bal_http_options *options)
{
    options->token = NULL;
    if (!(options->timeout > 0))
        options->timeout = default_timeout;
    if (!options->parallel)
        options->parallel = 1;
    if (options->parallel > PARALLEL_MAX)
        options->parallel = PARALLEL_MAX;
    if (!options->answer_max)
        options->answer_max = ANSWER_MAX;
    if (!options->retries)
        options->retries = RETRIES;
}

int bal_http_open(bal_http **out, const bal_http_options *options,
                  bal_error *err)
{
    int loaded = bal_curl_load(err);
    if (loaded)
        return loaded;
    BAL_OWN(bal_http) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "an HTTP client");
    self->options = *options;
    set_defaults(&self->options);
    if (options->deadline > 0)
        self->end = bal_clock_ticks() + options->deadline;
    self->random = (uint64_t)bal_clock_now() ^ (uint64_t)getpid() << 32;
    self->multi = bal_curl_use()->multi_init();
    self->transfers = calloc(self->options.parallel, sizeof(*self->transfers));
    if (!self->multi || !self->transfers)
        return bal_fail_memory(err, "an HTTP client");
    long most = (long)self->options.parallel;
    if (bal_curl_use()->multi_setopt(self->multi, CURLMOPT_MAXCONNECTS, most))
        return bal_fail_memory(err, "an HTTP client");
    int rc = set_bearer(self, options->token, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_http_free(bal_http *self)
{
    if (!self)
        return;
    for (size_t i = 0; self->transfers && i < self->options.parallel; i++)
        bal_transfer_done(&self->transfers[i]);
    bal_curl_use()->multi_cleanup(self->multi);
    free(self->transfers);
    if (self->bearer.data)
        explicit_bzero(self->bearer.data, self->bearer.len);
    bal_buf_done(&self->bearer);
    free(self);
}

/* ---- one transfer ------------------------------------------------------ */

static int multi_failed(CURLMcode code, bal_error *err)
{
    if (code == CURLM_OUT_OF_MEMORY)
        return bal_fail_memory(err, "requests");
    return bal_fail(err, BAL_EIO, "libcurl: %s",
                    bal_curl_use()->multi_strerror(code));
}

/* The next try, with the time that there is for it. */
static int launch(bal_http *self, bal_transfer *transfer, bal_error *err)
{
    double seconds = self->options.timeout;
    double left = self->end > 0 ? self->end - bal_clock_ticks() : seconds;

    if (left <= 0)
        return bal_fail(err, BAL_EIO, "'%s': not done within %.3g s",
                        bal_buf_string(&transfer->place.text),
                        self->options.deadline);
    int rc = bal_transfer_arm(transfer, left < seconds ? left : seconds, err);
    if (rc)
        return rc;
    if (left < seconds)
        transfer->seconds = self->options.deadline;
    CURLMcode code =
        bal_curl_use()->multi_add_handle(self->multi, transfer->easy);
    if (code)
        return multi_failed(code, err);
    transfer->state = BAL_TRANSFER_RUNNING;
    return 0;
}

/* Is there another try, and time for it? Then it waits. */
static bool put_off(bal_http *self, bal_transfer *transfer,
                    const bal_http_end *end)
{
    if (transfer->rc || transfer->tries >= self->options.retries ||
        !bal_http_again(end) || end->asked > self->options.timeout)
        return false;
    double pause = bal_http_pause(&self->random, transfer->tries, end->asked);
    double again = bal_clock_ticks() + pause;
    if (self->end > 0 && again >= self->end)
        return false;
    transfer->tries++;
    transfer->again = again;
    transfer->state = BAL_TRANSFER_WAITING;
    bal_trace("http", "again=%u in=%.2f status=%d curl=%d", transfer->tries,
              pause, end->status, (int)end->code);
    return true;
}

/* ---- all of them ------------------------------------------------------- */

static int begin_next(run *self, bal_transfer *transfer, bal_error *err)
{
    bal_http *http = self->http;
    bal_http_request request = { 0 };

    transfer->i = self->next++;
    int rc = self->make(self->ctx, transfer->i, &request, err);
    if (rc)
        return rc;
    rc = bal_transfer_begin(transfer, &request, http->bearer.data,
                            http->options.answer_max, err);
    if (rc)
        return rc;
    return launch(http, transfer, err);
}

/* The next request, sent before what came is looked at: a server shall not wait
 * for us. */
static int refill(run *self, bal_transfer *transfer, bal_error *err)
{
    int running;

    if (self->next == self->n)
        return 0;
    int rc = begin_next(self, transfer, err);
    if (rc)
        return rc;
    CURLMcode code = bal_curl_use()->multi_perform(self->http->multi, &running);
    return code ? multi_failed(code, err) : 0;
}

/* Keep the answer apart from its transfer. */
static int detach(run *self, bal_transfer *transfer, bal_error *err)
{
    bal_buf body = self->body;
    char *type = NULL;

    self->body = transfer->body;
    transfer->body = body;
    bal_curl_use()->easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &type);
    bal_buf_clear(&self->type);
    return bal_buf_text(&self->type, type ? type : "", err);
}

/* A try is over: wait for another, or hand on what came. */
static int finish(run *self, bal_transfer *transfer, CURLcode code,
                  bal_error *err)
{
    bal_http_end end;
    size_t i = transfer->i;

    bal_curl_use()->multi_remove_handle(self->http->multi, transfer->easy);
    transfer->state = BAL_TRANSFER_IDLE;
    bal_transfer_end(transfer, code, &end);
    if (put_off(self->http, transfer, &end))
        return 0;
    if (code)
        return bal_transfer_failed(transfer, &end, err);
    int rc = detach(self, transfer, err);
    if (rc)
        return rc;
    bal_transfer_rest(transfer);
    rc = refill(self, transfer, err);
    if (rc)
        return rc;
    const bal_http_answer answer = {
        .status = end.status,
        .body = { bal_buf_string(&self->body), self->body.len },
        .type = bal_buf_string(&self->type),
    };
    self->ended++;
    return self->take(self->ctx, i, &answer, err);
}

/* Begin what can be begun, try again what has waited. */
static int begin_some(run *self, bal_error *err)
{
    bal_http *http = self->http;
    double now = bal_clock_ticks();

    for (size_t i = 0; i < http->options.parallel; i++) {
        bal_transfer *transfer = &http->transfers[i];
        int rc = 0;
        if (transfer->state == BAL_TRANSFER_IDLE && self->next < self->n)
            rc = begin_next(self, transfer, err);
        else if (transfer->state == BAL_TRANSFER_WAITING &&
                 transfer->again <= now)
            rc = launch(http, transfer, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int take_ended(run *self, bal_error *err)
{
    int left;
    CURLMsg *told;

    while ((told = bal_curl_use()->multi_info_read(self->http->multi, &left))) {
        char *transfer = NULL;
        if (told->msg != CURLMSG_DONE)
            continue;
        /* told is gone once its handle is removed. */
        CURLcode code = told->data.result;
        bal_curl_use()->easy_getinfo(told->easy_handle, CURLINFO_PRIVATE,
                                     &transfer);
        int rc = finish(self, (bal_transfer *)(void *)transfer, code, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Until something happens, a wait is over, or it is time to look around. */
static int rest(bal_http *self, bal_error *err)
{
    double now = bal_clock_ticks();
    double most = POLL_MS;

    for (size_t i = 0; i < self->options.parallel; i++) {
        const bal_transfer *transfer = &self->transfers[i];
        double left = (transfer->again - now) * 1000;
        if (transfer->state == BAL_TRANSFER_WAITING && left < most)
            most = left > 0 ? left : 0;
    }
    CURLMcode code =
        bal_curl_use()->multi_poll(self->multi, NULL, 0, (int)most + 1, NULL);
    return code ? multi_failed(code, err) : 0;
}

static int drive(run *self, bal_work *work, bal_error *err)
{
    while (self->ended < self->n) {
        size_t ended = self->ended;
        int running;
        int rc = begin_some(self, err);
        if (!rc) {
            CURLMcode code =
                bal_curl_use()->multi_perform(self->http->multi, &running);
            rc = code ? multi_failed(code, err) : 0;
        }
        if (!rc)
            rc = take_ended(self, err);
        if (!rc && work)
            rc = bal_work_poll(work, err);
        if (!rc && self->ended == ended)
            rc = rest(self->http, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* What a failure left on its way; its connections end. */
static void call_back(bal_http *self)
{
    for (size_t i = 0; i < self->options.parallel; i++) {
        bal_transfer *transfer = &self->transfers[i];
        if (transfer->state == BAL_TRANSFER_RUNNING)
            bal_curl_use()->multi_remove_handle(self->multi, transfer->easy);
        bal_transfer_rest(transfer);
    }
}

/* ------------------------------------------------------------------------ */

int bal_http_all(bal_http *self, size_t n, bal_http_make_fn *make,
                 bal_http_take_fn *take, void *ctx, bal_work *work,
                 bal_error *err)
{
    BAL_LOCAL(run)
    all = {
        .http = self,
        .n = n,
        .make = make,
        .take = take,
        .ctx = ctx,
    };
    bal_quiet pipe;

    assert(!self->busy);
    self->busy = true;
    bal_quiet_begin(&pipe);
    int rc = drive(&all, work, err);
    call_back(self);
    bal_quiet_end(&pipe);
    self->busy = false;
    return rc;
}

/* One request, and where its answer goes. */
typedef struct single {
    const bal_http_request *request;
    int status;
    bal_buf *body;
} single;

static int make_single(void *ctx, size_t i, bal_http_request *request,
                       bal_error *err)
{
    const single *self = ctx;

    (void)i;
    (void)err;
    *request = *self->request;
    return 0;
}

static int take_single(void *ctx, size_t i, const bal_http_answer *answer,
                       bal_error *err)
{
    single *self = ctx;

    (void)i;
    self->status = answer->status;
    return bal_buf_append(self->body, answer->body.data, answer->body.len, err);
}

int bal_http_send(bal_http *self, int *status, bal_buf *body,
                  const bal_http_request *request, bal_work *work,
                  bal_error *err)
{
    single one = { request, .body = body };

    bal_buf_clear(body);
    int rc = bal_http_all(self, 1, make_single, take_single, &one, work, err);
    if (rc)
        return rc;
    *status = one.status;
    return 0;
}
