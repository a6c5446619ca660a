/* Every allocation fails once, then every one from there on: the call must say
 * ENOMEM, or do without, and must not lose memory, crash, or leave a store
 * that fsck has something to say about. Ours and SQLite's. */
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "support/check.h"
#include "torture/alloc.h"

/* ---- models and stores --------------------------------------------------- */

typedef struct place {
    char dir[64], root[128], base[128], tuned[128], out[128];
} place;

static place here;

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

/* What a scenario opens; all of it is freed at its end. */
typedef struct session {
    bal_work *work;
    bal_store *store;
    bal_tenant *tenant;
    bal_model *a, *b, *c;
    bal_commit *commit;
    bal_recipe *recipe;
    bal_error err;
} session;

static void session_end(session *self)
{
    bal_recipe_free(self->recipe);
    bal_commit_free(self->commit);
    bal_model_free(self->c);
    bal_model_free(self->b);
    bal_model_free(self->a);
    bal_tenant_free(self->tenant);
    bal_store_free(self->store);
    bal_work_free(self->work);
}

static int session_begin(session *self)
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

static int commit_model(session *self, bal_model *model, const char *ref)
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

static int read_all(session *self, bal_model *model)
{
    for (size_t i = 0; i < bal_model_count(model); i++) {
        uint8_t bytes[4096];
        uint64_t size = bal_model_at(model, i)->size;
        if (size > sizeof(bytes))
            continue;
        int rc = bal_model_read(model, i, 0, bytes, size, &self->err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- scenarios ----------------------------------------------------------- */

static int commit_scenario(session *self)
{
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_model_from_path(&self->a, here.base, &self->err);
    if (rc)
        return rc;
    return commit_model(self, self->a, "main");
}

static int open_ref(session *self, bal_model **out, const char *spec)
{
    bal_id id;
    int rc = bal_resolve(&id, self->tenant, spec, &self->err);
    if (rc)
        return rc;
    return bal_model_from_commit(out, self->tenant, &id, &self->err);
}

static int read_scenario(session *self)
{
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = open_ref(self, &self->a, "main");
    if (rc)
        return rc;
    return read_all(self, self->a);
}

static int delta_scenario(session *self)
{
    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_model_from_path(&self->a, here.base, &self->err);
    if (rc)
        return rc;
    rc = bal_model_from_path(&self->b, here.tuned, &self->err);
    if (rc)
        return rc;
    rc = bal_model_minus(&self->c, self->b, self->a, self->work, &self->err);
    if (rc)
        return rc;
    return commit_model(self, self->c, "delta");
}

static int apply_scenario(session *self)
{
    const bal_write_options options = { .flags = BAL_WRITE_FORCE };
    bal_written written;

    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_model_from_path(&self->a, here.base, &self->err);
    if (rc)
        return rc;
    rc = open_ref(self, &self->b, "delta");
    if (rc)
        return rc;
    rc = bal_model_plus(&self->c, self->a, self->b, 0, self->work, &self->err);
    if (rc)
        return rc;
    return bal_model_write(self->c, here.out, &options, &written, self->work,
                           &self->err);
}

static int merge_scenario(session *self)
{
    const bal_draft draft = { .ref = "blend", .message = "m", .author = "a" };
    bal_commit_report report;

    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_recipe_new(&self->recipe, "linear", &self->err);
    if (rc)
        return rc;
    rc = bal_recipe_input(self->recipe, self->tenant, "delta@0.5", &self->err);
    if (rc)
        return rc;
    rc =
        bal_recipe_input(self->recipe, self->tenant, "delta~0@0.5", &self->err);
    if (rc)
        return rc;
    rc = bal_commit_view(&self->commit, self->tenant, self->recipe, &draft,
                         &report, &self->err);
    if (rc)
        return rc;
    rc = open_ref(self, &self->a, "blend");
    if (rc)
        return rc;
    return read_all(self, self->a);
}

static int ignore_commit(void *ctx, const bal_commit *commit)
{
    (void)ctx;
    (void)commit;
    return 0;
}

static int ignore_move(void *ctx, const bal_move *move)
{
    (void)ctx;
    (void)move;
    return 0;
}

static int history_scenario(session *self)
{
    bal_id id;
    bal_stats stats;

    int rc = session_begin(self);
    if (rc)
        return rc;
    rc = bal_resolve(&id, self->tenant, "main", &self->err);
    if (rc)
        return rc;
    rc = bal_log(self->tenant, &id, 0, ignore_commit, NULL, &self->err);
    if (rc)
        return rc;
    rc = bal_reflog(self->tenant, NULL, ignore_move, NULL, &self->err);
    if (rc)
        return rc;
    return bal_stats_get(&stats, self->store, NULL, &self->err);
}

static int gc_scenario(session *self)
{
    bal_gc_report report;
    int rc = session_begin(self);
    if (rc)
        return rc;
    return bal_gc(self->store, NULL, 0, &report, &self->err);
}

static int show_problem(void *ctx, const bal_problem *problem)
{
    ++*(int *)ctx;
    print_error("fsck: %s %s %s\n", problem->kind, problem->what,
                problem->detail);
    return 0;
}

static int fsck_scenario(session *self)
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

typedef int scenario_fn(session *self);

/* *failed: an allocation did. */
static int run_once(scenario_fn *fn, long n, bool all, bool *failed)
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

static void run_well(scenario_fn *fn)
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
            run_well(fsck_scenario);
    }
}

/* fresh: each run begins without a store. */
static void walk(scenario_fn *fn, bool fresh)
{
    walk_on(fn, fresh, false);
    walk_on(fn, fresh, true);
    run_well(fn);
    run_well(fsck_scenario);
}

static void a_commit_into_a_new_store(void)
{
    walk(commit_scenario, true);
}

static void a_commit_into_a_store(void)
{
    walk(commit_scenario, false);
}

static void reading_a_commit(void)
{
    walk(read_scenario, false);
}

static void a_delta(void)
{
    walk(delta_scenario, false);
}

static void applying_it(void)
{
    walk(apply_scenario, false);
}

static void a_view(void)
{
    walk(merge_scenario, false);
}

static void history(void)
{
    walk(history_scenario, false);
}

static void fsck(void)
{
    walk(fsck_scenario, false);
}

static void gc(void)
{
    walk(gc_scenario, false);
}

static const check_test tests[] = {
    { TEST(a_commit_into_a_new_store) },
    { TEST(a_commit_into_a_store) },
    { TEST(reading_a_commit) },
    { TEST(a_delta) },
    { TEST(applying_it) },
    { TEST(a_view) },
    { TEST(history) },
    { TEST(fsck) },
    { TEST(gc) },
};

int main(void)
{
    make_dir();
    make_models();
    if (!alloc_hook())
        return 1;
    int failed = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    if (bal_remove_tree(here.dir, &check_err))
        fprintf(stderr, "%s\n", check_err.text);
    return failed;
}
