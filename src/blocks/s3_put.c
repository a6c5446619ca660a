/* How a run comes to be in a bucket: kept in memory when it is staged, put
 * under its name when it is settled. A put is seen whole or not at all and
 * durable once it is answered, so there is nothing to rename and nothing to
 * sync. */
#include <string.h>

#include "blocks/s3.h"
#include "core/error.h"
#include "core/str.h"

enum { ONE_PUT = 64 << 20 }; /* bytes; what is longer goes in parts */

int bal_s3_stage(bal_backend *self, bal_staged *out, const char *name,
                 const bal_bytes *parts, size_t count, bal_error *err)
{
    bal_staged staged = { .name = bal_str_copy(name) };
    int rc = staged.name ? bal_s3_hold(&staged.temp, &bal_s3_of(self)->room,
                                       parts, count, err)
                         : bal_fail_memory(err, "a staged block");

    if (rc) {
        bal_str_free(staged.name);
        return rc;
    }
    staged.size = bal_s3_held(staged.temp).len;
    *out = staged;
    return 0;
}

void bal_s3_discard(bal_backend *self, bal_staged *staged)
{
    bal_str_free(staged->name);
    bal_s3_let_go(&bal_s3_of(self)->room, staged->temp);
    *staged = (bal_staged){ 0 };
}

/* ---- settle ------------------------------------------------------------- */

/* Has the name something? Of a bucket that is not there, the put will tell. */
static int look(s3_backend *self, const char *name, bool *there, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    const bal_s3_call call = { .method = "HEAD", .key = name };
    int rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;

    *there = reply.status == 200;
    if (!*there && reply.status != 404)
        rc = bal_s3_wrong(&reply, "looking at", name, err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* *status: as it was answered, of what a put of its own will not fail by. */
static int put(s3_backend *self, const bal_staged *staged, bool keeps,
               int *status, bal_error *err)
{
    bal_s3_reply reply = { 0 };
    bal_s3_call call = {
        .method = "PUT",
        .key = staged->name,
        .body = bal_s3_held(staged->temp),
    };
    if (keeps)
        call.headers[0] = (bal_sigv4_pair){ "if-none-match", "*" };
    int rc = bal_s3_send(&reply, &self->client, &call, err);
    if (rc)
        return rc;
    *status = reply.status;
    bool told =
        reply.status == 412 || reply.status == 409 || reply.status == 501;
    if (reply.status != 200 && !(keeps && told))
        rc = bal_s3_wrong(&reply, "writing", staged->name, err);
    bal_s3_reply_done(&reply);
    return rc;
}

/* By looking first, where the server cannot do both in one: two writers of a
 * block on two machines may then both write it. */
static int settle_looking(s3_backend *self, bal_staged *staged, bal_error *err)
{
    int status = 0;
    int rc = staged->keeps ? look(self, staged->name, &staged->kept, err) : 0;

    return rc || staged->kept ? rc : put(self, staged, false, &status, err);
}

/* 409: somebody else puts it just now, and one of the two came first. */
static int settle_whole(s3_backend *self, bal_staged *staged, bal_error *err)
{
    bool can = false;
    int status = 0;
    int rc = staged->keeps ? bal_s3_conditional(self, &can, err) : 0;

    if (rc || !can)
        return rc ? rc : settle_looking(self, staged, err);
    rc = put(self, staged, true, &status, err);
    if (rc)
        return rc;
    staged->kept = status == 412;
    if (status == 501)
        bal_s3_not_conditional(self);
    return status == 501 || status == 409 ? settle_looking(self, staged, err)
                                          : 0;
}

static int settle_parts(s3_backend *self, bal_staged *staged, bal_error *err)
{
    const bal_bytes bytes = bal_s3_held(staged->temp);
    int rc = staged->keeps ? look(self, staged->name, &staged->kept, err) : 0;

    return rc || staged->kept
               ? rc
               : bal_s3_put_parts(self, staged->name, bytes, err);
}

typedef struct settling {
    s3_backend *backend;
    bal_staged *staged;
} settling;

static int settle_one(size_t i, void *ctx, bal_error *err)
{
    settling *self = ctx;
    bal_staged *staged = &self->staged[i];

    staged->kept = false;
    int rc = staged->size > ONE_PUT ? settle_parts(self->backend, staged, err)
                                    : settle_whole(self->backend, staged, err);
    if (!rc && !staged->kept)
        bal_s3_discard(&self->backend->base, staged);
    return rc;
}

int bal_s3_settle(bal_backend *base, bal_staged *staged, size_t count,
                  bal_work *work, bal_error *err)
{
    settling all = { bal_s3_of(base), staged };
    int rc = bal_s3_ready(all.backend, true, err);

    if (!rc && work)
        return bal_pool_run(work, count, settle_one, &all, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = settle_one(i, &all, err);
    return rc;
}
