/* The handlers, by method and what they are about, and what they share. */
#ifndef SERVE_HANDLERS_H
#define SERVE_HANDLERS_H

#include "core/json.h"
#include "serve/request.h"

bal_handler_fn bal_get_health, bal_get_metrics, bal_get_openapi, bal_get_refs,
    bal_get_loras, bal_get_commits, bal_get_commit, bal_get_adapter,
    bal_get_config, bal_get_diff, bal_post_commit, bal_post_merge,
    bal_delete_commit;

/* Where the request's own stand in args: {t}, {spec}, {a}, {b}, {id}. */
enum { BAL_ARG_TENANT, BAL_ARG_SPEC, BAL_ARG_OTHER };

/* A spec, resolved once. */
typedef struct bal_found {
    bal_id id;
    char hex[BAL_ID_HEX + 1];
    const char *tag; /* etag: the id in quotes */
    bool by_id;      /* the spec was the full id */
} bal_found;

BAL_CHECK int bal_found_spec(bal_found *out, bal_request *request,
                             const char *spec, bal_error *err);
/* What was not found is told as "not found" where there is no such tenant, as
 * of one that may not be read. Gives rc. */
BAL_CHECK int bal_not_found(bal_request *request, int rc, bal_error *err);
/* True if the tenant has ever had a commit. */
BAL_CHECK int bal_tenant_there(bool *there, bal_request *request,
                               bal_error *err);

/* Text of the request's life; NULL: no memory. */
const char *bal_request_text(bal_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The headers of what a commit is all that there is to know of: its etag, and
 * the year that it may be kept where the path has its id, else that it is to be
 * asked for again. To be put when nothing can fail any more: they are none for
 * an error. */
void bal_reply_found(bal_reply *reply, const bal_found *found);
/* True if that is what the client has: the reply is 304, and done. */
bool bal_found_same(bal_reply *reply, const bal_request *request,
                    const bal_found *found);
/* What changes: to be asked for again. */
void bal_reply_no_cache(bal_reply *reply);
/* The etag is that of the body, which may be kept until the store changes. */
BAL_CHECK int bal_reply_tagged(bal_reply *reply, bal_request *request,
                               bal_error *err);
/* Members of text, and of an id. */
void bal_member_text(bal_json *json, const char *key, const char *text);
void bal_member_id(bal_json *json, const char *key, const bal_id *id);

/* What POST has of the head that the ref must have. */
typedef struct bal_expected {
    bal_id id;
    const bal_id *head; /* NULL: any */
} bal_expected;

/* If-Match, of the ref; 412 where the ref is not there at all. */
BAL_CHECK int bal_expected_read(bal_expected *out, bal_reply *reply,
                                bal_request *request, const char *ref,
                                bal_error *err);
/* A commit could not be made: 412 where the ref was not what was expected. */
BAL_CHECK int bal_not_made(bal_reply *reply, const bal_expected *expected,
                           int rc);
/* 201, the commit object and "ref". */
BAL_CHECK int bal_reply_made(bal_reply *reply, bal_request *request,
                             const bal_commit *commit, const char *ref,
                             bal_error *err);

#endif
