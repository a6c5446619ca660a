#include "support/graphs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "support/check.h"
#include "support/databases.h"

#define LABELS 8192

static struct {
    char text[32];
    bal_id id;
} labels[LABELS];
static size_t label_count;

/* ---- files -------------------------------------------------------------- */

bal_graph *graphs_open(const char *name)
{
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    CHECK_OK(bal_db_open(&db, database_url(name), check_dir(), 5, BAL_DB_CREATE,
                         &check_err));
    CHECK_OK(bal_graph_open(&graph, db, BAL_DB_CREATE, &check_err));
    return graph;
}

const char *graphs_path(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s.db", check_dir(), name);
    return path;
}

void graphs_meddle(const char *name, const char *sql)
{
    sqlite3 *handle = NULL;

    if (database_meddle(name, sql))
        return;
    CHECK(sqlite3_open(graphs_path(name), &handle) == SQLITE_OK);
    CHECK(sqlite3_exec(handle, "PRAGMA ignore_check_constraints = ON", NULL,
                       NULL, NULL) == SQLITE_OK);
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        print_error("%s: %s\n", sqlite3_errmsg(handle), sql);
    CHECK(rc == SQLITE_OK);
    CHECK(sqlite3_close(handle) == SQLITE_OK);
}

void graphs_settle(const char *name)
{
    graphs_meddle(name, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* ---- names -------------------------------------------------------------- */

bal_id graphs_id(const char *label)
{
    bal_id id;

    bal_hash_of(&id, label, strlen(label));
    for (size_t i = 0; i < label_count; i++) {
        if (bal_id_equal(&labels[i].id, &id))
            return id;
    }
    CHECK(label_count < LABELS && strlen(label) < sizeof(labels[0].text));
    memcpy(labels[label_count].text, label, strlen(label) + 1);
    labels[label_count++].id = id;
    return id;
}

const char *graphs_label(const bal_id *id)
{
    for (size_t i = 0; i < label_count; i++) {
        if (bal_id_equal(&labels[i].id, id))
            return labels[i].text;
    }
    return "?";
}

/* The next word of text, as far as `end`; false if there is none. */
static bool word(char out[32], const char **text, char end)
{
    while (**text == ' ')
        ++*text;
    if (!**text)
        return false;
    size_t len = 0;
    for (; **text && **text != end && **text != ' '; ++*text) {
        CHECK(len < 31);
        out[len++] = **text;
    }
    out[len] = 0;
    if (**text)
        ++*text;
    return true;
}

/* ---- things ------------------------------------------------------------- */

int64_t graphs_tenant(bal_graph *graph, const char *tenant)
{
    int64_t number = 0;

    CHECK_OK(
        bal_graph_tenant(graph, &number, tenant, BAL_DB_CREATE, &check_err));
    return number;
}

void graphs_leaf(bal_graph *graph, const char *tenant, const char *manifest,
                 const char *blocks)
{
    char label[32];
    bal_block_row rows[64];
    bal_id ids[64];
    size_t count = 0;
    bal_manifest_row row = {
        .id = graphs_id(manifest),
        .kind = "weights",
        .body = { "{}", 2 },
        .uses = ids,
        .logical = 100,
    };

    for (; word(label, &blocks, ' '); count++) {
        CHECK(count < 64);
        ids[count] = graphs_id(label);
        rows[count] = (bal_block_row){
            .id = ids[count],
            .size = 50,
            .stored = 40,
            .codec = 1,
            .check = graphs_id("check"),
            .has_check = true,
        };
    }
    row.use_count = count;
    CHECK_OK(bal_graph_manifest_put(graph, graphs_tenant(graph, tenant), &row,
                                    rows, count, &check_err));
}

/* Fills rows and tenants from "acme/c1/m1 …". */
static size_t read_inputs(bal_input_row *rows, char tenants[][32],
                          const char *inputs)
{
    size_t count = 0;
    char commit[32];
    char manifest[32];

    for (; word(tenants[count], &inputs, '/'); count++) {
        CHECK(count < 15);
        CHECK(word(commit, &inputs, '/') && word(manifest, &inputs, ' '));
        rows[count].tenant = tenants[count];
        rows[count].commit = graphs_id(commit);
        rows[count].manifest = graphs_id(manifest);
    }
    return count;
}

void graphs_view_body(bal_buf *to, const char *inputs)
{
    bal_input_row rows[16];
    char tenants[16][32];
    size_t count = read_inputs(rows, tenants, inputs);

    CHECK_OK(bal_buf_text(to, "{\"kind\":\"view\",\"recipe\":{\"inputs\":[",
                          &check_err));
    for (size_t i = 0; i < count; i++) {
        char commit[BAL_ID_HEX + 1];
        char manifest[BAL_ID_HEX + 1];
        bal_id_hex(commit, &rows[i].commit);
        bal_id_hex(manifest, &rows[i].manifest);
        CHECK_OK(bal_buf_format(to, &check_err,
                                "%s{\"commit\":\"%s\",\"manifest\":\"%s\","
                                "\"tenant\":\"%s\",\"weight\":\"1\"}",
                                i ? "," : "", commit, manifest,
                                rows[i].tenant));
    }
    CHECK_OK(bal_buf_text(to, "]},\"version\":1}", &check_err));
}

void graphs_view(bal_graph *graph, const char *tenant, const char *manifest,
                 const char *inputs)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_input_row rows[16];
    char tenants[16][32];

    graphs_view_body(&body, inputs);
    bal_manifest_row row = {
        .id = graphs_id(manifest),
        .kind = "view",
        .body = { body.data, body.len },
        .inputs = rows,
        .input_count = read_inputs(rows, tenants, inputs),
    };
    CHECK_OK(bal_graph_manifest_put(graph, graphs_tenant(graph, tenant), &row,
                                    NULL, 0, &check_err));
}

void graphs_commit(bal_graph *graph, const char *tenant, const char *commit,
                   const char *manifest, const char *parent)
{
    char message[64];
    bal_commit_row row = {
        .id = graphs_id(commit),
        .manifest = graphs_id(manifest),
        .parent = graphs_id(parent ? parent : "none"),
        .made_on = graphs_id(parent ? parent : "none"),
        .has_parent = parent,
        .has_made_on = parent,
        .message = message,
        .author = "ann",
        .base_model = "base",
        .metadata = "{}",
        .created_at = 1000,
    };

    snprintf(message, sizeof(message), "about %s", commit);
    CHECK_OK(bal_graph_commit_put(graph, graphs_tenant(graph, tenant), &row,
                                  &check_err));
}

int graphs_move(bal_graph *graph, const char *tenant, const char *ref,
                const char *from, const char *to, const char *message)
{
    bal_move_row row = {
        .ref = ref,
        .op = to ? "commit" : "forget",
        .old = graphs_id(from ? from : "none"),
        .now = graphs_id(to ? to : "none"),
        .has_old = from,
        .has_now = to,
        .at = 2000,
        .message = message,
    };

    return bal_graph_move(graph, graphs_tenant(graph, tenant), &row,
                          &check_err);
}

static int join_fault(void *ctx, const char *kind, const char *what,
                      const char *detail, bal_error *err)
{
    return bal_buf_format(ctx, err, "%s %s %s\n", kind, what, detail);
}

void graphs_faults(bal_buf *to, bal_graph *graph)
{
    CHECK_OK(bal_graph_check(graph, 0, join_fault, to, &check_err));
}
