/* The handle, settings, tenants, counts, and what the other files of this
 * folder share. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* ---- columns ----------------------------------------------------------- */

int bal_column_id(bal_id *out, const bal_value *column, bal_error *err)
{
    if (column->type != BAL_VALUE_BLOB ||
        column->bytes.len != sizeof(out->bytes))
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where an id "
                        "belongs");
    memcpy(out->bytes, column->bytes.data, sizeof(out->bytes));
    return 0;
}

int bal_column_id_or_null(bal_id *out, bool *there, const bal_value *column,
                          bal_error *err)
{
    *there = column->type != BAL_VALUE_NULL;
    if (!*there)
        return 0;
    return bal_column_id(out, column, err);
}

int bal_column_count(uint64_t *out, const bal_value *column, bal_error *err)
{
    if (column->type != BAL_VALUE_INT || column->number < 0)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a count "
                        "belongs");
    *out = (uint64_t)column->number;
    return 0;
}

int bal_column_text(const char **out, const bal_value *column, bal_error *err)
{
    if (column->type != BAL_VALUE_TEXT ||
        strlen(column->bytes.data) != column->bytes.len)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a text "
                        "belongs");
    *out = column->bytes.data;
    return 0;
}

int bal_column_bytes(void *out, size_t len, const bal_value *column,
                     bal_error *err)
{
    if (column->type != BAL_VALUE_BLOB || column->bytes.len != len)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a hash "
                        "belongs");
    memcpy(out, column->bytes.data, len);
    return 0;
}

typedef struct number_job {
    int64_t number;
    bool there;
} number_job;

static int take_number(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    number_job *job = ctx;

    (void)count;
    if (columns[0].type != BAL_VALUE_INT)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a number "
                        "belongs");
    job->number = columns[0].number;
    job->there = true;
    return BAL_ROW_STOP;
}

int bal_graph_number(bal_graph *self, const char *sql, const bal_value *args,
                     size_t count, int64_t *number, bool *there, bal_error *err)
{
    number_job job = { 0 };

    int rc = bal_db_query(self->db, sql, args, count, take_number, &job, err);
    if (rc)
        return rc;
    *there = job.there;
    if (job.there)
        *number = job.number;
    return 0;
}

typedef struct id_job {
    bal_graph_id_fn *fn;
    void *ctx;
} id_job;

static int pass_id(void *ctx, const bal_value *columns, size_t count,
                   bal_error *err)
{
    const id_job *job = ctx;
    bal_id id;

    (void)count;
    int rc = bal_column_id(&id, &columns[0], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, &id, err);
}

int bal_graph_each_id(bal_graph *self, const char *sql, const bal_value *args,
                      size_t count, bal_graph_id_fn *fn, void *ctx,
                      bal_error *err)
{
    id_job job = { fn, ctx };

    return bal_db_query(self->db, sql, args, count, pass_id, &job, err);
}

bal_short_id bal_id_short(const bal_id *id)
{
    char hex[BAL_ID_HEX + 1];
    bal_short_id out = { 0 };

    bal_id_hex(hex, id);
    memcpy(out.text, hex, sizeof(out.text) - 1);
    return out;
}

/* ---- the handle -------------------------------------------------------- */

int bal_graph_open(bal_graph **out, bal_db *db, unsigned flags, bal_error *err)
{
    BAL_OWN(bal_db) mine = db;
    BAL_OWN(bal_graph) self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "opening the graph");
    self->db = BAL_TAKE(mine);
    int rc = bal_schema_prepare(self->db, flags, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

void bal_graph_free(bal_graph *self)
{
    if (!self)
        return;
    bal_db_free(self->db);
    free(self);
}

int bal_graph_lock(bal_db_lock **out, bal_graph *self, enum bal_lock_mode mode,
                   double wait, bal_error *err)
{
    return bal_db_lock_take(out, self->db, mode, wait, err);
}

int bal_graph_locks_held(bal_graph *self, bal_error *err)
{
    return bal_db_locks_held(self->db, err);
}

int bal_graph_place(bal_graph *self, bal_buf *to, bal_error *err)
{
    return bal_db_place(self->db, to, err);
}

int bal_graph_changes(bal_graph *self, uint64_t *out, bal_error *err)
{
    return bal_db_changes(self->db, out, err);
}

int bal_graph_begin(bal_tx *tx, bal_graph *self, unsigned flags, bal_error *err)
{
    return bal_tx_begin(tx, self->db, flags, err);
}

/* ---- settings ---------------------------------------------------------- */

typedef struct text_job {
    bal_buf *to;
    bool there;
} text_job;

static int take_text(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    text_job *job = ctx;
    const char *text = NULL;

    (void)count;
    int rc = bal_column_text(&text, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_buf_text(job->to, text, err);
    if (rc)
        return rc;
    job->there = true;
    return BAL_ROW_STOP;
}

int bal_graph_setting(bal_graph *self, const char *key, bal_buf *to,
                      bal_error *err)
{
    const bal_value args[] = { bal_text(key) };
    text_job job = { .to = to };

    int rc = bal_db_query(self->db, "SELECT value FROM settings WHERE key = $1",
                          args, 1, take_text, &job, err);
    if (rc)
        return rc;
    if (!job.there)
        return bal_fail(err, BAL_ENOTFOUND, "no setting '%s'", key);
    return 0;
}

typedef struct settings_job {
    bal_graph_setting_fn *fn;
    void *ctx;
} settings_job;

static int pass_setting(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    const settings_job *job = ctx;
    const char *key = NULL;
    const char *value = NULL;

    (void)count;
    int rc = bal_column_text(&key, &columns[0], err);
    if (!rc)
        rc = bal_column_text(&value, &columns[1], err);
    return rc ? rc : job->fn(job->ctx, key, value, err);
}

int bal_graph_settings(bal_graph *self, bal_graph_setting_fn *fn, void *ctx,
                       bal_error *err)
{
    settings_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT key, value FROM settings ORDER BY key", NULL, 0,
                        pass_setting, &job, err);
}

int bal_setting_put(bal_db *db, const char *key, const char *value,
                    bal_error *err)
{
    bal_value args[] = { bal_text(key), bal_text(value), bal_null() };
    bal_id seal;

    bal_seal_of(&seal, BAL_SEALED_SETTINGS, args, 2);
    args[2] = bal_id_value(&seal);
    return bal_db_run(db,
                      "INSERT INTO settings (key, value, seal) "
                      "VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE "
                      "SET value = excluded.value, seal = excluded.seal",
                      args, 3, NULL, err);
}

int bal_graph_set(bal_graph *self, const char *key, const char *value,
                  bal_error *err)
{
    const bal_value args[] = { bal_text(key) };

    if (value)
        return bal_setting_put(self->db, key, value, err);
    return bal_db_run(self->db, "DELETE FROM settings WHERE key = $1", args, 1,
                      NULL, err);
}

/* ---- tenants ----------------------------------------------------------- */

static int find_tenant(bal_graph *self, int64_t *tenant, const char *name,
                       bool *there, bal_error *err)
{
    const bal_value args[] = { bal_text(name) };

    return bal_graph_number(self, "SELECT tenant FROM tenants WHERE name = $1",
                            args, 1, tenant, there, err);
}

/* The seal covers the number, so that comes first. */
static int make_tenant(bal_graph *self, int64_t *tenant, const char *name,
                       bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int64_t number = 0;
    bool there = false;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = find_tenant(self, &number, name, &there, err);
    if (!rc && !there)
        rc = bal_graph_number(self,
                              "SELECT COALESCE(MAX(tenant), 0) + 1 "
                              "FROM tenants",
                              NULL, 0, &number, &there, err);
    if (rc)
        return rc;
    const bal_value columns[] = { bal_int(number), bal_text(name) };
    rc = bal_sealed_put(self->db, BAL_SEALED_TENANTS, columns, NULL, err);
    if (rc)
        return rc;
    rc = bal_tx_commit(&tx, err);
    if (rc)
        return rc;
    *tenant = number;
    return 0;
}

int bal_graph_tenant(bal_graph *self, int64_t *tenant, const char *name,
                     unsigned flags, bal_error *err)
{
    bool there = false;

    int rc = find_tenant(self, tenant, name, &there, err);
    if (rc || there)
        return rc;
    if (!(flags & BAL_DB_CREATE))
        return bal_fail(err, BAL_ENOTFOUND, "no tenant '%s'", name);
    return make_tenant(self, tenant, name, err);
}

typedef struct name_job {
    bal_graph_name_fn *fn;
    void *ctx;
} name_job;

static int pass_name(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    const name_job *job = ctx;
    const char *name = NULL;

    (void)count;
    int rc = bal_column_text(&name, &columns[0], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, name, err);
}

int bal_graph_tenants(bal_graph *self, bal_graph_name_fn *fn, void *ctx,
                      bal_error *err)
{
    name_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT t.name FROM tenants t WHERE EXISTS "
                        "(SELECT 1 FROM commits c WHERE c.tenant = t.tenant) "
                        "ORDER BY t.name",
                        NULL, 0, pass_name, &job, err);
}

int bal_graph_tenants_all(bal_graph *self, bal_graph_name_fn *fn, void *ctx,
                          bal_error *err)
{
    name_job job = { fn, ctx };

    return bal_db_query(self->db, "SELECT name FROM tenants ORDER BY name",
                        NULL, 0, pass_name, &job, err);
}

/* ---- counting ---------------------------------------------------------- */

static int take_stats(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    bal_stats *out = ctx;
    uint64_t *const fields[] = {
        &out->commits,       &out->manifests,    &out->blocks,
        &out->logical_bytes, &out->unique_bytes, &out->stored_bytes,
    };

    for (size_t i = 0; i < count; i++) {
        int rc = bal_column_count(fields[i], &columns[i], err);
        if (rc)
            return rc;
    }
    return BAL_ROW_STOP;
}

/* One query, so that the numbers are of one moment. */
int bal_graph_stats(bal_graph *self, int64_t tenant, bal_stats *out,
                    bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    bal_stats found = { 0 };

    int rc = bal_db_query(
        self->db,
        "SELECT c.n, m.n, b.n, c.logical, b.size, b.stored\n"
        "FROM (SELECT COUNT(*) AS n,\n"
        "        CAST(COALESCE(SUM(m.logical), 0) AS BIGINT) AS logical\n"
        "      FROM commits k JOIN manifests m ON m.number = k.manifest\n"
        "      WHERE $1 = 0 OR k.tenant = $1) c,\n"
        "  (SELECT COUNT(*) AS n FROM manifests\n"
        "   WHERE $1 = 0 OR tenant = $1) m,\n"
        "  (SELECT COUNT(*) AS n,\n"
        "     CAST(COALESCE(SUM(size), 0) AS BIGINT) AS size,\n"
        "     CAST(COALESCE(SUM(stored), 0) AS BIGINT) AS stored\n"
        "   FROM blocks WHERE $1 = 0 OR tenant = $1) b",
        args, 1, take_stats, &found, err);
    if (rc)
        return rc;
    *out = found;
    return 0;
}

typedef struct codec_job {
    bal_graph_codec_fn *fn;
    void *ctx;
} codec_job;

static int pass_codec(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    const codec_job *job = ctx;
    uint64_t numbers[4] = { 0 };

    for (size_t i = 0; i < count && i < 4; i++) {
        int rc = bal_column_count(&numbers[i], &columns[i], err);
        if (rc)
            return rc;
    }
    return job->fn(job->ctx, (unsigned)numbers[0], numbers[1], numbers[2],
                   numbers[3], err);
}

int bal_graph_codecs(bal_graph *self, int64_t tenant, bal_graph_codec_fn *fn,
                     void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    codec_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT codec, COUNT(*),\n"
                        "  CAST(COALESCE(SUM(size), 0) AS BIGINT),\n"
                        "  CAST(COALESCE(SUM(stored), 0) AS BIGINT)\n"
                        "FROM blocks WHERE $1 = 0 OR tenant = $1\n"
                        "GROUP BY codec ORDER BY codec",
                        args, 1, pass_codec, &job, err);
}
