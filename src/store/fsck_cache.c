/* fsck of the view cache: what lies there that nobody will read. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/fsck.h"
#include "store/view_cache.h"

typedef struct cache_walk {
    bal_store *store;
    const char *tenant; /* NULL: all */
    bal_stale_fn *fn;
    void *ctx;
} cache_walk;

/* Has the view a manifest still? */
static int is_known(bal_store *store, const bal_cache_entry *entry, bool *known,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_error why = { 0 };
    int64_t number = 0;

    int rc = bal_graph_tenant(store->graph, &number, entry->tenant, 0, &why);
    if (!rc)
        rc = bal_graph_manifest(store->graph, number, entry->manifest, NULL,
                                &body, &why);
    *known = !rc;
    return rc && rc != BAL_ENOTFOUND ? bal_fail(err, rc, "%s", why.text) : 0;
}

static int see_entry(void *ctx, const bal_cache_entry *entry, bal_error *err)
{
    const cache_walk *self = ctx;
    bool known = false;

    if (self->tenant && entry->tenant && strcmp(self->tenant, entry->tenant))
        return 0;
    if (!entry->manifest || !entry->tenant)
        return self->fn(self->ctx, entry, "is no part of a view", err);
    int rc = is_known(self->store, entry, &known, err);
    if (rc)
        return rc;
    if (!known)
        return self->fn(self->ctx, entry, "its view is no more", err);
    if (!entry->whole)
        return self->fn(self->ctx, entry, "its bytes are damaged", err);
    return 0;
}

int bal_stale_cache_each(bal_store *store, const char *tenant, bal_stale_fn *fn,
                         void *ctx, bal_error *err)
{
    cache_walk walk = { store, tenant, fn, ctx };

    return bal_view_cache_each(store, see_entry, &walk, err);
}

int bal_stale_cache_remove(const bal_store *store, const bal_buf *paths,
                           bal_error *err)
{
    int rc = 0;

    for (size_t at = 0; at < paths->len && !rc;
         at += strlen(paths->data + at) + 1) {
        char *path = bal_path_join(store->root, paths->data + at);
        if (!path)
            return bal_fail_memory(err, "cache");
        rc = bal_remove_tree(path, err);
        bal_str_free(path);
    }
    return rc;
}

/* ---- fsck --------------------------------------------------------------- */

typedef struct cache_fsck {
    bal_fsck_run *run;
    bal_buf paths; /* to remove: one behind the other, NUL between */
} cache_fsck;

static void cache_fsck_done(cache_fsck *self)
{
    bal_buf_done(&self->paths);
}

static int see_stale(void *ctx, const bal_cache_entry *entry, const char *why,
                     bal_error *err)
{
    cache_fsck *self = ctx;
    bool repair = self->run->flags & BAL_FSCK_REPAIR;
    bal_problem problem = { "stale-cache", entry->path, why, repair };

    if (repair) {
        int rc = bal_buf_append(&self->paths, entry->path,
                                strlen(entry->path) + 1, err);
        if (rc)
            return rc;
    }
    return bal_fsck_tell(self->run, &problem, err);
}

int bal_fsck_cache(bal_fsck_run *self, bal_error *err)
{
    BAL_LOCAL(cache_fsck) all = { .run = self };
    int rc = bal_stale_cache_each(self->store,
                                  self->tenant ? self->tenant->name : NULL,
                                  see_stale, &all, err);

    return rc ? rc : bal_stale_cache_remove(self->store, &all.paths, err);
}
