/* Which blocks a block is coded by. */
#include "core/error.h"
#include "graph/inside.h"

int bal_graph_bases_add(bal_graph *self, int64_t tenant,
                        const bal_block_row *row, bal_error *err)
{
    for (size_t i = 0; i < row->base_count; i++) {
        const bal_value args[] = {
            bal_int(tenant),
            bal_id_value(&row->id),
            bal_id_value(&row->bases[i]),
        };
        uint64_t changed = 0;
        int rc = bal_db_run(self->db,
                            "INSERT INTO bases (block, base) "
                            "SELECT b.number, p.number FROM blocks b, blocks p "
                            "WHERE b.tenant = $1 AND b.id = $2 "
                            "AND p.tenant = $1 AND p.id = $3 "
                            "ON CONFLICT (block, base) DO UPDATE SET "
                            "base = excluded.base",
                            args, 3, &changed, err);
        if (rc)
            return rc;
        if (!changed)
            return bal_fail(err, BAL_ECONFLICT,
                            "block '%s' was removed meanwhile",
                            bal_id_short(&row->bases[i]).text);
    }
    return 0;
}

int bal_bases_clear(bal_graph *self, int64_t tenant, const bal_id *id,
                    bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };

    return bal_db_run(self->db,
                      "DELETE FROM bases WHERE block = (SELECT number "
                      "FROM blocks WHERE tenant = $1 AND id = $2)",
                      args, 2, NULL, err);
}

typedef struct base_job {
    bal_graph_base_fn *fn;
    void *ctx;
} base_job;

static int pass_base(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    const base_job *job = ctx;
    bal_id block;
    bal_id base;

    (void)count;
    int rc = bal_column_id(&block, &columns[0], err);
    if (!rc)
        rc = bal_column_id(&base, &columns[1], err);
    return rc ? rc : job->fn(job->ctx, &block, &base, err);
}

int bal_graph_bases(bal_graph *self, int64_t tenant, bal_graph_base_fn *fn,
                    void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    base_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT b.id, p.id FROM bases x "
                        "JOIN blocks b ON b.number = x.block "
                        "JOIN blocks p ON p.number = x.base "
                        "WHERE b.tenant = $1 ORDER BY b.id, p.id",
                        args, 1, pass_base, &job, err);
}

static int see_any(void *ctx, const bal_value *columns, size_t count,
                   bal_error *err)
{
    (void)columns;
    (void)count;
    (void)err;
    *(bool *)ctx = true;
    return BAL_ROW_STOP;
}

int bal_graph_bases_any(bal_graph *self, int64_t tenant, bool *any,
                        bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    *any = false;
    return bal_db_query(self->db,
                        "SELECT 1 FROM bases x "
                        "JOIN blocks b ON b.number = x.block "
                        "WHERE b.tenant = $1 LIMIT 1",
                        args, 1, see_any, any, err);
}

int bal_graph_is_base(bal_graph *self, int64_t tenant, const bal_id *id,
                      bool *is, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };

    *is = false;
    return bal_db_query(self->db,
                        "SELECT 1 FROM bases x "
                        "JOIN blocks p ON p.number = x.base "
                        "WHERE p.tenant = $1 AND p.id = $2 LIMIT 1",
                        args, 2, see_any, is, err);
}
