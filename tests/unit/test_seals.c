/* Whatever something else writes into a row, check finds it. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "graph/fingerprints.h"
#include "graph/forgets.h"
#include "graph/inside.h"
#include "graph/loads.h"
#include "graph/proofs.h"
#include "graph/seal.h"
#include "support/check.h"
#include "support/files.h"
#include "support/graphs.h"

/* ---- a graph with rows in every table -------------------------------------
 */

static void fill_shared(bal_graph *graph)
{
    int64_t acme = graphs_tenant(graph, "acme");
    bal_grant_info grant = {
        .owner = "acme",
        .grantee = "beta",
        .manifest = graphs_id("m1"),
        .commit = graphs_id("c1"),
        .created_at = 5,
    };
    const bal_export_row copy = { graphs_id("c1"), "/copy", 6 };
    uint64_t revoked = 0;
    bal_id b9 = graphs_id("b9");
    CHECK_OK(bal_graph_grant(graph, acme, &grant, &check_err));
    grant.manifest = graphs_id("m2");
    CHECK_OK(bal_graph_grant(graph, acme, &grant, &check_err));
    CHECK_OK(bal_graph_revoke(graph, acme, &grant.manifest, "beta", 7, &revoked,
                              &check_err));
    CHECK_OK(bal_graph_export_put(graph, acme, &copy, &check_err));
    bal_loaded load = {
        "http://a", "acme-one", "/copy", graphs_id("c1"), 6, 0
    };
    CHECK_OK(bal_graph_load_put(graph, acme, &load, &check_err));
    load.name = "acme-two";
    load.unloaded_at = 7;
    CHECK_OK(bal_graph_load_put(graph, acme, &load, &check_err));
    CHECK_OK(bal_graph_set(graph, "colour", "red", &check_err));
    CHECK_OK(bal_graph_intend(graph, acme, "session", &b9, 1, &check_err));
}

static void fill_answers(bal_graph *graph)
{
    const bal_probes_row set = {
        .id = graphs_id("p1"),
        .probes = 1,
        .body = { "{}", 2 },
        .created_at = 8,
    };
    const bal_fingerprint_row row = {
        .commit = graphs_id("c1"),
        .probes = set.id,
        .terms = "{}",
        .answers = 1,
        .body = { "said", 4 },
        .created_at = 8,
    };

    CHECK_OK(bal_graph_fingerprint_put(graph, graphs_tenant(graph, "acme"),
                                       &set, &row, &check_err));
}

static void fill_forgotten(bal_graph *graph)
{
    bal_proof_row proof = {
        .attestation = { { 0xaa } },
        .leaf = { { 0x1e } },
        .tenant = "acme",
        .envelope = { "{}", 2 },
        .completed_at = 9,
    };
    const bal_tombstone stone = { "acme", BAL_TOMB_COMMIT, graphs_id("c0"),
                                  proof.attestation };
    int64_t number = 0;
    uint64_t epoch = 0;

    CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
    CHECK_OK(bal_graph_set(graph, "trusted_keys", "k", &check_err));
    CHECK_OK(bal_graph_proof_put(graph, &proof, &check_err));
    proof.index = 1;
    proof.attestation.bytes[1] = 1;
    proof.checkpoint = "signed";
    CHECK_OK(bal_graph_proof_put(graph, &proof, &check_err));
    CHECK_OK(bal_graph_tombstone_put(graph, &stone, &check_err));
    CHECK_OK(bal_graph_journal_put(graph, "beta", "{}", &number, &check_err));
}

static void fill(const char *name)
{
    BAL_OWN(bal_graph) graph = graphs_open(name);
    bool too = false;
    bal_id c0 = graphs_id("c0");
    bal_id b2 = graphs_id("b2");
    const bal_block_row coded = { .id = graphs_id("b1"),
                                  .bases = &b2,
                                  .base_count = 1 };
    const bal_block_row measured = { .id = b2, .dtype = "F32", .squares = 2.5 };

    graphs_leaf(graph, "acme", "m0", "b0");
    graphs_leaf(graph, "acme", "m1", "b1 b2");
    graphs_leaf(graph, "acme", "m2", "b2");
    graphs_commit(graph, "acme", "c1", "m1", NULL);
    CHECK_OK(bal_graph_bases_add(graph, graphs_tenant(graph, "acme"), &coded,
                                 &check_err));
    CHECK_OK(bal_norm_put(graph, graphs_tenant(graph, "acme"), &measured,
                          &check_err));
    graphs_commit(graph, "acme", "c0", "m0", "c1");
    graphs_commit(graph, "acme", "c2", "m2", "c0");
    CHECK_OK(bal_graph_commit_forget(graph, graphs_tenant(graph, "acme"), &c0,
                                     &too, &check_err));
    CHECK(too);
    bal_id b0 = graphs_id("b0");
    CHECK_OK(bal_graph_blocks_forget(graph, graphs_tenant(graph, "acme"), &b0,
                                     1, &check_err));
    graphs_view(graph, "beta", "v1", "acme/c1/m1 acme/c2/m2");
    graphs_commit(graph, "beta", "c3", "v1", NULL);
    CHECK_OK(graphs_move(graph, "acme", "main", NULL, "c1", "one"));
    CHECK_OK(graphs_move(graph, "acme", "main", "c1", "c2", "two"));
    CHECK_OK(graphs_move(graph, "acme", "old", NULL, "c1", "three"));
    CHECK_OK(graphs_move(graph, "acme", "old", "c1", NULL, "four"));
    CHECK_OK(graphs_move(graph, "beta", "main", NULL, "c3", "five"));
    fill_shared(graph);
    fill_answers(graph);
    fill_forgotten(graph);
}

/* ---- one change ------------------------------------------------------------
 */

/* What the id of the object covers, which fsck computes again; what it compares
 * with what a manifest or a block's header says; what is not there for long;
 * what only orders rows of one time. */
static const struct {
    const char *table, *column;
} others[] = {
    { "manifests", "body" },     { "commits", "created_at" },
    { "commits", "author" },     { "commits", "manifest" },
    { "commits", "base_model" }, { "commits", "message" },
    { "commits", "metadata" },   { "uses", "manifest" },
    { "uses", "block" },         { "intended", "session" },
    { "intended", "tenant" },    { "intended", "id" },
    { "bases", "block" },        { "bases", "base" },
    { "probe_sets", "number" },  { "fingerprints", "number" },
};

static bool is_other(const char *table, const char *column)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (!strcmp(others[i].table, table) &&
            !strcmp(others[i].column, column))
            return true;
    }
    return false;
}

static const struct {
    const char *name, *sql; /* @: the column */
} changes[] = {
    { "another value",
      "CASE typeof(@) WHEN 'text' THEN @ || 'x' WHEN 'integer' THEN @ + 1000 "
      "WHEN 'blob' THEN CAST('0123456789abcdef0123456789abcdef' AS BLOB) END" },
    { "one less", "CASE typeof(@) WHEN 'integer' THEN @ - 1 ELSE @ END" },
    { "nothing", "NULL" },
    { "a number", "COALESCE(@, 7)" },
    { "a hash", "COALESCE(@, zeroblob(32))" },
    { "a text", "COALESCE(@, 'x')" },
};

typedef struct change {
    bal_buf original; /* the file */
    const char *name;
    const char *table;
    const char *column;
    size_t made;
} change;

static void text(bal_buf *to, const char *from)
{
    CHECK_OK(bal_buf_text(to, from, &check_err));
}

static void append_value(bal_buf *to, const char *value, const char *column)
{
    for (; *value; value++) {
        if (*value == '@')
            text(to, column);
        else
            CHECK_OK(bal_buf_append(to, value, 1, &check_err));
    }
}

/* "UPDATE … WHERE (key) = (the key of the row that is so far in)". */
static void append_update(bal_buf *to, const change *self, const char *value,
                          const char *key, size_t row)
{
    CHECK_OK(bal_buf_format(to, &check_err, "UPDATE %s SET %s = ", self->table,
                            self->column));
    append_value(to, value, self->column);
    CHECK_OK(bal_buf_format(to, &check_err,
                            " WHERE (%s) = (SELECT %s FROM %s ORDER BY %s "
                            "LIMIT 1 OFFSET %zu) AND %s IS NOT ",
                            key, key, self->table, key, row, self->column));
    append_value(to, value, self->column);
}

static void append_key(bal_buf *to, sqlite3 *handle, const char *table)
{
    sqlite3_stmt *stmt = NULL;

    CHECK(!sqlite3_prepare_v2(handle,
                              "SELECT group_concat(name) FROM "
                              "pragma_table_info($1) WHERE pk > 0",
                              -1, &stmt, NULL));
    CHECK(!sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC));
    CHECK(sqlite3_step(stmt) == SQLITE_ROW);
    text(to, (const char *)sqlite3_column_text(stmt, 0));
    CHECK(!sqlite3_finalize(stmt));
}

/* False where the schema forbids the change, or it is none. */
static bool meddled(const change *self, const char *value, size_t row)
{
    BAL_LOCAL(bal_buf) key = { 0 };
    BAL_LOCAL(bal_buf) sql = { 0 };
    sqlite3 *handle = NULL;

    CHECK(!sqlite3_open(graphs_path(self->name), &handle));
    CHECK(!sqlite3_exec(handle,
                        "PRAGMA ignore_check_constraints = ON;"
                        "PRAGMA synchronous = OFF",
                        NULL, NULL, NULL));
    append_key(&key, handle, self->table);
    append_update(&sql, self, value, bal_buf_string(&key), row);
    int rc = sqlite3_exec(handle, bal_buf_string(&sql), NULL, NULL, NULL);
    bool done = !rc && sqlite3_changes(handle) == 1;
    if (rc && (rc & 0xff) != SQLITE_CONSTRAINT && rc != SQLITE_MISMATCH)
        print_error("%s: %s\n", sqlite3_errmsg(handle), sql.data);
    CHECK(!rc || (rc & 0xff) == SQLITE_CONSTRAINT || rc == SQLITE_MISMATCH);
    CHECK(!sqlite3_close(handle));
    return done;
}

/* Opening may refuse it already. */
static bool found(const char *name)
{
    BAL_LOCAL(bal_buf) faults = { 0 };
    char url[128];
    bal_db *db = NULL;
    BAL_OWN(bal_graph) graph = NULL;

    snprintf(url, sizeof(url), "sqlite:%s.db", name);
    CHECK_OK(bal_db_open(&db, url, check_dir(), 1, 0, &check_err));
    if (bal_graph_open(&graph, db, 0, &check_err))
        return true;
    graphs_faults(&faults, graph);
    /* The one that is there anyway. */
    const char *rest =
        strstr(bal_buf_string(&faults), "pending-deletion beta:1 ");
    return !rest || rest != faults.data || strchr(rest, '\n')[1];
}

static void restore(const change *self)
{
    char path[300];

    file_put(graphs_path(self->name), self->original.data, self->original.len);
    snprintf(path, sizeof(path), "%s-wal", graphs_path(self->name));
    remove(path);
    snprintf(path, sizeof(path), "%s-shm", graphs_path(self->name));
    remove(path);
}

static void try_column(change *self, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
            char what[160];
            snprintf(what, sizeof(what), "%s.%s of row %zu: %s", self->table,
                     self->column, row, changes[i].name);
            check_row(what);
            restore(self);
            if (!meddled(self, changes[i].sql, row))
                continue;
            self->made++;
            CHECK(found(self->name));
        }
    }
}

typedef struct column {
    char table[32];
    char name[32];
    size_t rows;
} column;

static size_t list_columns(column *out, size_t room, const char *name)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;
    sqlite3_stmt *rows = NULL;
    size_t count = 0;
    char sql[128];

    CHECK(!sqlite3_open(graphs_path(name), &handle));
    CHECK(!sqlite3_prepare_v2(handle,
                              "SELECT m.name, c.name FROM sqlite_master m "
                              "JOIN pragma_table_info(m.name) c "
                              "WHERE m.type = 'table' ORDER BY 1, c.cid",
                              -1, &stmt, NULL));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        column *to = &out[count++];
        CHECK(count < room);
        snprintf(to->table, sizeof(to->table), "%s",
                 (const char *)sqlite3_column_text(stmt, 0));
        snprintf(to->name, sizeof(to->name), "%s",
                 (const char *)sqlite3_column_text(stmt, 1));
        snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM %.31s", to->table);
        CHECK(!sqlite3_prepare_v2(handle, sql, -1, &rows, NULL));
        CHECK(sqlite3_step(rows) == SQLITE_ROW);
        to->rows = (size_t)sqlite3_column_int(rows, 0);
        CHECK(!sqlite3_finalize(rows));
    }
    CHECK(!sqlite3_finalize(stmt) && !sqlite3_close(handle));
    return count;
}

static void any_column_of_any_row_that_is_changed_is_found(void)
{
    change self = { .name = __func__ };
    column columns[128];

    fill(self.name);
    graphs_settle(self.name);
    file_get(&self.original, graphs_path(self.name));
    CHECK(!found(self.name));
    size_t count = list_columns(columns, 128, self.name);
    for (size_t i = 0; i < count; i++) {
        self.table = columns[i].table;
        self.column = columns[i].name;
        check_row(self.table);
        CHECK(columns[i].rows > 0);
        if (!is_other(self.table, self.column))
            try_column(&self, columns[i].rows);
    }
    CHECK(self.made > 250);
    bal_buf_done(&self.original);
}

/* ---- seals ------------------------------------------------------------------
 */

/* Computed by b3sum (official) over the bytes that docs/format.md says. */
static void a_seal_is_what_the_format_says(void)
{
    static const char want[] =
        "46368b7d89fc472b7ed4e103bd1947b56b820420dde2147f8623c0152a06ff29";
    const bal_value columns[] = { bal_text("colour"), bal_text("red") };
    bal_id seal;
    char hex[BAL_ID_HEX + 1];

    bal_seal_of(&seal, BAL_SEALED_SETTINGS, columns, 2);
    bal_id_hex(hex, &seal);
    CHECK(!strcmp(hex, want));
}

static void columns_that_run_together_have_other_seals(void)
{
    const bal_value rows[][2] = {
        { bal_text("ab"), bal_text("c") }, { bal_text("a"), bal_text("bc") },
        { bal_text("ab"), bal_null() },    { bal_text("ab"), bal_text("") },
        { bal_text("ab"), bal_int(0) },    { bal_text("ab"), bal_blob("c", 1) },
        { bal_text("ab"), bal_int(-1) },   { bal_text("ab"), bal_int(1) },
        { bal_int(1), bal_text("ab") },
    };
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    bal_id seals[COUNT + 1];

    for (size_t i = 0; i < COUNT; i++)
        bal_seal_of(&seals[i], BAL_SEALED_SETTINGS, rows[i], 2);
    bal_seal_of(&seals[COUNT], BAL_SEALED_TENANTS, rows[0], 2);
    for (size_t i = 0; i <= COUNT; i++) {
        for (size_t j = 0; j < i; j++)
            CHECK(memcmp(&seals[i], &seals[j], sizeof(bal_id)));
    }
}

/* What somebody else wrote does not become ours because we change the row. */
static void a_changed_row_is_not_sealed_anew(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    uint64_t number = 0;
    bal_id m1 = graphs_id("m1");

    CHECK_OK(bal_graph_epoch_next(graph, &number, &check_err));
    graphs_meddle(__func__, "UPDATE epoch SET number = 0");
    CHECK_RC(BAL_ECORRUPT, bal_graph_epoch_next(graph, &number, &check_err));
    fill_shared(graph);
    graphs_meddle(__func__, "UPDATE grants SET grantee = 'gamma'");
    CHECK_RC(BAL_ECORRUPT,
             bal_graph_revoke(graph, graphs_tenant(graph, "acme"), &m1, "gamma",
                              8, &number, &check_err));
    CHECK(strstr(check_err.text, "'grants'"));
}

static void a_block_that_was_written_again_is_sealed_anew(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) faults = { 0 };
    bal_block_row row = {
        .id = graphs_id("b1"),
        .size = 50,
        .stored = 30,
        .codec = 2,
    };
    bal_block_row now = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    bool there = false;

    graphs_leaf(graph, "acme", "m1", "b1");
    CHECK_OK(bal_graph_block(graph, acme, &row.id, &now, &there, &check_err));
    bal_id check = graphs_id("check");
    CHECK(there && now.has_check && !memcmp(&now.check, &check, sizeof(check)));
    CHECK_OK(bal_graph_block_renew(graph, acme, &row, &check_err));
    CHECK_OK(bal_graph_block(graph, acme, &row.id, &now, &there, &check_err));
    CHECK(there && now.stored == 30 && now.codec == 2 && !now.has_check);
    graphs_faults(&faults, graph);
    CHECK(!faults.len);
    row.id = graphs_id("b2");
    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_block_renew(graph, acme, &row, &check_err));
}

static const check_test tests[] = {
    { TEST(any_column_of_any_row_that_is_changed_is_found) },
    { TEST(a_seal_is_what_the_format_says) },
    { TEST(columns_that_run_together_have_other_seals) },
    { TEST(a_changed_row_is_not_sealed_anew) },
    { TEST(a_block_that_was_written_again_is_sealed_anew) },
};

CHECK_MAIN(tests)
