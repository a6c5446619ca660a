/* Taking away exports that nobody needs any more: only what bal_export wrote
 * and nothing has changed since, and nothing that a server has loaded, which
 * would fail, or end, at a later request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "model/stage.h"
#include "store/export_folder.h"

typedef struct pruning {
    bal_tenant *tenant;
    char store[BAL_STORE_ID_ROOM];
    const char *exports;
    const bal_id *keep;
    size_t count;
    bal_pruned_fn *fn;
    void *ctx;
    bool stopped;
} pruning;

typedef struct in_use {
    bool yes;
    char why[512];
} in_use;

static int find_server(void *ctx, const bal_loaded *row)
{
    in_use *self = ctx;

    if (row->unloaded_at)
        return 0;
    self->yes = true;
    snprintf(self->why, sizeof(self->why), "'%.300s' has it loaded as '%.150s'",
             row->server, row->name);
    return 1;
}

/* Out of its place first, in one step: what is killed in the middle leaves a
 * temporary, and never half of an export. */
static int take_away(const char *folder, bal_error *err)
{
    BAL_LOCAL(bal_stage) stage = { .lock = -1 };
    int rc = bal_stage_make(&stage, folder, err);

    return rc ? rc : bal_rename(folder, stage.dir, err);
}

static int take_checked(const pruning *self, const char *folder,
                        const bal_id *id, bal_error *err)
{
    BAL_OWN(json_t) noted = NULL;
    in_use use = { 0 };
    int rc = bal_loaded_each(self->tenant, id, find_server, &use, err);
    if (!rc && use.yes)
        return bal_fail(err, BAL_EBUSY, "%s", use.why);
    if (!rc)
        rc = bal_export_read(&noted, folder, self->tenant->name, id, err);
    if (!rc)
        rc = bal_export_is_of(folder, noted, self->store, err);
    if (!rc)
        rc = bal_export_verify(folder, noted, err);
    return rc ? rc : take_away(folder, err);
}

static bool kept(const pruning *self, const bal_id *id)
{
    for (size_t i = 0; i < self->count; i++) {
        if (bal_id_equal(&self->keep[i], id))
            return true;
    }
    return false;
}

static int prune_one(void *ctx, const char *name, bal_error *err)
{
    pruning *self = ctx;
    bal_error why = { 0 };
    bal_id id;

    if (self->stopped || !bal_hex_valid(name, BAL_ID_HEX))
        return 0;
    int rc = bal_id_parse(&id, name, err);
    if (rc || kept(self, &id))
        return rc;
    char *folder = bal_path_join(self->exports, name);
    if (!folder)
        return bal_fail_memory(err, "an export");
    if (bal_export_type(folder) == BAL_PATH_DIR)
        rc = take_checked(self, folder, &id, &why);
    else
        rc = bal_fail(&why, BAL_EEXISTS, "it is no folder");
    if (self->fn)
        self->stopped = self->fn(self->ctx, folder, rc ? why.text : NULL) != 0;
    bal_str_free(folder);
    return 0;
}

int bal_export_prune(bal_tenant *tenant, const char *dir, const bal_id *keep,
                     size_t count, bal_pruned_fn *fn, void *ctx, bal_error *err)
{
    char *exports = NULL;
    int rc = bal_exports_place(&exports, tenant, dir, err);
    if (rc)
        return rc;

    pruning self = {
        .tenant = tenant,
        .exports = exports,
        .keep = keep,
        .count = count,
        .fn = fn,
        .ctx = ctx,
    };
    if (bal_export_type(exports) == BAL_PATH_DIR) {
        rc = bal_tenant_store_id(self.store, tenant, err);
        if (!rc)
            rc = bal_stage_sweep(exports, err);
        if (!rc)
            rc = bal_dir_each(exports, prune_one, &self, err);
    }
    bal_str_free(exports);
    return rc;
}
