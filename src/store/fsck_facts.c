/* fsck of what the graph knows: ids are computed again from what they cover. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "store/commit_object.h"
#include "store/fsck.h"
#include "store/manifest.h"

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

/* Tell a problem of one object. */
static int tell(bal_fsck_run *self, const char *kind, const bal_id *id,
                const char *detail, bal_error *err)
{
    bal_problem problem = { kind, NULL, detail, false };

    return bal_fsck_tell_id(self, id, &problem, err);
}

/* ---- commits ------------------------------------------------------------ */

static int check_commit(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bal_fsck_run *self = ctx;
    bal_id id;
    int rc = bal_commit_id(&id, self->tenant->name, row, err);
    if (rc)
        return rc;

    self->report->commits++;
    if (bal_id_equal(&id, &row->id))
        return 0;
    return tell(self, "wrong-commit-id", &row->id, "its fields give another id",
                err);
}

/* ---- manifests ---------------------------------------------------------- */

/* What a leaf is held against. */
typedef struct facts {
    bal_fsck_run *run;
    const bal_inventory *rows; /* NULL: not known */
} facts;

/* Is every block of an entry as long as the leaf says? A block without a row is
 * told elsewhere. */
static bool sizes_fit(const bal_inventory *rows, const bal_leaf *leaf, size_t i)
{
    const bal_place *place = &leaf->places[i];
    uint64_t left = place->shared ? place->block_size : leaf->entries[i].size;

    for (size_t k = 0; k < place->count; k++) {
        const bal_fsck_block *block =
            bal_inventory_find(rows, &leaf->ids[place->first + k]);
        uint64_t size = bal_min(left, leaf->block_size);
        if (block && block->row.size != size)
            return false;
        left -= size;
    }
    return true;
}

static int check_sizes(const facts *all, const bal_id *id, const bal_leaf *leaf,
                       bal_error *err)
{
    for (size_t i = 0; i < leaf->count && all->rows; i++)
        if (!sizes_fit(all->rows, leaf, i))
            return tell(all->run, "wrong-sizes", id,
                        "its blocks are not as long as it says", err);
    return 0;
}

static int check_leaf(const facts *all, const bal_id *id, const char *kind,
                      bal_bytes text, bal_error *err)
{
    bal_fsck_run *self = all->run;
    BAL_LOCAL(bal_leaf) leaf = { 0 };
    BAL_LOCAL(bal_buf) uses = { 0 };
    bal_error why;

    int rc = bal_leaf_read(&leaf, text, &why);
    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc)
        return tell(self, "bad-manifest", id, why.text, err);
    if (strcmp(kind, bal_kind_name(leaf.kind)))
        return tell(self, "wrong-kind", id, "its row says another kind", err);
    rc = bal_graph_uses(self->store->graph, self->tenant->number, id, add_id,
                        &uses, err);
    if (rc)
        return rc;
    rc = check_sizes(all, id, &leaf, err);
    if (rc)
        return rc;
    size_t count = bal_ids_unique(leaf.ids, leaf.id_count);
    if (count == bal_ids_count(&uses) &&
        (!count || !memcmp(leaf.ids, uses.data, uses.len)))
        return 0;
    return tell(self, "wrong-uses", id,
                "the blocks it names are not those that are kept for it", err);
}

static int check_manifest(const facts *all, const bal_id *id, bal_error *err)
{
    bal_fsck_run *self = all->run;
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_id computed;
    int rc = bal_graph_manifest(self->store->graph, self->tenant->number, id,
                                &kind, &body, err);
    if (rc)
        return rc;

    bal_hash_of(&computed, body.data, body.len);
    if (!bal_id_equal(&computed, id))
        return tell(self, "wrong-manifest-id", id, "its text gives another id",
                    err);
    bal_bytes text = { body.data, body.len };
    if (!strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW)))
        return bal_fsck_view(self, id, text, err);
    return check_leaf(all, id, bal_buf_string(&kind), text, err);
}

int bal_fsck_facts(bal_fsck_run *self, const bal_inventory *rows,
                   bal_error *err)
{
    const facts all = { self, rows };
    BAL_LOCAL(bal_buf) manifests = { 0 };
    bal_graph *graph = self->store->graph;
    int64_t tenant = self->tenant->number;
    int rc = 0;

    if (!tenant)
        return 0;
    rc = bal_graph_commits(graph, tenant, check_commit, self, err);
    rc = bal_fsck_unreadable(self, rc, err);
    if (rc)
        return rc;
    rc = bal_graph_manifests(graph, tenant, add_id, &manifests, err);
    rc = bal_fsck_unreadable(self, rc, err);
    for (size_t i = 0; i < bal_ids_count(&manifests) && !rc; i++) {
        rc = check_manifest(&all, bal_ids_at(&manifests, i), err);
        rc = bal_fsck_unreadable(self, rc, err);
    }
    return rc;
}
