/* GET of what is no tenant's: health, metrics, the API itself. */
#include "serve/daemon.h"
#include "serve/handlers.h"
#include "serve/openapi.h"

int bal_get_health(bal_reply *reply, bal_request *request, bal_error *err)
{
    (void)request;
    bal_reply_header(reply, "cache-control", "no-store");
    reply->status = 200;
    return bal_buf_text(&reply->body, "{\"status\":\"ok\"}", err);
}

int bal_get_metrics(bal_reply *reply, bal_request *request, bal_error *err)
{
    int rc = bal_daemon_metrics(request->daemon, &reply->body, err);
    if (rc)
        return rc;
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    bal_reply_header(reply, "cache-control", "no-store");
    reply->status = 200;
    return 0;
}

int bal_get_openapi(bal_reply *reply, bal_request *request, bal_error *err)
{
    bal_bytes text;
    int rc = bal_openapi(&text, err);
    if (!rc)
        rc = bal_buf_append(&reply->body, text.data, text.len, err);
    return rc ? rc : bal_reply_tagged(reply, request, err);
}
