/* A proof in memory: the envelope as it was found, what could be read of it,
 * and where it was found. One that cannot be read is still a handle, so that
 * `verify` can say so. */
#ifndef STORE_PROOF_H
#define STORE_PROOF_H

#include "core/dsse.h"
#include "core/json.h"
#include "core/merkle.h"
#include "graph/proofs.h"
#include "store/store.h"

/* Of a bundle. */
#define BAL_PROOF_SCHEMA "ballast/proof/1"

BAL_OWNABLE(bal_proof)

struct bal_proof {
    bal_proof_info info;
    bal_buf envelope;
    bal_dsse dsse; /* empty where it is not an envelope */
    bal_buf payload;
    json_t *statement; /* NULL: the payload is not JSON */
    bal_error why;     /* what cannot be read; code 0: nothing */
    bal_sha256 attestation;
    bal_sha256 leaf;

    bool in_store; /* it was found under an attestation, in this row: */
    bal_proof_row row;
    json_t *log;  /* of a bundle; NULL: it was none */
    bool bundled; /* with or without a log that can be read */
    bal_arena arena;
};

/* What a dry run gives: the plan in the place of the statement. */
BAL_CHECK int bal_proof_of_plan(bal_proof **out, json_t *plan, bal_error *err);
/* The predicate, NULL where there is none. */
const json_t *bal_proof_predicate(const bal_proof *self);
/* Of the store's id in the statement; "" where it has none. */
const char *bal_proof_store(const bal_proof *self);

#endif
