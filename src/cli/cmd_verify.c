/* ballast verify: does a proof of deletion hold? */
#include "cli/commands.h"
#include "cli/proving.h"
#include "core/error.h"

struct verify_opts {
    const char *key;
    bool offline;
};

static const bal_opt opts[] = {
    { 0, "key", BAL_OPT_STRING, offsetof(struct verify_opts, key), "FILE",
      "the key it must be signed by; else those that the store trusts" },
    { 0, "offline", BAL_OPT_FLAG, offsetof(struct verify_opts, offline), NULL,
      "without a store: a bundle by itself" },
    { 0 },
};

static int find(bal_proof **out, bal_cli *cli, bool offline, bal_error *err)
{
    const char *what = cli->args[0];

    if (!bal_cli_attestation(what))
        return bal_proof_load(out, what, err);
    if (offline)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL, "--offline needs a file"),
                        "'ballast proofs export' writes one");
    return bal_proof_open(out, cli->store, what, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct verify_opts *given = values;
    BAL_OWN(bal_key) key = NULL;
    BAL_OWN(bal_proof) proof = NULL;
    int rc = 0;

    /* With a store the environment's key is one of those that it may trust. */
    if (given->key || given->offline)
        rc = bal_cli_key(&key, given->key, err);
    if (!rc && !given->offline)
        rc = bal_cli_store(cli, 0, err);
    if (!rc && cli->store && key)
        rc = bal_forget_finish(cli->store, key, NULL, NULL, err);
    if (!rc)
        rc = find(&proof, cli, given->offline, err);
    if (rc)
        return rc;
    const bal_proving proving = { cli, proof, cli->store, key, true };
    return bal_cli_prove(&proving, err);
}

const bal_command bal_cmd_verify = {
    .name = "verify",
    .synopsis = "ATTESTATION|FILE [--key FILE] [--offline]",
    .summary = "check a proof of deletion",
    .about =
        "Anew, and from nothing: that the statement says what its "
        "attestation covers, that a trusted key signed it, that the log "
        "has it and was not changed, and that nothing of what it names "
        "is in the database, the blocks or the view cache. Prints "
        "'verified' or a line 'PROBLEM: ...' each, then the exit status is "
        "1. Content that was committed again later is told, and no "
        "problem; so is that nobody signed it: then it is consistent at most.\n\n"
        "A FILE is a bundle that 'ballast proofs export' wrote, or a bare "
        "DSSE envelope. With --offline no store is needed, but --key: the "
        "key in a bundle is a hint and never trusted.",
    .examples = "ballast verify proof.json --offline --key acme.pub.pem\n",
    .arg = "FILE",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct verify_opts),
    .run = run,
};
