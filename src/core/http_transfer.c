/* One request as libcurl wants it. Every option is set anew for each try: a
 * handle that was used before holds nothing of its last request. */
#include "core/http_transfer.h"

#include <limits.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/signals.h"

enum {
    HEADERS_MAX = 256 * 1024, /* bytes of an answer's; libcurl's own: 300 KiB */
    CONNECT_SECONDS = 10,
    STALL_SECONDS = 30,
};

/* The lines of an answer; "HTTP/1.1 100 Continue" may have been before it. */
static int keep_line(bal_transfer *self, const char *data, size_t len)
{
    static const char first[] = "HTTP/";

    if (!(self->request.flags & BAL_HTTP_HEAD))
        return 0;
    if (len > sizeof(first) && !memcmp(data, first, sizeof(first) - 1))
        bal_buf_clear(&self->head);
    return bal_buf_append(&self->head, data, len, NULL);
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    bal_transfer *self = ctx;

    self->header_bytes += size * n;
    if (self->header_bytes <= HEADERS_MAX && !keep_line(self, data, size * n))
        return size * n;
    self->rc = self->header_bytes > HEADERS_MAX ? BAL_EIO : BAL_ENOMEM;
    return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    bal_transfer *self = ctx;
    int rc = bal_buf_append(&self->body, data, size * n, NULL);

    if (!rc)
        return size * n;
    self->longer = rc != BAL_ENOMEM;
    self->rc = self->longer ? BAL_EIO : rc;
    return 0;
}

static int add_header(bal_transfer *self, const char *line, bal_error *err)
{
    struct curl_slist *longer =
        bal_curl_use()->slist_append(self->headers, line);

    if (!longer)
        return bal_fail_memory(err, "a request");
    self->headers = longer;
    return 0;
}

/* "Expect:" takes away a line by which libcurl asks, of long bodies, whether
 * they are wanted, and waits a second where it is not told. */
static int add_headers(bal_transfer *self, const char *bearer, bal_error *err)
{
    BAL_LOCAL(bal_buf) type = { 0 };
    const char *name = self->request.type;
    int rc = bal_buf_format(&type, err, "Content-Type: %s",
                            name ? name : "application/json");

    if (!rc && self->request.body.data)
        rc = add_header(self, bal_buf_string(&type), err);
    if (!rc)
        rc = add_header(self, "Expect:", err);
    if (!rc && bearer)
        rc = add_header(self, bearer, err);
    const char *const *line = self->request.headers;
    for (; line && *line && !rc; line++)
        rc = add_header(self, *line, err);
    return rc;
}

int bal_transfer_begin(bal_transfer *self, const bal_http_request *request,
                       const char *bearer, size_t answer_max, bal_error *err)
{
    self->request = *request;
    self->tries = 0;
    self->body.ceiling = answer_max;
    if (!self->easy)
        self->easy = bal_curl_use()->easy_init();
    if (!self->easy)
        return bal_fail_memory(err, "a request");
    int rc = bal_http_place_init(&self->place, request->url, err);
    if (rc)
        return rc;
    return add_headers(self, bearer, err);
}

static CURLcode set_request(bal_transfer *self)
{
    CURL *easy = self->easy;
    const bal_http_request *request = &self->request;
    CURLcode code = CURLE_OK;

    if (request->body.data) {
        code = bal_curl_use()->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                           (curl_off_t)request->body.len);
        if (!code)
            code = bal_curl_use()->easy_setopt(
                easy, CURLOPT_POSTFIELDS, (const char *)request->body.data);
    }
    if (!code && request->method && !strcmp(request->method, "HEAD"))
        code = bal_curl_use()->easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (!code && request->method)
        code = bal_curl_use()->easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                                           request->method);
    return code;
}

static CURLcode set_numbers(CURL *easy, long milliseconds)
{
    const struct {
        CURLoption option;
        long value;
    } rows[] = {
        { CURLOPT_NOSIGNAL, 1 },
        { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
        { CURLOPT_FOLLOWLOCATION, 0 },
        { CURLOPT_TCP_NODELAY, 1 },
        { CURLOPT_TIMEOUT_MS, milliseconds },
        { CURLOPT_CONNECTTIMEOUT_MS, CONNECT_SECONDS * 1000L },
    };
    CURLcode code = CURLE_OK;

    for (size_t i = 0; !code && i < sizeof(rows) / sizeof(rows[0]); i++)
        code = bal_curl_use()->easy_setopt(easy, rows[i].option, rows[i].value);
    return code;
}

/* Called at least once a second, whether anything comes or not. */
static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down,
                       curl_off_t up_all, curl_off_t up)
{
    (void)ctx;
    (void)down_all;
    (void)down;
    (void)up_all;
    (void)up;
    return bal_signals_pending() != 0;
}

/* Nothing for half a minute is as good as a connection that was cut. */
static CURLcode set_bulk(CURL *easy)
{
    static const struct {
        CURLoption option;
        long value;
    } rows[] = {
        { CURLOPT_BUFFERSIZE, 256 * 1024L },
        { CURLOPT_UPLOAD_BUFFERSIZE, 256 * 1024L },
        { CURLOPT_LOW_SPEED_LIMIT, 1 },
        { CURLOPT_LOW_SPEED_TIME, STALL_SECONDS },
        { CURLOPT_TCP_KEEPALIVE, 1 },
        { CURLOPT_NOPROGRESS, 0 },
    };
    CURLcode code = CURLE_OK;

    for (size_t i = 0; !code && i < sizeof(rows) / sizeof(rows[0]); i++)
        code = bal_curl_use()->easy_setopt(easy, rows[i].option, rows[i].value);
    if (!code)
        code = bal_curl_use()->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION,
                                           on_progress);
    return code;
}

static CURLcode set_pointers(bal_transfer *self)
{
    const struct {
        CURLoption option;
        void *value;
    } rows[] = {
        { CURLOPT_CURLU, self->place.url },
        { CURLOPT_PRIVATE, self },
        { CURLOPT_WRITEDATA, self },
        { CURLOPT_HEADERDATA, self },
        { CURLOPT_ERRORBUFFER, self->text },
        { CURLOPT_HTTPHEADER, self->headers },
    };
    CURLcode code = CURLE_OK;

    for (size_t i = 0; !code && i < sizeof(rows) / sizeof(rows[0]); i++)
        code = bal_curl_use()->easy_setopt(self->easy, rows[i].option,
                                           rows[i].value);
    if (!code)
        code = bal_curl_use()->easy_setopt(self->easy, CURLOPT_WRITEFUNCTION,
                                           on_body);
    if (!code)
        code = bal_curl_use()->easy_setopt(self->easy, CURLOPT_HEADERFUNCTION,
                                           on_header);
    if (!code)
        code = bal_curl_use()->easy_setopt(self->easy, CURLOPT_USERAGENT,
                                           "ballast/" BAL_VERSION);
    if (!code && self->request.ca)
        code = bal_curl_use()->easy_setopt(self->easy, CURLOPT_CAINFO,
                                           self->request.ca);
    /* Set, it takes the place of the environment's no_proxy. */
    if (!code && self->place.loopback)
        code = bal_curl_use()->easy_setopt(self->easy, CURLOPT_NOPROXY, "*");
    return code;
}

int bal_transfer_arm(bal_transfer *self, double seconds, bal_error *err)
{
    double milliseconds = seconds * 1000;
    long most = 1;

    if (milliseconds > 1)
        most = milliseconds < INT_MAX ? (long)milliseconds : INT_MAX;
    bal_buf_clear(&self->head);
    bal_buf_clear(&self->body);
    self->header_bytes = 0;
    self->rc = 0;
    self->longer = false;
    self->seconds = seconds;
    self->text[0] = '\0';
    bal_curl_use()->easy_reset(self->easy);
    CURLcode code = set_numbers(self->easy, most);
    if (!code)
        code = set_pointers(self);
    if (!code)
        code = set_request(self);
    if (!code && self->request.flags & BAL_HTTP_BULK)
        code = set_bulk(self->easy);
    if (code == CURLE_OUT_OF_MEMORY)
        return bal_fail_memory(err, "a request");
    if (code)
        return bal_fail(err, BAL_EIO, "libcurl: %s",
                        bal_curl_use()->easy_strerror(code));
    return 0;
}

void bal_transfer_end(const bal_transfer *self, CURLcode code,
                      bal_http_end *end)
{
    long status = 0;
    curl_off_t asked = 0;
    curl_off_t connected = 0;

    *end = (bal_http_end){ .code = code, .text = self->text };
    bal_curl_use()->easy_getinfo(self->easy, CURLINFO_RESPONSE_CODE, &status);
    bal_curl_use()->easy_getinfo(self->easy, CURLINFO_RETRY_AFTER, &asked);
    bal_curl_use()->easy_getinfo(self->easy, CURLINFO_PRETRANSFER_TIME_T,
                                 &connected);
    bal_curl_use()->easy_getinfo(self->easy, CURLINFO_OS_ERRNO, &end->os);
    end->status = (int)status;
    end->asked = asked > 0 ? (double)asked : 0;
    end->connected = connected > 0;
}

int bal_transfer_failed(const bal_transfer *self, const bal_http_end *end,
                        bal_error *err)
{
    const char *where = bal_buf_string(&self->place.text);
    double seconds = self->seconds;

    if (self->rc == BAL_ENOMEM)
        return bal_fail_memory(err, where);
    if (end->code == CURLE_ABORTED_BY_CALLBACK)
        return bal_fail(err, BAL_ECANCELLED, "cancelled");
    if (self->rc && self->header_bytes > HEADERS_MAX)
        return bal_fail(err, BAL_EIO, "'%s': headers of more than %d bytes",
                        where, HEADERS_MAX);
    if (self->rc)
        return bal_fail(err, BAL_EIO, "'%s': an answer of more than %zu bytes",
                        where, self->body.ceiling);
    if (!end->connected && seconds > CONNECT_SECONDS)
        seconds = CONNECT_SECONDS;
    return bal_http_failed(&self->place, end, seconds, err);
}

void bal_transfer_rest(bal_transfer *self)
{
    bal_curl_use()->slist_free_all(self->headers);
    self->headers = NULL;
    bal_http_place_done(&self->place);
    self->state = BAL_TRANSFER_IDLE;
}

void bal_transfer_done(bal_transfer *self)
{
    bal_transfer_rest(self);
    bal_curl_use()->easy_cleanup(self->easy);
    self->easy = NULL;
    bal_buf_done(&self->head);
    bal_buf_done(&self->body);
}
