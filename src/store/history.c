/* Refs and history: what the graph knows, as the public header tells it. */
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "store/commit_object.h"
#include "store/publish.h"

typedef struct ref_ctx {
    bal_ref_fn *fn;
    void *ctx;
} ref_ctx;

static int ref_one(void *ctx, const char *name, const bal_id *commit,
                   bal_error *err)
{
    ref_ctx *each = ctx;

    (void)err;
    return each->fn(each->ctx, name, commit) ? BAL_ROW_STOP : 0;
}

int bal_ref_each(bal_tenant *tenant, bal_ref_fn *fn, void *ctx, bal_error *err)
{
    ref_ctx each = { fn, ctx };

    return bal_graph_refs(tenant->store->graph, tenant->number, ref_one, &each,
                          err);
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

typedef struct log_ctx {
    bal_tenant *tenant;
    bal_commit_fn *fn;
    void *ctx;
} log_ctx;

static int log_one(void *ctx, const bal_commit_row *row, bal_error *err)
{
    log_ctx *log = ctx;
    BAL_OWN(bal_commit) commit = NULL;
    int rc = bal_commit_of_row(&commit, log->tenant, row, err);
    if (rc)
        return rc;
    return log->fn(log->ctx, commit) ? BAL_ROW_STOP : 0;
}

int bal_log(bal_tenant *tenant, const bal_id *from, size_t limit,
            bal_commit_fn *fn, void *ctx, bal_error *err)
{
    log_ctx log = { tenant, fn, ctx };

    return bal_graph_history(tenant->store->graph, tenant->number, from, limit,
                             log_one, &log, err);
}

typedef struct reflog_ctx {
    bal_move_fn *fn;
    void *ctx;
} reflog_ctx;

static int reflog_one(void *ctx, const bal_move_row *row, bal_error *err)
{
    reflog_ctx *each = ctx;
    bal_move move = {
        .ref = row->ref,
        .n = row->n,
        .op = row->op,
        .old = row->has_old ? &row->old : NULL,
        .now = row->has_now ? &row->now : NULL,
        .at = row->at,
        .message = row->message,
    };

    (void)err;
    return each->fn(each->ctx, &move) ? BAL_ROW_STOP : 0;
}

int bal_reflog(bal_tenant *tenant, const char *ref, bal_move_fn *fn, void *ctx,
               bal_error *err)
{
    reflog_ctx each = { fn, ctx };

    return bal_graph_reflog(tenant->store->graph, tenant->number, ref,
                            reflog_one, &each, err);
}

int bal_stats_get(bal_stats *out, bal_store *store, bal_tenant *tenant,
                  bal_error *err)
{
    memset(out, 0, sizeof(*out));
    if (tenant && !tenant->number)
        return 0;
    return bal_graph_stats(store->graph, tenant ? tenant->number : 0, out, err);
}
