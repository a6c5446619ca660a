/* Who may write when, and what a killed writer leaves.
 *
 * Writers share a lock on the root, so that any number of them work at once;
 * what takes blocks away has it alone. The lock ends with the process. A writer
 * notes the blocks it is about to publish in the graph; if it is killed between
 * publishing and naming them, the next writer that finds itself alone removes
 * those that nobody named. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

static int take(bal_lock **out, const bal_store *self, enum bal_lock_mode mode,
                double wait, bal_error *err)
{
    char *path = bal_path_join(self->root, "lock");
    if (!path)
        return bal_fail_memory(err, self->root);

    int rc = bal_lock_take(out, path, mode, wait, err);
    bal_str_free(path);
    return rc;
}

int bal_store_lock(bal_lock **out, bal_store *self, enum bal_lock_mode mode,
                   bal_error *err)
{
    int rc = take(out, self, mode, self->wait, err);

    if (rc == BAL_EBUSY)
        return bal_fail(err, BAL_EBUSY,
                        "store '%s' is at work for another command",
                        self->root);
    return rc;
}

/* What bal_file_replace leaves of store.json when it is killed. */
static const char locator_temporary[] = "store.json.tmp-";

static int remove_one(void *ctx, const char *session, const char *tenant,
                      const bal_id *id, bal_error *err)
{
    bal_store *store = ctx;
    uint64_t freed;

    (void)session;
    return bal_blocks_remove(store->blocks, tenant, id, &freed, err);
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

static int clear(bal_store *self, bal_error *err)
{
    uint64_t swept;
    int rc =
        bal_backend_sweep(bal_blocks_backend(self->blocks), &swept, 0, err);
    if (rc)
        return rc;
    rc = bal_dir_each(self->root, remove_temporary, self, err);
    if (rc)
        return rc;
    rc = bal_graph_intended(self->graph, NULL, remove_one, self, err);
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
    if (rc)
        return rc;
    return clear(self, err);
}
