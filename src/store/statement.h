/* What a proof says: an in-toto Statement v1 about deletion, in canonical JSON
 * (RFC 8785). Its predicate is the plan that was carried out, and when, where
 * and by whom. The attestation is the SHA-256 of the text. */
#ifndef STORE_STATEMENT_H
#define STORE_STATEMENT_H

#include "core/json.h"
#include "core/key.h"
#include "store/store.h"

#define BAL_STATEMENT_TYPE      "https://in-toto.io/Statement/v1"
#define BAL_STATEMENT_PREDICATE "urn:ballast:deletion:1"
#define BAL_STATEMENT_SCHEMA    "ballast/deletion/1"
/* DSSE's payloadType. */
#define BAL_STATEMENT_PAYLOAD "application/vnd.in-toto+json"

/* What the plan does not know. */
typedef struct bal_statement_facts {
    const char *store; /* its id */
    int64_t completed_at;
    const bal_key *key; /* that will sign; NULL: none */
    uint64_t index;     /* in the log */
} bal_statement_facts;

/* Append the statement of a plan (store/forget.h); what the plan has as
 * "private" stays out. */
BAL_CHECK int bal_statement_write(bal_buf *to, json_t *plan,
                                  const bal_statement_facts *facts,
                                  bal_error *err);
/* ECORRUPT: not JSON, or more values than a statement of that length has, so
 * that no text makes us allocate many times its size. Members are not looked
 * at. */
BAL_CHECK int bal_statement_read(json_t **out, bal_bytes text, bal_error *err);
/* The subject that goes with a predicate: its commits and manifests. */
BAL_CHECK int bal_statement_subject(json_t **out, const json_t *predicate,
                                    bal_error *err);
/* A time as bal_clock_rfc3339 writes it; false: it is another text. */
bool bal_statement_time(int64_t *out, const char *text);
/* "ballast/<store>", the name of the store's log. */
BAL_CHECK int bal_log_origin(bal_buf *to, const char *store, bal_error *err);
/* The store's id, appended. */
BAL_CHECK int bal_store_identity(bal_buf *to, bal_store *store, bal_error *err);
/* Append the ids of an array of hex digits. ECORRUPT: one is not an id. */
BAL_CHECK int bal_statement_ids(bal_buf *to, const json_t *array,
                                bal_error *err);

#endif
