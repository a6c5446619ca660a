/* ballast push: commits into another store. */
#include "cli/between.h"
#include "cli/commands.h"

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_LOCAL(bal_other) other = { 0 };
    int rc = bal_other_open(&other, cli, cli->args[0], BAL_OPEN_CREATE, err);

    return rc ? rc : bal_between(cli, cli->tenant, other.tenant, values, err);
}

const bal_command bal_cmd_push = {
    .name = "push",
    .synopsis = "ROOT SPEC... [--force]",
    .summary = "put commits into another store, as far as it lacks them",
    .about =
        "ROOT is the folder of the other store, which is made if there is "
        "none; its tenant is the one of the same name. What the specs name "
        "goes there with its history and the inputs of its views, ids and "
        "all; blocks that are there already are not sent. Cut short, it goes "
        "on when it is run again.\n\n"
        "A spec that is a ref moves the ref of that name there, if that leads "
        "on from where it is; --force moves it anyhow. Other specs move "
        "nothing.\n\n"
        "Everything is held against its id before it is put. What was "
        "forgotten there does not come back. Fingerprints, grants and proofs "
        "are not sent; an input of another tenant has to be there.",
    .examples = "ballast push /mnt/backup/store main\n"
                "ballast push ../staging main support main~3\n",
    .arg = "MODEL",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 2,
    .max_args = BAL_ANY_ARGS,
    .opts = bal_between_opts,
    .opts_size = sizeof(struct between_opts),
    .run = run,
};
