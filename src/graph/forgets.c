/* Planning what goes with a commit or a tenant, and taking the rows. */
#include "graph/forgets.h"

#include <string.h>

#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* ---- planning ----------------------------------------------------------- */

/* Appends the manifests that are going, as numbers in SQL, a comma before each:
 * there is no telling how many. Those that are not there are passed over. */
static int list_gone(bal_graph *self, bal_buf *to, int64_t tenant,
                     const bal_id *gone, size_t count, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        const bal_value args[] = { bal_int(tenant), bal_id_value(&gone[i]) };
        int64_t number = 0;
        bool there = false;
        rc = bal_graph_number(self,
                              "SELECT number FROM manifests "
                              "WHERE tenant = $1 AND id = $2",
                              args, 2, &number, &there, err);
        if (!rc && there)
            rc = bal_buf_format(to, err, ", %lld", (long long)number);
    }
    return rc;
}

/* Not from what the manifests that go are said to use: where those rows are
 * gone, the blocks would stay for good. */
static int doomed_by(bal_graph *self, int64_t tenant, const bal_buf *numbers,
                     bal_graph_block_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    BAL_LOCAL(bal_buf) sql = { 0 };

    int rc = bal_buf_format(
        &sql, err,
        "SELECT " BAL_BLOCK_COLUMNS "FROM blocks b WHERE b.tenant = $1\n"
        "AND NOT EXISTS (SELECT 1 FROM uses u\n"
        "                JOIN manifests m ON m.number = u.manifest\n"
        "                AND m.tenant = $1\n"
        "                WHERE u.block = b.number\n"
        "                AND u.manifest NOT IN (-1%s))\n"
        "ORDER BY b.id",
        bal_buf_string(numbers));
    if (rc)
        return rc;
    return bal_graph_each_block(self, bal_buf_string(&sql), args, 1, fn, ctx,
                                err);
}

int bal_graph_doomed(bal_graph *self, int64_t tenant, const bal_id *gone,
                     size_t count, bal_graph_block_fn *fn, void *ctx,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) numbers = { 0 };

    if (!gone)
        return bal_graph_blocks(self, tenant, fn, ctx, err);
    int rc = list_gone(self, &numbers, tenant, gone, count, err);
    return rc ? rc : doomed_by(self, tenant, &numbers, fn, ctx, err);
}

typedef struct kept_job {
    bal_kept_fn *fn;
    void *ctx;
} kept_job;

static int pass_kept(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    const kept_job *job = ctx;
    bal_id block;
    bal_id by;

    (void)count;
    int rc = bal_column_id(&block, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_id(&by, &columns[1], err);
    return rc ? rc : job->fn(job->ctx, &block, &by, err);
}

int bal_graph_kept(bal_graph *self, int64_t tenant, const bal_id *manifest,
                   bal_kept_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(manifest) };
    kept_job job = { fn, ctx };

    return bal_db_query(
        self->db,
        "SELECT b.id, o.id FROM manifests m\n"
        "JOIN uses u ON u.manifest = m.number\n"
        "JOIN blocks b ON b.number = u.block\n"
        "JOIN manifests o ON o.number = (SELECT v.manifest FROM uses v\n"
        "  WHERE v.block = u.block AND v.manifest <> u.manifest\n"
        "  ORDER BY v.manifest LIMIT 1)\n"
        "WHERE m.tenant = $1 AND m.id = $2 ORDER BY b.id",
        args, 2, pass_kept, &job, err);
}

int bal_graph_commits_of(bal_graph *self, int64_t tenant,
                         const bal_id *manifest, bal_graph_id_fn *fn, void *ctx,
                         bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(manifest) };

    return bal_graph_each_id(self,
                             "SELECT c.id FROM manifests m "
                             "JOIN commits c ON c.manifest = m.number "
                             "WHERE m.tenant = $1 AND m.id = $2 "
                             "ORDER BY c.number",
                             args, 2, fn, ctx, err);
}

int bal_graph_refs_at(bal_graph *self, int64_t tenant, const bal_id *commit,
                      bal_graph_ref_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(commit) };

    return bal_graph_each_ref(self,
                              "SELECT r.name, c.id FROM commits c "
                              "JOIN refs r ON r.commit_number = c.number "
                              "WHERE c.tenant = $1 AND c.id = $2 "
                              "ORDER BY r.name",
                              args, 2, fn, ctx, err);
}

/* ---- one commit --------------------------------------------------------- */

typedef struct leaving {
    bal_graph *graph;
    int64_t tenant;
    const bal_id *id;
    int64_t number;
    int64_t manifest;
    bal_value parent; /* its number, or NULL */
    bool there;
} leaving;

static int take_leaving(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    leaving *self = ctx;

    (void)count;
    (void)err;
    self->number = columns[0].number;
    self->manifest = columns[1].number;
    self->parent = columns[2].type == BAL_VALUE_INT ? bal_int(columns[2].number)
                                                    : bal_null();
    self->there = true;
    return BAL_ROW_STOP;
}

static int find(leaving *self, bal_error *err)
{
    const bal_value args[] = { bal_int(self->tenant), bal_id_value(self->id) };

    int rc = bal_db_query(self->graph->db,
                          "SELECT number, manifest, parent FROM commits "
                          "WHERE tenant = $1 AND id = $2",
                          args, 2, take_leaving, self, err);
    if (rc || self->there)
        return rc;
    return bal_fail(err, BAL_ENOTFOUND, "no commit '%s'",
                    bal_id_short(self->id).text);
}

static int refuse_ref(void *ctx, const char *name, const bal_id *commit,
                      bal_error *err)
{
    (void)ctx;
    return bal_fail(err, BAL_ECONFLICT, "ref '%s' is at %s", name,
                    bal_id_short(commit).text);
}

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

static int adopt(const leaving *self, const bal_id *child, bal_error *err)
{
    const bal_value args[] = {
        bal_int(self->tenant),
        bal_id_value(child),
        self->parent,
    };
    const bal_query change = {
        .sql = "UPDATE commits SET parent = $3 WHERE tenant = $1 AND id = $2",
        .args = args,
        .count = 3,
    };

    return bal_sealed_change(self->graph->db, BAL_SEALED_COMMITS, args, &change,
                             err);
}

/* Collected first: changing `parent` would move the index that is read. */
static int adopt_children(const leaving *self, bal_error *err)
{
    const bal_value args[] = { bal_int(self->number) };
    BAL_LOCAL(bal_buf) ids = { 0 };

    int rc = bal_graph_each_id(self->graph,
                               "SELECT id FROM commits WHERE parent = $1", args,
                               1, add_id, &ids, err);
    for (size_t at = 0; at < ids.len && !rc; at += sizeof(bal_id)) {
        bal_id child;
        memcpy(&child, ids.data + at, sizeof(child));
        rc = adopt(self, &child, err);
    }
    return rc;
}

static int add_number(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    (void)count;
    return bal_buf_append(ctx, &columns[0].number, sizeof(int64_t), err);
}

static int silence(bal_graph *graph, int64_t move, bal_error *err)
{
    const bal_value args[] = { bal_int(move) };
    const bal_query change = {
        .sql = "UPDATE moves SET message = '' WHERE number = $1",
        .args = args,
        .count = 1,
    };

    return bal_sealed_change(graph->db, BAL_SEALED_MOVES, args, &change, err);
}

/* The moves that a query gives the numbers of lose their messages. */
static int silence_all(bal_graph *graph, const char *sql, const bal_value *args,
                       size_t count, bal_error *err)
{
    BAL_LOCAL(bal_buf) numbers = { 0 };

    int rc =
        bal_db_query(graph->db, sql, args, count, add_number, &numbers, err);
    for (size_t at = 0; at < numbers.len && !rc; at += sizeof(int64_t)) {
        int64_t number;
        memcpy(&number, numbers.data + at, sizeof(number));
        rc = silence(graph, number, err);
    }
    return rc;
}

static int silence_moves(const leaving *self, bal_error *err)
{
    const bal_value args[] = { bal_int(self->tenant), bal_id_value(self->id) };

    return silence_all(self->graph,
                       "SELECT number FROM moves WHERE tenant = $1 "
                       "AND new_id = $2 AND message <> ''",
                       args, 2, err);
}

/* What it uses and its inputs go by cascade. */
static int take_manifest(const leaving *self, bool *taken, bal_error *err)
{
    const bal_value args[] = { bal_int(self->manifest) };
    uint64_t changed = 0;

    int rc = bal_db_run(self->graph->db,
                        "DELETE FROM manifests WHERE number = $1 AND NOT "
                        "EXISTS (SELECT 1 FROM commits WHERE manifest = $1)",
                        args, 1, &changed, err);
    *taken = changed;
    return rc;
}

static int take_commit(leaving *self, bool *manifest_too, bal_error *err)
{
    int rc = find(self, err);
    if (rc)
        return rc;
    rc = bal_graph_refs_at(self->graph, self->tenant, self->id, refuse_ref,
                           NULL, err);
    if (rc)
        return rc;
    rc = adopt_children(self, err);
    if (!rc)
        rc = silence_moves(self, err);
    if (rc)
        return rc;

    const bal_value args[] = { bal_int(self->number) };
    rc = bal_db_run(self->graph->db, "DELETE FROM commits WHERE number = $1",
                    args, 1, NULL, err);
    return rc ? rc : take_manifest(self, manifest_too, err);
}

int bal_graph_commit_forget(bal_graph *self, int64_t tenant,
                            const bal_id *commit, bool *manifest_too,
                            bal_error *err)
{
    leaving one = { .graph = self, .tenant = tenant, .id = commit };
    BAL_LOCAL(bal_tx) tx = { 0 };
    bool taken = false;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = take_commit(&one, &taken, err);
    if (rc)
        return rc;
    rc = bal_tx_commit(&tx, err);
    if (rc)
        return rc;
    *manifest_too = taken;
    return 0;
}

int bal_graph_moves_forget(bal_graph *self, int64_t tenant, const char *ref,
                           bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_text(ref) };
    bal_id at;
    bool there = false;

    int rc = bal_graph_ref(self, tenant, ref, &at, &there, err);
    if (rc)
        return rc;
    if (there)
        return bal_fail(err, BAL_ECONFLICT, "ref '%s' is at %s", ref,
                        bal_id_short(&at).text);
    rc =
        bal_db_run(self->db, "DELETE FROM moves WHERE tenant = $1 AND ref = $2",
                   args, 2, NULL, err);
    if (rc)
        return rc;
    /* A reset notes the spec that it was given. */
    return silence_all(self,
                       "SELECT number FROM moves WHERE tenant = $1 "
                       "AND op = 'reset' AND (message = $2 "
                       "OR substr(message, 1, length($2) + 1) IN "
                       "($2 || '~', $2 || '^', $2 || '@'))",
                       args, 2, err);
}

/* ---- a tenant ----------------------------------------------------------- */

static const char take_received[] =
    "DELETE FROM grants WHERE grantee = "
    "(SELECT t.name FROM tenants t WHERE t.tenant = $1)";

int bal_graph_tenant_forget(bal_graph *self, int64_t tenant, bal_error *err)
{
    static const char *const takes[] = {
        "DELETE FROM refs WHERE tenant = $1",
        "DELETE FROM moves WHERE tenant = $1",
        "DELETE FROM exports WHERE tenant = $1",
        "DELETE FROM loads WHERE tenant = $1",
        "DELETE FROM fingerprints WHERE tenant = $1",
        "DELETE FROM probe_sets WHERE tenant = $1",
        "DELETE FROM intended WHERE tenant = $1",
        "DELETE FROM grants WHERE owner = $1",
        take_received,
        "DELETE FROM commits WHERE tenant = $1",
        "DELETE FROM manifests WHERE tenant = $1",
    };
    const bal_value args[] = { bal_int(tenant) };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]) && !rc; i++)
        rc = bal_db_run(self->db, takes[i], args, 1, NULL, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* Of all of them first: some are coded by others, in any order. */
int bal_graph_blocks_forget(bal_graph *self, int64_t tenant, const bal_id *ids,
                            size_t count, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = bal_bases_clear(self, tenant, &ids[i], err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = bal_graph_block_forget(self, tenant, &ids[i], err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

int bal_graph_scrub(bal_graph *self, unsigned flags, bal_error *err)
{
    return bal_db_scrub(self->db, flags, err);
}
