/* Is the store what it says it is? Every id is computed again, every byte read
 * again. Problems are told one by one; what can be mended without loss is, when
 * asked. */
#include "store/fsck.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"

int bal_fsck_tell(bal_fsck_run *self, const bal_problem *problem,
                  bal_error *err)
{
    if (!problem->expected)
        self->report->problems++;
    if (self->fn(self->ctx, problem))
        return bal_fail(err, BAL_ECANCELLED, "fsck was told to stop");
    return 0;
}

int bal_fsck_tell_id(bal_fsck_run *self, const bal_id *id,
                     const bal_problem *problem, bal_error *err)
{
    char what[160], hex[BAL_ID_HEX + 1];
    bal_problem named = *problem;

    bal_id_hex(hex, id);
    snprintf(what, sizeof(what), "%s:%s", self->tenant->name, hex);
    named.what = what;
    return bal_fsck_tell(self, &named, err);
}

int bal_fsck_unreadable(bal_fsck_run *self, int rc, bal_error *err)
{
    bal_error why = *err;
    const char *what = self->tenant ? self->tenant->name : "database";
    bal_problem problem = { "unreadable-row", what, why.text, false };

    return rc == BAL_ECORRUPT ? bal_fsck_tell(self, &problem, err) : rc;
}

/* Where block rows cannot be read, nothing is said of blocks: all would be
 * orphans. */
static int check_tenant(bal_fsck_run *self, bal_error *err)
{
    BAL_LOCAL(bal_inventory) blocks = { 0 };
    int rc = bal_inventory_load(&blocks, self, err);
    bool readable = !rc;

    rc = bal_fsck_unreadable(self, rc, err);
    if (rc)
        return rc;
    rc = bal_fsck_facts(self, readable ? &blocks : NULL, err);
    if (rc || !readable)
        return rc;
    return bal_fsck_blocks(&blocks, err);
}

static int check_named(void *ctx, const char *name, bal_error *err)
{
    bal_fsck_run *self = ctx;
    BAL_OWN(bal_tenant) tenant = NULL;
    int rc = bal_tenant_open(&tenant, self->store, name, err);
    if (rc)
        return rc;

    self->tenant = tenant;
    rc = check_tenant(self, err);
    self->tenant = NULL;
    return rc;
}

static int add_name(void *ctx, const char *name, bal_error *err)
{
    return bal_buf_append(ctx, name, strlen(name) + 1, err);
}

/* Names first, for the connection is held as long as it gives rows, and
 * checking a tenant takes long. */
static int check_all(bal_fsck_run *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 }; /* one behind the other, NUL between */
    int rc = bal_graph_tenants_all(self->store->graph, add_name, &names, err);

    for (size_t at = 0; at < names.len && !rc;
         at += strlen(names.data + at) + 1)
        rc = check_named(self, names.data + at, err);
    return rc;
}

static int tell_fault(void *ctx, const char *kind, const char *what,
                      const char *detail, bal_error *err)
{
    bal_problem problem = { kind, what, detail, false };

    return bal_fsck_tell(ctx, &problem, err);
}

/* What killed writers left is removed with --repair, and told otherwise. */
static int check_temporaries(bal_fsck_run *self, bal_error *err)
{
    bool repair = self->flags & BAL_FSCK_REPAIR;
    uint64_t bytes = 0;
    int rc = bal_backend_sweep(bal_blocks_backend(self->store->blocks), &bytes,
                               repair ? 0 : BAL_SWEEP_DRY, err);
    if (rc || !bytes || repair)
        return rc;

    bal_problem problem = { "temporary", "what a killed command left",
                            "goes with the next command that writes", true };
    return bal_fsck_tell(self, &problem, err);
}

int bal_fsck(bal_store *store, bal_tenant *tenant,
             const bal_fsck_options *options, bal_problem_fn *fn, void *ctx,
             bal_fsck_report *report, bal_error *err)
{
    unsigned flags = options ? options->flags : 0;
    bal_fsck_run self = { store, tenant, flags, fn, ctx, report };
    unsigned fast = flags & BAL_FSCK_FAST ? BAL_CHECK_FAST : 0;
    bool repair = flags & BAL_FSCK_REPAIR;
    BAL_OWN(bal_db_lock) lock = NULL;
    BAL_OWN(bal_model) from = NULL;

    memset(report, 0, sizeof(*report));
    int rc = repair && options->from
                 ? bal_model_from_path(&from, options->from, err)
                 : 0;
    if (rc)
        return rc;
    self.from = from;
    rc = bal_store_recover(store, err);
    rc = bal_fsck_unreadable(&self, rc, err);
    if (rc)
        return rc;
    rc = bal_store_lock_waiting(
        &lock, store, repair ? BAL_LOCK_EXCLUSIVE : BAL_LOCK_SHARED, err);
    if (rc)
        return rc;
    if (repair)
        rc = bal_graph_norms_mend(store->graph, err);
    rc = bal_fsck_unreadable(&self, rc, err);
    if (!rc)
        rc = bal_graph_check(store->graph, fast, tell_fault, &self, err);
    if (!rc)
        rc = check_temporaries(&self, err);
    if (!rc)
        rc = bal_fsck_cache(&self, err);
    if (rc)
        return rc;
    return tenant ? check_tenant(&self, err) : check_all(&self, err);
}
