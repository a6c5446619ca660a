/* What the library finds, as JSON documents. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "core/buf.h"

/* Appends one compact document, "schema": "ballast/diff/1". */
BAL_CHECK int bal_report_diff(bal_buf *to, bal_tenant *tenant, const bal_id *a,
                              const bal_id *b, bal_work *work, bal_error *err);
/* Verifies a proof and appends one compact document, "schema":
 * "ballast/forget/1". */
BAL_CHECK int bal_report_proof(bal_buf *to, const bal_proof *proof,
                               bal_store *store, const bal_key *key,
                               bool *verified, bal_error *err);

#endif
