/* One request after the other per thread, by libcurl's easy interface: a handle
 * keeps its connection, and as many handles are made as threads ask at once.
 *
 * Every request here says the same when it is said twice, so what was cut off
 * or timed out is tried again whatever the method; signed anew, for a signature
 * is good for a quarter of an hour. */
#include "blocks/s3_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/signals.h"

enum { XML_MOST = 8 << 20 };

/* Seconds for one try of anything; a stall ends it much earlier. */
static const double try_seconds = 3600;

int bal_s3_client_init(bal_s3_client *self, const char *rest, bal_error *err)
{
    pthread_mutex_init(&self->lock, NULL);
    self->random = (uint64_t)bal_clock_now() ^ (uint64_t)getpid() << 32;
    return bal_s3_place_init(&self->place, rest, err);
}

static void link_free(bal_s3_link *self)
{
    bal_transfer_done(&self->transfer);
    bal_buf_done(&self->url);
    for (size_t i = 0; i < sizeof(self->lines) / sizeof(self->lines[0]); i++)
        bal_buf_done(&self->lines[i]);
    free(self);
}

void bal_s3_client_done(bal_s3_client *self)
{
    while (self->idle) {
        bal_s3_link *link = self->idle;
        self->idle = link->next;
        link_free(link);
    }
    bal_s3_place_done(&self->place);
    pthread_mutex_destroy(&self->lock);
}

static int take_link(bal_s3_link **out, bal_s3_client *self, bal_error *err)
{
    int rc = bal_curl_load(err);
    if (rc)
        return rc;
    pthread_mutex_lock(&self->lock);
    *out = self->idle;
    if (*out)
        self->idle = (*out)->next;
    pthread_mutex_unlock(&self->lock);
    if (!*out)
        *out = calloc(1, sizeof(**out));
    return *out ? 0 : bal_fail_memory(err, "a request");
}

void bal_s3_reply_done(bal_s3_reply *self)
{
    bal_s3_client *client = self->client;
    if (!self->link)
        return;

    bal_transfer_rest(&self->link->transfer);
    pthread_mutex_lock(&client->lock);
    self->link->next = client->idle;
    client->idle = self->link;
    pthread_mutex_unlock(&client->lock);
    self->link = NULL;
}

/* ---- a request ---------------------------------------------------------- */

static size_t count_pairs(const bal_sigv4_pair pairs[BAL_S3_PAIRS])
{
    size_t count = 0;

    while (count < BAL_S3_PAIRS && pairs[count].name)
        count++;
    return count;
}

/* The path as it is sent and signed. */
static int write_path(bal_buf *to, const bal_s3_place *place, const char *key,
                      bal_error *err)
{
    int rc = bal_buf_format(to, err, "%s/", place->path);

    if (!rc && key)
        rc = bal_sigv4_encode(to, place->prefix, BAL_SIGV4_SLASH, err);
    if (!rc && key)
        rc = bal_sigv4_encode(to, key, BAL_SIGV4_SLASH, err);
    return rc;
}

/* Over TLS nobody changes a body on its way; where there is none its hash is
 * signed. */
static int hash_body(char out[65], const bal_s3_place *place, bal_bytes body,
                     bal_error *err)
{
    bal_sha256 hash;

    if (place->tls && body.len) {
        memcpy(out, BAL_SIGV4_UNSIGNED, sizeof(BAL_SIGV4_UNSIGNED));
        return 0;
    }
    int rc = bal_sha256_of(&hash, &body, 1, err);
    if (!rc)
        bal_sha256_hex(out, &hash);
    return rc;
}

static int add_line(bal_s3_link *link, size_t *count, const char *name,
                    const char *value, bal_error *err)
{
    bal_buf *line = &link->lines[*count];

    bal_buf_clear(line);
    int rc = bal_buf_format(line, err, "%s: %s", name, value);
    if (!rc)
        link->headers[(*count)++] = line->data;
    link->headers[*count] = NULL;
    return rc;
}

/* The header lines, the last of which signs the others. */
static int write_lines(bal_s3_link *link, const bal_s3_place *place,
                       const bal_s3_call *call, const char *path,
                       const char *payload, bal_error *err)
{
    BAL_LOCAL(bal_buf) value = { 0 };
    const bal_sigv4_scope scope = { place->region, "s3", bal_clock_now() };
    bal_sigv4_pair headers[BAL_S3_PAIRS + 4];
    size_t own = count_pairs(call->headers), count = 0, lines = 0;
    char date[17];

    bal_sigv4_date(date, scope.at);
    memcpy(headers, call->headers, own * sizeof(headers[0]));
    count = own;
    headers[count++] = (bal_sigv4_pair){ "host", place->host };
    headers[count++] = (bal_sigv4_pair){ "x-amz-content-sha256", payload };
    headers[count++] = (bal_sigv4_pair){ "x-amz-date", date };
    if (place->keys.session)
        headers[count++] =
            (bal_sigv4_pair){ "x-amz-security-token", place->keys.session };
    const bal_sigv4_request request = {
        .method = call->method,
        .path = path,
        .query = call->query,
        .query_count = count_pairs(call->query),
        .headers = headers,
        .header_count = count,
        .payload = payload,
    };
    int rc = bal_sigv4_sign(&value, &place->keys, &scope, &request, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = add_line(link, &lines, headers[i].name, headers[i].value, err);
    return rc ? rc : add_line(link, &lines, "Authorization", value.data, err);
}

static int write_url(bal_buf *to, const bal_s3_place *place,
                     const bal_s3_call *call, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) query = { 0 };
    int rc =
        bal_sigv4_query(&query, call->query, count_pairs(call->query), err);

    bal_buf_clear(to);
    return rc ? rc
              : bal_buf_format(to, err, "%s%s%s%s", place->origin, path,
                               query.len ? "?" : "", bal_buf_string(&query));
}

static int no_keys(const bal_s3_place *place, bal_error *err)
{
    return bal_hint(
        err, bal_fail(err, BAL_EIO, "there are no keys for '%s'", place->text),
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "AWS_PROFILE, say them");
}

/* Ready to be sent, and signed as of now. */
static int prepare(bal_s3_link *link, const bal_s3_place *place,
                   const bal_s3_call *call, const char *payload, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = write_path(&path, place, call->key, err);

    if (!rc)
        rc = write_url(&link->url, place, call, path.data, err);
    if (!rc)
        rc = write_lines(link, place, call, path.data, payload, err);
    if (rc)
        return rc;
    const bal_http_request request = {
        .method = call->method,
        .url = link->url.data,
        .type = "application/octet-stream",
        .body = call->body,
        .headers = link->headers,
        .ca = place->ca,
        .flags = BAL_HTTP_HEAD | BAL_HTTP_BULK,
    };
    bal_transfer_rest(&link->transfer);
    rc =
        bal_transfer_begin(&link->transfer, &request, NULL,
                           call->answer_max ? call->answer_max : XML_MOST, err);
    return rc ? rc : bal_transfer_arm(&link->transfer, try_seconds, err);
}

/* ---- tries -------------------------------------------------------------- */

/* 501 is an answer: the server does not know what was asked for. */
static bool again(const bal_transfer *transfer, const bal_http_end *end)
{
    if (transfer->rc)
        return false;
    if (end->code == CURLE_OPERATION_TIMEDOUT)
        return true;
    return bal_http_again(end) ||
           (end->code == CURLE_OK && end->status >= 500 && end->status != 501);
}

static double pause_of(bal_s3_client *self, unsigned tries, double asked)
{
    pthread_mutex_lock(&self->lock);
    double pause = bal_http_pause(&self->random, tries, asked);
    pthread_mutex_unlock(&self->lock);
    return pause;
}

static CURLcode perform(bal_transfer *transfer)
{
    bal_quiet pipe;

    bal_quiet_begin(&pipe);
    CURLcode code = bal_curl_use()->easy_perform(transfer->easy);
    bal_quiet_end(&pipe);
    return code;
}

/* A body that the server gave the length of, and was cut, is libcurl's
 * CURLE_PARTIAL_FILE; one without a length is not taken. */
static int take(bal_s3_reply *out, const bal_http_end *end, bal_error *err)
{
    bal_transfer *transfer = &out->link->transfer;

    out->longer = transfer->longer;
    if (out->longer)
        bal_buf_clear(&transfer->body);
    if ((end->code || transfer->rc) && !out->longer)
        return bal_transfer_failed(transfer, end, err);
    out->status = end->status;
    out->body =
        (bal_bytes){ bal_buf_string(&transfer->body), transfer->body.len };
    return 0;
}

static int send_tries(bal_s3_reply *out, const bal_s3_call *call,
                      const char *payload, bal_error *err)
{
    bal_s3_client *client = out->client;
    bal_transfer *transfer = &out->link->transfer;
    bal_http_end end = { .code = CURLE_OK };

    for (unsigned tries = 0;; tries++) {
        int rc = prepare(out->link, &client->place, call, payload, err);
        if (rc)
            return rc;
        bal_transfer_end(transfer, perform(transfer), &end);
        if (tries + 1 >= client->place.tries || bal_signals_pending() ||
            !again(transfer, &end))
            return take(out, &end, err);
        double pause = pause_of(client, tries, end.asked);
        bal_trace("s3", "again=%u in=%.2f status=%d curl=%d", tries + 1, pause,
                  end.status, (int)end.code);
        bal_clock_sleep(pause);
    }
}

int bal_s3_send(bal_s3_reply *out, bal_s3_client *client,
                const bal_s3_call *call, bal_error *err)
{
    char payload[65];
    bal_s3_reply reply = { .client = client };

    if (!client->place.keys.access)
        return no_keys(&client->place, err);
    int rc = hash_body(payload, &client->place, call->body, err);
    if (!rc)
        rc = take_link(&reply.link, client, err);
    if (rc)
        return rc;
    rc = send_tries(&reply, call, payload, err);
    if (rc)
        bal_s3_reply_done(&reply);
    else
        *out = reply;
    return rc;
}

/* ---- answers ------------------------------------------------------------ */

bool bal_s3_reply_header(const bal_s3_reply *self, const char *name,
                         bal_buf *to)
{
    const bal_buf *head = &self->link->transfer.head;
    size_t len = strlen(name);

    bal_buf_clear(to);
    for (size_t at = 0; at < head->len;) {
        const char *line = head->data + at;
        size_t whole = strcspn(line, "\r\n");
        at += whole + strspn(line + whole, "\r\n");
        if (whole <= len || line[len] != ':' ||
            strncasecmp(line, name, len) != 0)
            continue;
        size_t skip = len + 1 + strspn(line + len + 1, " \t");
        skip = skip < whole ? skip : whole;
        while (whole > skip && strchr(" \t", line[whole - 1]))
            whole--;
        return !bal_buf_append(to, line + skip, whole - skip, NULL);
    }
    return false;
}
