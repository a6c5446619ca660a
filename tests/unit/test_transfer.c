/* Commits from one store into another, by the library alone: what the program
 * cannot ask for, being stopped, and tombstones that stand for a gap. */
#include <string.h>

#include "graph/proofs.h"
#include "support/shared.h"

enum { ELEMENTS = 3000, COMMITS = 3 };

typedef struct scene {
    bal_store *stores[2];
    bal_tenant *from, *to;
    bal_id ids[COMMITS];
} scene;

static void scene_done(scene *self)
{
    bal_tenant_free(self->from);
    bal_tenant_free(self->to);
    bal_store_free(self->stores[0]);
    bal_store_free(self->stores[1]);
}

static void scene_init(scene *self)
{
    for (size_t i = 0; i < 2; i++)
        self->stores[i] = shared_store(shared_root(), 0);
    for (size_t i = 0; i < COMMITS; i++)
        self->ids[i] =
            shared_commit(self->stores[0], "acme", (float)i, ELEMENTS, "main");
    CHECK_OK(bal_tenant_open(&self->from, self->stores[0], "acme", &check_err));
    CHECK_OK(bal_tenant_open(&self->to, self->stores[1], "acme", &check_err));
}

static const char *const main_alone[] = { "main" };
static const bal_push_options main_ref = { .specs = main_alone, .count = 1 };

typedef struct told {
    size_t count;
    bal_id now;
    bool new;
    char text[64];
} told;

static int tell(void *ctx, const bal_move *move)
{
    told *self = ctx;

    self->count++;
    self->now = *move->now;
    self->new = !move->old;
    snprintf(self->text, sizeof(self->text), "%s %s", move->op, move->ref);
    return 0;
}

static void a_move_is_told_once_it_is_made(void)
{
    BAL_LOCAL(scene) self = { 0 };
    bal_push_options what = main_ref;
    bal_push_report report;
    told heard = { 0 };

    scene_init(&self);
    what.moved = tell;
    what.ctx = &heard;
    CHECK_OK(bal_push(self.from, self.to, &what, &report, &check_err));
    CHECK(heard.count == 1 && heard.new && !strcmp(heard.text, "push main"));
    CHECK(!memcmp(&heard.now, &self.ids[COMMITS - 1], sizeof(heard.now)));
    CHECK(report.commits == COMMITS && report.refs == 1);
    CHECK(report.bytes >= report.commits * ELEMENTS * sizeof(float) &&
          report.stored_bytes && report.blocks);

    CHECK_OK(bal_push(self.from, self.to, &what, &report, &check_err));
    CHECK(heard.count == 1 && !report.commits && !report.refs);
}

static void what_cannot_be_asked_for_is_refused(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_tenant) other = NULL;
    const bal_push_options none = { 0 };

    scene_init(&self);
    CHECK_OK(bal_tenant_open(&other, self.stores[1], "other", &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_push(self.from, other, &main_ref, NULL, &check_err));
    CHECK(strstr(check_err.text, "'other'") != NULL);
    CHECK_RC(BAL_EINVAL,
             bal_push(self.from, self.from, &main_ref, NULL, &check_err));
    CHECK_RC(BAL_EINVAL, bal_push(self.from, self.to, &none, NULL, &check_err));
    CHECK_RC(BAL_ENOTFOUND,
             bal_push(self.to, self.from, &main_ref, NULL, &check_err));
}

/* Stops at the n-th time that it is asked. */
static int stop(void *ctx, uint64_t done, uint64_t total)
{
    size_t *left = ctx;

    (void)done;
    (void)total;
    return !*left || !--*left;
}

static uint64_t commits_of(const bal_tenant *tenant)
{
    bal_stats stats;

    CHECK_OK(bal_stats_get(&stats, tenant->store, NULL, &check_err));
    return stats.commits;
}

static void one_that_is_stopped_goes_on(void)
{
    BAL_LOCAL(scene) self = { 0 };
    bal_push_report report;
    size_t left = 1;

    scene_init(&self);
    check_pass_a_tenth();
    bal_work_watch(self.stores[1]->work, stop, &left);
    int rc = bal_push(self.from, self.to, &main_ref, &report, &check_err);
    bal_work_watch(self.stores[1]->work, NULL, NULL);
    CHECK(rc == BAL_ECANCELLED);
    CHECK(commits_of(self.to) == report.commits && report.commits < COMMITS);

    uint64_t before = report.commits;
    CHECK_OK(bal_push(self.from, self.to, &main_ref, &report, &check_err));
    CHECK(before + report.commits == COMMITS && commits_of(self.to) == COMMITS);
}

static int count_fault(void *ctx, const char *kind, const char *what,
                       const char *detail, bal_error *err)
{
    size_t *count = ctx;

    (void)what;
    (void)detail;
    (void)err;
    *count += !strcmp(kind, "missing-proof");
    return 0;
}

static size_t proofs_missed(bal_graph *graph)
{
    size_t count = 0;

    CHECK_OK(bal_graph_check(graph, 0, count_fault, &count, &check_err));
    return count;
}

static void a_tombstone_that_names_itself_wants_no_proof(void)
{
    BAL_LOCAL(scene) self = { 0 };
    bal_tombstone stone = { .tenant = "acme", .kind = BAL_TOMB_COMMIT };
    bool forgotten = false;

    scene_init(&self);
    bal_graph *graph = self.stores[1]->graph;
    memset(&stone.id, 7, sizeof(stone.id));
    memset(&stone.attestation, 7, sizeof(stone.attestation));
    CHECK_OK(bal_graph_tombstone_put(graph, &stone, &check_err));
    CHECK_OK(bal_graph_forgotten(graph, "acme", BAL_TOMB_COMMIT, &stone.id,
                                 &forgotten, &check_err));
    CHECK(forgotten && !proofs_missed(graph));
    stone.attestation.bytes[0] ^= 1;
    CHECK_OK(bal_graph_tombstone_put(graph, &stone, &check_err));
    CHECK(proofs_missed(graph) == 1);
}

static const check_test tests[] = {
    { TEST(a_move_is_told_once_it_is_made) },
    { TEST(what_cannot_be_asked_for_is_refused) },
    { TEST(one_that_is_stopped_goes_on) },
    { TEST(a_tombstone_that_names_itself_wants_no_proof) },
};

CHECK_MAIN(tests)
