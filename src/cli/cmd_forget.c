/* ballast forget: delete, and prove it. */
#include <unistd.h>

#include "cli/commands.h"
#include "cli/proving.h"
#include "core/error.h"

struct forget_opts {
    const char *reason;
    const char *key;
    bool dry_run, yes;
};

static const bal_opt opts[] = {
    { 0, "reason", BAL_OPT_STRING, offsetof(struct forget_opts, reason), "TEXT",
      "why; it is part of the proof", BAL_OPT_REQUIRED },
    { 'n', "dry-run", BAL_OPT_FLAG, offsetof(struct forget_opts, dry_run), NULL,
      "only tell what would go, and what would stay" },
    { 0, "key", BAL_OPT_STRING, offsetof(struct forget_opts, key), "FILE",
      "what the proof is signed with; else BALLAST_SIGNING_KEY" },
    { 0, "yes", BAL_OPT_FLAG, offsetof(struct forget_opts, yes), NULL,
      "do not ask before a whole tenant goes" },
    { 0 },
};

/* On a terminal, a whole tenant goes only if somebody says so. */
static int confirm(bal_cli *cli, const struct forget_opts *given,
                   bal_error *err)
{
    char answer[8] = "";

    if (cli->arg_count || given->yes || given->dry_run ||
        !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 0;
    fprintf(stderr, "forget all of tenant '%s'? [y/N] ",
            bal_tenant_name(cli->tenant));
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) &&
        (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    return bal_fail(err, BAL_ECANCELLED, "nothing was forgotten");
}

static int show_plan(bal_cli *cli, const bal_proof *proof, bal_error *err)
{
    const bal_proof_info *info = bal_proof_info_of(proof);
    bal_out *out = &cli->out;
    bal_json json;

    if (out->json) {
        bal_doc_open(&json, out, cli->command->name);
        bal_json_key(&json, "dry_run");
        bal_json_bool(&json, true);
        bal_json_key(&json, "plan");
        bal_json_raw(&json, info->statement);
        bal_doc_close(&json, out);
        return 0;
    }
    bal_cli_proof_sums(out, info);
    int rc = bal_cli_plan(out, info->statement, err);
    bal_out_text(out, "dry run: nothing was removed\n");
    return rc;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct forget_opts *given = values;
    BAL_OWN(bal_key) key = NULL;
    BAL_OWN(bal_proof) proof = NULL;
    bal_id commit;
    int rc = 0;

    if (cli->arg_count)
        rc = bal_cli_spec(&commit, cli, cli->args[0], err);
    if (!rc)
        rc = bal_cli_key(&key, given->key, err);
    if (!rc)
        rc = confirm(cli, given, err);
    if (rc)
        return rc;

    const bal_forget_options options = {
        .commit = cli->arg_count ? &commit : NULL,
        .reason = given->reason,
        .key = key,
        .key_path = given->key,
        .flags = given->dry_run ? BAL_FORGET_DRY_RUN : 0,
    };
    rc = bal_forget(&proof, cli->tenant, &options, err);
    if (rc)
        return rc;
    if (given->dry_run)
        return show_plan(cli, proof, err);
    const bal_proving proving = { cli, proof, cli->store, key, false };
    return bal_cli_prove(&proving, err);
}

const bal_command bal_cmd_forget = {
    .name = "forget",
    .synopsis = "[SPEC] --reason TEXT [--dry-run] [--key FILE] [--yes]",
    .summary = "delete a commit or a tenant, and prove it",
    .about = "Of a commit: its row, its manifest and the blocks that nothing "
             "else uses; commits on it keep their ids, refs go to its parent. "
             "Without SPEC, all that the tenant has. Bytes go first and the "
             "proof is signed last; if the command is killed, the next one "
             "finishes it.\n\n"
             "The proof lists every id, what is kept because something else "
             "has it, and what it does not cover: backups, running servers, "
             "copies that were checked out. It is verified before the command "
             "ends; the first key that signs is the store's from then on.",
    .examples = "ballast forget support~2 --reason 'request 4711' --key k.pem\n"
                "ballast --tenant acme forget --reason 'contract ended'\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct forget_opts),
    .run = run,
};
