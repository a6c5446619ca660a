/* What a writer is about to publish. Blocks appear under their names before
 * the transaction that names them in rows; a writer that is killed between the
 * two leaves blocks that no row knows. Its intention, noted before, does. */
#include "core/error.h"
#include "core/str.h"
#include "graph/inside.h"

int bal_graph_intend(bal_graph *self, int64_t tenant, const char *session,
                     const bal_id *ids, size_t count, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        const bal_value args[] = {
            bal_text(session),
            bal_int(tenant),
            bal_id_value(&ids[i]),
        };
        rc = bal_db_run(self->db,
                        "INSERT INTO intended (session, tenant, id) "
                        "VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                        args, 3, NULL, err);
        if (rc)
            return rc;
    }
    return bal_tx_commit(&tx, err);
}

int bal_graph_intended_done(bal_graph *self, const char *session,
                            bal_error *err)
{
    const bal_value args[] = { bal_text(session) };

    if (!session)
        return bal_db_run(self->db, "DELETE FROM intended", NULL, 0, NULL, err);
    return bal_db_run(self->db, "DELETE FROM intended WHERE session = $1", args,
                      1, NULL, err);
}

typedef struct intended_job {
    bal_intended_fn *fn;
    void *ctx;
} intended_job;

static int pass_intended(void *ctx, const bal_value *columns, size_t count,
                         bal_error *err)
{
    const intended_job *job = ctx;
    const char *session = NULL;
    const char *tenant = NULL;
    bal_id id;

    (void)count;
    int rc = bal_column_text(&session, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_text(&tenant, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_column_id(&id, &columns[2], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, session, tenant, &id, err);
}

int bal_graph_intended(bal_graph *self, const char *except, bool named,
                       bal_intended_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_text(except ? except : ""), bal_int(named) };
    intended_job job = { fn, ctx };

    return bal_db_query(
        self->db,
        "SELECT i.session, t.name, i.id FROM intended i "
        "JOIN tenants t ON t.tenant = i.tenant "
        "LEFT JOIN blocks b ON b.tenant = i.tenant AND b.id = i.id "
        "WHERE i.session <> $1 "
        "AND CASE WHEN b.number IS NULL THEN 0 ELSE 1 END = $2 "
        "ORDER BY i.session, t.name, i.id",
        args, 2, pass_intended, &job, err);
}
