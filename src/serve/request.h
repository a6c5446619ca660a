/* A request as a handler sees it, and the reply that it makes: handlers are
 * functions from one to the other and know no sockets, so that tests call them
 * without one. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "ballast.h"

#include "core/buf.h"
#include "core/own.h"
#include "serve/tokens.h"

BAL_OWNABLE(bal_store)
BAL_OWNABLE(bal_tenant)
BAL_OWNABLE(bal_model)
BAL_OWNABLE(bal_stream)
BAL_OWNABLE(bal_commit)
BAL_OWNABLE(bal_recipe)
BAL_OWNABLE(bal_proof)

#define BAL_ROUTE_ARGS 3 /* {t}, and two more at most */

typedef struct bal_field {
    const char *name, *value; /* decoded; a value without '=' is "" */
} bal_field;

typedef struct bal_route bal_route;

typedef struct bal_request {
    const bal_route *route;
    const char *args[BAL_ROUTE_ARGS]; /* of the path, decoded; args[0] is the
                                         tenant where the route has one */
    const bal_field *query;
    size_t query_count;
    const char *if_match, *if_none_match, *if_range, *range; /* NULL: none */
    bal_bytes body;         /* of a route whose body is small; NUL behind it */
    const char *upload;     /* the folder that the body lies in, as
                               adapter_model.safetensors; NULL: none */
    const bal_scope *scope; /* what the token allows */
    bool local;             /* the peer is on loopback */
    bool head;              /* HEAD: the body is not sent */
    bal_store *store;       /* the worker's own */
    bal_tenant *tenant;     /* open, and readable; NULL: a route without one */
    bal_work *work;
    bal_arena *arena;          /* of the request */
    struct bal_daemon *daemon; /* see serve/daemon.h */
} bal_request;

/* NULL: not there. EINVAL where it is there twice is settled before. */
const char *bal_request_query(const bal_request *self, const char *name);

/* What a reply's body is read from when it is not in memory. Counted; see
 * serve/spool.h. */
typedef struct bal_spooled bal_spooled;

#define BAL_REPLY_HEADERS 12

typedef struct bal_reply {
    int status;
    const char *type; /* NULL: application/json */
    bal_buf body;
    bal_spooled *source; /* instead of body, from `offset` on, `length` bytes;
                            NULL: HEAD, of a body of `length` bytes */
    uint64_t offset, length;
    bal_field headers[BAL_REPLY_HEADERS]; /* texts of the arena, or constants */
    size_t header_count;
    bool cacheable; /* by the server, until the store changes */
    /* What the worker does when the reply is on its way: filling what it reads
     * from. Called until it returns false, whatever becomes of the reply, other
     * requests between; store, work and tenant are there until then, the rest
     * of the request is not. */
    bool (*after)(void *ctx, const volatile bool *stop);
    void *after_ctx;
} bal_reply;

void bal_reply_done(bal_reply *self);
void bal_reply_header(bal_reply *self, const char *name, const char *value);
/* {"error": {"code", "message"}} instead of what there is but its headers. code
 * NULL: a word that goes with the status. */
void bal_reply_error(bal_reply *self, int status, const char *code,
                     const char *message);
/* Of a body of size bytes, whose source the reply has or gets: status 200 or
 * 206, offset, length, accept-ranges and content-range by the request's Range
 * and If-Range, or an error of 416. etag is quoted. A reply of 416 has no
 * source. */
BAL_CHECK int bal_reply_range(bal_reply *self, const bal_request *request,
                              uint64_t size, const char *etag, bal_error *err);

/* Fills the reply; a failure becomes {"error": {"code", "message"}} with the
 * status of its code, or with the reply's if that was set to 400 or more. */
typedef int bal_handler_fn(bal_reply *reply, bal_request *request,
                           bal_error *err);

#endif
