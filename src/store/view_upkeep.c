/* The view cache as those see it who take things out of it: deletion, revoking,
 * fsck, and the cap. A tenant's folder has views, a view's has blocks. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "graph/grants.h"
#include "store/view_cache.h"
#include "store/view_files.h"

static const char temporaries[] = ".tmp";

/* A link is none: what it leads to is not the cache's. */
static bool is_folder(const char *path)
{
    struct stat info;

    return !lstat(path, &info) && S_ISDIR(info.st_mode);
}

/* Call fn for each name in a folder; one that is not there has none. */
static int each_name(const char *path, bal_dir_fn *fn, void *ctx,
                     bal_error *err)
{
    if (!is_folder(path))
        return 0;
    int rc = bal_dir_each(path, fn, ctx, err);

    /* Gone since: another process trims as well. */
    return rc == BAL_ENOTFOUND ? 0 : rc;
}

/* ---- walking ------------------------------------------------------------ */

/* Something in the cache, and where the walk is. */
typedef struct cache_walk {
    bal_cache_entry_fn *fn;
    void *ctx;
    const bal_store *store;
    const char *tenant;
    const char *view; /* the folder's name */
    bool verify;
    bal_buf path; /* below the root */
} cache_walk;

static int tell(cache_walk *self, const bal_id *manifest, const char *full,
                uint64_t number, bal_error *err)
{
    struct stat info;
    bal_cache_entry entry = {
        .tenant = self->tenant,
        .manifest = manifest,
        .path = bal_buf_string(&self->path),
    };

    if (lstat(full, &info))
        return 0;
    entry.bytes = (uint64_t)info.st_size;
    entry.whole =
        manifest && self->verify && bal_view_file_whole(full, manifest, number);
    return self->fn(self->ctx, &entry, err);
}

/* One name, of a path that it is appended to for the call. */
static int with_name(cache_walk *self, const char *name,
                     int (*fn)(cache_walk *, const char *full, const char *name,
                               bal_error *err),
                     bal_error *err)
{
    size_t len = self->path.len;
    int rc = bal_buf_format(&self->path, err, "/%s", name);
    if (rc)
        return rc;
    char *full = bal_path_join(self->store->root, self->path.data);
    rc = full ? fn(self, full, name, err) : bal_fail_memory(err, name);
    bal_str_free(full);
    self->path.len = len;
    self->path.data[len] = '\0';
    return rc;
}

static int block_found(cache_walk *self, const char *full, const char *name,
                       bal_error *err)
{
    bal_id manifest;
    uint64_t number = 0;
    bool entry = !bal_id_parse(&manifest, self->view, NULL) &&
                 !bal_parse_u64(&number, name, NULL) &&
                 bal_path_type_of(full) == BAL_PATH_FILE;

    return tell(self, entry ? &manifest : NULL, full, number, err);
}

static int each_block(void *ctx, const char *name, bal_error *err)
{
    return with_name(ctx, name, block_found, err);
}

static int view_found(cache_walk *self, const char *full, const char *name,
                      bal_error *err)
{
    if (!is_folder(full))
        return tell(self, NULL, full, 0, err);
    self->view = name;
    return each_name(full, each_block, self, err);
}

static int each_view(void *ctx, const char *name, bal_error *err)
{
    return with_name(ctx, name, view_found, err);
}

static int tenant_found(cache_walk *self, const char *full, const char *name,
                        bal_error *err)
{
    if (!strcmp(name, ".epoch"))
        return 0;
    self->tenant = name;
    if (!is_folder(full))
        return tell(self, NULL, full, 0, err);
    return each_name(full, each_view, self, err);
}

static int each_tenant(void *ctx, const char *name, bal_error *err)
{
    return with_name(ctx, name, tenant_found, err);
}

static int walk(cache_walk *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) cache = { 0 };
    int rc = bal_view_path(&cache, self->store, NULL, NULL, err);
    if (!rc)
        rc = bal_buf_text(&self->path, "cache", err);
    if (!rc)
        rc = each_name(cache.data, each_tenant, self, err);
    bal_buf_done(&self->path);
    return rc;
}

int bal_view_cache_each(bal_store *self, bal_cache_entry_fn *fn, void *ctx,
                        bal_error *err)
{
    cache_walk all = { .fn = fn, .ctx = ctx, .store = self, .verify = true };

    return walk(&all, err);
}

/* ---- the cap ------------------------------------------------------------ */

typedef struct held_view {
    char tenant[65];
    bal_id manifest;
    uint64_t bytes;
    struct timespec used; /* opened last */
} held_view;

typedef struct held_views {
    const bal_store *store;
    held_view *views;
    size_t count, room;
    uint64_t bytes;
} held_views;

static void note_use(held_view *view, const bal_store *store)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    struct stat info;

    if (!bal_view_path(&path, store, view->tenant, &view->manifest, NULL) &&
        !lstat(path.data, &info))
        view->used = info.st_mtim;
}

/* The blocks of a view come one after the other. */
static int add_block(void *ctx, const bal_cache_entry *entry, bal_error *err)
{
    held_views *self = ctx;
    held_view *last = self->count ? &self->views[self->count - 1] : NULL;

    self->bytes += entry->bytes;
    if (!entry->manifest)
        return 0;
    if (last && bal_id_equal(&last->manifest, entry->manifest) &&
        !strcmp(last->tenant, entry->tenant)) {
        last->bytes += entry->bytes;
        return 0;
    }
    held_view *views =
        bal_room_for_one(self->views, self->count, &self->room, sizeof(*views));
    if (!views)
        return bal_fail_memory(err, "listing the view cache");
    self->views = views;
    held_view *added = &views[self->count++];
    *added = (held_view){ .manifest = *entry->manifest, .bytes = entry->bytes };
    snprintf(added->tenant, sizeof(added->tenant), "%s", entry->tenant);
    note_use(added, self->store);
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *left = &((const held_view *)a)->used;
    const struct timespec *right = &((const held_view *)b)->used;

    if (left->tv_sec != right->tv_sec)
        return left->tv_sec < right->tv_sec ? -1 : 1;
    return (left->tv_nsec > right->tv_nsec) - (left->tv_nsec < right->tv_nsec);
}

/* Others may be filling the folder, and it then stays, in part. */
static int drop(const bal_store *store, const held_view *view, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_view_path(&path, store, view->tenant, &view->manifest, err);

    if (!rc)
        (void)!bal_remove_tree(path.data, NULL);
    return rc;
}

int bal_view_trim(uint64_t *held, const bal_store *self, uint64_t cap,
                  const char *tenant, const bal_id *manifest, bal_error *err)
{
    held_views all = { .store = self };
    cache_walk list = { .fn = add_block, .ctx = &all, .store = self };
    int rc = walk(&list, err);

    if (!rc && all.count && all.bytes > cap)
        qsort(all.views, all.count, sizeof(*all.views), by_use);
    for (size_t i = 0; i < all.count && !rc && all.bytes > cap; i++) {
        const held_view *view = &all.views[i];
        if (bal_id_equal(&view->manifest, manifest) &&
            !strcmp(view->tenant, tenant))
            continue;
        rc = drop(self, view, err);
        all.bytes -= view->bytes;
    }
    free(all.views);
    *held = all.bytes;
    return rc;
}

/* ---- taking out --------------------------------------------------------- */

/* What a folder holds, and the folders in it. */
typedef struct measure {
    const char *dir;
    uint64_t bytes;
    unsigned depth; /* below it, at most */
} measure;

static int add_size(void *ctx, const char *name, bal_error *err)
{
    measure *self = ctx;
    struct stat info = { 0 };
    char *path = bal_path_join(self->dir, name);
    if (!path)
        return bal_fail_memory(err, name);
    measure inner = { path, 0, self->depth - 1 };
    int rc = 0;

    if (!lstat(path, &info) && S_ISDIR(info.st_mode))
        rc = self->depth ? each_name(path, add_size, &inner, err) : 0;
    else
        inner.bytes = (uint64_t)info.st_size;
    self->bytes += inner.bytes;
    bal_str_free(path);
    return rc;
}

int bal_view_cache_forget(bal_store *self, const char *tenant,
                          const bal_id *manifest, uint64_t *bytes,
                          bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_view_sweep(self, err);
    if (!rc)
        rc = bal_view_path(&path, self, tenant, manifest, err);
    if (rc || bal_path_type_of(path.data) == BAL_PATH_ABSENT)
        return rc;

    measure gone = { path.data, 0, 1 };
    rc = each_name(path.data, add_size, &gone, err);
    if (!rc)
        rc = bal_remove_tree(path.data, err);
    if (!rc)
        rc = bal_sync_parent(path.data, err);
    if (!rc)
        *bytes += gone.bytes;
    return rc;
}

int bal_view_cache_wipe(bal_store *self, bal_error *err)
{
    return bal_view_wipe(self, err);
}

int bal_view_cache_settle(bal_store *self, uint64_t epoch, bal_error *err)
{
    bal_view_epoch now = { 0 };
    int rc = bal_view_epoch_read(&now, self, err);
    if (rc || !now.any || (now.there && now.epoch == epoch))
        return rc;

    /* Of the epoch before, less what the caller has taken out. */
    if (now.there && now.epoch + 1 == epoch)
        return bal_view_epoch_write(self, epoch, err);
    return bal_view_wipe(self, err);
}

int bal_view_cache_expire(bal_store *self, bal_error *err)
{
    bal_view_epoch now = { 0 };
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(self->graph, &epoch, err);
    if (!rc)
        rc = bal_view_epoch_read(&now, self, err);
    if (rc || !now.any || (now.there && now.epoch == epoch))
        return rc;
    return bal_view_wipe(self, err);
}

typedef struct having {
    char prefix[160];
    bool there;
} having;

static int is_of(void *ctx, const char *name, bal_error *err)
{
    having *self = ctx;

    (void)err;
    self->there |= !strncmp(name, self->prefix, strlen(self->prefix));
    return 0;
}

int bal_view_cache_has(bal_store *self, const char *tenant,
                       const bal_id *manifest, bool *there, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) written = { 0 };
    char hex[BAL_ID_HEX + 1] = "";
    having found = { .there = false };
    int rc = bal_view_path(&path, self, tenant, manifest, err);
    if (!rc)
        rc = bal_view_path(&written, self, temporaries, NULL, err);
    if (rc)
        return rc;

    if (manifest)
        bal_id_hex(hex, manifest);
    snprintf(found.prefix, sizeof(found.prefix), "%s:%s", tenant, hex);
    rc = each_name(written.data, is_of, &found, err);
    if (rc)
        return rc;
    *there = found.there || bal_path_type_of(path.data) != BAL_PATH_ABSENT;
    return 0;
}
