/* The routes. A new one is a handler and a row here. */
#include "serve/routes.h"

#include "serve/handlers.h"

/* ---- parameters -------------------------------------------------------------
 */

static const bal_route_query page[] = {
    { "ref", "string", false, "whose history; main if not told" },
    { "limit", "integer", false,
      "commits of a page, 1 to 1000; 100 if not "
      "told" },
    { "after", "string", false,
      "the full id that 'next' of the page before gave" },
    { 0 },
};

static const bal_route_query commit[] = {
    { "message", "string", true, "what changed and why" },
    { "ref", "string", false, "the ref to move; main if not told" },
    { "base_model", "string", false,
      "what it was made from, if the config does not tell" },
    { "config", "string", false,
      "adapter_config.json, a JSON object; without it the file is recorded as "
      "what it is" },
    { "metadata", "string", false,
      "a JSON object of your own, covered by the commit's id" },
    { 0 },
};

static const bal_route_query deletion[] = {
    { "reason", "string", true, "why; it is part of the proof" },
    { 0 },
};

/* ---- statuses ---------------------------------------------------------------
 */

static const bal_route_status always[] = {
    { 200, "as long as the server answers" },
    { 0 },
};

static const bal_route_status metrics[] = {
    { 200, "Prometheus' text format" },
    { 404, "neither from this machine nor with a token that reads every "
           "tenant" },
    { 0 },
};

static const bal_route_status document[] = {
    { 200, "OpenAPI 3.1" },
    { 304, "If-None-Match names what it is" },
    { 0 },
};

static const bal_route_status listing[] = {
    { 200, "all there are, by name" },
    { 304, "If-None-Match names what they are" },
    { 404, "no such tenant, or it may not be read" },
    { 0 },
};

static const bal_route_status paged[] = {
    { 200, "newest first; 'next' is null on the last page" },
    { 304, "If-None-Match names what it is" },
    { 400, "a limit or an id that is none" },
    { 404, "no such tenant, ref or commit, or it may not be read" },
    { 0 },
};

static const bal_route_status one[] = {
    { 200, "'tensors' is null where a view cannot resolve" },
    { 304, "If-None-Match names the commit" },
    { 400, "not a spec, or a prefix that several commits have" },
    { 404, "no such tenant or commit, or it may not be read" },
    { 0 },
};

static const bal_route_status file[] = {
    { 200, "all of it; its length comes before the first byte" },
    { 206, "the part that Range asks for" },
    { 304, "If-None-Match names the commit" },
    { 400, "not a spec, or a prefix that several commits have" },
    { 404, "no such tenant or commit, or it may not be read" },
    { 409, "a view that cannot resolve" },
    { 416, "nothing of the range is there" },
    { 0 },
};

static const bal_route_status config[] = {
    { 200, "the file; of a view, as it is for the merged adapter" },
    { 304, "If-None-Match names the commit" },
    { 400, "not a spec, or a prefix that several commits have" },
    { 404, "no such tenant or commit, it may not be read, or it is no "
           "adapter" },
    { 409, "a view that cannot resolve" },
    { 0 },
};

static const bal_route_status difference[] = {
    { 200, "tensor by tensor, and what is known of answers to probes" },
    { 400, "not specs, or a delta and something else" },
    { 404, "no such tenant or commit, or it may not be read" },
    { 409, "a view that cannot resolve" },
    { 0 },
};

static const bal_route_status made[] = {
    { 201, "recorded, durably; location has its place" },
    { 400, "a query field, or a body that is no safetensors file" },
    { 403, "the tenant may be read, not written" },
    { 404, "no such tenant, or it may not be read" },
    { 408, "the body did not come in time" },
    { 409, "the ref moved meanwhile" },
    { 411, "a body without a length that is not chunked" },
    { 412, "the ref is not where If-Match says" },
    { 413, "larger than the server takes" },
    { 0 },
};

static const bal_route_status merged[] = {
    { 201, "the view is recorded; nothing is computed" },
    { 400, "a body that is not as above; inputs or parameters that the method "
           "cannot take" },
    { 403, "the tenant may be read, not written" },
    { 404, "no such tenant or input, or it may not be read" },
    { 409, "the ref moved meanwhile, or an input is a view that cannot "
           "resolve" },
    { 412, "the ref is not where If-Match says" },
    { 413, "a body of more than 1 MiB" },
    { 0 },
};

static const bal_route_status deleted[] = {
    { 200, "it is gone; the proof" },
    { 400, "not a full id, no reason, or a key that cannot sign" },
    { 403, "the tenant may be read, not written" },
    { 404, "no such tenant or commit, or it may not be read" },
    { 409, "a key that the store does not trust" },
    { 500, "it is gone, but the proof has problems, which it lists" },
    { 0 },
};

/* ---- routes -----------------------------------------------------------------
 */

const bal_route bal_routes[] = {
    {
        .method = "GET",
        .path = "/health",
        .speed = BAL_SPEED_AT_ONCE,
        .handle = bal_get_health,
        .schema = "health",
        .statuses = always,
        .summary = "whether the server answers",
    },
    {
        .method = "GET",
        .path = "/metrics",
        .need = BAL_NEED_METRICS,
        .speed = BAL_SPEED_AT_ONCE,
        .handle = bal_get_metrics,
        .schema = "metrics",
        .statuses = metrics,
        .summary = "what the server counts",
    },
    {
        .method = "GET",
        .path = "/openapi.json",
        .speed = BAL_SPEED_AT_ONCE,
        .handle = bal_get_openapi,
        .schema = "openapi",
        .statuses = document,
        .summary = "this API, as a program reads it",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/refs",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_CACHED,
        .handle = bal_get_refs,
        .schema = "refs",
        .statuses = listing,
        .summary = "the refs, and where they are",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/loras",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_CACHED,
        .handle = bal_get_loras,
        .schema = "loras",
        .statuses = listing,
        .summary = "the adapters that refs stand for, and why others are not "
                   "among them",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/commits",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_WORK,
        .handle = bal_get_commits,
        .query = page,
        .schema = "commits",
        .statuses = paged,
        .summary = "the history of a ref, page by page",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/commits/{spec}",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_WORK,
        .handle = bal_get_commit,
        .schema = "commit",
        .statuses = one,
        .summary = "one commit, and the tensors that it has",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/commits/{spec}/adapter",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_WORK,
        .handle = bal_get_adapter,
        .schema = "adapter",
        .statuses = file,
        .summary = "its tensors, as one safetensors file",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/commits/{spec}/config",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_WORK,
        .handle = bal_get_config,
        .schema = "config",
        .statuses = config,
        .summary = "its adapter_config.json",
    },
    {
        .method = "GET",
        .path = "/tenants/{t}/diff/{a}/{b}",
        .need = BAL_NEED_READ,
        .speed = BAL_SPEED_WORK,
        .handle = bal_get_diff,
        .schema = "diff",
        .statuses = difference,
        .summary = "what changed from one commit to another",
    },
    {
        .method = "POST",
        .path = "/tenants/{t}/commits",
        .need = BAL_NEED_WRITE,
        .body = BAL_BODY_UPLOAD,
        .speed = BAL_SPEED_WORK,
        .handle = bal_post_commit,
        .query = commit,
        .schema = "made",
        .statuses = made,
        .summary = "record a safetensors file",
    },
    {
        .method = "POST",
        .path = "/tenants/{t}/merges",
        .need = BAL_NEED_WRITE,
        .body = BAL_BODY_JSON,
        .speed = BAL_SPEED_WORK,
        .handle = bal_post_merge,
        .schema = "made",
        .statuses = merged,
        .summary = "record a merge as a view",
    },
    {
        .method = "DELETE",
        .path = "/tenants/{t}/commits/{id}",
        .need = BAL_NEED_WRITE,
        .speed = BAL_SPEED_WORK,
        .handle = bal_delete_commit,
        .query = deletion,
        .schema = "proof",
        .statuses = deleted,
        .summary = "delete a commit, and prove it",
    },
};

const size_t bal_route_count = sizeof(bal_routes) / sizeof(bal_routes[0]);
