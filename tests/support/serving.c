#include "support/serving.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "serve/daemon.h"
#include "support/files.h"

/* What a handler asks of the server, in a test. */
struct bal_daemon {
    bal_spool *spool;
};

bal_spool *bal_daemon_spool(bal_daemon *self)
{
    return self->spool;
}

int bal_daemon_metrics(bal_daemon *self, bal_buf *to, bal_error *err)
{
    (void)self;
    return bal_buf_text(to, "ballast_up 1\n", err);
}

/* One of some texts that are used in turn. */
static char *room(void)
{
    static char rooms[16][256];
    static size_t next;

    return rooms[next++ % 16];
}

const char *serving_hex(const bal_id *id)
{
    char *text = room();

    bal_id_hex(text, id);
    return text;
}

const char *serving_data(const char *name)
{
    const char *tree = getenv("BALLAST_TREE");
    char *path = room();

    snprintf(path, 256, "%s/tests/data/adapters/%s", tree ? tree : ".", name);
    return path;
}

static bal_tenant *tenant_of(serving *self, const char *name)
{
    bal_tenant *tenant = NULL;

    CHECK_OK(bal_tenant_open(&tenant, self->store, name, &check_err));
    return tenant;
}

static bal_id commit_path(serving *self, const char *tenant, const char *path,
                          const char *ref, const char *message)
{
    BAL_OWN(bal_tenant) whose = tenant_of(self, tenant);
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    const bal_draft draft = { .ref = ref, .message = message, .author = "a" };

    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK_OK(bal_commit_model(&commit, whose, model, &draft, NULL, &check_err));
    return bal_commit_info_of(commit)->id;
}

bal_id serving_adapter(serving *self, const char *tenant, const char *name,
                       const char *ref, const char *message)
{
    return commit_path(self, tenant, serving_data(name), ref, message);
}

static bal_id view(serving *self, const char *a, const char *b, const char *ref)
{
    BAL_OWN(bal_tenant) acme = tenant_of(self, "acme");
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    const bal_draft draft = { .ref = ref, .message = "m", .author = "a" };

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_input(recipe, acme, a, &check_err));
    if (b)
        CHECK_OK(bal_recipe_input(recipe, acme, b, &check_err));
    CHECK_OK(bal_commit_view(&commit, acme, recipe, &draft, NULL, &check_err));
    return bal_commit_info_of(commit)->id;
}

void serving_grant(serving *self)
{
    BAL_OWN(bal_tenant) beta = tenant_of(self, "beta");

    CHECK_OK(bal_grant(beta, &self->beta, "acme", NULL, NULL, &check_err));
}

void serving_revoke(serving *self)
{
    BAL_OWN(bal_tenant) beta = tenant_of(self, "beta");
    uint64_t revoked;

    CHECK_OK(bal_revoke(beta, &self->beta, "acme", &revoked, NULL, NULL,
                        &check_err));
}

static void open_store(serving *self)
{
    const bal_store_options options = {
        .root = file_dir(),
        .flags = BAL_OPEN_CREATE,
        .work = self->work,
    };

    CHECK_OK(bal_store_open(&self->store, &options, &check_err));
}

void serving_open(serving *self)
{
    static const float values[3] = { 1, 2, 3 };
    char *path = room();

    memset(self, 0, sizeof(*self));
    CHECK_OK(bal_work_new(&self->work, 1, &check_err));
    CHECK_OK(bal_spool_new(&self->spool, file_dir(), 1 << 20, &check_err));
    open_store(self);
    for (size_t i = 0; i < 5; i++) {
        char message[] = "m0";
        message[1] = (char)('1' + i);
        self->main[i] =
            serving_adapter(self, "acme", "lora_r8_qv", "main", message);
    }
    self->side =
        serving_adapter(self, "acme", "lora_r4_patterns", "side", "side");
    self->beta = serving_adapter(self, "beta", "lora_r8_qv", "main", "beta's");
    self->blend = view(self, "main@0.5", "side@0.25", "blend");
    snprintf(path, 256, "%s", file_path("whole.safetensors"));
    file_tensors(path,
                 "{\"w\":{\"dtype\":\"F32\",\"shape\":[3],"
                 "\"data_offsets\":[0,12]}}",
                 values, sizeof(values));
    self->whole = commit_path(self, "acme", path, "whole", "w");
    serving_grant(self);
    self->lost = view(self, "beta:main", NULL, "lost");
    serving_revoke(self);
}

void serving_done(serving *self)
{
    bal_spool_free(self->spool);
    bal_store_free(self->store);
    bal_work_free(self->work);
}

static const bal_route *route_of(const exchange *on)
{
    for (size_t i = 0; i < bal_route_count; i++) {
        if (!strcmp(bal_routes[i].path, on->path) &&
            !strcmp(bal_routes[i].method, on->method))
            return &bal_routes[i];
    }
    check_that(0, "a route of this path", __FILE__, __LINE__);
    return NULL;
}

static size_t query_count(const exchange *on)
{
    size_t count = 0;

    while (count < 6 && on->query[count].name)
        count++;
    return count;
}

void exchange_done(exchange *self)
{
    bal_reply_done(&self->reply);
    memset(&self->reply, 0, sizeof(self->reply));
    bal_arena_done(&self->arena);
    json_decref(self->json);
    self->json = NULL;
}

static void answered(exchange *on, int rc)
{
    const char *type = on->reply.type ? on->reply.type : "application/json";
    const bal_buf *body = &on->reply.body;

    on->status = on->reply.status;
    if (rc && on->status < 400)
        on->status = bal_code_find(rc)->http;
    if (on->reply.after) {
        volatile bool stop = false;
        on->reply.after(on->reply.after_ctx, &stop);
    }
    if (!rc && body->len && !strcmp(type, "application/json"))
        CHECK_OK(bal_json_parse(&on->json, body->data, body->len, "the reply",
                                &check_err));
}

void serving_ask(serving *self, exchange *on)
{
    struct bal_daemon daemon = { self->spool };
    bal_tenant *tenant = NULL;
    bal_request request = {
        .query = on->query,
        .query_count = query_count(on),
        .if_match = on->if_match,
        .if_none_match = on->if_none_match,
        .body = { on->body, on->body ? strlen(on->body) : 0 },
        .upload = on->upload,
        .scope = &bal_scope_open,
        .store = self->store,
        .work = self->work,
        .arena = &on->arena,
        .daemon = &daemon,
    };

    exchange_done(on);
    memset(&on->err, 0, sizeof(on->err));
    request.route = route_of(on);
    memcpy(request.args, on->args, sizeof(request.args));
    if (on->args[0])
        CHECK_OK(
            bal_tenant_open(&tenant, self->store, on->args[0], &check_err));
    request.tenant = tenant;
    answered(on, request.route->handle(&on->reply, &request, &on->err));
    bal_tenant_free(tenant);
}

const char *exchange_header(const exchange *self, const char *name)
{
    for (size_t i = 0; i < self->reply.header_count; i++) {
        if (!strcmp(self->reply.headers[i].name, name))
            return self->reply.headers[i].value;
    }
    return NULL;
}

/* The member or item that a path's next part names. */
static json_t *step(json_t *from, const char *part, size_t len)
{
    char name[128];

    snprintf(name, sizeof(name), "%.*s", (int)len, part);
    return json_is_array(from) ? json_array_get(from, (size_t)atol(name))
                               : json_object_get(from, name);
}

const char *exchange_at(const exchange *self, const char *path)
{
    json_t *at = self->json;
    char *text = room();

    for (; at && *path; path += strspn(path, "/")) {
        size_t len = strcspn(path, "/");
        at = step(at, path, len);
        path += len;
    }
    if (!at)
        snprintf(text, 256, "-");
    else if (json_is_string(at))
        snprintf(text, 256, "%s", json_string_value(at));
    else if (json_is_integer(at))
        snprintf(text, 256, "%lld", (long long)json_integer_value(at));
    else if (json_is_real(at))
        snprintf(text, 256, "%g", json_real_value(at));
    else if (json_is_null(at))
        snprintf(text, 256, "null");
    else if (json_is_boolean(at))
        snprintf(text, 256, "%s", json_is_true(at) ? "true" : "false");
    else
        snprintf(text, 256, "%zu",
                 json_is_array(at) ? json_array_size(at)
                                   : json_object_size(at));
    return text;
}
