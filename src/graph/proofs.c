/* Proofs in the order of the log, and what they leave behind. */
#include "graph/proofs.h"

#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

static bal_value hash_value(const bal_sha256 *hash)
{
    return bal_blob(hash->bytes, sizeof(hash->bytes));
}

/* ---- the log ------------------------------------------------------------ */

int bal_graph_log_size(bal_graph *self, uint64_t *size, bal_error *err)
{
    int64_t number = 0;
    bool there = false;

    /* Counted beside it, so that a log that was cut at its end is told. */
    int rc = bal_graph_number(self,
                              "SELECT entries FROM epoch WHERE entries = "
                              "(SELECT COUNT(*) FROM proofs)",
                              NULL, 0, &number, &there, err);
    if (rc)
        return rc;
    if (!there || number < 0)
        return bal_fail(err, BAL_ECORRUPT, "the log lacks entries");
    *size = (uint64_t)number;
    return 0;
}

int bal_graph_log_signed(bal_graph *self, bool *any, bal_error *err)
{
    int64_t number = 0;

    return bal_graph_number(self,
                            "SELECT 1 FROM proofs "
                            "WHERE checkpoint IS NOT NULL LIMIT 1",
                            NULL, 0, &number, any, err);
}

typedef struct leaves_job {
    bal_buf *to;
    uint64_t next;
} leaves_job;

static int missing(uint64_t index, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "the log has no entry %llu",
                    (unsigned long long)index);
}

static int add_leaf(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    leaves_job *job = ctx;
    bal_sha256 leaf;

    (void)count;
    if (columns[0].number != (int64_t)job->next)
        return missing(job->next, err);
    job->next++;
    int rc = bal_column_bytes(leaf.bytes, sizeof(leaf.bytes), &columns[1], err);
    return rc ? rc : bal_buf_append(job->to, &leaf, sizeof(leaf), err);
}

int bal_graph_log_leaves(bal_graph *self, uint64_t size, bal_buf *to,
                         bal_error *err)
{
    const bal_value args[] = {
        bal_int(size > INT64_MAX ? INT64_MAX : (int64_t)size),
    };
    leaves_job job = { .to = to };

    int rc = bal_db_query(self->db,
                          "SELECT position, leaf FROM proofs "
                          "WHERE position < $1 ORDER BY position",
                          args, 1, add_leaf, &job, err);
    if (rc)
        return rc;
    return job.next < size ? missing(job.next, err) : 0;
}

/* ---- proofs ------------------------------------------------------------- */

static int put(bal_graph *self, const bal_proof_row *row, bal_error *err)
{
    const bal_value one[] = { bal_int(1) };
    const bal_query count = { .sql = "UPDATE epoch SET entries = entries + 1" };
    uint64_t size = 0;
    uint64_t made = 0;

    int rc = bal_graph_log_size(self, &size, err);
    if (rc)
        return rc;
    if (row->index != size)
        return bal_fail(
            err, BAL_ECONFLICT, "the log has %llu entries, and not %llu",
            (unsigned long long)size, (unsigned long long)row->index);
    const bal_value columns[] = {
        bal_int((int64_t)row->index),
        hash_value(&row->attestation),
        hash_value(&row->leaf),
        bal_text(row->tenant),
        bal_blob(row->envelope.data, row->envelope.len),
        bal_text(row->checkpoint),
        bal_int((int64_t)row->epoch),
        bal_int(row->completed_at),
    };
    rc = bal_sealed_put(self->db, BAL_SEALED_PROOFS, columns, &made, err);
    if (rc)
        return rc;
    if (!made)
        return bal_fail(err, BAL_ECONFLICT,
                        "the log has a proof with this attestation");
    return bal_sealed_change(self->db, BAL_SEALED_EPOCH, one, &count, err);
}

int bal_graph_proof_put(bal_graph *self, const bal_proof_row *row,
                        bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = put(self, row, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

#define PROOFS                                                                 \
    "SELECT position, attestation, leaf, tenant, envelope, checkpoint, "       \
    "epoch, completed_at FROM proofs "

static int read_hashes(bal_proof_row *out, const bal_value *columns,
                       bal_error *err)
{
    int rc = bal_column_bytes(out->attestation.bytes,
                              sizeof(out->attestation.bytes), &columns[1], err);
    if (rc)
        return rc;
    return bal_column_bytes(out->leaf.bytes, sizeof(out->leaf.bytes),
                            &columns[2], err);
}

static int read_proof(bal_proof_row *out, const bal_value *columns,
                      bal_error *err)
{
    int rc = bal_column_count(&out->index, &columns[0], err);
    if (rc)
        return rc;
    rc = read_hashes(out, columns, err);
    if (rc)
        return rc;
    rc = bal_column_text(&out->tenant, &columns[3], err);
    if (rc)
        return rc;
    if (columns[4].type != BAL_VALUE_BLOB)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has something else where a proof "
                        "belongs");
    out->envelope = columns[4].bytes;
    if (columns[5].type != BAL_VALUE_NULL)
        rc = bal_column_text(&out->checkpoint, &columns[5], err);
    if (rc)
        return rc;
    out->completed_at = columns[7].number;
    return bal_column_count(&out->epoch, &columns[6], err);
}

typedef struct proof_job {
    bal_proof_row_fn *fn;
    void *ctx;
    bool there;
} proof_job;

static int pass_proof(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    proof_job *job = ctx;
    bal_proof_row row = { 0 };

    (void)count;
    int rc = read_proof(&row, columns, err);
    if (rc)
        return rc;
    job->there = true;
    return job->fn(job->ctx, &row, err);
}

int bal_graph_proof(bal_graph *self, const bal_sha256 *attestation,
                    bal_proof_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { hash_value(attestation) };
    proof_job job = { .fn = fn, .ctx = ctx };
    char hex[65];

    int rc = bal_db_query(self->db, PROOFS "WHERE attestation = $1", args, 1,
                          pass_proof, &job, err);
    if (rc || job.there)
        return rc;
    bal_sha256_hex(hex, attestation);
    return bal_fail(err, BAL_ENOTFOUND, "no proof '%.12s'", hex);
}

int bal_graph_proofs(bal_graph *self, const char *tenant, bal_proof_row_fn *fn,
                     void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_text(tenant) };
    proof_job job = { .fn = fn, .ctx = ctx };

    if (!tenant)
        return bal_db_query(self->db, PROOFS "ORDER BY position", NULL, 0,
                            pass_proof, &job, err);
    return bal_db_query(self->db, PROOFS "WHERE tenant = $1 ORDER BY position",
                        args, 1, pass_proof, &job, err);
}

/* ---- tombstones --------------------------------------------------------- */

int bal_graph_tombstone_put(bal_graph *self, const bal_tombstone *stone,
                            bal_error *err)
{
    const bal_value columns[] = {
        bal_text(stone->tenant),
        bal_int(stone->kind),
        bal_id_value(&stone->id),
        hash_value(&stone->attestation),
    };

    return bal_sealed_put(self->db, BAL_SEALED_TOMBSTONES, columns, NULL, err);
}

int bal_graph_tombstone(bal_graph *self, const bal_tombstone *stone,
                        bool *there, bal_error *err)
{
    int64_t number = 0;
    const bal_value args[] = {
        bal_text(stone->tenant),
        bal_int(stone->kind),
        bal_id_value(&stone->id),
        hash_value(&stone->attestation),
    };

    return bal_graph_number(self,
                            "SELECT 1 FROM tombstones WHERE tenant = $1 "
                            "AND kind = $2 AND id = $3 AND attestation = $4",
                            args, 4, &number, there, err);
}

/* A plan is JSON that has ids as hex digits. */
int bal_graph_forgotten(bal_graph *self, const char *tenant, bal_tomb kind,
                        const bal_id *id, bool *forgotten, bal_error *err)
{
    char like[BAL_ID_HEX + 3] = "%";
    int64_t number = 0;

    bal_id_hex(like + 1, id);
    like[BAL_ID_HEX + 1] = '%';
    like[BAL_ID_HEX + 2] = 0;
    const bal_value args[] = {
        bal_text(tenant),
        bal_int(kind),
        bal_id_value(id),
        bal_text(like),
    };
    return bal_graph_number(self,
                            "SELECT 1 FROM tombstones "
                            "WHERE tenant = $1 AND kind = $2 AND id = $3 "
                            "UNION ALL SELECT 1 FROM journal "
                            "WHERE tenant = $1 AND plan LIKE $4 LIMIT 1",
                            args, 4, &number, forgotten, err);
}

/* ---- presence ----------------------------------------------------------- */

/* Each gives a row where there is one, with the oldest commit that has it, or
 * NULL. */
static const char *const presences[] = {
    [BAL_PRESENCE_COMMIT] =
        "SELECT c.epoch, c.created_at FROM tenants t "
        "JOIN commits c ON c.tenant = t.tenant AND c.id = $2 "
        "WHERE t.name = $1",
    [BAL_PRESENCE_MANIFEST] =
        "SELECT c.epoch, c.created_at FROM tenants t "
        "JOIN manifests m ON m.tenant = t.tenant AND m.id = $2 "
        "LEFT JOIN commits c ON c.manifest = m.number WHERE t.name = $1 "
        "ORDER BY c.epoch IS NULL, c.epoch, c.number LIMIT 1",
    [BAL_PRESENCE_BLOCK] =
        "SELECT c.epoch, c.created_at FROM tenants t "
        "JOIN blocks b ON b.tenant = t.tenant AND b.id = $2 "
        "LEFT JOIN uses u ON u.block = b.number "
        "LEFT JOIN commits c ON c.manifest = u.manifest WHERE t.name = $1 "
        "ORDER BY c.epoch IS NULL, c.epoch, c.number LIMIT 1",
};

static int take_presence(void *ctx, const bal_value *columns, size_t count,
                         bal_error *err)
{
    bal_presence *out = ctx;

    (void)count;
    out->row = true;
    out->there = columns[0].type != BAL_VALUE_NULL;
    if (!out->there)
        return BAL_ROW_STOP;
    out->since = columns[1].number;
    int rc = bal_column_count(&out->oldest, &columns[0], err);
    return rc ? rc : BAL_ROW_STOP;
}

int bal_graph_presence(bal_graph *self, const char *tenant,
                       bal_presence_of what, const bal_id *id,
                       bal_presence *out, bal_error *err)
{
    const bal_value args[] = { bal_text(tenant), bal_id_value(id) };
    bal_presence found = { 0 };

    int rc = bal_db_query(self->db, presences[what], args, 2, take_presence,
                          &found, err);
    if (rc)
        return rc;
    *out = found;
    return 0;
}
