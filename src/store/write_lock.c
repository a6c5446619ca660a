/* Who may write when, and what a killed writer leaves.
 *
 * Writers share a lock beside the database, so that any number of them work at
 * once, from whatever root; what takes blocks away has it alone. The lock ends
 * with the process. A writer
 * notes the blocks it is about to publish in the graph; if it is killed between
 * publishing and naming them, the next writer that finds itself alone removes
 * those that nobody named. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/forget_finish.h"
#include "store/view_cache.h"
#include "store/view_files.h"

/* How often a deletion may be killed between two looks at the journal. */
enum { LOCK_TRIES = 8 };

static int take(bal_lock **out, const bal_store *self, enum bal_lock_mode mode,
                double wait, bal_error *err)
{
    return bal_lock_take(out, self->lock, mode, wait, err);
}

static int busy(const bal_store *self, bal_error *err)
{
    return bal_fail(err, BAL_EBUSY, "store '%s' is at work for another command",
                    self->root);
}

static int lock_once(bal_lock **out, const bal_store *self,
                     enum bal_lock_mode mode, double wait, bal_error *err)
{
    int rc = take(out, self, mode, wait, err);

    return rc == BAL_EBUSY ? busy(self, err) : rc;
}

int bal_store_lock_waiting(bal_lock **out, bal_store *self,
                           enum bal_lock_mode mode, bal_error *err)
{
    return lock_once(out, self, mode, self->wait, err);
}

int bal_store_lock_now(bal_lock **out, bal_store *self, bal_error *err)
{
    return lock_once(out, self, BAL_LOCK_EXCLUSIVE, 0, err);
}

/* A deletion that was killed has left rows of blocks whose bytes may be gone: a
 * writer would take them for blocks that it need not write. */
static int finish_deletions(bal_store *self, bal_error *err)
{
    BAL_OWN(bal_lock) lock = NULL;
    int rc = lock_once(&lock, self, BAL_LOCK_EXCLUSIVE, self->wait, err);

    return rc ? rc : bal_forget_resume_locked(self, err);
}

int bal_store_lock(bal_lock **out, bal_store *self, enum bal_lock_mode mode,
                   bal_error *err)
{
    for (size_t i = 0; i < LOCK_TRIES; i++) {
        BAL_OWN(bal_lock) lock = NULL;
        bool unfinished = false;
        int rc = lock_once(&lock, self, mode, self->wait, err);
        if (!rc && mode == BAL_LOCK_SHARED && self->graph)
            rc = bal_forget_unfinished(self, &unfinished, err);
        if (!rc && !unfinished)
            *out = BAL_TAKE(lock);
        if (rc || !unfinished)
            return rc;
        bal_lock_free(BAL_TAKE(lock));
        rc = finish_deletions(self, err);
        if (rc)
            return rc;
    }
    return busy(self, err);
}

/* What bal_file_replace leaves of store.json when it is killed. */
static const char locator_temporary[] = "store.json.tmp-";

/* Blocks to remove: those of one tenant that were told one behind the other. */
typedef struct leftovers {
    bal_blocks *blocks;
    char tenant[64 + 1];
    bal_buf ids;
} leftovers;

static void leftovers_done(leftovers *self)
{
    bal_buf_done(&self->ids);
}

static int remove_noted(leftovers *self, bal_error *err)
{
    size_t count = self->ids.len / sizeof(bal_id);
    uint64_t freed;
    int rc = bal_blocks_remove(self->blocks, self->tenant,
                               (const bal_id *)(const void *)self->ids.data,
                               count, &freed, err);

    bal_buf_clear(&self->ids);
    return rc;
}

static int note_one(void *ctx, const char *session, const char *tenant,
                    const bal_id *id, bal_error *err)
{
    leftovers *self = ctx;

    (void)session;
    if (!bal_name_valid(tenant))
        return bal_fail(err, BAL_ECORRUPT, "'%s' is not a tenant's name",
                        tenant);
    if (strcmp(tenant, self->tenant) != 0) {
        int rc = remove_noted(self, err);
        if (rc)
            return rc;
        snprintf(self->tenant, sizeof(self->tenant), "%s", tenant);
    }
    return bal_buf_append(&self->ids, id, sizeof(*id), err);
}

static int remove_unnamed(bal_store *self, bal_error *err)
{
    BAL_LOCAL(leftovers) all = { .blocks = self->blocks };
    int rc = bal_graph_intended(self->graph, NULL, note_one, &all, err);

    return rc ? rc : remove_noted(&all, err);
}

static int remove_temporary(void *ctx, const char *name, bal_error *err)
{
    const bal_store *store = ctx;

    if (strncmp(name, locator_temporary, sizeof(locator_temporary) - 1) != 0)
        return 0;
    char *path = bal_path_join(store->root, name);
    if (!path)
        return bal_fail_memory(err, name);
    int rc = bal_remove_tree(path, err);
    bal_str_free(path);
    return rc;
}

int bal_store_clear(bal_store *self, bal_error *err)
{
    uint64_t swept;
    int rc =
        bal_backend_sweep(bal_blocks_backend(self->blocks), &swept, 0, err);
    if (rc)
        return rc;
    rc = bal_dir_each(self->root, remove_temporary, self, err);
    if (!rc)
        rc = bal_view_sweep(self, err);
    if (!rc)
        rc = bal_view_cache_expire(self, err);
    if (rc)
        return rc;
    rc = remove_unnamed(self, err);
    if (rc)
        return rc;
    return bal_graph_intended_done(self->graph, NULL, err);
}

int bal_store_recover(bal_store *self, bal_error *err)
{
    BAL_OWN(bal_lock) lock = NULL;
    int rc = take(&lock, self, BAL_LOCK_EXCLUSIVE, 0, err);
    if (rc == BAL_EBUSY)
        return 0; /* somebody is at work, and will be again */
    if (!rc)
        rc = bal_forget_resume_locked(self, err);
    return rc ? rc : bal_store_clear(self, err);
}
