/* Whole documents that the program prints and the server sends. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "core/json.h"

/* Appends `ballast diff --json` of two commits of a tenant, compact. */
BAL_CHECK int bal_report_diff(bal_buf *to, bal_tenant *tenant, const bal_id *a,
                              const bal_id *b, bal_work *work, bal_error *err);
/* Verifies a proof that was just made, and appends it as `ballast forget
 * --json` does, compact. key NULL: those that the store trusts. */
BAL_CHECK int bal_report_proof(bal_buf *to, const bal_proof *proof,
                               bal_store *store, const bal_key *key,
                               bool *verified, bal_error *err);

#endif
