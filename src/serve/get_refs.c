/* GET of a tenant's refs. */
#include <string.h>

#include "core/error.h"
#include "serve/handlers.h"

typedef struct listing {
    bal_json json;
    size_t count;
} listing;

static int put_ref(void *ctx, const char *name, const bal_id *commit)
{
    listing *self = ctx;

    bal_member_id(&self->json, name, commit);
    self->count++;
    return 0;
}

int bal_get_refs(bal_reply *reply, bal_request *request, bal_error *err)
{
    listing self = { .count = 0 };
    bool there = true;

    bal_json_begin(&self.json, &reply->body, 0);
    bal_json_object(&self.json);
    bal_member_text(&self.json, "tenant", bal_tenant_name(request->tenant));
    bal_json_key(&self.json, "refs");
    bal_json_object(&self.json);
    int rc = bal_ref_each(request->tenant, put_ref, &self, err);
    if (!rc && !self.count)
        rc = bal_tenant_there(&there, request, err);
    if (!rc && !there)
        rc = bal_fail(err, BAL_ENOTFOUND, "%s", "not found");
    if (rc)
        return rc;
    bal_json_close(&self.json);
    bal_json_close(&self.json);
    rc = bal_json_end(&self.json, err);
    reply->cacheable = !rc;
    return rc ? rc : bal_reply_tagged(reply, request, err);
}
