/* GET of an adapter: its tensors as one safetensors file, and its config. What
 * the graph says is asked before anything that is kept is given. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "serve/adapters.h"
#include "serve/daemon.h"
#include "serve/handlers.h"

enum { FILL_STEP = 16 << 20 };

/* The commit's model, if it is there and all that it stands on. */
static int open_model(bal_model **out, bal_found *found, bal_request *request,
                      bal_error *err)
{
    BAL_OWN(bal_spooled) kept = NULL;
    int rc = bal_found_spec(found, request, request->args[BAL_ARG_SPEC], err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(out, request->tenant, &found->id, err);
    if (rc != BAL_ENOTFOUND && rc != BAL_EBROKEN)
        return rc;
    kept = bal_spool_find(bal_daemon_spool(request->daemon),
                          bal_tenant_name(request->tenant), &found->id);
    if (kept)
        bal_spool_drop(bal_daemon_spool(request->daemon), kept);
    return rc;
}

/* ---- filling ----------------------------------------------------------------
 */

/* What is left to do when the reply is on its way. */
typedef struct filling {
    bal_spooled *spooled;
    bal_stream *stream;
} filling;

static void filling_free(filling *self)
{
    if (!self)
        return;
    bal_spooled_free(self->spooled);
    bal_stream_free(self->stream);
    free(self);
}

BAL_OWNABLE(filling)

/* A step, so that others get their turn. Whoever reads it hears of a
 * failure. */
static bool fill(void *ctx, const volatile bool *stop)
{
    BAL_OWN(filling) self = ctx;
    bal_error err = { 0 };

    if (bal_spooled_fill(self->spooled, self->stream, FILL_STEP, stop, &err))
        bal_warn("serve", "adapter-not-read=\"%s\"", err.text);
    else if (bal_spooled_fd(self->spooled) < 0)
        return BAL_TAKE(self) != NULL;
    return false;
}

static int make(bal_reply *reply, bal_request *request, bal_model *model,
                const bal_id *commit, bal_error *err)
{
    BAL_OWN(filling) self = calloc(1, sizeof(*self));
    bool mine = false;

    if (!self)
        return bal_fail_memory(err, "a reply");
    int rc = bal_stream_open(&self->stream, model, err);
    if (!rc)
        rc = bal_spool_make(&self->spooled, &mine,
                            bal_daemon_spool(request->daemon),
                            bal_tenant_name(request->tenant), commit,
                            bal_stream_size(self->stream), err);
    if (rc)
        return rc;
    reply->source = bal_spooled_ref(self->spooled);
    if (!mine)
        return 0;
    reply->after = fill;
    reply->after_ctx = BAL_TAKE(self);
    return 0;
}

/* What the reply is read from; HEAD is told how long it is, and nothing is
 * filled for it. */
static int find_source(uint64_t *size, bal_reply *reply, bal_request *request,
                       bal_model *model, const bal_id *commit, bal_error *err)
{
    BAL_OWN(bal_stream) stream = NULL;

    reply->source = bal_spool_find(bal_daemon_spool(request->daemon),
                                   bal_tenant_name(request->tenant), commit);
    int rc = 0;
    if (!reply->source && request->head)
        rc = bal_stream_open(&stream, model, err);
    else if (!reply->source)
        rc = make(reply, request, model, commit, err);
    if (rc)
        return rc;
    *size = stream ? bal_stream_size(stream) : bal_spooled_size(reply->source);
    return 0;
}

/* ---- handlers ---------------------------------------------------------------
 */

static void put_names(bal_reply *reply, const char *commit, const char *int_id)
{
    bal_reply_header(reply, "x-ballast-commit", commit);
    bal_reply_header(reply, "x-ballast-int-id", int_id);
}

int bal_get_adapter(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    bal_found found;
    uint64_t size = 0;
    int rc = open_model(&model, &found, request, err);
    if (rc || bal_found_same(reply, request, &found))
        return rc;

    const char *commit = bal_request_text(request, "%s", found.hex);
    const char *int_id =
        bal_request_text(request, "%" PRIu32, bal_id_serving(&found.id));
    if (!commit || !int_id)
        return bal_fail_memory(err, "a reply");
    rc = find_source(&size, reply, request, model, &found.id, err);
    if (rc)
        return rc;
    reply->type = "application/octet-stream";
    rc = bal_reply_range(reply, request, size, found.tag, err);
    if (rc || reply->status == 416)
        return rc;
    bal_reply_found(reply, &found);
    put_names(reply, commit, int_id);
    bal_reply_header(reply, "content-disposition",
                     "attachment; filename=\"adapter_model.safetensors\"");
    return 0;
}

int bal_get_config(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    bal_found found;
    int rc = open_model(&model, &found, request, err);
    if (rc || bal_found_same(reply, request, &found))
        return rc;
    rc = bal_adapter_file(&reply->body, model, "adapter_config.json", err);
    if (rc)
        return bal_within(err, rc, "commit %.12s", found.hex);
    bal_reply_found(reply, &found);
    reply->status = 200;
    return 0;
}
