/* A model that is open does not outlast the right to read it. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/forgets.h"
#include "store/guard.h"
#include "support/files.h"
#include "support/memory_model.h"
#include "support/shared.h"

enum { ELEMENTS = 3000 };

/* An owner's commit, and a grantee's view over it that a handle has open. */
typedef struct scene {
    const char *root;
    bal_store *owner, *grantee;
    bal_id commit, view;
    bal_model *model;
} scene;

static void scene_done(scene *self)
{
    bal_model_free(self->model);
    bal_store_free(self->grantee);
    bal_store_free(self->owner);
}

static void scene_init(scene *self)
{
    self->root = shared_root();
    self->owner = shared_store(self->root, 0);
    self->grantee = shared_store(self->root, 0);
    self->commit = shared_commit(self->owner, "acme", 1, ELEMENTS, "main");
    shared_commit(self->owner, "partner", 5, ELEMENTS, "own");
    shared_grant(self->owner, "acme", &self->commit, "partner");
    self->view =
        shared_view(self->grantee, "partner", "acme:main@0.5", "own@0.5", "v");
    self->model = shared_model(self->grantee, "partner", &self->view);
}

static int read_some(bal_model *model)
{
    float values[8];
    int rc = bal_model_read(model, 0, 0, values, sizeof(values), &check_err);

    if (!rc)
        CHECK(values[1] > values[0]);
    return rc;
}

/* What a deletion does to rows. */
static void forget_rows(bal_store *store, const char *name)
{
    BAL_OWN(bal_tenant) tenant = NULL;
    BAL_LOCAL(bal_tx) tx = { 0 };
    uint64_t epoch = 0;

    CHECK_OK(bal_tenant_open(&tenant, store, name, &check_err));
    CHECK_OK(bal_graph_begin(&tx, store->graph, BAL_TX_WRITE, &check_err));
    CHECK_OK(bal_graph_tenant_forget(store->graph, tenant->number, &check_err));
    CHECK_OK(bal_graph_epoch_next(store->graph, &epoch, &check_err));
    CHECK_OK(bal_tx_commit(&tx, &check_err));
}

static void a_read_fails_once_another_handle_has_revoked(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self);
    CHECK_OK(read_some(self.model));
    CHECK_OK(bal_model_read(self.model, 0, 0, NULL, 0, &check_err));
    shared_revoke(self.owner, "acme", &self.commit, "partner");
    CHECK_RC(BAL_EBROKEN,
             bal_model_read(self.model, 0, 0, NULL, 0, &check_err));
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
    CHECK(strstr(check_err.text, "view lost its input 'acme:") != NULL);
    CHECK(strstr(check_err.text, "': the grant is missing or revoked") != NULL);
    /* What was read before is in memory, and is not given either. */
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
}

static void a_read_goes_on_once_it_is_granted_again(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self);
    shared_revoke(self.owner, "acme", &self.commit, "partner");
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
    shared_grant(self.owner, "acme", &self.commit, "partner");
    CHECK_OK(read_some(self.model));
}

static void a_read_goes_on_when_something_else_is_revoked(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self);
    shared_grant(self.owner, "acme", &self.commit, "other");
    shared_revoke(self.owner, "acme", &self.commit, "other");
    CHECK_OK(read_some(self.model));
}

static void a_read_fails_once_another_process_has_revoked(void)
{
    BAL_LOCAL(scene) self = { 0 };
    int gate[2];
    int status = 0;

    /* Forked before anything is open that must not be in two processes. */
    CHECK(!pipe(gate));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        char root[256];
        close(gate[1]);
        bal_id id;
        bool told = read(gate[0], &id, sizeof(id)) == sizeof(id) &&
                    read(gate[0], root, sizeof(root)) == sizeof(root);
        BAL_OWN(bal_store) store = told ? shared_store(root, 0) : NULL;
        if (told)
            shared_revoke(store, "acme", &id, "partner");
        _exit(told ? 0 : 1);
    }
    char root[256] = { 0 };
    scene_init(&self);
    CHECK_OK(read_some(self.model));
    snprintf(root, sizeof(root), "%s", self.root);
    CHECK(write(gate[1], &self.commit, sizeof(self.commit)) > 0);
    CHECK(write(gate[1], root, sizeof(root)) > 0);
    close(gate[1]);
    CHECK(waitpid(child, &status, 0) == child && !status);
    close(gate[0]);
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
}

static void a_commit_that_was_forgotten_is_not_found_by_its_next_read(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self);
    BAL_OWN(bal_model) leaf = shared_model(self.grantee, "acme", &self.commit);
    CHECK_OK(read_some(leaf));
    forget_rows(self.owner, "acme");
    CHECK_RC(BAL_ENOTFOUND, read_some(leaf));
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
}

static void a_view_over_a_view_fails_when_the_first_hop_does(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self);
    shared_grant(self.grantee, "partner", &self.view, "client");
    bal_id top = shared_view(self.owner, "client", "partner:v", NULL, "top");
    BAL_OWN(bal_store) third = shared_store(self.root, 0);
    BAL_OWN(bal_model) model = shared_model(third, "client", &top);
    CHECK_OK(read_some(model));
    shared_revoke(self.owner, "acme", &self.commit, "partner");
    CHECK_RC(BAL_EBROKEN, read_some(model));
}

static void a_revocation_during_the_walk_is_seen_by_the_first_read(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_tenant) tenant = NULL;
    bal_model *walked = NULL;
    bal_walked what;
    uint64_t epoch = 0;

    scene_init(&self);
    CHECK_OK(bal_tenant_open(&tenant, self.grantee, "partner", &check_err));
    CHECK_OK(bal_graph_epoch(self.grantee->graph, &epoch, &check_err));
    CHECK_OK(bal_commit_walk(&walked, &what, tenant, &self.view, &check_err));
    CHECK(what.view);
    shared_revoke(self.owner, "acme", &self.commit, "partner");
    BAL_OWN(bal_model) model = NULL;
    CHECK_OK(
        bal_guard_open(&model, tenant, &self.view, epoch, walked, &check_err));
    CHECK_RC(BAL_EBROKEN, read_some(model));
}

enum { READS = 200, REVOKED_AT = 60 };

typedef struct crowd {
    scene *of;
    bal_tenant *owner;
    int codes[READS];
} crowd;

/* One of many revokes while all others read. */
static int read_or_revoke(size_t i, void *ctx, bal_error *err)
{
    crowd *self = ctx;
    float values[512];
    uint64_t revoked;

    if (i == REVOKED_AT)
        self->codes[i] = bal_revoke(self->owner, &self->of->commit, "partner",
                                    &revoked, NULL, NULL, err);
    else
        self->codes[i] = bal_model_read(self->of->model, 0, i % 4 * 2048,
                                        values, sizeof(values), err);
    return 0;
}

static void many_threads_read_or_are_told_why_not(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_tenant) owner = NULL;
    BAL_OWN(bal_work) work = NULL;

    scene_init(&self);
    CHECK_OK(bal_tenant_open(&owner, self.owner, "acme", &check_err));
    CHECK_OK(bal_work_new(&work, 4, &check_err));
    crowd all = { .of = &self, .owner = owner };
    CHECK_OK(bal_pool_run(work, READS, read_or_revoke, &all, &check_err));
    for (size_t i = 0; i < READS; i++)
        CHECK(!all.codes[i] || all.codes[i] == BAL_EBROKEN);
    CHECK(!all.codes[0] && !all.codes[REVOKED_AT]);
    CHECK_RC(BAL_EBROKEN, read_some(self.model));
}

static void a_guard_has_what_it_guards(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_tenant) tenant = NULL;
    BAL_OWN(bal_model) plain = NULL;
    bal_walked what;

    scene_init(&self);
    CHECK_OK(bal_tenant_open(&tenant, self.grantee, "partner", &check_err));
    CHECK_OK(bal_commit_walk(&plain, &what, tenant, &self.view, &check_err));
    memory_check_equal(plain, self.model);
    CHECK(bal_model_facts(plain)->kind == bal_model_facts(self.model)->kind);
}

static void no_folder_appears_of_what_may_not_be_read_any_more(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_model) plain = memory_new(BAL_KIND_WEIGHTS, "plain");
    BAL_OWN(bal_work) work = NULL;
    const char *out = file_path("%s", "written");

    scene_init(&self);
    memory_strange1(plain, "w", BAL_F32, 64, 1);
    memory_finish(plain);
    CHECK_OK(bal_work_new(&work, 1, &check_err));
    bal_model *const sources[] = { plain, self.model };
    const bal_write_options options = { .sources = sources, .source_count = 2 };
    shared_revoke(self.owner, "acme", &self.commit, "partner");
    CHECK_RC(BAL_EBROKEN,
             bal_model_write(plain, out, &options, NULL, work, &check_err));
    CHECK(!file_exists(out));
    shared_grant(self.owner, "acme", &self.commit, "partner");
    CHECK_OK(bal_model_write(plain, out, &options, NULL, work, &check_err));
    CHECK(file_exists(out));
}

static int note_export(void *ctx, const bal_export_row *row, bal_error *err)
{
    char *path = ctx;

    (void)err;
    snprintf(path, 512, "%s", row->path);
    return 0;
}

static void an_export_is_noted_by_its_real_path_of_own_commits_alone(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_tenant) acme = NULL;
    BAL_OWN(bal_tenant) partner = NULL;
    const char *out = file_dir();
    char path[512] = "", dotted[512];

    scene_init(&self);
    CHECK_OK(bal_tenant_open(&acme, self.owner, "acme", &check_err));
    CHECK_OK(bal_tenant_open(&partner, self.owner, "partner", &check_err));
    snprintf(dotted, sizeof(dotted), "%s/.././/", out);
    *strrchr(dotted, '.') = '\0'; /* the folder above */
    CHECK_OK(bal_exported(acme, &self.commit, dotted, &check_err));
    CHECK_OK(bal_graph_exports(self.owner->graph, acme->number, &self.commit,
                               note_export, path, &check_err));
    CHECK(path[0] == '/' && !strstr(path, "..") &&
          !strncmp(path, out, strlen(path)));
    CHECK_RC(BAL_ENOTFOUND,
             bal_exported(partner, &self.commit, out, &check_err));
}

static const check_test tests[] = {
    { TEST(a_read_fails_once_another_process_has_revoked) },
    { TEST(a_read_fails_once_another_handle_has_revoked) },
    { TEST(a_read_goes_on_once_it_is_granted_again) },
    { TEST(a_read_goes_on_when_something_else_is_revoked) },
    { TEST(a_commit_that_was_forgotten_is_not_found_by_its_next_read) },
    { TEST(a_view_over_a_view_fails_when_the_first_hop_does) },
    { TEST(a_revocation_during_the_walk_is_seen_by_the_first_read) },
    { TEST(many_threads_read_or_are_told_why_not) },
    { TEST(a_guard_has_what_it_guards) },
    { TEST(no_folder_appears_of_what_may_not_be_read_any_more) },
    { TEST(an_export_is_noted_by_its_real_path_of_own_commits_alone) },
};

CHECK_MAIN(tests)
