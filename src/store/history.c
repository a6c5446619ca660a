/* Refs and history: what the graph knows, as the public header tells it. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "store/commit_object.h"
#include "store/publish.h"

/* Rows of one query, kept until it is over, and their texts: what a caller does
 * with a row may take as long as somebody reads in a pager, and whoever holds
 * the connection or a snapshot holds up others. */
typedef struct kept_rows {
    bal_buf rows; /* of one type, one behind the other */
    bal_arena texts;
} kept_rows;

static void kept_rows_done(kept_rows *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->texts);
}

/* Puts a copy in the place of a text. */
static int keep_text(kept_rows *self, const char **text, bal_error *err)
{
    if (!*text)
        return 0;
    *text = bal_arena_copy(&self->texts, *text, strlen(*text));
    return *text ? 0 : bal_fail_memory(err, "history");
}

/* ---- refs --------------------------------------------------------------- */

typedef struct kept_ref {
    const char *name;
    bal_id commit;
} kept_ref;

static int keep_ref(void *ctx, const char *name, const bal_id *commit,
                    bal_error *err)
{
    kept_rows *all = ctx;
    kept_ref row = { name, *commit };
    int rc = keep_text(all, &row.name, err);

    return rc ? rc : bal_buf_append(&all->rows, &row, sizeof(row), err);
}

int bal_ref_each(bal_tenant *tenant, bal_ref_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(kept_rows) all = { { 0 } };
    kept_ref row;
    int rc = bal_graph_refs(tenant->store->graph, tenant->number, keep_ref,
                            &all, err);

    for (size_t at = 0; at < all.rows.len && !rc; at += sizeof(row)) {
        memcpy(&row, all.rows.data + at, sizeof(row));
        if (fn(ctx, row.name, &row.commit))
            break;
    }
    return rc;
}

int bal_ref_reset(bal_tenant *tenant, const char *ref, const bal_id *to,
                  const bal_id *expect, const char *message, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    int rc = bal_ref_check(ref, err);
    if (rc)
        return rc;

    BAL_LOCAL(bal_tx) tx = { 0 };
    rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    bal_move_row move = {
        .ref = ref,
        .op = "reset",
        .now = *to,
        .has_now = true,
        .at = bal_clock_now(),
        .message = message,
    };
    rc = bal_graph_ref(graph, tenant->number, ref, &move.old, &move.has_old,
                       err);
    if (rc)
        return rc;
    if (expect && (!move.has_old || !bal_id_equal(expect, &move.old)))
        return bal_fail(err, BAL_ECONFLICT, "ref '%s' is not where it was",
                        ref);
    rc = bal_graph_move(graph, tenant->number, &move, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* ---- history ------------------------------------------------------------ */

enum { PAGE = 256 };

/* Commits of one query. */
typedef struct page {
    bal_tenant *tenant;
    bal_commit *commits[PAGE];
    size_t count;
    bool again; /* the first is one that was told */
} page;

static void page_done(page *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_commit_free(self->commits[i]);
    self->count = 0;
}

static int keep_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    page *self = ctx;

    if (self->again) {
        self->again = false;
        return 0;
    }
    int rc =
        bal_commit_of_row(&self->commits[self->count], self->tenant, row, err);
    if (!rc)
        self->count++;
    return rc;
}

static int turn(page *self, const bal_id *from, bool again, size_t most,
                bal_error *err)
{
    size_t count = most < PAGE ? most : PAGE;

    page_done(self);
    self->again = again;
    return bal_graph_history(self->tenant->store->graph, self->tenant->number,
                             from, count + again, keep_commit, self, err);
}

/* Behind the last that was told: it may have another parent by now, or be
 * forgotten itself. */
static int turn_on(page *self, size_t most, bal_error *err)
{
    const bal_commit_info *info =
        bal_commit_info_of(self->commits[self->count - 1]);
    const bal_id last = info->id;
    const bal_id parent = info->parent;
    bool goes_on = info->has_parent;

    if (!goes_on) {
        page_done(self);
        return 0;
    }
    int rc = turn(self, &last, true, most, err);
    return rc == BAL_ENOTFOUND ? turn(self, &parent, false, most, err) : rc;
}

int bal_log(bal_tenant *tenant, const bal_id *from, size_t limit,
            bal_commit_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(page) now = { .tenant = tenant };
    size_t left = limit ? limit : SIZE_MAX;
    int rc = turn(&now, from, false, left, err);

    while (!rc && now.count) {
        for (size_t i = 0; i < now.count; i++) {
            if (fn(ctx, now.commits[i]))
                return 0;
        }
        left -= now.count;
        if (!left)
            return 0;
        rc = turn_on(&now, left, err);
    }
    return rc;
}

/* ---- how refs moved ----------------------------------------------------- */

static int keep_move(void *ctx, const bal_move_row *row, bal_error *err)
{
    kept_rows *all = ctx;
    bal_move_row copy = *row;
    int rc = keep_text(all, &copy.ref, err);
    if (!rc)
        rc = keep_text(all, &copy.op, err);
    if (!rc)
        rc = keep_text(all, &copy.message, err);
    return rc ? rc : bal_buf_append(&all->rows, &copy, sizeof(copy), err);
}

static int tell_move(const bal_move_row *row, bal_move_fn *fn, void *ctx)
{
    const bal_move move = {
        .ref = row->ref,
        .n = row->n,
        .op = row->op,
        .old = row->has_old ? &row->old : NULL,
        .now = row->has_now ? &row->now : NULL,
        .at = row->at,
        .message = row->message,
    };

    return fn(ctx, &move);
}

int bal_reflog(bal_tenant *tenant, const char *ref, bal_move_fn *fn, void *ctx,
               bal_error *err)
{
    BAL_LOCAL(kept_rows) all = { { 0 } };
    bal_move_row row;
    int rc = bal_graph_reflog(tenant->store->graph, tenant->number, ref,
                              keep_move, &all, err);

    for (size_t at = 0; at < all.rows.len && !rc; at += sizeof(row)) {
        memcpy(&row, all.rows.data + at, sizeof(row));
        if (tell_move(&row, fn, ctx))
            break;
    }
    return rc;
}

int bal_stats_get(bal_stats *out, bal_store *store, bal_tenant *tenant,
                  bal_error *err)
{
    memset(out, 0, sizeof(*out));
    if (tenant && !tenant->number)
        return 0;
    return bal_graph_stats(store->graph, tenant ? tenant->number : 0, out, err);
}

typedef struct codec_job {
    bal_codec_stats_fn *fn;
    void *ctx;
} codec_job;

static int pass_codec(void *ctx, unsigned codec, uint64_t blocks,
                      uint64_t bytes, uint64_t stored, bal_error *err)
{
    const codec_job *job = ctx;
    const bal_codec *known = bal_codec_find(codec);
    const bal_codec_stats row = { known ? known->name : "unknown", blocks,
                                  bytes, stored };

    (void)err;
    return job->fn(job->ctx, &row) ? BAL_ROW_STOP : 0;
}

int bal_stats_codecs(bal_store *store, bal_tenant *tenant,
                     bal_codec_stats_fn *fn, void *ctx, bal_error *err)
{
    codec_job job = { fn, ctx };

    if (tenant && !tenant->number)
        return 0;
    return bal_graph_codecs(store->graph, tenant ? tenant->number : 0,
                            pass_codec, &job, err);
}
