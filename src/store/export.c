/* Folders that commits were written to, so that a deletion can name the copies
 * that it does not reach. */
#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/forgets.h"
#include "store/store.h"

static int pass_over(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)ctx;
    (void)row;
    (void)err;
    return 0;
}

static int put(bal_tenant *tenant, const bal_export_row *row, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_commit(graph, tenant->number, &row->commit, pass_over,
                              NULL, err);
    if (!rc)
        rc = bal_graph_export_put(graph, tenant->number, row, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

int bal_exported(bal_tenant *tenant, const bal_id *commit, const char *path,
                 bal_error *err)
{
    bal_error why = { 0 };
    char *real = NULL;
    int rc = bal_path_real(&real, path, err);
    if (rc)
        return rc;

    bal_export_row row = { *commit, real, bal_clock_now() };
    rc = put(tenant, &row, &why);
    if (rc == BAL_EIO || rc == BAL_EBUSY) {
        /* Reading goes on where nothing can be written. */
        bal_warn("store", "export=%s not-noted=\"%s\"", real, why.text);
        rc = 0;
    } else if (rc == BAL_ENOTFOUND) {
        char hex[BAL_ID_HEX + 1];
        bal_id_hex(hex, commit);
        rc = bal_fail(err, rc, "commit '%.12s' was forgotten meanwhile", hex);
        bal_hint(err, rc, "'%.200s' still holds it", path);
    } else if (rc) {
        rc = bal_fail(err, rc, "%s", why.text);
    }
    bal_str_free(real);
    return rc;
}
