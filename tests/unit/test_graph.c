/* The graph, function by function. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "support/check.h"
#include "support/databases.h"

/* A graph of one test, in a file of its own. */
static bal_graph *graph_new(const char *test, int64_t *tenant)
{
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    CHECK_OK(bal_db_open(&db, database_url(test), check_dir(), 1, BAL_DB_CREATE,
                         &check_err));
    CHECK_OK(bal_graph_open(&graph, db, BAL_DB_CREATE, &check_err));
    CHECK_OK(
        bal_graph_tenant(graph, tenant, "acme", BAL_DB_CREATE, &check_err));
    return graph;
}

static bal_id id_of(unsigned first, unsigned second)
{
    bal_id id = { .bytes = { (uint8_t)first, (uint8_t)(second >> 8),
                             (uint8_t)second } };

    return id;
}

static bool same(const bal_id *a, const bal_id *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static void put_manifest(bal_graph *graph, int64_t tenant, bal_id id,
                         const bal_block_row *blocks, size_t count,
                         uint64_t logical)
{
    bal_id ids[8];
    bal_manifest_row row = {
        .id = id,
        .kind = "weights",
        .body = { "{\"a\":1}", 7 },
        .logical = logical,
        .uses = ids,
        .use_count = count,
    };

    CHECK(count <= 8);
    for (size_t i = 0; i < count; i++)
        ids[i] = blocks[i].id;
    CHECK_OK(
        bal_graph_manifest_put(graph, tenant, &row, blocks, count, &check_err));
}

/* Commit n, on top of commit n - 1 unless it is the first. */
static bal_commit_row commit_of(unsigned n)
{
    bal_commit_row row = {
        .id = id_of(0xc0, n),
        .manifest = id_of(0xa0, 0),
        .parent = id_of(0xc0, n - 1),
        .has_parent = n > 0,
        .made_on = id_of(0xc0, n - 1),
        .has_made_on = n > 0,
        .message = "what changed",
        .author = "ann",
        .metadata = "{}",
        .created_at = 1000 + n,
    };

    return row;
}

static void put_commits(bal_graph *graph, int64_t tenant, unsigned count)
{
    put_manifest(graph, tenant, id_of(0xa0, 0), NULL, 0, 10);
    for (unsigned n = 0; n < count; n++) {
        bal_commit_row row = commit_of(n);
        CHECK_OK(bal_graph_commit_put(graph, tenant, &row, &check_err));
    }
}

/* ---- settings, tenants --------------------------------------------------- */

static void settings_are_set_changed_and_removed(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_setting(graph, "colour", &text, &check_err));
    CHECK_OK(bal_graph_set(graph, "colour", "red", &check_err));
    CHECK_OK(bal_graph_set(graph, "colour", "blue", &check_err));
    CHECK_OK(bal_graph_setting(graph, "colour", &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "blue"));
    CHECK_OK(bal_graph_set(graph, "colour", NULL, &check_err));
    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_setting(graph, "colour", &text, &check_err));
}

static int join_names(void *ctx, const char *name, bal_error *err)
{
    int rc = bal_buf_text(ctx, name, err);
    return rc ? rc : bal_buf_text(ctx, " ", err);
}

static void tenants_are_numbers_inside(void)
{
    int64_t acme = 0;
    int64_t other = 0;
    int64_t again = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &acme);
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_tenant(graph, &other, "zeta", 0, &check_err));
    CHECK_OK(
        bal_graph_tenant(graph, &other, "zeta", BAL_DB_CREATE, &check_err));
    CHECK_OK(bal_graph_tenant(graph, &again, "zeta", 0, &check_err));
    CHECK(other == again && other != acme && acme > 0);
    CHECK_OK(bal_graph_tenants_all(graph, join_names, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "acme zeta "));
}

static void a_tenant_is_listed_once_it_has_a_commit(void)
{
    int64_t acme = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &acme);
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_graph_tenants(graph, join_names, &text, &check_err));
    CHECK(!text.len);
    put_commits(graph, acme, 1);
    CHECK_OK(bal_graph_tenants(graph, join_names, &text, &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "acme "));
}

/* ---- blocks, manifests --------------------------------------------------- */

typedef struct seen {
    size_t count;
    bal_id ids[300];
    bal_block_row block;
} seen;

static int see_id(void *ctx, const bal_id *id, bal_error *err)
{
    seen *self = ctx;

    (void)err;
    CHECK(self->count < 300);
    self->ids[self->count++] = *id;
    return 0;
}

static int see_block(void *ctx, const bal_block_row *row, bal_error *err)
{
    ((seen *)ctx)->block = *row;
    return see_id(ctx, &row->id, err);
}

static const bal_block_row some_blocks[] = {
    { .id = { { 3 } }, .size = 100, .stored = 40, .codec = 1 },
    { .id = { { 1 } }, .size = 1, .stored = 1, .codec = 0 },
    { .id = { { 2 } }, .size = INT64_MAX, .stored = 5, .codec = 2 },
};

static void a_manifest_brings_its_blocks(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_id id = id_of(0xa0, 7);
    bal_id other = id_of(0xa0, 8);
    bal_block_row row;
    bool there = false;
    seen all = { 0 };
    seen uses = { 0 };
    seen manifests = { 0 };

    put_manifest(graph, tenant, id, some_blocks, 3, 101);
    put_manifest(graph, tenant, id, some_blocks, 3, 999);
    put_manifest(graph, tenant, other, some_blocks, 1, 100);
    CHECK_OK(bal_graph_manifest(graph, tenant, &id, &kind, &body, &check_err));
    CHECK(!strcmp(bal_buf_string(&kind), "weights"));
    CHECK(body.len == 7 && !memcmp(body.data, "{\"a\":1}", 7));
    CHECK_OK(bal_graph_block(graph, tenant, &some_blocks[2].id, &row, &there,
                             &check_err));
    CHECK(there && same(&row.id, &some_blocks[2].id));
    CHECK(row.size == INT64_MAX && row.stored == 5 && row.codec == 2);
    CHECK_OK(bal_graph_block(graph, tenant, &id, &row, &there, &check_err));
    CHECK(!there);
    CHECK_OK(bal_graph_blocks(graph, tenant, see_block, &all, &check_err));
    CHECK(all.count == 3 && same(&all.ids[0], &some_blocks[1].id));
    CHECK(same(&all.block.id, &some_blocks[0].id) && all.block.stored == 40);
    CHECK_OK(bal_graph_uses(graph, tenant, &id, see_id, &uses, &check_err));
    CHECK(uses.count == 3 && same(&uses.ids[2], &some_blocks[0].id));
    CHECK_OK(
        bal_graph_manifests(graph, tenant, see_id, &manifests, &check_err));
    CHECK(manifests.count == 2 && same(&manifests.ids[0], &id));
    CHECK_RC(BAL_ENOTFOUND, bal_graph_manifest(graph, tenant + 1, &id, NULL,
                                               &body, &check_err));
}

static void a_manifest_of_a_block_that_is_not_there_leaves_nothing(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    bal_id ids[] = { some_blocks[0].id, id_of(9, 9) };
    bal_manifest_row row = { .id = id_of(0xa0, 1),
                             .kind = "delta",
                             .body = { "{}", 2 },
                             .uses = ids,
                             .use_count = 2 };
    seen all = { 0 };

    CHECK_RC(BAL_ECONFLICT, bal_graph_manifest_put(graph, tenant, &row,
                                                   some_blocks, 1, &check_err));
    CHECK_OK(bal_graph_blocks(graph, tenant, see_block, &all, &check_err));
    CHECK_OK(bal_graph_manifests(graph, tenant, see_id, &all, &check_err));
    CHECK(all.count == 0);
}

static void blocks_that_nothing_uses_are_found_and_forgotten(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    bal_manifest_row row = { .id = id_of(0xa0, 1),
                             .kind = "delta",
                             .body = { "{}", 2 },
                             .uses = &some_blocks[0].id,
                             .use_count = 1 };
    seen unused = { 0 };

    CHECK_OK(bal_graph_manifest_put(graph, tenant, &row, some_blocks, 3,
                                    &check_err));
    CHECK_OK(bal_graph_unused(graph, tenant, see_block, &unused, &check_err));
    CHECK(unused.count == 2 && same(&unused.ids[0], &some_blocks[1].id));
    CHECK_RC(BAL_ECONFLICT, bal_graph_block_forget(
                                graph, tenant, &some_blocks[0].id, &check_err));
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(bal_graph_block_forget(graph, tenant, &some_blocks[1].id,
                                        &check_err));
    unused.count = 0;
    CHECK_OK(bal_graph_unused(graph, tenant, see_block, &unused, &check_err));
    CHECK(unused.count == 1 && same(&unused.ids[0], &some_blocks[2].id));
}

/* ---- commits ------------------------------------------------------------- */

typedef struct walked {
    size_t count;
    size_t stop_after;
    uint8_t n[1000];
    bal_commit_row last;
    char message[64];
} walked;

static int walk_on(void *ctx, const bal_commit_row *row, bal_error *err)
{
    walked *self = ctx;

    (void)err;
    CHECK(self->count < sizeof(self->n));
    self->n[self->count++] = row->id.bytes[2];
    self->last = *row;
    snprintf(self->message, sizeof(self->message), "%s %s %s %s %s", row->kind,
             row->message, row->author, row->base_model ? row->base_model : "-",
             row->metadata);
    return self->count == self->stop_after ? BAL_ROW_STOP : 0;
}

static void a_commit_comes_back_whole(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    bal_commit_row row = commit_of(1);
    walked got = { 0 };

    put_commits(graph, tenant, 1);
    row.base_model = "llama";
    row.metadata = "{\"k\":1}";
    row.has_made_on = false;
    row.created_at = INT64_MAX;
    CHECK_OK(bal_graph_commit_put(graph, tenant, &row, &check_err));
    CHECK_OK(
        bal_graph_commit(graph, tenant, &row.id, walk_on, &got, &check_err));
    CHECK(got.count == 1 && same(&got.last.id, &row.id));
    CHECK(same(&got.last.manifest, &row.manifest));
    CHECK(got.last.has_parent && same(&got.last.parent, &row.parent));
    CHECK(!got.last.has_made_on && got.last.created_at == INT64_MAX);
    CHECK(!strcmp(got.message, "weights what changed ann llama {\"k\":1}"));
}

static void a_commit_needs_its_manifest_and_parent(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    bal_commit_row row = commit_of(0);
    walked got = { 0 };

    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_commit_put(graph, tenant, &row, &check_err));
    put_commits(graph, tenant, 1);
    CHECK_RC(BAL_EEXISTS,
             bal_graph_commit_put(graph, tenant, &row, &check_err));
    row = commit_of(5);
    CHECK_RC(BAL_ENOTFOUND,
             bal_graph_commit_put(graph, tenant, &row, &check_err));
    CHECK_RC(BAL_ENOTFOUND, bal_graph_commit(graph, tenant, &row.id, walk_on,
                                             &got, &check_err));
    CHECK(got.count == 0);
}

static void history_goes_back_along_parents(void)
{
    static const struct {
        const char *name;
        unsigned from;
        uint64_t limit;
        size_t stop_after, count;
    } rows[] = {
        { "all", 699, 0, 0, 700 },
        { "few", 699, 20, 0, 20 },
        { "one", 3, 1, 0, 1 },
        { "to the first", 3, 50, 0, 4 },
        { "a full step", 699, 256, 0, 256 },
        { "a step and one", 699, 257, 0, 257 },
        { "stopped", 699, 0, 300, 300 },
        { "the first", 0, 0, 0, 1 },
    };
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);

    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
        put_commits(graph, tenant, 700);
        CHECK_OK(bal_tx_commit(&tx, &check_err));
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        walked got = { .stop_after = rows[i].stop_after };
        bal_id from = id_of(0xc0, rows[i].from);
        check_row(rows[i].name);
        CHECK_OK(bal_graph_history(graph, tenant, &from, rows[i].limit, walk_on,
                                   &got, &check_err));
        CHECK(got.count == rows[i].count);
        for (size_t k = 0; k < got.count; k++)
            CHECK(got.n[k] == (uint8_t)(rows[i].from - k));
    }
    walked got = { 0 };
    bal_id absent = id_of(0xcc, 1);
    CHECK_RC(BAL_ENOTFOUND, bal_graph_history(graph, tenant, &absent, 5,
                                              walk_on, &got, &check_err));
    CHECK_OK(bal_graph_commits(graph, tenant, walk_on, &got, &check_err));
    CHECK(got.count == 700 && got.n[0] == 0 && got.n[699] == (uint8_t)699);
}

static void prefixes_are_ranges(void)
{
    static const struct {
        const char *prefix;
        uint64_t limit;
        int code;
        size_t count;
    } rows[] = {
        { "c", 100, 0, 18 },
        { "c0", 100, 0, 18 },
        { "c0001", 100, 0, 2 },
        { "c00010", 100, 0, 1 },
        { "c00011", 100, 0, 1 },
        { "c0000", 3, 0, 3 },
        { "c0002", 100, 0, 0 },
        { "d", 100, 0, 0 },
        { "b", 100, 0, 0 },
        { "", 100, BAL_EINVAL, 0 },
        { "C0", 100, BAL_EINVAL, 0 },
        { "xyz", 100, BAL_EINVAL, 0 },
        { "c000110000000000000000000000000000000000000000000000000000000000", 5,
          0, 1 },
        { "c0001100000000000000000000000000000000000000000000000000000000000",
          5, BAL_EINVAL, 0 },
    };
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);

    put_commits(graph, tenant, 18);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        seen got = { 0 };
        check_row(rows[i].prefix);
        CHECK_RC(rows[i].code,
                 bal_graph_prefix(graph, tenant, rows[i].prefix, rows[i].limit,
                                  see_id, &got, &check_err));
        CHECK(got.count == rows[i].count);
    }
}

/* ---- counting ------------------------------------------------------------ */

static void stats_count_each_block_once_and_each_commit_whole(void)
{
    int64_t acme = 0;
    int64_t zeta = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &acme);
    bal_stats got = { 0 };

    CHECK_OK(bal_graph_tenant(graph, &zeta, "zeta", BAL_DB_CREATE, &check_err));
    CHECK_OK(bal_graph_stats(graph, 0, &got, &check_err));
    CHECK(!got.commits && !got.stored_bytes && !got.logical_bytes);
    put_commits(graph, acme, 3);
    put_manifest(graph, acme, id_of(0xa0, 9), some_blocks, 2, 101);
    put_manifest(graph, zeta, id_of(0xa0, 9), some_blocks, 2, 101);
    CHECK_OK(bal_graph_stats(graph, acme, &got, &check_err));
    CHECK(got.commits == 3 && got.manifests == 2 && got.blocks == 2);
    CHECK(got.logical_bytes == 30 && got.unique_bytes == 101);
    CHECK(got.stored_bytes == 41);
    CHECK_OK(bal_graph_stats(graph, 0, &got, &check_err));
    CHECK(got.commits == 3 && got.manifests == 3 && got.blocks == 4);
}

/* ---- intentions ---------------------------------------------------------- */

static int join_intended(void *ctx, const char *session, const char *tenant,
                         const bal_id *id, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s/%s/%02x ", session, tenant,
                          id->bytes[0]);
}

static void what_was_intended_and_not_named_is_known(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, &tenant);
    BAL_LOCAL(bal_buf) text = { 0 };
    const bal_id ids[] = { { { 1 } }, { { 3 } }, { { 5 } } };

    CHECK_OK(bal_graph_intend(graph, tenant, "s1", ids, 3, &check_err));
    CHECK_OK(bal_graph_intend(graph, tenant, "s1", ids, 1, &check_err));
    CHECK_OK(bal_graph_intend(graph, tenant, "s2", ids, 1, &check_err));
    put_manifest(graph, tenant, id_of(0xa0, 0), some_blocks, 1, 1);
    CHECK_OK(bal_graph_intended(graph, "s2", false, join_intended, &text,
                                &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "s1/acme/01 s1/acme/05 "));
    CHECK_OK(bal_graph_intended_done(graph, "s1", &check_err));
    bal_buf_clear(&text);
    CHECK_OK(bal_graph_intended(graph, NULL, false, join_intended, &text,
                                &check_err));
    CHECK(!strcmp(bal_buf_string(&text), "s2/acme/01 "));
    CHECK_OK(bal_graph_intended_done(graph, NULL, &check_err));
    bal_buf_clear(&text);
    CHECK_OK(bal_graph_intended(graph, NULL, false, join_intended, &text,
                                &check_err));
    CHECK(!text.len);
}

static const check_test tests[] = {
    { TEST(settings_are_set_changed_and_removed) },
    { TEST(tenants_are_numbers_inside) },
    { TEST(a_tenant_is_listed_once_it_has_a_commit) },
    { TEST(a_manifest_brings_its_blocks) },
    { TEST(a_manifest_of_a_block_that_is_not_there_leaves_nothing) },
    { TEST(blocks_that_nothing_uses_are_found_and_forgotten) },
    { TEST(a_commit_comes_back_whole) },
    { TEST(a_commit_needs_its_manifest_and_parent) },
    { TEST(history_goes_back_along_parents) },
    { TEST(prefixes_are_ranges) },
    { TEST(stats_count_each_block_once_and_each_commit_whole) },
    { TEST(what_was_intended_and_not_named_is_known) },
};

CHECK_MAIN(tests)
