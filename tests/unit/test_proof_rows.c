/* The log of proofs, tombstones, and what is there again. */
#include <string.h>

#include "graph/forgets.h"
#include "graph/grants.h"
#include "graph/proofs.h"
#include "support/check.h"
#include "support/graphs.h"

static bal_sha256 hash(unsigned first, unsigned second)
{
    return (bal_sha256){ { (uint8_t)first, (uint8_t)second } };
}

static bal_proof_row proof(unsigned n, const char *tenant)
{
    return (bal_proof_row){
        .attestation = hash(0xaa, n),
        .index = n,
        .leaf = hash(0x1e, n),
        .tenant = tenant,
        .envelope = { "{\"e\":1}", 7 },
        .checkpoint = n % 2 ? "signed\n" : NULL,
        .epoch = n + 1,
        .completed_at = 100 + n,
    };
}

/* A graph at epoch 9, with proofs 0 … count - 1, of acme and beta in turn. */
static bal_graph *with_proofs(const char *name, unsigned count)
{
    bal_graph *graph = graphs_open(name);
    uint64_t epoch = 0;

    CHECK_OK(bal_graph_set(graph, "trusted_keys", "k", &check_err));
    for (unsigned i = 0; i < 9; i++)
        CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
    for (unsigned n = 0; n < count; n++) {
        bal_proof_row row = proof(n, n % 2 ? "beta" : "acme");
        CHECK_OK(bal_graph_proof_put(graph, &row, &check_err));
    }
    return graph;
}

static int join_proof(void *ctx, const bal_proof_row *row, bal_error *err)
{
    return bal_buf_format(
        ctx, err, "%d:%s:%d:%.*s:%s:%d:%d ", (int)row->index, row->tenant,
        row->leaf.bytes[1], (int)row->envelope.len,
        (const char *)row->envelope.data, row->checkpoint ? "signed" : "-",
        (int)row->epoch, (int)row->completed_at);
}

static void proofs_are_told_in_the_order_of_the_log(void)
{
    static const struct {
        const char *tenant, *found;
    } rows[] = {
        { NULL, "0:acme:0:{\"e\":1}:-:1:100 1:beta:1:{\"e\":1}:signed:2:101 "
                "2:acme:2:{\"e\":1}:-:3:102 " },
        { "acme", "0:acme:0:{\"e\":1}:-:1:100 2:acme:2:{\"e\":1}:-:3:102 " },
        { "none", "" },
    };
    BAL_OWN(bal_graph) graph = with_proofs(__func__, 3);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        check_row(rows[i].tenant);
        CHECK_OK(bal_graph_proofs(graph, rows[i].tenant, join_proof, &text,
                                  &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].found));
    }
    BAL_LOCAL(bal_buf) one = { 0 };
    bal_sha256 attestation = hash(0xaa, 1);
    CHECK_OK(
        bal_graph_proof(graph, &attestation, join_proof, &one, &check_err));
    CHECK(!strcmp(bal_buf_string(&one), "1:beta:1:{\"e\":1}:signed:2:101 "));
    attestation = hash(0xab, 1);
    CHECK_RC(BAL_ENOTFOUND, bal_graph_proof(graph, &attestation, join_proof,
                                            &one, &check_err));
}

static void a_proof_is_appended_at_the_end_and_once(void)
{
    BAL_OWN(bal_graph) graph = with_proofs(__func__, 2);
    uint64_t size = 0;

    CHECK_OK(bal_graph_log_size(graph, &size, &check_err));
    CHECK(size == 2);
    for (unsigned n = 0; n < 5; n++) {
        bal_proof_row row = proof(7, "acme");
        row.index = n;
        if (n != 2)
            CHECK_RC(BAL_ECONFLICT,
                     bal_graph_proof_put(graph, &row, &check_err));
    }
    bal_proof_row again = proof(1, "acme");
    again.index = 2;
    CHECK_RC(BAL_ECONFLICT, bal_graph_proof_put(graph, &again, &check_err));
    again.attestation = hash(0xaa, 2);
    CHECK_OK(bal_graph_proof_put(graph, &again, &check_err));
    CHECK_OK(bal_graph_log_size(graph, &size, &check_err));
    CHECK(size == 3);
}

static void leaves_are_given_without_a_gap_or_not_at_all(void)
{
    static const struct {
        const char *name, *sql;
        uint64_t size;
        int code;
    } rows[] = {
        { "none", NULL, 0, 0 },
        { "some", NULL, 2, 0 },
        { "all", NULL, 4, 0 },
        { "more than there are", NULL, 5, BAL_ECORRUPT },
        { "without the first", "DELETE FROM proofs WHERE position = 0", 4,
          BAL_ECORRUPT },
        { "without one between", "DELETE FROM proofs WHERE position = 2", 4,
          BAL_ECORRUPT },
        { "before the gap", "DELETE FROM proofs WHERE position = 2", 2, 0 },
        { "without the last", "DELETE FROM proofs WHERE position = 3", 4,
          BAL_ECORRUPT },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) leaves = { 0 };
        check_row(rows[i].name);
        BAL_OWN(bal_graph) graph = with_proofs(rows[i].name, 4);
        if (rows[i].sql)
            graphs_meddle(rows[i].name, rows[i].sql);
        CHECK_RC(rows[i].code, bal_graph_log_leaves(graph, rows[i].size,
                                                    &leaves, &check_err));
        if (rows[i].code)
            continue;
        CHECK(leaves.len == rows[i].size * sizeof(bal_sha256));
        for (unsigned n = 0; n < rows[i].size; n++) {
            bal_sha256 want = hash(0x1e, n);
            CHECK(!memcmp(leaves.data + n * sizeof(want), &want, sizeof(want)));
        }
    }
}

static void a_gap_in_the_log_is_told(void)
{
    BAL_OWN(bal_graph) graph = with_proofs(__func__, 3);
    BAL_LOCAL(bal_buf) text = { 0 };

    graphs_faults(&text, graph);
    CHECK(!text.len);
    graphs_meddle(__func__, "DELETE FROM proofs WHERE position = 1");
    graphs_faults(&text, graph);
    CHECK(!strncmp(bal_buf_string(&text), "log-gap acme:aa02", 17));
}

/* ---- tombstones ---------------------------------------------------------- */

static bool forgotten(bal_graph *graph, const char *tenant, bal_tomb kind,
                      const char *label)
{
    bal_id id = graphs_id(label);
    bool told = false;

    CHECK_OK(bal_graph_forgotten(graph, tenant, kind, &id, &told, &check_err));
    return told;
}

static void bury(bal_graph *graph, bal_tomb kind, const char *label, unsigned n)
{
    const bal_tombstone stone = { "acme", kind, graphs_id(label),
                                  hash(0xaa, n) };

    CHECK_OK(bal_graph_tombstone_put(graph, &stone, &check_err));
}

static void what_was_forgotten_is_told_from_what_never_was(void)
{
    BAL_OWN(bal_graph) graph = with_proofs(__func__, 2);
    BAL_LOCAL(bal_buf) text = { 0 };

    bury(graph, BAL_TOMB_COMMIT, "c1", 0);
    bury(graph, BAL_TOMB_COMMIT, "c1", 1);
    bury(graph, BAL_TOMB_COMMIT, "c1", 1);
    bury(graph, BAL_TOMB_MANIFEST, "m1", 0);
    CHECK(forgotten(graph, "acme", BAL_TOMB_COMMIT, "c1"));
    CHECK(forgotten(graph, "acme", BAL_TOMB_MANIFEST, "m1"));
    CHECK(!forgotten(graph, "acme", BAL_TOMB_MANIFEST, "c1"));
    CHECK(!forgotten(graph, "beta", BAL_TOMB_COMMIT, "c1"));
    CHECK(!forgotten(graph, "acme", BAL_TOMB_COMMIT, "c2"));
    graphs_faults(&text, graph);
    CHECK(!text.len);
    bury(graph, BAL_TOMB_COMMIT, "c2", 7);
    graphs_faults(&text, graph);
    CHECK(!strncmp(bal_buf_string(&text), "missing-proof acme:", 19));
}

static void what_a_plan_names_is_forgotten_already(void)
{
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    char hex[BAL_ID_HEX + 1];
    char plan[128];
    bal_id id = graphs_id("c1");
    int64_t number = 0;

    bal_id_hex(hex, &id);
    snprintf(plan, sizeof(plan), "{\"commits\":[\"%s\"]}", hex);
    CHECK_OK(bal_graph_journal_put(graph, "acme", plan, &number, &check_err));
    CHECK(forgotten(graph, "acme", BAL_TOMB_COMMIT, "c1"));
    CHECK(!forgotten(graph, "acme", BAL_TOMB_COMMIT, "c2"));
    CHECK(!forgotten(graph, "beta", BAL_TOMB_COMMIT, "c1"));
    CHECK_OK(bal_graph_journal_done(graph, number, &check_err));
    CHECK(!forgotten(graph, "acme", BAL_TOMB_COMMIT, "c1"));
}

/* ---- presence ------------------------------------------------------------ */

static void presence_is_since_the_oldest_commit_that_has_it(void)
{
    static const struct {
        const char *name, *tenant;
        bal_presence_of what;
        const char *label;
        bool row, there;
        uint64_t oldest;
    } rows[] = {
        { "a commit", "acme", BAL_PRESENCE_COMMIT, "c2", true, true, 1 },
        { "a manifest", "acme", BAL_PRESENCE_MANIFEST, "m1", true, true, 0 },
        { "its second", "acme", BAL_PRESENCE_MANIFEST, "m2", true, true, 1 },
        { "a block of both", "acme", BAL_PRESENCE_BLOCK, "b1", true, true, 0 },
        { "a block of one", "acme", BAL_PRESENCE_BLOCK, "b2", true, true, 1 },
        { "not committed", "acme", BAL_PRESENCE_MANIFEST, "m3", true, false,
          0 },
        { "its block", "acme", BAL_PRESENCE_BLOCK, "b3", true, false, 0 },
        { "of another", "beta", BAL_PRESENCE_BLOCK, "b1", false, false, 0 },
        { "no commit", "acme", BAL_PRESENCE_COMMIT, "c9", false, false, 0 },
        { "no block", "acme", BAL_PRESENCE_BLOCK, "b9", false, false, 0 },
    };
    BAL_OWN(bal_graph) graph = graphs_open(__func__);
    uint64_t epoch = 0;

    graphs_leaf(graph, "acme", "m1", "b1");
    graphs_commit(graph, "acme", "c1", "m1", NULL);
    CHECK_OK(bal_graph_epoch_next(graph, &epoch, &check_err));
    graphs_leaf(graph, "acme", "m2", "b1 b2");
    graphs_leaf(graph, "acme", "m3", "b3");
    graphs_commit(graph, "acme", "c2", "m2", "c1");
    graphs_commit(graph, "acme", "c3", "m1", "c2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bal_id id = graphs_id(rows[i].label);
        bal_presence found = { 0 };
        check_row(rows[i].name);
        CHECK_OK(bal_graph_presence(graph, rows[i].tenant, rows[i].what, &id,
                                    &found, &check_err));
        CHECK(found.row == rows[i].row && found.there == rows[i].there);
        CHECK(found.oldest == rows[i].oldest);
        CHECK(found.since == (found.there ? 1000 : 0));
    }
}

static const check_test tests[] = {
    { TEST(proofs_are_told_in_the_order_of_the_log) },
    { TEST(a_proof_is_appended_at_the_end_and_once) },
    { TEST(leaves_are_given_without_a_gap_or_not_at_all) },
    { TEST(a_gap_in_the_log_is_told) },
    { TEST(what_was_forgotten_is_told_from_what_never_was) },
    { TEST(what_a_plan_names_is_forgotten_already) },
    { TEST(presence_is_since_the_oldest_commit_that_has_it) },
};

CHECK_MAIN(tests)
