/* Nothing of what was forgotten is left in the database's files. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "graph/forgets.h"
#include "support/check.h"
#include "support/files.h"
#include "support/graphs.h"

#define MANY   4500
#define MARKER "S3CRET-MARKER"
#define KEPT   "K3PT-MARKER"

/* Texts of many lengths, so that pages are split and cells moved. */
static void put_marked(bal_graph *graph, int64_t tenant, int n,
                       const char *marker)
{
    char text[400], body[500], label[32];
    int len = 20 + n * 37 % 300;

    snprintf(text, sizeof(text), "%s %0*d", marker, len, n);
    snprintf(body, sizeof(body), "{\"text\":\"%s\"}", text);
    snprintf(label, sizeof(label), "marked %d", n);
    bal_id id = graphs_id(label);
    const bal_manifest_row manifest = {
        .id = id,
        .kind = "weights",
        .body = { body, strlen(body) },
    };
    const bal_commit_row commit = {
        .id = id,
        .manifest = id,
        .message = text,
        .author = text,
        .base_model = text,
        .metadata = body,
    };
    CHECK_OK(
        bal_graph_manifest_put(graph, tenant, &manifest, NULL, 0, &check_err));
    CHECK_OK(bal_graph_commit_put(graph, tenant, &commit, &check_err));
    bal_move_row move = {
        .ref = text, .op = text, .now = id, .has_now = true, .message = text
    };
    char ref[32];
    snprintf(ref, sizeof(ref), "ref-%d", n);
    move.ref = tenant == 1 ? ref : text;
    move.op = "commit";
    CHECK_OK(bal_graph_move(graph, tenant, &move, &check_err));
    move = (bal_move_row){ .ref = move.ref,
                           .op = "forget",
                           .old = id,
                           .has_old = true,
                           .message = "" };
    CHECK_OK(bal_graph_move(graph, tenant, &move, &check_err));
}

/* Every third commit of acme is to be forgotten, and all of gone. */
static void plant(bal_graph *graph)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    int64_t gone = graphs_tenant(graph, "gone");

    CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
    for (int n = 0; n < MANY; n++)
        put_marked(graph, n % 2 ? acme : gone, n,
                   n % 2 && n % 3 ? KEPT : MARKER);
    CHECK_OK(bal_tx_commit(&tx, &check_err));
}

static void uproot(bal_graph *graph)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    bool too = false;

    CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
    for (int n = 0; n < MANY; n++) {
        char label[32];
        snprintf(label, sizeof(label), "marked %d", n);
        bal_id id = graphs_id(label);
        if (n % 2 && n % 3 == 0)
            CHECK_OK(
                bal_graph_commit_forget(graph, acme, &id, &too, &check_err));
    }
    CHECK_OK(bal_graph_tenant_forget(graph, graphs_tenant(graph, "gone"),
                                     &check_err));
    CHECK_OK(bal_tx_commit(&tx, &check_err));
}

static int count_in_files(const char *name, const char *marker)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    int count = 0;

    for (size_t i = 0; i < 4; i++) {
        BAL_LOCAL(bal_buf) bytes = { 0 };
        char path[300];
        snprintf(path, sizeof(path), "%s%s", graphs_path(name), ends[i]);
        if (!file_exists(path))
            continue;
        file_get(&bytes, path);
        const char *at = bytes.data;
        size_t left = bytes.len;
        while (at && left && (at = memmem(at, left, marker, strlen(marker)))) {
            count++;
            at++;
            left = bytes.data + bytes.len - at;
        }
    }
    return count;
}

static void no_byte_of_what_was_forgotten_is_left_in_the_files(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };

    plant(graph);
    CHECK(count_in_files(__func__, MARKER) > MANY);
    uproot(graph);
    CHECK(count_in_files(__func__, MARKER) > 0);
    CHECK_OK(bal_graph_scrub(graph, 0, &check_err));
    CHECK(count_in_files(__func__, MARKER) == 0);
    CHECK(count_in_files(__func__, KEPT) > MANY);
    graphs_faults(&text, graph);
    CHECK(!text.len);
    /* It goes on working, with the statements that it had. */
    graphs_leaf(graph, "acme", "m1", "b1");
    CHECK_OK(bal_graph_scrub(graph, 0, &check_err));
    bal_graph_free(BAL_TAKE(graph));
    CHECK(count_in_files(__func__, MARKER) == 0);
}

static void a_reader_of_the_log_makes_scrubbing_busy(void)
{
    BAL_OWN(bal_graph) graph = NULL;
    bal_db *db = NULL;
    sqlite3 *reader = NULL;
    char url[128];

    bal_graph_free(graphs_open(__func__));
    snprintf(url, sizeof(url), "sqlite:%s.db", __func__);
    CHECK_OK(bal_db_open(&db, url, check_dir(), 0.02, 0, &check_err));
    CHECK_OK(bal_graph_open(&graph, db, 0, &check_err));
    CHECK(!sqlite3_open(graphs_path(__func__), &reader));
    CHECK(!sqlite3_exec(reader, "BEGIN; SELECT * FROM commits", NULL, NULL,
                        NULL));
    CHECK_RC(BAL_EBUSY, bal_graph_scrub(graph, 0, &check_err));
    CHECK_RC(BAL_EBUSY, bal_graph_scrub(graph, BAL_SCRUB_NOW, &check_err));
    CHECK(!sqlite3_exec(reader, "COMMIT; BEGIN IMMEDIATE", NULL, NULL, NULL));
    CHECK_RC(BAL_EBUSY, bal_graph_scrub(graph, 0, &check_err));
    CHECK(!sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL));
    CHECK_OK(bal_graph_scrub(graph, 0, &check_err));
    CHECK(!sqlite3_close(reader));
    BAL_LOCAL(bal_tx) tx = { 0 };
    CHECK_OK(bal_graph_begin(&tx, graph, 0, &check_err));
    CHECK_RC(BAL_EINVAL, bal_graph_scrub(graph, 0, &check_err));
}

/* With an hour of patience, and a log that grows by nothing. */
static void who_does_not_wait_writes_nothing_while_there_is_a_reader(void)
{
    BAL_OWN(bal_graph) graph = NULL;
    bal_db *db = NULL;
    sqlite3 *reader = NULL;
    char url[128], log[160];
    BAL_LOCAL(bal_buf) before = { 0 };
    BAL_LOCAL(bal_buf) after = { 0 };

    bal_graph_free(graphs_open(__func__));
    snprintf(url, sizeof(url), "sqlite:%s.db", __func__);
    CHECK_OK(bal_db_open(&db, url, check_dir(), 3600, 0, &check_err));
    CHECK_OK(bal_graph_open(&graph, db, 0, &check_err));
    CHECK(!sqlite3_open(graphs_path(__func__), &reader));
    CHECK(!sqlite3_exec(reader, "BEGIN; SELECT * FROM commits", NULL, NULL,
                        NULL));
    graphs_leaf(graph, "acme", "m1", "b1");
    snprintf(log, sizeof(log), "%s-wal", graphs_path(__func__));
    file_get(&before, log);
    CHECK_RC(BAL_EBUSY, bal_graph_scrub(graph, BAL_SCRUB_NOW, &check_err));
    file_get(&after, log);
    CHECK(before.len && before.len == after.len);
    CHECK(!sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL));
    CHECK_OK(bal_graph_scrub(graph, BAL_SCRUB_NOW, &check_err));
    CHECK(!sqlite3_close(reader));
}

static const check_test tests[] = {
    { TEST(no_byte_of_what_was_forgotten_is_left_in_the_files) },
    { TEST(a_reader_of_the_log_makes_scrubbing_busy) },
    { TEST(who_does_not_wait_writes_nothing_while_there_is_a_reader) },
};

CHECK_MAIN(tests)
