/* What GET gives, request by request, without a socket. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/files.h"
#include "support/serving.h"

#define REFS    "/tenants/{t}/refs"
#define LORAS   "/tenants/{t}/loras"
#define COMMITS "/tenants/{t}/commits"
#define COMMIT  "/tenants/{t}/commits/{spec}"
#define ADAPTER "/tenants/{t}/commits/{spec}/adapter"
#define CONFIG  "/tenants/{t}/commits/{spec}/config"
#define DIFF    "/tenants/{t}/diff/{a}/{b}"

static serving with;

static bool is(const exchange *on, const char *path, const char *want)
{
    bool same = !strcmp(exchange_at(on, path), want);

    if (!same)
        print_error("%s is %s, not %s\n", path, exchange_at(on, path), want);
    return same;
}

static bool has_header(const exchange *on, const char *name, const char *want)
{
    const char *value = exchange_header(on, name);

    if (want && value && !strcmp(value, want))
        return true;
    if (!want && !value)
        return true;
    print_error("%s is %s\n", name, value ? value : "not there");
    return false;
}

static exchange get(const char *path, const char *a, const char *b)
{
    exchange on = { .method = "GET", .path = path, .args = { "acme", a, b } };

    serving_ask(&with, &on);
    return on;
}

static const struct {
    const char *path, *tenant, *a, *b;
    int status;
    const char *text; /* of the error */
} asked[] = {
    { "/health", NULL, NULL, NULL, 200, "" },
    { "/metrics", NULL, NULL, NULL, 200, "" },
    { "/openapi.json", NULL, NULL, NULL, 200, "" },
    { REFS, "acme", NULL, NULL, 200, "" },
    { REFS, "nobody", NULL, NULL, 404, "not found" },
    { LORAS, "acme", NULL, NULL, 200, "" },
    { LORAS, "nobody", NULL, NULL, 404, "not found" },
    { COMMITS, "acme", NULL, NULL, 200, "" },
    { COMMITS, "nobody", NULL, NULL, 404, "not found" },
    { COMMIT, "acme", "<id>", NULL, 200, "" },
    { COMMIT, "acme", "<id12>", NULL, 200, "" },
    { COMMIT, "acme", "main~4", NULL, 200, "" },
    { COMMIT, "acme", "main@{1}", NULL, 200, "" },
    { COMMIT, "acme", "main~5", NULL, 404, "no ref or commit" },
    { COMMIT, "acme", "none", NULL, 404, "no ref or commit" },
    { COMMIT, "acme", "<zeros>", NULL, 404, "no ref or commit" },
    { COMMIT, "acme", "a/b", NULL, 400, "not a spec" },
    { COMMIT, "beta", "<id>", NULL, 404, "no ref or commit" },
    { COMMIT, "nobody", "main", NULL, 404, "not found" },
    { COMMIT, "acme", "lost", NULL, 200, "" },
    { ADAPTER, "acme", "<id>", NULL, 200, "" },
    { ADAPTER, "acme", "blend", NULL, 200, "" },
    { ADAPTER, "acme", "whole", NULL, 200, "" },
    { ADAPTER, "acme", "lost", NULL, 409, "beta" },
    { ADAPTER, "acme", "none", NULL, 404, "no ref or commit" },
    { ADAPTER, "nobody", "main", NULL, 404, "not found" },
    { CONFIG, "acme", "main", NULL, 200, "" },
    { CONFIG, "acme", "whole", NULL, 404, "adapter_config.json" },
    { CONFIG, "acme", "lost", NULL, 409, "beta" },
    { CONFIG, "nobody", "main", NULL, 404, "not found" },
    { DIFF, "acme", "main~1", "main", 200, "" },
    { DIFF, "acme", "main", "none", 404, "no ref or commit" },
    { DIFF, "acme", "none", "main", 404, "no ref or commit" },
    { DIFF, "nobody", "main", "main", 404, "not found" },
};

/* "<id>" is the full id of main, "<id12>" its beginning, "<zeros>" nobody's. */
static const char *spec(const char *text)
{
    static char made[65];

    if (!text || text[0] != '<')
        return text;
    memset(made, '0', 64);
    if (text[1] == 'i')
        snprintf(made, sizeof(made), "%s", serving_hex(&with.main[4]));
    if (!strcmp(text, "<id12>"))
        made[12] = '\0';
    return made;
}

static void each_request_has_its_status(void)
{
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        exchange on = {
            .method = "GET",
            .path = asked[i].path,
            .args = { asked[i].tenant, spec(asked[i].a), asked[i].b },
        };
        check_row(asked[i].path);
        serving_ask(&with, &on);
        if (on.status != asked[i].status)
            print_error("%s %s: %d %s\n", asked[i].path,
                        asked[i].a ? asked[i].a : "", on.status, on.err.text);
        CHECK(on.status == asked[i].status);
        CHECK(strstr(on.err.text, asked[i].text) != NULL);
        /* Whoever is refused is told nothing to keep. */
        CHECK(on.status < 400 || !on.reply.header_count);
        exchange_done(&on);
    }
}

static void health_says_ok_and_nothing_else(void)
{
    exchange on = { .method = "GET", .path = "/health" };

    serving_ask(&with, &on);
    CHECK(!strcmp(bal_buf_string(&on.reply.body), "{\"status\":\"ok\"}"));
    exchange_done(&on);
}

static void refs_are_listed_by_name(void)
{
    exchange on = get(REFS, NULL, NULL);
    static const char *const names[] = { "blend", "lost", "main", "side",
                                         "whole" };
    const bal_id *ids[] = { &with.blend, &with.lost, &with.main[4], &with.side,
                            &with.whole };
    const char *at = bal_buf_string(&on.reply.body);

    CHECK(is(&on, "tenant", "acme"));
    CHECK(is(&on, "refs", "5"));
    for (size_t i = 0; i < 5; i++) {
        char path[32];
        snprintf(path, sizeof(path), "refs/%s", names[i]);
        CHECK(is(&on, path, serving_hex(ids[i])));
        at = strstr(at, names[i]);
        CHECK(at != NULL);
    }
    CHECK(on.reply.cacheable);
    CHECK(has_header(&on, "cache-control", "private, no-cache"));
    exchange_done(&on);
}

static void an_etag_of_refs_changes_with_them(void)
{
    exchange first = get(REFS, NULL, NULL);
    exchange again = get(REFS, NULL, NULL);
    serving_adapter(&with, "acme", "lora_r8_qv", "new", "one more");
    exchange changed = get(REFS, NULL, NULL);
    const char *tag = exchange_header(&first, "etag");

    CHECK(tag && tag[0] == '"' && tag[strlen(tag) - 1] == '"');
    CHECK(has_header(&again, "etag", tag));
    CHECK(strcmp(exchange_header(&changed, "etag"), tag) != 0);
    exchange_done(&first);
    exchange_done(&again);
    exchange_done(&changed);
}

static void loras_are_adapters_that_resolve(void)
{
    exchange on = get(LORAS, NULL, NULL);
    char number[16], url[128];

    CHECK(is(&on, "tenant", "acme"));
    CHECK(is(&on, "loras", "3"));
    CHECK(is(&on, "loras/0/ref", "blend"));
    CHECK(is(&on, "loras/1/ref", "main"));
    CHECK(is(&on, "loras/1/name", "acme-main"));
    CHECK(is(&on, "loras/1/commit", serving_hex(&with.main[4])));
    CHECK(is(&on, "loras/1/base_model", "base"));
    snprintf(number, sizeof(number), "%u",
             (unsigned)bal_id_serving(&with.main[4]));
    CHECK(is(&on, "loras/1/int_id", number));
    snprintf(url, sizeof(url), "/tenants/acme/commits/%s/adapter",
             serving_hex(&with.main[4]));
    CHECK(is(&on, "loras/1/url", url));
    /* By its config r is 8, and no pattern makes it more. */
    CHECK(is(&on, "loras/1/rank", "8"));
    CHECK(is(&on, "loras/2/ref", "side"));
    CHECK(is(&on, "skipped", "2"));
    CHECK(is(&on, "skipped/whole", "not an adapter"));
    CHECK(strstr(exchange_at(&on, "skipped/lost"), "beta") != NULL);
    CHECK(on.reply.cacheable);
    exchange_done(&on);
}

/* A product of adapters has their ranks' sum. */
static void the_rank_of_a_view_is_that_of_what_it_gives(void)
{
    exchange on = get(LORAS, NULL, NULL);
    long side = atol(exchange_at(&on, "loras/2/rank"));
    char sum[32];

    CHECK(side >= 4);
    snprintf(sum, sizeof(sum), "%ld", side + 8);
    CHECK(is(&on, "loras/0/rank", sum));
    exchange_done(&on);
}

static void pages_lead_from_head_to_root(void)
{
    static const char *const limits[] = { "1", "2", "3", "4", "5", "1000" };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        char after[65] = "";
        size_t seen = 0;
        check_row(limits[i]);
        for (bool more = true; more;) {
            exchange on = {
                .method = "GET",
                .path = COMMITS,
                .args = { "acme" },
                .query = { { "limit", limits[i] } },
            };
            if (after[0])
                on.query[1] = (bal_field){ "after", after };
            serving_ask(&with, &on);
            CHECK(on.status == 200);
            size_t count = json_array_size(json_object_get(on.json, "commits"));
            CHECK(count && count <= (size_t)atol(limits[i]));
            for (size_t c = 0; c < count; c++, seen++) {
                char path[32];
                CHECK(seen < 5);
                snprintf(path, sizeof(path), "commits/%zu/id", c);
                CHECK(is(&on, path, serving_hex(&with.main[4 - seen])));
            }
            snprintf(after, sizeof(after), "%s", exchange_at(&on, "next"));
            more = strcmp(after, "null") != 0;
            exchange_done(&on);
        }
        CHECK(seen == 5);
    }
}

static void a_page_that_cannot_be_is_refused(void)
{
    const struct {
        bal_field query;
        int status;
    } rows[] = {
        { { "limit", "0" }, 400 },
        { { "limit", "1001" }, 400 },
        { { "limit", "-1" }, 400 },
        { { "limit", "" }, 400 },
        { { "limit", "1e2" }, 400 },
        { { "after", "main" }, 400 },
        { { "after", "abcd" }, 400 },
        { { "ref", "none" }, 404 },
        { { "ref", "side" }, 200 },
        { { "ref", "a b" }, 400 },
        { { "after", "0000000000000000000000000000000000000000000000000000"
                     "000000000000" },
          404 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exchange on = {
            .method = "GET",
            .path = COMMITS,
            .args = { "acme" },
            .query = { rows[i].query },
        };
        check_row(rows[i].query.value);
        serving_ask(&with, &on);
        CHECK(on.status == rows[i].status);
        exchange_done(&on);
    }
}

static void a_commit_is_told_with_its_tensors(void)
{
    static const char name[] =
        "tensors/base_model.model.model.layers.0.self_attn.q_proj.lora_A"
        ".weight";
    exchange on = get(COMMIT, "main", NULL);
    char path[128];

    CHECK(is(&on, "id", serving_hex(&with.main[4])));
    CHECK(is(&on, "tenant", "acme"));
    CHECK(is(&on, "parent", serving_hex(&with.main[3])));
    CHECK(is(&on, "kind", "adapter"));
    CHECK(is(&on, "message", "m5"));
    CHECK(strcmp(exchange_at(&on, name), "-") != 0);
    snprintf(path, sizeof(path), "%s/shape/0", name);
    CHECK(is(&on, path, "8"));
    snprintf(path, sizeof(path), "%s/dtype", name);
    CHECK(is(&on, path, "F32"));
    exchange_done(&on);
}

static void a_view_that_lost_an_input_is_told_without_tensors(void)
{
    exchange on = get(COMMIT, serving_hex(&with.lost), NULL);

    CHECK(is(&on, "kind", "view"));
    CHECK(is(&on, "tensors", "null"));
    CHECK(has_header(&on, "cache-control", "private, no-cache"));
    CHECK(has_header(&on, "etag", NULL));
    exchange_done(&on);
}

/* For a year by the full id alone, and to be asked for again by any other. */
static void how_long_it_may_be_kept_depends_on_the_name(void)
{
    static const char *const paths[] = { COMMIT, ADAPTER, CONFIG };
    char id[65], prefix[13], tag[67];

    snprintf(id, sizeof(id), "%s", serving_hex(&with.main[4]));
    snprintf(prefix, sizeof(prefix), "%.12s", id);
    snprintf(tag, sizeof(tag), "\"%s\"", id);
    const char *const specs[] = { id, prefix, "main", "main~0", "main@{0}" };
    for (size_t i = 0; i < 15; i++) {
        exchange on = get(paths[i / 5], specs[i % 5], NULL);
        bool full = i % 5 == 0;
        check_row(specs[i % 5]);
        CHECK(on.status == 200);
        CHECK(has_header(&on, "etag", tag));
        CHECK(has_header(&on, "cache-control",
                         full ? "private, max-age=31536000, immutable"
                              : "private, no-cache"));
        CHECK(has_header(&on, "vary", full ? "authorization" : NULL));
        exchange_done(&on);
    }
}

static void what_the_client_has_is_not_sent_again(void)
{
    static const char *const paths[] = { COMMIT, ADAPTER, CONFIG };
    char tag[67];

    snprintf(tag, sizeof(tag), "\"%s\"", serving_hex(&with.main[4]));
    for (size_t i = 0; i < 3; i++) {
        exchange on = {
            .method = "GET",
            .path = paths[i],
            .args = { "acme", "main" },
            .if_none_match = tag,
        };
        check_row(paths[i]);
        serving_ask(&with, &on);
        CHECK(on.status == 304);
        CHECK(!on.reply.body.len && !on.reply.source);
        CHECK(has_header(&on, "etag", tag));
        on.args[1] = "main~1";
        serving_ask(&with, &on);
        CHECK(on.status == 200);
        exchange_done(&on);
    }
}

static void an_adapter_comes_with_its_names(void)
{
    exchange on = get(ADAPTER, "main", NULL);
    char number[16];

    snprintf(number, sizeof(number), "%u",
             (unsigned)bal_id_serving(&with.main[4]));
    CHECK(on.reply.source != NULL);
    CHECK(on.reply.length == bal_spooled_size(on.reply.source));
    CHECK(!strcmp(on.reply.type, "application/octet-stream"));
    CHECK(has_header(&on, "x-ballast-commit", serving_hex(&with.main[4])));
    CHECK(has_header(&on, "x-ballast-int-id", number));
    CHECK(has_header(&on, "content-disposition",
                     "attachment; filename=\"adapter_model.safetensors\""));
    exchange_done(&on);
}

/* The second who asks is given what was made for the first. */
static void an_adapter_is_made_once(void)
{
    exchange first = get(ADAPTER, "side", NULL);
    exchange second = get(ADAPTER, serving_hex(&with.side), NULL);

    CHECK(first.reply.source == second.reply.source);
    CHECK(first.reply.after && !second.reply.after);
    exchange_done(&first);
    exchange_done(&second);
}

/* What is kept ready is not given to whoever may not have it any more. */
static void a_revoked_grant_reaches_what_is_kept(void)
{
    serving_grant(&with);
    exchange before = get(ADAPTER, "lost", NULL);
    CHECK(before.status == 200);
    exchange_done(&before);
    serving_revoke(&with);
    exchange after = get(ADAPTER, "lost", NULL);
    CHECK(after.status == 409);
    CHECK(!after.reply.source);
    bal_spooled *kept = bal_spool_find(with.spool, "acme", &with.lost);
    CHECK(!kept);
    exchange_done(&after);
}

static void the_config_is_the_one_that_was_committed(void)
{
    BAL_LOCAL(bal_buf) want = { 0 };
    char path[300];
    exchange on = get(CONFIG, "main", NULL);

    snprintf(path, sizeof(path), "%s/adapter_config.json",
             serving_data("lora_r8_qv"));
    file_get(&want, path);
    CHECK(want.len == on.reply.body.len);
    CHECK(!memcmp(want.data, on.reply.body.data, want.len));
    exchange_done(&on);
}

static void a_view_has_a_config_of_its_own(void)
{
    exchange on = get(CONFIG, "blend", NULL);

    CHECK(is(&on, "peft_type", "LORA"));
    CHECK(is(&on, "base_model_name_or_path", "base"));
    exchange_done(&on);
}

static void a_diff_is_the_document_of_the_command(void)
{
    exchange on = get(DIFF, "main~1", "side");

    CHECK(is(&on, "schema", "ballast/diff/1"));
    CHECK(has_header(&on, "cache-control", "private, no-cache"));
    exchange_done(&on);
}

static const check_test tests[] = {
    { TEST(each_request_has_its_status) },
    { TEST(health_says_ok_and_nothing_else) },
    { TEST(refs_are_listed_by_name) },
    { TEST(loras_are_adapters_that_resolve) },
    { TEST(the_rank_of_a_view_is_that_of_what_it_gives) },
    { TEST(pages_lead_from_head_to_root) },
    { TEST(a_page_that_cannot_be_is_refused) },
    { TEST(a_commit_is_told_with_its_tensors) },
    { TEST(a_view_that_lost_an_input_is_told_without_tensors) },
    { TEST(how_long_it_may_be_kept_depends_on_the_name) },
    { TEST(what_the_client_has_is_not_sent_again) },
    { TEST(an_adapter_comes_with_its_names) },
    { TEST(an_adapter_is_made_once) },
    { TEST(a_revoked_grant_reaches_what_is_kept) },
    { TEST(the_config_is_the_one_that_was_committed) },
    { TEST(a_view_has_a_config_of_its_own) },
    { TEST(a_diff_is_the_document_of_the_command) },
    { TEST(an_etag_of_refs_changes_with_them) },
};

int main(void)
{
    serving_open(&with);
    int rc = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    serving_done(&with);
    return rc;
}
