/* Which databases are taken, and what check finds in those that somebody else
 * has written to. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "support/check.h"

typedef struct file {
    char name[64];
    char path[160];
} file;

static file file_of(const char *name)
{
    file self;

    snprintf(self.name, sizeof(self.name), "%s.db", name);
    snprintf(self.path, sizeof(self.path), "%s/%s", check_dir(), self.name);
    return self;
}

static int open_graph(bal_graph **out, const file *at, unsigned flags)
{
    char url[80];
    bal_db *db = NULL;

    snprintf(url, sizeof(url), "sqlite:%s", at->name);
    int rc = bal_db_open(&db, url, check_dir(), 1, flags, &check_err);
    if (rc)
        return rc;
    return bal_graph_open(out, db, flags, &check_err);
}

/* What somebody else does to the file, without foreign keys. */
static void meddle(const file *at, const char *sql)
{
    sqlite3 *handle = NULL;

    CHECK(sqlite3_open(at->path, &handle) == SQLITE_OK);
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        print_error("%s\n", sqlite3_errmsg(handle));
    CHECK(rc == SQLITE_OK);
    CHECK(sqlite3_close(handle) == SQLITE_OK);
}

static void an_empty_database_is_filled_when_asked(void)
{
    file at = file_of(__func__);
    bal_graph *graph = NULL;

    meddle(&at, "PRAGMA user_version = 1");
    CHECK_RC(BAL_ENOTFOUND, open_graph(&graph, &at, 0));
    CHECK(!graph);
    CHECK_OK(open_graph(&graph, &at, BAL_DB_CREATE));
    bal_graph_free(graph);
    CHECK_OK(open_graph(&graph, &at, 0));
    bal_graph_free(graph);
}

static void a_newer_schema_is_refused_with_both_versions(void)
{
    file at = file_of(__func__);
    bal_graph *graph = NULL;

    CHECK_OK(open_graph(&graph, &at, BAL_DB_CREATE));
    bal_graph_free(graph);
    meddle(&at, "UPDATE settings SET value = '42' WHERE key = 'schema'");
    graph = NULL;
    CHECK_RC(BAL_EUNSUPPORTED, open_graph(&graph, &at, BAL_DB_CREATE));
    CHECK(!graph && strstr(check_err.text, "version 42"));
    CHECK(strstr(check_err.text, "version 5"));
}

static void what_is_not_ours_is_left_alone(void)
{
    static const struct {
        const char *name, *sql;
        int code;
    } rows[] = {
        { "tables of something else", "CREATE TABLE t (a)", BAL_EUNSUPPORTED },
        { "settings of something else",
          "CREATE TABLE settings (key TEXT, value TEXT)", BAL_EUNSUPPORTED },
        { "settings of another shape", "CREATE TABLE settings (a)",
          BAL_ECORRUPT },
        { "a version that is no number",
          "CREATE TABLE settings (key TEXT, value TEXT);"
          "INSERT INTO settings VALUES ('schema', 'x')",
          BAL_ECORRUPT },
        { "a version below the first",
          "CREATE TABLE settings (key TEXT, value TEXT);"
          "INSERT INTO settings VALUES ('schema', '-1')",
          BAL_ECORRUPT },
        { "a version that is a blob",
          "CREATE TABLE settings (key TEXT, value BLOB);"
          "INSERT INTO settings VALUES ('schema', x'31')",
          BAL_ECORRUPT },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        file at = file_of(rows[i].name);
        bal_graph *graph = NULL;
        check_row(rows[i].name);
        meddle(&at, rows[i].sql);
        CHECK_RC(rows[i].code, open_graph(&graph, &at, BAL_DB_CREATE));
        CHECK(!graph);
    }
}

/* ---- check --------------------------------------------------------------- */

static void fill(bal_graph *graph)
{
    int64_t tenant = 0;
    const bal_block_row block = { .id = { { 1 } }, .size = 5, .stored = 5 };
    const bal_manifest_row manifest = { .id = { { 2 } },
                                        .kind = "delta",
                                        .body = { "{}", 2 },
                                        .logical = 5,
                                        .uses = &block.id,
                                        .use_count = 1 };
    bal_commit_row commit = {
        .id = { { 3 } },
        .manifest = { { 2 } },
        .message = "m",
        .author = "a",
        .metadata = "{}",
    };
    bal_move_row move = {
        .ref = "main", .op = "commit", .now = { { 3 } }, .has_now = true
    };

    CHECK_OK(
        bal_graph_tenant(graph, &tenant, "acme", BAL_DB_CREATE, &check_err));
    CHECK_OK(bal_graph_manifest_put(graph, tenant, &manifest, &block, 1,
                                    &check_err));
    CHECK_OK(bal_graph_commit_put(graph, tenant, &commit, &check_err));
    CHECK_OK(bal_graph_move(graph, tenant, &move, &check_err));
    commit.parent = commit.id;
    commit.has_parent = true;
    commit.made_on = commit.parent;
    commit.has_made_on = true;
    commit.id.bytes[0] = 4;
    CHECK_OK(bal_graph_commit_put(graph, tenant, &commit, &check_err));
    move.old = move.now;
    move.now = commit.id;
    move.has_old = true;
    CHECK_OK(bal_graph_move(graph, tenant, &move, &check_err));
}

static int join_fault(void *ctx, const char *kind, const char *what,
                      const char *detail, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s %s %s\n", kind, what, detail);
}

static const struct {
    const char *name, *sql, *found; /* found NULL: nothing */
} faults[] = {
    { "none", "SELECT 1", NULL },
    { "no commit", "DELETE FROM commits WHERE number = 2",
      "dangling-ref acme:main " },
    { "no parent", "DELETE FROM commits WHERE number = 1",
      "dangling-parent acme:0400000000000000" },
    { "a parent taken away", "UPDATE commits SET parent = NULL",
      "wrong-parent acme:0400000000000000" },
    { "a parent made up", "UPDATE commits SET made_on = NULL",
      "wrong-parent acme:0400000000000000" },
    { "a foreign key", "DELETE FROM commits WHERE number = 1",
      "dangling-row commits " },
    { "no manifest", "DELETE FROM manifests",
      "missing-manifest acme:0300000000000000" },
    { "no block", "DELETE FROM blocks",
      "missing-block-row acme:0200000000000000" },
    { "a ref moved by hand", "UPDATE refs SET commit_number = 1",
      "reflog-mismatch acme:main " },
    { "a ref removed by hand", "DELETE FROM refs",
      "reflog-mismatch acme:main " },
    { "a reflog cut off", "DELETE FROM moves", "reflog-mismatch acme:main " },
    { "a reflog with a hole",
      "INSERT INTO moves SELECT 9, tenant, ref, 9, op, old_id, new_id, "
      "moved_at, message, seal FROM moves WHERE position = 2",
      "reflog-gap acme:main " },
    { "a table gone", "DROP TABLE uses", "corrupt-database database " },
};

static void check_finds_what_points_nowhere(void)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        file at = file_of(faults[i].name);
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_graph *graph = NULL;
        check_row(faults[i].name);
        CHECK_OK(open_graph(&graph, &at, BAL_DB_CREATE));
        fill(graph);
        bal_graph_free(graph);
        meddle(&at, faults[i].sql);
        CHECK_OK(open_graph(&graph, &at, 0));
        CHECK_OK(bal_graph_check(graph, 0, join_fault, &text, &check_err));
        bal_graph_free(graph);
        if (!faults[i].found)
            CHECK(!text.len);
        else
            CHECK(strstr(bal_buf_string(&text), faults[i].found));
    }
}

/* Copy the write-ahead log, which a close may leave, into the database. */
static void empty_log(const char *path)
{
    sqlite3 *handle = NULL;

    CHECK(!sqlite3_open(path, &handle));
    CHECK(!sqlite3_exec(handle, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL,
                        NULL));
    CHECK(!sqlite3_close(handle));
}

static void check_finds_a_damaged_page(void)
{
    file at = file_of(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_graph *graph = NULL;
    char junk[200];

    CHECK_OK(open_graph(&graph, &at, BAL_DB_CREATE));
    fill(graph);
    bal_graph_free(graph);
    empty_log(at.path);
    memset(junk, 0x7b, sizeof(junk));
    FILE *stream = fopen(at.path, "r+b");
    CHECK(stream && !fseek(stream, 4096 * 4, SEEK_SET));
    CHECK(fwrite(junk, sizeof(junk), 1, stream) == 1 && !fclose(stream));
    CHECK_OK(open_graph(&graph, &at, 0));
    CHECK_OK(bal_graph_check(graph, 0, join_fault, &text, &check_err));
    bal_graph_free(graph);
    CHECK(strstr(bal_buf_string(&text), "corrupt-database database"));
}

static const check_test tests[] = {
    { TEST(an_empty_database_is_filled_when_asked) },
    { TEST(a_newer_schema_is_refused_with_both_versions) },
    { TEST(what_is_not_ours_is_left_alone) },
    { TEST(check_finds_what_points_nowhere) },
    { TEST(check_finds_a_damaged_page) },
};

CHECK_MAIN(tests)
