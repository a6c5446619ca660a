/* What is wrong with the database: what it finds itself, and rows that point
 * nowhere. Foreign keys forbid most of it, as long as every program that wrote
 * here asked for them. */
#include <string.h>

#include "core/error.h"
#include "graph/inside.h"

/* Each gives a tenant (or NULL), the name or id of a thing, and what else there
 * is to say of it: a text, an id, a number, NULL. */
typedef struct check {
    const char *scheme; /* NULL: of every database */
    const char *kind;
    const char *detail;
    const char *sql;
} check;

static const check checks[] = {
    { "sqlite", "corrupt-database", "the database finds itself damaged",
      "SELECT NULL, 'database', integrity_check FROM pragma_integrity_check "
      "WHERE integrity_check <> 'ok'" },
    { "sqlite", "dangling-row", "a row points into a table where nothing is",
      "SELECT NULL, \"table\", parent FROM pragma_foreign_key_check" },
    { NULL, "dangling-ref", "the commit it is at is not there",
      "SELECT t.name, r.name, NULL FROM refs r "
      "LEFT JOIN tenants t ON t.tenant = r.tenant "
      "LEFT JOIN commits c ON c.number = r.commit_number "
      "AND c.tenant = r.tenant WHERE c.number IS NULL" },
    { NULL, "dangling-parent", "its parent is not there",
      "SELECT t.name, c.id, NULL FROM commits c "
      "LEFT JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN commits p ON p.number = c.parent "
      "AND p.tenant = c.tenant AND p.number < c.number "
      "WHERE c.parent IS NOT NULL AND p.number IS NULL" },
    /* Only what was forgotten is passed over. */
    { NULL, "wrong-parent", "its history does not go on where it was made",
      "SELECT t.name, c.id, NULL FROM commits c "
      "JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN commits p ON p.tenant = c.tenant AND p.id = c.made_on "
      "WHERE (p.number IS NOT NULL AND "
      "(c.parent IS NULL OR c.parent <> p.number)) "
      "OR (c.made_on IS NULL AND c.parent IS NOT NULL)" },
    { NULL, "missing-manifest", "its manifest is not there",
      "SELECT t.name, c.id, NULL FROM commits c "
      "LEFT JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN manifests m ON m.number = c.manifest "
      "AND m.tenant = c.tenant WHERE m.number IS NULL" },
    { NULL, "missing-block-row", "a block it uses has no row",
      "SELECT t.name, m.id, b.id FROM uses u "
      "LEFT JOIN manifests m ON m.number = u.manifest "
      "LEFT JOIN tenants t ON t.tenant = m.tenant "
      "LEFT JOIN blocks b ON b.number = u.block "
      "WHERE b.number IS NULL OR b.tenant <> m.tenant" },
    { NULL, "reflog-mismatch", "its newest move does not end where it is",
      "SELECT t.name, r.name, m.new_id FROM refs r "
      "JOIN tenants t ON t.tenant = r.tenant "
      "JOIN commits c ON c.number = r.commit_number "
      "LEFT JOIN moves m ON m.tenant = r.tenant AND m.ref = r.name "
      "AND m.position = (SELECT MAX(position) FROM moves n "
      "WHERE n.tenant = r.tenant AND n.ref = r.name) "
      "WHERE m.new_id IS NULL OR m.new_id <> c.id" },
    { NULL, "reflog-mismatch", "its newest move ends at a commit, it is gone",
      "SELECT t.name, m.ref, m.new_id FROM moves m "
      "JOIN tenants t ON t.tenant = m.tenant "
      "LEFT JOIN refs r ON r.tenant = m.tenant AND r.name = m.ref "
      "WHERE r.name IS NULL AND m.new_id IS NOT NULL AND m.position = "
      "(SELECT MAX(position) FROM moves n "
      "WHERE n.tenant = m.tenant AND n.ref = m.ref)" },
    { NULL, "reflog-gap", "a move of it is missing",
      "SELECT t.name, m.ref, NULL FROM moves m "
      "JOIN tenants t ON t.tenant = m.tenant "
      "GROUP BY t.name, m.ref "
      "HAVING MAX(m.position) - MIN(m.position) + 1 <> COUNT(*)" },
};

typedef struct check_job {
    const check *row;
    bal_graph_fault_fn *fn;
    void *ctx;
} check_job;

static int append(bal_buf *to, const bal_value *column, bal_error *err)
{
    bal_id id;
    char hex[BAL_ID_HEX + 1];

    if (column->type == BAL_VALUE_TEXT)
        return bal_buf_text(to, column->bytes.data, err);
    if (column->type == BAL_VALUE_INT)
        return bal_buf_format(to, err, "%lld", (long long)column->number);
    if (bal_column_id(&id, column, NULL))
        return bal_buf_text(to, "?", err);
    bal_id_hex(hex, &id);
    return bal_buf_text(to, hex, err);
}

/* SQLite's integrity check tells of an allocation that failed (7) as of a page
 * that is damaged. */
static bool is_memory(const bal_value *column)
{
    return column->type == BAL_VALUE_TEXT &&
           strstr(column->bytes.data, "error code=7");
}

static int pass_fault(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    const check_job *job = ctx;
    BAL_LOCAL(bal_buf) what = { 0 };
    BAL_LOCAL(bal_buf) detail = { 0 };
    int rc = 0;

    (void)count;
    if (is_memory(&columns[2]))
        return bal_fail_memory(err, "checking the database");
    if (columns[0].type == BAL_VALUE_TEXT)
        rc = bal_buf_format(&what, err,
                            "%s:", (const char *)columns[0].bytes.data);
    if (rc)
        return rc;
    rc = append(&what, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_buf_text(&detail, job->row->detail, err);
    if (rc)
        return rc;
    if (columns[2].type != BAL_VALUE_NULL) {
        rc = bal_buf_text(&detail, ": ", err);
        if (rc)
            return rc;
        rc = append(&detail, &columns[2], err);
        if (rc)
            return rc;
    }
    return job->fn(job->ctx, job->row->kind, bal_buf_string(&what),
                   bal_buf_string(&detail), err);
}

/* A database so damaged that a query fails is a finding as well. */
static int run_check(bal_graph *self, check_job *job, bal_error *err)
{
    bal_error damage = { 0 };

    int rc = bal_db_query(self->db, job->row->sql, NULL, 0, pass_fault, job,
                          &damage);
    if (rc == BAL_ECORRUPT)
        return job->fn(job->ctx, "corrupt-database", "database", damage.text,
                       err);
    if (rc && err)
        *err = damage;
    return rc;
}

/* The transaction only reads, so it just ends: in a damaged database its commit
 * would fail as well. */
int bal_graph_check(bal_graph *self, bal_graph_fault_fn *fn, void *ctx,
                    bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, 0, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        check_job job = { &checks[i], fn, ctx };
        const char *scheme = checks[i].scheme;
        if (scheme && strcmp(scheme, self->db->ops->scheme))
            continue;
        rc = run_check(self, &job, err);
        if (rc)
            return rc;
    }
    return 0;
}
