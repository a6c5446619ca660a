/* Grants: who may build on what, and that it is taken back; the epoch. */
#include <stdio.h>
#include <string.h>

#include "graph/forgets.h"
#include "graph/grants.h"
#include "support/check.h"
#include "support/graphs.h"

static void give(bal_graph *graph, const char *owner, const char *grantee,
                 const char *manifest, int64_t at)
{
    const bal_grant_info info = {
        .owner = owner,
        .grantee = grantee,
        .manifest = graphs_id(manifest),
        .commit = graphs_id("c1"),
        .created_at = at,
    };

    CHECK_OK(
        bal_graph_grant(graph, graphs_tenant(graph, owner), &info, &check_err));
}

/* manifest NULL: all. How many were live. */
static int take(bal_graph *graph, const char *owner, const char *grantee,
                const char *manifest, int64_t at)
{
    bal_id id = graphs_id(manifest ? manifest : "none");
    uint64_t revoked = 99;

    CHECK_OK(bal_graph_revoke(graph, graphs_tenant(graph, owner),
                              manifest ? &id : NULL, grantee, at, &revoked,
                              &check_err));
    return (int)revoked;
}

static bool live(bal_graph *graph, const char *owner, const char *grantee,
                 const char *manifest)
{
    bal_id id = graphs_id(manifest);
    bool found = false;

    CHECK_OK(bal_graph_granted(graph, owner, &id, grantee, &found, &check_err));
    return found;
}

static int join_grant(void *ctx, const bal_grant_info *grant, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s>%s:%s/%s@%d-%d ", grant->owner,
                          grant->grantee, graphs_label(&grant->manifest),
                          graphs_label(&grant->commit), (int)grant->created_at,
                          (int)grant->revoked_at);
}

static void check_grants(bal_graph *graph, const char *tenant, const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    check_row(want);
    CHECK_OK(bal_graph_grants(graph, tenant, join_grant, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

static void a_grant_is_live_until_revoked_and_again_when_given_again(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);

    CHECK(!live(graph, "acme", "beta", "m1"));
    give(graph, "acme", "beta", "m1", 10);
    CHECK(live(graph, "acme", "beta", "m1"));
    CHECK(take(graph, "acme", "beta", "m1", 20) == 1);
    CHECK(!live(graph, "acme", "beta", "m1"));
    CHECK(take(graph, "acme", "beta", "m1", 25) == 0);
    check_grants(graph, "acme", "acme>beta:m1/c1@10-20 ");
    give(graph, "acme", "beta", "m1", 30);
    CHECK(live(graph, "acme", "beta", "m1"));
    check_grants(graph, "beta", "acme>beta:m1/c1@30-0 ");
    give(graph, "acme", "beta", "m1", 40);
    check_grants(graph, "beta", "acme>beta:m1/c1@40-0 ");
}

static void a_grant_is_of_one_manifest_for_one_grantee(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);

    give(graph, "acme", "beta", "m1", 10);
    CHECK(!live(graph, "acme", "beta", "m2"));
    CHECK(!live(graph, "acme", "gamma", "m1"));
    CHECK(!live(graph, "beta", "acme", "m1"));
    CHECK(!live(graph, "acme", "bet", "m1"));
    CHECK(!live(graph, "nobody", "beta", "m1"));
}

static void revoking_all_takes_what_is_live_from_one_grantee(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);

    give(graph, "acme", "beta", "m1", 10);
    give(graph, "acme", "beta", "m2", 11);
    give(graph, "acme", "beta", "m3", 12);
    give(graph, "acme", "gamma", "m1", 13);
    give(graph, "beta", "acme", "m4", 14);
    CHECK(take(graph, "acme", "beta", "m2", 20) == 1);
    CHECK(take(graph, "acme", "beta", NULL, 30) == 2);
    CHECK(!live(graph, "acme", "beta", "m1"));
    CHECK(live(graph, "acme", "gamma", "m1"));
    CHECK(live(graph, "beta", "acme", "m4"));
    check_grants(graph, "beta",
                 "beta>acme:m4/c1@14-0 acme>beta:m1/c1@10-30 "
                 "acme>beta:m2/c1@11-20 acme>beta:m3/c1@12-30 ");
    check_grants(graph, "gamma", "acme>gamma:m1/c1@13-0 ");
    check_grants(graph, "delta", "");
}

/* acme has c1 and c2 of m1, c3 of m2; beta is granted m1. */
static bal_graph *shared(const char *name)
{
    bal_graph *graph = graphs_open(name);

    graphs_leaf(graph, "acme", "m1", "b1");
    graphs_leaf(graph, "acme", "m2", "b2");
    graphs_commit(graph, "acme", "c1", "m1", NULL);
    graphs_commit(graph, "acme", "c2", "m1", "c1");
    graphs_commit(graph, "acme", "c3", "m2", "c2");
    CHECK_OK(graphs_move(graph, "acme", "main", NULL, "c2", ""));
    CHECK_OK(graphs_move(graph, "acme", "secret", NULL, "c3", ""));
    give(graph, "acme", "beta", "m1", 10);
    return graph;
}

static void a_grantee_sees_refs_of_what_is_granted_and_nothing_else(void)
{
    static const struct {
        const char *name, *owner, *grantee, *ref, *found;
    } rows[] = {
        { "granted", "acme", "beta", "main", "c2" },
        { "not granted", "acme", "beta", "secret", NULL },
        { "no such ref", "acme", "beta", "none", NULL },
        { "another grantee", "acme", "gamma", "main", NULL },
        { "no such owner", "nobody", "beta", "main", NULL },
    };
    BAL_OWN(bal_graph) graph = shared(__func__);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_id id;
        bool there = !rows[i].found;
        check_row(rows[i].name);
        CHECK_OK(bal_graph_granted_ref(graph, rows[i].owner, rows[i].grantee,
                                       rows[i].ref, &id, &there, &check_err));
        CHECK(there == (rows[i].found != NULL));
        CHECK(!there || !strcmp(graphs_label(&id), rows[i].found));
    }
    CHECK(take(graph, "acme", "beta", "m1", 20) == 1);
    bal_id id;
    bool there = true;
    CHECK_OK(bal_graph_granted_ref(graph, "acme", "beta", "main", &id, &there,
                                   &check_err));
    CHECK(!there);
}

static int count_id(void *ctx, const bal_id *id, bal_error *err)
{
    (void)id;
    (void)err;
    ++*(int *)ctx;
    return 0;
}

static void a_grantee_finds_by_prefix_what_is_granted_and_nothing_else(void)
{
    static const struct {
        const char *commit;
        size_t digits;
        int code, count;
    } rows[] = {
        { "c1", 64, 0, 1 },         { "c1", 4, 0, 1 },
        { "c2", 9, 0, 1 },          { "c3", 64, 0, 0 },
        { "c3", 4, 0, 0 },          { "nothing", 12, 0, 0 },
        { "c1", 3, BAL_EINVAL, 0 }, { "c1", 0, BAL_EINVAL, 0 },
    };
    BAL_OWN(bal_graph) graph = shared(__func__);
    int all = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char hex[BAL_ID_HEX + 1];
        bal_id id = graphs_id(rows[i].commit);
        int found = 0;
        check_row(rows[i].commit);
        bal_id_hex(hex, &id);
        hex[rows[i].digits] = 0;
        CHECK_RC(rows[i].code,
                 bal_graph_granted_prefix(graph, "acme", "beta", hex, count_id,
                                          &found, &check_err));
        CHECK(found == rows[i].count);
    }
    CHECK_RC(BAL_EINVAL,
             bal_graph_granted_prefix(graph, "acme", "beta", "not hex",
                                      count_id, &all, &check_err));
}

static void forgetting_a_manifest_takes_its_grants_and_tells_the_live(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) told = { 0 };
    bal_id m1 = graphs_id("m1");

    give(graph, "acme", "beta", "m1", 10);
    give(graph, "acme", "gamma", "m1", 11);
    give(graph, "acme", "beta", "m2", 12);
    give(graph, "beta", "acme", "m1", 13);
    CHECK(take(graph, "acme", "beta", "m1", 20) == 1);
    CHECK_OK(bal_graph_grants_forget(graph, "acme", &m1, join_grant, &told,
                                     &check_err));
    CHECK(!strcmp(bal_buf_string(&told), "acme>gamma:m1/c1@11-0 "));
    check_grants(graph, "acme", "acme>beta:m2/c1@12-0 beta>acme:m1/c1@13-0 ");
}

static void forgetting_a_tenant_takes_the_grants_it_gave_and_got(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) told = { 0 };

    give(graph, "acme", "beta", "m1", 10);
    give(graph, "beta", "acme", "m2", 11);
    give(graph, "beta", "gamma", "m3", 12);
    CHECK_OK(bal_graph_grants_forget(graph, "acme", NULL, join_grant, &told,
                                     &check_err));
    CHECK(!strcmp(bal_buf_string(&told),
                  "acme>beta:m1/c1@10-0 beta>acme:m2/c1@11-0 "));
    check_grants(graph, "acme", "");
    check_grants(graph, "beta", "beta>gamma:m3/c1@12-0 ");
}

/* ---- the epoch ----------------------------------------------------------- */

static int take_epoch(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)err;
    *(uint64_t *)ctx = row->epoch;
    return 0;
}

static uint64_t epoch_of(bal_graph *graph, const char *commit)
{
    bal_id id = graphs_id(commit);
    uint64_t epoch = 99;

    CHECK_OK(bal_graph_commit(graph, graphs_tenant(graph, "acme"), &id,
                              take_epoch, &epoch, &check_err));
    return epoch;
}

static void commits_carry_the_epoch_they_were_made_in(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    uint64_t epoch = 99;

    CHECK_OK(bal_graph_epoch(graph, &epoch, &check_err));
    CHECK(epoch == 0);
    graphs_leaf(graph, "acme", "m1", "b1");
    graphs_commit(graph, "acme", "c1", "m1", NULL);
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
        CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
        CHECK(epoch == 1);
        CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
        CHECK(epoch == 2);
        CHECK_OK(bal_tx_commit(&tx, &check_err));
    }
    graphs_commit(graph, "acme", "c2", "m1", "c1");
    CHECK(epoch_of(graph, "c1") == 0 && epoch_of(graph, "c2") == 2);
}

static void an_epoch_that_was_not_committed_did_not_begin(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    uint64_t epoch = 99;

    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
        CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
    }
    CHECK_OK(bal_graph_epoch(graph, &epoch, &check_err));
    CHECK(epoch == 0);
}

static const check_test tests[] = {
    { TEST(a_grant_is_live_until_revoked_and_again_when_given_again) },
    { TEST(a_grant_is_of_one_manifest_for_one_grantee) },
    { TEST(revoking_all_takes_what_is_live_from_one_grantee) },
    { TEST(a_grantee_sees_refs_of_what_is_granted_and_nothing_else) },
    { TEST(a_grantee_finds_by_prefix_what_is_granted_and_nothing_else) },
    { TEST(forgetting_a_manifest_takes_its_grants_and_tells_the_live) },
    { TEST(forgetting_a_tenant_takes_the_grants_it_gave_and_got) },
    { TEST(commits_carry_the_epoch_they_were_made_in) },
    { TEST(an_epoch_that_was_not_committed_did_not_begin) },
};

CHECK_MAIN(tests)
