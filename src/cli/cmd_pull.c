/* ballast pull: commits out of another store. */
#include "cli/between.h"
#include "cli/commands.h"

/* The store of --root is made as any command makes it that writes, but not
 * before there is something to pull from. */
static int open_own(bal_cli *cli, bal_error *err)
{
    bal_error why = { 0 };
    BAL_OWN(bal_store) other = NULL;
    int rc = bal_cli_tenant(cli, 0, &why);
    if (rc != BAL_ENOTFOUND) {
        if (rc && err)
            *err = why;
        return rc;
    }

    rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    const bal_store_options options = {
        .root = cli->args[0],
        .wait = cli->globals.wait.value,
        .work = cli->work,
    };
    rc = bal_store_open(&other, &options, err);
    return rc ? rc : bal_cli_tenant(cli, BAL_OPEN_CREATE, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_LOCAL(bal_other) other = { 0 };
    int rc = open_own(cli, err);
    if (!rc)
        rc = bal_other_open(&other, cli, cli->args[0], 0, err);

    return rc ? rc : bal_between(cli, other.tenant, cli->tenant, values, err);
}

const bal_command bal_cmd_pull = {
    .name = "pull",
    .synopsis = "ROOT SPEC... [--force]",
    .summary = "take commits from another store, as far as they are missing",
    .about =
        "'ballast push' with the roles turned: specs are of the store at "
        "ROOT, which has to be there; what they name comes into the store of "
        "--root, which is made if there is none, and a spec that is a ref "
        "moves the ref of that name. What was forgotten here does not come "
        "back.",
    .examples = "ballast pull /mnt/backup/store main\n"
                "ballast --root fresh --tenant acme pull ../staging main\n",
    .arg = "MODEL",
    .needs = BAL_NEEDS_NOTHING,
    .min_args = 2,
    .max_args = BAL_ANY_ARGS,
    .opts = bal_between_opts,
    .opts_size = sizeof(struct between_opts),
    .run = run,
};
