/* What servers were told to load, so that a deletion can name those that it
 * does not reach. A row that is replaced is taken away first: whatever it said,
 * and whoever wrote it, a new one stands in its place. */
#include "graph/loads.h"

#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

int bal_graph_load_put(bal_graph *self, int64_t tenant, const bal_loaded *row,
                       bal_error *err)
{
    const bal_value columns[] = {
        bal_int(tenant),
        bal_text(row->server),
        bal_text(row->name),
        bal_id_value(&row->commit),
        bal_text(row->path),
        bal_int(row->loaded_at),
        row->unloaded_at ? bal_int(row->unloaded_at) : bal_null(),
    };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_load_drop(self, tenant, row->server, row->name, err);
    if (!rc)
        rc = bal_sealed_put(self->db, BAL_SEALED_LOADS, columns, NULL, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

typedef struct load_job {
    bal_graph_load_fn *fn;
    void *ctx;
} load_job;

static int pass_load(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    const load_job *job = ctx;
    bal_loaded row = {
        .loaded_at = columns[4].number,
        .unloaded_at = columns[5].number,
    };

    (void)count;
    int rc = bal_column_text(&row.server, &columns[0], err);
    if (!rc)
        rc = bal_column_text(&row.name, &columns[1], err);
    if (!rc)
        rc = bal_column_id(&row.commit, &columns[2], err);
    if (!rc)
        rc = bal_column_text(&row.path, &columns[3], err);
    return rc ? rc : job->fn(job->ctx, &row, err);
}

int bal_graph_loads(bal_graph *self, int64_t tenant, const bal_id *commit,
                    bal_graph_load_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };
    load_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT server, name, commit_id, path, loaded_at, "
                        "unloaded_at FROM loads WHERE tenant = $1 "
                        "AND commit_id = COALESCE($2, commit_id) "
                        "ORDER BY server, name",
                        args, 2, pass_load, &job, err);
}

int bal_graph_load_drop(bal_graph *self, int64_t tenant, const char *server,
                        const char *name, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_text(server),
                               bal_text(name) };

    return bal_db_run(self->db,
                      "DELETE FROM loads WHERE tenant = $1 AND server = $2 "
                      "AND name = $3",
                      args, 3, NULL, err);
}

int bal_graph_loads_forget(bal_graph *self, int64_t tenant,
                           const bal_id *commit, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };

    return bal_db_run(self->db,
                      "DELETE FROM loads WHERE tenant = $1 "
                      "AND commit_id = COALESCE($2, commit_id)",
                      args, 2, NULL, err);
}
