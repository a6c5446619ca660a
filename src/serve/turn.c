/* A request as libmicrohttpd brings it: first its line, then its head, its body
 * in pieces, its end; and after a worker had it, once more. */
#include "serve/turn.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"

enum { DRAIN_MAX = 64 << 10, JSON_MAX = 1 << 20, LOST_MAX = 64 << 20 };

bal_turn *bal_turn_new(bal_daemon *daemon, struct MHD_Connection *connection,
                       const char *uri)
{
    size_t len = strnlen(uri, BAL_URI_LONGEST + 1);
    bal_turn *self = calloc(1, sizeof(*self) + len + 1);
    const union MHD_ConnectionInfo *info = daemon->mhd->get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    if (!self)
        return NULL;
    self->daemon = daemon;
    self->connection = connection;
    self->link = info ? info->socket_context : NULL;
    self->at = bal_clock_now();
    self->began = bal_clock_ticks();
    self->method = "-";
    self->arena.ceiling = 16 << 20;
    memcpy(self->uri, uri, len);
    bal_metrics_add(daemon->metrics, BAL_COUNT_IN_FLIGHT, 1);
    if (self->link)
        bal_link_phase(self->link, BAL_PHASE_HEAD);
    return self;
}

static void tell(bal_turn *self, bool ok)
{
    bal_daemon *daemon = self->daemon;
    double seconds = bal_clock_ticks() - self->began;
    const bal_route *route = self->request.route;
    uint64_t bytes = ok ? self->sent : 0;

    bal_metrics_add(daemon->metrics, BAL_COUNT_IN_FLIGHT, -1);
    bal_metrics_add(daemon->metrics, BAL_COUNT_BYTES_IN,
                    (int64_t)self->received);
    bal_metrics_add(daemon->metrics, BAL_COUNT_BYTES_OUT, (int64_t)bytes);
    bal_metrics_request(daemon->metrics,
                        route ? (size_t)(route - bal_routes) : bal_route_count,
                        self->status, seconds);
    bal_log_line line = {
        .at = self->at,
        .method = self->method,
        .path = self->uri,
        .peer = self->link ? bal_link_peer(self->link) : "-",
        .status = self->status,
        .bytes = bytes,
        .seconds = seconds,
        .token = self->request.scope ? self->request.scope->number : 0,
    };
    bal_log_write(daemon->log, &line);
}

void bal_turn_end(bal_turn *self, bool ok)
{
    tell(self, ok);
    if (self->link)
        bal_link_phase(self->link, BAL_PHASE_IDLE);
    bal_limits_leave(self->daemon->limits, self->limited);
    bal_upload_done(&self->upload);
    bal_buf_done(&self->body);
    bal_buf_done(&self->refusal);
    bal_ready_free(self->ready);
    bal_keys_free(self->keys);
    bal_arena_done(&self->arena);
    free(self);
}

/* ---- the head ----------------------------------------------------------- */

/* A body that is not drained ends the connection. */
static bool refuse_by(bal_turn *self, const bal_refusal *refusal)
{
    self->close =
        self->close || self->heads.chunked || self->heads.length > DRAIN_MAX;
    bal_turn_refuse(self, refusal);
    return false;
}

static bool refuse(bal_turn *self, int status, const char *message)
{
    bal_refusal refusal = { .status = status, .message = message };

    return refuse_by(self, &refusal);
}

/* What cannot be trusted to end where it seems to. */
static bool refuse_and_close(bal_turn *self, int status, const char *message)
{
    self->close = true;
    return refuse(self, status, message);
}

static enum MHD_Result add_field(void *ctx, enum MHD_ValueKind kind,
                                 const char *name, size_t name_len,
                                 const char *value, size_t value_len)
{
    (void)kind;
    bal_heads_add(ctx, name, name_len, value ? value : "", value_len);
    return MHD_YES;
}

static bool read_head(bal_turn *self, const char *version)
{
    bal_heads *heads = &self->heads;

    self->daemon->mhd->get_connection_values_n(
        self->connection, MHD_HEADER_KIND, add_field, heads);
    int status = bal_heads_end(heads);
    if (status)
        return refuse_and_close(self, status, heads->unsound);
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return refuse_and_close(self, 505, "only HTTP/1.1 and HTTP/1.0");
    if (heads->chunked && !strcmp(version, "HTTP/1.0"))
        return refuse_and_close(self, 400, "HTTP/1.0 knows no chunks");
    if (atomic_load(&self->daemon->stopping))
        return refuse_and_close(self, 503, "the server stops");
    return true;
}

static bool find_route(bal_turn *self)
{
    bal_refusal refusal = { 0 };
    bal_error err = { 0 };
    bal_uri uri;

    if (strlen(self->uri) > BAL_URI_LONGEST)
        return refuse_and_close(self, 414, "the path is too long");
    int rc =
        bal_uri_parse(&uri, self->uri, strlen(self->uri), &self->arena, &err);
    if (rc)
        return refuse_and_close(self, rc == BAL_ENOMEM ? 503 : 400, err.text);
    self->request.query = uri.query;
    self->request.query_count = uri.query_count;
    if (bal_dispatch(&self->request, &refusal, self->method, &uri,
                     &self->arena))
        return true;
    return refuse_by(self, &refusal);
}

static void fill_request(bal_turn *self)
{
    bal_request *request = &self->request;
    const char *const *values = self->heads.values;

    request->if_match = values[BAL_HEAD_IF_MATCH];
    request->if_none_match = values[BAL_HEAD_IF_NONE_MATCH];
    request->if_range = values[BAL_HEAD_IF_RANGE];
    request->range = values[BAL_HEAD_RANGE];
    request->local = self->link && bal_link_local(self->link);
    request->arena = &self->arena;
    request->daemon = self->daemon;
    self->keys = bal_keyring_take(self->daemon->keyring);
    request->scope =
        bal_keys_find(self->keys, values[BAL_HEAD_AUTHORIZATION], self->at);
}

static bool may(bal_turn *self)
{
    bal_refusal refusal = { 0 };
    size_t number = self->request.scope->number;

    if (!bal_limits_enter(self->daemon->limits, number, self->began))
        return refuse(self, 429, "too many requests with this token");
    self->limited = number;
    if (bal_authorise(&self->request, &refusal) &&
        bal_query_known(&self->request, &refusal))
        return true;
    return refuse_by(self, &refusal);
}

/* A body of the kind that the route takes, and not too much of it. */
static bool check_body(bal_turn *self)
{
    const bal_heads *heads = &self->heads;
    uint64_t most[] = {
        [BAL_BODY_NONE] = DRAIN_MAX,
        [BAL_BODY_JSON] = JSON_MAX,
        [BAL_BODY_UPLOAD] = self->daemon->max_body,
    };
    bal_body_kind kind = self->request.route->body;

    if (kind != BAL_BODY_NONE && !heads->chunked &&
        !heads->values[BAL_HEAD_CONTENT_LENGTH])
        return refuse_and_close(self, 411, "a body needs a length");
    if (heads->length > most[kind])
        return refuse_and_close(self, 413, "the body is too large");
    self->body.ceiling = JSON_MAX + 1;
    if (kind != BAL_BODY_UPLOAD)
        return true;
    bal_error err = { 0 };
    if (!bal_upload_begin(&self->upload, self->daemon->home, &err))
        return true;
    bal_warn("serve", "status=503 %s", err.text);
    return refuse(self, 503, "the body could not be kept");
}

/* ---- the body ----------------------------------------------------------- */

static int keep(bal_turn *self, const char *data, size_t len)
{
    bal_error err = { 0 };

    if (self->request.route->body == BAL_BODY_JSON)
        return self->received + len > JSON_MAX ||
                       bal_buf_append(&self->body, data, len, NULL)
                   ? 413
                   : 0;
    if (len > self->daemon->max_body - self->received)
        return 413;
    if (!bal_upload_add(&self->upload, self->received, data, len, &err)) {
        bal_metrics_add(self->daemon->metrics, BAL_COUNT_UPLOAD, (int64_t)len);
        return 0;
    }
    bal_warn("serve", "status=503 %s", err.text);
    return 503;
}

/* Says so past libmicrohttpd, which takes no reply in the middle of a body, and
 * with one before it would close while the client still sends: who sends learns
 * why only if that is read for a while. */
static enum MHD_Result lose(bal_turn *self)
{
    self->stage = BAL_TURN_LOST;
    self->status = self->ready ? self->ready->status : 503;
    if (!self->link)
        return MHD_NO;
    bal_link_phase(self->link, BAL_PHASE_BODY);
    bal_link_refuse(self->link, self->status, bal_buf_string(&self->refusal));
    bal_upload_done(&self->upload);
    bal_buf_done(&self->body);
    self->received = 0;
    return MHD_YES;
}

static enum MHD_Result lose_with(bal_turn *self, int status)
{
    (void)refuse_and_close(self, status,
                           status == 413 ? "the body is too large"
                                         : "the body could not be kept");
    return lose(self);
}

static enum MHD_Result take(bal_turn *self, const char *data, size_t len)
{
    if (self->stage == BAL_TURN_BODY) {
        int status = keep(self, data, len);
        if (status)
            return lose_with(self, status);
    }
    self->received += len;
    if (self->stage == BAL_TURN_DRAIN && self->received > DRAIN_MAX)
        return MHD_NO;
    if (self->stage == BAL_TURN_LOST && self->received > LOST_MAX)
        return MHD_NO;
    return MHD_YES;
}

/* Is the body on its way, and known where it ends? */
static bool comes_anyway(const bal_turn *self)
{
    return !self->heads.unsound && !self->heads.values[BAL_HEAD_EXPECT] &&
           self->refusal.len && self->link && bal_link_plain(self->link);
}

static enum MHD_Result begin(bal_turn *self, const char *method,
                             const char *version)
{
    bool has_body;

    self->method = method;
    bool ok = read_head(self, version) && find_route(self);
    fill_request(self);
    ok = ok && may(self) && check_body(self);
    has_body = self->heads.values[BAL_HEAD_TRANSFER_ENCODING] ||
               self->heads.length > 0;
    if (!ok && self->close)
        return has_body && comes_anyway(self) ? lose(self)
                                              : bal_answer_queue(self);
    bool wanted = ok && self->request.route->body != BAL_BODY_NONE;
    self->stage = wanted ? BAL_TURN_BODY : BAL_TURN_DRAIN;
    if (self->link)
        bal_link_phase(self->link, BAL_PHASE_BODY);
    return MHD_YES;
}

/* ---- the end ------------------------------------------------------------ */

/* The connection sleeps until a worker has made the reply. */
static enum MHD_Result ask(bal_turn *self)
{
    self->stage = BAL_TURN_ASKED;
    bal_daemon_suspend(self->daemon, self->connection);
    if (bal_workers_queue(self->daemon->workers, self))
        return MHD_YES;
    (void)refuse(self, 503, "the server is busy");
    bal_daemon_resume(self->daemon, self->connection);
    return MHD_YES;
}

/* A body takes its time: the token may be no longer one. */
static bool may_still(bal_turn *self)
{
    bal_refusal refusal = { 0 };
    bal_keys *keys = self->keys;

    if (self->request.route->body == BAL_BODY_NONE || self->ready)
        return true;
    self->keys = bal_keyring_take(self->daemon->keyring);
    self->request.scope =
        bal_keys_find(self->keys, self->heads.values[BAL_HEAD_AUTHORIZATION],
                      bal_clock_now());
    bal_keys_free(keys);
    return bal_authorise(&self->request, &refusal) || refuse_by(self, &refusal);
}

static enum MHD_Result finish(bal_turn *self)
{
    if (self->link)
        bal_link_phase(self->link, BAL_PHASE_REPLY);
    bal_upload_end(&self->upload);
    if (self->request.route && !may_still(self))
        return bal_answer_queue(self);
    self->request.upload = self->upload.dir;
    self->request.body =
        (bal_bytes){ bal_buf_string(&self->body), self->body.len };
    if (self->ready || bal_turn_at_once(self))
        return bal_answer_queue(self);
    return ask(self);
}

enum MHD_Result bal_turn_step(bal_turn *self, const char *method,
                              const char *version, const char *data,
                              size_t *len)
{
    if (self->stage == BAL_TURN_NEW)
        return begin(self, method, version);
    if (*len) {
        size_t taken = *len;
        *len = 0;
        return take(self, data, taken);
    }
    if (self->stage == BAL_TURN_LOST)
        return MHD_NO;
    if (self->stage == BAL_TURN_ASKED)
        return bal_answer_queue(self);
    return self->stage == BAL_TURN_OVER ? MHD_YES : finish(self);
}
