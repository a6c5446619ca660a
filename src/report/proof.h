/* A proof with what verifying it found, as `forget`, `verify` and the HTTP API
 * show it. */
#ifndef REPORT_PROOF_H
#define REPORT_PROOF_H

#include "core/json.h"
#include "core/own.h"

BAL_OWNABLE(bal_proof)

typedef struct bal_found {
    bal_finding kind;
    const char *text;
    struct bal_found *next;
} bal_found;

typedef struct bal_findings {
    bal_verdict verdict;
    bal_found *first; /* in the order in which they came */
    bal_found **last;
    bool lost; /* no memory for one */
    bal_arena arena;
} bal_findings;

/* As bal_proof_verify. */
BAL_CHECK int bal_findings_fill(bal_findings *out, const bal_proof *proof,
                                bal_store *store, const bal_key *key,
                                bal_error *err);
void bal_findings_done(bal_findings *self);
bool bal_proof_signed(const bal_proof_info *info);
/* Members, into the open object: "attestation" to "problems"; with notes,
 * "notes". */
BAL_CHECK int bal_proof_json(bal_json *json, const bal_proof *proof,
                             const bal_findings *found, bool notes,
                             bal_error *err);

#endif
