/* What forget, verify and proofs share: the key, and a proof as it is shown. */
#ifndef CLI_PROVING_H
#define CLI_PROVING_H

#include "cli/cli.h"
#include "core/key.h"
#include "report/proof.h"

/* The key of a file, or with NULL that of BALLAST_SIGNING_KEY; NULL in *out
 * where neither is. */
BAL_CHECK int bal_cli_key(bal_key **out, const char *file, bal_error *err);
/* True for the 64 hex digits of an attestation; all else is a file. */
bool bal_cli_attestation(const char *text);

typedef struct bal_proving {
    bal_cli *cli;
    const bal_proof *proof;
    bal_store *store;   /* NULL: offline */
    const bal_key *key; /* NULL: those that the store trusts */
    bool notes;         /* show what is no problem, too */
} bal_proving;

/* Verify a proof and show it with what was found; the status is 1 where there
 * are problems. */
BAL_CHECK int bal_cli_prove(const bal_proving *self, bal_error *err);
/* "tenant 'acme': 1 commits, …". */
void bal_cli_proof_sums(bal_out *out, const bal_proof_info *info);
/* The texts of what a dry run gave: every thing that would go. */
BAL_CHECK int bal_cli_plan(bal_out *out, const char *plan, bal_error *err);

#endif
