/* Inputs of views: read from bodies, put, compared; and what stands on what.
 *
 * A view names a tenant, a commit and a manifest. It is lost when the commit
 * is, and with it every commit of its own manifest, and what names those: so
 * the walk goes from commits to manifests to their commits. `UNION` takes each
 * manifest once, which ends it in a database where a view names itself. */
#include "graph/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "graph/grants.h"
#include "graph/inside.h"

/* ---- bodies ------------------------------------------------------------- */

void bal_inputs_done(bal_inputs *self)
{
    free(self->rows);
    json_decref(self->json);
    memset(self, 0, sizeof(*self));
}

static int id_member(bal_id *out, const json_t *input, const char *name)
{
    const char *text = json_string_value(json_object_get(input, name));

    return text ? bal_id_parse(out, text, NULL) : BAL_ECORRUPT;
}

static int read_input(bal_input_row *out, const json_t *input)
{
    out->tenant = json_string_value(json_object_get(input, "tenant"));
    if (!out->tenant || id_member(&out->commit, input, "commit"))
        return BAL_ECORRUPT;
    return id_member(&out->manifest, input, "manifest");
}

int bal_inputs_read(bal_inputs *out, bal_bytes body, bal_error *err)
{
    BAL_LOCAL(bal_inputs) self = { 0 };

    int rc = bal_json_parse(&self.json, body.data, body.len, "view", err);
    if (rc)
        return rc;
    const json_t *inputs =
        json_object_get(json_object_get(self.json, "recipe"), "inputs");
    if (!json_is_array(inputs))
        return bal_fail(err, BAL_ECORRUPT, "view: it has no inputs");

    self.rows = calloc(json_array_size(inputs) + 1, sizeof(*self.rows));
    if (!self.rows)
        return bal_fail_memory(err, "view");
    for (; self.count < json_array_size(inputs); self.count++) {
        const json_t *input = json_array_get(inputs, self.count);
        if (read_input(&self.rows[self.count], input))
            return bal_fail(err, BAL_ECORRUPT,
                            "view: input %zu is not an input", self.count);
    }
    *out = self;
    memset(&self, 0, sizeof(self));
    return 0;
}

/* ---- rows --------------------------------------------------------------- */

int bal_inputs_put(bal_db *db, int64_t manifest, const bal_input_row *rows,
                   size_t count, bal_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const bal_value args[] = {
            bal_int(manifest),
            bal_int((int64_t)i),
            bal_text(rows[i].tenant),
            bal_id_value(&rows[i].commit),
            bal_id_value(&rows[i].manifest),
        };
        int rc = bal_db_run(db,
                            "INSERT INTO inputs (manifest, position, tenant, "
                            "input_commit, input_manifest) "
                            "VALUES ($1, $2, $3, $4, $5)",
                            args, 5, NULL, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int backfill_one(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    BAL_LOCAL(bal_inputs) inputs = { 0 };
    bal_error why;

    (void)count;
    int rc = bal_inputs_read(&inputs, columns[1].bytes, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "view");
    if (rc)
        return 0;
    return bal_inputs_put(ctx, columns[0].number, inputs.rows, inputs.count,
                          err);
}

int bal_inputs_backfill(bal_db *db, bal_error *err)
{
    return bal_db_query(db,
                        "SELECT number, body FROM manifests "
                        "WHERE kind = 'view'",
                        NULL, 0, backfill_one, db, err);
}

static int read_row(bal_input_row *out, const bal_value *columns,
                    bal_error *err)
{
    int rc = bal_column_text(&out->tenant, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_id(&out->commit, &columns[1], err);
    if (rc)
        return rc;
    return bal_column_id(&out->manifest, &columns[2], err);
}

/* ---- comparing ---------------------------------------------------------- */

typedef struct comparison {
    bal_db *db;
    bal_inputs_fn *fn;
    void *ctx;
    bal_inputs inputs;
    size_t at;
    bool differs;
} comparison;

static int compare_row(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    comparison *self = ctx;
    size_t at = self->at++;
    bal_input_row row;

    (void)count;
    int rc = read_row(&row, columns, err);
    if (rc)
        return rc;
    const bal_input_row *want = &self->inputs.rows[at];
    if (at < self->inputs.count && columns[3].number == (int64_t)at &&
        !strcmp(row.tenant, want->tenant) &&
        bal_id_equal(&row.commit, &want->commit) &&
        bal_id_equal(&row.manifest, &want->manifest))
        return 0;
    self->differs = true;
    return BAL_ROW_STOP;
}

static int compare_rows(comparison *self, const bal_value *number,
                        bal_error *err)
{
    int rc = bal_db_query(self->db,
                          "SELECT tenant, input_commit, input_manifest, "
                          "position FROM inputs WHERE manifest = $1 "
                          "ORDER BY position",
                          number, 1, compare_row, self, err);

    if (!rc && self->at < self->inputs.count)
        self->differs = true;
    return rc;
}

/* A body that is not a view's is told by whoever computes its id again. */
static int compare_view(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    comparison *self = ctx;
    bal_error why;

    (void)count;
    int rc = bal_inputs_read(&self->inputs, columns[3].bytes, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "view");
    if (rc)
        return 0;
    self->at = 0;
    self->differs = false;
    rc = compare_rows(self, &columns[0], err);
    bal_inputs_done(&self->inputs);
    if (rc || !self->differs)
        return rc;
    return self->fn(self->ctx, &columns[1], &columns[2], err);
}

int bal_inputs_check(bal_db *db, bal_inputs_fn *fn, void *ctx, bal_error *err)
{
    comparison self = { .db = db, .fn = fn, .ctx = ctx };

    return bal_db_query(db,
                        "SELECT m.number, t.name, m.id, m.body "
                        "FROM manifests m "
                        "LEFT JOIN tenants t ON t.tenant = m.tenant "
                        "WHERE m.kind = 'view'",
                        NULL, 0, compare_view, &self, err);
}

/* ---- telling ------------------------------------------------------------ */

typedef struct input_job {
    bal_graph_input_fn *fn;
    void *ctx;
} input_job;

static int pass_input(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    const input_job *job = ctx;
    bal_input_row row;

    (void)count;
    int rc = read_row(&row, columns, err);
    return rc ? rc : job->fn(job->ctx, &row, err);
}

int bal_graph_inputs(bal_graph *self, int64_t tenant, const bal_id *manifest,
                     bal_graph_input_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_id_value(manifest) };
    input_job job = { fn, ctx };

    return bal_db_query(self->db,
                        "SELECT i.tenant, i.input_commit, i.input_manifest "
                        "FROM manifests m "
                        "JOIN inputs i ON i.manifest = m.number "
                        "WHERE m.tenant = $1 AND m.id = $2 "
                        "ORDER BY i.position",
                        args, 2, pass_input, &job, err);
}

/* ---- dependents --------------------------------------------------------- */

typedef struct dependent_job {
    bal_dependent_fn *fn;
    void *ctx;
} dependent_job;

static int pass_dependent(void *ctx, const bal_value *columns, size_t count,
                          bal_error *err)
{
    const dependent_job *job = ctx;
    bal_dependent view;

    (void)count;
    int rc = bal_column_text(&view.tenant, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_id(&view.manifest, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_column_id(&view.commit, &columns[2], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, &view, err);
}

/* What a walk starts from goes in between: manifests, by their numbers. */
#define WALK "WITH RECURSIVE lost (manifest) AS (\n"
#define GOES_ON                                                                \
    "  UNION\n"                                                                \
    "  SELECT i.manifest FROM lost l\n"                                        \
    "  JOIN manifests m ON m.number = l.manifest\n"                            \
    "  JOIN tenants t ON t.tenant = m.tenant\n"                                \
    "  JOIN commits c ON c.manifest = m.number\n"                              \
    "  JOIN inputs i ON i.tenant = t.name AND i.input_commit = c.id)\n"        \
    "SELECT t.name, m.id, c.id FROM lost l\n"                                  \
    "JOIN manifests m ON m.number = l.manifest\n"                              \
    "JOIN tenants t ON t.tenant = m.tenant\n"                                  \
    "JOIN commits c ON c.manifest = m.number\n"
#define IN_ORDER "ORDER BY t.name, c.number"

int bal_graph_dependents(bal_graph *self, const char *tenant,
                         const bal_id *commit, bal_dependent_fn *fn, void *ctx,
                         bal_error *err)
{
    const bal_value args[] = { bal_text(tenant), bal_id_value(commit) };
    dependent_job job = { fn, ctx };

    if (!commit)
        return bal_db_query(self->db,
                            WALK "  SELECT i.manifest FROM inputs i\n"
                                 "  WHERE i.tenant = $1\n" GOES_ON
                                 "WHERE t.name <> $1 " IN_ORDER,
                            args, 1, pass_dependent, &job, err);
    return bal_db_query(
        self->db,
        WALK "  SELECT i.manifest FROM inputs i\n"
             "  WHERE i.tenant = $1 AND i.input_commit = $2\n" GOES_ON IN_ORDER,
        args, 2, pass_dependent, &job, err);
}

#define OF_GRANTEE                                                             \
    "  SELECT i.manifest FROM inputs i\n"                                      \
    "  JOIN manifests m ON m.number = i.manifest\n"                            \
    "  JOIN tenants t ON t.tenant = m.tenant\n"                                \
    "  WHERE i.tenant = $1 AND t.name = $2"

int bal_graph_dependents_granted(bal_graph *self, const char *owner,
                                 const bal_id *manifest, const char *grantee,
                                 bal_dependent_fn *fn, void *ctx,
                                 bal_error *err)
{
    const bal_value args[] = {
        bal_text(owner),
        bal_text(grantee),
        bal_id_value(manifest),
    };
    dependent_job job = { fn, ctx };

    if (!manifest)
        return bal_db_query(self->db, WALK OF_GRANTEE "\n" GOES_ON IN_ORDER,
                            args, 2, pass_dependent, &job, err);
    return bal_db_query(self->db,
                        WALK OF_GRANTEE
                        " AND i.input_manifest = $3\n" GOES_ON IN_ORDER,
                        args, 3, pass_dependent, &job, err);
}
