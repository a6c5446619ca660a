/* What POST and DELETE do, request by request, without a socket. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "support/check.h"
#include "support/files.h"
#include "support/serving.h"

#define COMMITS "/tenants/{t}/commits"
#define MERGES  "/tenants/{t}/merges"
#define DELETED "/tenants/{t}/commits/{id}"

static serving with;

static bool is(const exchange *on, const char *path, const char *want)
{
    bool same = !strcmp(exchange_at(on, path), want);

    if (!same)
        print_error("%s is %s, not %s\n", path, exchange_at(on, path), want);
    return same;
}

static bool answers(const exchange *on, int status, const char *text)
{
    bool right = on->status == status && strstr(on->err.text, text);

    if (!right)
        print_error("%d \"%s\", not %d \"%s\"\n", on->status, on->err.text,
                    status, text);
    return right;
}

static bal_id head(const char *tenant, const char *ref)
{
    bal_tenant *whose = NULL;
    bal_id id = { { 0 } };

    CHECK_OK(bal_tenant_open(&whose, with.store, tenant, &check_err));
    if (bal_resolve(&id, whose, ref, &check_err))
        memset(&id, 0, sizeof(id));
    bal_tenant_free(whose);
    return id;
}

static bool same_id(const bal_id *a, const bal_id *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* ---- commits ---------------------------------------------------------------
 */

/* The folder of a body with these bytes. */
static const char *upload(const void *data, size_t len)
{
    const char *folder = file_dir();
    char path[300];

    snprintf(path, sizeof(path), "%s/adapter_model.safetensors", folder);
    file_put(path, data, len);
    return folder;
}

static const char *upload_adapter(void)
{
    BAL_LOCAL(bal_buf) data = { 0 };
    char path[300];

    snprintf(path, sizeof(path), "%s/adapter_model.safetensors",
             serving_data("lora_r8_qv"));
    file_get(&data, path);
    return upload(data.data, data.len);
}

static void config_of(bal_buf *to)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/adapter_config.json",
             serving_data("lora_r8_qv"));
    file_get(to, path);
}

static void an_adapter_is_recorded_as_it_was_sent(void)
{
    BAL_LOCAL(bal_buf) config = { 0 };
    config_of(&config);
    exchange on = {
        .method = "POST",
        .path = COMMITS,
        .args = { "acme" },
        .query = { { "message", "from afar" },
                   { "ref", "sent" },
                   { "config", bal_buf_string(&config) },
                   { "metadata", "{\"run\": 41}" } },
        .upload = upload_adapter(),
    };
    char place[128];

    serving_ask(&with, &on);
    CHECK(answers(&on, 201, ""));
    CHECK(is(&on, "kind", "adapter"));
    CHECK(is(&on, "message", "from afar"));
    CHECK(is(&on, "ref", "sent"));
    CHECK(is(&on, "author", "http"));
    CHECK(is(&on, "base_model", "base"));
    CHECK(is(&on, "metadata/run", "41"));
    bal_id id = head("acme", "sent");
    CHECK(is(&on, "id", serving_hex(&id)));
    snprintf(place, sizeof(place), "/tenants/acme/commits/%s",
             serving_hex(&id));
    CHECK(!strcmp(exchange_header(&on, "location"), place));
    exchange_done(&on);

    /* The same manifest as of the folder that the file is from. */
    exchange here = { .method = "GET",
                      .path = "/tenants/{t}/commits/{spec}",
                      .args = { "acme", "main" } };
    exchange sent = { .method = "GET",
                      .path = "/tenants/{t}/commits/{spec}",
                      .args = { "acme", "sent" } };
    serving_ask(&with, &here);
    serving_ask(&with, &sent);
    CHECK(is(&sent, "manifest", exchange_at(&here, "manifest")));
    exchange_done(&here);
    exchange_done(&sent);
}

static void a_file_without_a_config_is_recorded_as_what_it_is(void)
{
    exchange on = {
        .method = "POST",
        .path = COMMITS,
        .args = { "fresh" },
        .query = { { "message", "bare" }, { "base_model", "llama" } },
        .upload = upload_adapter(),
    };

    serving_ask(&with, &on);
    CHECK(answers(&on, 201, ""));
    CHECK(is(&on, "ref", "main"));
    CHECK(is(&on, "tenant", "fresh"));
    CHECK(is(&on, "base_model", "llama"));
    CHECK(is(&on, "parent", "null"));
    exchange_done(&on);
}

static void a_bad_upload_is_the_clients(void)
{
    static const struct {
        const char *body;
        bal_field query[3];
        const char *text;
    } rows[] = {
        { "", { { "message", "m" } }, "adapter_model.safetensors" },
        { "junk", { { "message", "m" } }, "adapter_model.safetensors" },
        { "\x80{}", { { "message", "m" } }, "adapter_model" },
        { "<!doctype html>", { { "message", "m" } }, "HTML" },
        { NULL, { { "ref", "r" } }, "message" },
        { NULL, { { "message", "" } }, "message" },
        { NULL, { { "message", "m" }, { "config", "{" } }, "config" },
        { NULL, { { "message", "m" }, { "config", "[]" } }, "config" },
        { NULL, { { "message", "m" }, { "config", "" } }, "config" },
        { NULL,
          { { "message", "m" }, { "config", "{\"r\":1,\"r\":1}" } },
          "config" },
        { NULL, { { "message", "m" }, { "metadata", "[1]" } }, "metadata" },
        { NULL, { { "message", "m" }, { "metadata", "{" } }, "metadata" },
        { NULL, { { "message", "m" }, { "ref", "a b" } }, "ref name" },
        { NULL, { { "message", "\xff" } }, "UTF-8" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *body = rows[i].body;
        exchange on = {
            .method = "POST",
            .path = COMMITS,
            .args = { "acme" },
            .query = { rows[i].query[0], rows[i].query[1], rows[i].query[2] },
        };
        check_row(rows[i].text);
        on.upload = body ? upload(body, strlen(body)) : upload_adapter();
        serving_ask(&with, &on);
        CHECK(answers(&on, 400, rows[i].text));
        /* Where the server keeps it is nobody's business. */
        CHECK(!strstr(on.err.text, on.upload));
        CHECK(!on.reply.header_count);
        exchange_done(&on);
    }
}

/* ---- where the ref must be --------------------------------------------------
 */

static void a_ref_moves_only_from_where_it_is_said_to_be(void)
{
    char at[67], before[67];
    bal_id first = serving_adapter(&with, "acme", "lora_r8_qv", "if", "one");
    bal_id second = serving_adapter(&with, "acme", "lora_r8_qv", "if", "two");
    snprintf(before, sizeof(before), "\"%s\"", serving_hex(&first));
    snprintf(at, sizeof(at), "\"%s\"", serving_hex(&second));
    const struct {
        const char *match, *ref;
        int status;
    } rows[] = {
        { before, "if", 412 },     { before, "nothing", 412 },
        { "*", "nothing", 412 },   { "main", "if", 400 },
        { "\"main\"", "if", 400 }, { "\"\"", "if", 400 },
        { "W/\"x\"", "if", 400 },  { at, "if", 201 },
        { at, "if", 412 },         { "*", "if", 201 },
    };

    for (size_t i = 0; i < 2 * (sizeof(rows) / sizeof(rows[0])); i++) {
        size_t row = i / 2;
        char message[32], body[128];
        exchange on = { .args = { "acme" }, .if_match = rows[row].match };
        bal_id head_before = head("acme", rows[row].ref);
        if (i % 2 && rows[row].status == 201)
            continue; /* it has moved */
        check_row(rows[row].match);
        snprintf(message, sizeof(message), "number %zu", i);
        snprintf(body, sizeof(body),
                 "{\"inputs\":[{\"spec\":\"main\"}],\"message\":\"%s\","
                 "\"ref\":\"%s\"}",
                 message, rows[row].ref);
        on.method = "POST";
        on.path = i % 2 ? MERGES : COMMITS;
        on.body = body;
        on.query[0] = (bal_field){ "message", message };
        on.query[1] = (bal_field){ "ref", rows[row].ref };
        on.upload = upload_adapter();
        serving_ask(&with, &on);
        CHECK(answers(&on, rows[row].status, ""));
        bal_id now = head("acme", rows[row].ref);
        CHECK(same_id(&now, &head_before) == (on.status != 201));
        exchange_done(&on);
    }
}

/* ---- merges -----------------------------------------------------------------
 */

static void a_merge_is_recorded_with_what_was_asked(void)
{
    exchange on = {
        .method = "POST",
        .path = MERGES,
        .args = { "acme" },
        .body = "{\"inputs\": [{\"spec\": \"main\", \"weight\": 0.6},"
                " {\"spec\": \"side\", \"weight\": 1}], \"message\": \"both\","
                " \"ref\": \"both\", \"parameters\": {\"normalize\": true},"
                " \"strict\": false}",
    };

    serving_ask(&with, &on);
    CHECK(answers(&on, 201, ""));
    CHECK(is(&on, "kind", "view"));
    CHECK(is(&on, "ref", "both"));
    CHECK(is(&on, "author", "http"));
    CHECK(is(&on, "recipe/method", "linear"));
    CHECK(is(&on, "recipe/inputs/0/weight", "0.6"));
    CHECK(is(&on, "recipe/inputs/0/commit", serving_hex(&with.main[4])));
    CHECK(is(&on, "recipe/inputs/1/weight", "1"));
    CHECK(is(&on, "recipe/parameters/normalize", "true"));
    bal_id id = head("acme", "both");
    CHECK(is(&on, "id", serving_hex(&id)));
    exchange_done(&on);
}

static void inputs_have_parameters_of_their_own(void)
{
    exchange on = {
        .method = "POST",
        .path = MERGES,
        .args = { "acme" },
        .body =
            "{\"inputs\": [{\"spec\": \"main@{0}\", \"weight\": \"0,0.5,1\","
            " \"density\": 0.3}, {\"spec\": \"main~1\", \"density\": 1}],"
            " \"message\": \"m\", \"ref\": \"own\", \"method\": \"ties\","
            " \"parameters\": {\"space\": \"factors\"}}",
    };

    serving_ask(&with, &on);
    CHECK(answers(&on, 201, ""));
    CHECK(is(&on, "recipe/method", "ties"));
    CHECK(is(&on, "recipe/inputs/0/parameters/density", "0.3"));
    CHECK(is(&on, "recipe/space", "factors"));
    exchange_done(&on);
}

#define ONE "{\"inputs\": [{\"spec\": \"main\"}], \"message\": \"m\""

static const struct {
    const char *body;
    int status;
    const char *text;
} refused[] = {
    { "", 400, "the body" },
    { "{", 400, "the body" },
    { "[]", 400, "not an object" },
    { "{}", 400, "'inputs' is missing" },
    { "{\"inputs\": [], \"message\": \"m\"}", 400, "'inputs' is empty" },
    { "{\"inputs\": [{\"spec\": \"main\"}]}", 400, "'message' is missing" },
    { "{\"inputs\": {}, \"message\": \"m\"}", 400, "'inputs' is not" },
    { "{\"inputs\": [1], \"message\": \"m\"}", 400, "inputs[0]" },
    { "{\"inputs\": [{}], \"message\": \"m\"}", 400, "inputs[0]" },
    { "{\"inputs\": [{\"spec\": 1}], \"message\": \"m\"}", 400, "inputs[0]" },
    { ONE ", \"methods\": \"linear\"}", 400, "'methods'" },
    { ONE ", \"method\": \"none\"}", 400, "no method 'none'" },
    { ONE ", \"method\": 1}", 400, "'method' is not text" },
    { ONE ", \"ref\": \"a b\"}", 400, "ref name" },
    { ONE ", \"ref\": null}", 400, "'ref' is not text" },
    { ONE ", \"seed\": 1.5}", 400, "'seed' is not an integer" },
    { ONE ", \"seed\": \"1\"}", 400, "'seed' is not an integer" },
    { ONE ", \"strict\": 1}", 400, "'strict' is not true or false" },
    { ONE ", \"parameters\": []}", 400, "'parameters' is not an object" },
    { ONE ", \"parameters\": {\"t\": 1}}", 400, "'t'" },
    { ONE ", \"parameters\": {\"normalize\": []}}", 400, "'normalize'" },
    { ONE ", \"parameters\": {\"normalize\": \"maybe\"}}", 400, "maybe" },
    { ONE ", \"message\": \"n\"}", 400, "the body" },
    { "{\"inputs\": [{\"spec\": \"main@0.5\"}], \"message\": \"m\"}", 400,
      "not a spec" },
    { "{\"inputs\": [{\"spec\": \"main,weight=2\"}], \"message\": \"m\"}", 400,
      "not a spec" },
    { "{\"inputs\": [{\"spec\": \"main\", \"weight\": \"1,density=2\"}],"
      " \"message\": \"m\"}",
      400, "not a value of 'weight'" },
    { "{\"inputs\": [{\"spec\": \"main\", \"weight\": null}],"
      " \"message\": \"m\"}",
      400, "'weight' is not" },
    { "{\"inputs\": [{\"spec\": \"main\", \"a=b\": 1}],"
      " \"message\": \"m\"}",
      400, "not a parameter" },
    { "{\"inputs\": [{\"spec\": \"main\", \"t\": 1}], \"message\": \"m\"}", 400,
      "'t'" },
    { "{\"inputs\": [{\"spec\": \"none\"}], \"message\": \"m\"}", 404,
      "no ref or commit 'none'" },
    { "{\"inputs\": [{\"spec\": \"main\"}, {\"spec\": \"whole\"}],"
      " \"message\": \"m\"}",
      400, "" },
    { "{\"inputs\": [{\"spec\": \"lost\"}], \"message\": \"m\"}", 409, "beta" },
};

static void a_merge_that_cannot_be_is_refused(void)
{
    bal_id before = head("acme", "main");

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        exchange on = { .method = "POST",
                        .path = MERGES,
                        .args = { "acme" },
                        .body = refused[i].body };
        check_row(refused[i].body);
        serving_ask(&with, &on);
        CHECK(answers(&on, refused[i].status, refused[i].text));
        exchange_done(&on);
    }
    bal_id after = head("acme", "main");
    CHECK(same_id(&before, &after));
}

/* Another tenant's commit without a grant, one that is not there, and one of a
 * tenant that is not there: the same but for the name that was asked for. */
static void what_was_not_granted_is_not_there(void)
{
    static const char *const specs[] = { "beta:main", "beta:none",
                                         "nobody:main" };

    for (size_t i = 0; i < 3; i++) {
        char body[128], want[128];
        const char *spec = strchr(specs[i], ':') + 1;
        snprintf(body, sizeof(body),
                 "{\"inputs\":[{\"spec\":\"%s\"}],\"message\":\"m\"}",
                 specs[i]);
        snprintf(want, sizeof(want), "no ref or commit '%s' in tenant '%.*s'",
                 spec, (int)(spec - specs[i] - 1), specs[i]);
        exchange on = {
            .method = "POST", .path = MERGES, .args = { "acme" }, .body = body
        };
        check_row(specs[i]);
        serving_ask(&with, &on);
        CHECK(on.status == 404 && on.err.code == BAL_ENOTFOUND);
        CHECK(!strcmp(on.err.text, want));
        CHECK(!on.err.hint[0]);
        exchange_done(&on);
    }
}

/* ---- deleting ---------------------------------------------------------------
 */

static void only_a_full_id_with_a_reason_is_deleted(void)
{
    char id[65], prefix[64];
    snprintf(id, sizeof(id), "%s", serving_hex(&with.side));
    snprintf(prefix, sizeof(prefix), "%.63s", id);
    const struct {
        const char *tenant, *id;
        bal_field query;
        int status;
        const char *text;
    } rows[] = {
        { "acme", "side", { "reason", "r" }, 400, "not the full id" },
        { "acme", prefix, { "reason", "r" }, 400, "not the full id" },
        { "acme", id, { NULL, NULL }, 400, "reason" },
        { "acme", id, { "reason", "" }, 400, "reason" },
        { "acme", id, { "reason", "\xff" }, 400, "" },
        { "beta", id, { "reason", "r" }, 404, "" },
        { "nobody", id, { "reason", "r" }, 404, "not found" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exchange on = { .method = "DELETE",
                        .path = DELETED,
                        .args = { rows[i].tenant, rows[i].id },
                        .query = { rows[i].query } };
        check_row(rows[i].id);
        serving_ask(&with, &on);
        CHECK(answers(&on, rows[i].status, rows[i].text));
        exchange_done(&on);
    }
    bal_id still = head("acme", id);
    CHECK(same_id(&still, &with.side));
}

/* With it goes what was kept ready, of it and of the views on it. */
static void a_deleted_commit_is_gone_everywhere(void)
{
    char id[65], blend[65];
    snprintf(id, sizeof(id), "%s", serving_hex(&with.side));
    snprintf(blend, sizeof(blend), "%s", serving_hex(&with.blend));
    exchange get = { .method = "GET",
                     .path = "/tenants/{t}/commits/{spec}/adapter",
                     .args = { "acme", id } };
    exchange view = get;
    exchange on = { .method = "DELETE",
                    .path = DELETED,
                    .args = { "acme", id },
                    .query = { { "reason", "request 4711" } } };

    view.args[1] = blend;
    serving_ask(&with, &get);
    serving_ask(&with, &view);
    CHECK(answers(&get, 200, "") && answers(&view, 200, ""));
    exchange_done(&get);
    exchange_done(&view);
    serving_ask(&with, &on);
    CHECK(answers(&on, 200, ""));
    CHECK(is(&on, "verified", "true"));
    CHECK(strlen(exchange_at(&on, "attestation")) == 64);
    CHECK(!bal_spool_find(with.spool, "acme", &with.side));
    CHECK(!bal_spool_find(with.spool, "acme", &with.blend));
    serving_ask(&with, &get);
    serving_ask(&with, &view);
    CHECK(answers(&get, 404, "") && answers(&view, 409, ""));
    serving_ask(&with, &on);
    CHECK(answers(&on, 404, ""));
    exchange_done(&get);
    exchange_done(&view);
    exchange_done(&on);
}

static const check_test tests[] = {
    { TEST(an_adapter_is_recorded_as_it_was_sent) },
    { TEST(a_file_without_a_config_is_recorded_as_what_it_is) },
    { TEST(a_bad_upload_is_the_clients) },
    { TEST(a_ref_moves_only_from_where_it_is_said_to_be) },
    { TEST(a_merge_is_recorded_with_what_was_asked) },
    { TEST(inputs_have_parameters_of_their_own) },
    { TEST(a_merge_that_cannot_be_is_refused) },
    { TEST(what_was_not_granted_is_not_there) },
    { TEST(only_a_full_id_with_a_reason_is_deleted) },
    { TEST(a_deleted_commit_is_gone_everywhere) },
};

int main(void)
{
    unsetenv("BALLAST_SIGNING_KEY");
    serving_open(&with);
    int rc = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    serving_done(&with);
    return rc;
}
