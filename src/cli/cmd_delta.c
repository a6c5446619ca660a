/* ballast delta: a fine-tune as its exact difference to a base. */
#include "cli/commands.h"

struct delta_opts {
    const char *base, *message, *ref, *base_model, *metadata, *author;
};

static const bal_opt opts[] = {
    { 0, "base", BAL_OPT_STRING, offsetof(struct delta_opts, base),
      "DIR|FILE|SPEC", "the model it was made from", BAL_OPT_REQUIRED },
    { 'm', "message", BAL_OPT_STRING, offsetof(struct delta_opts, message),
      "MSG", "what changed and why", BAL_OPT_REQUIRED },
    { 0, "ref", BAL_OPT_STRING, offsetof(struct delta_opts, ref), "REF",
      "the ref to move, main if not told" },
    { 0, "base-model", BAL_OPT_STRING, offsetof(struct delta_opts, base_model),
      "NAME", "the base's name, if it does not tell" },
    { 0, "metadata", BAL_OPT_STRING, offsetof(struct delta_opts, metadata),
      "JSON", "an object of your own, covered by the id" },
    { 0, "author", BAL_OPT_STRING, offsetof(struct delta_opts, author), "A",
      "who made it, if not you" },
    { 0 },
};

/* Counts beside changed and unchanged, told where they are not zero. */
static void text_extra(bal_out *out, uint64_t count, const char *what)
{
    if (count)
        bal_out_text(out, ", %llu %s", (unsigned long long)count, what);
}

static void report_text(bal_cli *cli, const bal_commit *commit, const char *ref,
                        const bal_commit_report *report)
{
    bal_out *out = &cli->out;

    bal_out_id(out, &bal_commit_info_of(commit)->id);
    if (report->nothing_changed) {
        bal_out_text(out, "  nothing changed");
    } else {
        bal_out_text(out, "  %llu tensors changed, %llu unchanged",
                     (unsigned long long)report->changed,
                     (unsigned long long)report->unchanged);
        text_extra(out, report->added, "added");
        text_extra(out, report->removed, "removed");
        text_extra(out, report->reshaped, "reshaped");
    }
    bal_out_text(out, "  ref ");
    bal_out_safe(out, ref);
    bal_out_text(out, "\n");
}

static void report_json(bal_cli *cli, const bal_commit *commit, const char *ref,
                        const bal_commit_report *report)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "changed", report->changed },
        { "unchanged", report->unchanged },
        { "added", report->added },
        { "removed", report->removed },
        { "reshaped", report->reshaped },
        { "bytes", report->bytes },
        { "stored_bytes", report->stored_bytes },
    };
    bal_json json;

    bal_cli_commit_open(&json, cli, commit, ref);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        bal_json_key(&json, numbers[i].key);
        bal_json_u64(&json, numbers[i].value);
    }
    bal_cli_anchor(&json, report);
    bal_doc_close(&json, &cli->out);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct delta_opts *given = values;
    BAL_LOCAL(bal_named) tuned = { 0 };
    BAL_LOCAL(bal_named) base = { 0 };
    BAL_OWN(bal_model) model = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    bal_commit_report report = { 0 };
    bal_draft draft = {
        .ref = given->ref ? given->ref : "main",
        .message = given->message,
        .author = given->author,
        .base_model = given->base_model,
        .metadata = given->metadata,
    };

    int rc = bal_cli_metadata(given->metadata, err);
    if (rc)
        return rc;
    rc = bal_cli_model(&tuned, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_cli_model(&base, cli, given->base, err);
    if (rc)
        return rc;
    rc = bal_cli_tenant(cli, BAL_OPEN_CREATE, err);
    if (rc)
        return rc;
    draft.anchor = base.is_commit ? &base.commit : NULL;
    rc = bal_model_minus(&model, tuned.model, base.model, cli->work, err);
    if (rc)
        return rc;
    rc = bal_commit_model(&commit, cli->tenant, model, &draft, &report, err);
    if (rc)
        return rc;
    if (cli->out.json)
        report_json(cli, commit, draft.ref, &report);
    else
        report_text(cli, commit, draft.ref, &report);
    if (!cli->out.json)
        bal_cli_tell_anchor(cli, &report);
    return 0;
}

const bal_command bal_cmd_delta = {
    .name = "delta",
    .synopsis = "MODEL --base BASE -m MSG [OPTIONS]",
    .summary = "record a fine-tune as its exact difference to a base",
    .about = "MODEL and BASE are folders, safetensors files, or specs of "
             "commits; what exists as a file or holds a '/' is a path. "
             "'ballast apply' gives MODEL back from BASE and the commit, bit "
             "for bit, which is proved while the difference is taken. New, "
             "removed and reshaped tensors and side files are part of it.",
    .examples = "ballast delta ./support-ft --base ./llama-8b -m \"run 41\" "
                "--ref support\n"
                "ballast delta ./run42 --base base-weights -m \"run 42\"\n",
    .arg = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct delta_opts),
    .run = run,
};
