/* Stores with tenants that share, for tests. */
#include "support/shared.h"

#include <stdlib.h>
#include <string.h>

#include "support/files.h"
#include "support/memory_model.h"

static bal_work *work(void)
{
    static bal_work *one;

    if (!one)
        CHECK_OK(bal_work_new(&one, 2, &check_err));
    return one;
}

const char *shared_root(void)
{
    return file_dir();
}

bal_store *shared_store(const char *root, unsigned flags)
{
    bal_store *store = NULL;
    const bal_store_options options = {
        .root = root,
        .block_size = 4096,
        .flags = BAL_OPEN_CREATE | flags,
        .work = work(),
    };

    CHECK_OK(bal_store_open(&store, &options, &check_err));
    return store;
}

static bal_tenant *tenant_of(bal_store *store, const char *name)
{
    bal_tenant *tenant = NULL;

    CHECK_OK(bal_tenant_open(&tenant, store, name, &check_err));
    return tenant;
}

bal_id shared_commit(bal_store *store, const char *tenant, float value,
                     uint64_t n, const char *ref)
{
    BAL_OWN(bal_tenant) whose = tenant_of(store, tenant);
    BAL_OWN(bal_model) model = memory_new(BAL_KIND_WEIGHTS, "made");
    BAL_OWN(bal_commit) commit = NULL;
    const bal_draft draft = { .ref = ref, .message = "m", .author = "a" };
    float *values = malloc(n * sizeof(*values));

    CHECK(values != NULL);
    for (uint64_t i = 0; i < n; i++)
        values[i] = value + (float)i;
    memory_tensor(model, "w", BAL_F32, 1, &n, values);
    free(values);
    memory_finish(model);
    CHECK_OK(bal_commit_model(&commit, whose, model, &draft, NULL, &check_err));
    return bal_commit_info_of(commit)->id;
}

bal_id shared_view(bal_store *store, const char *tenant, const char *a,
                   const char *b, const char *ref)
{
    BAL_OWN(bal_tenant) whose = tenant_of(store, tenant);
    BAL_OWN(bal_recipe) recipe = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    const bal_draft draft = { .ref = ref, .message = "m", .author = "a" };

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    CHECK_OK(bal_recipe_input(recipe, whose, a, &check_err));
    if (b)
        CHECK_OK(bal_recipe_input(recipe, whose, b, &check_err));
    CHECK_OK(bal_commit_view(&commit, whose, recipe, &draft, NULL, &check_err));
    return bal_commit_info_of(commit)->id;
}

bal_model *shared_model(bal_store *store, const char *tenant, const bal_id *id)
{
    BAL_OWN(bal_tenant) whose = tenant_of(store, tenant);
    bal_model *model = NULL;

    CHECK_OK(bal_model_from_commit(&model, whose, id, &check_err));
    return model;
}

void shared_grant(bal_store *store, const char *owner, const bal_id *id,
                  const char *grantee)
{
    BAL_OWN(bal_tenant) whose = tenant_of(store, owner);

    CHECK_OK(bal_grant(whose, id, grantee, NULL, NULL, &check_err));
}

void shared_revoke(bal_store *store, const char *owner, const bal_id *id,
                   const char *grantee)
{
    BAL_OWN(bal_tenant) whose = tenant_of(store, owner);
    uint64_t revoked = 0;

    CHECK_OK(bal_revoke(whose, id, grantee, &revoked, NULL, NULL, &check_err));
    CHECK(revoked == 1);
}
