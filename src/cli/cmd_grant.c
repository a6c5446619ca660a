/* ballast grant: let another tenant build views over a commit. */
#include "cli/commands.h"

struct grant_opts {
    const char *to;
};

static const bal_opt opts[] = {
    { 0, "to", BAL_OPT_STRING, offsetof(struct grant_opts, to), "T",
      "the tenant that may", BAL_OPT_REQUIRED },
    { 0 },
};

static int report(void *ctx, const bal_grant_info *grant)
{
    bal_cli *cli = ctx;
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        bal_out_safe(out, grant->grantee);
        bal_out_text(out, " may build views over ");
        bal_out_safe(out, grant->owner);
        bal_out_text(out, ":");
        bal_out_id(out, &grant->commit);
        bal_out_text(out, "\n");
        return 0;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_cli_grant_json(&json, grant);
    bal_doc_close(&json, out);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct grant_opts *given = values;
    bal_id commit;
    int rc = bal_cli_spec(&commit, cli, cli->args[0], err);
    if (rc)
        return rc;

    return bal_grant(cli->tenant, &commit, given->to, report, cli, err);
}

const bal_command bal_cmd_grant = {
    .name = "grant",
    .synopsis = "SPEC --to T",
    .summary = "let another tenant build views over a commit",
    .about = "T may then name the commit as an input: 'ballast --tenant T "
             "merge TENANT:SPEC ...'. What is granted is what the commit holds "
             "now, not what its ref moves to later. T stores none of it: its "
             "views read it through the grant, each time, until 'ballast "
             "revoke' takes it back. T's own grants on such a view are good "
             "for others as long as this one is.\n\n"
             "T need not exist yet.",
    .examples = "ballast grant support --to partner\n"
                "ballast --tenant partner merge acme:support mine -m both\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct grant_opts),
    .run = run,
};
