/* ballast reset: put a ref on another commit. */
#include "cli/commands.h"

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const char *ref = cli->args[0];
    BAL_OWN(bal_commit) commit = NULL;
    bal_out *out = &cli->out;
    bal_json json;
    bal_id to;

    (void)values;
    int rc = bal_cli_spec(&to, cli, cli->args[1], err);
    if (rc)
        return rc;
    rc = bal_commit_open(&commit, cli->tenant, &to, err);
    if (rc)
        return rc;
    rc = bal_ref_reset(cli->tenant, ref, &to, NULL, cli->args[1], err);
    if (rc)
        return rc;
    if (out->json) {
        bal_cli_commit_open(&json, cli, commit, ref);
        bal_doc_close(&json, out);
        return 0;
    }
    bal_out_safe(out, ref);
    bal_out_text(out, " -> ");
    bal_out_id(out, &to);
    bal_out_text(out, "  ");
    bal_out_subject(out, bal_commit_info_of(commit)->message);
    bal_out_text(out, "\n");
    return 0;
}

const bal_command bal_cmd_reset = {
    .name = "reset",
    .synopsis = "REF SPEC",
    .summary = "put a ref on another commit, or make one",
    .about = "Nothing is deleted, and the move is in the reflog: REF@{1} "
             "rolls a rollback back.",
    .examples = "ballast reset main main~1\nballast reset main main@{1}\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
