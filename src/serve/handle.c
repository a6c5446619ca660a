/* From a request to its reply: what was ready, or the route's handler with what
 * it needs. */
#include <string.h>

#include "core/error.h"
#include "serve/turn.h"

/* ---- errors ------------------------------------------------------------- */

static void set_ready(bal_turn *self, bal_reply *reply)
{
    self->ready = bal_answer_make(self, reply);
    bal_reply_done(reply);
}

void bal_turn_refuse(bal_turn *self, const bal_refusal *refusal)
{
    bal_reply reply = { 0 };

    bal_ready_free(self->ready);
    bal_reply_error(&reply, refusal->status, NULL, refusal->message);
    if (refusal->allow)
        bal_reply_header(&reply, "allow", refusal->allow);
    bal_buf_clear(&self->refusal);
    if (self->close && reply.body.len &&
        bal_buf_append(&self->refusal, reply.body.data, reply.body.len, NULL))
        bal_buf_clear(&self->refusal);
    set_ready(self, &reply);
}

/* What a handler's failure is told as. What the disk, the memory or the
 * database would not do is for who runs the server: it may hold paths. */
static void fail(bal_reply *reply, int rc, const bal_error *err)
{
    bool own = rc == BAL_EIO || rc == BAL_ENOMEM || rc == BAL_EBUSY;
    /* That something is there and closed is not told. */
    const bal_code_row *row =
        bal_code_find(rc == BAL_EDENIED ? BAL_ENOTFOUND : rc);
    int status = reply->status >= 400 ? reply->status : row->http;

    if (own || status >= 500)
        bal_warn("serve", "status=%d %s", status, err->text);
    reply->header_count = 0;
    bal_reply_error(reply, status, row->word,
                    own ? "the server's log says why" : err->text);
}

/* ---- the handler -------------------------------------------------------- */

/* Store and tenant, as far as the route has them. */
static int furnish(bal_turn *self, bal_worker *worker, bal_error *err)
{
    bal_request *request = &self->request;
    bal_need need = request->route->need;

    request->work = worker->work;
    int rc = bal_worker_store(&request->store, worker, err);
    /* No store is the server's trouble; 404 would say that things are gone. */
    if (rc == BAL_ENOTFOUND)
        rc = bal_fail(err, BAL_EIO, "the store is not there any more");
    if (rc || (need != BAL_NEED_READ && need != BAL_NEED_WRITE))
        return rc;
    return bal_tenant_open(&request->tenant, request->store, request->args[0],
                           err);
}

static int handle(bal_turn *self, bal_reply *reply, bal_worker *worker,
                  bal_error *err)
{
    bal_request *request = &self->request;

    if (bal_stopped(&self->daemon->stopped))
        return bal_fail(err, BAL_EBUSY, "the server stops");
    int rc = worker ? furnish(self, worker, err) : 0;
    if (rc)
        return rc;
    return request->route->handle(reply, request, err);
}

static void answer(bal_turn *self, bal_reply *reply, bal_worker *worker)
{
    bal_error err = { 0 };

    int rc = handle(self, reply, worker, &err);
    if (rc)
        fail(reply, rc, &err);
    if (!reply->status)
        reply->status = 200;
    if (rc == BAL_EIO && worker && !reply->after) {
        /* Perhaps it is the store's; what comes next finds out. */
        bal_tenant_free(BAL_TAKE(self->request.tenant));
        bal_worker_close(worker);
    }
}

/* ---- what was ready ----------------------------------------------------- */

/* What the reply depends on but the store: not on the token, since a route's
 * tenant may be read or the request does not come here. */
static int key_of(bal_buf *key, const bal_request *request)
{
    size_t index = (size_t)(request->route - bal_routes);
    int rc = bal_buf_append(key, &index, sizeof(index), NULL);

    for (size_t i = 0; !rc && i < BAL_ROUTE_ARGS && request->args[i]; i++)
        rc = bal_buf_append(key, request->args[i], strlen(request->args[i]) + 1,
                            NULL);
    for (size_t i = 0; !rc && i < request->query_count; i++) {
        const bal_field *field = &request->query[i];
        rc = bal_buf_append(key, field->name, strlen(field->name) + 1, NULL);
        if (!rc)
            rc = bal_buf_append(key, field->value, strlen(field->value) + 1,
                                NULL);
    }
    return rc;
}

static bool find_ready(bal_turn *self)
{
    BAL_LOCAL(bal_buf) key = { 0 };
    uint64_t changes = 0;

    if (bal_daemon_changes(self->daemon, &changes) ||
        key_of(&key, &self->request))
        return false;
    self->ready =
        bal_reply_cache_find(self->daemon->cache, key.data, key.len, changes);
    if (self->ready)
        bal_metrics_add(self->daemon->metrics, BAL_COUNT_HITS, 1);
    return self->ready != NULL;
}

static void keep_ready(bal_turn *self, uint64_t changes)
{
    BAL_LOCAL(bal_buf) key = { 0 };

    if (self->ready && !key_of(&key, &self->request))
        bal_reply_cache_put(self->daemon->cache, key.data, key.len, changes,
                            self->ready);
}

bool bal_turn_at_once(bal_turn *self)
{
    bal_reply reply = { 0 };
    bal_speed speed = self->request.route->speed;

    if (speed == BAL_SPEED_CACHED)
        return find_ready(self);
    if (speed != BAL_SPEED_AT_ONCE)
        return false;
    answer(self, &reply, NULL);
    set_ready(self, &reply);
    return true;
}

void bal_turn_by_worker(bal_turn *self, bal_worker *worker)
{
    bal_reply reply = { 0 };
    bal_daemon *daemon = self->daemon;
    uint64_t changes = 0;
    bool keep = self->request.route->speed == BAL_SPEED_CACHED &&
                !bal_daemon_changes(daemon, &changes);

    answer(self, &reply, worker);
    keep = keep && reply.cacheable && reply.status == 200 && !reply.source &&
           !self->close;
    bal_job job = { .step = reply.after, .ctx = reply.after_ctx };
    job.tenant = BAL_TAKE(self->request.tenant);
    bal_upload upload = self->upload;
    self->upload.dir = NULL;
    set_ready(self, &reply);
    if (keep)
        keep_ready(self, changes);
    bal_daemon_resume(daemon, self->connection);

    /* self is the other thread's again. */
    if (job.step)
        bal_worker_take(worker, &job);
    else
        bal_tenant_free(job.tenant);
    bal_upload_done(&upload);
}
