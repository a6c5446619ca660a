/* What the checks of a proof share. Each is a row: a function that looks at one
 * thing and tells what it finds. */
#ifndef STORE_VERIFY_H
#define STORE_VERIFY_H

#include "core/map.h"
#include "store/proof.h"
#include "store/proof_log.h"

typedef struct bal_verification {
    const bal_proof *proof;
    bal_store *store;   /* NULL: offline */
    const bal_key *key; /* NULL: those that the store trusts */
    bal_finding_fn *fn;
    void *ctx;
    bal_verdict *verdict;
    bool stopped;            /* fn has heard enough */
    const json_t *predicate; /* NULL: there is none */
    const char *tenant;
    uint64_t epoch;
    uint64_t keys; /* that there are to check with */

    bal_log_state log;
    bal_proof *filed; /* the store's own, of a proof out of a file */

    bal_buf blocks;  /* ids that the statement names */
    bal_map wanted;  /* the same, to be found by id */
    bal_buf present; /* one uint8_t each, of bal_block_trace */
} bal_verification;

/* Where a block that should be gone was seen. */
enum bal_block_trace {
    BAL_TRACE_LISTED = 1,   /* by the backend */
    BAL_TRACE_ROW = 2,      /* in the database */
    BAL_TRACE_INTENDED = 4, /* a writer at work is about to publish it */
};

typedef int bal_check_fn(bal_verification *self, bal_error *err);

/* When a check can be made. */
enum bal_check_needs {
    BAL_CHECK_STATEMENT = 1, /* the payload could be read */
    BAL_CHECK_STORE = 2,
};

typedef struct bal_check_row {
    const char *name;
    bal_check_fn *run;
    unsigned needs;
} bal_check_row;

/* Tell a finding; a problem counts. */
BAL_CHECK int bal_verify_tell(bal_verification *self, bal_finding finding,
                              bal_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Calls fn with the keys that count. */
typedef int bal_verify_key_fn(void *ctx, const bal_key *key, bal_error *err);
BAL_CHECK int bal_verify_keys(bal_verification *self, bal_verify_key_fn *fn,
                              void *ctx, bal_error *err);
/* The same, and with a given key also those that the store trusts: by one of
 * them the log's other entries were signed. */
BAL_CHECK int bal_verify_log_keys(bal_verification *self, bal_verify_key_fn *fn,
                                  void *ctx, bal_error *err);

/* verify_log.c */
BAL_CHECK int bal_verify_origin(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_log(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_bundle(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_row(bal_verification *self, bal_error *err);
/* verify_store.c */
BAL_CHECK int bal_verify_tombstones(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_journal(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_facts(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_cache(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_grants(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_refs(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_answers(bal_verification *self, bal_error *err);
/* verify_blocks.c: the listing is taken before the database is read, so that
 * what a writer publishes meanwhile is in one or the other. */
BAL_CHECK int bal_verify_list(bal_verification *self, bal_error *err);
BAL_CHECK int bal_verify_blocks(bal_verification *self, bal_error *err);

#endif
