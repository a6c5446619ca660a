/* What may be read, asked at every read. A commit that is opened has been
 * walked: its rows are there, and every hop of a view into another tenant has a
 * live grant. A revocation or deletion later makes the store's epoch grow; then
 * the next read walks again before it gives a byte, cached or not. */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include "model/model.h"
#include "store/store.h"

/* Takes model, on failure too: what opening commit at that epoch gave. Reads of
 * it fail with EBROKEN (a view lost an input or its grant) or ENOTFOUND (the
 * commit is no more) from the moment that a forget or revoke has answered, in
 * any process. */
BAL_CHECK int bal_guard_open(bal_model **out, bal_tenant *tenant,
                             const bal_id *commit, uint64_t epoch,
                             bal_model *model, bal_error *err);

/* What the guard stands before: a commit walked hop by hop and opened, with its
 * manifest and whether that is a view's. ENOTFOUND: no commit. EBROKEN: a view
 * lost an input, which the text names. */
typedef struct bal_walked {
    bal_id manifest;
    bool view;
} bal_walked;
BAL_CHECK int bal_commit_walk(bal_model **out, bal_walked *walked,
                              const bal_tenant *tenant, const bal_id *commit,
                              bal_error *err);

#endif
