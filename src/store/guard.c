/* A model that may be taken back while it is open.
 *
 * The epoch is one look-up in the database, so it is asked at each read, and
 * the walk behind it only when it has grown. Two things follow from the order
 * of asking. Epoch first, then the walk: what is taken back in between makes
 * the next read walk again. And a read that fails asks once more: bytes that a
 * deletion removed under it are not damage. */
#include "store/guard.h"

#include <stdatomic.h>

#include "core/error.h"
#include "graph/grants.h"

typedef struct guard {
    bal_model base;
    bal_tenant tenant; /* a copy: the handle may go before the model */
    bal_id commit;
    bal_model *inner;
    _Atomic uint64_t epoch; /* at which all was walked */
} guard;

/* Without a lock: readers that walk at once find the same. */
static int ask(guard *self, bal_error *err)
{
    BAL_OWN(bal_model) again = NULL;
    bal_walked walked;
    uint64_t epoch = 0;
    int rc = bal_graph_epoch(self->tenant.store->graph, &epoch, err);
    if (rc || epoch == atomic_load(&self->epoch))
        return rc;

    rc = bal_commit_walk(&again, &walked, &self->tenant, &self->commit, err);
    if (rc)
        return rc;
    atomic_store(&self->epoch, epoch);
    return 0;
}

static int guard_read(bal_model *model, size_t i, uint64_t offset, void *to,
                      size_t len, bal_error *err)
{
    guard *self = (guard *)model;
    bal_error why = { 0 };
    int rc = ask(self, err);
    if (rc)
        return rc;

    rc = bal_model_read(self->inner, i, offset, to, len, err);
    if (!rc)
        return 0;
    int taken = ask(self, &why);
    if (!taken)
        return rc;
    if (err)
        *err = why;
    return taken;
}

static int guard_ask(bal_model *model, bal_error *err)
{
    return ask((guard *)model, err);
}

static void guard_free(bal_model *model)
{
    bal_model_free(((guard *)model)->inner);
}

/* Of what is taken back nothing is told; reading it says so. */
static bal_model *guard_source(bal_model *model, size_t *i)
{
    guard *self = (guard *)model;

    (void)i;
    return ask(self, NULL) ? NULL : self->inner;
}

static const bal_model_ops guard_ops = {
    .read = guard_read,
    .ask = guard_ask,
    .free = guard_free,
    .source = guard_source,
};

int bal_guard_open(bal_model **out, bal_tenant *tenant, const bal_id *commit,
                   uint64_t epoch, bal_model *model, bal_error *err)
{
    guard *made = bal_model_alloc(sizeof(*made), &guard_ops);
    if (!made) {
        bal_model_free(model);
        return bal_fail_memory(err, "opening a commit");
    }
    BAL_OWN(bal_model) self = &made->base;

    made->inner = model;
    made->tenant = *tenant;
    made->commit = *commit;
    atomic_init(&made->epoch, epoch);
    int rc = bal_model_mirror(&made->base, made->inner, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}
