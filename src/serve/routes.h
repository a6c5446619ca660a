/* The routes: one row each. Dispatch, authorisation, 405 with allow,
 * docs/http.md and /openapi.json all come from here. */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include "serve/request.h"

typedef enum bal_need {
    BAL_NEED_NOTHING, /* no token is looked at */
    BAL_NEED_METRICS, /* loopback, or a token that reads everything */
    BAL_NEED_READ,    /* of the tenant in the path; else 404 */
    BAL_NEED_WRITE,   /* 404 where it may not be read, else 403 */
} bal_need;

typedef enum bal_body_kind {
    BAL_BODY_NONE,
    BAL_BODY_JSON,   /* in memory, 1 MiB at most */
    BAL_BODY_UPLOAD, /* to disk, max_body at most */
} bal_body_kind;

typedef enum bal_speed {
    BAL_SPEED_AT_ONCE, /* answered by the thread that reads the socket */
    BAL_SPEED_CACHED,  /* by a worker, and at once while nothing has changed */
    BAL_SPEED_WORK,    /* by a worker */
} bal_speed;

/* A parameter of the query. */
typedef struct bal_route_query {
    const char *name;
    const char *type; /* OpenAPI's: string integer */
    bool required;
    const char *help;
} bal_route_query;

typedef struct bal_route_status {
    int status;
    const char *when;
} bal_route_status;

struct bal_route {
    const char *method;
    const char *path; /* "/tenants/{t}/commits/{spec}/adapter" */
    bal_need need;
    bal_body_kind body;
    bal_speed speed;
    bal_handler_fn *handle;
    const bal_route_query *query; /* ends with a row without a name; NULL */
    const char *schema; /* of the 200 or 201: "commit", see openapi.c */
    const bal_route_status *statuses; /* ends with 0 */
    const char *summary;
};

extern const bal_route bal_routes[];
extern const size_t bal_route_count;

#endif
