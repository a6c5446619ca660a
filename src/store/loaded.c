/* What servers were told to load, so that a deletion can name those that it
 * does not reach, and that a folder stays while one has it. */
#include <stdatomic.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/loads.h"
#include "store/store.h"

/* What goes into a proof is kept short. */
enum { TEXT_MAX = 4096 };

static int check_text(const char *what, const char *text, bal_error *err)
{
    size_t len = text ? strlen(text) : 0;

    if (!len || len > TEXT_MAX || !bal_utf8_valid(text, len))
        return bal_fail(err, BAL_EINVAL,
                        "a %s of a server is 1 to %d bytes of UTF-8", what,
                        TEXT_MAX);
    return 0;
}

/* A password has no business in the database, let alone in a proof. */
static int check_server(const char *server, bal_error *err)
{
    int rc = check_text("URL", server, err);
    if (rc)
        return rc;
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    if (memchr(host, '@', strcspn(host, "/?#")))
        return bal_fail(err, BAL_EINVAL,
                        "the URL of a server is noted without its user");
    return 0;
}

static int pass_over(void *ctx, const bal_commit_row *row, bal_error *err)
{
    (void)ctx;
    (void)row;
    (void)err;
    return 0;
}

int bal_loaded_put(bal_tenant *tenant, const bal_loaded *row, bal_error *err)
{
    bal_graph *graph = tenant->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = check_server(row->server, err);
    if (!rc)
        rc = check_text("name", row->name, err);
    if (!rc && !row->path)
        rc = bal_fail(err, BAL_EINVAL, "'%.200s' has no folder", row->name);
    if (!rc)
        rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_commit(graph, tenant->number, &row->commit, pass_over,
                              NULL, err);
    if (!rc)
        rc = bal_graph_load_put(graph, tenant->number, row, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

typedef struct kept_loads {
    bal_buf rows; /* of bal_loaded */
    bal_arena arena;
} kept_loads;

static void kept_loads_done(kept_loads *self)
{
    bal_buf_done(&self->rows);
    bal_arena_done(&self->arena);
}

static int keep(void *ctx, const bal_loaded *row, bal_error *err)
{
    kept_loads *self = ctx;
    bal_loaded copy = *row;

    copy.server =
        bal_arena_copy(&self->arena, row->server, strlen(row->server));
    copy.name = bal_arena_copy(&self->arena, row->name, strlen(row->name));
    copy.path = bal_arena_copy(&self->arena, row->path, strlen(row->path));
    if (!copy.server || !copy.name || !copy.path)
        return bal_fail_memory(err, "what servers loaded");
    return bal_buf_append(&self->rows, &copy, sizeof(copy), err);
}

int bal_loaded_each(bal_tenant *tenant, const bal_id *commit, bal_loaded_fn *fn,
                    void *ctx, bal_error *err)
{
    BAL_LOCAL(kept_loads) all = { { 0 } };
    bal_loaded row;
    int rc = bal_graph_loads(tenant->store->graph, tenant->number, commit, keep,
                             &all, err);

    for (size_t at = 0; at < all.rows.len && !rc; at += sizeof(row)) {
        memcpy(&row, all.rows.data + at, sizeof(row));
        if (fn(ctx, &row))
            break;
    }
    return rc;
}

int bal_loaded_drop(bal_tenant *tenant, const char *server, const char *name,
                    bal_error *err)
{
    return bal_graph_load_drop(tenant->store->graph, tenant->number, server,
                               name, err);
}

int bal_store_changes(uint64_t *out, bal_store *self, bal_error *err)
{
    uint64_t now = 0;
    int rc = bal_graph_changes(self->graph, &now, err);

    if (!rc && now != atomic_load(&self->placed))
        rc = bal_store_placed(self, err);
    if (rc)
        return rc;
    atomic_store(&self->placed, now);
    *out = now;
    return 0;
}
