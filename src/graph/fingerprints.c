/* Sets of probes and fingerprints, as rows. */
#include "graph/fingerprints.h"

#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* There while rows are gone and the database is not scrubbed. */
static const char due_setting[] = "scrub_due";

/* ---- putting ------------------------------------------------------------ */

/* A set is what its id says: one that is there is left as it is. */
static int put_set(bal_graph *self, int64_t tenant, const bal_probes_row *row,
                   bal_error *err)
{
    const bal_value columns[] = {
        bal_int(tenant),
        bal_id_value(&row->id),
        bal_int((int64_t)row->probes),
        bal_int(row->created_at),
        bal_blob(row->body.data, row->body.len),
    };

    return bal_sealed_put(self->db, BAL_SEALED_PROBE_SETS, columns, NULL, err);
}

/* What is whole is not lost to what came in part. */
static int check_answers(bal_graph *self, const bal_value *columns,
                         const bal_fingerprint_row *row, bal_error *err)
{
    int64_t answers = 0;
    bool there = false;
    int rc = bal_graph_number(self,
                              "SELECT answers FROM fingerprints "
                              "WHERE tenant = $1 AND commit_id = $2 "
                              "AND probes = $3 AND terms = $4",
                              columns, 4, &answers, &there, err);

    if (rc || !there || (uint64_t)answers <= row->answers)
        return rc;
    return bal_fail(err, BAL_ECONFLICT,
                    "%lld answers are recorded of '%s', and these are %llu",
                    (long long)answers, bal_id_short(&row->commit).text,
                    (unsigned long long)row->answers);
}

static int put_row(bal_graph *self, int64_t tenant,
                   const bal_fingerprint_row *row, bal_error *err)
{
    const bal_value columns[] = {
        bal_int(tenant),
        bal_id_value(&row->commit),
        bal_id_value(&row->probes),
        bal_text(row->terms),
        bal_int((int64_t)row->answers),
        bal_int(row->created_at),
        bal_blob(row->body.data, row->body.len),
    };

    int rc = check_answers(self, columns, row, err);
    if (!rc)
        rc = bal_db_run(self->db,
                        "DELETE FROM fingerprints WHERE tenant = $1 "
                        "AND commit_id = $2 AND probes = $3 AND terms = $4",
                        columns, 4, NULL, err);
    if (rc)
        return rc;
    return bal_sealed_put(self->db, BAL_SEALED_FINGERPRINTS, columns, NULL,
                          err);
}

static int put(bal_graph *self, int64_t tenant, const bal_probes_row *probes,
               const bal_fingerprint_row *row, bal_error *err)
{
    int64_t number = 0;
    bool there = false;

    int rc =
        bal_commit_number(self, tenant, &row->commit, &number, &there, err);
    if (rc)
        return rc;
    if (!there)
        return bal_fail(err, BAL_ENOTFOUND, "no commit '%s'",
                        bal_id_short(&row->commit).text);
    rc = put_set(self, tenant, probes, err);
    return rc ? rc : put_row(self, tenant, row, err);
}

int bal_graph_fingerprint_put(bal_graph *self, int64_t tenant,
                              const bal_probes_row *probes,
                              const bal_fingerprint_row *row, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = put(self, tenant, probes, row, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* ---- reading ------------------------------------------------------------ */

typedef struct row_job {
    bal_fingerprint_row_fn *fn;
    bal_probes_row_fn *set_fn;
    void *ctx;
    bool there;
} row_job;

#define FINGERPRINT "commit_id, probes, terms, answers, created_at"

static int read_row(bal_fingerprint_row *out, const bal_value *columns,
                    bal_error *err)
{
    int rc = bal_column_id(&out->commit, &columns[0], err);
    if (!rc)
        rc = bal_column_id(&out->probes, &columns[1], err);
    if (!rc)
        rc = bal_column_text(&out->terms, &columns[2], err);
    if (!rc)
        rc = bal_column_count(&out->answers, &columns[3], err);
    out->created_at = columns[4].number;
    return rc;
}

static int pass_row(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    row_job *job = ctx;
    bal_fingerprint_row row = { .answers = 0 };

    int rc = read_row(&row, columns, err);
    if (rc)
        return rc;
    if (count > 5)
        row.body = columns[5].bytes;
    job->there = true;
    return job->fn(job->ctx, &row, err);
}

#define LIST   "SELECT " FINGERPRINT " FROM fingerprints WHERE tenant = $1 "
#define LATEST "ORDER BY created_at DESC, number DESC"

int bal_graph_fingerprints(bal_graph *self, int64_t tenant,
                           const bal_id *commit, const bal_id *probes,
                           bal_fingerprint_row_fn *fn, void *ctx,
                           bal_error *err)
{
    /* Each by an index: a table of answers is long to walk through. */
    static const char *const sql[] = {
        LIST LATEST,
        LIST "AND commit_id = $2 " LATEST,
        LIST "AND commit_id = $2 AND probes = $3 " LATEST,
    };
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(commit),
        bal_id_value(probes),
    };
    size_t which = commit ? 1 + (probes != NULL) : 0;
    row_job job = { .fn = fn, .ctx = ctx };

    return bal_db_query(self->db, sql[which], args, 1 + which, pass_row, &job,
                        err);
}

int bal_graph_fingerprint(bal_graph *self, int64_t tenant,
                          const bal_fingerprint_key *key,
                          bal_fingerprint_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(key->commit),
        bal_id_value(key->probes),
        bal_text(key->terms),
    };
    row_job job = { .fn = fn, .ctx = ctx };

    int rc = bal_db_query(self->db,
                          "SELECT " FINGERPRINT ", body FROM fingerprints "
                          "WHERE tenant = $1 AND commit_id = $2 "
                          "AND probes = $3 AND terms = COALESCE($4, terms) "
                          "ORDER BY created_at DESC, number DESC LIMIT 1",
                          args, 4, pass_row, &job, err);
    if (rc || job.there)
        return rc;
    return bal_fail(err, BAL_ENOTFOUND, "no fingerprint of '%s'",
                    bal_id_short(key->commit).text);
}

/* ---- sets --------------------------------------------------------------- */

static int pass_set(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    row_job *job = ctx;
    bal_probes_row row = { .created_at = columns[3].number };

    int rc = bal_column_id(&row.id, &columns[0], err);
    if (!rc)
        rc = bal_column_count(&row.probes, &columns[1], err);
    if (!rc)
        rc = bal_column_count(&row.fingerprints, &columns[2], err);
    if (rc)
        return rc;
    if (count > 4)
        row.body = columns[4].bytes;
    job->there = true;
    return job->set_fn(job->ctx, &row, err);
}

#define SET                                                                    \
    "s.id, s.probes, (SELECT COUNT(*) FROM fingerprints f "                    \
    "WHERE f.tenant = s.tenant AND f.probes = s.id), s.created_at"

int bal_graph_probe_sets(bal_graph *self, int64_t tenant, bal_probes_row_fn *fn,
                         void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    row_job job = { .set_fn = fn, .ctx = ctx };

    return bal_db_query(self->db,
                        "SELECT " SET " FROM probe_sets s WHERE s.tenant = $1 "
                        "ORDER BY s.created_at DESC, s.number DESC",
                        args, 1, pass_set, &job, err);
}

int bal_graph_probe_set(bal_graph *self, int64_t tenant, const bal_id *id,
                        bal_probes_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };
    row_job job = { .set_fn = fn, .ctx = ctx };

    int rc = bal_db_query(self->db,
                          "SELECT " SET ", s.body FROM probe_sets s "
                          "WHERE s.tenant = $1 AND s.id = $2",
                          args, 2, pass_set, &job, err);
    if (rc || job.there)
        return rc;
    return bal_fail(err, BAL_ENOTFOUND, "no probe set '%s'",
                    bal_id_short(id).text);
}

int bal_graph_probe_prefix(bal_graph *self, int64_t tenant, const char *prefix,
                           uint64_t limit, bal_graph_id_fn *fn, void *ctx,
                           bal_error *err)
{
    bal_id low;
    bal_id high;

    int rc = bal_id_range(&low, &high, prefix, 4, err);
    if (rc)
        return rc;
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(&low),
        bal_id_value(&high),
        bal_int((int64_t)limit),
    };
    return bal_graph_each_id(self,
                             "SELECT id FROM probe_sets WHERE tenant = $1 "
                             "AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4",
                             args, 4, fn, ctx, err);
}

/* ---- taking rows -------------------------------------------------------- */

/* A set that no fingerprint is of was put with one that is gone. */
#define ONLY_OF                                                                \
    "FROM probe_sets WHERE tenant = $1 AND NOT EXISTS "                        \
    "(SELECT 1 FROM fingerprints f WHERE f.tenant = probe_sets.tenant "        \
    "AND f.probes = probe_sets.id AND f.commit_id <> $2)"

int bal_graph_probes_only_of(bal_graph *self, int64_t tenant,
                             const bal_id *commit, bal_graph_id_fn *fn,
                             void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };

    if (!commit)
        return bal_graph_each_id(
            self, "SELECT id FROM probe_sets WHERE tenant = $1 ORDER BY id",
            args, 1, fn, ctx, err);
    return bal_graph_each_id(self, "SELECT id " ONLY_OF " ORDER BY id", args, 2,
                             fn, ctx, err);
}

int bal_graph_fingerprints_forget(bal_graph *self, int64_t tenant,
                                  const bal_id *commit, bal_error *err)
{
    static const char *const takes[] = {
        "DELETE " ONLY_OF,
        "DELETE FROM fingerprints WHERE tenant = $1 AND commit_id = $2",
    };
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]) && !rc; i++)
        rc = bal_db_run(self->db, takes[i], args, 2, NULL, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

int bal_graph_probes_forget(bal_graph *self, int64_t tenant, const bal_id *id,
                            uint64_t *fingerprints, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };
    BAL_LOCAL(bal_tx) tx = { 0 };
    uint64_t answers = 0;
    uint64_t sets = 0;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_db_run(self->db,
                        "DELETE FROM fingerprints WHERE tenant = $1 "
                        "AND probes = $2",
                        args, 2, &answers, err);
    if (!rc)
        rc = bal_db_run(self->db,
                        "DELETE FROM probe_sets WHERE tenant = $1 AND id = $2",
                        args, 2, &sets, err);
    if (!rc && !sets)
        rc = bal_fail(err, BAL_ENOTFOUND, "no probe set '%s'",
                      bal_id_short(id).text);
    if (!rc)
        rc = bal_setting_put(self->db, due_setting, "1", err);
    if (rc)
        return rc;
    rc = bal_tx_commit(&tx, err);
    if (!rc)
        *fingerprints = answers;
    return rc;
}

int bal_graph_scrub_due(bal_graph *self, bool *due, bal_error *err)
{
    const bal_value args[] = { bal_text(due_setting) };
    int64_t number = 0;

    return bal_graph_number(self, "SELECT 1 FROM settings WHERE key = $1", args,
                            1, &number, due, err);
}

int bal_graph_scrub_done(bal_graph *self, bal_error *err)
{
    return bal_graph_set(self, due_setting, NULL, err);
}
