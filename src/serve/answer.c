/* From a reply to what libmicrohttpd sends: bytes from memory, a file by
 * sendfile, or a file that grows by a callback that waits for it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/str.h"
#include "serve/range.h"
#include "serve/turn.h"

enum { PIECE = 128 << 10 };

typedef struct made {
    bal_ready ready;
    const bal_mhd *mhd;
    struct MHD_Response *full;
    struct MHD_Response *bare; /* for 304; NULL: no etag */
    char *etag;
} made;

/* What a reader of a growing file knows. */
typedef struct growing {
    bal_daemon *daemon;
    struct MHD_Connection *connection;
    bal_spooled *source;
    uint64_t offset;
} growing;

/* ---- files that grow ---------------------------------------------------- */

static void wake(void *ctx)
{
    growing *self = ctx;

    bal_daemon_resume(self->daemon, self->connection);
}

/* Looks twice: the connection has to be suspended before it may be woken. */
static ssize_t read_growing(void *ctx, uint64_t at, char *to, size_t len)
{
    growing *self = ctx;
    uint64_t offset = self->offset + at;
    bal_waker waker = { wake, self };
    size_t got = 0;

    int rc = bal_spooled_read(self->source, offset, to, len, &got, NULL, NULL);
    if (rc)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (got)
        return (ssize_t)got;
    bal_daemon_suspend(self->daemon, self->connection);
    rc = bal_spooled_read(self->source, offset, to, len, &got, &waker, NULL);
    if (rc || got)
        bal_daemon_resume(self->daemon, self->connection);
    /* 0 has it asked for again, when resumed: a failure is met then. */
    return 0;
}

static void free_growing(void *ctx)
{
    growing *self = ctx;

    bal_spooled_free(self->source);
    free(self);
}

/* ---- bodies ------------------------------------------------------------- */

static struct MHD_Response *from_memory(const bal_mhd *mhd, bal_reply *reply)
{
    static char nothing[] = "";
    bal_buf *body = &reply->body;
    bool empty = !body->len;

    struct MHD_Response *response = mhd->create_response_from_buffer(
        body->len, empty ? nothing : body->data,
        empty ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (response && !empty)
        memset(body, 0, sizeof(*body));
    return response;
}

static struct MHD_Response *from_file(const bal_mhd *mhd,
                                      const bal_reply *reply, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return NULL;
    struct MHD_Response *response = mhd->create_response_from_fd_at_offset64(
        reply->length, copy, reply->offset);
    if (!response)
        close(copy);
    return response;
}

static struct MHD_Response *from_growing(bal_turn *turn, bal_reply *reply)
{
    growing *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->daemon = turn->daemon;
    self->connection = turn->connection;
    self->source = BAL_TAKE(reply->source);
    self->offset = reply->offset;
    struct MHD_Response *response =
        turn->daemon->mhd->create_response_from_callback(
            reply->length, PIECE, read_growing, self, free_growing);
    if (!response)
        free_growing(self);
    return response;
}

/* HEAD: a length without a body. Nobody reads it. */
static ssize_t read_nothing(void *ctx, uint64_t at, char *to, size_t len)
{
    (void)ctx;
    (void)at;
    (void)to;
    (void)len;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *body_of(bal_turn *turn, bal_reply *reply)
{
    const bal_mhd *mhd = turn->daemon->mhd;

    if (!reply->length || reply->body.len)
        return from_memory(mhd, reply);
    if (!reply->source)
        return mhd->create_response_from_callback(reply->length, PIECE,
                                                  read_nothing, NULL, NULL);
    int fd = bal_spooled_fd(reply->source);
    if (fd >= 0)
        return from_file(mhd, reply, fd);
    return from_growing(turn, reply);
}

/* ---- header fields ------------------------------------------------------ */

static bool add(const made *self, struct MHD_Response *to, const char *name,
                const char *value)
{
    return self->mhd->add_response_header(to, name, value) == MHD_YES;
}

/* Those that the handler did not set. */
static bool add_usual(const made *self, struct MHD_Response *to,
                      const bal_turn *turn, const bal_reply *reply)
{
    bool again = reply->status == 429 || reply->status == 503;
    bool ok = add(self, to, "x-content-type-options", "nosniff");

    if (ok && reply->status != 304)
        ok = add(self, to, "content-type",
                 reply->type ? reply->type : "application/json");
    if (ok && reply->status >= 400)
        ok = add(self, to, "cache-control", "no-store");
    if (ok && again)
        ok = add(self, to, "retry-after", "1");
    if (ok && turn->close)
        ok = add(self, to, "connection", "close");
    return ok;
}

static bool add_all(const made *self, struct MHD_Response *to,
                    const bal_turn *turn, const bal_reply *reply)
{
    bool ok = add_usual(self, to, turn, reply);

    for (size_t i = 0; ok && i < reply->header_count; i++)
        ok = add(self, to, reply->headers[i].name, reply->headers[i].value);
    return ok;
}

static const char *etag_of(const bal_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        if (!strcasecmp(reply->headers[i].name, "etag"))
            return reply->headers[i].value;
    }
    return NULL;
}

/* What stands in for it where the client has it. */
static bool make_bare(made *self, const bal_turn *turn, const bal_reply *reply)
{
    const char *etag = reply->status < 300 ? etag_of(reply) : NULL;
    static char nothing[] = "";

    if (!etag)
        return true;
    self->etag = bal_str_copy(etag);
    self->ready.etag = self->etag;
    self->bare = self->mhd->create_response_from_buffer(0, nothing,
                                                        MHD_RESPMEM_PERSISTENT);
    if (!self->etag || !self->bare)
        return false;
    bool ok = !turn->close || add(self, self->bare, "connection", "close");
    for (size_t i = 0; ok && i < reply->header_count; i++) {
        if (strcasecmp(reply->headers[i].name, "content-range") != 0)
            ok = add(self, self->bare, reply->headers[i].name,
                     reply->headers[i].value);
    }
    return ok;
}

static void free_made(bal_ready *ready)
{
    made *self = (made *)ready;

    if (self->full)
        self->mhd->destroy_response(self->full);
    if (self->bare)
        self->mhd->destroy_response(self->bare);
    bal_str_free(self->etag);
    free(self);
}

bal_ready *bal_answer_make(bal_turn *turn, bal_reply *reply)
{
    made *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->mhd = turn->daemon->mhd;
    self->ready.free = free_made;
    atomic_init(&self->ready.references, 1);
    self->ready.status = reply->status;
    self->ready.length = reply->source ? reply->length : reply->body.len;
    self->full = body_of(turn, reply);
    if (self->full && add_all(self, self->full, turn, reply) &&
        make_bare(self, turn, reply))
        return &self->ready;
    free_made(&self->ready);
    return NULL;
}

enum MHD_Result bal_answer_queue(bal_turn *turn)
{
    const made *self = (const made *)turn->ready;
    const char *held = turn->request.if_none_match;

    turn->stage = BAL_TURN_OVER;
    if (!self)
        return MHD_NO;
    turn->status = self->ready.status;
    turn->sent = turn->request.head ? 0 : self->ready.length;
    struct MHD_Response *response = self->full;
    if (self->bare && bal_etag_named(held, self->etag, true)) {
        turn->status = 304;
        turn->sent = 0;
        response = self->bare;
    }
    return turn->daemon->mhd->queue_response(turn->connection,
                                             (unsigned)turn->status, response);
}
