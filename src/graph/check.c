/* What is wrong with the database: what it finds itself, and rows that point
 * nowhere. Foreign keys forbid most of it, as long as every program that wrote
 * here asked for them. */
#include <string.h>

#include "core/error.h"
#include "graph/inputs.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* Each gives a tenant (or NULL), the name or id of a thing, and what else there
 * is to say of it: a text, an id, a number, NULL. */
typedef enum check_when {
    ALWAYS,
    WHOLE, /* not with BAL_CHECK_FAST */
    FAST,  /* only then */
} check_when;

typedef struct check {
    check_when when;
    const char *scheme; /* NULL: of every database */
    const char *kind;
    const char *detail;
    const char *sql;
} check;

/* Only what was forgotten, or is about to be, may be missed. A plan has ids as
 * hex digits. */
#define MADE_ON(in_plan)                                                       \
    "SELECT t.name, c.id, c.made_on FROM commits c "                           \
    "JOIN tenants t ON t.tenant = c.tenant "                                   \
    "LEFT JOIN commits p ON p.tenant = c.tenant AND p.id = c.made_on "         \
    "WHERE c.made_on IS NOT NULL AND p.number IS NULL AND NOT EXISTS "         \
    "(SELECT 1 FROM tombstones s WHERE s.tenant = t.name "                     \
    "AND s.kind = 0 AND s.id = c.made_on) AND NOT EXISTS "                     \
    "(SELECT 1 FROM journal j WHERE j.tenant = t.name AND " in_plan " > 0)"

static const check checks[] = {
    { WHOLE, "sqlite", "corrupt-database", "the database finds itself damaged",
      "SELECT NULL, 'database', integrity_check FROM pragma_integrity_check "
      "WHERE integrity_check <> 'ok'" },
    { FAST, "sqlite", "corrupt-database", "the database finds itself damaged",
      "SELECT NULL, 'database', quick_check FROM pragma_quick_check "
      "WHERE quick_check <> 'ok'" },
    { WHOLE, "sqlite", "dangling-row",
      "a row points into a table where nothing is",
      "SELECT NULL, \"table\", parent FROM pragma_foreign_key_check" },
    { ALWAYS, NULL, "dangling-ref", "the commit it is at is not there",
      "SELECT t.name, r.name, NULL FROM refs r "
      "LEFT JOIN tenants t ON t.tenant = r.tenant "
      "LEFT JOIN commits c ON c.number = r.commit_number "
      "AND c.tenant = r.tenant WHERE c.number IS NULL" },
    { ALWAYS, NULL, "dangling-parent", "its parent is not there",
      "SELECT t.name, c.id, NULL FROM commits c "
      "LEFT JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN commits p ON p.number = c.parent "
      "AND p.tenant = c.tenant AND p.number < c.number "
      "WHERE c.parent IS NOT NULL AND p.number IS NULL" },
    { ALWAYS, NULL, "wrong-parent",
      "its history does not go on where it was made",
      "SELECT t.name, c.id, NULL FROM commits c "
      "JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN commits p ON p.tenant = c.tenant AND p.id = c.made_on "
      "WHERE (p.number IS NOT NULL AND "
      "(c.parent IS NULL OR c.parent <> p.number)) "
      "OR (c.made_on IS NULL AND c.parent IS NOT NULL)" },
    { ALWAYS, "sqlite", "wrong-parent", "what it was made on is not there",
      MADE_ON("instr(j.plan, lower(hex(c.made_on)))") },
    { ALWAYS, "postgresql", "wrong-parent", "what it was made on is not there",
      MADE_ON("strpos(j.plan, encode(c.made_on, 'hex'))") },
    { ALWAYS, NULL, "missing-manifest", "its manifest is not there",
      "SELECT t.name, c.id, NULL FROM commits c "
      "LEFT JOIN tenants t ON t.tenant = c.tenant "
      "LEFT JOIN manifests m ON m.number = c.manifest "
      "AND m.tenant = c.tenant WHERE m.number IS NULL" },
    { ALWAYS, NULL, "missing-block-row", "a block it uses has no row",
      "SELECT t.name, m.id, b.id FROM uses u "
      "LEFT JOIN manifests m ON m.number = u.manifest "
      "LEFT JOIN tenants t ON t.tenant = m.tenant "
      "LEFT JOIN blocks b ON b.number = u.block "
      "WHERE b.number IS NULL OR b.tenant <> m.tenant" },
    { ALWAYS, NULL, "reflog-mismatch",
      "its newest move does not end where it is",
      "SELECT t.name, r.name, m.new_id FROM refs r "
      "JOIN tenants t ON t.tenant = r.tenant "
      "JOIN commits c ON c.number = r.commit_number "
      "LEFT JOIN moves m ON m.tenant = r.tenant AND m.ref = r.name "
      "AND m.position = (SELECT MAX(position) FROM moves n "
      "WHERE n.tenant = r.tenant AND n.ref = r.name) "
      "WHERE m.new_id IS NULL OR m.new_id <> c.id" },
    { ALWAYS, NULL, "reflog-mismatch",
      "its newest move ends at a commit, it is gone",
      "SELECT t.name, m.ref, m.new_id FROM moves m "
      "JOIN tenants t ON t.tenant = m.tenant "
      "LEFT JOIN refs r ON r.tenant = m.tenant AND r.name = m.ref "
      "WHERE r.name IS NULL AND m.new_id IS NOT NULL AND m.position = "
      "(SELECT MAX(position) FROM moves n "
      "WHERE n.tenant = m.tenant AND n.ref = m.ref)" },
    { ALWAYS, NULL, "reflog-gap", "a move of it is missing",
      "SELECT t.name, m.ref, NULL FROM moves m "
      "JOIN tenants t ON t.tenant = m.tenant "
      "GROUP BY t.name, m.ref "
      "HAVING MAX(m.position) - MIN(m.position) + 1 <> COUNT(*)" },
    { ALWAYS, NULL, "dangling-grant", "the manifest it is of is not there",
      "SELECT t.name, g.manifest, g.grantee FROM grants g "
      "LEFT JOIN tenants t ON t.tenant = g.owner "
      "LEFT JOIN manifests m ON m.tenant = g.owner AND m.id = g.manifest "
      "WHERE g.revoked_at IS NULL AND m.number IS NULL" },
    { ALWAYS, NULL, "dangling-fingerprint", "the commit it is of is not there",
      "SELECT t.name, f.commit_id, f.probes FROM fingerprints f "
      "LEFT JOIN tenants t ON t.tenant = f.tenant "
      "LEFT JOIN commits c ON c.tenant = f.tenant AND c.id = f.commit_id "
      "WHERE c.number IS NULL" },
    { ALWAYS, NULL, "missing-probes", "a fingerprint is of probes that are not",
      "SELECT t.name, f.commit_id, f.probes FROM fingerprints f "
      "LEFT JOIN tenants t ON t.tenant = f.tenant "
      "LEFT JOIN probe_sets s ON s.tenant = f.tenant AND s.id = f.probes "
      "WHERE s.number IS NULL" },
    { ALWAYS, NULL, "wrong-inputs", "it has inputs and is no view",
      "SELECT DISTINCT t.name, m.id, NULL FROM inputs i "
      "JOIN manifests m ON m.number = i.manifest "
      "LEFT JOIN tenants t ON t.tenant = m.tenant WHERE m.kind <> 'view'" },
    /* One that names itself has its proof in another store. */
    { ALWAYS, NULL, "missing-proof", "a tombstone names one that is not there",
      "SELECT s.tenant, s.id, s.attestation FROM tombstones s "
      "LEFT JOIN proofs p ON p.attestation = s.attestation "
      "WHERE p.position IS NULL AND s.attestation <> s.id" },
    { ALWAYS, NULL, "log-gap", "the entry before this one is missing",
      "SELECT p.tenant, p.attestation, p.position FROM proofs p "
      "WHERE p.position > 0 AND NOT EXISTS "
      "(SELECT 1 FROM proofs q WHERE q.position = p.position - 1)" },
    { ALWAYS, NULL, "log-gap", "it has not as many entries as were appended",
      "SELECT NULL, 'log', entries FROM epoch "
      "WHERE entries <> (SELECT COUNT(*) FROM proofs)" },
    { ALWAYS, NULL, "missing-trust", "a log that was signed trusts no key",
      "SELECT NULL, 'settings', COUNT(*) FROM proofs "
      "WHERE checkpoint IS NOT NULL AND NOT EXISTS "
      "(SELECT 1 FROM settings WHERE key = 'trusted_keys') "
      "HAVING COUNT(*) > 0" },
    { ALWAYS, NULL, BAL_FAULT_PENDING, "it has begun and is not done",
      "SELECT j.tenant, j.number, NULL FROM journal j" },
    { ALWAYS, NULL, "wrong-epoch", "there is not one",
      "SELECT NULL, 'epoch', COUNT(*) FROM epoch HAVING COUNT(*) <> 1" },
    { ALWAYS, NULL, "wrong-epoch", "it is of a later epoch than the database",
      "SELECT t.name, c.id, c.epoch FROM commits c "
      "JOIN tenants t ON t.tenant = c.tenant "
      "WHERE c.epoch > (SELECT MAX(number) FROM epoch)" },
    { ALWAYS, NULL, "wrong-epoch", "it is of a later epoch than the database",
      "SELECT p.tenant, p.attestation, p.epoch FROM proofs p "
      "WHERE p.epoch > (SELECT MAX(number) FROM epoch)" },
};

/* What a finding is called, and to whom it is told. */
typedef struct check_job {
    const char *kind;
    const char *detail;
    bal_graph_fault_fn *fn;
    void *ctx;
    bal_sealed table; /* of check_seals */
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
    rc = bal_buf_text(&detail, job->detail, err);
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
    return job->fn(job->ctx, job->kind, bal_buf_string(&what),
                   bal_buf_string(&detail), err);
}

/* A database so damaged that a query fails is a finding as well. */
static int run_check(bal_graph *self, const char *sql, bal_row_fn *fn,
                     check_job *job, bal_error *err)
{
    bal_error damage = { 0 };

    int rc = bal_db_query(self->db, sql, NULL, 0, fn, job, &damage);
    if (rc == BAL_ECORRUPT)
        return job->fn(job->ctx, "corrupt-database", "database", damage.text,
                       err);
    if (rc && err)
        *err = damage;
    return rc;
}

static int check_facts(bal_graph *self, unsigned flags, bal_graph_fault_fn *fn,
                       void *ctx, bal_error *err)
{
    check_when never = flags & BAL_CHECK_FAST ? WHOLE : FAST;

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        const check *row = &checks[i];
        check_job job = { row->kind, row->detail, fn, ctx, 0 };
        if (row->when == never ||
            (row->scheme && strcmp(row->scheme, self->db->ops->scheme)))
            continue;
        int rc = run_check(self, row->sql, pass_fault, &job, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- seals -------------------------------------------------------------- */

/* Columns: whose it is, what it is called, which table's, the seal, and what it
 * covers. */
static int pass_sealed(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    const check_job *job = ctx;

    if (bal_seal_fits(job->table, &columns[3], count - 3))
        return 0;
    return pass_fault(ctx, columns, count, err);
}

static int check_seals(bal_graph *self, unsigned flags, bal_graph_fault_fn *fn,
                       void *ctx, bal_error *err)
{
    for (size_t i = 0; i < BAL_SEALED_TABLES; i++) {
        bool many = i == BAL_SEALED_BLOCKS || i == BAL_SEALED_NORMS;
        if ((flags & BAL_CHECK_FAST) && many)
            continue;
        check_job job = { "wrong-seal", "something else has written to its row",
                          fn, ctx, (bal_sealed)i };
        const bal_seal_row *row = bal_seal_row_of(job.table);
        BAL_LOCAL(bal_buf) first = { 0 };
        BAL_LOCAL(bal_buf) sql = { 0 };
        int rc = bal_buf_format(&first, err, "%s, %s, '%s', ", row->tenant,
                                row->what, row->table);
        if (!rc)
            rc = bal_seal_select(&sql, job.table, bal_buf_string(&first), err);
        if (!rc)
            rc = run_check(self, bal_buf_string(&sql), pass_sealed, &job, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int tell_inputs(void *ctx, const bal_value *tenant, const bal_value *id,
                       bal_error *err)
{
    const bal_value columns[] = { *tenant, *id, bal_null() };

    return pass_fault(ctx, columns, 3, err);
}

/* As run_check, but that what is compared with is in the bodies of views. */
static int check_inputs(bal_graph *self, bal_graph_fault_fn *fn, void *ctx,
                        bal_error *err)
{
    check_job job = { "wrong-inputs",
                      "its inputs are not those that are kept for it", fn, ctx,
                      0 };
    bal_error damage = { 0 };

    int rc = bal_inputs_check(self->db, tell_inputs, &job, &damage);
    if (rc == BAL_ECORRUPT)
        return fn(ctx, "corrupt-database", "database", damage.text, err);
    if (rc && err)
        *err = damage;
    return rc;
}

/* The transaction only reads, so it just ends: in a damaged database its commit
 * would fail as well. */
int bal_graph_check(bal_graph *self, unsigned flags, bal_graph_fault_fn *fn,
                    void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, 0, err);
    if (rc)
        return rc;
    rc = check_facts(self, flags, fn, ctx, err);
    if (!rc)
        rc = check_inputs(self, fn, ctx, err);
    if (!rc)
        rc = check_seals(self, flags, fn, ctx, err);
    return rc;
}
