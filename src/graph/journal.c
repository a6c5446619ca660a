/* The journal of deletions that have begun, and exports. */
#include "core/error.h"
#include "graph/forgets.h"
#include "graph/inside.h"
#include "graph/seal.h"

int bal_graph_journal_put(bal_graph *self, const char *tenant, const char *plan,
                          int64_t *number, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int64_t next = 0;
    bool there = false;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = bal_graph_number(self,
                          "SELECT COALESCE(MAX(number), 0) + 1 FROM journal",
                          NULL, 0, &next, &there, err);
    if (rc)
        return rc;
    const bal_value columns[] = {
        bal_int(next),
        bal_text(tenant),
        bal_int(BAL_JOURNAL_PLANNED),
        bal_text(plan),
    };
    rc = bal_sealed_put(self->db, BAL_SEALED_JOURNAL, columns, NULL, err);
    if (rc)
        return rc;
    rc = bal_tx_commit(&tx, err);
    if (rc)
        return rc;
    *number = next;
    return 0;
}

typedef struct journal_job {
    bal_journal_fn *fn;
    void *ctx;
} journal_job;

/* The number may be anything where the seal does not fit. */
static int pass_journal(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    const journal_job *job = ctx;
    int64_t state = columns[3].number;
    bal_journal_row row = {
        .number = columns[1].number,
        .tenant = "",
        .plan = "",
        .sealed = bal_seal_fits(BAL_SEALED_JOURNAL, columns, count) &&
                  state >= 0 && state <= BAL_JOURNAL_SCRUBBED,
    };

    if (row.sealed) {
        row.state = (bal_journal_state)state;
        int rc = bal_column_text(&row.tenant, &columns[2], err);
        if (!rc)
            rc = bal_column_text(&row.plan, &columns[4], err);
        if (rc)
            return rc;
    }
    return job->fn(job->ctx, &row, err);
}

int bal_graph_journal(bal_graph *self, bal_journal_fn *fn, void *ctx,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) sql = { 0 };
    journal_job job = { fn, ctx };

    int rc = bal_seal_select(&sql, BAL_SEALED_JOURNAL, "", err);
    if (!rc)
        rc = bal_buf_text(&sql, " ORDER BY number", err);
    if (rc)
        return rc;
    return bal_db_query(self->db, bal_buf_string(&sql), NULL, 0, pass_journal,
                        &job, err);
}

int bal_graph_journal_state(bal_graph *self, int64_t number,
                            bal_journal_state state, bal_error *err)
{
    const bal_value args[] = { bal_int(number), bal_int(state) };
    const bal_query change = {
        .sql = "UPDATE journal SET state = $2 WHERE number = $1",
        .args = args,
        .count = 2,
    };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = bal_sealed_change(self->db, BAL_SEALED_JOURNAL, args, &change, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

int bal_graph_journal_done(bal_graph *self, int64_t number, bal_error *err)
{
    const bal_value args[] = { bal_int(number) };

    return bal_db_run(self->db, "DELETE FROM journal WHERE number = $1", args,
                      1, NULL, err);
}

int bal_graph_journal_any(bal_graph *self, bool *any, bal_error *err)
{
    int64_t number = 0;

    return bal_graph_number(self, "SELECT number FROM journal LIMIT 1", NULL, 0,
                            &number, any, err);
}

/* ---- exports ------------------------------------------------------------ */

static int renew(bal_graph *self, const bal_value *columns, bal_error *err)
{
    const bal_query change = {
        .sql = "UPDATE exports SET exported_at = $4 "
               "WHERE tenant = $1 AND commit_id = $2 AND path = $3",
        .args = columns,
        .count = 4,
    };

    return bal_sealed_change(self->db, BAL_SEALED_EXPORTS, columns, &change,
                             err);
}

int bal_graph_export_put(bal_graph *self, int64_t tenant,
                         const bal_export_row *row, bal_error *err)
{
    const bal_value columns[] = {
        bal_int(tenant),
        bal_id_value(&row->commit),
        bal_text(row->path),
        bal_int(row->at),
    };
    BAL_LOCAL(bal_tx) tx = { 0 };
    uint64_t made = 0;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = bal_sealed_put(self->db, BAL_SEALED_EXPORTS, columns, &made, err);
    if (!rc && !made)
        rc = renew(self, columns, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

typedef struct export_job {
    bal_export_fn *fn;
    void *ctx;
} export_job;

static int pass_export(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    const export_job *job = ctx;
    bal_export_row row = { .at = columns[2].number };

    (void)count;
    int rc = bal_column_id(&row.commit, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_text(&row.path, &columns[1], err);
    return rc ? rc : job->fn(job->ctx, &row, err);
}

int bal_graph_exports(bal_graph *self, int64_t tenant, const bal_id *commit,
                      bal_export_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };
    export_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT commit_id, path, exported_at FROM exports "
                        "WHERE tenant = $1 "
                        "AND commit_id = COALESCE($2, commit_id) "
                        "ORDER BY exported_at, path",
                        args, 2, pass_export, &job, err);
}

int bal_graph_exports_forget(bal_graph *self, int64_t tenant,
                             const bal_id *commit, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };

    return bal_db_run(self->db,
                      "DELETE FROM exports WHERE tenant = $1 "
                      "AND commit_id = COALESCE($2, commit_id)",
                      args, 2, NULL, err);
}
