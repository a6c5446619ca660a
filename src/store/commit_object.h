/* A commit as an object. */
#ifndef STORE_COMMIT_OBJECT_H
#define STORE_COMMIT_OBJECT_H

#include "store/store.h"

/* The commit of a row, if it gives its id; a view's recipe is read from its
 * manifest. ECORRUPT. */
BAL_CHECK int bal_commit_of_row(bal_commit **out, bal_tenant *tenant,
                                const bal_commit_row *row, bal_error *err);
/* The id that covers everything in row but id, parent and kind: tenant,
 * manifest, the parent it was made on, message, author, base model, metadata,
 * time. */
BAL_CHECK int bal_commit_id(bal_id *out, const char *tenant,
                            const bal_commit_row *row, bal_error *err);

#endif
