#include "graph/moving.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/inside.h"

/* Tables in an order in which what a row points at stands before it. What
 * writers intend is not among them: nobody writes. */
typedef struct table_row {
    const char *name;
    const char *columns;
    const char *order;
    const char *number; /* the column that the database numbers; NULL: none */
} table_row;

static const table_row tables[] = {
    { "settings", "key, value, seal", "key" },
    { "tenants", "tenant, name, seal", "tenant", "tenant" },
    { "blocks", "number, tenant, id, size, stored, codec, check_hash, seal",
      "number", "number" },
    { "manifests", "number, tenant, id, kind, logical, body, seal", "number",
      "number" },
    { "uses", "manifest, block", "manifest, block" },
    { "commits",
      "number, tenant, id, manifest, parent, made_on, created_at, author, "
      "base_model, message, metadata, epoch, seal",
      "number", "number" },
    { "refs", "tenant, name, commit_number", "tenant, name" },
    { "moves",
      "number, tenant, ref, position, op, old_id, new_id, moved_at, message, "
      "seal",
      "number", "number" },
    { "epoch", "one, number, entries, seal", "one" },
    { "inputs", "manifest, position, tenant, input_commit, input_manifest",
      "manifest, position" },
    { "grants",
      "owner, manifest, grantee, commit_id, created_at, revoked_at, seal",
      "owner, manifest, grantee" },
    { "proofs",
      "position, attestation, leaf, tenant, envelope, checkpoint, epoch, "
      "completed_at, seal",
      "position" },
    { "tombstones", "tenant, kind, id, attestation, seal",
      "tenant, kind, id, attestation" },
    { "exports", "tenant, commit_id, path, exported_at, seal",
      "tenant, commit_id, path" },
    { "bases", "block, base", "block, base" },
    { "probe_sets", "number, tenant, id, probes, created_at, body, seal",
      "number", "number" },
    { "fingerprints",
      "number, tenant, commit_id, probes, terms, answers, created_at, body, "
      "seal",
      "number", "number" },
    { "norms", "block, dtype, squares, seal", "block, dtype" },
    { "loads",
      "tenant, server, name, commit_id, path, loaded_at, unloaded_at, seal",
      "tenant, server, name" },
};

enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* ---- one table ---------------------------------------------------------- */

typedef struct copying {
    bal_graph *to;
    const char *insert;
    uint64_t rows;
} copying;

static int insert_row(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    copying *self = ctx;

    self->rows++;
    return bal_db_run(self->to->db, self->insert, columns, count, NULL, err);
}

static size_t count_columns(const table_row *table)
{
    size_t count = 1;

    for (const char *at = table->columns; *at; at++)
        count += *at == ',';
    return count;
}

static int make_insert(bal_buf *to, const table_row *table, bal_error *err)
{
    int rc = bal_buf_format(to, err, "INSERT INTO %s (%s) VALUES (",
                            table->name, table->columns);

    for (size_t i = 0; i < count_columns(table) && !rc; i++)
        rc = bal_buf_format(to, err, "%s$%zu", i ? ", " : "", i + 1);
    return rc ? rc : bal_buf_text(to, ")", err);
}

/* After rows came with their numbers, the database goes on behind them. SQLite
 * does by itself. */
static int go_on(bal_graph *to, const table_row *table, bal_error *err)
{
    BAL_LOCAL(bal_buf) sql = { 0 };

    if (!table->number || strcmp(to->db->ops->scheme, "postgresql") != 0)
        return 0;
    int rc =
        bal_buf_format(&sql, err,
                       "SELECT setval(pg_get_serial_sequence('%s', '%s'), "
                       "(SELECT COALESCE(MAX(%s), 0) + 1 FROM %s), false)",
                       table->name, table->number, table->number, table->name);
    if (rc)
        return rc;
    return bal_db_query(to->db, bal_buf_string(&sql), NULL, 0, NULL, NULL, err);
}

static int count_rows(bal_graph *graph, const table_row *table, uint64_t *rows,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) sql = { 0 };
    int64_t number = 0;
    bool there = false;
    int rc = bal_buf_format(&sql, err, "SELECT COUNT(*) FROM %s", table->name);

    if (!rc)
        rc = bal_graph_number(graph, bal_buf_string(&sql), NULL, 0, &number,
                              &there, err);
    *rows = (uint64_t)number;
    return rc;
}

static int copy_table(bal_graph *from, bal_graph *to, const table_row *table,
                      uint64_t *rows, bal_error *err)
{
    BAL_LOCAL(bal_buf) select = { 0 };
    BAL_LOCAL(bal_buf) insert = { 0 };
    copying self = { .to = to };
    uint64_t arrived = 0;
    int rc = bal_buf_format(&select, err, "SELECT %s FROM %s ORDER BY %s",
                            table->columns, table->name, table->order);
    if (!rc)
        rc = make_insert(&insert, table, err);
    if (rc)
        return rc;

    self.insert = bal_buf_string(&insert);
    rc = bal_db_query(from->db, bal_buf_string(&select), NULL, 0, insert_row,
                      &self, err);
    if (!rc)
        rc = go_on(to, table, err);
    if (!rc)
        rc = count_rows(to, table, &arrived, err);
    if (rc)
        return bal_within(err, rc, "table '%s'", table->name);
    if (arrived != self.rows)
        return bal_fail(err, BAL_ECORRUPT, "table '%s': %llu rows of %llu came",
                        table->name, (unsigned long long)arrived,
                        (unsigned long long)self.rows);
    *rows += arrived;
    return 0;
}

/* ---- all of them -------------------------------------------------------- */

/* What a fresh database has is its version, an id and an epoch. Another store's
 * unfinished copy may be all there is of that store: it may have moved. */
static int check_fresh(bal_graph *to, const char *unfinished, const char *whose,
                       bal_error *err)
{
    BAL_LOCAL(bal_buf) format = { 0 };
    BAL_LOCAL(bal_buf) value = { 0 };
    int rc = bal_graph_setting(to, "format", &format, err);

    if (!rc)
        rc = bal_graph_setting(to, unfinished, &value, err);
    else if (rc == BAL_ENOTFOUND)
        return 0;
    if (rc == BAL_ENOTFOUND || (!rc && strcmp(bal_buf_string(&value), whose)))
        return bal_fail(err, BAL_ECONFLICT, "the database has a store already");
    return rc;
}

static int clear(bal_graph *to, bal_error *err)
{
    int rc = bal_db_run(to->db, "DELETE FROM intended", NULL, 0, NULL, err);

    for (size_t i = TABLES; i > 0 && !rc; i--) {
        BAL_LOCAL(bal_buf) sql = { 0 };
        rc = bal_buf_format(&sql, err, "DELETE FROM %s", tables[i - 1].name);
        if (!rc)
            rc = bal_db_run(to->db, bal_buf_string(&sql), NULL, 0, NULL, err);
    }
    return rc;
}

static int check_done(bal_graph *from, bal_error *err)
{
    int64_t count = 0;
    bool there = false;
    int rc = bal_graph_number(from, "SELECT COUNT(*) FROM journal", NULL, 0,
                              &count, &there, err);

    if (rc || !count)
        return rc;
    return bal_fail(err, BAL_ECONFLICT, "a deletion is not done yet");
}

int bal_graph_copy_rows(bal_graph *from, bal_graph *to, const char *unfinished,
                        const char *whose, uint64_t *rows, bal_error *err)
{
    int rc = check_fresh(to, unfinished, whose, err);

    if (!rc)
        rc = check_done(from, err);
    if (!rc)
        rc = clear(to, err);
    *rows = 0;
    for (size_t i = 0; i < TABLES && !rc; i++)
        rc = copy_table(from, to, &tables[i], rows, err);
    return rc;
}
