/* ballast grants: who may build views over what. */
#include "cli/commands.h"

static int show(void *ctx, const bal_grant_info *grant)
{
    bal_listing *self = ctx;
    bal_out *out = self->out;

    if (out->json) {
        bal_json_object(&self->json);
        bal_cli_grant_json(&self->json, grant);
        bal_json_close(&self->json);
        return bal_out_stopped(out);
    }
    bal_out_text(out, grant->revoked_at ? "revoked  " : "live  ");
    bal_out_safe(out, grant->owner);
    bal_out_text(out, ":");
    bal_out_id(out, &grant->commit);
    bal_out_text(out, " -> ");
    bal_out_safe(out, grant->grantee);
    bal_out_text(out, "\n");
    return bal_out_stopped(out);
}

static int walk(bal_cli *cli, bal_listing *listing, bal_error *err)
{
    return bal_grant_each(cli->tenant, show, listing, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    (void)values;
    return bal_cli_list(cli, "grants", '[', walk, err);
}

const bal_command bal_cmd_grants = {
    .name = "grants",
    .synopsis = "",
    .summary = "list the grants a tenant gave and was given",
    .about = "One grant a line, live ones first: 'live' or 'revoked', the "
             "owner and the commit by which it was granted, and to whom.",
    .needs = BAL_NEEDS_TENANT,
    .run = run,
};
