/* Every allocation fails once, then every one from there on: the call must say
 * ENOMEM, or do without, and must not lose memory, crash, or leave a store
 * that fsck has something to say about. Ours and SQLite's. */
#include "torture/alloc_walk.h"

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
    walk(walk_fsck, false);
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
    return walk_main(tests, sizeof(tests) / sizeof(tests[0]));
}
