/* Grants: who may build views over what; and the epoch, by which it is known
 * that nothing was taken back. */
#include "graph/grants.h"

#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "graph/forgets.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* ---- giving and taking back --------------------------------------------- */

static int renew(bal_graph *self, int64_t owner, const bal_grant_info *info,
                 bal_error *err)
{
    const bal_value args[] = {
        bal_int(owner),
        bal_id_value(&info->manifest),
        bal_text(info->grantee),
        bal_id_value(&info->commit),
        bal_int(info->created_at),
    };
    const bal_query change = {
        .sql = "UPDATE grants SET commit_id = $4, created_at = $5, "
               "revoked_at = NULL "
               "WHERE owner = $1 AND manifest = $2 AND grantee = $3",
        .args = args,
        .count = 5,
    };

    return bal_sealed_change(self->db, BAL_SEALED_GRANTS, args, &change, err);
}

int bal_graph_grant(bal_graph *self, int64_t owner, const bal_grant_info *info,
                    bal_error *err)
{
    const bal_value columns[] = {
        bal_int(owner),
        bal_id_value(&info->manifest),
        bal_text(info->grantee),
        bal_id_value(&info->commit),
        bal_int(info->created_at),
        bal_null(),
    };
    BAL_LOCAL(bal_tx) tx = { 0 };
    uint64_t made = 0;

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = bal_sealed_put(self->db, BAL_SEALED_GRANTS, columns, &made, err);
    if (!rc && !made)
        rc = renew(self, owner, info, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

typedef struct revocation {
    bal_graph *graph;
    int64_t owner;
    const char *grantee;
    int64_t at;
} revocation;

static int revoke_one(const revocation *self, const bal_id *manifest,
                      bal_error *err)
{
    const bal_value args[] = {
        bal_int(self->owner),
        bal_id_value(manifest),
        bal_text(self->grantee),
        bal_int(self->at),
    };
    const bal_query change = {
        .sql = "UPDATE grants SET revoked_at = $4 "
               "WHERE owner = $1 AND manifest = $2 AND grantee = $3",
        .args = args,
        .count = 4,
    };

    return bal_sealed_change(self->graph->db, BAL_SEALED_GRANTS, args, &change,
                             err);
}

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

static int live_ones(bal_graph *self, bal_buf *ids, int64_t owner,
                     const bal_id *manifest, const char *grantee,
                     bal_error *err)
{
    const bal_value args[] = {
        bal_int(owner),
        bal_text(grantee),
        bal_id_value(manifest),
    };

    return bal_graph_each_id(self,
                             "SELECT manifest FROM grants "
                             "WHERE owner = $1 AND grantee = $2 AND "
                             "revoked_at IS NULL AND "
                             "manifest = COALESCE($3, manifest)",
                             args, 3, add_id, ids, err);
}

int bal_graph_revoke(bal_graph *self, int64_t owner, const bal_id *manifest,
                     const char *grantee, int64_t at, uint64_t *revoked,
                     bal_error *err)
{
    const revocation all = { self, owner, grantee, at };
    BAL_LOCAL(bal_buf) ids = { 0 };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = live_ones(self, &ids, owner, manifest, grantee, err);
    for (size_t i = 0; i < bal_ids_count(&ids) && !rc; i++)
        rc = revoke_one(&all, bal_ids_at(&ids, i), err);
    if (rc)
        return rc;
    rc = bal_tx_commit(&tx, err);
    if (rc)
        return rc;
    *revoked = bal_ids_count(&ids);
    return 0;
}

/* ---- asking ------------------------------------------------------------- */

int bal_graph_granted(bal_graph *self, const char *owner,
                      const bal_id *manifest, const char *grantee, bool *live,
                      bal_error *err)
{
    const bal_value args[] = {
        bal_text(owner),
        bal_id_value(manifest),
        bal_text(grantee),
    };
    int64_t number = 0;

    return bal_graph_number(self,
                            "SELECT g.owner FROM tenants t "
                            "JOIN grants g ON g.owner = t.tenant "
                            "WHERE t.name = $1 AND g.manifest = $2 "
                            "AND g.grantee = $3 AND g.revoked_at IS NULL",
                            args, 3, &number, live, err);
}

static int read_grant(bal_grant_info *out, const bal_value *columns,
                      bal_error *err)
{
    int rc = bal_column_text(&out->owner, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_text(&out->grantee, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_column_id(&out->manifest, &columns[2], err);
    if (rc)
        return rc;
    rc = bal_column_id(&out->commit, &columns[3], err);
    if (rc)
        return rc;
    out->created_at = columns[4].number;
    out->revoked_at = columns[5].number; /* of NULL: 0 */
    return 0;
}

typedef struct grant_job {
    bal_graph_grant_fn *fn;
    void *ctx;
} grant_job;

static int pass_grant(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    const grant_job *job = ctx;
    bal_grant_info grant;

    (void)count;
    int rc = read_grant(&grant, columns, err);
    return rc ? rc : job->fn(job->ctx, &grant, err);
}

/* The columns of read_grant, of grants g and tenants t. */
#define GRANTS                                                                 \
    "SELECT t.name, g.grantee, g.manifest, g.commit_id, g.created_at, "        \
    "g.revoked_at FROM grants g JOIN tenants t ON t.tenant = g.owner "

int bal_graph_grants(bal_graph *self, const char *tenant,
                     bal_graph_grant_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_text(tenant) };
    grant_job job = { fn, ctx };

    return bal_db_query(self->db,
                        GRANTS "WHERE g.grantee = $1 OR g.owner = "
                               "(SELECT o.tenant FROM tenants o "
                               "WHERE o.name = $1) "
                               "ORDER BY g.revoked_at IS NOT NULL, "
                               "g.created_at, t.name, g.grantee, g.manifest",
                        args, 1, pass_grant, &job, err);
}

typedef struct found_id {
    bal_id id;
    bool there;
} found_id;

static int take_id(void *ctx, const bal_id *id, bal_error *err)
{
    found_id *found = ctx;

    (void)err;
    found->id = *id;
    found->there = true;
    return BAL_ROW_STOP;
}

/* The commits that owner $1 has granted to $2. It begins with what is granted
 * and goes no further than that, in this order: what is done does not depend on
 * whether there is such a tenant, ref or commit. */
#define SHARED                                                                 \
    "WITH shared AS MATERIALIZED (SELECT g.owner, g.manifest "                 \
    "FROM grants g CROSS JOIN tenants t WHERE g.grantee = $2 "                 \
    "AND g.revoked_at IS NULL AND t.tenant = g.owner AND t.name = $1) "        \
    "SELECT c.id FROM shared s CROSS JOIN manifests m CROSS JOIN commits c "
#define OF_SHARED                                                              \
    "m.tenant = s.owner AND m.id = s.manifest AND c.manifest = m.number "

int bal_graph_granted_ref(bal_graph *self, const char *owner,
                          const char *grantee, const char *ref, bal_id *commit,
                          bool *there, bal_error *err)
{
    const bal_value args[] = {
        bal_text(owner),
        bal_text(grantee),
        bal_text(ref),
    };
    found_id found = { 0 };

    int rc = bal_graph_each_id(self,
                               SHARED "CROSS JOIN refs r WHERE " OF_SHARED
                                      "AND r.tenant = s.owner AND r.name = $3 "
                                      "AND r.commit_number = c.number",
                               args, 3, take_id, &found, err);
    if (rc)
        return rc;
    *there = found.there;
    if (found.there)
        *commit = found.id;
    return 0;
}

int bal_graph_granted_prefix(bal_graph *self, const char *owner,
                             const char *grantee, const char *prefix,
                             bal_graph_id_fn *fn, void *ctx, bal_error *err)
{
    bal_id low;
    bal_id high;

    int rc = bal_id_range(&low, &high, prefix, 4, err);
    if (rc)
        return rc;
    const bal_value args[] = {
        bal_text(owner),
        bal_text(grantee),
        bal_id_value(&low),
        bal_id_value(&high),
    };
    return bal_graph_each_id(
        self,
        SHARED "WHERE " OF_SHARED "AND c.id >= $3 AND c.id <= $4 ORDER BY c.id",
        args, 4, fn, ctx, err);
}

/* ---- taking rows -------------------------------------------------------- */

#define OF_MANIFEST                                                            \
    "owner = (SELECT o.tenant FROM tenants o WHERE o.name = $1) "              \
    "AND manifest = $2"
#define OF_OR_TO                                                               \
    "(owner = (SELECT o.tenant FROM tenants o WHERE o.name = $1) "             \
    "OR grantee = $1)"

int bal_graph_grants_forget(bal_graph *self, const char *tenant,
                            const bal_id *manifest, bal_graph_grant_fn *fn,
                            void *ctx, bal_error *err)
{
    static const char *const tell[] = {
        GRANTS "WHERE " OF_OR_TO " AND revoked_at IS NULL "
               "ORDER BY t.name, grantee, manifest",
        GRANTS "WHERE " OF_MANIFEST " AND revoked_at IS NULL "
               "ORDER BY t.name, grantee, manifest",
    };
    static const char *const take[] = {
        "DELETE FROM grants WHERE " OF_OR_TO,
        "DELETE FROM grants WHERE " OF_MANIFEST,
    };
    const bal_value args[] = { bal_text(tenant), bal_id_value(manifest) };
    size_t which = manifest != NULL;
    grant_job job = { fn, ctx };
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    if (fn)
        rc = bal_db_query(self->db, tell[which], args, 1 + which, pass_grant,
                          &job, err);
    if (!rc)
        rc = bal_db_run(self->db, take[which], args, 1 + which, NULL, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* ---- the epoch ---------------------------------------------------------- */

int bal_graph_epoch(bal_graph *self, uint64_t *epoch, bal_error *err)
{
    int64_t number = 0;
    bool there = false;

    int rc = bal_graph_number(self, "SELECT number FROM epoch", NULL, 0,
                              &number, &there, err);
    if (rc)
        return rc;
    if (!there || number < 0)
        return bal_fail(err, BAL_ECORRUPT, "the database has no epoch");
    *epoch = (uint64_t)number;
    return 0;
}

int bal_graph_epoch_next(bal_graph *self, uint64_t *epoch, bal_error *err)
{
    const bal_value keys[] = { bal_int(1) };
    const bal_query change = {
        .sql = "UPDATE epoch SET number = number + 1",
    };

    int rc = bal_sealed_change(self->db, BAL_SEALED_EPOCH, keys, &change, err);
    if (rc)
        return rc;
    return bal_graph_epoch(self, epoch, err);
}
