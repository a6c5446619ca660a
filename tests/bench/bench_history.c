/* A store with a long history, made fast, for the benchmark:
 *     bench-history ROOT COMMITS
 * One real commit, then as many more that name its manifest, in one
 * transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ballast.h"

#include "core/error.h"
#include "model/model.h"
#include "store/commit_object.h"

static int keep_row(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bal_commit_row *kept = ctx;

    (void)err;
    kept->manifest = row->manifest;
    kept->id = row->id;
    return 0;
}

/* Hang `count` commits one behind the other onto the first. */
static int extend(bal_tenant *tenant, const bal_id *first, unsigned count,
                  bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    bal_commit_row row = { .kind = "weights",
                           .author = "bench",
                           .metadata = "{}",
                           .has_parent = true,
                           .has_made_on = true };
    bal_move_row move = {
        .ref = "main", .op = "commit", .has_old = true, .has_now = true
    };
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc =
            bal_graph_commit(graph, tenant->number, first, keep_row, &row, err);
    for (unsigned i = 0; i < count && !rc; i++) {
        char message[64];
        snprintf(message, sizeof(message), "step %u", i);
        row.message = message;
        row.parent = row.made_on = move.old = row.id;
        row.created_at++;
        rc = bal_commit_id(&row.id, tenant->name, &row, err);
        if (!rc)
            rc = bal_graph_commit_put(graph, tenant->number, &row, err);
        move.now = row.id;
        move.message = message;
        move.at = row.created_at;
        if (!rc)
            rc = bal_graph_move(graph, tenant->number, &move, err);
    }
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int first_commit(bal_tenant *tenant, const char *path, bal_id *id,
                        bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    bal_draft draft = { .message = "first" };
    int rc = bal_model_from_path(&model, path, err);
    if (!rc)
        rc = bal_commit_model(&commit, tenant, model, &draft, NULL, err);
    if (!rc)
        *id = bal_commit_info_of(commit)->id;
    return rc;
}

static int make(const char *root, unsigned count, bal_error *err)
{
    char path[4096];
    static const char header[] =
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}  ";
    const char length[8] = { sizeof(header) - 1 };
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(bal_store) store = NULL;
    BAL_OWN(bal_tenant) tenant = NULL;
    bal_id id;
    int rc = bal_work_new(&work, 1, err);
    bal_store_options options = { .root = root,
                                  .flags = BAL_OPEN_CREATE,
                                  .work = work };
    if (!rc)
        rc = bal_store_open(&store, &options, err);
    if (!rc)
        rc = bal_tenant_open(&tenant, store, "acme", err);
    if (rc)
        return rc;
    snprintf(path, sizeof(path), "%s/model.safetensors", root);
    FILE *file = fopen(path, "wb");
    if (!file)
        return bal_fail_errno(err, "opening '%s'", path);
    fwrite(length, 1, 8, file);
    fwrite(header, 1, sizeof(header) - 1, file);
    fwrite("12345678", 1, 8, file);
    fclose(file);
    rc = first_commit(tenant, path, &id, err);
    return rc ? rc : extend(tenant, &id, count - 1, err);
}

int main(int argc, char **argv)
{
    bal_error err = { 0 };
    unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

    if (!count || make(argv[1], (unsigned)count, &err)) {
        fprintf(stderr, "bench-history: %s\n", err.text);
        return 1;
    }
    return 0;
}
