/* Blocks and manifests: which blocks a tenant has and what uses them. */
#include "core/arith.h"
#include "core/error.h"
#include "graph/inputs.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* ---- blocks ------------------------------------------------------------ */

int bal_block_read(bal_block_row *row, const bal_value *columns, bal_error *err)
{
    uint64_t codec = 0;

    int rc = bal_column_id(&row->id, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_count(&row->size, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_column_count(&row->stored, &columns[2], err);
    if (rc)
        return rc;
    rc = bal_column_count(&codec, &columns[3], err);
    if (rc)
        return rc;
    if (codec > UINT32_MAX)
        return bal_fail(err, BAL_ECORRUPT, "block '%s' has no known codec",
                        bal_id_short(&row->id).text);
    row->codec = (unsigned)codec;
    return bal_column_id_or_null(&row->check, &row->has_check, &columns[4],
                                 err);
}

typedef struct block_job {
    bal_graph_block_fn *fn;
    void *ctx;
} block_job;

static int pass_block(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    const block_job *job = ctx;
    bal_block_row row = { 0 };

    (void)count;
    int rc = bal_block_read(&row, columns, err);
    if (rc)
        return rc;
    return job->fn(job->ctx, &row, err);
}

typedef struct found_block {
    bal_block_row row;
    bool there;
} found_block;

static int take_block(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    found_block *found = ctx;

    (void)count;
    int rc = bal_block_read(&found->row, columns, err);
    if (rc)
        return rc;
    found->there = true;
    return BAL_ROW_STOP;
}

int bal_graph_block(bal_graph *self, int64_t tenant, const bal_id *id,
                    bal_block_row *row, bool *there, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };
    found_block found = { 0 };

    int rc = bal_db_query(self->db,
                          "SELECT " BAL_BLOCK_COLUMNS "FROM blocks b "
                          "WHERE b.tenant = $1 AND b.id = $2",
                          args, 2, take_block, &found, err);
    if (rc)
        return rc;
    *there = found.there;
    if (row && found.there)
        *row = found.row;
    return 0;
}

int bal_graph_each_block(bal_graph *self, const char *sql,
                         const bal_value *args, size_t count,
                         bal_graph_block_fn *fn, void *ctx, bal_error *err)
{
    block_job job = { fn, ctx };

    return bal_db_query(self->db, sql, args, count, pass_block, &job, err);
}

int bal_graph_blocks(bal_graph *self, int64_t tenant, bal_graph_block_fn *fn,
                     void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    return bal_graph_each_block(self,
                                "SELECT " BAL_BLOCK_COLUMNS "FROM blocks b "
                                "WHERE b.tenant = $1 ORDER BY b.id",
                                args, 1, fn, ctx, err);
}

int bal_graph_unused(bal_graph *self, int64_t tenant, bal_graph_block_fn *fn,
                     void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    return bal_graph_each_block(self,
                                "SELECT " BAL_BLOCK_COLUMNS "FROM blocks b "
                                "WHERE b.tenant = $1 AND NOT EXISTS "
                                "(SELECT 1 FROM uses u "
                                "WHERE u.block = b.number) AND NOT EXISTS "
                                "(SELECT 1 FROM bases x "
                                "WHERE x.base = b.number) ORDER BY b.id",
                                args, 1, fn, ctx, err);
}

int bal_graph_block_forget(bal_graph *self, int64_t tenant, const bal_id *id,
                           bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };

    int rc =
        bal_db_run(self->db, "DELETE FROM blocks WHERE tenant = $1 AND id = $2",
                   args, 2, NULL, err);
    if (rc == BAL_ECONFLICT)
        return bal_fail(err, rc, "block '%s' is in use", bal_id_short(id).text);
    return rc;
}

/* A row's columns, and behind them its seal, which `seal` is kept in. */
static int block_columns(bal_value out[7], bal_id *seal, int64_t tenant,
                         const bal_block_row *row, bal_error *err)
{
    if (row->size > INT64_MAX || row->stored > INT64_MAX)
        return bal_fail(err, BAL_EINVAL, "block '%s' is too large",
                        bal_id_short(&row->id).text);
    out[0] = bal_int(tenant);
    out[1] = bal_id_value(&row->id);
    out[2] = bal_int((int64_t)row->size);
    out[3] = bal_int((int64_t)row->stored);
    out[4] = bal_int(row->codec);
    out[5] = bal_id_value(row->has_check ? &row->check : NULL);
    bal_seal_of(seal, BAL_SEALED_BLOCKS, out, 6);
    out[6] = bal_id_value(seal);
    return 0;
}

static int put_block(bal_graph *self, int64_t tenant, const bal_block_row *row,
                     bal_error *err)
{
    bal_value args[7];
    bal_id seal;

    int rc = block_columns(args, &seal, tenant, row, err);
    if (rc)
        return rc;
    /* A row that is there is of bytes that were lost, or of another writer's,
     * who may have coded them by other blocks: those stay noted. */
    rc = bal_db_run(self->db,
                    "INSERT INTO blocks (tenant, id, size, stored, codec, "
                    "check_hash, seal) VALUES ($1, $2, $3, $4, $5, $6, $7) "
                    "ON CONFLICT (tenant, id) DO UPDATE SET "
                    "size = excluded.size, stored = excluded.stored, "
                    "codec = excluded.codec, check_hash = excluded.check_hash, "
                    "seal = excluded.seal",
                    args, 7, NULL, err);
    if (!rc)
        rc = bal_norm_put(self, tenant, row, err);
    return rc ? rc : bal_graph_bases_add(self, tenant, row, err);
}

int bal_graph_block_renew(bal_graph *self, int64_t tenant,
                          const bal_block_row *row, bal_error *err)
{
    bal_value args[7];
    uint64_t changed = 0;
    bal_id seal;

    int rc = block_columns(args, &seal, tenant, row, err);
    if (rc)
        return rc;
    rc = bal_db_run(self->db,
                    "UPDATE blocks SET size = $3, stored = $4, codec = $5, "
                    "check_hash = $6, seal = $7 WHERE tenant = $1 AND id = $2",
                    args, 7, &changed, err);
    if (rc)
        return rc;
    if (!changed)
        return bal_fail(err, BAL_ENOTFOUND, "block '%s' has no row",
                        bal_id_short(&row->id).text);
    rc = bal_norm_put(self, tenant, row, err);
    if (!rc)
        rc = bal_bases_clear(self, tenant, &row->id, err);
    return rc ? rc : bal_graph_bases_add(self, tenant, row, err);
}

/* ---- manifests --------------------------------------------------------- */

/* Not counted one by one, so that no answer is awaited for each: put_uses
 * does. */
static int put_use(bal_graph *self, int64_t tenant, int64_t manifest,
                   const bal_id *id, bal_error *err)
{
    const bal_value args[] = {
        bal_int(manifest),
        bal_int(tenant),
        bal_id_value(id),
    };

    return bal_db_run(self->db,
                      "INSERT INTO uses (manifest, block) "
                      "SELECT $1, number FROM blocks "
                      "WHERE tenant = $2 AND id = $3",
                      args, 3, NULL, err);
}

/* One of them has no row. */
static int name_missing(bal_graph *self, int64_t tenant,
                        const bal_manifest_row *row, bal_error *err)
{
    for (size_t i = 0; i < row->use_count; i++) {
        bool there = false;
        int rc =
            bal_graph_block(self, tenant, &row->uses[i], NULL, &there, err);
        if (rc)
            return rc;
        if (!there)
            return bal_fail(err, BAL_ECONFLICT,
                            "block '%s' was removed meanwhile",
                            bal_id_short(&row->uses[i]).text);
    }
    return bal_fail(err, BAL_ECONFLICT, "a block was removed meanwhile");
}

static int put_uses(bal_graph *self, int64_t tenant, int64_t manifest,
                    const bal_manifest_row *row, bal_error *err)
{
    const bal_value args[] = { bal_int(manifest) };
    int64_t count = 0;
    bool there = false;
    int rc = 0;

    for (size_t i = 0; i < row->use_count && !rc; i++)
        rc = put_use(self, tenant, manifest, &row->uses[i], err);
    if (!rc)
        rc = bal_graph_number(self,
                              "SELECT COUNT(*) FROM uses WHERE manifest = $1",
                              args, 1, &count, &there, err);
    if (rc || (uint64_t)count == row->use_count)
        return rc;
    return name_missing(self, tenant, row, err);
}

/* *made is false where it was in already. */
static int put_body(bal_graph *self, int64_t tenant,
                    const bal_manifest_row *row, int64_t *number, bool *made,
                    bal_error *err)
{
    if (row->logical > INT64_MAX)
        return bal_fail(err, BAL_EINVAL, "manifest '%s' is too large",
                        bal_id_short(&row->id).text);

    bal_value args[] = {
        bal_int(tenant),
        bal_id_value(&row->id),
        bal_text(row->kind),
        bal_int((int64_t)row->logical),
        bal_blob(row->body.data, row->body.len),
        bal_null(),
    };
    bal_id seal;
    bal_seal_of(&seal, BAL_SEALED_MANIFESTS, args, 4);
    args[5] = bal_id_value(&seal);
    return bal_graph_number(
        self,
        "INSERT INTO manifests (tenant, id, kind, logical, body, seal) "
        "VALUES ($1, $2, $3, $4, $5, $6) "
        "ON CONFLICT DO NOTHING RETURNING number",
        args, 6, number, made, err);
}

static int put_all(bal_graph *self, int64_t tenant, const bal_manifest_row *row,
                   bal_error *err)
{
    int64_t number = 0;
    bool made = false;

    int rc = put_body(self, tenant, row, &number, &made, err);
    if (rc || !made)
        return rc;
    rc = put_uses(self, tenant, number, row, err);
    if (rc)
        return rc;
    return bal_inputs_put(self->db, number, row->inputs, row->input_count, err);
}

int bal_graph_manifest_put(bal_graph *self, int64_t tenant,
                           const bal_manifest_row *row,
                           const bal_block_row *blocks, size_t block_count,
                           bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < block_count; i++) {
        rc = put_block(self, tenant, &blocks[i], err);
        if (rc)
            return rc;
    }
    rc = put_all(self, tenant, row, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

typedef struct found_manifest {
    bal_buf *kind; /* NULL: not asked for */
    bal_buf *body;
    bool there;
} found_manifest;

static int take_manifest(void *ctx, const bal_value *columns, size_t count,
                         bal_error *err)
{
    found_manifest *found = ctx;
    const bal_bytes *body = &columns[1].bytes;
    const char *kind;

    (void)count;
    int rc = bal_column_text(&kind, &columns[0], err);
    if (rc)
        return rc;
    if (columns[1].type != BAL_VALUE_BLOB)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a manifest "
                        "belongs");
    found->there = true;
    if (found->kind)
        rc = bal_buf_text(found->kind, kind, err);
    if (!rc)
        rc = bal_buf_append(found->body, body->data, body->len, err);
    return rc ? rc : BAL_ROW_STOP;
}

int bal_graph_manifest(bal_graph *self, int64_t tenant, const bal_id *id,
                       bal_buf *kind, bal_buf *body, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };
    found_manifest found = { .kind = kind, .body = body };

    int rc = bal_db_query(self->db,
                          "SELECT kind, body FROM manifests "
                          "WHERE tenant = $1 AND id = $2",
                          args, 2, take_manifest, &found, err);
    if (rc)
        return rc;
    if (!found.there)
        return bal_fail(err, BAL_ENOTFOUND, "no manifest '%s'",
                        bal_id_short(id).text);
    return 0;
}

typedef struct recent_job {
    bal_graph_recent_fn *fn;
    void *ctx;
} recent_job;

static int pass_recent(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    const recent_job *job = ctx;
    bal_id manifest;
    bal_id commit;

    (void)count;
    int rc = bal_column_id(&manifest, &columns[0], err);
    if (!rc)
        rc = bal_column_id(&commit, &columns[1], err);
    return rc ? rc : job->fn(job->ctx, &manifest, &commit, err);
}

int bal_graph_recent(bal_graph *self, int64_t tenant, const bal_recent *which,
                     bal_graph_recent_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = {
        bal_int(tenant),
        bal_text(which->kind),
        bal_int((int64_t)bal_min(which->least, INT64_MAX)),
        bal_int((int64_t)bal_min(which->largest, INT64_MAX)),
        bal_int((int64_t)bal_min(which->most, INT64_MAX)),
        bal_int(BAL_RECENT_AMONG),
    };
    recent_job job = { fn, ctx };

#define AMONG "SELECT manifest, number FROM commits WHERE tenant = $1 ORDER BY "
#define RECENT(order)                                                          \
    "SELECT m.id, c.id FROM (SELECT manifest, max(number) AS latest "          \
    "FROM (" AMONG "number " order " LIMIT $6) w GROUP BY manifest) l "        \
    "JOIN commits c ON c.number = l.latest "                                   \
    "JOIN manifests m ON m.number = l.manifest "                               \
    "WHERE m.kind = $2 AND m.logical BETWEEN $3 AND $4 "                       \
    "ORDER BY l.latest " order " LIMIT $5"
    return bal_db_query(self->db,
                        which->oldest ? RECENT("ASC") : RECENT("DESC"), args, 6,
                        pass_recent, &job, err);
#undef AMONG
#undef RECENT
}

int bal_graph_committed(bal_graph *self, int64_t tenant, bal_graph_id_fn *fn,
                        void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    return bal_graph_each_id(self,
                             "SELECT m.id FROM manifests m JOIN "
                             "(SELECT manifest, min(number) AS first "
                             "FROM commits WHERE tenant = $1 "
                             "GROUP BY manifest) c ON c.manifest = m.number "
                             "ORDER BY c.first",
                             args, 1, fn, ctx, err);
}

int bal_graph_manifests(bal_graph *self, int64_t tenant, bal_graph_id_fn *fn,
                        void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    return bal_graph_each_id(self,
                             "SELECT id FROM manifests WHERE tenant = $1 "
                             "ORDER BY id",
                             args, 1, fn, ctx, err);
}

int bal_graph_uses(bal_graph *self, int64_t tenant, const bal_id *manifest,
                   bal_graph_id_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(manifest) };

    return bal_graph_each_id(self,
                             "SELECT b.id FROM manifests m "
                             "JOIN uses u ON u.manifest = m.number "
                             "JOIN blocks b ON b.number = u.block "
                             "WHERE m.tenant = $1 AND m.id = $2 ORDER BY b.id",
                             args, 2, fn, ctx, err);
}
