#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "serve/daemon.h"
#include "serve/routes.h"
#include "serve/spool.h"
struct bal_stream {
    uint64_t size;
};
int bal_store_changes(uint64_t *out, bal_store *self, bal_error *err)
{
    (void)self;
    (void)err;
    *out = 0;
    return 0;
}
int bal_stream_open(bal_stream **out, bal_model *m, bal_error *err)
{
    (void)m;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return bal_fail_memory(err, "s");
    (*out)->size = 80 << 20;
    return 0;
}
uint64_t bal_stream_size(const bal_stream *s)
{
    return s->size;
}
int bal_stream_read(bal_stream *s, uint64_t offset, void *to, size_t len,
                    bal_error *err)
{
    (void)s;
    (void)err;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)to)[i] = (uint8_t)((offset + i) * 2654435761u >> 13);
    if (getenv("SLOW"))
        bal_clock_sleep(0.02);
    return 0;
}
void bal_stream_free(bal_stream *s)
{
    free(s);
}
static int health(bal_reply *reply, bal_request *request, bal_error *err)
{
    (void)request;
    return bal_buf_text(&reply->body, "{\"status\": \"ok\"}\n", err);
}
static int metrics(bal_reply *reply, bal_request *request, bal_error *err)
{
    reply->type = "text/plain; version=0.0.4";
    return bal_daemon_metrics(request->daemon, &reply->body, err);
}
static int loras(bal_reply *reply, bal_request *request, bal_error *err)
{
    (void)request;
    reply->cacheable = true;
    bal_reply_header(reply, "etag", "\"abc\"");
    bal_reply_header(reply, "cache-control", "no-cache");
    return bal_buf_format(
        &reply->body, err, "{\"tenant\": \"%s\", \"q\": \"%s\"}\n",
        request->args[0],
        bal_request_query(request, "q") ? bal_request_query(request, "q")
                                        : "-");
}
static int echo(bal_reply *reply, bal_request *request, bal_error *err)
{
    return bal_buf_append(&reply->body, request->body.data, request->body.len,
                          err);
}
static int slow(bal_reply *reply, bal_request *request, bal_error *err)
{
    (void)request;
    bal_clock_sleep(3);
    return bal_buf_text(&reply->body, "{\"slow\": true}\n", err);
}
static int upload(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_OWN(bal_file) file = NULL;
    char *path = bal_path_join(request->upload, "adapter_model.safetensors");
    int rc = bal_file_open(&file, path, err);
    free(path);
    if (rc)
        return rc;
    reply->status = 201;
    return bal_buf_format(&reply->body, err, "{\"size\": %llu}\n",
                          (unsigned long long)file->size);
}
typedef struct fill {
    bal_spooled *s;
    bal_stream *stream;
} fill;
static void after(void *ctx, const volatile bool *stop)
{
    fill *f = ctx;
    bal_error err;
    if (bal_spooled_fill(f->s, f->stream, stop, &err))
        bal_warn("serve", "fill %s", err.text);
    bal_spooled_free(f->s);
    bal_stream_free(f->stream);
    free(f);
}
static int adapter(bal_reply *reply, bal_request *request, bal_error *err)
{
    bal_id id = { { 1 } };
    bool mine = false;
    bal_stream *stream = NULL;
    bal_spool *spool = bal_daemon_spool(request->daemon);
    id.bytes[1] = (uint8_t)request->args[1][0];
    int rc = bal_stream_open(&stream, NULL, err);
    if (!rc)
        rc = bal_spool_make(&reply->source, &mine, spool, request->args[0], &id,
                            bal_stream_size(stream), err);
    if (rc)
        return rc;
    if (mine) {
        fill *f = calloc(1, sizeof(*f));
        if (!f)
            return bal_fail_memory(err, "x");
        *f = (fill){ bal_spooled_ref(reply->source), stream };
        reply->after = after;
        reply->after_ctx = f;
    } else
        bal_stream_free(stream);
    reply->type = "application/octet-stream";
    bal_reply_header(reply, "etag", "\"x\"");
    return bal_reply_range(reply, request, bal_spooled_size(reply->source),
                           "\"x\"", err);
}
const bal_route bal_routes[] = {
    { "GET", "/health", BAL_NEED_NOTHING, BAL_BODY_NONE, BAL_SPEED_AT_ONCE,
      health },
    { "GET", "/metrics", BAL_NEED_METRICS, BAL_BODY_NONE, BAL_SPEED_AT_ONCE,
      metrics },
    { "GET", "/tenants/{t}/loras", BAL_NEED_READ, BAL_BODY_NONE,
      BAL_SPEED_CACHED, loras },
    { "GET", "/tenants/{t}/slow", BAL_NEED_READ, BAL_BODY_NONE, BAL_SPEED_WORK,
      slow },
    { "POST", "/tenants/{t}/merges", BAL_NEED_WRITE, BAL_BODY_JSON,
      BAL_SPEED_WORK, echo },
    { "POST", "/tenants/{t}/commits", BAL_NEED_WRITE, BAL_BODY_UPLOAD,
      BAL_SPEED_WORK, upload },
    { "GET", "/tenants/{t}/commits/{spec}/adapter", BAL_NEED_READ,
      BAL_BODY_NONE, BAL_SPEED_WORK, adapter },
};
const size_t bal_route_count = sizeof(bal_routes) / sizeof(bal_routes[0]);
