/* What goes with a commit or a tenant, and what stays. */
#include <stdio.h>
#include <string.h>

#include "graph/forgets.h"
#include "graph/proofs.h"
#include "support/check.h"
#include "support/graphs.h"

/* acme: c1 (m1: b1 b2) < c2 (m2: b2 b3) < c3 (m1) < c4 (m3: b4), and c5 (m2) on
 * c2 as well; m9 (b9) has no commit. main is at c4, side at c5. */
static bal_graph *family(const char *name)
{
    bal_graph *graph = graphs_open(name);

    graphs_leaf(graph, "acme", "m1", "b1 b2");
    graphs_leaf(graph, "acme", "m2", "b2 b3");
    graphs_leaf(graph, "acme", "m3", "b4");
    graphs_leaf(graph, "acme", "m9", "b9");
    graphs_leaf(graph, "beta", "m1", "b1 b2");
    graphs_commit(graph, "acme", "c1", "m1", NULL);
    graphs_commit(graph, "acme", "c2", "m2", "c1");
    graphs_commit(graph, "acme", "c3", "m1", "c2");
    graphs_commit(graph, "acme", "c4", "m3", "c3");
    graphs_commit(graph, "acme", "c5", "m2", "c2");
    graphs_commit(graph, "beta", "c1", "m1", NULL);
    CHECK_OK(graphs_move(graph, "acme", "main", NULL, "c3", "to three"));
    CHECK_OK(graphs_move(graph, "acme", "main", "c3", "c4", "to four"));
    CHECK_OK(graphs_move(graph, "acme", "side", NULL, "c5", "to five"));
    CHECK_OK(graphs_move(graph, "beta", "main", NULL, "c1", "to one"));
    return graph;
}

/* A word for each thing told, sorted by nothing: ids come in no order of
 * names. */
static bool has(const bal_buf *text, const char *word)
{
    return strstr(bal_buf_string(text), word) != NULL;
}

static int join_block(void *ctx, const bal_block_row *row, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s ", graphs_label(&row->id));
}

static int join_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s ", graphs_label(id));
}

/* ---- planning -------------------------------------------------------------
 */

static void blocks_that_nothing_else_uses_are_doomed(void)
{
    static const struct {
        const char *gone[3];
        const char *found[5];
    } rows[] = {
        { { "m1" }, { "b1 " } },
        { { "m2" }, { "b3 " } },
        { { "m1", "m2" }, { "b1 ", "b2 ", "b3 " } },
        { { "m2", "m1", "m1" }, { "b1 ", "b2 ", "b3 " } },
        { { "m3", "none" }, { "b4 " } },
        { { "none" }, { NULL } },
        { { NULL }, { "b1 ", "b2 ", "b3 ", "b4 ", "b9 " } },
    };
    BAL_OWN(bal_graph) graph = family(__func__);
    int64_t acme = graphs_tenant(graph, "acme");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_id gone[3];
        size_t count = 0;
        size_t want = 0;
        check_row(rows[i].gone[0]);
        for (; count < 3 && rows[i].gone[count]; count++)
            gone[count] = graphs_id(rows[i].gone[count]);
        CHECK_OK(bal_graph_doomed(graph, acme, count ? gone : NULL, count,
                                  join_block, &text, &check_err));
        for (; want < 5 && rows[i].found[want]; want++)
            CHECK(has(&text, rows[i].found[want]));
        CHECK(text.len == 3 * want);
    }
}

/* Rows that are gone, that lead nowhere and that are another tenant's keep
 * nothing; m9 keeps b9 although no commit has it. */
static void blocks_that_nothing_uses_are_doomed(void)
{
    static const struct {
        const char *change, *found;
    } rows[] = {
        { "DELETE FROM uses WHERE manifest = 3", "b4 " },
        { "DELETE FROM uses WHERE manifest = 4", "b9 " },
        { "UPDATE uses SET manifest = 77 "
          "WHERE manifest = 4",
          "b9 " },
        { "UPDATE uses SET manifest = -1 "
          "WHERE manifest = 4",
          "b9 " },
        { "UPDATE uses SET manifest = 5 WHERE manifest = 4", "b9 " },
    };
    static const char *const gone[] = { "none", "m3" };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        check_row(rows[i].change);
        snprintf(name, sizeof(name), "unused-%zu", i);
        BAL_OWN(bal_graph) graph = family(name);
        graphs_meddle(name, rows[i].change);
        for (size_t n = 0; n < 2; n++) {
            BAL_LOCAL(bal_buf) text = { 0 };
            bal_id id = graphs_id(gone[n]);
            CHECK_OK(bal_graph_doomed(graph, graphs_tenant(graph, "acme"), &id,
                                      1, join_block, &text, &check_err));
            CHECK(has(&text, rows[i].found));
            CHECK(n == 0 || has(&text, "b4 "));
            CHECK(text.len == (n && rows[i].found[1] == '9' ? 6u : 3u));
        }
    }
}

static int join_kept(void *ctx, const bal_id *block, const bal_id *by,
                     bal_error *err)
{
    return bal_buf_format(ctx, err, "%s:%s ", graphs_label(block),
                          graphs_label(by));
}

static void what_is_kept_is_told_with_who_keeps_it(void)
{
    static const struct {
        const char *manifest, *found;
    } rows[] = {
        { "m1", "b2:m2 " },
        { "m2", "b2:m1 " },
        { "m3", "" },
        { "none", "" },
    };
    BAL_OWN(bal_graph) graph = family(__func__);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        bal_id id = graphs_id(rows[i].manifest);
        check_row(rows[i].manifest);
        CHECK_OK(bal_graph_kept(graph, graphs_tenant(graph, "acme"), &id,
                                join_kept, &text, &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].found));
    }
}

static int join_ref(void *ctx, const char *name, const bal_id *commit,
                    bal_error *err)
{
    return bal_buf_format(ctx, err, "%s=%s ", name, graphs_label(commit));
}

static void commits_of_a_manifest_and_refs_at_a_commit_are_told(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    bal_id m1 = graphs_id("m1");
    bal_id c4 = graphs_id("c4");

    CHECK_OK(
        bal_graph_commits_of(graph, acme, &m1, join_id, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "c1 c3 "));
    bal_buf_clear(&text);
    CHECK_OK(graphs_move(graph, "acme", "also", NULL, "c4", ""));
    CHECK_OK(bal_graph_refs_at(graph, acme, &c4, join_ref, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "also=c4 main=c4 "));
}

/* ---- one commit -----------------------------------------------------------
 */

static int forget(bal_graph *graph, const char *commit, bool *too)
{
    bal_id id = graphs_id(commit);

    return bal_graph_commit_forget(graph, graphs_tenant(graph, "acme"), &id,
                                   too, &check_err);
}

static int join_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s<%s(%s) ", graphs_label(&row->id),
                          row->has_parent ? graphs_label(&row->parent) : "-",
                          row->has_made_on ? graphs_label(&row->made_on) : "-");
}

static int join_move(void *ctx, const bal_move_row *row, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s:%s>%s:%s ", row->ref,
                          row->has_old ? graphs_label(&row->old) : "-",
                          row->has_now ? graphs_label(&row->now) : "-",
                          row->message);
}

static void check_commits(bal_graph *graph, const char *want)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    check_row(want);
    CHECK_OK(bal_graph_commits(graph, graphs_tenant(graph, "acme"), join_commit,
                               &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), want));
}

static void children_go_on_from_the_parent_of_what_is_forgotten(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    bool too = true;

    CHECK_OK(forget(graph, "c2", &too));
    CHECK(!too);
    check_commits(graph, "c1<-(-) c3<c1(c2) c4<c3(c3) c5<c1(c2) ");
    CHECK_OK(forget(graph, "c1", &too));
    CHECK(!too);
    check_commits(graph, "c3<-(c2) c4<c3(c3) c5<-(c2) ");
    CHECK_RC(BAL_ENOTFOUND, forget(graph, "c1", &too));
}

static void a_manifest_goes_with_its_last_commit(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) body = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    bal_id m1 = graphs_id("m1");
    bal_id b1 = graphs_id("b1");
    bool too = true;
    bool there = false;

    CHECK_OK(forget(graph, "c1", &too));
    CHECK(!too);
    CHECK_OK(graphs_move(graph, "acme", "main", "c4", NULL, ""));
    CHECK_OK(forget(graph, "c3", &too));
    CHECK(too);
    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_manifest(graph, acme, &m1, NULL, &body, &check_err));
    CHECK_OK(bal_graph_block(graph, acme, &b1, NULL, &there, &check_err));
    CHECK(there);
    CHECK_OK(bal_graph_blocks_forget(graph, acme, &b1, 1, &check_err));
    CHECK_OK(bal_graph_blocks_forget(graph, acme, &b1, 1, &check_err));
    CHECK_OK(bal_graph_block(graph, acme, &b1, NULL, &there, &check_err));
    CHECK(!there);
    CHECK_OK(bal_graph_manifest(graph, graphs_tenant(graph, "beta"), &m1, NULL,
                                &body, &check_err));
}

static void a_commit_that_a_ref_is_at_is_not_forgotten(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    bool too = true;

    CHECK_RC(BAL_ECONFLICT, forget(graph, "c4", &too));
    CHECK(strstr(check_err.text, "ref 'main'"));
    CHECK_OK(graphs_move(graph, "acme", "main", "c4", "c3", "back"));
    CHECK_OK(forget(graph, "c4", &too));
    CHECK(too);
}

static void moves_to_what_is_forgotten_lose_their_messages(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    bool too = true;

    CHECK_OK(graphs_move(graph, "acme", "main", "c4", "c3", "back"));
    CHECK_OK(forget(graph, "c4", &too));
    CHECK_OK(bal_graph_reflog(graph, graphs_tenant(graph, "acme"), "main",
                              join_move, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text),
                  "main:c4>c3:back main:c3>c4: main:->c3:to three "));
}

/* By a reset to it, or to a place by its name. */
static void the_name_of_a_ref_that_went_is_in_no_other_move(void)
{
    static const struct {
        const char *op, *message;
        bool stays;
    } rows[] = {
        { "reset", "gone", false },    { "reset", "gone~2", false },
        { "reset", "gone^", false },   { "reset", "gone@{1}", false },
        { "reset", "goner", true },    { "reset", "gone-2", true },
        { "reset", "my gone", true },  { "reset", "", true },
        { "commit", "gone", true },    { "reset", "GONE", true },
        { "reset", "gone.x~1", true }, { "reset", "gon", true },
    };
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) want = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    size_t count = sizeof(rows) / sizeof(rows[0]);

    for (size_t i = 0; i < count; i++) {
        const bal_move_row move = { .ref = "side",
                                    .op = rows[i].op,
                                    .old = graphs_id(i % 2 ? "c4" : "c5"),
                                    .now = graphs_id(i % 2 ? "c5" : "c4"),
                                    .has_old = true,
                                    .has_now = true,
                                    .message = rows[i].message };
        CHECK_OK(bal_graph_move(graph, acme, &move, &check_err));
    }
    for (size_t i = count; i--;)
        CHECK_OK(bal_buf_format(&want, &check_err, "side:%s>%s:%s ",
                                i % 2 ? "c4" : "c5", i % 2 ? "c5" : "c4",
                                rows[i].stays ? rows[i].message : ""));
    CHECK_OK(bal_buf_text(&want, "side:->c5:to five ", &check_err));
    CHECK_OK(bal_graph_moves_forget(graph, acme, "gone", &check_err));
    CHECK_OK(
        bal_graph_reflog(graph, acme, "side", join_move, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), bal_buf_string(&want)));
    bal_buf_clear(&text);
    graphs_faults(&text, graph);
    CHECK(!text.len);
}

static void a_parent_may_be_missed_once_it_is_in_journal_or_tombstone(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_id c2 = graphs_id("c2");
    char hex[BAL_ID_HEX + 1], plan[128];
    int64_t number = 0;
    bool too = true;
    const bal_proof_row proof = {
        .attestation = { { 1 } },
        .tenant = "acme",
        .envelope = { "{}", 2 },
    };
    const bal_tombstone stone = { "acme", BAL_TOMB_COMMIT, c2,
                                  proof.attestation };

    CHECK_OK(forget(graph, "c2", &too));
    graphs_faults(&text, graph);
    CHECK(has(&text, "wrong-parent acme:"));
    bal_buf_clear(&text);
    bal_id_hex(hex, &c2);
    snprintf(plan, sizeof(plan), "{\"commits\":[\"%s\"]}", hex);
    CHECK_OK(bal_graph_journal_put(graph, "acme", plan, &number, &check_err));
    graphs_faults(&text, graph);
    CHECK(has(&text, "pending-deletion") && !has(&text, "wrong-parent"));
    bal_buf_clear(&text);
    CHECK_OK(bal_graph_journal_done(graph, number, &check_err));
    CHECK_OK(bal_graph_proof_put(graph, &proof, &check_err));
    CHECK_OK(bal_graph_tombstone_put(graph, &stone, &check_err));
    graphs_faults(&text, graph);
    CHECK(!text.len);
}

/* ---- a tenant -------------------------------------------------------------
 */

static int join_name(void *ctx, const char *name, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s ", name);
}

static int join_export(void *ctx, const bal_export_row *row, bal_error *err)
{
    return bal_buf_text(ctx, row->path, err);
}

static int join_grant(void *ctx, const bal_grant_info *grant, bal_error *err)
{
    return bal_buf_text(ctx, grant->owner, err);
}

static int join_intended(void *ctx, const char *session, const char *tenant,
                         const bal_id *id, bal_error *err)
{
    (void)tenant;
    (void)id;
    return bal_buf_text(ctx, session, err);
}

static void check_nothing_else(bal_graph *graph, int64_t acme)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(
        bal_graph_exports(graph, acme, NULL, join_export, &text, &check_err));
    CHECK_OK(bal_graph_grants(graph, "acme", join_grant, &text, &check_err));
    CHECK_OK(bal_graph_intended(graph, NULL, false, join_intended, &text,
                                &check_err));
    CHECK(!text.len);
}

static void a_tenant_is_forgotten_but_for_its_blocks_and_number(void)
{
    BAL_OWN(bal_graph) graph = family(__func__);
    BAL_LOCAL(bal_buf) text = { 0 };
    int64_t acme = graphs_tenant(graph, "acme");
    const bal_grant_info grant = { .owner = "beta",
                                   .grantee = "acme",
                                   .manifest = graphs_id("m1"),
                                   .commit = graphs_id("c1") };
    const bal_export_row copy = { graphs_id("c1"), "/copy", 6 };
    bal_id b10 = graphs_id("b10");
    bal_stats stats;

    CHECK_OK(bal_graph_grant(graph, graphs_tenant(graph, "beta"), &grant,
                             &check_err));
    CHECK_OK(bal_graph_export_put(graph, acme, &copy, &check_err));
    CHECK_OK(bal_graph_intend(graph, acme, "s", &b10, 1, &check_err));
    CHECK_OK(bal_graph_tenant_forget(graph, acme, &check_err));
    CHECK_OK(bal_graph_stats(graph, acme, &stats, &check_err));
    CHECK(!stats.commits && !stats.manifests && stats.blocks == 5);
    CHECK_OK(bal_graph_refs(graph, acme, join_ref, &text, &check_err));
    CHECK_OK(bal_graph_reflog(graph, acme, NULL, join_move, &text, &check_err));
    CHECK_OK(bal_graph_unused(graph, acme, join_block, &text, &check_err));
    CHECK(text.len == 15);
    CHECK(graphs_tenant(graph, "acme") == acme);
    check_nothing_else(graph, acme);
    bal_buf_clear(&text);
    CHECK_OK(bal_graph_tenants(graph, join_name, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "beta "));
    bal_buf_clear(&text);
    CHECK_OK(bal_graph_tenants_all(graph, join_name, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "acme beta "));
    bal_buf_clear(&text);
    graphs_faults(&text, graph);
    CHECK(!text.len);
}

static const check_test tests[] = {
    { TEST(blocks_that_nothing_else_uses_are_doomed) },
    { TEST(blocks_that_nothing_uses_are_doomed) },
    { TEST(what_is_kept_is_told_with_who_keeps_it) },
    { TEST(commits_of_a_manifest_and_refs_at_a_commit_are_told) },
    { TEST(children_go_on_from_the_parent_of_what_is_forgotten) },
    { TEST(a_manifest_goes_with_its_last_commit) },
    { TEST(a_commit_that_a_ref_is_at_is_not_forgotten) },
    { TEST(moves_to_what_is_forgotten_lose_their_messages) },
    { TEST(the_name_of_a_ref_that_went_is_in_no_other_move) },
    { TEST(a_parent_may_be_missed_once_it_is_in_journal_or_tombstone) },
    { TEST(a_tenant_is_forgotten_but_for_its_blocks_and_number) },
};

CHECK_MAIN(tests)
