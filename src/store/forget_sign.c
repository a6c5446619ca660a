/* The last step of a deletion: what was done is said, signed, and put at the
 * end of the store's log, in the transaction that takes the journal row. */
#include <string.h>

#include "core/clock.h"
#include "core/dsse.h"
#include "core/error.h"
#include "core/merkle.h"
#include "core/note.h"
#include "graph/proofs.h"
#include "store/forget_finish.h"
#include "store/statement.h"

/* A proof on its way into the log. */
typedef struct signing {
    bal_store *store;
    json_t *plan;
    const bal_key *key;
    bal_buf identity, payload, envelope, checkpoint;
    bal_proof_row row;
} signing;

static void signing_done(signing *self)
{
    bal_buf_done(&self->identity);
    bal_buf_done(&self->payload);
    bal_buf_done(&self->envelope);
    bal_buf_done(&self->checkpoint);
}

/* A clock that was set back does not make a deletion end before it began. */
static int64_t completed(const json_t *plan)
{
    int64_t now = bal_clock_now();
    int64_t asked = 0;
    bool known = bal_statement_time(
        &asked, json_string_value(json_object_get(plan, "requested_at")));

    return known && asked > now ? asked : now;
}

static int write_payload(signing *self, bal_error *err)
{
    bal_proof_row *row = &self->row;
    int rc = bal_store_identity(&self->identity, self->store, err);
    if (!rc)
        rc = bal_graph_log_size(self->store->graph, &row->index, err);
    if (rc)
        return rc;

    row->completed_at = completed(self->plan);
    const bal_statement_facts facts = {
        .store = bal_buf_string(&self->identity),
        .completed_at = row->completed_at,
        .key = self->key,
        .index = row->index,
    };
    rc = bal_statement_write(&self->payload, self->plan, &facts, err);
    if (rc)
        return rc;
    const bal_bytes payload = { self->payload.data, self->payload.len };
    rc = bal_sha256_of(&row->attestation, &payload, 1, err);
    if (!rc)
        rc = bal_merkle_leaf(&row->leaf, payload, err);
    if (!rc)
        rc = bal_dsse_write(&self->envelope, BAL_STATEMENT_PAYLOAD, payload,
                            self->key, err);
    return rc;
}

/* The log's head with this proof at its end. */
static int write_checkpoint(signing *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) leaves = { 0 };
    BAL_LOCAL(bal_buf) origin = { 0 };
    bal_merkle_head head = { .size = self->row.index + 1 };
    uint8_t bytes[32];

    if (!self->key || !bal_key_public_bytes(self->key, bytes))
        return 0;
    int rc =
        bal_graph_log_leaves(self->store->graph, self->row.index, &leaves, err);
    if (!rc)
        rc = bal_buf_append(&leaves, &self->row.leaf, sizeof(self->row.leaf),
                            err);
    if (!rc)
        rc = bal_merkle_root(&head.root,
                             (const bal_sha256 *)(const void *)leaves.data,
                             (size_t)head.size, err);
    if (!rc)
        rc = bal_log_origin(&origin, bal_buf_string(&self->identity), err);
    if (!rc)
        rc = bal_note_write(&self->checkpoint, bal_buf_string(&origin), &head,
                            self->key, err);
    if (rc)
        return rc;
    self->row.checkpoint = bal_buf_string(&self->checkpoint);
    return 0;
}

static int put_tombstones(signing *self, bal_error *err)
{
    static const struct {
        const char *member;
        bal_tomb kind;
    } kinds[] = {
        { "commits", BAL_TOMB_COMMIT },
        { "manifests", BAL_TOMB_MANIFEST },
    };
    BAL_LOCAL(bal_buf) ids = { 0 };

    for (size_t i = 0; i < 2; i++) {
        bal_buf_clear(&ids);
        int rc = bal_statement_ids(
            &ids, json_object_get(self->plan, kinds[i].member), err);
        for (size_t at = 0; at < ids.len && !rc; at += sizeof(bal_id)) {
            bal_tombstone stone = { .tenant = self->row.tenant,
                                    .kind = kinds[i].kind,
                                    .attestation = self->row.attestation };
            memcpy(&stone.id, ids.data + at, sizeof(stone.id));
            rc = bal_graph_tombstone_put(self->store->graph, &stone, err);
        }
        if (rc)
            return rc;
    }
    return 0;
}

static int put_rows(signing *self, int64_t number, bal_error *err)
{
    bal_graph *graph = self->store->graph;

    self->row.envelope = (bal_bytes){ self->envelope.data, self->envelope.len };
    int rc = bal_graph_proof_put(graph, &self->row, err);
    if (!rc)
        rc = put_tombstones(self, err);
    return rc ? rc : bal_graph_journal_done(graph, number, err);
}

int bal_pending_sign(bal_store *self, const bal_pending *row,
                     const bal_key *key, bal_sha256 *attestation,
                     bal_error *err)
{
    BAL_LOCAL(signing)
    made = { .store = self,
             .plan = row->plan,
             .key = key,
             .row = { .tenant = bal_pending_tenant(row),
                      .epoch = bal_pending_epoch(row) } };
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_graph_begin(&tx, self->graph, BAL_TX_WRITE, err);
    if (!rc)
        rc = write_payload(&made, err);
    if (!rc)
        rc = write_checkpoint(&made, err);
    if (!rc)
        rc = put_rows(&made, row->number, err);
    if (!rc)
        rc = bal_tx_commit(&tx, err);
    if (rc)
        return rc;
    if (attestation)
        *attestation = made.row.attestation;
    return 0;
}
