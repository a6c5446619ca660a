/* Version control for models from a program of one's own: commit what tuned
 * changed of base, put it back onto base, and see that nothing differs.
 *
 *   cc embed.c $(pkg-config --cflags --libs ballast) -o embed
 *   ./embed STORE BASE TUNED OUT
 *
 * Every _free takes NULL, so that one exit frees all. */
#include <ballast.h>
#include <inttypes.h>
#include <stdio.h>

enum { BASE, TUNED, DELTA, KEPT, AGAIN, BACK, MODELS };

static int count_changed(void *ctx, const bal_diff_row *row)
{
    *(size_t *)ctx += row->change != BAL_UNCHANGED;
    return 0;
}

static int round_trip(bal_tenant *tenant, bal_work *work, bal_model **m,
                      char **path, bal_error *err)
{
    bal_draft draft = { .message = "what tuned changed" };
    bal_commit_report report;
    bal_commit *commit = NULL;
    size_t changed = 0;

    int rc = bal_model_from_path(&m[BASE], path[0], err);
    if (!rc)
        rc = bal_model_from_path(&m[TUNED], path[1], err);
    if (!rc)
        rc = bal_model_minus(&m[DELTA], m[TUNED], m[BASE], work, err);
    if (!rc)
        rc = bal_commit_model(&commit, tenant, m[DELTA], &draft, &report, err);
    if (!rc)
        rc = bal_model_from_commit(&m[KEPT], tenant,
                                   &bal_commit_info_of(commit)->id, err);
    if (!rc)
        rc = bal_model_plus(&m[AGAIN], m[BASE], m[KEPT], 0, work, err);
    if (!rc)
        rc = bal_model_write(m[AGAIN], path[2], NULL, NULL, work, err);
    if (!rc)
        rc = bal_model_from_path(&m[BACK], path[2], err);
    if (!rc)
        rc = bal_diff(m[TUNED], m[BACK], work, count_changed, &changed, err);
    if (!rc)
        printf("%s\n%" PRIu64 " bytes stored, %zu tensors differ\n",
               bal_commit_json(commit), report.stored_bytes, changed);
    bal_commit_free(commit);
    return rc;
}

int main(int argc, char **argv)
{
    bal_model *models[MODELS] = { NULL };
    bal_work *work = NULL;
    bal_store *store = NULL;
    bal_tenant *tenant = NULL;
    bal_error err;

    if (argc != 5)
        return fputs("usage: embed STORE BASE TUNED OUT\n", stderr), 2;
    int rc = bal_work_new(&work, 0, &err);
    bal_store_options options = {
        .root = argv[1],
        .tenant = "example",
        .flags = BAL_OPEN_CREATE,
        .work = work,
    };
    if (!rc)
        rc = bal_store_open(&store, &options, &err);
    if (!rc)
        rc = bal_tenant_open(&tenant, store, NULL, &err);
    if (!rc)
        rc = round_trip(tenant, work, models, argv + 2, &err);
    if (rc)
        fprintf(stderr, "embed: %s\n", err.text);
    for (size_t i = 0; i < MODELS; i++)
        bal_model_free(models[i]);
    bal_tenant_free(tenant);
    bal_store_free(store);
    bal_work_free(work);
    return bal_code_find(rc)->exit;
}
