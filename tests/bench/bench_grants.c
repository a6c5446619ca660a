/* What asking at every read costs, for the benchmark:
 *     bench-grants ROOT ADAPTER
 * A tenant's view over another's adapter and its own is read entry by entry,
 * without the cache: as it is opened, and what is behind the guard. Prints the
 * median of the ratios of pairs, then the medians of both in processor seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "merge/merge.h"
#include "store/guard.h"

enum { PAIRS = 21 };

/* Processor time: others may be at work on the machine. */
static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One after the other, in memory that is there already. */
static int read_all(bal_model *model, void *room, double *took, bal_error *err)
{
    double began = seconds();
    int rc = 0;

    for (size_t i = 0; i < bal_model_count(model) && !rc; i++)
        rc = bal_model_read(model, i, 0, room, bal_model_at(model, i)->size,
                            err);
    *took = seconds() - began;
    return rc;
}

static int commit(bal_store *store, const char *name, const char *path,
                  bal_id *id, bal_error *err)
{
    BAL_OWN(bal_tenant) tenant = NULL;
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) made = NULL;
    bal_draft draft = { .message = "m" };
    int rc = bal_tenant_open(&tenant, store, name, err);
    if (!rc)
        rc = bal_model_from_path(&model, path, err);
    if (!rc)
        rc = bal_commit_model(&made, tenant, model, &draft, NULL, err);
    if (!rc)
        *id = bal_commit_info_of(made)->id;
    if (!rc && !strcmp(name, "acme"))
        rc = bal_grant(tenant, id, "partner", NULL, NULL, err);
    return rc;
}

static int record(bal_tenant *tenant, bal_id *id, bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_OWN(bal_commit) made = NULL;
    bal_draft draft = { .message = "m", .ref = "view" };
    int rc = bal_recipe_new(&recipe, "linear", err);
    if (!rc)
        rc = bal_recipe_input(recipe, tenant, "acme:main@0.5", err);
    if (!rc)
        rc = bal_recipe_input(recipe, tenant, "main@0.5", err);
    if (!rc)
        rc = bal_recipe_set(recipe, "space", "factors", err);
    if (!rc)
        rc = bal_commit_view(&made, tenant, recipe, &draft, NULL, err);
    if (!rc)
        *id = bal_commit_info_of(made)->id;
    return rc;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values)
{
    qsort(values, PAIRS, sizeof(*values), by_size);
    return values[PAIRS / 2];
}

static int compare(bal_tenant *tenant, const bal_id *view, bal_error *err)
{
    double ratio[PAIRS], with[PAIRS], without[PAIRS];
    BAL_OWN(bal_model) guarded = NULL;
    BAL_OWN(bal_model) plain = NULL;
    bal_walked walked;
    uint64_t most = 0;
    int rc = bal_model_from_commit(&guarded, tenant, view, err);
    if (!rc)
        rc = bal_commit_walk(&plain, &walked, tenant, view, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < bal_model_count(plain); i++) {
        uint64_t size = bal_model_at(plain, i)->size;
        most = size > most ? size : most;
    }
    void *room = malloc(most + 1);
    if (!room)
        return bal_fail_memory(err, "room");
    for (size_t i = 0; i < PAIRS && !rc; i++) {
        rc = read_all(i % 2 ? plain : guarded, room,
                      i % 2 ? &without[i] : &with[i], err);
        if (!rc)
            rc = read_all(i % 2 ? guarded : plain, room,
                          i % 2 ? &with[i] : &without[i], err);
        ratio[i] = with[i] / without[i];
    }
    free(room);
    if (!rc)
        printf("%.4f %.6f %.6f\n", median(ratio), median(with),
               median(without));
    return rc;
}

static int run(const char *root, const char *path, bal_error *err)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(bal_store) store = NULL;
    BAL_OWN(bal_tenant) tenant = NULL;
    bal_id id;
    int rc = bal_work_new(&work, 1, err);
    bal_store_options options = {
        .root = root,
        .flags = BAL_OPEN_CREATE | BAL_OPEN_NO_CACHE,
        .work = work,
    };
    if (!rc)
        rc = bal_store_open(&store, &options, err);
    if (!rc)
        rc = commit(store, "acme", path, &id, err);
    if (!rc)
        rc = commit(store, "partner", path, &id, err);
    if (!rc)
        rc = bal_tenant_open(&tenant, store, "partner", err);
    if (!rc)
        rc = record(tenant, &id, err);
    return rc ? rc : compare(tenant, &id, err);
}

int main(int argc, char **argv)
{
    bal_error err = { 0 };

    if (argc != 3 || run(argv[1], argv[2], &err)) {
        fprintf(stderr, "bench-grants: %s\n", err.text);
        return 1;
    }
    return 0;
}
