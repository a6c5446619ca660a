/* Who may write when, and what a killed writer leaves.
 *
 * Writers share a lock on the database, so that any number of them work at
 * once, from whatever root or machine; what takes blocks away has it alone. The
 * lock ends with the process. A writer notes what it intends (intent.h); what
 * it leaves when it is killed, the next one that finds itself alone cleans up.
 */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "model/stage.h"
#include "store/forget_finish.h"
#include "store/intent.h"
#include "store/locator.h"
#include "store/view_cache.h"
#include "store/view_files.h"

/* How often a deletion may be killed between two looks at the journal. */
enum { LOCK_TRIES = 8 };

static int take(bal_db_lock **out, const bal_store *self,
                enum bal_lock_mode mode, double wait, bal_error *err)
{
    return bal_graph_lock(out, self->graph, mode, wait, err);
}

static int busy(const bal_store *self, bal_error *err)
{
    return bal_fail(err, BAL_EBUSY, "store '%s' is at work for another command",
                    self->root);
}

/* Who has had the store open while it moved would write where it was, and read
 * what was deleted since. */
int bal_store_placed(bal_store *self, bal_error *err)
{
    const char *url = self->settings[BAL_SETTING_BACKEND];
    const char *name = bal_setting_name(BAL_SETTING_BACKEND);
    BAL_LOCAL(bal_buf) moved = { 0 };
    BAL_LOCAL(bal_buf) backend = { 0 };
    int rc = bal_graph_setting(self->graph, BAL_MOVED_TO, &moved, err);
    if (rc == BAL_ENOTFOUND)
        rc = url ? bal_graph_setting(self->graph, name, &backend, err) : 0;
    if (rc)
        return rc;

    bool same = !url || !strcmp(bal_buf_string(&backend), url);
    if (!moved.len && same)
        return 0;
    bal_fail(err, BAL_ECONFLICT, "store '%s' has moved", self->root);
    return bal_hint(err, BAL_ECONFLICT, "open it again");
}

static int lock_once(bal_db_lock **out, bal_store *self,
                     enum bal_lock_mode mode, double wait, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = take(&lock, self, mode, wait, err);

    if (rc == BAL_EBUSY)
        return busy(self, err);
    if (!rc)
        rc = bal_store_placed(self, err);
    if (!rc)
        *out = BAL_TAKE(lock);
    return rc;
}

int bal_store_lock_waiting(bal_db_lock **out, bal_store *self,
                           enum bal_lock_mode mode, bal_error *err)
{
    return lock_once(out, self, mode, self->wait, err);
}

int bal_store_lock_now(bal_db_lock **out, bal_store *self, bal_error *err)
{
    return lock_once(out, self, BAL_LOCK_EXCLUSIVE, 0, err);
}

/* A deletion that was killed has left rows of blocks whose bytes may be gone: a
 * writer would take them for blocks that it need not write. */
static int finish_deletions(bal_store *self, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = lock_once(&lock, self, BAL_LOCK_EXCLUSIVE, self->wait, err);

    return rc ? rc : bal_forget_resume_locked(self, err);
}

int bal_store_lock(bal_db_lock **out, bal_store *self, enum bal_lock_mode mode,
                   bal_error *err)
{
    for (size_t i = 0; i < LOCK_TRIES; i++) {
        BAL_OWN(bal_db_lock) lock = NULL;
        bool unfinished = false;
        int rc = lock_once(&lock, self, mode, self->wait, err);
        if (!rc && mode == BAL_LOCK_SHARED)
            rc = bal_forget_unfinished(self, &unfinished, err);
        if (!rc && !unfinished)
            *out = BAL_TAKE(lock);
        if (rc || !unfinished)
            return rc;
        bal_db_lock_free(BAL_TAKE(lock));
        rc = finish_deletions(self, err);
        if (rc)
            return rc;
    }
    return busy(self, err);
}

/* What bal_file_replace leaves of store.json when it is killed. */
static const char locator_temporary[] = "store.json.tmp-";

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

/* A root that nothing was written into yet need not be there. */
static int clear_root(bal_store *self, bal_error *err)
{
    if (bal_path_type_of(self->root) == BAL_PATH_ABSENT)
        return 0;
    int rc = bal_dir_each(self->root, remove_temporary, self, err);
    if (!rc)
        rc = bal_stage_sweep(self->root, err);
    if (!rc)
        rc = bal_view_sweep(self, err);
    return rc ? rc : bal_view_cache_expire(self, err);
}

int bal_store_clear(bal_store *self, unsigned flags, bal_error *err)
{
    uint64_t swept;
    int rc = bal_graph_locks_held(self->graph, err);

    if (!rc)
        rc = bal_backend_sweep(bal_blocks_backend(self->blocks), &swept, flags,
                               err);
    if (!rc)
        rc = clear_root(self, err);
    return rc ? rc : bal_intents_settle(self, err);
}

/* Before every commit, and with the lock held alone: no time for requests. */
int bal_store_recover(bal_store *self, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    int rc = take(&lock, self, BAL_LOCK_EXCLUSIVE, 0, err);
    if (rc == BAL_EBUSY)
        return 0; /* somebody is at work, and will be again */
    if (!rc)
        rc = bal_forget_resume_locked(self, err);
    if (!rc)
        rc = bal_probes_scrub(self, err);
    return rc ? rc : bal_store_clear(self, BAL_SWEEP_NEAR, err);
}
