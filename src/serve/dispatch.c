#include "serve/dispatch.h"

#include <string.h>

#include "core/str.h"

static const char no_route[] = "not found";

/* The length of the segment of a route's path at `at`. */
static size_t segment_len(const char *at)
{
    return strcspn(at, "/");
}

/* Does the route's path take the segments? Parameters go to args. */
static bool fits(const bal_route *route, const bal_uri *uri,
                 const char *args[BAL_ROUTE_ARGS])
{
    const char *at = route->path;
    size_t count = 0;
    size_t i = 0;

    while (at[0] == '/' && at[1]) {
        size_t len = segment_len(++at);
        if (i == uri->segment_count)
            return false;
        const char *segment = uri->segments[i++];
        bool parameter = at[0] == '{' && count < BAL_ROUTE_ARGS && segment[0];
        if (parameter)
            args[count++] = segment;
        else if (strlen(segment) != len || strncmp(segment, at, len) != 0)
            return false;
        at += len;
    }
    return i == uri->segment_count;
}

static void list_method(bal_buf *allow, const char *method)
{
    if (allow->len && bal_buf_text(allow, ", ", NULL))
        return;
    if (bal_buf_text(allow, method, NULL))
        return;
    if (!strcmp(method, "GET") && bal_buf_text(allow, ", HEAD", NULL))
        return;
}

bool bal_dispatch(bal_request *request, bal_refusal *refusal,
                  const char *method, const bal_uri *uri, bal_arena *arena)
{
    BAL_LOCAL(bal_buf) allow = { 0 };

    request->head = !strcmp(method, "HEAD");
    if (request->head)
        method = "GET";
    for (size_t i = 0; i < bal_route_count && !uri->nowhere; i++) {
        const char *args[BAL_ROUTE_ARGS] = { NULL };
        if (!fits(&bal_routes[i], uri, args))
            continue;
        if (!strcmp(bal_routes[i].method, method)) {
            request->route = &bal_routes[i];
            memcpy(request->args, args, sizeof(args));
            return true;
        }
        list_method(&allow, bal_routes[i].method);
    }
    *refusal = (bal_refusal){ .status = 404, .message = no_route };
    if (allow.len) {
        refusal->status = 405;
        refusal->message = "the path does not take this method";
        refusal->allow = bal_arena_copy(arena, allow.data, allow.len);
    }
    return false;
}

static bool reads_all(const bal_scope *scope)
{
    for (size_t i = 0; i < scope->read_count; i++) {
        if (!strcmp(scope->read[i], "*"))
            return true;
    }
    return false;
}

bool bal_authorise(const bal_request *request, bal_refusal *refusal)
{
    bal_need need = request->route->need;
    const char *tenant = request->args[0];

    if (need == BAL_NEED_NOTHING)
        return true;
    *refusal = (bal_refusal){ .status = 404, .message = no_route };
    if (need == BAL_NEED_METRICS)
        return request->local || reads_all(request->scope);
    bool named = tenant && !bal_tenant_check(tenant, NULL);
    if (!bal_scope_reads(request->scope, named ? tenant : "-") || !named)
        return false;
    if (need == BAL_NEED_READ || bal_scope_writes(request->scope, tenant))
        return true;
    *refusal = (bal_refusal){ .status = 403,
                              .message = "the token may read the tenant, "
                                         "not write it" };
    return false;
}

bool bal_query_known(const bal_request *request, bal_refusal *refusal)
{
    for (size_t i = 0; i < request->query_count; i++) {
        const bal_route_query *row = request->route->query;
        while (row && row->name && strcmp(row->name, request->query[i].name))
            row++;
        if (row && row->name)
            continue;
        *refusal = (bal_refusal){ .status = 400,
                                  .message = "a parameter of the query that "
                                             "the route does not have" };
        return false;
    }
    return true;
}
