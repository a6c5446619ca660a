/* Which columns of which table are sealed, and sealing them. */
#include "graph/seal.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"

#define TENANT_OF(table)                                                       \
    "(SELECT t.name FROM tenants t WHERE t.tenant = " table ")"

#define BLOCK_OF_NORM "(SELECT b.id FROM blocks b WHERE b.number = norms.block)"

/* A row that is here is covered whole, but for: numbers that only this database
 * knows; what the ids of manifests and commits cover; `uses` and `inputs`,
 * which a manifest's body tells; `refs`, which are where their newest move
 * ends. */
static const bal_seal_row rows[] = {
    [BAL_SEALED_SETTINGS] = {
        .table = "settings",
        .tenant = "NULL",
        .what = "key",
        .keys = 1,
        .columns = { "key", "value" },
    },
    [BAL_SEALED_TENANTS] = {
        .table = "tenants",
        .tenant = "NULL",
        .what = "name",
        .keys = 1,
        .columns = { "tenant", "name" },
    },
    [BAL_SEALED_BLOCKS] = {
        .table = "blocks",
        .tenant = TENANT_OF("blocks.tenant"),
        .what = "id",
        .keys = 2,
        .columns = { "tenant", "id", "size", "stored", "codec",
                     "check_hash" },
    },
    [BAL_SEALED_MANIFESTS] = {
        .table = "manifests",
        .tenant = TENANT_OF("manifests.tenant"),
        .what = "id",
        .keys = 2,
        .columns = { "tenant", "id", "kind", "logical" },
    },
    [BAL_SEALED_COMMITS] = {
        .table = "commits",
        .tenant = TENANT_OF("commits.tenant"),
        .what = "id",
        .keys = 2,
        .columns = { "tenant", "id", "epoch",
                     "(SELECT p.id FROM commits p "
                     "WHERE p.number = commits.parent)" },
    },
    [BAL_SEALED_MOVES] = {
        .table = "moves",
        .tenant = TENANT_OF("moves.tenant"),
        .what = "ref",
        .keys = 1,
        .columns = { "number", "tenant", "ref", "position", "op", "old_id",
                     "new_id", "moved_at", "message" },
    },
    [BAL_SEALED_GRANTS] = {
        .table = "grants",
        .tenant = TENANT_OF("grants.owner"),
        .what = "manifest",
        .keys = 3,
        .columns = { "owner", "manifest", "grantee", "commit_id",
                     "created_at", "revoked_at" },
    },
    [BAL_SEALED_JOURNAL] = {
        .table = "journal",
        .tenant = "tenant",
        .what = "number",
        .keys = 1,
        .columns = { "number", "tenant", "state", "plan" },
    },
    [BAL_SEALED_PROOFS] = {
        .table = "proofs",
        .tenant = "tenant",
        .what = "attestation",
        .keys = 1,
        .columns = { "position", "attestation", "leaf", "tenant", "envelope",
                     "checkpoint", "epoch", "completed_at" },
    },
    [BAL_SEALED_TOMBSTONES] = {
        .table = "tombstones",
        .tenant = "tenant",
        .what = "id",
        .keys = 4,
        .columns = { "tenant", "kind", "id", "attestation" },
    },
    [BAL_SEALED_EXPORTS] = {
        .table = "exports",
        .tenant = TENANT_OF("exports.tenant"),
        .what = "commit_id",
        .keys = 3,
        .columns = { "tenant", "commit_id", "path", "exported_at" },
    },
    [BAL_SEALED_EPOCH] = {
        .table = "epoch",
        .tenant = "NULL",
        .what = "'epoch'",
        .keys = 1,
        .columns = { "one", "number", "entries" },
    },
    [BAL_SEALED_PROBE_SETS] = {
        .table = "probe_sets",
        .tenant = TENANT_OF("probe_sets.tenant"),
        .what = "id",
        .keys = 2,
        .since = 4,
        .columns = { "tenant", "id", "probes", "created_at", "body" },
    },
    [BAL_SEALED_FINGERPRINTS] = {
        .table = "fingerprints",
        .tenant = TENANT_OF("fingerprints.tenant"),
        .what = "commit_id",
        .keys = 4,
        .since = 4,
        .columns = { "tenant", "commit_id", "probes", "terms", "answers",
                     "created_at", "body" },
    },
    [BAL_SEALED_NORMS] = {
        .table = "norms",
        .tenant = "(SELECT t.name FROM blocks b JOIN tenants t "
                  "ON t.tenant = b.tenant WHERE b.number = norms.block)",
        .what = BLOCK_OF_NORM,
        .keys = 2,
        .since = 4,
        .columns = { BLOCK_OF_NORM, "dtype", "squares" },
    },
    [BAL_SEALED_LOADS] = {
        .table = "loads",
        .tenant = TENANT_OF("loads.tenant"),
        .what = "commit_id",
        .keys = 3,
        .since = 5,
        .columns = { "tenant", "server", "name", "commit_id", "path",
                     "loaded_at", "unloaded_at" },
    },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == BAL_SEALED_TABLES,
               "a row for each");

const bal_seal_row *bal_seal_row_of(bal_sealed table)
{
    return &rows[table];
}

static size_t width(const bal_seal_row *row)
{
    size_t count = 0;

    while (row->columns[count])
        count++;
    return count;
}

/* ---- hashing ------------------------------------------------------------ */

static void add(bal_hash *hash, const bal_value *value)
{
    static const char types[] = {
        [BAL_VALUE_NULL] = 'n',
        [BAL_VALUE_INT] = 'i',
        [BAL_VALUE_TEXT] = 't',
        [BAL_VALUE_BLOB] = 'b',
    };
    bool is_int = value->type == BAL_VALUE_INT;
    uint64_t number = is_int ? (uint64_t)value->number : value->bytes.len;
    uint8_t head[9] = { (uint8_t)types[value->type] };

    for (size_t i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(number >> 8 * i);
    bal_hash_add(hash, head, sizeof(head));
    if (value->bytes.len)
        bal_hash_add(hash, value->bytes.data, value->bytes.len);
}

void bal_seal_of(bal_id *out, bal_sealed table, const bal_value *columns,
                 size_t count)
{
    bal_hash hash;

    assert(count == width(&rows[table]));
    bal_hash_init(&hash);
    bal_hash_add(&hash, rows[table].table, strlen(rows[table].table) + 1);
    for (size_t i = 0; i < count; i++)
        add(&hash, &columns[i]);
    bal_hash_end(&hash, out);
}

bool bal_seal_fits(bal_sealed table, const bal_value *seal, size_t count)
{
    bal_id id;

    if (seal->type != BAL_VALUE_BLOB || seal->bytes.len != sizeof(id))
        return false;
    bal_seal_of(&id, table, seal + 1, count - 1);
    return !memcmp(id.bytes, seal->bytes.data, sizeof(id));
}

/* ---- SQL ---------------------------------------------------------------- */

static int append_columns(bal_buf *to, const bal_seal_row *row, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; row->columns[i] && !rc; i++) {
        rc = bal_buf_text(to, row->columns[i], err);
        if (!rc && row->columns[i + 1])
            rc = bal_buf_text(to, ", ", err);
    }
    return rc;
}

int bal_seal_select(bal_buf *to, bal_sealed table, const char *first,
                    bal_error *err)
{
    int rc = bal_buf_format(to, err, "SELECT %sseal, ", first);
    if (rc)
        return rc;
    rc = append_columns(to, &rows[table], err);
    if (rc)
        return rc;
    return bal_buf_format(to, err, " FROM %s", rows[table].table);
}

/* Appends " WHERE key = $n AND …", with n from `from` on. */
static int append_where(bal_buf *to, const bal_seal_row *row, size_t from,
                        bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < row->keys && !rc; i++)
        rc = bal_buf_format(to, err, " %s %s = $%zu", i ? "AND" : "WHERE",
                            row->columns[i], from + i);
    return rc;
}

/* ---- one row ------------------------------------------------------------ */

int bal_sealed_put(bal_db *db, bal_sealed table, const bal_value *columns,
                   uint64_t *changed, bal_error *err)
{
    static const char *const places[] = {
        "$1",   ", $2", ", $3", ", $4", ", $5",
        ", $6", ", $7", ", $8", ", $9", ", $10",
    };
    const bal_seal_row *row = &rows[table];
    BAL_LOCAL(bal_buf) sql = { 0 };
    bal_value args[BAL_SEAL_COLUMNS + 1];
    size_t count = width(row);
    bal_id seal;

    assert(count + 1 <= BAL_SEAL_COLUMNS);
    memcpy(args, columns, count * sizeof(*args));
    bal_seal_of(&seal, table, columns, count);
    args[count] = bal_id_value(&seal);

    int rc = bal_buf_reserve(&sql, 255, err);
    if (!rc)
        rc = bal_buf_text(&sql, "INSERT INTO ", err);
    if (!rc)
        rc = bal_buf_text(&sql, row->table, err);
    if (!rc)
        rc = bal_buf_text(&sql, " (", err);
    if (!rc)
        rc = append_columns(&sql, row, err);
    if (!rc)
        rc = bal_buf_text(&sql, ", seal) VALUES (", err);
    for (size_t i = 0; i <= count && !rc; i++)
        rc = bal_buf_text(&sql, places[i], err);
    if (!rc)
        rc = bal_buf_text(&sql, ") ON CONFLICT DO NOTHING", err);
    if (rc)
        return rc;
    return bal_db_run(db, bal_buf_string(&sql), args, count + 1, changed, err);
}

static int unfit(bal_sealed table, bal_error *err)
{
    bal_fail(err, BAL_ECORRUPT,
             "a row of '%s' was changed by something else than ballast",
             rows[table].table);
    return bal_hint(err, BAL_ECORRUPT, "`ballast fsck` tells which");
}

typedef struct seal_job {
    bal_db *db;
    bal_sealed table;
    bool verify;
    bool there;
} seal_job;

/* Writing another column of the row that a query is at does not disturb the
 * query: it goes by the key. */
static int seal_one(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    seal_job *job = ctx;
    const bal_seal_row *row = &rows[job->table];
    BAL_LOCAL(bal_buf) sql = { 0 };
    bal_value args[BAL_SEAL_COLUMNS];
    bal_id seal;

    job->there = true;
    if (job->verify)
        return bal_seal_fits(job->table, columns, count)
                   ? 0
                   : unfit(job->table, err);
    bal_seal_of(&seal, job->table, columns + 1, count - 1);
    args[0] = bal_id_value(&seal);
    memcpy(&args[1], columns + 1, row->keys * sizeof(*args));
    int rc = bal_buf_format(&sql, err, "UPDATE %s SET seal = $1", row->table);
    if (!rc)
        rc = append_where(&sql, row, 2, err);
    if (rc)
        return rc;
    return bal_db_run(job->db, bal_buf_string(&sql), args, row->keys + 1, NULL,
                      err);
}

/* keys NULL: each row. */
static int run(seal_job *job, const bal_value *keys, bal_error *err)
{
    const bal_seal_row *row = &rows[job->table];
    BAL_LOCAL(bal_buf) sql = { 0 };

    int rc = bal_seal_select(&sql, job->table, "", err);
    if (!rc && keys)
        rc = append_where(&sql, row, 1, err);
    if (rc)
        return rc;
    return bal_db_query(job->db, bal_buf_string(&sql), keys,
                        keys ? row->keys : 0, seal_one, job, err);
}

int bal_seal_verify(bal_db *db, bal_sealed table, const bal_value *keys,
                    bal_error *err)
{
    seal_job job = { .db = db, .table = table, .verify = true };

    return run(&job, keys, err);
}

int bal_sealed_change(bal_db *db, bal_sealed table, const bal_value *keys,
                      const bal_query *change, bal_error *err)
{
    seal_job job = { .db = db, .table = table, .verify = true };

    int rc = run(&job, keys, err);
    if (rc)
        return rc;
    if (!job.there)
        return bal_fail(err, BAL_ENOTFOUND, "no such row in '%s'",
                        rows[table].table);
    rc = bal_db_run(db, change->sql, change->args, change->count, NULL, err);
    if (rc)
        return rc;
    job.verify = false;
    return run(&job, keys, err);
}

int bal_seal_all(bal_db *db, bal_error *err)
{
    for (size_t i = 0; i < BAL_SEALED_TABLES; i++) {
        seal_job job = { .db = db, .table = (bal_sealed)i };
        int rc = rows[i].since ? 0 : run(&job, NULL, err);
        if (rc)
            return rc;
    }
    return 0;
}
