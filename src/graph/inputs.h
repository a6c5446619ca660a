/* What views stand on, as rows: a second telling of what their manifests say,
 * by which dependents are found. */
#ifndef GRAPH_INPUTS_H
#define GRAPH_INPUTS_H

#include <jansson.h>

#include "graph/graph.h"

/* A view's inputs as its body has them (docs/format.md, "Manifest"). */
typedef struct bal_inputs {
    json_t *json; /* has the texts */
    bal_input_row *rows;
    size_t count;
} bal_inputs;

/* ECORRUPT: the body is not a view's. */
BAL_CHECK int bal_inputs_read(bal_inputs *out, bal_bytes body, bal_error *err);
void bal_inputs_done(bal_inputs *self);
/* manifest: its number. */
BAL_CHECK int bal_inputs_put(bal_db *db, int64_t manifest,
                             const bal_input_row *rows, size_t count,
                             bal_error *err);
/* The step of a migration: rows for the views that are there. A body that is
 * not a view's gets none, and is for fsck to tell. */
BAL_CHECK int bal_inputs_backfill(bal_db *db, bal_error *err);
/* Call fn with the name of its tenant and its id of each view whose rows are
 * not what its body says. */
typedef int bal_inputs_fn(void *ctx, const bal_value *tenant,
                          const bal_value *id, bal_error *err);
BAL_CHECK int bal_inputs_check(bal_db *db, bal_inputs_fn *fn, void *ctx,
                               bal_error *err);

#endif
