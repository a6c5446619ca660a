/* ballast refs: where each ref is. */
#include "cli/commands.h"

static int show(void *ctx, const char *name, const bal_id *commit)
{
    bal_listing *self = ctx;
    bal_out *out = self->out;

    if (out->json) {
        bal_json_key(&self->json, name);
        bal_json_id(&self->json, commit);
        return 0;
    }
    bal_out_id(out, commit);
    bal_out_text(out, "  ");
    bal_out_safe(out, name);
    bal_out_text(out, "\n");
    return 0;
}

static int walk(bal_cli *cli, bal_listing *listing, bal_error *err)
{
    return bal_ref_each(cli->tenant, show, listing, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    (void)values;
    return bal_cli_list(cli, "refs", '{', walk, err);
}

const bal_command bal_cmd_refs = {
    .name = "refs",
    .synopsis = "",
    .summary = "list the refs and the commits they are at",
    .about = "One ref a line: the commit's id, then the ref's name.",
    .needs = BAL_NEEDS_TENANT,
    .run = run,
};
