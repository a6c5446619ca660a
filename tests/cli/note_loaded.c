/* Notes that a server has loaded a commit, by argv:
 *
 *   note-loaded ROOT TENANT SERVER NAME COMMIT UNLOADED_AT
 *
 * as whoever told the server to load it would, at time 1. */
#include <stdio.h>

#include "core/own.h"
#include "core/str.h"

static void work_done(bal_work **work)
{
    bal_work_free(*work);
}

static void store_done(bal_store **store)
{
    bal_store_free(*store);
}

static void tenant_done(bal_tenant **tenant)
{
    bal_tenant_free(*tenant);
}

static int put(char **words, bal_error *err)
{
    __attribute__((cleanup(work_done))) bal_work *work = NULL;
    __attribute__((cleanup(store_done))) bal_store *store = NULL;
    __attribute__((cleanup(tenant_done))) bal_tenant *tenant = NULL;
    bal_loaded row = {
        .server = words[2],
        .name = words[3],
        .path = "/out",
        .loaded_at = 1,
    };
    int rc = bal_work_new(&work, 1, err);
    const bal_store_options options = { .root = words[0], .work = work };
    if (!rc)
        rc = bal_store_open(&store, &options, err);
    if (!rc)
        rc = bal_tenant_open(&tenant, store, words[1], err);
    if (!rc)
        rc = bal_id_parse(&row.commit, words[4], err);
    if (!rc)
        rc = bal_parse_i64(&row.unloaded_at, words[5], err);
    return rc ? rc : bal_loaded_put(tenant, &row, err);
}

int main(int argc, char **argv)
{
    bal_error err = { 0 };

    if (argc != 7)
        return 2;
    if (!put(argv + 1, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
