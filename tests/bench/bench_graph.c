/* The graph at 100,000 commits and at 25,000 blocks of one manifest: the
 * times that commands build upon. Prints one line a call, microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hash.h"
#include "graph/graph.h"

#define COMMITS 100000
#define BLOCKS  25000

static void need(int rc, const bal_error *err)
{
    if (!rc)
        return;
    fprintf(stderr, "bench-graph: %s\n", err->text);
    exit(1);
}

static bal_id id_of(const char *kind, unsigned n)
{
    char text[32];
    bal_id id;

    snprintf(text, sizeof(text), "%s %u", kind, n);
    bal_hash_of(&id, text, strlen(text));
    return id;
}

static double told(const char *what, double from, unsigned times)
{
    double now = bal_clock_ticks();

    printf("%-44s %10.1f us\n", what, (now - from) * 1e6 / times);
    return bal_clock_ticks();
}

static bal_graph *open_graph(const char *dir, unsigned flags)
{
    bal_error err = { 0 };
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    need(bal_db_open(&db, "sqlite:graph.db", dir, 30, flags, &err), &err);
    need(bal_graph_open(&graph, db, flags, &err), &err);
    return graph;
}

static int64_t tenant_of(bal_graph *graph)
{
    bal_error err = { 0 };
    int64_t tenant = 0;

    need(bal_graph_tenant(graph, &tenant, "acme", BAL_DB_CREATE, &err), &err);
    return tenant;
}

static void put_commit(bal_graph *graph, int64_t tenant, unsigned n)
{
    bal_error err = { 0 };
    bal_commit_row row = {
        .id = id_of("commit", n),
        .manifest = id_of("manifest", 0),
        .has_parent = n > 0,
        .message = "support, run 41, lower learning rate",
        .author = "ann",
        .metadata = "{\"run\":41}",
        .base_model = "llama-8b",
        .created_at = n,
    };
    bal_move_row move = {
        .ref = "main",
        .op = "commit",
        .now = row.id,
        .has_now = true,
        .has_old = n > 0,
    };

    row.parent = id_of("commit", n - 1);
    row.made_on = row.parent;
    row.has_made_on = row.has_parent;
    move.old = row.parent;
    need(bal_graph_commit_put(graph, tenant, &row, &err), &err);
    need(bal_graph_move(graph, tenant, &move, &err), &err);
}

static void fill(bal_graph *graph, int64_t tenant)
{
    bal_error err = { 0 };
    BAL_LOCAL(bal_tx) tx = { 0 };
    bal_manifest_row manifest = { .id = id_of("manifest", 0),
                                  .kind = "delta",
                                  .body = { "{}", 2 } };

    double from = bal_clock_ticks();
    need(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &err), &err);
    need(bal_graph_manifest_put(graph, tenant, &manifest, NULL, 0, &err), &err);
    for (unsigned n = 0; n < COMMITS; n++)
        put_commit(graph, tenant, n);
    need(bal_tx_commit(&tx, &err), &err);
    told("a commit and its move, in one transaction", from, COMMITS);
}

static void put_blocks(bal_graph *graph, int64_t tenant)
{
    bal_error err = { 0 };
    bal_block_row *rows = calloc(BLOCKS, sizeof(*rows));
    bal_id *ids = calloc(BLOCKS, sizeof(*ids));
    bal_manifest_row manifest = { .id = id_of("manifest", 1),
                                  .kind = "weights",
                                  .body = { "{}", 2 } };

    if (!rows || !ids)
        exit(1);
    for (unsigned i = 0; i < BLOCKS; i++) {
        ids[i] = id_of("block", i);
        rows[i] = (bal_block_row){ .id = ids[i], .size = 4, .stored = 3 };
    }
    manifest.uses = ids;
    manifest.use_count = BLOCKS;
    double from = bal_clock_ticks();
    need(bal_graph_intend(graph, tenant, "bench", ids, BLOCKS, &err), &err);
    from = told("intend 25,000 blocks", from, 1);
    need(bal_graph_manifest_put(graph, tenant, &manifest, rows, BLOCKS, &err),
         &err);
    from = told("a manifest of 25,000 new blocks", from, 1);
    need(bal_graph_intended_done(graph, "bench", &err), &err);
    from = told("intended done", from, 1);
    manifest.id = id_of("manifest", 2);
    need(bal_graph_manifest_put(graph, tenant, &manifest, NULL, 0, &err), &err);
    from = told("a manifest of 25,000 known blocks", from, 1);
    for (unsigned i = 0; i < BLOCKS; i++) {
        bool there = false;
        need(bal_graph_block(graph, tenant, &ids[i], NULL, &there, &err), &err);
    }
    told("is a block there", from, BLOCKS);
    free(rows);
    free(ids);
}

static int ignore_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)row;
    (void)err;
    ++*(uint64_t *)ctx;
    return 0;
}

static int ignore_id(void *ctx, const bal_id *id, bal_error *err)
{
    (void)id;
    (void)err;
    ++*(uint64_t *)ctx;
    return 0;
}

static int first_moves(void *ctx, const bal_move_row *row, bal_error *err)
{
    (void)row;
    (void)err;
    return ++*(uint64_t *)ctx % 5 ? 0 : BAL_ROW_STOP;
}

static int ignore_fault(void *ctx, const char *kind, const char *what,
                        const char *detail, bal_error *err)
{
    (void)ctx;
    (void)err;
    printf("%s %s %s\n", kind, what, detail);
    return 0;
}

static void ask(bal_graph *graph, int64_t tenant)
{
    bal_error err = { 0 };
    bal_id head = id_of("commit", COMMITS - 1);
    uint64_t rows = 0;
    bool there = false;
    bal_stats stats;
    char hex[BAL_ID_HEX + 1];

    double from = bal_clock_ticks();
    need(bal_graph_ref(graph, tenant, "main", &head, &there, &err), &err);
    from = told("one ref, first query", from, 1);
    need(
        bal_graph_history(graph, tenant, &head, 20, ignore_commit, &rows, &err),
        &err);
    from = told("log -n 20, first time", from, 1);
    for (unsigned i = 0; i < 100; i++)
        need(bal_graph_history(graph, tenant, &head, 20, ignore_commit, &rows,
                               &err),
             &err);
    from = told("log -n 20", from, 100);
    need(bal_graph_commit(graph, tenant, &head, ignore_commit, &rows, &err),
         &err);
    from = told("show, first time", from, 1);
    for (unsigned i = 0; i < 1000; i++) {
        bal_id id = id_of("commit", i * 97);
        bal_id_hex(hex, &id);
        hex[8] = 0;
        need(bal_graph_prefix(graph, tenant, hex, 5, ignore_id, &rows, &err),
             &err);
    }
    from = told("a prefix", from, 1000);
    need(bal_graph_reflog(graph, tenant, "main", first_moves, &rows, &err),
         &err);
    from = told("five of the reflog", from, 1);
    need(bal_graph_reflog(graph, tenant, NULL, first_moves, &rows, &err), &err);
    from = told("five of every ref's reflog", from, 1);
    need(bal_graph_history(graph, tenant, &head, 0, ignore_commit, &rows, &err),
         &err);
    from = told("the whole history", from, 1);
    need(bal_graph_stats(graph, 0, &stats, &err), &err);
    from = told("stats", from, 1);
    need(bal_graph_check(graph, 0, ignore_fault, NULL, &err), &err);
    told("check", from, 1);
}

int main(void)
{
    char dir[] = "/tmp/ballast-bench-XXXXXX";
    char path[64];

    if (!mkdtemp(dir))
        return 1;
    bal_graph *graph = open_graph(dir, BAL_DB_CREATE);
    int64_t tenant = tenant_of(graph);
    fill(graph, tenant);
    put_blocks(graph, tenant);
    bal_graph_free(graph);
    double from = bal_clock_ticks();
    graph = open_graph(dir, 0);
    told("opening", from, 1);
    ask(graph, tenant);
    bal_graph_free(graph);
    snprintf(path, sizeof(path), "%s/graph.db", dir);
    unlink(path);
    rmdir(dir);
    return 0;
}
