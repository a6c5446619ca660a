/* ballast fsck: is everything that is recorded there, and as recorded? */
#include "cli/commands.h"
#include "core/error.h"

struct fsck_opts {
    bool all, fast, repair;
    const char *from;
};

static const bal_opt opts[] = {
    { 0, "all", BAL_OPT_FLAG, offsetof(struct fsck_opts, all), NULL,
      "every tenant" },
    { 0, "fast", BAL_OPT_FLAG, offsetof(struct fsck_opts, fast), NULL,
      "names and sizes only, no bytes are read" },
    { 0, "repair", BAL_OPT_FLAG, offsetof(struct fsck_opts, repair), NULL,
      "mend what can be mended without loss" },
    { 0, "from", BAL_OPT_STRING, offsetof(struct fsck_opts, from), "DIR",
      "with --repair: a model to take lost blocks from" },
    { 0 },
};

/* The two lists are kept until both can be written. */
typedef struct findings {
    bal_cli *cli;
    bal_buf lists[2]; /* problems, expected: JSON members */
    bal_json json[2];
} findings;

static void add(bal_json *json, const bal_problem *problem)
{
    bal_json_object(json);
    bal_json_key(json, "kind");
    bal_json_string(json, problem->kind);
    bal_json_key(json, "what");
    bal_json_string(json, problem->what);
    bal_json_key(json, "detail");
    bal_json_string(json, problem->detail);
    bal_json_close(json);
}

static int found(void *ctx, const bal_problem *problem)
{
    findings *self = ctx;
    bal_out *out = &self->cli->out;

    if (out->json) {
        add(&self->json[problem->expected], problem);
        return 0;
    }
    if (problem->expected)
        return 0;
    bal_progress_clear(&self->cli->progress);
    bal_out_safe(out, problem->kind);
    bal_out_text(out, "  ");
    bal_out_safe(out, problem->what);
    if (problem->detail && problem->detail[0]) {
        bal_out_text(out, "  ");
        bal_out_safe(out, problem->detail);
    }
    bal_out_text(out, "\n");
    return 0;
}

static void numbers(bal_json *json, const bal_fsck_report *report)
{
    bal_json_key(json, "ok");
    bal_json_bool(json, !report->problems);
    bal_json_key(json, "checked");
    bal_json_object(json);
    bal_json_key(json, "commits");
    bal_json_u64(json, report->commits);
    bal_json_key(json, "blocks");
    bal_json_u64(json, report->blocks);
    bal_json_key(json, "bytes");
    bal_json_u64(json, report->bytes);
    bal_json_close(json);
}

static int show_json(findings *self, const bal_fsck_report *report,
                     bal_error *err)
{
    static const char *const keys[] = { "problems", "expected" };
    bal_json json;

    bal_doc_open(&json, &self->cli->out, self->cli->command->name);
    numbers(&json, report);
    for (size_t i = 0; i < 2; i++) {
        bal_json_close(&self->json[i]);
        int rc = bal_json_end(&self->json[i], err);
        if (rc)
            return rc;
        bal_json_key(&json, keys[i]);
        bal_json_raw(&json, bal_buf_string(&self->lists[i]));
    }
    bal_doc_close(&json, &self->cli->out);
    return 0;
}

static int check(findings *self, const struct fsck_opts *given, bal_error *err)
{
    bal_cli *cli = self->cli;
    bal_fsck_report report = { 0 };
    const bal_fsck_options options = {
        .flags = (given->fast ? BAL_FSCK_FAST : 0) |
                 (given->repair ? BAL_FSCK_REPAIR : 0),
        .from = given->from,
    };

    int rc =
        bal_fsck(cli->store, cli->tenant, &options, found, self, &report, err);
    if (rc)
        return rc;
    cli->status = report.problems ? 1 : 0;
    if (cli->out.json)
        return show_json(self, &report, err);
    if (report.healed)
        bal_out_text(&cli->out, "healed %llu block%s\n",
                     (unsigned long long)report.healed,
                     report.healed == 1 ? "" : "s");
    if (!report.problems)
        bal_out_text(&cli->out, "consistent\n");
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct fsck_opts *given = values;
    findings self = { .cli = cli };

    if (given->from && !given->repair)
        return bal_fail(err, BAL_EINVAL, "--from needs --repair");
    int rc =
        given->all ? bal_cli_store(cli, 0, err) : bal_cli_tenant(cli, 0, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < 2; i++) {
        bal_json_begin(&self.json[i], &self.lists[i], 0);
        bal_json_array(&self.json[i]);
    }
    rc = check(&self, given, err);
    bal_buf_done(&self.lists[0]);
    bal_buf_done(&self.lists[1]);
    return rc;
}

const bal_command bal_cmd_fsck = {
    .name = "fsck",
    .synopsis = "[--all] [--fast] [--repair [--from DIR]]",
    .summary = "check the store: every id, every block, every link",
    .about = "Prints 'consistent', or one problem a line: kind, what, detail; "
             "then the exit status is 1. A view that lost an input by forget "
             "or revoke is expected, not a problem. --repair removes bytes "
             "that nothing names and renews rows that do not fit their bytes. "
             "With --from, blocks that are lost are put again from a model "
             "that has what was committed: its own folder, or for what a "
             "delta holds whole, the tuned model's. A difference is in no "
             "folder and is not healed.",
    .examples = "ballast fsck --all\nballast fsck --repair --from ./llama-8b\n",
    .opts = opts,
    .opts_size = sizeof(struct fsck_opts),
    .run = run,
};
