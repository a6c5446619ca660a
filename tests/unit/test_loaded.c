/* What servers were told to load, and what a deletion says of them. */
#include <string.h>

#include "core/json.h"
#include "support/shared.h"

static bal_tenant *acme_of(bal_store *store)
{
    bal_tenant *tenant = NULL;

    CHECK_OK(bal_tenant_open(&tenant, store, "acme", &check_err));
    return tenant;
}

static void put(bal_tenant *tenant, const char *server, const char *name,
                const bal_id *commit, int64_t unloaded)
{
    const bal_loaded row = { server, name, "/exports", *commit, 1, unloaded };

    CHECK_OK(bal_loaded_put(tenant, &row, &check_err));
}

static int join(void *ctx, const bal_loaded *row)
{
    CHECK_OK(bal_buf_format(ctx, &check_err, "%s %s %d %d; ", row->server,
                            row->name, (int)row->loaded_at,
                            (int)row->unloaded_at));
    return 0;
}

static void check_rows(bal_tenant *tenant, const bal_id *commit,
                       const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    check_row(want);
    CHECK_OK(bal_loaded_each(tenant, commit, join, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

static void rows_go_by_server_and_name(void)
{
    BAL_OWN(bal_store) store = shared_store(shared_root(), 0);
    bal_id one = shared_commit(store, "acme", 1, 100, "one");
    bal_id two = shared_commit(store, "acme", 2, 100, "two");
    BAL_OWN(bal_tenant) acme = acme_of(store);

    put(acme, "http://b", "x", &one, 0);
    put(acme, "http://a", "y", &two, 0);
    put(acme, "http://a", "x", &one, 0);
    check_rows(acme, NULL, "http://a x 1 0; http://a y 1 0; http://b x 1 0; ");
    check_rows(acme, &one, "http://a x 1 0; http://b x 1 0; ");
    put(acme, "http://a", "x", &one, 7);
    check_rows(acme, &one, "http://a x 1 7; http://b x 1 0; ");
    CHECK_OK(bal_loaded_drop(acme, "http://b", "x", &check_err));
    CHECK_OK(bal_loaded_drop(acme, "http://b", "none", &check_err));
    check_rows(acme, NULL, "http://a x 1 7; http://a y 1 0; ");
}

static void what_is_no_row_is_refused(void)
{
    static const struct {
        const char *why, *server, *name;
        bool there;
        int code;
    } rows[] = {
        { "no server", "", "x", true, BAL_EINVAL },
        { "no name", "http://a", "", true, BAL_EINVAL },
        { "a name that is not UTF-8", "http://a", "\xff", true, BAL_EINVAL },
        { "a password", "http://me:secret@a/v1", "x", true, BAL_EINVAL },
        { "an @ in a path", "http://a/@x", "x", true, 0 },
        { "a commit that is not there", "http://a", "x", false, BAL_ENOTFOUND },
    };
    BAL_OWN(bal_store) store = shared_store(shared_root(), 0);
    bal_id one = shared_commit(store, "acme", 1, 100, "one");
    BAL_OWN(bal_tenant) acme = acme_of(store);
    const bal_id none = { { 1 } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bal_loaded row = {
            .server = rows[i].server,
            .name = rows[i].name,
            .path = "/exports",
            .commit = rows[i].there ? one : none,
            .loaded_at = 1,
        };
        check_row(rows[i].why);
        CHECK_RC(rows[i].code, bal_loaded_put(acme, &row, &check_err));
    }
}

/* ---- deletion ------------------------------------------------------------ */

/* The statement of what goes, or with no_commit of a tenant that goes. */
static json_t *forget(bal_tenant *tenant, const bal_id *commit)
{
    const bal_forget_options options = { .commit = commit, .reason = "asked" };
    bal_proof *proof = NULL;
    json_t *statement = NULL;

    CHECK_OK(bal_forget(&proof, tenant, &options, &check_err));
    const char *text = bal_proof_info_of(proof)->statement;
    CHECK_OK(bal_json_parse(&statement, text, strlen(text), "it", &check_err));
    bal_proof_free(proof);
    return statement;
}

/* "server name unloaded?" of each, then what is not covered of servers. */
static void join_servers(bal_buf *to, const json_t *statement)
{
    const json_t *predicate = json_object_get(statement, "predicate");
    const json_t *servers = json_object_get(predicate, "servers");
    const json_t *texts = json_object_get(predicate, "not_covered");

    for (size_t i = 0; i < json_array_size(servers); i++) {
        const json_t *row = json_array_get(servers, i);
        const char *at = json_string_value(json_object_get(row, "unloaded_at"));
        CHECK_OK(
            bal_buf_format(to, &check_err, "%s %s %s %s; ",
                           json_string_value(json_object_get(row, "server")),
                           json_string_value(json_object_get(row, "name")),
                           json_string_value(json_object_get(row, "loaded_at")),
                           at ? at : "-"));
    }
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *text = json_string_value(json_array_get(texts, i));
        if (!strncmp(text, "server ", 7))
            CHECK_OK(bal_buf_format(to, &check_err, "%s; ", text));
    }
}

static void check_servers(const json_t *statement, const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    join_servers(&text, statement);
    if (strcmp(bal_buf_string(&text), want) != 0)
        print_error("%s\n", bal_buf_string(&text));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

#define ONE "1970-01-01T00:00:00.000000001Z"
#define TWO "1970-01-01T00:00:00.000000002Z"

static void a_deletion_names_the_servers_that_it_does_not_reach(void)
{
    BAL_OWN(bal_store) store = shared_store(shared_root(), 0);
    bal_id one = shared_commit(store, "acme", 1, 100, "one");
    bal_id two = shared_commit(store, "acme", 2, 100, "two");
    bal_id view = shared_view(store, "acme", "one@0.5", "two@0.5", "v");
    BAL_OWN(bal_tenant) acme = acme_of(store);

    put(acme, "http://a", "one", &one, 0);
    put(acme, "http://a", "two", &two, 0);
    put(acme, "http://a", "v", &view, 0);
    put(acme, "http://b", "one", &one, 2);
    BAL_OWN(json_t) said = forget(acme, &one);
    check_servers(
        said, "http://a one " ONE " -; http://b one " ONE " " TWO "; "
              "http://a v " ONE " -; "
              "server 'http://a', which has loaded it as 'one', until it is "
              "restarted; "
              "server 'http://b', which has loaded it as 'one', until it is "
              "restarted; "
              "server 'http://a', which has loaded it as 'v', until it is "
              "restarted; ");
    check_rows(acme, NULL, "http://a two 1 0; http://a v 1 0; ");
}

static void a_tenant_takes_its_rows_with_it(void)
{
    BAL_OWN(bal_store) store = shared_store(shared_root(), 0);
    bal_id one = shared_commit(store, "acme", 1, 100, "one");
    bal_id other = shared_commit(store, "beta", 1, 100, "one");
    BAL_OWN(bal_tenant) acme = acme_of(store);
    BAL_OWN(bal_tenant) beta = NULL;

    CHECK_OK(bal_tenant_open(&beta, store, "beta", &check_err));
    put(acme, "http://a", "one", &one, 0);
    put(beta, "http://a", "one", &other, 0);
    BAL_OWN(json_t) said = forget(acme, NULL);
    check_servers(said, "http://a one " ONE " -; server 'http://a', which has "
                        "loaded it as 'one', until it is restarted; ");
    check_rows(acme, NULL, "");
    check_rows(beta, NULL, "http://a one 1 0; ");
}

static void a_deletion_is_a_change_to_every_handle(void)
{
    const char *root = shared_root();
    BAL_OWN(bal_store) store = shared_store(root, 0);
    BAL_OWN(bal_store) other = shared_store(root, 0);
    bal_id one = shared_commit(store, "acme", 1, 100, "one");
    BAL_OWN(bal_tenant) acme = acme_of(store);
    uint64_t mine = 0, theirs = 0, now = 0;

    CHECK_OK(bal_store_changes(&mine, store, &check_err));
    CHECK_OK(bal_store_changes(&theirs, other, &check_err));
    CHECK_OK(bal_store_changes(&now, store, &check_err));
    CHECK(now == mine);
    BAL_OWN(json_t) said = forget(acme, &one);
    check_servers(said, "");
    CHECK_OK(bal_store_changes(&now, store, &check_err));
    CHECK(now != mine);
    CHECK_OK(bal_store_changes(&now, other, &check_err));
    CHECK(now != theirs);
}

static const check_test tests[] = {
    { TEST(rows_go_by_server_and_name) },
    { TEST(what_is_no_row_is_refused) },
    { TEST(a_deletion_names_the_servers_that_it_does_not_reach) },
    { TEST(a_tenant_takes_its_rows_with_it) },
    { TEST(a_deletion_is_a_change_to_every_handle) },
};

CHECK_MAIN(tests)
