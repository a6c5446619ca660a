/* A database of an older schema becomes one of this, whole or not at all. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "graph/grants.h"
#include "graph/schema.h"
#include "support/check.h"
#include "support/graphs.h"

/* ---- a database of version 1 ----------------------------------------------
 */

static void put_body(sqlite3 *handle, const char *manifest, const char *kind,
                     const void *body, size_t len)
{
    bal_id id = graphs_id(manifest);
    sqlite3_stmt *stmt = NULL;

    CHECK(!sqlite3_prepare_v2(handle,
                              "INSERT INTO manifests (tenant, id, kind, "
                              "logical, body) VALUES (1, ?, ?, 10, ?)",
                              -1, &stmt, NULL));
    CHECK(!sqlite3_bind_blob(stmt, 1, &id, sizeof(id), SQLITE_STATIC));
    CHECK(!sqlite3_bind_text(stmt, 2, kind, -1, SQLITE_STATIC));
    CHECK(!sqlite3_bind_blob(stmt, 3, body, (int)len, SQLITE_STATIC));
    CHECK(sqlite3_step(stmt) == SQLITE_DONE);
    CHECK(!sqlite3_finalize(stmt));
}

static void put_view(sqlite3 *handle, const char *manifest, const char *inputs)
{
    BAL_LOCAL(bal_buf) body = { 0 };

    graphs_view_body(&body, inputs);
    put_body(handle, manifest, "view", body.data, body.len);
}

/* The rows of version 1, as they were released, and what a store had then: a
 * leaf, a commit, a ref, a view over it, one whose body is damaged. */
static void make_old(const char *name)
{
    sqlite3 *handle = NULL;

    CHECK(!sqlite3_open(graphs_path(name), &handle));
    for (size_t i = 0; i < bal_migration_count; i++) {
        const bal_migration *row = &bal_migrations[i];
        if (row->version != 1)
            continue;
        CHECK(!row->run && (!row->scheme || !strcmp(row->scheme, "sqlite")));
        CHECK(!sqlite3_exec(handle, row->sql, NULL, NULL, NULL));
    }
    CHECK(!sqlite3_exec(handle,
                        "INSERT INTO settings VALUES ('schema', '1');"
                        "INSERT INTO settings VALUES ('block_size', '4096');"
                        "INSERT INTO tenants VALUES (1, 'acme');"
                        "INSERT INTO blocks VALUES (1, 1, randomblob(32), 5, "
                        "4, 1)",
                        NULL, NULL, NULL));
    put_body(handle, "m1", "weights", "{}", 2);
    put_view(handle, "v1", "acme/c1/m1 beta/c2/m2");
    put_view(handle, "v2", "");
    put_body(handle, "bad", "view", "{\"recipe\":", 10);
    put_body(handle, "bad ids", "view",
             "{\"recipe\":{\"inputs\":[{\"tenant\":\"acme\"}]}}", 42);
    CHECK(!sqlite3_exec(handle,
                        "INSERT INTO uses VALUES (1, 1);"
                        "INSERT INTO commits VALUES (1, 1, randomblob(32), 1, "
                        "NULL, NULL, 7, 'ann', NULL, 'first', '{}');"
                        "INSERT INTO commits VALUES (2, 1, randomblob(32), 2, "
                        "1, (SELECT id FROM commits), 8, 'ann', NULL, "
                        "'second', '{}');"
                        "INSERT INTO refs VALUES (1, 'main', 2);"
                        "INSERT INTO moves SELECT 1, 1, 'main', 1, 'commit', "
                        "NULL, id, 9, 'm' FROM commits WHERE number = 2",
                        NULL, NULL, NULL));
    CHECK(!sqlite3_close(handle));
}

static int open_old(bal_graph **out, const char *name)
{
    char url[128];
    bal_db *db = NULL;

    snprintf(url, sizeof(url), "sqlite:%s.db", name);
    CHECK_OK(bal_db_open(&db, url, check_dir(), 1, 0, &check_err));
    return bal_graph_open(out, db, 0, &check_err);
}

/* The first column of the first row, as text. */
static void ask(char out[128], const char *name, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;

    CHECK(!sqlite3_open(graphs_path(name), &handle));
    CHECK(!sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL));
    CHECK(sqlite3_step(stmt) == SQLITE_ROW);
    snprintf(out, 128, "%s", (const char *)sqlite3_column_text(stmt, 0));
    CHECK(!sqlite3_finalize(stmt) && !sqlite3_close(handle));
}

/* ---- tests ------------------------------------------------------------------
 */

static int join_input(void *ctx, const bal_input_row *input, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s/%s/%s ", input->tenant,
                          graphs_label(&input->commit),
                          graphs_label(&input->manifest));
}

static void an_old_database_is_sound_once_it_is_opened(void)
{
    BAL_OWN(bal_graph) graph = NULL;
    BAL_LOCAL(bal_buf) faults = { 0 };
    uint64_t epoch = 9;

    make_old(__func__);
    CHECK_OK(open_old(&graph, __func__));
    graphs_faults(&faults, graph);
    CHECK(!strcmp(bal_buf_string(&faults), ""));
    CHECK_OK(bal_graph_epoch(graph, &epoch, &check_err));
    CHECK(epoch == 0);
    graphs_commit(graph, "acme", "new", "m1", NULL);
    graphs_faults(&faults, graph);
    CHECK(!faults.len);
}

static void inputs_of_old_views_are_read_from_their_bodies(void)
{
    static const struct {
        const char *view, *inputs;
    } rows[] = {
        { "v1", "acme/c1/m1 beta/c2/m2 " },
        { "v2", "" },
        { "bad", "" },
        { "bad ids", "" },
        { "m1", "" },
    };
    BAL_OWN(bal_graph) graph = NULL;

    make_old(__func__);
    CHECK_OK(open_old(&graph, __func__));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_id id = graphs_id(rows[i].view);
        check_row(rows[i].view);
        CHECK_OK(
            bal_graph_inputs(graph, 1, &id, join_input, &text, &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].inputs));
    }
}

static void a_store_has_an_id_of_its_own_that_stays(void)
{
    BAL_LOCAL(bal_buf) first = { 0 };
    BAL_LOCAL(bal_buf) again = { 0 };
    BAL_LOCAL(bal_buf) other = { 0 };
    bal_graph *graph = NULL;

    make_old(__func__);
    CHECK_OK(open_old(&graph, __func__));
    CHECK_OK(bal_graph_setting(graph, "store_id", &first, &check_err));
    CHECK(bal_hex_valid(bal_buf_string(&first), 32));
    bal_graph_free(graph);
    CHECK_OK(open_old(&graph, __func__));
    CHECK_OK(bal_graph_setting(graph, "store_id", &again, &check_err));
    CHECK(!strcmp(bal_buf_string(&first), bal_buf_string(&again)));
    bal_graph_free(graph);
    graph = graphs_open("another");
    CHECK_OK(bal_graph_setting(graph, "store_id", &other, &check_err));
    CHECK(bal_hex_valid(bal_buf_string(&other), 32));
    CHECK(strcmp(bal_buf_string(&first), bal_buf_string(&other)));
    bal_graph_free(graph);
}

/* Each stands where one of the steps wants to put something. */
static void a_migration_that_fails_leaves_the_old_version(void)
{
    static const char trigger[] = "CREATE TRIGGER no BEFORE UPDATE ON moves "
                                  "BEGIN SELECT RAISE(ABORT, 'no'); END";
    static const char *const obstacles[] = {
        "CREATE TABLE epoch (a)",
        "CREATE TABLE exports (a)",
        trigger,
    };

    for (size_t i = 0; i < sizeof(obstacles) / sizeof(obstacles[0]); i++) {
        char name[64], before[128], after[128];
        bal_graph *graph = NULL;
        check_row(obstacles[i]);
        snprintf(name, sizeof(name), "obstacle-%zu", i);
        make_old(name);
        graphs_meddle(name, obstacles[i]);
        static const char shape[] =
            "SELECT COUNT(*) || group_concat(length(sql)) FROM sqlite_master";
        ask(before, name, shape);
        CHECK(open_old(&graph, name) && !graph);
        ask(after, name, shape);
        CHECK(!strcmp(before, after));
        ask(after, name, "SELECT value FROM settings WHERE key = 'schema'");
        CHECK(!strcmp(after, "1"));
    }
}

static void a_database_that_is_made_now_has_what_a_migrated_one_has(void)
{
    static const char shape[] =
        "SELECT hex(group_concat(name || length(sql))) FROM "
        "(SELECT name, sql FROM sqlite_master ORDER BY name)";
    char old[128], made[128];
    bal_graph *graph = NULL;

    make_old("old");
    CHECK_OK(open_old(&graph, "old"));
    bal_graph_free(graph);
    bal_graph_free(graphs_open("made"));
    ask(old, "old", shape);
    ask(made, "made", shape);
    CHECK(!strcmp(old, made));
}

static const check_test tests[] = {
    { TEST(an_old_database_is_sound_once_it_is_opened) },
    { TEST(inputs_of_old_views_are_read_from_their_bodies) },
    { TEST(a_store_has_an_id_of_its_own_that_stays) },
    { TEST(a_migration_that_fails_leaves_the_old_version) },
    { TEST(a_database_that_is_made_now_has_what_a_migrated_one_has) },
};

CHECK_MAIN(tests)
