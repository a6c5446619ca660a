/* A store moves: blocks to another backend, rows to another database.
 *
 * The order is what makes it safe to be cut short. Blocks first, each by its
 * name, so that the next try passes over what is there; then every block is
 * read back and checked; then the rows, with the new addresses among them, in
 * one transaction, and not to be used yet; then the old database says that the
 * store has moved. From then on it is at the new place: whoever opens the old
 * one follows (open.c), and does what is left, which is to say that the rows
 * may be used, and to write store.json. Who has the old one open finds out when
 * it takes the lock. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "core/str.h"
#include "graph/moving.h"
#include "graph/proofs.h"
#include "store/locator.h"
#include "store/statement.h"
#include "store/store.h"

typedef struct run_name {
    char *name;
    uint64_t size;
    bool present;
} run_name;

typedef struct copying {
    bal_store *store;
    bal_backend *from;
    bal_blocks *to; /* NULL: blocks stay */
    run_name *names;
    size_t count, room;
    bal_buf strange; /* names that are there alone, a NUL behind each */
    bal_copy_report *report;
} copying;

static void copying_done(copying *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_str_free(self->names[i].name);
    free(self->names);
    bal_buf_done(&self->strange);
    bal_blocks_free(self->to);
}

/* ---- which blocks -------------------------------------------------------- */

static int add_name(void *ctx, const char *name, uint64_t size, bal_error *err)
{
    copying *self = ctx;
    run_name *names =
        bal_room_for_one(self->names, self->count, &self->room, sizeof(*names));
    if (!names)
        return bal_fail_memory(err, "names of blocks");

    self->names = names;
    names[self->count] = (run_name){ bal_str_copy(name), size, false };
    if (!names[self->count].name)
        return bal_fail_memory(err, "names of blocks");
    self->count++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const run_name *one = a, *two = b;

    return strcmp(one->name, two->name);
}

/* What is there from an earlier try, if it has the size; it is checked later.
 */
static int note_present(void *ctx, const char *name, uint64_t size,
                        bal_error *err)
{
    copying *self = ctx;
    const run_name key = { .name = (char *)(uintptr_t)name };
    run_name *found = self->count ? bsearch(&key, self->names, self->count,
                                            sizeof(key), by_name)
                                  : NULL;

    if (found && found->size == size)
        found->present = true;
    return found ? 0
                 : bal_buf_append(&self->strange, name, strlen(name) + 1, err);
}

static int list_names(copying *self, bal_error *err)
{
    int rc = bal_backend_list(self->from, "", add_name, self, err);

    if (!rc && self->count)
        qsort(self->names, self->count, sizeof(*self->names), by_name);
    if (!rc)
        rc = bal_backend_list(bal_blocks_backend(self->to), "", note_present,
                              self, err);
    return rc;
}

/* ---- their bytes --------------------------------------------------------- */

static int copy_one(size_t i, void *ctx, bal_error *err)
{
    copying *self = ctx;
    const run_name *run = &self->names[i];
    bal_backend *to = bal_blocks_backend(self->to);
    BAL_LOCAL(bal_buf) bytes = { .ceiling = BAL_BLOCK_LONGEST * 2 };
    bal_staged staged = { 0 };

    if (run->present)
        return 0;
    int rc = bal_backend_get(self->from, run->name, 0, 0, &bytes, err);
    const bal_bytes part = { bytes.data, bytes.len };
    if (!rc)
        rc = bal_backend_stage(to, &staged, run->name, &part, 1, err);
    if (!rc)
        rc = bal_backend_settle(to, &staged, 1, self->store->work, err);
    bal_backend_discard(to, &staged);
    bal_work_advance(self->store->work, run->size);
    return rc;
}

/* A run is a tenant's block, or something that is not ours to move. */
static bool block_of(char tenant[65], bal_id *id, const char *name)
{
    const char *first = strchr(name, '/');
    const char *last = strrchr(name, '/');
    size_t len = first ? (size_t)(first - name) : 0;

    if (!len || len > 64 || strlen(last + 1) != BAL_ID_HEX ||
        bal_id_parse(id, last + 1, NULL))
        return false;
    memcpy(tenant, name, len);
    tenant[len] = '\0';
    return true;
}

static int check_one(size_t i, void *ctx, bal_error *err)
{
    copying *self = ctx;
    const run_name *run = &self->names[i];
    bal_block_info info = { 0 };
    char tenant[65];
    bal_id id;

    bal_work_advance(self->store->work, run->size);
    if (!block_of(tenant, &id, run->name))
        return 0;
    int rc = bal_blocks_verify(self->to, tenant, &id, BAL_VERIFY_PAYLOAD, &info,
                               err);
    return bal_hint(err, rc,
                    "'ballast fsck' tells whether it is damaged "
                    "where it comes from, too");
}

/* ---- what was there before ----------------------------------------------- */

/* Where the store was once, there may be blocks that it has deleted since, and
 * they must not come back to it. Only what no row names: what the list of the
 * old place lacks may be a list's fault. */
static int remove_strange(copying *self, const char *name, bal_error *err)
{
    const char *first = strchr(name, '/');
    const char *second = first ? strchr(first + 1, '/') : NULL;
    bal_presence found = { .row = false };
    uint64_t freed = 0;
    char tenant[65];
    bal_id id;

    if (!second || second != strrchr(name, '/') ||
        !block_of(tenant, &id, name) || !bal_name_valid(tenant))
        return 0;
    int rc = bal_graph_presence(self->store->graph, tenant, BAL_PRESENCE_BLOCK,
                                &id, &found, err);
    if (rc || found.row)
        return rc;
    rc = bal_graph_locks_held(self->store->graph, err);
    if (rc)
        return rc;
    return bal_blocks_remove(self->to, tenant, &id, 1, &freed, err);
}

static int remove_all_strange(copying *self, bal_error *err)
{
    const bal_buf *all = &self->strange;
    int rc = 0;

    for (size_t at = 0; at < all->len && !rc; at += strlen(all->data + at) + 1)
        rc = remove_strange(self, all->data + at, err);
    return rc;
}

/* ---- all of them --------------------------------------------------------- */

static int open_target(copying *self, const char *url, bal_error *err)
{
    BAL_LOCAL(bal_buf) id = { 0 };
    BAL_OWN(bal_backend) backend = NULL;
    int rc = bal_store_identity(&id, self->store, err);
    if (!rc)
        rc = bal_backend_open(&backend, url, self->store->root, err);
    if (!rc)
        rc =
            bal_backend_claim(backend, bal_buf_string(&id), BAL_CLAIM_NOW, err);
    if (rc)
        return rc;
    bal_work_widen(self->store->work, backend->parallel);
    rc = bal_blocks_open(&self->to, backend, 0, err);
    if (!rc)
        (void)BAL_TAKE(backend);
    return rc;
}

static int copy_blocks(copying *self, const char *url, bal_error *err)
{
    bal_work *work = self->store->work;
    uint64_t all = 0;
    int rc = open_target(self, url, err);
    if (!rc)
        rc = list_names(self, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < self->count; i++) {
        const run_name *run = &self->names[i];
        all += run->size;
        self->report->present += run->present;
        self->report->blocks += !run->present;
        self->report->bytes += run->present ? 0 : run->size;
    }
    bal_work_expect(work, 2 * all);
    rc = bal_pool_run(work, self->count, copy_one, self, err);
    if (!rc)
        rc = bal_pool_run(work, self->count, check_one, self, err);
    return rc ? rc : remove_all_strange(self, err);
}

/* ---- the rows ------------------------------------------------------------ */

/* In one transaction: all rows, and where the store is now. */
static int copy_rows(copying *self, bal_graph *to, const char *backend,
                     const char *db, bal_error *err)
{
    BAL_LOCAL(bal_buf) id = { 0 };
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_store_identity(&id, self->store, err);
    if (!rc)
        rc = bal_graph_begin(&tx, to, BAL_TX_WRITE, err);
    if (!rc)
        rc = bal_graph_copy_rows(self->store->graph, to, BAL_ARRIVING,
                                 bal_buf_string(&id), &self->report->rows, err);
    if (!rc)
        rc = bal_graph_set(to, BAL_ARRIVING, bal_buf_string(&id), err);
    if (!rc && backend)
        rc = bal_graph_set(to, bal_setting_name(BAL_SETTING_BACKEND), backend,
                           err);
    if (!rc)
        rc = bal_graph_set(to, bal_setting_name(BAL_SETTING_DB), db, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int move_rows(copying *self, const char *backend, const char *url,
                     bal_error *err)
{
    bal_store *store = self->store;
    BAL_OWN(bal_db) db = NULL;
    BAL_OWN(bal_graph) to = NULL;
    char *plain = NULL;
    int rc = bal_db_plain(&plain, url, err);
    if (!rc)
        rc =
            bal_db_open(&db, url, store->root, store->wait, BAL_DB_CREATE, err);
    if (!rc)
        rc = bal_graph_open(&to, BAL_TAKE(db), BAL_DB_CREATE, err);
    if (!rc)
        rc = copy_rows(self, to, backend, plain, err);
    if (!rc)
        rc = bal_graph_set(store->graph, BAL_MOVED_TO, plain, err);
    if (!rc)
        rc = bal_graph_set(to, BAL_ARRIVING, NULL, err);
    if (!rc)
        rc = bal_locator_write(store->root, plain, err);
    bal_str_free(plain);
    return rc;
}

int bal_store_copy(bal_store *self, const char *backend, const char *db,
                   bal_copy_report *report, bal_error *err)
{
    BAL_LOCAL(copying) run = { .store = self, .report = report };
    BAL_OWN(bal_db_lock) lock = NULL;

    *report = (bal_copy_report){ 0 };
    if (!backend && !db)
        return bal_fail(err, BAL_EINVAL,
                        "neither a backend nor a database is "
                        "named to copy to");
    int rc = bal_store_lock(&lock, self, BAL_LOCK_EXCLUSIVE, err);
    if (!rc)
        rc = bal_store_clear(self, 0, err);
    if (rc)
        return rc;
    run.from = bal_blocks_backend(self->blocks);
    if (backend)
        rc = copy_blocks(&run, backend, err);
    if (rc)
        return rc;
    if (db)
        return move_rows(&run, backend, db, err);
    return bal_graph_set(self->graph, bal_setting_name(BAL_SETTING_BACKEND),
                         backend, err);
}
