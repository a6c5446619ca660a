/* What there is, and taking it away. */
#include <stdlib.h>
#include <string.h>

#include "blocks/inside.h"
#include "core/error.h"
#include "core/hash.h"

/* Names of ids, one behind the other in one piece of memory. */
typedef struct block_names {
    char *text;
    const char **names;
} block_names;

static void block_names_done(block_names *self)
{
    free(self->text);
    free(self->names);
}

static int name_blocks(block_names *self, const char *tenant, const bal_id *ids,
                       size_t count, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, tenant, &(bal_id){ 0 }, err);
    if (rc)
        return rc;

    size_t room = strlen(name) + 1;
    self->text = calloc(count, room);
    self->names = calloc(count, sizeof(*self->names));
    if (!self->text || !self->names)
        return bal_fail_memory(err, "names of blocks");
    for (size_t i = 0; i < count; i++) {
        rc = bal_block_name(name, tenant, &ids[i], err);
        if (rc)
            return rc;
        self->names[i] = memcpy(self->text + i * room, name, room);
    }
    return 0;
}

int bal_blocks_remove(bal_blocks *self, const char *tenant, const bal_id *ids,
                      size_t count, uint64_t *freed, bal_error *err)
{
    BAL_LOCAL(block_names) all = { 0 };
    bal_cache_key key;

    *freed = 0;
    if (!count)
        return 0;
    int rc = name_blocks(&all, tenant, ids, count, err);
    if (rc)
        return rc;
    rc = bal_backend_remove(self->backend, all.names, count, freed, err);
    /* Afterwards, or a reader could bring it back in between. */
    for (size_t i = 0; i < count; i++)
        if (!bal_block_key(&key, tenant, &ids[i], NULL))
            bal_cache_forget(self->cache, &key);
    return rc;
}

typedef struct block_listing {
    bal_block_fn *fn;
    void *ctx;
    size_t prefix; /* length of "acme/" */
} block_listing;

/* True if the rest of a name is a digit, a slash and the id it begins. */
static bool name_of_block(bal_id *id, const char *rest)
{
    return rest[0] && rest[1] == '/' && rest[0] == rest[2] &&
           !bal_id_parse(id, rest + 2, NULL);
}

static int list_one(void *ctx, const char *name, uint64_t size, bal_error *err)
{
    const block_listing *self = ctx;
    bal_id id;
    bool block = name_of_block(&id, name + self->prefix);

    return self->fn(self->ctx, block ? &id : NULL, name, size, err);
}

int bal_blocks_each(bal_blocks *self, const char *tenant, bal_block_fn *fn,
                    void *ctx, bal_error *err)
{
    char name[BAL_BLOCK_NAME_ROOM];
    int rc = bal_block_name(name, tenant, &(bal_id){ 0 }, err);
    if (rc)
        return rc;

    block_listing listing = { fn, ctx, strlen(tenant) + 1 };
    name[listing.prefix] = '\0';
    return bal_backend_list(self->backend, name, list_one, &listing, err);
}
