/* Stores, models and the walk over every allocation. */
#include "torture/alloc_walk.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "torture/alloc.h"

/* ---- models and stores --------------------------------------------------- */

place here;

static void write_model(const char *path, const char *values)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[8,16]}}"
        "          ";
    uint64_t len = sizeof(header) - 1;
    uint8_t prefix[8] = { (uint8_t)len };

    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(prefix, 8, 1, file) == 1);
    CHECK(fwrite(header, len, 1, file) == 1);
    CHECK(fwrite(values, 16, 1, file) == 1 && !fclose(file));
}

/* In memory where that can be had: thousands of stores are made and synced. */
static void make_dir(void)
{
    snprintf(here.dir, sizeof(here.dir), "/dev/shm/ballast-torture-XXXXXX");
    if (!mkdtemp(here.dir))
        snprintf(here.dir, sizeof(here.dir), "%s", check_dir());
}

static void make_models(void)
{
    snprintf(here.root, sizeof(here.root), "%s/store", here.dir);
    snprintf(here.base, sizeof(here.base), "%s/base.safetensors", here.dir);
    snprintf(here.tuned, sizeof(here.tuned), "%s/tuned.safetensors", here.dir);
    snprintf(here.out, sizeof(here.out), "%s/out", here.dir);
    write_model(here.base, "0123456789abcdef");
    write_model(here.tuned, "0123456889abcdee");
}

static void session_end(session *self)
{
    bal_proof_free(self->proof);
    bal_key_free(self->key);
    bal_recipe_free(self->recipe);
    bal_commit_free(self->commit);
    bal_model_free(self->c);
    bal_model_free(self->b);
    bal_model_free(self->a);
    bal_tenant_free(self->tenant);
    bal_store_free(self->store);
    bal_work_free(self->work);
}

int session_begin(session *self)
{
    int rc = bal_work_new(&self->work, 1, &self->err);
    if (rc)
        return rc;
    const bal_store_options options = {
        .root = here.root,
        .flags = BAL_OPEN_CREATE,
        .work = self->work,
    };
    rc = bal_store_open(&self->store, &options, &self->err);
    if (rc)
        return rc;
    return bal_tenant_open(&self->tenant, self->store, "acme", &self->err);
}

int commit_model(session *self, bal_model *model, const char *ref)
{
    const bal_draft draft = {
        .ref = ref,
        .message = "m",
        .author = "a",
        .flags = BAL_DRAFT_ALLOW_EMPTY,
    };
    bal_commit_report report;

    bal_commit_free(self->commit);
    self->commit = NULL;
    return bal_commit_model(&self->commit, self->tenant, model, &draft, &report,
                            &self->err);
}

int open_ref(session *self, bal_model **out, const char *spec)
{
    bal_id id;
    int rc = bal_resolve(&id, self->tenant, spec, &self->err);
    if (rc)
        return rc;
    return bal_model_from_commit(out, self->tenant, &id, &self->err);
}

static int show_problem(void *ctx, const bal_problem *problem)
{
    ++*(int *)ctx;
    print_error("fsck: %s %s %s\n", problem->kind, problem->what,
                problem->detail);
    return 0;
}

int walk_fsck(session *self)
{
    bal_fsck_report report;
    int problems = 0;

    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_fsck(self->store, NULL, NULL, show_problem, &problems, &report,
                  &self->err);
    CHECK(rc || !problems);
    return rc;
}

/* ---- the walk ------------------------------------------------------------ */

int run_once(scenario_fn *fn, long n, bool all, bool *failed)
{
    session self = { 0 };

    alloc_begin(n, all);
    int rc = fn(&self);
    *failed = alloc_end();
    if (rc && rc != BAL_ENOMEM)
        print_error("allocation %ld: %d %s\n", n, rc, self.err.text);
    session_end(&self);
    if (alloc_live())
        print_error("allocation %ld: %zu are left\n", n, alloc_live());
    CHECK(!alloc_live());
    return rc;
}

void run_well(scenario_fn *fn)
{
    bool failed = false;

    CHECK(!run_once(fn, 0, false, &failed));
}

static void walk_on(scenario_fn *fn, bool fresh, bool all)
{
    bool failed = true;

    for (long n = 1; failed; n++) {
        if (fresh)
            CHECK_OK(bal_remove_tree(here.root, &check_err));
        int rc = run_once(fn, n, all, &failed);
        CHECK(rc == 0 || rc == BAL_ENOMEM);
        CHECK(rc == 0 || failed);
        if (n % 50 == 0)
            run_well(walk_fsck);
    }
}

void walk(scenario_fn *fn, bool fresh)
{
    walk_on(fn, fresh, false);
    walk_on(fn, fresh, true);
    run_well(fn);
    run_well(walk_fsck);
}

int walk_main(const check_test *tests, size_t count)
{
    make_dir();
    make_models();
    if (!alloc_hook())
        return 1;
    int failed = check_main(tests, count);
    if (bal_remove_tree(here.dir, &check_err))
        fprintf(stderr, "%s\n", check_err.text);
    return failed;
}
