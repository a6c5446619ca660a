/* What is near in time, which commits look for what they are stored by. */
#include <string.h>

#include "core/hash.h"
#include "graph/graph.h"
#include "support/check.h"
#include "support/databases.h"
#include "support/graphs.h"

static bal_graph *graph_new(const char *test, int64_t *tenant)
{
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    CHECK_OK(bal_db_open(&db, database_url(test), check_dir(), 1, BAL_DB_CREATE,
                         &check_err));
    CHECK_OK(bal_graph_open(&graph, db, BAL_DB_CREATE, &check_err));
    CHECK_OK(
        bal_graph_tenant(graph, tenant, "acme", BAL_DB_CREATE, &check_err));
    return graph;
}

/* A manifest and its commit, of so many bytes. */
static void put(bal_graph *graph, int64_t tenant, bal_id id, uint64_t logical)
{
    bal_manifest_row manifest = {
        .id = id, .kind = "weights", .body = { "{}", 2 }, .logical = logical
    };
    bal_commit_row commit = { .id = manifest.id,
                              .manifest = manifest.id,
                              .message = "m",
                              .author = "ann",
                              .metadata = "{}" };

    CHECK_OK(
        bal_graph_manifest_put(graph, tenant, &manifest, NULL, 0, &check_err));
    CHECK_OK(bal_graph_commit_put(graph, tenant, &commit, &check_err));
}

/* Commits of 1 byte, from number `first` on. */
static void put_many(bal_graph *graph, int64_t tenant, unsigned first,
                     unsigned count)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
    for (unsigned i = first; i < first + count; i++) {
        bal_id id;
        bal_hash_of(&id, &i, sizeof(i));
        put(graph, tenant, id, 1);
    }
    CHECK_OK(bal_tx_commit(&tx, &check_err));
}

static int join(void *ctx, const bal_id *manifest, const bal_id *commit,
                bal_error *err)
{
    bal_buf *to = ctx;

    CHECK(!memcmp(manifest, commit, sizeof(*manifest)));
    return bal_buf_format(to, err, "%s ", graphs_label(manifest));
}

/* Of what has about 100 bytes these are found, four at most. */
static void check_found(bal_graph *graph, int64_t tenant, bool oldest,
                        const char *labels)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_recent which = { "weights", 90, 110, 4, .oldest = oldest };

    CHECK_OK(bal_graph_recent(graph, tenant, &which, join, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), labels));
}

static void the_latest_and_the_oldest_of_a_size_are_found(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new("sizes", &tenant);
    static const char *const labels[] = { "a", "b", "c", "d", "e" };

    for (size_t i = 0; i < 5; i++) {
        put(graph, tenant, graphs_id(labels[i]), 98 + i);
        put_many(graph, tenant, 10 * (unsigned)i, 3);
    }
    check_found(graph, tenant, false, "e d c b ");
    check_found(graph, tenant, true, "a b c d ");
}

/* Else a commit in a long history would take as long as that is. */
static void so_many_commits_are_looked_at_and_no_more(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new("among", &tenant);

    put(graph, tenant, graphs_id("first"), 100);
    put_many(graph, tenant, 0, BAL_RECENT_AMONG - 1);
    check_found(graph, tenant, false, "first ");
    put_many(graph, tenant, BAL_RECENT_AMONG, 1);
    check_found(graph, tenant, false, "");
    check_found(graph, tenant, true, "first ");
    put(graph, tenant, graphs_id("last"), 100);
    check_found(graph, tenant, false, "last ");
    check_found(graph, tenant, true, "first ");
}

static const check_test tests[] = {
    { TEST(the_latest_and_the_oldest_of_a_size_are_found) },
    { TEST(so_many_commits_are_looked_at_and_no_more) },
};

CHECK_MAIN(tests)
