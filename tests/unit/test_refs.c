/* Refs: compare and swap, the reflog, and that nothing is lost when many move
 * one ref, threads or processes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/graph.h"
#include "support/check.h"
#include "support/databases.h"

#define WRITERS 8
#define MOVES   25

static bal_graph *graph_at(const char *name, double wait, unsigned flags)
{
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    if (bal_db_open(&db, database_url(name), check_dir(), wait, flags,
                    &check_err))
        return NULL;
    if (bal_graph_open(&graph, db, flags, &check_err))
        return NULL;
    return graph;
}

/* A graph with commits 0 … count - 1, each without a parent. */
static bal_graph *graph_new(const char *name, unsigned count, int64_t *tenant)
{
    bal_graph *graph = graph_at(name, 30, BAL_DB_CREATE);
    bal_manifest_row manifest = { .kind = "delta", .body = { "{}", 2 } };

    CHECK(graph);
    CHECK_OK(
        bal_graph_tenant(graph, tenant, "acme", BAL_DB_CREATE, &check_err));
    CHECK_OK(
        bal_graph_manifest_put(graph, *tenant, &manifest, NULL, 0, &check_err));
    BAL_LOCAL(bal_tx) tx = { 0 };
    CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
    for (unsigned n = 0; n < count; n++) {
        bal_commit_row row = {
            .id = { { 0xab, (uint8_t)(n >> 8), (uint8_t)n } },
            .message = "m",
            .author = "a",
            .metadata = "{}",
        };
        CHECK_OK(bal_graph_commit_put(graph, *tenant, &row, &check_err));
    }
    CHECK_OK(bal_tx_commit(&tx, &check_err));
    return graph;
}

static bal_id commit(unsigned n)
{
    return (bal_id){ { 0xab, (uint8_t)(n >> 8), (uint8_t)n } };
}

static int move(bal_graph *graph, int64_t tenant, const char *ref, int from,
                int to)
{
    bal_move_row row = {
        .ref = ref,
        .op = "reset",
        .has_old = from >= 0,
        .has_now = to >= 0,
        .at = 7,
        .message = "why",
    };

    if (from >= 0)
        row.old = commit((unsigned)from);
    if (to >= 0)
        row.now = commit((unsigned)to);
    return bal_graph_move(graph, tenant, &row, &check_err);
}

/* -1: no such ref. */
static int at(bal_graph *graph, int64_t tenant, const char *ref)
{
    bal_id id;
    bool there = false;

    CHECK_OK(bal_graph_ref(graph, tenant, ref, &id, &there, &check_err));
    return there ? id.bytes[1] << 8 | id.bytes[2] : -1;
}

static void a_ref_moves_from_where_it_is_and_not_otherwise(void)
{
    static const struct {
        const char *name;
        int from, to, code, at;
        const char *text;
    } rows[] = {
        { "absent, with an old", 0, 1, BAL_ECONFLICT, -1,
          "ref 'main' moved: it is gone" },
        { "made", -1, 0, 0, 0, NULL },
        { "made again", -1, 1, BAL_ECONFLICT, 0,
          "ref 'main' moved: it is at ab0000000000" },
        { "moved", 0, 1, 0, 1, NULL },
        { "moved from where it was", 0, 2, BAL_ECONFLICT, 1,
          "ref 'main' moved: it is at ab0001000000" },
        { "to where it is", 1, 1, 0, 1, NULL },
        { "to what is not there", 1, 99, BAL_ENOTFOUND, 1,
          "no commit 'ab0063000000'" },
        { "from what is not there", 99, 0, BAL_ECONFLICT, 1, NULL },
        { "removed from elsewhere", 0, -1, BAL_ECONFLICT, 1, NULL },
        { "removed", 1, -1, 0, -1, NULL },
        { "nothing to nothing", -1, -1, BAL_EINVAL, -1, NULL },
        { "made anew", -1, 2, 0, 2, NULL },
    };
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, 3, &tenant);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(rows[i].name);
        CHECK_RC(rows[i].code,
                 move(graph, tenant, "main", rows[i].from, rows[i].to));
        CHECK(at(graph, tenant, "main") == rows[i].at);
        if (rows[i].text)
            CHECK(!strcmp(check_err.text, rows[i].text));
    }
}

static int join_move(void *ctx, const bal_move_row *row, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s@%d:%d>%d ", row->ref, (int)row->n,
                          row->has_old ? row->old.bytes[2] : -1,
                          row->has_now ? row->now.bytes[2] : -1);
}

static int join_ref(void *ctx, const char *name, const bal_id *id,
                    bal_error *err)
{
    return bal_buf_format(ctx, err, "%s=%d ", name, id->bytes[2]);
}

static void the_reflog_counts_back_within_each_ref(void)
{
    static const struct {
        const char *ref, *text;
    } rows[] = {
        { "main", "main@0:1>2 main@1:0>1 main@2:-1>0 " },
        { "dev", "dev@0:0>-1 dev@1:-1>0 " },
        { "none", "" },
        { NULL, "main@0:1>2 dev@0:0>-1 main@1:0>1 dev@1:-1>0 main@2:-1>0 " },
    };
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, 3, &tenant);
    BAL_LOCAL(bal_buf) refs = { 0 };

    CHECK_OK(move(graph, tenant, "main", -1, 0));
    CHECK_OK(move(graph, tenant, "dev", -1, 0));
    CHECK_OK(move(graph, tenant, "main", 0, 1));
    CHECK_OK(bal_graph_refs(graph, tenant, join_ref, &refs, &check_err));
    CHECK(!strcmp(bal_buf_string(&refs), "dev=0 main=1 "));
    CHECK_OK(move(graph, tenant, "dev", 0, -1));
    CHECK_OK(move(graph, tenant, "main", 1, 2));
    CHECK_RC(BAL_ECONFLICT, move(graph, tenant, "main", 1, 0));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(bal_buf) text = { 0 };
        check_row(rows[i].ref);
        CHECK_OK(bal_graph_reflog(graph, tenant, rows[i].ref, join_move, &text,
                                  &check_err));
        CHECK(!strcmp(bal_buf_string(&text), rows[i].text));
    }
}

static void a_move_in_a_transaction_that_ends_otherwise_did_not_happen(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, 2, &tenant);

    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
        CHECK_OK(move(graph, tenant, "main", -1, 0));
        CHECK_RC(BAL_ECONFLICT, move(graph, tenant, "main", -1, 1));
        CHECK(at(graph, tenant, "main") == 0);
    }
    CHECK(at(graph, tenant, "main") == -1);
    {
        BAL_LOCAL(bal_tx) tx = { 0 };
        CHECK_OK(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &check_err));
        CHECK_OK(move(graph, tenant, "main", -1, 0));
        CHECK_RC(BAL_ECONFLICT, move(graph, tenant, "main", -1, 1));
        CHECK_OK(bal_tx_commit(&tx, &check_err));
    }
    CHECK(at(graph, tenant, "main") == 0);
}

/* ---- many at once ------------------------------------------------------- */

/* Move main on by one, from wherever it is, as often as it takes. The number
 * of moves that did not go through, or -1. */
static int move_on(bal_graph *graph, int64_t tenant)
{
    int lost = 0;

    for (;;) {
        bal_move_row row = { .ref = "main", .op = "commit", .has_now = true };
        int rc =
            bal_graph_ref(graph, tenant, "main", &row.old, &row.has_old, NULL);
        if (rc)
            return -1;
        unsigned n =
            row.has_old ? row.old.bytes[1] * 256U + row.old.bytes[2] : 0;
        row.now = commit(row.has_old ? n + 1 : 0);
        rc = bal_graph_move(graph, tenant, &row, NULL);
        if (!rc)
            return lost;
        if (rc != BAL_ECONFLICT)
            return -1;
        lost++;
    }
}

static void *thread_moves(void *ctx)
{
    bal_graph *graph = ctx;
    int64_t tenant = 0;

    if (bal_graph_tenant(graph, &tenant, "acme", 0, NULL))
        return NULL;
    for (int i = 0; i < MOVES; i++) {
        if (move_on(graph, tenant) < 0)
            return NULL;
    }
    return ctx;
}

typedef struct order {
    int64_t next;
} order;

static int in_order(void *ctx, const bal_move_row *row, bal_error *err)
{
    order *self = ctx;
    int64_t now = row->now.bytes[1] << 8 | row->now.bytes[2];

    (void)err;
    CHECK(now == self->next && (row->has_old == (now > 0)));
    self->next--;
    return 0;
}

static void check_all_landed(bal_graph *graph, int64_t tenant)
{
    order expected = { .next = WRITERS * MOVES - 1 };

    CHECK(at(graph, tenant, "main") == WRITERS * MOVES - 1);
    CHECK_OK(bal_graph_reflog(graph, tenant, "main", in_order, &expected,
                              &check_err));
    CHECK(expected.next == -1);
}

static void threads_that_move_one_ref_lose_nothing(void)
{
    int64_t tenant = 0;
    BAL_OWN(bal_graph) graph = graph_new(__func__, WRITERS * MOVES, &tenant);
    pthread_t threads[WRITERS];

    for (size_t i = 0; i < WRITERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, thread_moves, graph));
    for (size_t i = 0; i < WRITERS; i++) {
        void *done = NULL;
        CHECK(!pthread_join(threads[i], &done));
        CHECK(done);
    }
    check_all_landed(graph, tenant);
}

/* Every process opens, moves, and closes for every move, so that logs come
 * and go meanwhile. */
static int process_moves(const char *name)
{
    for (int i = 0; i < MOVES; i++) {
        BAL_OWN(bal_graph) graph = graph_at(name, 30, 0);
        int64_t tenant = 0;
        if (!graph || bal_graph_tenant(graph, &tenant, "acme", 0, NULL))
            return 1;
        if (move_on(graph, tenant) < 0)
            return 2;
    }
    return 0;
}

typedef int process_fn(const char *name);

static void run_processes(process_fn *fn, const char *name)
{
    pid_t pids[WRITERS];

    check_dir();
    for (size_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (!pids[i]) {
            int status = fn(name);
            if (status)
                fprintf(stderr, "%d: %s\n", status, check_err.text);
            _exit(status);
        }
    }
    for (size_t i = 0; i < WRITERS; i++) {
        int status = 0;
        CHECK(waitpid(pids[i], &status, 0) == pids[i]);
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    }
}

static void processes_that_move_one_ref_lose_nothing(void)
{
    int64_t tenant = 0;

    bal_graph_free(graph_new(__func__, WRITERS * MOVES, &tenant));
    run_processes(process_moves, __func__);
    BAL_OWN(bal_graph) graph = graph_at(__func__, 30, 0);
    CHECK(graph);
    check_all_landed(graph, tenant);
}

static int process_creates(const char *name)
{
    for (int i = 0; i < 5; i++) {
        char each[64];
        int64_t tenant = 0;
        snprintf(each, sizeof(each), "%s-%d", name, i);
        BAL_OWN(bal_graph) graph = graph_at(each, 30, BAL_DB_CREATE);
        if (!graph)
            return 1;
        if (bal_graph_tenant(graph, &tenant, "acme", BAL_DB_CREATE, &check_err))
            return 2;
        if (tenant != 1)
            return 3;
    }
    return 0;
}

static void processes_that_create_at_once_all_succeed(void)
{
    run_processes(process_creates, "create");
}

static const check_test tests[] = {
    { TEST(a_ref_moves_from_where_it_is_and_not_otherwise) },
    { TEST(the_reflog_counts_back_within_each_ref) },
    { TEST(a_move_in_a_transaction_that_ends_otherwise_did_not_happen) },
    { TEST(threads_that_move_one_ref_lose_nothing) },
    { TEST(processes_that_move_one_ref_lose_nothing) },
    { TEST(processes_that_create_at_once_all_succeed) },
};

CHECK_MAIN(tests)
