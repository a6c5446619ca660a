/* Opening a store: the root says where the database is, the database says
 * everything else. */
#include <stdlib.h>
#include <string.h>

#include "blocks/near.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"
#include "graph/grants.h"
#include "store/forget.h"
#include "store/locator.h"
#include "store/statement.h"

#define DEFAULT_BACKEND "file:blocks"
#define DEFAULT_DB      "sqlite:graph.db"
#define CACHE_SIZE      ((uint64_t)10 << 30)
/* Enough that the blocks which several tensors share are decoded once. */
#define CACHE_BLOCKS 6
/* How often a store may have moved since a root was told. */
#define MOVES 8

static int connect(bal_store *self, const char *db, unsigned flags,
                   bal_error *err)
{
    BAL_OWN(bal_db) base = NULL;
    int rc = bal_db_open(&base, db, self->root, self->wait, flags, err);
    if (rc)
        return rc;
    return bal_graph_open(&self->graph, BAL_TAKE(base), flags, err);
}

/* A hold on the store that is another machine's by now takes nothing away. */
static int still_ours(void *ctx, bal_error *err)
{
    return bal_graph_locks_held(ctx, err);
}

/* The backend, told whose it is. */
static int open_backend(bal_backend **out, bal_store *self, const char *url,
                        unsigned flags, bal_error *err)
{
    BAL_LOCAL(bal_buf) id = { 0 };
    BAL_OWN(bal_backend) backend = NULL;
    int rc = bal_backend_open(&backend, url, self->root, err);
    if (!rc)
        rc = bal_store_identity(&id, self, err);
    if (!rc)
        rc = bal_backend_claim(backend, bal_buf_string(&id), flags, err);
    if (rc)
        return rc;
    backend->may = still_ours;
    backend->may_ctx = self->graph;
    *out = BAL_TAKE(backend);
    return 0;
}

static int epoch_now(void *ctx, uint64_t *epoch, bal_error *err)
{
    return bal_graph_epoch(ctx, epoch, err);
}

/* With copies in a folder of the store's own below options->cache. */
static int keep_copies(bal_backend **backend, bal_store *self,
                       const bal_store_options *options, bal_error *err)
{
    BAL_LOCAL(bal_buf) id = { 0 };
    BAL_LOCAL(bal_buf) dir = { 0 };
    bal_near_options near = {
        .most = options->cache_size ? options->cache_size : CACHE_SIZE,
        .epoch = epoch_now,
        .ctx = self->graph,
    };
    int rc = bal_store_identity(&id, self, err);

    if (!rc)
        rc = bal_buf_format(&dir, err, "%s/%s", options->cache,
                            bal_buf_string(&id));
    near.dir = bal_buf_string(&dir);
    return rc ? rc : bal_near_open(backend, *backend, &near, err);
}

static int open_blocks(bal_store *self, const bal_store_options *options,
                       bal_error *err)
{
    BAL_OWN(bal_backend) backend = NULL;
    int rc = open_backend(&backend, self, self->settings[BAL_SETTING_BACKEND],
                          0, err);
    if (!rc && options->cache)
        rc = keep_copies(&backend, self, options, err);
    if (rc)
        return rc;
    bal_work_widen(self->work, backend->parallel);
    size_t cache = CACHE_BLOCKS * (size_t)self->block_size;
    rc = bal_blocks_open(&self->blocks, backend, cache, err);
    if (rc)
        return rc;
    (void)BAL_TAKE(backend);
    return 0;
}

/* Nothing is recorded that cannot be used. A store that is there already has
 * its backend, and another one that is asked for is not to be touched. */
static int try_backend(bal_store *self, const char *url, bal_error *err)
{
    BAL_LOCAL(bal_buf) there = { 0 };
    BAL_OWN(bal_backend) backend = NULL;
    const char *name = bal_setting_name(BAL_SETTING_BACKEND);
    int rc = bal_graph_setting(self->graph, name, &there, err);

    if (rc != BAL_ENOTFOUND)
        return rc;
    return open_backend(&backend, self, url, BAL_CLAIM_NOW, err);
}

/* While it is held, nobody takes our temporaries for a dead one's. */
static int lock_root(bal_lock **out, const bal_store *self, bal_error *err)
{
    char *path = bal_path_join(self->root, "lock");
    int rc = path ? bal_lock_take(out, path, BAL_LOCK_SHARED, self->wait, err)
                  : bal_fail_memory(err, self->root);

    bal_str_free(path);
    return rc;
}

/* Make the store, or finish one whose making was cut short. */
static int make(bal_store *self, const bal_store_options *options,
                const char *plain, bal_error *err)
{
    const char *backend = options->backend ? options->backend : DEFAULT_BACKEND;
    const char *db = options->db ? options->db : DEFAULT_DB;
    int rc = bal_make_dirs(self->root, err);
    if (rc)
        return rc;

    BAL_OWN(bal_lock) lock = NULL;
    BAL_OWN(bal_db_lock) shared = NULL;
    rc = lock_root(&lock, self, err);
    if (!rc)
        rc = connect(self, db, BAL_DB_CREATE, err);
    /* Who clears this root of temporaries is alone in the database. */
    if (!rc)
        rc = bal_graph_lock(&shared, self->graph, BAL_LOCK_SHARED, self->wait,
                            err);
    if (rc)
        return rc;
    rc = try_backend(self, backend, err);
    if (!rc)
        rc = bal_settings_make(self->graph, options, backend, plain, err);
    return rc ? rc : bal_locator_write(self->root, plain, err);
}

static int absent(const char *root, bal_error *err)
{
    return bal_hint(err, bal_fail(err, BAL_ENOTFOUND, "no store at '%s'", root),
                    "'ballast init' makes one, as does a command that writes");
}

/* Who names the database that is recorded may do so with a password. */
static int find(bal_store *self, const char *asked, const char *plain,
                const char *locator, bal_error *err)
{
    char *db = NULL;
    int rc = bal_locator_read(&db, locator, err);
    if (rc)
        return rc;

    rc = connect(self, asked && !strcmp(plain, db) ? asked : db, 0, err);
    bal_str_free(db);
    return bal_within(err, rc, "store '%s'", self->root);
}

/* A fresh root, of a store whose database is named: nothing is written into it
 * before something is to be written into the store. */
static int visit(bal_store *self, const char *db, bal_error *err)
{
    bal_error why;
    int rc = connect(self, db, 0, &why);

    if (!rc)
        return 0;
    return rc == BAL_ENOTFOUND ? absent(self->root, err)
                               : bal_fail(err, rc, "%s", why.text);
}

/* plain: of the database that is asked for, or would be. */
static int find_at(bal_store *self, const bal_store_options *options,
                   const char *plain, const char *locator, bal_error *err)
{
    bool create = options->flags & (BAL_OPEN_CREATE | BAL_OPEN_INIT);

    if (bal_path_type_of(locator) != BAL_PATH_ABSENT)
        return find(self, options->db, plain, locator, err);
    if (create)
        return make(self, options, plain, err);
    if (options->db)
        return visit(self, options->db, err);
    return absent(self->root, err);
}

/* The graph, of a store that is there or is made now. */
static int find_or_make(bal_store *self, const bal_store_options *options,
                        bal_error *err)
{
    char *plain = NULL;
    int rc = bal_db_plain(&plain, options->db ? options->db : DEFAULT_DB, err);
    if (rc)
        return rc;

    char *locator = bal_path_join(self->root, "store.json");
    rc = locator ? find_at(self, options, plain, locator, err)
                 : bal_fail_memory(err, self->root);
    bal_str_free(locator);
    bal_str_free(plain);
    return rc;
}

/* ---- a store that has moved ---------------------------------------------- */

/* What a copy that was cut short left to do: see copy.c. A root that cannot be
 * written to asks the old database again next time. */
static int settle_in(bal_store *self, const char *db, bal_error *err)
{
    BAL_LOCAL(bal_buf) arriving = { 0 };
    bal_error why;
    int rc = bal_graph_setting(self->graph, BAL_ARRIVING, &arriving, err);
    if (!rc)
        rc = bal_graph_set(self->graph, BAL_ARRIVING, NULL, err);
    else if (rc == BAL_ENOTFOUND)
        rc = 0;
    if (rc)
        return rc;

    if (bal_locator_write(self->root, db, &why))
        bal_warn("store", "has moved to '%s': %s", db, why.text);
    return 0;
}

static int follow_once(bal_store *self, bool *moved, bal_error *err)
{
    BAL_LOCAL(bal_buf) db = { 0 };
    int rc = bal_graph_setting(self->graph, BAL_MOVED_TO, &db, err);

    *moved = !rc;
    if (rc)
        return rc == BAL_ENOTFOUND ? 0 : rc;
    bal_graph_free(BAL_TAKE(self->graph));
    rc = connect(self, bal_buf_string(&db), 0, err);
    if (!rc)
        rc = settle_in(self, bal_buf_string(&db), err);
    return bal_within(err, rc, "store '%s' has moved", self->root);
}

/* To where it is now. */
static int follow(bal_store *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) arriving = { 0 };
    bool moved = true;
    int rc = 0;

    for (size_t i = 0; i < MOVES && moved && !rc; i++)
        rc = follow_once(self, &moved, err);
    if (rc)
        return rc;
    if (moved)
        return bal_fail(err, BAL_ECORRUPT,
                        "store '%s' has moved round and "
                        "round",
                        self->root);
    rc = bal_graph_setting(self->graph, BAL_ARRIVING, &arriving, err);
    if (rc)
        return rc == BAL_ENOTFOUND ? 0 : rc;
    return bal_hint(
        err,
        bal_fail(err, BAL_ECONFLICT, "a copy into this database was cut short"),
        "run 'ballast copy' again where the store is");
}

/* What is being deleted can be read by nobody, so a store where that cannot go
 * on just now (others are at work, the disk is read-only) is still one to read;
 * writers fail where they cannot finish it. */
static void finish_deletions(bal_store *self)
{
    bal_error why;
    int rc = bal_forget_resume(self, &why);

    if (rc && rc != BAL_EBUSY)
        bal_warn("forget", "%s%s%s", why.text, why.hint[0] ? ": " : "",
                 why.hint);
}

int bal_store_open(bal_store **out, const bal_store_options *options,
                   bal_error *err)
{
    BAL_OWN(bal_store) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, options->root);

    self->work = options->work;
    self->no_cache = options->flags & BAL_OPEN_NO_CACHE;
    self->wait = options->wait > 0 ? options->wait : 30;
    self->root = bal_str_copy(options->root);
    if (!self->root)
        return bal_fail_memory(err, options->root);
    int rc = find_or_make(self, options, err);
    if (!rc)
        rc = follow(self, err);
    if (rc)
        return rc;
    rc = bal_settings_load(self, err);
    if (rc)
        return rc;
    rc = bal_settings_match(self, options, err);
    if (rc)
        return rc;
    rc = open_blocks(self, options, err);
    if (rc)
        return rc;
    finish_deletions(self);
    *out = BAL_TAKE(self);
    return 0;
}

void bal_store_free(bal_store *self)
{
    if (!self)
        return;
    bal_blocks_free(self->blocks);
    bal_graph_free(self->graph);
    for (size_t i = 0; i < BAL_SETTINGS; i++)
        bal_str_free(self->settings[i]);
    bal_str_free(self->root);
    free(self);
}

const char *bal_store_root(const bal_store *self)
{
    return self->root;
}
