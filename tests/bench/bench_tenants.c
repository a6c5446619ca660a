/* Stores of many tenants or of long histories on any database, what a command
 * takes there, and writers at once, for the benchmark:
 *     bench-tenants make ROOT DB TENANTS COMMITS
 *     bench-tenants ask ROOT DB TENANT RUNS
 *     bench-tenants write ROOT DB BACKEND REF COUNT
 * `make` writes rows by the graph's own calls, a thousand commits a
 * transaction: each commit has a manifest and a block of its own, though no
 * bytes, and each tenant a grant from and one to its neighbours. `ask` prints
 * the median milliseconds of opening the store, of a question each, asked by a
 * store that was opened for it, and of a commit. `write` commits adapters of
 * 64 KiB, each another, to a ref of the tenant acme. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ballast.h"

#include "core/clock.h"
#include "core/error.h"
#include "graph/grants.h"
#include "model/model.h"
#include "store/commit_object.h"
#include "store/manifest.h"

enum { EACH_TX = 1000, MOST_RUNS = 101, RANK = 4, WIDE = 1024, PAIRS = 4 };

/* A store and what it borrows. */
typedef struct bal_opened {
    bal_work *work;
    bal_store *store;
    bal_tenant *tenant;
} bal_opened;

static void bal_opened_done(bal_opened *self)
{
    bal_tenant_free(self->tenant);
    bal_store_free(self->store);
    bal_work_free(self->work);
}

static int open_store(bal_opened *out, const bal_store_options *places,
                      const char *tenant, bal_error *err)
{
    bal_store_options options = *places;
    int rc = bal_work_new(&out->work, 1, err);

    options.flags = BAL_OPEN_CREATE;
    options.wait = 120;
    options.work = out->work;
    if (!rc)
        rc = bal_store_open(&out->store, &options, err);
    return rc ? rc : bal_tenant_open(&out->tenant, out->store, tenant, err);
}

/* ---- adapters ---------------------------------------------------------- */

/* Numbers of one size whose mantissas no other seed has. */
static void fill_bytes(uint64_t *bytes, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) {
        *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[i] =
            ((*seed >> 1) & 0x007f007f007f007fULL) | 0x3c003c003c003c00ULL;
    }
}

/* Pairs of a rank 4 LoRA, 64 KiB in all. */
static int commit_adapter(bal_opened *at, const char *ref, uint64_t seed,
                          bal_error *err)
{
    static const char config[] =
        "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,"
        "\"target_modules\":[\"q_proj\"]}";
    static const uint64_t shapes[2][2] = { { RANK, WIDE }, { WIDE, RANK } };
    uint64_t bytes[2 * PAIRS][RANK * WIDE / 4];
    char names[2 * PAIRS][128];
    bal_array rows[2 * PAIRS + 1] = {
        [2 * PAIRS] = { .name = "adapter_config.json",
                        .part = BAL_PART_FILE,
                        .data = config,
                        .size = sizeof(config) - 1 },
    };
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) made = NULL;
    bal_draft draft = { .message = "step", .ref = ref, .author = "bench" };
    bal_arrays arrays = { .name = "bench",
                          .kind = BAL_KIND_ADAPTER,
                          .rows = rows,
                          .count = 2 * PAIRS + 1 };

    for (size_t i = 0; i < 2 * PAIRS; i++) {
        fill_bytes(bytes[i], RANK * WIDE / 4, &seed);
        snprintf(names[i], sizeof(names[i]),
                 "base_model.model.model.layers.%zu.self_attn.q_proj.lora_%c"
                 ".weight",
                 i / 2, i % 2 ? 'B' : 'A');
        rows[i] = (bal_array){ .name = names[i],
                               .part = BAL_PART_TENSOR,
                               .dtype = BAL_BF16,
                               .rank = 2,
                               .shape = shapes[i % 2],
                               .data = bytes[i],
                               .size = sizeof(bytes[i]) };
    }
    int rc = bal_model_from_arrays(&model, &arrays, err);
    return rc ? rc
              : bal_commit_model(&made, at->tenant, model, &draft, NULL, err);
}

/* ---- make -------------------------------------------------------------- */

static void tenant_name(char name[32], unsigned long number)
{
    snprintf(name, 32, "t%06lu", number);
}

/* The manifest and the block of one commit; *id is the manifest's. */
static int put_manifest(bal_graph *graph, int64_t tenant, const char *name,
                        unsigned long n, bal_id *id, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    char text[64];
    uint64_t shape[] = { 64 };
    bal_id block;
    bal_tensor entry = { .name = "w",
                         .dtype = BAL_U8,
                         .of = BAL_U8,
                         .rank = 1,
                         .shape = shape,
                         .size = 64 };
    bal_place place = { .count = 1 };
    bal_leaf leaf = { .kind = BAL_KIND_WEIGHTS,
                      .block_size = 4 << 20,
                      .entries = &entry,
                      .places = &place,
                      .count = 1,
                      .ids = &block,
                      .id_count = 1 };

    snprintf(text, sizeof(text), "%s %lu", name, n);
    bal_hash_of(&block, text, strlen(text));
    int rc = bal_leaf_write(&body, &leaf, err);
    if (rc)
        return rc;
    bal_hash_of(id, body.data, body.len);
    bal_block_row row = { .id = block, .size = 64, .stored = 64, .codec = 1 };
    bal_manifest_row manifest = { .id = *id,
                                  .kind = "weights",
                                  .body = { body.data, body.len },
                                  .logical = 64,
                                  .uses = &block,
                                  .use_count = 1 };
    return bal_graph_manifest_put(graph, tenant, &manifest, &row, 1, err);
}

/* The n-th commit of a tenant, on the one before it. */
static int put_commit(bal_graph *graph, int64_t tenant, const char *name,
                      unsigned long n, bal_id *head, bal_error *err)
{
    bal_commit_row row = { .kind = "weights",
                           .author = "bench",
                           .message = "support, run 41, lower learning rate",
                           .metadata = "{\"run\":41}",
                           .parent = *head,
                           .has_parent = n > 0,
                           .made_on = *head,
                           .has_made_on = n > 0,
                           .created_at = 1700000000 + (int64_t)n };
    bal_move_row move = { .ref = "main",
                          .op = "commit",
                          .message = row.message,
                          .old = *head,
                          .has_old = n > 0,
                          .has_now = true,
                          .at = row.created_at };
    int rc = put_manifest(graph, tenant, name, n, &row.manifest, err);
    if (!rc)
        rc = bal_commit_id(&row.id, name, &row, err);
    if (!rc)
        rc = bal_graph_commit_put(graph, tenant, &row, err);
    move.now = *head = row.id;
    return rc ? rc : bal_graph_move(graph, tenant, &move, err);
}

static int put_grant(bal_graph *graph, int64_t tenant, const char *name,
                     unsigned long next, const bal_id *commit, bal_error *err)
{
    char grantee[32];
    bal_grant_info info = { .owner = name,
                            .grantee = grantee,
                            .commit = *commit,
                            .created_at = 1700000000 };
    int rc = put_manifest(graph, tenant, name, 0, &info.manifest, err);

    tenant_name(grantee, next);
    return rc ? rc : bal_graph_grant(graph, tenant, &info, err);
}

/* Commits from *n on, so many at most; the number goes on with the next tenant
 * once one has all of its. */
static int put_some(bal_graph *graph, unsigned long *tenant_at,
                    unsigned long *n, unsigned long commits, bal_id *head,
                    bal_error *err)
{
    char name[32];
    int64_t tenant = 0;

    tenant_name(name, *tenant_at);
    int rc = bal_graph_tenant(graph, &tenant, name, BAL_DB_CREATE, err);
    for (unsigned i = 0; i < EACH_TX && *n < commits && !rc; i++, ++*n) {
        rc = put_commit(graph, tenant, name, *n, head, err);
        if (!rc && *n == 0)
            rc = put_grant(graph, tenant, name, *tenant_at + 1, head, err);
    }
    if (*n < commits)
        return rc;
    ++*tenant_at;
    *n = 0;
    return rc;
}

/* A session keeps its plans, and PostgreSQL's for empty tables are bad ones:
 * so each transaction has a session of its own. */
static int make_some(const bal_store_options *places, unsigned long tenants,
                     unsigned long commits, unsigned long at[2], bal_id *head,
                     bal_error *err)
{
    BAL_LOCAL(bal_opened) opened = { 0 };
    BAL_LOCAL(bal_tx) tx = { 0 };
    unsigned long until = at[0] + EACH_TX / commits;
    int rc = open_store(&opened, places, "t000000", err);

    if (!rc)
        rc = bal_graph_begin(&tx, opened.store->graph, BAL_TX_WRITE, err);
    do {
        if (!rc)
            rc = put_some(opened.store->graph, &at[0], &at[1], commits, head,
                          err);
    } while (at[0] < until && at[0] < tenants && !rc);
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int make(const bal_store_options *places, unsigned long tenants,
                unsigned long commits, bal_error *err)
{
    unsigned long at[2] = { 0, 0 }; /* tenant, commit */
    bal_id head = { 0 };
    int rc = 0;

    while (at[0] < tenants && !rc)
        rc = make_some(places, tenants, commits, at, &head, err);
    return rc;
}

/* ---- ask --------------------------------------------------------------- */

static int ignore_commit(void *ctx, const bal_commit *commit)
{
    (void)commit;
    ++*(unsigned *)ctx;
    return 0;
}

static int ignore_grant(void *ctx, const bal_grant_info *grant)
{
    (void)grant;
    ++*(unsigned *)ctx;
    return 0;
}

typedef int bal_asked_fn(bal_opened *at, unsigned run, bal_error *err);

static int ask_log(bal_opened *at, unsigned run, bal_error *err)
{
    bal_id head;
    unsigned rows = 0;
    int rc = bal_resolve(&head, at->tenant, "main", err);

    (void)run;
    return rc ? rc : bal_log(at->tenant, &head, 20, ignore_commit, &rows, err);
}

/* Of the first commit of all, which is as deep as the history is long. */
static int ask_prefix(bal_opened *at, unsigned run, bal_error *err)
{
    char spec[BAL_ID_HEX + 1];
    bal_id head, found;
    int rc = bal_resolve(&head, at->tenant, "main", err);

    (void)run;
    bal_id_hex(spec, &head);
    spec[12] = 0;
    return rc ? rc : bal_resolve(&found, at->tenant, spec, err);
}

static int ask_grants(bal_opened *at, unsigned run, bal_error *err)
{
    unsigned rows = 0;

    (void)run;
    return bal_grant_each(at->tenant, ignore_grant, &rows, err);
}

static int ask_commit(bal_opened *at, unsigned run, bal_error *err)
{
    return commit_adapter(at, "main", (uint64_t)bal_clock_now() * 1000 + run,
                          err);
}

static const struct {
    const char *name;
    bal_asked_fn *ask; /* NULL: the opening itself */
} questions[] = {
    { "open", NULL },         { "log", ask_log },
    { "prefix", ask_prefix }, { "grants", ask_grants },
    { "commit", ask_commit },
};

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

static int ask_once(const bal_store_options *places, const char *name,
                    bal_asked_fn *ask, unsigned run, double *ms, bal_error *err)
{
    BAL_LOCAL(bal_opened) at = { 0 };
    double from = bal_clock_ticks();
    int rc = open_store(&at, places, name, err);

    if (ask) {
        from = bal_clock_ticks();
        if (!rc)
            rc = ask(&at, run, err);
    }
    *ms = (bal_clock_ticks() - from) * 1e3;
    return rc;
}

static int ask_all(const bal_store_options *places, const char *name,
                   unsigned long runs, bal_error *err)
{
    double ms[MOST_RUNS];
    int rc = 0;

    if (runs > MOST_RUNS)
        runs = MOST_RUNS;
    for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
        for (unsigned run = 0; run < runs && !rc; run++)
            rc = ask_once(places, name, questions[i].ask, run, &ms[run], err);
        if (rc)
            return rc;
        qsort(ms, runs, sizeof(*ms), by_size);
        printf("%s %.4f\n", questions[i].name, ms[runs / 2]);
    }
    return 0;
}

/* ---- write ------------------------------------------------------------- */

static int write_many(const bal_store_options *places, const char *ref,
                      unsigned long count, bal_error *err)
{
    BAL_LOCAL(bal_opened) at = { 0 };
    uint64_t seed = 0;
    int rc = open_store(&at, places, "acme", err);

    for (const char *letter = ref; *letter; letter++)
        seed = seed * 257 + (unsigned char)*letter;
    /* Whoever starts the writers says when, by a line. */
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF && !rc)
        rc = bal_fail(err, BAL_EIO, "nobody said when");
    for (unsigned long i = 0; i < count && !rc; i++)
        rc = commit_adapter(&at, ref, (seed << 32) + i, err);
    return rc;
}

int main(int argc, char **argv)
{
    bal_error err = { 0 };
    int rc = BAL_EINVAL;

    if (argc == 6 && !strcmp(argv[1], "make")) {
        bal_store_options places = { .root = argv[2], .db = argv[3] };
        rc = make(&places, strtoul(argv[4], NULL, 10),
                  strtoul(argv[5], NULL, 10), &err);
    }
    if (argc == 6 && !strcmp(argv[1], "ask")) {
        bal_store_options places = { .root = argv[2], .db = argv[3] };
        rc = ask_all(&places, argv[4], strtoul(argv[5], NULL, 10), &err);
    }
    if (argc == 7 && !strcmp(argv[1], "write")) {
        bal_store_options places = { .root = argv[2],
                                     .db = argv[3],
                                     .backend = argv[4] };
        rc = write_many(&places, argv[5], strtoul(argv[6], NULL, 10), &err);
    }
    if (rc)
        fprintf(stderr, "bench-tenants: %s\n", err.text);
    return rc != 0;
}
