/* One commit from one store into another, as a commit is made: blocks first,
 * durably, then one transaction with the rows that name them. Its manifest goes
 * over as it is, byte for byte, for its id is of these bytes. */
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "graph/inputs.h"
#include "graph/proofs.h"
#include "store/intent.h"
#include "store/transfer.h"
#include "store/verified.h"

typedef struct moving {
    const bal_transfer_run *run;
    bal_commit_row row;
    bal_arena texts;
    bal_buf body;
    bal_bytes text; /* the body's */
    bal_manifest_row manifest;
    bal_inputs inputs;
    bal_leaf leaf;
    bal_transfer_blocks blocks;
    bal_intent intent;
} moving;

static void moving_done(moving *self)
{
    bal_transfer_blocks_done(&self->blocks);
    bal_leaf_done(&self->leaf);
    bal_inputs_done(&self->inputs);
    bal_buf_done(&self->body);
    bal_arena_done(&self->texts);
}

/* ---- reading ------------------------------------------------------------ */

static int read_view(moving *self, bal_error *err)
{
    BAL_OWN(json_t) recipe = NULL;
    int rc = bal_view_read(&recipe, self->text, err);

    if (!rc)
        rc = bal_inputs_read(&self->inputs, self->text, err);
    self->manifest.kind = bal_kind_name(BAL_KIND_VIEW);
    self->manifest.inputs = self->inputs.rows;
    self->manifest.input_count = self->inputs.count;
    return rc;
}

static int read_leaf(moving *self, bal_error *err)
{
    int rc = bal_leaf_read(&self->leaf, self->text, err);
    if (rc)
        return rc;

    self->manifest.kind = bal_kind_name(self->leaf.kind);
    for (size_t i = 0; i < self->leaf.count; i++)
        self->manifest.logical += self->leaf.entries[i].size;
    return 0;
}

/* The commit with what its manifest says, all of it held against its ids. */
static int read_all(moving *self, const bal_id *id, bal_error *err)
{
    const bal_tenant *from = self->run->from;
    int rc = bal_transfer_row(&self->row, &self->texts, from, id, err);
    if (!rc)
        rc =
            bal_manifest_get(NULL, &self->body, from, &self->row.manifest, err);
    if (rc)
        return rc;

    self->text = (bal_bytes){ self->body.data, self->body.len };
    self->manifest =
        (bal_manifest_row){ .id = self->row.manifest, .body = self->text };
    return strcmp(self->row.kind, bal_kind_name(BAL_KIND_VIEW)) != 0
               ? read_leaf(self, err)
               : read_view(self, err);
}

/* ---- blocks ------------------------------------------------------------- */

static int intend(moving *self, bal_error *err)
{
    bal_tenant *to = self->run->to;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, to->store->graph, BAL_TX_WRITE, err);

    if (!rc)
        rc = bal_tenant_make(to, err);
    if (!rc)
        rc = bal_intend(&self->intent, to, self->blocks.rows,
                        self->blocks.row_count, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int move_blocks(moving *self, bal_error *err)
{
    bal_tenant *to = self->run->to;
    int64_t number = to->number;
    int rc = bal_transfer_stage(&self->blocks, self->run, &self->leaf, err);
    if (rc)
        return rc;

    self->manifest.uses = self->blocks.ids;
    self->manifest.use_count = self->blocks.id_count;
    if (!self->blocks.row_count)
        return 0;
    rc = intend(self, err);
    if (rc) {
        to->number = number; /* it may have been made and taken back */
        return rc;
    }
    return bal_transfer_settle(&self->blocks, to->store->work, err);
}

/* ---- rows --------------------------------------------------------------- */

/* That something is missed because it was forgotten where this comes from, so
 * that whoever checks can tell it from what was lost. */
static int mark_gap(const moving *self, const bal_id *id, bal_error *err)
{
    const bal_tenant *to = self->run->to;
    bool known = false;
    bal_tombstone stone = { .tenant = to->name,
                            .kind = BAL_TOMB_COMMIT,
                            .id = *id };
    int rc = bal_transfer_has(to, id, &known, err);

    if (!rc && !known)
        rc = bal_graph_forgotten(to->store->graph, to->name, BAL_TOMB_COMMIT,
                                 id, &known, err);
    if (rc || known)
        return rc;
    memcpy(stone.attestation.bytes, id->bytes, sizeof(id->bytes));
    return bal_graph_tombstone_put(to->store->graph, &stone, err);
}

static int mark_gaps(const moving *self, bal_error *err)
{
    int rc =
        self->row.has_made_on ? mark_gap(self, &self->row.made_on, err) : 0;

    for (size_t i = 0; i < self->inputs.count && !rc; i++) {
        const bal_input_row *input = &self->inputs.rows[i];
        if (!strcmp(input->tenant, self->run->to->name))
            rc = mark_gap(self, &input->commit, err);
    }
    return rc;
}

/* Somebody else may have been faster. */
static int put_commit(const moving *self, bal_error *err)
{
    const bal_tenant *to = self->run->to;
    bool there = false;
    int rc = bal_transfer_has(to, &self->row.id, &there, err);

    if (!rc && !there)
        rc = mark_gaps(self, err);
    if (rc || there)
        return rc;
    return bal_graph_commit_put(to->store->graph, to->number, &self->row, err);
}

static int put_rows(moving *self, bal_error *err)
{
    bal_tenant *to = self->run->to;
    bal_graph *graph = to->store->graph;
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);

    if (!rc)
        rc = bal_tenant_make(to, err);
    if (!rc)
        rc = bal_graph_manifest_put(graph, to->number, &self->manifest,
                                    self->blocks.rows, self->blocks.row_count,
                                    err);
    if (!rc)
        rc = put_commit(self, err);
    if (!rc)
        rc = bal_intent_done(&self->intent, to->store, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}

static int publish(moving *self, bal_error *err)
{
    bal_tenant *to = self->run->to;
    int64_t number = to->number;
    bal_id parent = { 0 };
    bool there = false;
    int rc = bal_transfer_parent(self->run, &parent, &there, &self->row, err);
    if (rc)
        return rc;

    self->row.parent = parent;
    self->row.has_parent = there;
    rc = put_rows(self, err);
    if (rc)
        to->number = number;
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

static void count(bal_push_report *report, const moving *self)
{
    const bal_transfer_blocks *blocks = &self->blocks;

    report->commits++;
    report->blocks += blocks->row_count;
    report->reused_blocks += blocks->id_count - blocks->row_count;
    report->bytes += blocks->bytes;
    report->stored_bytes += blocks->stored;
}

/* What was taken away while it was read is no damage. */
static int explain(const bal_transfer_run *run, const bal_id *id, int rc,
                   bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    bool there = true;

    bal_id_hex(hex, id);
    if (rc == BAL_ECORRUPT && !bal_transfer_has(run->from, id, &there, NULL) &&
        !there)
        return bal_fail(err, BAL_ENOTFOUND,
                        "commit '%.12s' was forgotten meanwhile", hex);
    return bal_within(err, rc, "commit '%.12s'", hex);
}

int bal_transfer_commit(const bal_transfer_run *run, const bal_id *id,
                        bal_error *err)
{
    BAL_LOCAL(moving) self = { .run = run };
    int rc = read_all(&self, id, err);

    if (!rc && self.leaf.count)
        rc = move_blocks(&self, err);
    if (!rc)
        rc = publish(&self, err);
    if (rc && rc != BAL_ECANCELLED)
        return explain(run, id, rc, err);
    if (!rc)
        count(run->report, &self);
    return rc;
}
