/* ballast checkout: what a commit holds, as a folder. */
#include "cli/commands.h"
#include "core/signals.h"

struct checkout_opts {
    const char *out;
    bool force;
};

static const bal_opt opts[] = {
    { 'o', "out", BAL_OPT_STRING, offsetof(struct checkout_opts, out), "DIR",
      "the folder to write", BAL_OPT_REQUIRED },
    { 0, "force", BAL_OPT_FLAG, offsetof(struct checkout_opts, force), NULL,
      "replace a folder that is there" },
    { 0 },
};

static void report(bal_cli *cli, const char *dir, const bal_written *written,
                   const bal_id *commit, const char *resolving)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "%llu tensors -> ",
                     (unsigned long long)written->tensors);
        bal_out_safe(out, dir);
        bal_out_text(out, "\n");
        return;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "out");
    bal_json_string(&json, dir);
    bal_json_key(&json, "tensors");
    bal_json_u64(&json, written->tensors);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, written->bytes);
    bal_json_key(&json, "commit");
    bal_json_id(&json, commit);
    if (resolving)
        bal_json_members(&json, resolving);
    bal_doc_close(&json, out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct checkout_opts *given = values;
    BAL_OWN(bal_commit) commit = NULL;
    BAL_OWN(bal_model) model = NULL;
    const char *root = bal_store_root(cli->store);
    bal_written written = { 0 };
    bal_id id;

    int rc = bal_cli_spec(&id, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_commit_open(&commit, cli->tenant, &id, err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(&model, cli->tenant, &id, err);
    if (rc)
        return rc;
    const char *resolving = bal_model_facts(model)->report;
    const bal_write_options options = {
        .provenance = bal_commit_provenance(commit),
        .avoid = &root,
        .avoid_count = 1,
        .flags = given->force ? BAL_WRITE_FORCE : 0,
    };
    rc = given->force ? 0 : bal_cli_vacant(given->out, err);
    if (rc == BAL_EEXISTS && bal_cli_holds(given->out, &id, model)) {
        written.tensors = bal_cli_tensors(model, &written.bytes);
        report(cli, given->out, &written, &id, resolving);
        return 0;
    }
    if (rc)
        return bal_signals_pending() ? BAL_ECANCELLED : rc;
    rc = bal_model_write(model, given->out, &options, &written, cli->work, err);
    if (!rc)
        rc = bal_exported(cli->tenant, &id, given->out, err);
    if (rc)
        return rc;
    report(cli, given->out, &written, &id, resolving);
    return 0;
}

const bal_command bal_cmd_checkout = {
    .name = "checkout",
    .synopsis = "SPEC -o DIR [--force]",
    .summary = "write what a commit holds as a folder",
    .about = "An adapter comes out as a folder that PEFT loads, a view of "
             "adapters too; whole weights as they went in; of a delta the "
             "difference itself ('ballast apply' makes a model of it). With "
             "them a ballast.json that tells where they are from.\n\n"
             "The folder appears complete or not at all. One that is there "
             "and not empty is a conflict, unless it holds the same commit.",
    .examples = "ballast checkout support -o ./support-adapter\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct checkout_opts),
    .run = run,
};
