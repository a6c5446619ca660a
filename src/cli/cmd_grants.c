/* ballast grants: who may build views over what. */
#include "cli/commands.h"

typedef struct listing {
    bal_cli *cli;
    bal_json json;
} listing;

static int show(void *ctx, const bal_grant_info *grant)
{
    listing *self = ctx;
    bal_out *out = &self->cli->out;

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

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    listing self = { .cli = cli };

    (void)values;
    if (!cli->out.json)
        return bal_grant_each(cli->tenant, show, &self, err);
    bal_doc_open(&self.json, &cli->out, cli->command->name);
    bal_json_key(&self.json, "grants");
    bal_json_array(&self.json);
    int rc = bal_grant_each(cli->tenant, show, &self, err);
    if (rc)
        return rc;
    bal_json_close(&self.json);
    bal_doc_close(&self.json, &cli->out);
    return 0;
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
