/* Which route a request takes, and whether it may. */
#ifndef SERVE_DISPATCH_H
#define SERVE_DISPATCH_H

#include "serve/routes.h"
#include "serve/uri.h"

/* What a request that goes no further is answered. */
typedef struct bal_refusal {
    int status;
    const char *message;
    const char *allow; /* with 405 */
} bal_refusal;

/* Sets route and args. False: refused, with 404, or with 405 where another
 * method is known. HEAD is GET. */
bool bal_dispatch(bal_request *request, bal_refusal *refusal,
                  const char *method, const bal_uri *uri, bal_arena *arena);
/* After that, by the request's scope. Knows no tenant: who may not read one
 * that is there, and who asks for one that is not, are told the same. */
bool bal_authorise(const bal_request *request, bal_refusal *refusal);
/* After that: 400 for a parameter of the query that the route does not have. */
bool bal_query_known(const bal_request *request, bal_refusal *refusal);

#endif
