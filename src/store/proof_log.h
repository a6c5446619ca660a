/* The store's log, and its heads. */
#ifndef STORE_PROOF_LOG_H
#define STORE_PROOF_LOG_H

#include "core/key.h"
#include "store/proof.h"

/* A log as it is now. */
typedef struct bal_log_state {
    bal_buf store;  /* its id */
    bal_buf origin; /* the log's name */
    bal_buf leaves;
    uint64_t size;
} bal_log_state;

BAL_CHECK int bal_log_state_load(bal_log_state *out, bal_store *store,
                                 bal_error *err);
void bal_log_state_done(bal_log_state *self);
const bal_sha256 *bal_log_leaves(const bal_log_state *self);

#endif
