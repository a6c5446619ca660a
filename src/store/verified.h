/* Rows of the graph, held against the ids that cover them. */
#ifndef STORE_VERIFIED_H
#define STORE_VERIFIED_H

#include "store/store.h"

/* ECORRUPT unless the row's fields give its id. */
BAL_CHECK int bal_commit_verify(const bal_tenant *tenant,
                                const bal_commit_row *row, bal_error *err);
/* A manifest's kind (where not NULL) and text, appended; ENOTFOUND, ECORRUPT
 * unless the text gives the id. */
BAL_CHECK int bal_manifest_get(bal_buf *kind, bal_buf *body,
                               const bal_tenant *tenant, const bal_id *id,
                               bal_error *err);

#endif
