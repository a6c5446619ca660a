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

int bal_store_lock(bal_lock **out, bal_store *self, enum bal_lock_mode mode,
                   bal_error *err)
{
    char *path = bal_path_join(self->root, "lock");
    if (!path)
        return bal_fail_memory(err, self->root);

    int rc = bal_lock_take(out, path, mode, self->wait, err);
    bal_str_free(path);
    if (rc == BAL_EBUSY)
        return bal_fail(err, BAL_EBUSY,
                        "store '%s' is at work for another command",
                        self->root);
    return rc;
}

typedef struct leftovers {
    bal_store *store;
} leftovers;

static int remove_one(void *ctx, const char *session, const char *tenant,
                      const bal_id *id, bal_error *err)
{
    leftovers *left = ctx;
    uint64_t freed;

    (void)session;
    return bal_blocks_remove(left->store->blocks, tenant, id, &freed, err);
}

static int remove_temporary(void *ctx, const char *name, bal_error *err)
{
    const leftovers *left = ctx;

    if (strncmp(name, "store.json.tmp-", 15) != 0)
        return 0;
    char *path = bal_path_join(left->store->root, name);
    if (!path)
        return bal_fail_memory(err, name);
    int rc = bal_remove_tree(path, err);
    bal_str_free(path);
    return rc;
}

static int clear(bal_store *self, bal_error *err)
{
    leftovers left = { self };
    uint64_t swept;
    int rc =
        bal_backend_sweep(bal_blocks_backend(self->blocks), &swept, 0, err);
    if (rc)
        return rc;
    rc = bal_dir_each(self->root, remove_temporary, &left, err);
    if (rc)
        return rc;
    rc = bal_graph_intended(self->graph, NULL, remove_one, &left, err);
    if (rc)
        return rc;
    return bal_graph_intended_done(self->graph, NULL, err);
}

int bal_store_recover(bal_store *self, bal_error *err)
{
    char *path = bal_path_join(self->root, "lock");
    if (!path)
        return bal_fail_memory(err, self->root);

    BAL_OWN(bal_lock) lock = NULL;
    int rc = bal_lock_take(&lock, path, BAL_LOCK_EXCLUSIVE, 0, err);
    bal_str_free(path);
    if (rc == BAL_EBUSY)
        return 0; /* somebody is at work, and will be again */
    if (rc)
        return rc;
    return clear(self, err);
}
