/* ballast refs: where each ref is. */
#include "cli/commands.h"

typedef struct listing {
    bal_cli *cli;
    bal_json json;
} listing;

static int show(void *ctx, const char *name, const bal_id *commit)
{
    listing *self = ctx;
    bal_out *out = &self->cli->out;

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

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    listing self = { .cli = cli };

    (void)values;
    if (!cli->out.json)
        return bal_ref_each(cli->tenant, show, &self, err);
    bal_doc_open(&self.json, &cli->out, cli->command->name);
    bal_json_key(&self.json, "refs");
    bal_json_object(&self.json);
    int rc = bal_ref_each(cli->tenant, show, &self, err);
    if (rc)
        return rc;
    bal_json_close(&self.json);
    bal_doc_close(&self.json, &cli->out);
    return 0;
}

const bal_command bal_cmd_refs = {
    .name = "refs",
    .synopsis = "",
    .summary = "list the refs and the commits they are at",
    .about = "One ref a line: the commit's id, then the ref's name.",
    .needs = BAL_NEEDS_TENANT,
    .run = run,
};
