/* What is read from the graph is believed only when it gives the id it goes by,
 * as a block is: a database is a file that anybody may have written to. From a
 * commit's id to its manifest's to its blocks', the chain is whole or the read
 * fails. fsck reads the rows themselves, to tell of each what is wrong. */
#include "store/verified.h"

#include "core/error.h"
#include "core/hash.h"
#include "store/commit_object.h"

static int corrupt(const char *what, const bal_id *id, const char *why,
                   bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, id);
    return bal_hint(
        err, bal_fail(err, BAL_ECORRUPT, "%s '%.12s': %s", what, hex, why),
        "'ballast fsck' tells what else is damaged");
}

int bal_commit_verify(const bal_tenant *tenant, const bal_commit_row *row,
                      bal_error *err)
{
    bal_id id;
    int rc = bal_commit_id(&id, tenant->name, row, err);
    if (rc)
        return rc;

    if (bal_id_equal(&id, &row->id))
        return 0;
    return corrupt("commit", &row->id, "its fields give another id", err);
}

int bal_manifest_get(bal_buf *kind, bal_buf *body, const bal_tenant *tenant,
                     const bal_id *id, bal_error *err)
{
    bal_id computed;
    size_t at = body->len;
    int rc = bal_graph_manifest(tenant->store->graph, tenant->number, id, kind,
                                body, err);
    if (rc)
        return rc;

    bal_hash_of(&computed, body->data + at, body->len - at);
    if (bal_id_equal(&computed, id))
        return 0;
    return corrupt("manifest", id, "its text gives another id", err);
}
