/* What views stand on, and what stands on what. */
#include <stdio.h>
#include <string.h>

#include "graph/grants.h"
#include "support/check.h"
#include "support/graphs.h"

#define DEEP 1000

static int join_input(void *ctx, const bal_input_row *input, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s/%s/%s ", input->tenant,
                          graphs_label(&input->commit),
                          graphs_label(&input->manifest));
}

static void inputs_are_told_in_their_order(void)
{
    static const char inputs[] = "acme/c2/m2 beta/c1/m1 acme/c2/m2 ";
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_id v1 = graphs_id("v1");

    graphs_view(graph, "acme", "v1", inputs);
    CHECK_OK(bal_graph_inputs(graph, graphs_tenant(graph, "acme"), &v1,
                              join_input, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), inputs));
    CHECK_OK(bal_graph_inputs(graph, graphs_tenant(graph, "beta"), &v1,
                              join_input, &text, &check_err));
    CHECK(text.len == strlen(inputs));
}

/* ---- who stands on it ---------------------------------------------------- */

static int join_view(void *ctx, const bal_dependent *view, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s:%s/%s ", view->tenant,
                          graphs_label(&view->commit),
                          graphs_label(&view->manifest));
}

/* Leaves a1, a2 of acme. A diamond over a1: v1 and v2, and v3 over both. v4 is
 * over a2. Of beta: w1 over a1, w2 over w1, w3 over acme's v3; w1 has two
 * commits. Of gamma: x1 over beta's second commit of w1. */
static bal_graph *family(const char *name)
{
    bal_graph *graph = graphs_open(name);
    static const struct {
        const char *tenant, *view, *commit, *inputs;
    } views[] = {
        { "acme", "v1", "cv1", "acme/ca1/a1" },
        { "acme", "v2", "cv2", "acme/ca1/a1 acme/ca2/a2" },
        { "acme", "v3", "cv3", "acme/cv1/v1 acme/cv2/v2" },
        { "acme", "v4", "cv4", "acme/ca2/a2" },
        { "beta", "w1", "cw1", "acme/ca1/a1" },
        { "beta", "w2", "cw2", "beta/cw1/w1" },
        { "beta", "w3", "cw3", "acme/cv3/v3" },
        { "gamma", "x1", "cx1", "beta/cw1b/w1" },
    };

    graphs_leaf(graph, "acme", "a1", "b1");
    graphs_leaf(graph, "acme", "a2", "b2");
    graphs_commit(graph, "acme", "ca1", "a1", NULL);
    graphs_commit(graph, "acme", "ca2", "a2", "ca1");
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        graphs_view(graph, views[i].tenant, views[i].view, views[i].inputs);
        graphs_commit(graph, views[i].tenant, views[i].commit, views[i].view,
                      NULL);
    }
    graphs_commit(graph, "beta", "cw1b", "w1", "cw1");
    return graph;
}

static void dependents_are_told_each_once_over_all_hops(void)
{
    static const struct {
        const char *name, *tenant, *commit, *found;
    } rows[] = {
        { "at the bottom", "acme", "ca1",
          "acme:cv1/v1 acme:cv2/v2 acme:cv3/v3 beta:cw1/w1 beta:cw2/w2 "
          "beta:cw3/w3 beta:cw1b/w1 gamma:cx1/x1 " },
        { "the other leaf", "acme", "ca2",
          "acme:cv2/v2 acme:cv3/v3 acme:cv4/v4 beta:cw3/w3 " },
        { "in the middle", "acme", "cv1", "acme:cv3/v3 beta:cw3/w3 " },
        { "at the top", "acme", "cv4", "" },
        { "one of two commits", "beta", "cw1", "beta:cw2/w2 " },
        { "the other of two", "beta", "cw1b", "gamma:cx1/x1 " },
        { "the same id of another tenant", "beta", "ca1", "" },
        { "any of a tenant, told by others", "acme", NULL,
          "beta:cw1/w1 beta:cw2/w2 beta:cw3/w3 beta:cw1b/w1 gamma:cx1/x1 " },
        { "any of the next one", "beta", NULL, "gamma:cx1/x1 " },
        { "any of the last", "gamma", NULL, "" },
        { "nobody", "nobody", NULL, "" },
    };
    BAL_OWN(bal_graph) graph = family(__func__);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_id id = graphs_id(rows[i].commit ? rows[i].commit : "none");
        check_row(rows[i].name);
        CHECK_OK(bal_graph_dependents(graph, rows[i].tenant,
                                      rows[i].commit ? &id : NULL, join_view,
                                      &text, &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].found));
    }
}

static void what_a_revocation_breaks_starts_at_the_grantee(void)
{
    static const struct {
        const char *name, *manifest, *grantee, *found;
    } rows[] = {
        { "a leaf", "a1", "beta",
          "beta:cw1/w1 beta:cw2/w2 beta:cw1b/w1 gamma:cx1/x1 " },
        { "a view", "v3", "beta", "beta:cw3/w3 " },
        { "all", NULL, "beta",
          "beta:cw1/w1 beta:cw2/w2 beta:cw3/w3 beta:cw1b/w1 gamma:cx1/x1 " },
        { "one that it does not use", "a2", "beta", "" },
        { "of who has none", NULL, "gamma", "" },
    };
    BAL_OWN(bal_graph) graph = family(__func__);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_id id = graphs_id(rows[i].manifest ? rows[i].manifest : "none");
        check_row(rows[i].name);
        CHECK_OK(bal_graph_dependents_granted(
            graph, "acme", rows[i].manifest ? &id : NULL, rows[i].grantee,
            join_view, &text, &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].found));
    }
}

/* ---- deep and round ------------------------------------------------------ */

static int count_view(void *ctx, const bal_dependent *view, bal_error *err)
{
    (void)view;
    (void)err;
    ++*(int *)ctx;
    return 0;
}

static int count_dependents(bal_graph *graph, const char *commit)
{
    bal_id id = graphs_id(commit);
    int count = 0;

    CHECK_OK(bal_graph_dependents(graph, "acme", &id, count_view, &count,
                                  &check_err));
    return count;
}

static void chains_and_ladders_a_thousand_deep_are_walked(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_tx) tx = { 0 };

    CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
    graphs_leaf(graph, "acme", "m0", "b1");
    graphs_leaf(graph, "acme", "n0", "b1");
    graphs_commit(graph, "acme", "cm0", "m0", NULL);
    graphs_commit(graph, "acme", "cn0", "n0", NULL);
    /* m and n both stand on the m and n before them: 2^1000 ways up. */
    for (int i = 1; i <= DEEP; i++) {
        char inputs[128], m[16], n[16], cm[16], cn[16];
        snprintf(inputs, sizeof(inputs), "acme/cm%d/m%d acme/cn%d/n%d", i - 1,
                 i - 1, i - 1, i - 1);
        snprintf(m, sizeof(m), "m%d", i);
        snprintf(n, sizeof(n), "n%d", i);
        snprintf(cm, sizeof(cm), "cm%d", i);
        snprintf(cn, sizeof(cn), "cn%d", i);
        graphs_view(graph, "acme", m, inputs);
        graphs_view(graph, "acme", n, inputs);
        graphs_commit(graph, "acme", cm, m, NULL);
        graphs_commit(graph, "acme", cn, n, NULL);
    }
    CHECK_OK(bal_tx_commit(&tx, &check_err));
    CHECK(count_dependents(graph, "cm0") == 2 * DEEP);
    CHECK(count_dependents(graph, "cn999") == 2);
}

static void views_that_name_themselves_are_walked_once(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);

    graphs_view(graph, "acme", "v1", "acme/c2/v2 acme/c1/v1");
    graphs_view(graph, "acme", "v2", "acme/c1/v1");
    graphs_commit(graph, "acme", "c1", "v1", NULL);
    graphs_commit(graph, "acme", "c2", "v2", NULL);
    CHECK(count_dependents(graph, "c1") == 2);
    CHECK(count_dependents(graph, "c2") == 2);
}

static const check_test tests[] = {
    { TEST(inputs_are_told_in_their_order) },
    { TEST(dependents_are_told_each_once_over_all_hops) },
    { TEST(what_a_revocation_breaks_starts_at_the_grantee) },
    { TEST(chains_and_ladders_a_thousand_deep_are_walked) },
    { TEST(views_that_name_themselves_are_walked_once) },
};

CHECK_MAIN(tests)
