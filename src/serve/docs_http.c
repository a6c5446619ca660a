/* docs/http.md, from the table of routes and that of the bodies. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "serve/openapi.h"
#include "serve/schemas.h"

/* A document being written: the first failure is kept. */
typedef struct document {
    bal_buf *to;
    int rc;
    bal_error *err;
} document;

static void put(document *self, const char *text)
{
    if (!self->rc)
        self->rc = bal_buf_text(self->to, text, self->err);
}

/* Text between others. */
static void put_three(document *self, const char *before, const char *text,
                      const char *behind)
{
    put(self, before);
    put(self, text);
    put(self, behind);
}

/* Text in a cell of a table. */
static void cell(document *self, const char *text)
{
    char out[2] = "";

    for (; *text; text++) {
        if (*text == '|' || *text == '<' || *text == '*')
            put(self, "\\");
        out[0] = *text;
        put(self, out);
    }
}

static void number(document *self, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    put(self, text);
}

/* The heading's link, as most readers of markdown make it. */
static void anchor(document *self, const bal_route *route)
{
    char out[2] = "";

    put(self, "(#");
    for (const char *at = route->method; *at; at++) {
        out[0] = (char)(*at | 0x20);
        put(self, out);
    }
    put(self, "-");
    for (const char *at = route->path; *at; at++) {
        bool stays = (*at >= 'a' && *at <= 'z') || *at == '-';
        out[0] = *at;
        put(self, stays ? out : "");
    }
    put(self, ")");
}

static const char *const needs[] = {
    [BAL_NEED_NOTHING] = "Needs no token.",
    [BAL_NEED_METRICS] = "From this machine, or with a token that reads all.",
    [BAL_NEED_READ] = "With a token that reads the tenant.",
    [BAL_NEED_WRITE] = "With a token that writes the tenant.",
};

static void query_table(document *self, const bal_route_query *row)
{
    if (!row)
        return;
    put(self, "\n| query | |\n|---|---|\n");
    for (; row->name; row++) {
        put_three(self, "| `", row->name, "` | ");
        cell(self, row->help);
        put(self, row->required ? " (required)" : "");
        put(self, " |\n");
    }
}

static void body_line(document *self, const bal_route *route)
{
    if (route->body == BAL_BODY_NONE)
        return;
    const bal_schema *schema =
        bal_schema_find(route->body == BAL_BODY_JSON ? "merge" : "adapter");
    put_three(self, "\nBody (`", schema->type, "`): ");
    put(self, route->body == BAL_BODY_JSON ? "`" : "");
    put(self, schema->shape);
    put(self, route->body == BAL_BODY_JSON ? "`" : "");
    put(self, ".\n");
}

static void route_part(document *self, const bal_route *route)
{
    const bal_schema *schema = bal_schema_find(route->schema);
    bool literal = schema->shape[0] == '{';

    put_three(self, "\n## ", route->method, " ");
    put_three(self, "", route->path, "\n\n");
    const char first[2] = { (char)(route->summary[0] & ~0x20), '\0' };
    put_three(self, first, route->summary + 1, ". ");
    put_three(self, "", needs[route->need], "\n");
    query_table(self, route->query);
    body_line(self, route);
    put_three(self, "\nReply (`", schema->type, "`): ");
    put_three(self, literal ? "`" : "", schema->shape,
              literal ? "`.\n" : ".\n");
    put(self, "\n| status | when |\n|---|---|\n");
    for (const bal_route_status *at = route->statuses; at->status; at++) {
        put(self, "| ");
        number(self, at->status);
        put(self, " | ");
        cell(self, at->when);
        put(self, " |\n");
    }
}

static const char intro[] =
    "# HTTP\n\n"
    "<!-- Made by `make docs` from the tables in src/serve. -->\n\n"
    "What `ballast serve` answers. `/openapi.json` says the same for "
    "programs.\n\n"
    "A token goes into `Authorization: Bearer TOKEN`. Whoever may not read a "
    "tenant is told the same as if there were none: 404. There is no 401. "
    "HEAD is answered wherever GET is. An error is `{\"error\": {\"code\", "
    "\"message\"}}`.\n\n"
    "A commit is named by its full id, a ref, or a unique prefix of at least 4 "
    "hex digits, then any of `~N`, `^`, `@{N}`. By the full id what is given "
    "never changes and may be kept by the client: `cache-control: private, "
    "max-age=31536000, immutable`, `vary: authorization`. By any other name it "
    "is `private, no-cache`, with the same `etag`: the commit's id. "
    "`If-None-Match` is answered 304, after the token and the commit, with all "
    "that it stands on, were looked at again.\n\n"
    "An adapter comes with `content-length`, `x-ballast-commit`, "
    "`x-ballast-int-id` (the number an engine knows it by), "
    "`content-disposition` and `accept-ranges`.\n\n";

static const bal_route_status any[] = {
    { 400, "malformed: an escape, a NUL, a query field twice, two "
           "lengths" },
    { 405, "the path has no such method; allow lists those it has" },
    { 408, "the request did not come in time" },
    { 413, "a body larger than the route takes" },
    { 414, "a URL of more than 8 KiB" },
    { 429, "too many requests of this token; retry-after says when" },
    { 431, "too many or too long header fields" },
    { 500, "the disk, the database or a block is not as it should be" },
    { 503, "stopping, or too much to do; retry-after says when" },
    { 0 },
};

int bal_docs_http(bal_buf *to, bal_error *err)
{
    document self = { to, 0, err };

    put(&self, intro);
    put(&self, "| | |\n|---|---|\n");
    for (size_t i = 0; i < bal_route_count; i++) {
        const bal_route *route = &bal_routes[i];
        put_three(&self, "| [`", route->method, " ");
        put_three(&self, "", route->path, "`]");
        anchor(&self, route);
        put(&self, " | ");
        cell(&self, route->summary);
        put(&self, " |\n");
    }
    for (size_t i = 0; i < bal_route_count; i++)
        route_part(&self, &bal_routes[i]);
    put(&self, "\n## Any route\n\n| status | when |\n|---|---|\n");
    for (const bal_route_status *at = any; at->status; at++) {
        put(&self, "| ");
        number(&self, at->status);
        put_three(&self, " | ", at->when, " |\n");
    }
    return self.rc;
}
