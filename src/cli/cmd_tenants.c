/* ballast tenants: who has models in this store. */
#include "cli/commands.h"

struct tenants_opts {
    bool all;
};

/* What --all does elsewhere, this does always. */
static const bal_opt opts[] = {
    { 0, "all", BAL_OPT_FLAG, offsetof(struct tenants_opts, all), NULL,
      "every tenant, as without it" },
    { 0 },
};

static int show(void *ctx, const char *name)
{
    bal_listing *self = ctx;
    bal_out *out = self->out;

    if (out->json) {
        bal_json_string(&self->json, name);
        return 0;
    }
    bal_out_safe(out, name);
    bal_out_text(out, "\n");
    return 0;
}

static int walk(bal_cli *cli, bal_listing *listing, bal_error *err)
{
    return bal_tenant_each(cli->store, show, listing, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    (void)values;
    return bal_cli_list(cli, "tenants", '[', walk, err);
}

const bal_command bal_cmd_tenants = {
    .name = "tenants",
    .synopsis = "[--all]",
    .summary = "list the tenants of the store",
    .about = "One a line, whoever can open the store. A tenant exists from "
             "its first commit on.",
    .needs = BAL_NEEDS_STORE,
    .opts = opts,
    .opts_size = sizeof(struct tenants_opts),
    .run = run,
};
