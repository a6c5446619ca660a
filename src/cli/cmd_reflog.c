/* ballast reflog: how refs moved. */
#include "cli/commands.h"
#include "core/clock.h"

static void show_json(bal_cli *cli, const bal_move *move)
{
    bal_json json;
    char at[40];

    bal_clock_rfc3339(at, move->at);
    bal_line_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "ref");
    bal_json_string(&json, move->ref);
    bal_json_key(&json, "n");
    bal_json_u64(&json, move->n);
    bal_json_key(&json, "op");
    bal_json_string(&json, move->op);
    bal_json_key(&json, "old");
    bal_json_id(&json, move->old);
    bal_json_key(&json, "new");
    bal_json_id(&json, move->now);
    bal_json_key(&json, "at");
    bal_json_string(&json, at);
    bal_json_key(&json, "message");
    bal_json_string(&json, move->message);
    bal_doc_close(&json, &cli->out);
}

static int show(void *ctx, const bal_move *move)
{
    bal_cli *cli = ctx;
    bal_out *out = &cli->out;

    if (out->json) {
        show_json(cli, move);
        return bal_out_stopped(out);
    }
    bal_out_safe(out, move->ref);
    bal_out_text(out, "@{%llu}  ", (unsigned long long)move->n);
    bal_out_safe(out, move->op);
    bal_out_text(out, "  ");
    bal_out_id(out, move->old);
    bal_out_text(out, " -> ");
    bal_out_id(out, move->now);
    bal_out_text(out, "  ");
    bal_out_subject(out, move->message ? move->message : "");
    bal_out_text(out, "\n");
    return bal_out_stopped(out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    (void)values;
    return bal_reflog(cli->tenant, cli->arg_count ? cli->args[0] : NULL, show,
                      cli, err);
}

const bal_command bal_cmd_reflog = {
    .name = "reflog",
    .synopsis = "[REF]",
    .summary = "show how a ref moved, the last move first",
    .about = "Of one ref, or of every ref. REF@{N} is a spec: "
             "'ballast reset main main@{1}' undoes the last move. With --json "
             "one object a line.",
    .arg = "REF",
    .needs = BAL_NEEDS_TENANT,
    .max_args = 1,
    .run = run,
};
