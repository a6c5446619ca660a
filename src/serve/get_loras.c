/* GET of the adapters that a tenant's refs stand for, as an engine's loader
 * wants them. */
#include <string.h>

#include "core/error.h"
#include "serve/adapters.h"
#include "serve/handlers.h"

/* A ref, and why it is not among them; texts of the request's arena. */
typedef struct skipped {
    const char *ref, *why;
} skipped;

typedef struct loras {
    bal_request *request;
    bal_json json;
    bal_buf skipped; /* of struct skipped */
    size_t refs;
    int rc;
    bal_error *err;
} loras;

static void loras_done(loras *self)
{
    bal_buf_done(&self->skipped);
}

static int skip(loras *self, const char *ref, const char *why)
{
    bal_arena *arena = self->request->arena;
    skipped row = { bal_arena_copy(arena, ref, strlen(ref)),
                    bal_arena_copy(arena, why, strlen(why)) };

    if (!row.ref || !row.why)
        return bal_fail_memory(self->err, "a reply");
    return bal_buf_append(&self->skipped, &row, sizeof(row), self->err);
}

static int put_adapter(loras *self, const char *ref, const bal_commit *commit,
                       bal_model *model)
{
    const bal_commit_info *info = bal_commit_info_of(commit);
    const char *base_model = info->base_model
                                 ? info->base_model
                                 : bal_model_facts(model)->base_model;
    bal_request *request = self->request;
    char hex[BAL_ID_HEX + 1];
    uint64_t rank;

    bal_id_hex(hex, &info->id);
    const char *name = bal_request_text(request, "%s-%s", info->tenant, ref);
    const char *url = bal_request_text(
        request, "/tenants/%s/commits/%s/adapter", info->tenant, hex);
    if (!name || !url)
        return bal_fail_memory(self->err, "a reply");
    int rc = bal_adapter_rank(&rank, model, self->err);
    if (rc)
        return rc;
    bal_json_object(&self->json);
    bal_member_text(&self->json, "ref", ref);
    bal_member_text(&self->json, "name", name);
    bal_json_key(&self->json, "int_id");
    bal_json_u64(&self->json, bal_id_serving(&info->id));
    bal_member_text(&self->json, "commit", hex);
    bal_member_text(&self->json, "base_model", base_model);
    bal_json_key(&self->json, "rank");
    bal_json_u64(&self->json, rank);
    bal_member_text(&self->json, "url", url);
    bal_json_close(&self->json);
    return 0;
}

/* What a commit's model cannot be had for without anything being wrong with the
 * store as a whole. */
static bool is_its_own(int rc)
{
    return rc == BAL_EBROKEN || rc == BAL_EUNSUPPORTED || rc == BAL_ECORRUPT ||
           rc == BAL_EINVAL;
}

static int take(loras *self, const char *ref, const bal_id *id)
{
    BAL_OWN(bal_commit) commit = NULL;
    BAL_OWN(bal_model) model = NULL;
    bal_tenant *tenant = self->request->tenant;
    bal_error why = { 0 };
    int rc = bal_commit_open(&commit, tenant, id, &why);

    if (!rc)
        rc = bal_model_from_commit(&model, tenant, id, &why);
    if (rc == BAL_ENOTFOUND)
        return 0; /* forgotten meanwhile */
    if (is_its_own(rc))
        return skip(self, ref, why.text);
    if (rc)
        return bal_fail(self->err, rc, "%s", why.text);
    if (bal_model_facts(model)->kind != BAL_KIND_ADAPTER)
        return skip(self, ref, "not an adapter");
    return put_adapter(self, ref, commit, model);
}

static int each_ref(void *ctx, const char *ref, const bal_id *commit)
{
    loras *self = ctx;

    self->refs++;
    self->rc = take(self, ref, commit);
    return self->rc;
}

static void put_skipped(loras *self)
{
    bal_json_key(&self->json, "skipped");
    bal_json_object(&self->json);
    for (size_t at = 0; at < self->skipped.len; at += sizeof(skipped)) {
        skipped row;
        memcpy(&row, self->skipped.data + at, sizeof(row));
        bal_member_text(&self->json, row.ref, row.why);
    }
    bal_json_close(&self->json);
}

/* The body. */
static int list(bal_reply *reply, bal_request *request, bal_error *err)
{
    BAL_LOCAL(loras) self = { .request = request, .err = err };
    bool there = true;

    bal_json_begin(&self.json, &reply->body, 0);
    bal_json_object(&self.json);
    bal_member_text(&self.json, "tenant", bal_tenant_name(request->tenant));
    bal_json_key(&self.json, "loras");
    bal_json_array(&self.json);
    int rc = bal_ref_each(request->tenant, each_ref, &self, err);
    if (!rc)
        rc = self.rc;
    if (!rc && !self.refs)
        rc = bal_tenant_there(&there, request, err);
    if (!rc && !there)
        rc = bal_fail(err, BAL_ENOTFOUND, "%s", "not found");
    if (rc)
        return rc;
    bal_json_close(&self.json);
    put_skipped(&self);
    bal_json_close(&self.json);
    return bal_json_end(&self.json, err);
}

int bal_get_loras(bal_reply *reply, bal_request *request, bal_error *err)
{
    int rc = list(reply, request, err);
    reply->cacheable = !rc;
    return rc ? rc : bal_reply_tagged(reply, request, err);
}
