/* Deletions that have begun, and copies that were made. */
#include <stdio.h>
#include <string.h>

#include "graph/forgets.h"
#include "support/check.h"
#include "support/graphs.h"

static int join_journal(void *ctx, const bal_journal_row *row, bal_error *err)
{
    if (!row->sealed)
        return bal_buf_format(ctx, err, "changed:%s%s ", row->tenant,
                              row->plan);
    return bal_buf_format(ctx, err, "%d:%s:%d:%s ", (int)row->number,
                          row->tenant, (int)row->state, row->plan);
}

static void check_journal(bal_graph *graph, const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bool any = !*want;

    check_row(want);
    CHECK_OK(bal_graph_journal(graph, join_journal, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
    CHECK_OK(bal_graph_journal_any(graph, &any, &check_err));
    CHECK(any == (*want != 0));
}

static void a_deletion_is_in_the_journal_until_it_is_done(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    int64_t first = 0;
    int64_t second = 0;

    check_journal(graph, "");
    CHECK_OK(bal_graph_journal_put(graph, "acme", "{}", &first, &check_err));
    CHECK_OK(
        bal_graph_journal_put(graph, "beta", "{\"a\":1}", &second, &check_err));
    CHECK(first != second);
    check_journal(graph, "1:acme:0:{} 2:beta:0:{\"a\":1} ");
    CHECK_OK(
        bal_graph_journal_state(graph, first, BAL_JOURNAL_REMOVED, &check_err));
    check_journal(graph, "1:acme:1:{} 2:beta:0:{\"a\":1} ");
    CHECK_OK(bal_graph_journal_state(graph, first, BAL_JOURNAL_SCRUBBED,
                                     &check_err));
    check_journal(graph, "1:acme:2:{} 2:beta:0:{\"a\":1} ");
    CHECK_OK(bal_graph_journal_done(graph, first, &check_err));
    check_journal(graph, "2:beta:0:{\"a\":1} ");
    CHECK_RC(BAL_ENOTFOUND, bal_graph_journal_state(
                                graph, first, BAL_JOURNAL_REMOVED, &check_err));
    CHECK_OK(bal_graph_journal_done(graph, second, &check_err));
    check_journal(graph, "");
}

static void a_plan_that_somebody_changed_is_told_as_such(void)
{
    static const char other_seal[] =
        "UPDATE journal SET seal = "
        "(SELECT seal FROM settings WHERE key = 'schema')";
    static const char *const changes[] = {
        "UPDATE journal SET plan = '{\"more\":1}'",
        "UPDATE journal SET tenant = 'beta'",
        "UPDATE journal SET state = 1",
        "UPDATE journal SET number = 7",
        "UPDATE journal SET seal = NULL",
        other_seal,
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char name[64];
        int64_t number = 0;
        int64_t other = 0;
        check_row(changes[i]);
        snprintf(name, sizeof(name), "changed-%zu", i);
        BAL_OWN(bal_graph) graph = graphs_open(name);
        CHECK_OK(
            bal_graph_journal_put(graph, "acme", "{}", &number, &check_err));
        graphs_meddle(name, changes[i]);
        CHECK_OK(
            bal_graph_journal_put(graph, "acme", "{}", &other, &check_err));
        check_journal(graph, other == 8 ? "changed: 8:acme:0:{} "
                                        : "changed: 2:acme:0:{} ");
        /* Nor does it become ours by the next step. */
        int rc = bal_graph_journal_state(graph, number, BAL_JOURNAL_REMOVED,
                                         &check_err);
        CHECK(rc == BAL_ECORRUPT || rc == BAL_ENOTFOUND);
    }
}

static void a_pending_deletion_is_told_as_such(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    int64_t number = 0;

    CHECK_OK(bal_graph_journal_put(graph, "acme", "{}", &number, &check_err));
    graphs_faults(&text, graph);
    CHECK(!strncmp(bal_buf_string(&text), "pending-deletion acme:1 ", 24));
    CHECK(strchr(bal_buf_string(&text), '\n') == text.data + text.len - 1);
}

/* ---- exports ------------------------------------------------------------- */

static int join_export(void *ctx, const bal_export_row *row, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s>%s@%d ", graphs_label(&row->commit),
                          row->path, (int)row->at);
}

static void check_exports(bal_graph *graph, const char *commit,
                          const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_id id = graphs_id(commit ? commit : "none");

    check_row(want);
    CHECK_OK(bal_graph_exports(graph, graphs_tenant(graph, "acme"),
                               commit ? &id : NULL, join_export, &text,
                               &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

static void put_export(bal_graph *graph, const char *tenant, const char *commit,
                       const char *path, int64_t at)
{
    const bal_export_row row = { graphs_id(commit), path, at };

    CHECK_OK(bal_graph_export_put(graph, graphs_tenant(graph, tenant), &row,
                                  &check_err));
}

static void exports_are_told_by_time_and_renewed(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    bal_id c1 = graphs_id("c1");

    put_export(graph, "acme", "c1", "/a", 10);
    put_export(graph, "acme", "c1", "/b", 11);
    put_export(graph, "acme", "c2", "/a", 12);
    put_export(graph, "beta", "c1", "/c", 13);
    check_exports(graph, NULL, "c1>/a@10 c1>/b@11 c2>/a@12 ");
    put_export(graph, "acme", "c1", "/a", 20);
    check_exports(graph, NULL, "c1>/b@11 c2>/a@12 c1>/a@20 ");
    check_exports(graph, "c1", "c1>/b@11 c1>/a@20 ");
    CHECK_OK(bal_graph_exports_forget(graph, graphs_tenant(graph, "acme"), &c1,
                                      &check_err));
    check_exports(graph, NULL, "c2>/a@12 ");
    CHECK_OK(bal_graph_exports_forget(graph, graphs_tenant(graph, "acme"), NULL,
                                      &check_err));
    check_exports(graph, NULL, "");
    BAL_LOCAL(bal_buf) text = { 0 };
    graphs_faults(&text, graph);
    CHECK(!text.len);
}

static const check_test tests[] = {
    { TEST(a_deletion_is_in_the_journal_until_it_is_done) },
    { TEST(a_plan_that_somebody_changed_is_told_as_such) },
    { TEST(a_pending_deletion_is_told_as_such) },
    { TEST(exports_are_told_by_time_and_renewed) },
};

CHECK_MAIN(tests)
