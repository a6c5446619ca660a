/* What is known of blocks that are tensors' own: the sum of their squares. A
 * row that is not to be believed is as good as none, for whoever has the bytes
 * can find it anew. */
#include <math.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "graph/inside.h"
#include "graph/seal.h"

enum { WIDTH = 8 };

int bal_norm_put(bal_graph *self, int64_t tenant, const bal_block_row *row,
                 bal_error *err)
{
    uint8_t bytes[WIDTH];
    uint64_t bits;
    bal_id seal;

    if (!row->dtype)
        return 0;
    memcpy(&bits, &row->squares, sizeof(bits));
    bal_put64(bytes, bits);
    const bal_value sealed[] = {
        bal_id_value(&row->id),
        bal_text(row->dtype),
        bal_blob(bytes, sizeof(bytes)),
    };
    bal_seal_of(&seal, BAL_SEALED_NORMS, sealed, 3);
    const bal_value args[] = {
        bal_int(tenant), sealed[0], sealed[1], sealed[2], bal_id_value(&seal),
    };
    return bal_db_run(self->db,
                      "INSERT INTO norms (block, dtype, squares, seal) "
                      "SELECT number, $3, $4, $5 FROM blocks "
                      "WHERE tenant = $1 AND id = $2 "
                      "ON CONFLICT (block, dtype) DO UPDATE SET "
                      "squares = excluded.squares, seal = excluded.seal",
                      args, 5, NULL, err);
}

typedef struct found_norm {
    double squares;
    bool there;
} found_norm;

static int take_norm(void *ctx, const bal_value *columns, size_t count,
                     bal_error *err)
{
    found_norm *found = ctx;
    uint8_t bytes[WIDTH];
    uint64_t bits;

    (void)err;
    if (!bal_seal_fits(BAL_SEALED_NORMS, columns, count) ||
        bal_column_bytes(bytes, sizeof(bytes), &columns[3], NULL))
        return BAL_ROW_STOP;
    bits = bal_get64(bytes);
    memcpy(&found->squares, &bits, sizeof(bits));
    found->there = isfinite(found->squares) && !signbit(found->squares);
    return BAL_ROW_STOP;
}

int bal_graph_norm(bal_graph *self, int64_t tenant, const bal_id *id,
                   const char *dtype, double *squares, bool *there,
                   bal_error *err)
{
    const bal_value args[] = {
        bal_int(tenant),
        bal_id_value(id),
        bal_text(dtype),
    };
    found_norm found = { .there = false };

    int rc = bal_db_query(self->db,
                          "SELECT n.seal, b.id, n.dtype, n.squares "
                          "FROM blocks b JOIN norms n ON n.block = b.number "
                          "WHERE b.tenant = $1 AND b.id = $2 AND n.dtype = $3",
                          args, 3, take_norm, &found, err);
    if (rc)
        return rc;
    *squares = found.squares;
    *there = found.there;
    return 0;
}

typedef struct bad_norms {
    bal_buf rows; /* int64_t of the block, then the dtype with a NUL */
} bad_norms;

static void bad_norms_done(bad_norms *self)
{
    bal_buf_done(&self->rows);
}

static int note_bad(void *ctx, const bal_value *columns, size_t count,
                    bal_error *err)
{
    bad_norms *self = ctx;
    const char *dtype = NULL;

    if (bal_seal_fits(BAL_SEALED_NORMS, &columns[1], count - 1))
        return 0;
    int rc = bal_column_text(&dtype, &columns[3], err);
    if (!rc)
        rc = bal_buf_append(&self->rows, &columns[0].number, sizeof(int64_t),
                            err);
    return rc ? rc : bal_buf_append(&self->rows, dtype, strlen(dtype) + 1, err);
}

static int take_bad(bal_graph *self, const bad_norms *bad, bal_error *err)
{
    int rc = 0;

    for (size_t at = 0; at < bad->rows.len && !rc;) {
        int64_t block;
        memcpy(&block, bad->rows.data + at, sizeof(block));
        const char *dtype = bad->rows.data + at + sizeof(block);
        const bal_value args[] = { bal_int(block), bal_text(dtype) };
        rc = bal_db_run(self->db,
                        "DELETE FROM norms WHERE block = $1 AND dtype = $2",
                        args, 2, NULL, err);
        at += sizeof(block) + strlen(dtype) + 1;
    }
    return rc;
}

int bal_graph_norms_mend(bal_graph *self, bal_error *err)
{
    BAL_LOCAL(bad_norms) bad = { { 0 } };
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = bal_tx_begin(&tx, self->db, BAL_TX_WRITE, err);

    if (!rc)
        rc = bal_db_query(self->db,
                          "SELECT n.block, n.seal, b.id, n.dtype, n.squares "
                          "FROM norms n LEFT JOIN blocks b "
                          "ON b.number = n.block",
                          NULL, 0, note_bad, &bad, err);
    if (!rc)
        rc = take_bad(self, &bad, err);
    return rc ? rc : bal_tx_commit(&tx, err);
}
