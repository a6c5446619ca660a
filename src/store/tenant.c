/* Tenants: the one place where scope begins. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

int bal_tenant_renew(bal_tenant *self, bal_error *err)
{
    bal_error why;
    int64_t number = 0;
    int rc = bal_graph_tenant(self->store->graph, &number, self->name, 0, &why);

    if (rc && rc != BAL_ENOTFOUND)
        return bal_fail(err, rc, "%s", why.text);
    self->number = rc ? 0 : number;
    return 0;
}

int bal_tenant_open(bal_tenant **out, bal_store *store, const char *name,
                    bal_error *err)
{
    if (!name)
        name = store->settings[BAL_SETTING_TENANT];
    if (!name)
        return bal_hint(err, bal_fail(err, BAL_EINVAL, "no tenant named"),
                        "give --tenant NAME, set BALLAST_TENANT, or "
                        "'ballast config tenant NAME'");
    int rc = bal_tenant_check(name, err);
    if (rc)
        return rc;

    BAL_OWN(bal_tenant) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, name);
    self->store = store;
    memcpy(self->name, name, strlen(name) + 1);
    rc = bal_tenant_renew(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

int bal_tenant_make(bal_tenant *self, bal_error *err)
{
    if (self->number)
        return 0;
    return bal_graph_tenant(self->store->graph, &self->number, self->name,
                            BAL_DB_CREATE, err);
}

const char *bal_tenant_name(const bal_tenant *self)
{
    return self->name;
}

void bal_tenant_free(bal_tenant *self)
{
    free(self);
}

static int keep_name(void *ctx, const char *name, bal_error *err)
{
    return bal_buf_append(ctx, name, strlen(name) + 1, err);
}

/* Names first, one behind the other with a NUL between: fn may take its
 * time. */
int bal_tenant_each(bal_store *store, bal_name_fn *fn, void *ctx,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    int rc = bal_graph_tenants(store->graph, keep_name, &names, err);

    for (size_t at = 0; at < names.len && !rc;
         at += strlen(names.data + at) + 1) {
        if (fn(ctx, names.data + at))
            break;
    }
    return rc;
}
