/* A stand-in while the real one is made. */
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "store/store.h"

BAL_OWNABLE(bal_model)

typedef struct finding {
    const char *spec;
    bool found;
    uint64_t sum;
} finding;

static int find_ref(void *ctx, const char *name, const bal_id *commit)
{
    finding *self = ctx;

    if (self->spec && !strcmp(self->spec, name))
        self->found = true;
    for (const char *at = name; *at; at++)
        self->sum = self->sum * 31 + (unsigned char)*at;
    for (size_t i = 0; i < sizeof(*commit); i++)
        self->sum = self->sum * 31 + commit->bytes[i];
    return 0;
}

int bal_export(bal_tenant *tenant, const char *spec,
               const bal_export_options *options, bal_exported_fn *fn,
               void *ctx, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;
    BAL_LOCAL(bal_buf) dir = { 0 };
    BAL_LOCAL(bal_buf) name = { 0 };
    char hex[BAL_ID_HEX + 1];
    bal_exported_info info = { 0 };
    finding ref = { spec, false, 0 };
    char *real = NULL;
    int rc = bal_resolve(&info.commit, tenant, spec, err);
    if (!rc)
        rc = bal_model_from_commit(&model, tenant, &info.commit, err);
    if (!rc)
        rc = bal_ref_each(tenant, find_ref, &ref, err);
    if (rc)
        return rc;
    if (bal_model_facts(model)->kind != BAL_KIND_ADAPTER)
        return bal_fail(err, BAL_EUNSUPPORTED, "'%s' is not an adapter", spec);
    rc = bal_path_real(&real, options->dir, err);
    if (rc)
        return rc;
    bal_id_hex(hex, &info.commit);
    rc = bal_buf_format(&dir, err, "%s/%s", real, tenant->name);
    bal_str_free(real);
    if (!rc)
        rc = bal_make_dirs(dir.data, err);
    if (!rc)
        rc = bal_buf_format(&dir, err, "/%s", hex);
    if (!rc)
        rc = bal_buf_format(&name, err, "%s-%s%s%.*s", tenant->name,
                            ref.found ? spec : "", ref.found ? "-" : "",
                            ref.found ? 8 : 12, hex);
    if (!rc && bal_path_type_of(dir.data) == BAL_PATH_ABSENT)
        rc = bal_model_write(model, dir.data, NULL, NULL, tenant->store->work,
                             err);
    if (rc)
        return rc;
    info.name = name.data;
    info.path = dir.data;
    info.tenant = tenant->name;
    info.ref = ref.found ? spec : NULL;
    fn(ctx, &info);
    return 0;
}

typedef struct pruning {
    const char *dir;
    const bal_id *keep;
    size_t count;
    bal_pruned_fn *fn;
    void *ctx;
} pruning;

static int prune_one(void *ctx, const char *name, bal_error *err)
{
    const pruning *self = ctx;
    BAL_LOCAL(bal_buf) path = { 0 };
    bal_id id;

    if (bal_id_parse(&id, name, NULL))
        return 0;
    for (size_t i = 0; i < self->count; i++) {
        if (!memcmp(&self->keep[i], &id, sizeof(id)))
            return 0;
    }
    int rc = bal_buf_format(&path, err, "%s/%s", self->dir, name);
    if (!rc)
        rc = bal_remove_tree(path.data, err);
    if (!rc)
        self->fn(self->ctx, path.data, NULL);
    return rc;
}

int bal_export_prune(bal_tenant *tenant, const char *dir, const bal_id *keep,
                     size_t count, bal_pruned_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_buf) place = { 0 };
    int rc = bal_buf_format(&place, err, "%s/%s", dir, tenant->name);
    pruning self = { place.data, keep, count, fn, ctx };

    if (rc || bal_path_type_of(place.data) != BAL_PATH_DIR)
        return rc;
    return bal_dir_each(place.data, prune_one, &self, err);
}

int bal_loaded_put(bal_tenant *tenant, const bal_loaded *row, bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;

    return row->unloaded_at
               ? 0
               : bal_model_from_commit(&model, tenant, &row->commit, err);
}

int bal_loaded_each(bal_tenant *tenant, const bal_id *commit, bal_loaded_fn *fn,
                    void *ctx, bal_error *err)
{
    (void)tenant, (void)commit, (void)fn, (void)ctx, (void)err;
    return 0;
}

int bal_loaded_drop(bal_tenant *tenant, const char *server, const char *name,
                    bal_error *err)
{
    (void)tenant, (void)server, (void)name, (void)err;
    return 0;
}

int bal_store_changes(uint64_t *out, bal_store *self, bal_error *err)
{
    bal_tenant tenant = { .store = self };
    BAL_OWN(bal_tenant) own = NULL;
    finding all = { 0 };
    int rc = bal_tenant_open(&own, self, "acme", err);

    (void)tenant;
    if (!rc)
        rc = bal_ref_each(own, find_ref, &all, err);
    *out = all.sum;
    return rc;
}
