/* What is known of blocks that are tensors' own: the sum of their squares. A
 * row that is not to be believed is as good as none, for whoever has the bytes
 * can find it anew. */
#include <math.h>

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
