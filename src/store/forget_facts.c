/* A plan is made from rows that say a second time what manifests say: which
 * blocks they use, what views stand on. Rows that somebody has taken out, or
 * damage has, would leave bytes behind that a proof calls gone, or take bytes
 * of what stays; so they are held against the manifests before anything is
 * planned by them. */
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "graph/forgets.h"
#include "graph/inputs.h"
#include "store/forget_plan.h"
#include "store/manifest.h"

static int add_id(void *ctx, const bal_id *id, bal_error *err)
{
    return bal_buf_append(ctx, id, sizeof(*id), err);
}

/* Is the list of blocks the rows that the manifest has? */
static int uses_fit(const bal_planning *self, const bal_id *manifest,
                    const bal_id *blocks, size_t count, bool *fit,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) rows = { 0 };
    int rc = bal_graph_uses(self->graph, self->tenant->number, manifest, add_id,
                            &rows, err);

    *fit = !rc && rows.len == count * sizeof(bal_id) &&
           (!count || !memcmp(rows.data, blocks, rows.len));
    return rc;
}

static int leaf_fits(const bal_planning *self, const bal_id *manifest,
                     bal_bytes text, bool *fit, bal_error *err)
{
    BAL_LOCAL(bal_leaf) leaf = { 0 };
    bal_error why;
    int rc = bal_leaf_read(&leaf, text, &why);

    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc)
        return 0;
    size_t count = bal_ids_unique(leaf.ids, leaf.id_count);
    return uses_fit(self, manifest, leaf.ids, count, fit, err);
}

typedef struct comparison {
    const bal_inputs *inputs;
    size_t at;
    bool same;
} comparison;

static int compare_input(void *ctx, const bal_input_row *row, bal_error *err)
{
    comparison *self = ctx;
    const bal_input_row *want = &self->inputs->rows[self->at];

    (void)err;
    self->same = self->at++ < self->inputs->count &&
                 !strcmp(row->tenant, want->tenant) &&
                 bal_id_equal(&row->commit, &want->commit) &&
                 bal_id_equal(&row->manifest, &want->manifest);
    return self->same ? 0 : BAL_ROW_STOP;
}

static int view_fits(const bal_planning *self, const bal_id *manifest,
                     bal_bytes text, bool *fit, bal_error *err)
{
    BAL_LOCAL(bal_inputs) inputs = { 0 };
    comparison with = { .inputs = &inputs, .same = true };
    bal_error why;
    int rc = bal_inputs_read(&inputs, text, &why);

    if (rc == BAL_ENOMEM)
        return bal_fail_memory(err, "manifest");
    if (rc)
        return 0;
    rc = uses_fit(self, manifest, NULL, 0, fit, err);
    if (!rc && *fit)
        rc = bal_graph_inputs(self->graph, self->tenant->number, manifest,
                              compare_input, &with, err);
    *fit = *fit && with.same && with.at == inputs.count;
    return rc;
}

static int check(const bal_planning *self, const bal_id *manifest,
                 bal_error *err)
{
    BAL_LOCAL(bal_buf) kind = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    char hex[BAL_ID_HEX + 1];
    bool fit = false;
    bal_id id;
    int rc = bal_graph_manifest(self->graph, self->tenant->number, manifest,
                                &kind, &body, err);
    if (rc)
        return rc;

    bal_bytes text = { body.data, body.len };
    bool view = !strcmp(bal_buf_string(&kind), bal_kind_name(BAL_KIND_VIEW));
    bal_hash_of(&id, body.data, body.len);
    if (bal_id_equal(&id, manifest))
        rc = view ? view_fits(self, manifest, text, &fit, err)
                  : leaf_fits(self, manifest, text, &fit, err);
    if (rc || fit)
        return rc;
    bal_id_hex(hex, manifest);
    return bal_hint(err,
                    bal_fail(err, BAL_ECORRUPT,
                             "what manifest '%.12s' uses is not what its text "
                             "says",
                             hex),
                    "'ballast fsck' tells what is wrong");
}

static int note_unused(void *ctx, const bal_block_row *row, bal_error *err)
{
    (void)row;
    (void)err;
    *(bool *)ctx = true;
    return BAL_ROW_STOP;
}

static int check_all(const bal_planning *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    int rc = bal_graph_manifests(self->graph, self->tenant->number, add_id,
                                 &ids, err);

    for (size_t i = 0; i < bal_ids_count(&ids) && !rc; i++)
        rc = check(self, bal_ids_at(&ids, i), err);
    return rc;
}

int bal_plan_facts(bal_planning *self, bal_error *err)
{
    bool unused = !self->commit;
    int rc = 0;

    if (!self->manifest_goes)
        return 0;
    /* A block without a user goes as well, and may be that of any manifest
     * whose rows are gone. */
    if (!unused)
        rc = bal_graph_unused(self->graph, self->tenant->number, note_unused,
                              &unused, err);
    if (rc)
        return rc;
    return unused ? check_all(self, err) : check(self, &self->manifest, err);
}
