/* Commits: what was made when, on top of what. Their numbers rise, so that
 * "oldest first" is an index, and parents are numbers, so that a step back is
 * one look-up. */
#include <string.h>

#include "core/error.h"
#include "graph/grants.h"
#include "graph/inside.h"
#include "graph/seal.h"

/* Rows that one query of a history takes: enough that the query itself is
 * nothing, few enough that who stops early has not paid for the rest. */
#define STEPS 256

/* The columns of read_commit, of commits c, manifests m and parents p. */
#define COLUMNS                                                                \
    "c.number, c.id, m.id, p.id, c.made_on, m.kind, c.message, c.author, "     \
    "c.base_model, c.metadata, c.created_at, c.epoch "
#define JOINED                                                                 \
    "LEFT JOIN manifests m ON m.number = c.manifest "                          \
    "LEFT JOIN commits p ON p.number = c.parent "

static int read_ids(bal_commit_row *row, const bal_value *columns,
                    bal_error *err)
{
    int rc = bal_column_id(&row->id, &columns[1], err);
    if (rc)
        return rc;
    if (columns[2].type == BAL_VALUE_NULL)
        return bal_fail(err, BAL_ECORRUPT,
                        "the manifest of commit '%s' is not there",
                        bal_id_short(&row->id).text);
    rc = bal_column_id(&row->manifest, &columns[2], err);
    if (rc)
        return rc;
    rc =
        bal_column_id_or_null(&row->parent, &row->has_parent, &columns[3], err);
    if (rc)
        return rc;
    return bal_column_id_or_null(&row->made_on, &row->has_made_on, &columns[4],
                                 err);
}

static int read_commit(bal_commit_row *row, const bal_value *columns,
                       bal_error *err)
{
    const char **const texts[] = {
        &row->kind,       &row->message,  &row->author,
        &row->base_model, &row->metadata,
    };

    int rc = read_ids(row, columns, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const bal_value *column = &columns[5 + i];
        if (column->type == BAL_VALUE_NULL && texts[i] == &row->base_model)
            continue;
        rc = bal_column_text(texts[i], column, err);
        if (rc)
            return rc;
    }
    row->created_at = columns[10].number;
    return bal_column_count(&row->epoch, &columns[11], err);
}

typedef struct commit_job {
    bal_commit_row_fn *fn;
    void *ctx;
    uint64_t rows;
    bal_id last;
    bool more; /* last has a parent */
    bool stopped;
    int64_t number; /* of last, in a history */
} commit_job;

static int pass_commit(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    commit_job *job = ctx;
    bal_commit_row row = { 0 };

    (void)count;
    int rc = read_commit(&row, columns, err);
    if (rc)
        return rc;
    job->rows++;
    job->more = row.has_parent;
    job->last = row.parent;
    rc = job->fn(job->ctx, &row, err);
    job->stopped = rc == BAL_ROW_STOP;
    return rc;
}

/* A parent was there before its child: numbers that do not fall are a database
 * that was written to, and could go round for ever. */
static int pass_ancestor(void *ctx, const bal_value *columns, size_t count,
                         bal_error *err)
{
    commit_job *job = ctx;
    int64_t number = columns[0].number;

    if (job->rows && number >= job->number)
        return bal_fail(err, BAL_ECORRUPT,
                        "commit '%s' is not older than its child",
                        bal_id_short(&job->last).text);
    job->number = number;
    return pass_commit(ctx, columns, count, err);
}

/* ---- putting ----------------------------------------------------------- */

int bal_commit_number(bal_graph *self, int64_t tenant, const bal_id *id,
                      int64_t *number, bool *there, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };

    return bal_graph_number(self,
                            "SELECT number FROM commits "
                            "WHERE tenant = $1 AND id = $2",
                            args, 2, number, there, err);
}

static int find_parent(bal_graph *self, int64_t tenant,
                       const bal_commit_row *row, bal_value *out,
                       bal_error *err)
{
    int64_t number = 0;
    bool there = false;

    *out = bal_null();
    if (!row->has_parent)
        return 0;
    int rc =
        bal_commit_number(self, tenant, &row->parent, &number, &there, err);
    if (rc)
        return rc;
    if (!there)
        return bal_fail(err, BAL_ENOTFOUND, "no commit '%s'",
                        bal_id_short(&row->parent).text);
    *out = bal_int(number);
    return 0;
}

static int find_manifest(bal_graph *self, int64_t tenant,
                         const bal_commit_row *row, bal_value *out,
                         bal_error *err)
{
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(&row->manifest),
    };
    int64_t number = 0;
    bool there = false;

    int rc = bal_graph_number(self,
                              "SELECT number FROM manifests "
                              "WHERE tenant = $1 AND id = $2",
                              args, 2, &number, &there, err);
    if (rc)
        return rc;
    if (!there)
        return bal_fail(err, BAL_ENOTFOUND, "no manifest '%s'",
                        bal_id_short(&row->manifest).text);
    *out = bal_int(number);
    return 0;
}

static int put(bal_graph *self, int64_t tenant, const bal_commit_row *row,
               bal_error *err)
{
    bal_value manifest = bal_null();
    bal_value parent = bal_null();
    uint64_t changed = 0;
    uint64_t epoch = 0;
    bal_id seal;

    int rc = find_manifest(self, tenant, row, &manifest, err);
    if (rc)
        return rc;
    rc = find_parent(self, tenant, row, &parent, err);
    if (rc)
        return rc;

    rc = bal_graph_epoch(self, &epoch, err);
    if (rc)
        return rc;

    const bal_value sealed[] = {
        bal_int(tenant),
        bal_id_value(&row->id),
        bal_int((int64_t)epoch),
        bal_id_value(row->has_parent ? &row->parent : NULL),
    };
    bal_seal_of(&seal, BAL_SEALED_COMMITS, sealed, 4);
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(&row->id),
        manifest,
        parent,
        bal_id_value(row->has_made_on ? &row->made_on : NULL),
        bal_int(row->created_at),
        bal_text(row->author),
        bal_text(row->base_model),
        bal_text(row->message),
        bal_text(row->metadata),
        bal_int((int64_t)epoch),
        bal_id_value(&seal),
    };
    rc = bal_db_run(self->db,
                    "INSERT INTO commits (tenant, id, manifest, parent, "
                    "made_on, created_at, author, base_model, message, "
                    "metadata, epoch, seal) VALUES ($1, $2, $3, $4, $5, $6, "
                    "$7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING",
                    args, 12, &changed, err);
    if (rc)
        return rc;
    if (!changed)
        return bal_fail(err, BAL_EEXISTS, "commit '%s' is there already",
                        bal_id_short(&row->id).text);
    return 0;
}

int bal_graph_commit_put(bal_graph *self, int64_t tenant,
                         const bal_commit_row *row, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = put(self, tenant, row, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* ---- getting ----------------------------------------------------------- */

int bal_graph_commit(bal_graph *self, int64_t tenant, const bal_id *id,
                     bal_commit_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(id) };
    commit_job job = { .fn = fn, .ctx = ctx };

    int rc = bal_db_query(self->db,
                          "SELECT " COLUMNS "FROM commits c " JOINED
                          "WHERE c.tenant = $1 AND c.id = $2",
                          args, 2, pass_commit, &job, err);
    if (rc)
        return rc;
    if (!job.rows)
        return bal_fail(err, BAL_ENOTFOUND, "no commit '%s'",
                        bal_id_short(id).text);
    return 0;
}

/* `p.number < c.number` ends the walk in a damaged database too. */
static int walk(bal_graph *self, int64_t tenant, const bal_id *from,
                uint64_t steps, commit_job *job, bal_error *err)
{
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(from),
        bal_int((int64_t)steps),
    };

    return bal_db_query(self->db,
                        "WITH RECURSIVE walk (number, parent, depth) AS (\n"
                        "  SELECT number, parent, 1 FROM commits\n"
                        "  WHERE tenant = $1 AND id = $2\n"
                        "  UNION ALL\n"
                        "  SELECT p.number, p.parent, w.depth + 1\n"
                        "  FROM walk w JOIN commits p ON p.number = w.parent\n"
                        "  WHERE w.depth < $3 AND p.number < w.number)\n"
                        "SELECT " COLUMNS "FROM walk w "
                        "JOIN commits c ON c.number = w.number " JOINED
                        "ORDER BY w.depth",
                        args, 3, pass_ancestor, job, err);
}

int bal_graph_history(bal_graph *self, int64_t tenant, const bal_id *from,
                      uint64_t limit, bal_commit_row_fn *fn, void *ctx,
                      bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    commit_job job = { .fn = fn, .ctx = ctx, .last = *from, .more = true };

    int rc = bal_tx_begin(&tx, self->db, 0, err);
    if (rc)
        return rc;
    while (job.more && !job.stopped && (!limit || job.rows < limit)) {
        uint64_t before = job.rows;
        uint64_t left = limit ? limit - job.rows : STEPS;
        bal_id at = job.last;
        rc = walk(self, tenant, &at, left < STEPS ? left : STEPS, &job, err);
        if (rc)
            return rc;
        if (job.rows == before)
            return bal_fail(err, before ? BAL_ECORRUPT : BAL_ENOTFOUND,
                            "no commit '%s'", bal_id_short(&at).text);
    }
    return bal_tx_commit(&tx, err);
}

int bal_graph_commits(bal_graph *self, int64_t tenant, bal_commit_row_fn *fn,
                      void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };
    commit_job job = { .fn = fn, .ctx = ctx };

    return bal_db_query(self->db,
                        "SELECT " COLUMNS "FROM commits c " JOINED
                        "WHERE c.tenant = $1 ORDER BY c.number",
                        args, 1, pass_commit, &job, err);
}

/* ---- prefixes ---------------------------------------------------------- */

/* The id that begins with prefix and goes on with `digit`. */
static int filled(bal_id *out, const char *prefix, size_t len, char digit,
                  bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    memset(hex, digit, BAL_ID_HEX);
    memcpy(hex, prefix, len);
    hex[BAL_ID_HEX] = 0;
    return bal_id_parse(out, hex, err);
}

int bal_id_range(bal_id *low, bal_id *high, const char *prefix, size_t least,
                 bal_error *err)
{
    size_t len = strlen(prefix);

    if (len < least || len > BAL_ID_HEX)
        return bal_fail(err, BAL_EINVAL,
                        "a prefix has %zu to 64 hex digits, '%.80s' has %zu",
                        least, prefix, len);
    int rc = filled(low, prefix, len, '0', err);
    return rc ? rc : filled(high, prefix, len, 'f', err);
}

int bal_graph_prefix(bal_graph *self, int64_t tenant, const char *prefix,
                     uint64_t limit, bal_graph_id_fn *fn, void *ctx,
                     bal_error *err)
{
    bal_id low;
    bal_id high;

    int rc = bal_id_range(&low, &high, prefix, 1, err);
    if (rc)
        return rc;

    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(&low),
        bal_id_value(&high),
        bal_int(limit > INT64_MAX ? INT64_MAX : (int64_t)limit),
    };
    return bal_graph_each_id(self,
                             "SELECT id FROM commits "
                             "WHERE tenant = $1 AND id >= $2 AND id <= $3 "
                             "ORDER BY id LIMIT $4",
                             args, 4, fn, ctx, err);
}
