/* What a sync stands on, as a number: where refs and specs are, and whether
 * what is there can be read. The store changes by more than that, by our own
 * notes too. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "fleet/run.h"

typedef struct facts {
    uint64_t sum;
    bal_id *ids;
    size_t count, room;
    bool no_memory;
} facts;

static void facts_done(facts *self)
{
    free(self->ids);
}

/* FNV-1a (Fowler, Noll, Vo), of 64 bits. */
static void mix(facts *self, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < len; i++)
        self->sum = (self->sum ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static int add(void *ctx, const char *name, const bal_id *commit)
{
    facts *self = ctx;

    mix(self, name, strlen(name) + 1);
    mix(self, commit->bytes, sizeof(commit->bytes));
    bal_id *ids =
        bal_room_for_one(self->ids, self->count, &self->room, sizeof(*ids));
    self->no_memory = !ids;
    if (!ids)
        return 1;
    self->ids = ids;
    self->ids[self->count++] = *commit;
    return 0;
}

static bool ends_all(int rc)
{
    return rc == BAL_ENOMEM || rc == BAL_ECANCELLED;
}

int bal_fleet_facts(uint64_t *out, bal_tenant *tenant, const char *const *specs,
                    size_t spec_count, bal_error *err)
{
    BAL_LOCAL(facts) self = { .sum = UINT64_C(0xcbf29ce484222325) };
    int rc = bal_ref_each(tenant, add, &self, err);

    for (size_t i = 0; !rc && !self.no_memory && i < spec_count; i++) {
        bal_id commit = { 0 };
        rc = bal_resolve(&commit, tenant, specs[i], err);
        mix(&self, &rc, sizeof(rc));
        if (!rc)
            add(&self, specs[i], &commit);
        rc = ends_all(rc) ? rc : 0;
    }
    for (size_t i = 0; !rc && i < self.count; i++) {
        BAL_OWN(bal_model) model = NULL;
        rc = bal_model_from_commit(&model, tenant, &self.ids[i], err);
        mix(&self, &rc, sizeof(rc));
        rc = ends_all(rc) ? rc : 0;
    }
    if (!rc && self.no_memory)
        return bal_fail_memory(err, "refs");
    *out = self.sum;
    return rc;
}
