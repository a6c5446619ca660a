/* The OpenAPI document, from the table of routes and that of the bodies. */
#include "serve/openapi.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "serve/routes.h"
#include "serve/schemas.h"

/* ---- parameters -------------------------------------------------------------
 */

/* What may stand in a path. */
static const struct {
    const char *name, *help, *pattern;
} places[] = {
    { "t", "a tenant", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    { "spec",
      "a commit: its full id, a ref, or a unique prefix of 4 hex digits or "
      "more; then any of ~N, ^, @{N}",
      NULL },
    { "a", "a commit, as any spec", NULL },
    { "b", "a commit, as any spec", NULL },
    { "id", "a commit's full id", "^[0-9a-f]{64}$" },
};

static void member(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

static void parameter(bal_json *json, const char *name, const char *in,
                      const char *help, bool required)
{
    bal_json_object(json);
    member(json, "name", name);
    member(json, "in", in);
    member(json, "description", help);
    bal_json_key(json, "required");
    bal_json_bool(json, required);
    bal_json_key(json, "schema");
}

/* as: what the document's path calls it. */
static void path_parameter(bal_json *json, const char *name, size_t len,
                           const char *as)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (strlen(places[i].name) != len ||
            strncmp(places[i].name, name, len) != 0)
            continue;
        parameter(json, as, "path", places[i].help, true);
        bal_json_object(json);
        member(json, "type", "string");
        if (places[i].pattern)
            member(json, "pattern", places[i].pattern);
        bal_json_close(json);
        bal_json_close(json);
    }
}

static void path_parameters(bal_json *json, const char *path, const char *as)
{
    const char *at = strchr(path, '{');
    char name[16];

    for (as = strchr(as, '{'); at && as; as = strchr(as, '{')) {
        at++;
        as++;
        size_t len = strcspn(as, "}");
        len = len < sizeof(name) ? len : sizeof(name) - 1;
        memcpy(name, as, len);
        name[len] = '\0';
        path_parameter(json, at, strcspn(at, "}"), name);
        at = strchr(at, '{');
    }
}

static void header_parameters(bal_json *json, const bal_route *route)
{
    static const struct {
        const char *name, *help;
        int status; /* of a route that looks at it */
    } rows[] = {
        { "If-Match", "\"<commit>\": the ref is moved only from there", 412 },
        { "If-None-Match", "\"<commit>\", or the etag that came with it", 304 },
        { "Range", "bytes=FIRST-LAST, one range", 206 },
        { "If-Range", "the etag of which Range is a part", 206 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bal_route_status *at = route->statuses;
        while (at->status && at->status != rows[i].status)
            at++;
        if (!at->status)
            continue;
        parameter(json, rows[i].name, "header", rows[i].help, false);
        bal_json_raw(json, "{\"type\":\"string\"}");
        bal_json_close(json);
    }
}

static void parameters(bal_json *json, const bal_route *route, const char *as)
{
    const bal_route_query *query = route->query;

    bal_json_key(json, "parameters");
    bal_json_array(json);
    path_parameters(json, route->path, as);
    for (; query && query->name; query++) {
        parameter(json, query->name, "query", query->help, query->required);
        bal_json_raw(json, bal_query_schema(query));
        bal_json_close(json);
    }
    header_parameters(json, route);
    bal_json_close(json);
}

/* ---- bodies -----------------------------------------------------------------
 */

static void content(bal_json *json, const char *type, const char *schema)
{
    char text[96];

    bal_json_key(json, "content");
    bal_json_object(json);
    bal_json_key(json, type);
    bal_json_object(json);
    bal_json_key(json, "schema");
    snprintf(text, sizeof(text), "{\"$ref\":\"#/components/schemas/%s\"}",
             schema);
    bal_json_raw(json, text);
    bal_json_close(json);
    bal_json_close(json);
}

static void request_body(bal_json *json, const bal_route *route)
{
    if (route->body == BAL_BODY_NONE)
        return;
    bal_json_key(json, "requestBody");
    bal_json_object(json);
    bal_json_key(json, "required");
    bal_json_bool(json, true);
    if (route->body == BAL_BODY_JSON)
        content(json, "application/json", "merge");
    else
        content(json, "application/octet-stream", "adapter");
    bal_json_close(json);
}

static void response(bal_json *json, const bal_route *route,
                     const bal_route_status *status)
{
    char number[16];
    const bal_schema *schema = bal_schema_find(route->schema);
    bool proof = status->status == 500; /* a handler's own: it is a result */

    snprintf(number, sizeof(number), "%d", status->status);
    bal_json_key(json, number);
    bal_json_object(json);
    member(json, "description", status->when);
    if (status->status < 300 || proof)
        content(json, schema->type, schema->name);
    else if (status->status >= 400)
        content(json, "application/json", "error");
    bal_json_close(json);
}

static void responses(bal_json *json, const bal_route *route)
{
    bal_json_key(json, "responses");
    bal_json_object(json);
    for (const bal_route_status *at = route->statuses; at->status; at++)
        response(json, route, at);
    bal_json_key(json, "default");
    bal_json_object(json);
    member(json, "description", "what any request may be answered");
    content(json, "application/json", "error");
    bal_json_close(json);
    bal_json_close(json);
}

/* ---- operations -------------------------------------------------------------
 */

/* "get_tenants_commits_adapter". */
static void operation_id(bal_json *json, const bal_route *route)
{
    char id[96];
    size_t len = 0;
    bool inside = false;

    for (const char *at = route->method; *at && len < 16; at++)
        id[len++] = (char)(*at | 0x20);
    for (const char *at = route->path; *at && len + 1 < sizeof(id); at++) {
        inside = *at == '{' || (inside && *at != '}');
        if (inside || *at == '}')
            continue;
        bool end = *at == '/' && (at[1] == '{' || !at[1]);
        if (!end)
            id[len++] = (char)(*at == '/' || *at == '.' ? '_' : *at);
    }
    id[len] = '\0';
    if (!strcmp(route->path + strlen(route->path) - 1, "}"))
        snprintf(id + len, sizeof(id) - len, "_one");
    member(json, "operationId", id);
}

static void operation(bal_json *json, const bal_route *route, const char *as)
{
    char method[16];
    size_t len = 0;

    for (; route->method[len] && len + 1 < sizeof(method); len++)
        method[len] = (char)(route->method[len] | 0x20);
    method[len] = '\0';
    bal_json_key(json, method);
    bal_json_object(json);
    operation_id(json, route);
    member(json, "summary", route->summary);
    bal_json_key(json, "security");
    /* None is right where the server is open, or the peer is near. */
    if (route->need == BAL_NEED_NOTHING)
        bal_json_raw(json, "[]");
    else if (route->need == BAL_NEED_WRITE)
        bal_json_raw(json, "[{\"token\":[]}]");
    else
        bal_json_raw(json, "[{\"token\":[]},{}]");
    parameters(json, route, as);
    request_body(json, route);
    responses(json, route);
    bal_json_close(json);
}

/* Paths that differ in the names of their parameters are one. */
static bool same_path(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a += *a == '{' ? strcspn(a, "}") : 1;
        b += *b == '{' ? strcspn(b, "}") : 1;
    }
    return *a == *b;
}

static bool was_before(size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (same_path(bal_routes[before].path, bal_routes[i].path))
            return true;
    }
    return false;
}

/* One object a path, of all its methods. */
static void paths(bal_json *json)
{
    bal_json_key(json, "paths");
    bal_json_object(json);
    for (size_t i = 0; i < bal_route_count; i++) {
        const char *path = bal_routes[i].path;
        if (was_before(i))
            continue;
        bal_json_key(json, path);
        bal_json_object(json);
        for (size_t k = i; k < bal_route_count; k++) {
            if (same_path(bal_routes[k].path, path))
                operation(json, &bal_routes[k], path);
        }
        bal_json_close(json);
    }
    bal_json_close(json);
}

int bal_openapi_write(bal_buf *to, unsigned indent, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, indent);
    bal_json_object(&json);
    member(&json, "openapi", "3.1.0");
    bal_json_key(&json, "info");
    bal_json_object(&json);
    member(&json, "title", "ballast");
    member(&json, "version", bal_version());
    member(&json, "summary", "what a model has learned, over HTTP");
    bal_json_close(&json);
    paths(&json);
    bal_json_key(&json, "components");
    bal_json_object(&json);
    bal_json_key(&json, "securitySchemes");
    bal_json_raw(&json,
                 "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    bal_json_key(&json, "schemas");
    bal_json_object(&json);
    for (size_t i = 0; i < bal_schema_count; i++) {
        bal_json_key(&json, bal_schemas[i].name);
        bal_json_raw(&json, bal_schemas[i].schema);
    }
    bal_json_close(&json);
    bal_json_close(&json);
    bal_json_close(&json);
    return bal_json_end(&json, err);
}

/* ---- kept -------------------------------------------------------------------
 */

static struct {
    pthread_once_t once;
    bal_buf text;
    int rc;
    bal_error err;
} kept = { .once = PTHREAD_ONCE_INIT };

static void keep(void)
{
    kept.rc = bal_openapi_write(&kept.text, 0, &kept.err);
}

int bal_openapi(bal_bytes *out, bal_error *err)
{
    pthread_once(&kept.once, keep);
    if (kept.rc)
        return bal_fail(err, kept.rc, "%s", kept.err.text);
    *out = (bal_bytes){ kept.text.data, kept.text.len };
    return 0;
}
