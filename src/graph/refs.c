/* Refs, and how they moved. A move is a compare and swap in one statement
 * with the reflog's row beside it in the same transaction: whoever was faster,
 * the loser hears of it and nothing is lost. */
#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

typedef struct found_ref {
    bal_id id;
    bool there;
} found_ref;

static int take_ref(void *ctx, const bal_id *id, bal_error *err)
{
    found_ref *found = ctx;

    (void)err;
    found->id = *id;
    found->there = true;
    return BAL_ROW_STOP;
}

int bal_graph_ref(bal_graph *self, int64_t tenant, const char *name,
                  bal_id *commit, bool *there, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_text(name) };
    found_ref found = { 0 };

    int rc = bal_graph_each_id(self,
                               "SELECT c.id FROM refs r "
                               "JOIN commits c ON c.number = r.commit_number "
                               "WHERE r.tenant = $1 AND r.name = $2",
                               args, 2, take_ref, &found, err);
    if (rc)
        return rc;
    *there = found.there;
    if (found.there)
        *commit = found.id;
    return 0;
}

typedef struct ref_job {
    bal_graph_ref_fn *fn;
    void *ctx;
} ref_job;

static int pass_ref(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    const ref_job *job = ctx;
    const char *name = NULL;
    bal_id id;

    (void)count;
    int rc = bal_column_text(&name, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_id(&id, &columns[1], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, name, &id, err);
}

int bal_graph_each_ref(bal_graph *self, const char *sql, const bal_value *args,
                       size_t count, bal_graph_ref_fn *fn, void *ctx,
                       bal_error *err)
{
    ref_job job = { fn, ctx };

    return bal_db_query(self->db, sql, args, count, pass_ref, &job, err);
}

int bal_graph_refs(bal_graph *self, int64_t tenant, bal_graph_ref_fn *fn,
                   void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant) };

    return bal_graph_each_ref(self,
                              "SELECT r.name, c.id FROM refs r "
                              "JOIN commits c ON c.number = r.commit_number "
                              "WHERE r.tenant = $1 ORDER BY r.name",
                              args, 1, fn, ctx, err);
}

/* ---- moving ------------------------------------------------------------ */

/* One way for a ref to move: with an old commit or not, with a new one or
 * not. */
typedef struct way {
    bool has_old, has_now;
    const char *sql; /* $1 tenant, $2 name, $3 new, $4 old: as many as given */
    size_t count;
} way;

static const way ways[] = {
    { false, true,
      "INSERT INTO refs (tenant, name, commit_number) VALUES ($1, $2, $3) "
      "ON CONFLICT DO NOTHING",
      3 },
    { true, true,
      "UPDATE refs SET commit_number = $3 "
      "WHERE tenant = $1 AND name = $2 AND commit_number = $4",
      4 },
    { true, false,
      "DELETE FROM refs "
      "WHERE tenant = $1 AND name = $2 AND commit_number = $3",
      3 },
};

static const way *way_of(const bal_move_row *row)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (ways[i].has_old == row->has_old && ways[i].has_now == row->has_now)
            return &ways[i];
    }
    return NULL;
}

static int moved(bal_graph *self, int64_t tenant, const char *name,
                 bal_error *err)
{
    bal_id at;
    bool there = false;

    int rc = bal_graph_ref(self, tenant, name, &at, &there, err);
    if (rc)
        return rc;
    if (!there)
        return bal_fail(err, BAL_ECONFLICT, "ref '%s' moved: it is gone", name);
    return bal_fail(err, BAL_ECONFLICT, "ref '%s' moved: it is at %s", name,
                    bal_id_short(&at).text);
}

static int swap(bal_graph *self, int64_t tenant, const bal_move_row *row,
                bal_error *err)
{
    const way *how = way_of(row);
    bal_value args[4] = { bal_int(tenant), bal_text(row->ref) };
    size_t count = 2;
    int64_t number = 0;
    bool there = false;
    uint64_t changed = 0;

    if (!how)
        return bal_fail(err, BAL_EINVAL,
                        "ref '%s' would move from nothing to "
                        "nothing",
                        row->ref);
    if (row->has_now) {
        int rc =
            bal_commit_number(self, tenant, &row->now, &number, &there, err);
        if (rc)
            return rc;
        if (!there)
            return bal_fail(err, BAL_ENOTFOUND, "no commit '%s'",
                            bal_id_short(&row->now).text);
        args[count++] = bal_int(number);
    }
    if (row->has_old) {
        int rc =
            bal_commit_number(self, tenant, &row->old, &number, &there, err);
        if (rc)
            return rc;
        /* What is not known any more is not where the ref is. */
        args[count++] = there ? bal_int(number) : bal_null();
    }
    int rc = bal_db_run(self->db, how->sql, args, how->count, &changed, err);
    if (rc)
        return rc;
    return changed ? 0 : moved(self, tenant, row->ref, err);
}

/* The next place in the order of all moves, and in that of the ref's. */
typedef struct place {
    int64_t number;
    int64_t position;
} place;

static int take_place(void *ctx, const bal_value *columns, size_t count,
                      bal_error *err)
{
    place *out = ctx;

    (void)count;
    (void)err;
    out->number = columns[0].number;
    out->position = columns[1].number;
    return BAL_ROW_STOP;
}

static int note(bal_graph *self, int64_t tenant, const bal_move_row *row,
                bal_error *err)
{
    const bal_value ref[] = { bal_int(tenant), bal_text(row->ref) };
    place next = { 1, 1 };

    int rc = bal_db_query(self->db,
                          "SELECT (SELECT COALESCE(MAX(number), 0) + 1 "
                          "FROM moves), COALESCE(MAX(position), 0) + 1 "
                          "FROM moves WHERE tenant = $1 AND ref = $2",
                          ref, 2, take_place, &next, err);
    if (rc)
        return rc;
    const bal_value columns[] = {
        bal_int(next.number),
        bal_int(tenant),
        bal_text(row->ref),
        bal_int(next.position),
        bal_text(row->op),
        bal_id_value(row->has_old ? &row->old : NULL),
        bal_id_value(row->has_now ? &row->now : NULL),
        bal_int(row->at),
        bal_text(row->message ? row->message : ""),
    };
    return bal_sealed_put(self->db, BAL_SEALED_MOVES, columns, NULL, err);
}

int bal_graph_move(bal_graph *self, int64_t tenant, const bal_move_row *row,
                   bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };

    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = swap(self, tenant, row, err);
    if (rc)
        return rc;
    rc = note(self, tenant, row, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* ---- the reflog -------------------------------------------------------- */

typedef struct move_job {
    bal_move_row_fn *fn;
    void *ctx;
} move_job;

static int pass_move(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    const move_job *job = ctx;
    bal_move_row row = { .at = columns[5].number };

    (void)count;
    int rc = bal_column_text(&row.ref, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_column_text(&row.op, &columns[2], err);
    if (rc)
        return rc;
    rc = bal_column_count(&row.n, &columns[1], err);
    if (rc)
        return rc;
    rc = bal_column_id_or_null(&row.old, &row.has_old, &columns[3], err);
    if (rc)
        return rc;
    rc = bal_column_id_or_null(&row.now, &row.has_now, &columns[4], err);
    if (rc)
        return rc;
    rc = bal_column_text(&row.message, &columns[6], err);
    if (rc)
        return rc;
    return job->fn(job->ctx, &row, err);
}

/* The newest position of the same ref is a look-up in an index. */
#define MOVES                                                                  \
    "SELECT m.ref, (SELECT MAX(position) FROM moves n "                        \
    "WHERE n.tenant = m.tenant AND n.ref = m.ref) - m.position, "              \
    "m.op, m.old_id, m.new_id, m.moved_at, m.message FROM moves m "

int bal_graph_reflog(bal_graph *self, int64_t tenant, const char *ref,
                     bal_move_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_value args[] = { bal_int(tenant), bal_text(ref) };
    move_job job = { fn, ctx };

    if (!ref)
        return bal_db_query(self->db,
                            MOVES "WHERE m.tenant = $1 "
                                  "ORDER BY m.number DESC",
                            args, 1, pass_move, &job, err);
    return bal_db_query(self->db,
                        MOVES "WHERE m.tenant = $1 AND m.ref = $2 "
                              "ORDER BY m.position DESC",
                        args, 2, pass_move, &job, err);
}
