/* ballast log: from a commit back along its parents. */
#include "cli/commands.h"
#include "core/error.h"

struct log_opts {
    bal_opt_u64 count;
    bool reverse, graph;
};

static const bal_opt opts[] = {
    { 'n', "max-count", BAL_OPT_U64, offsetof(struct log_opts, count), "N",
      "at most so many" },
    { 0, "reverse", BAL_OPT_FLAG, offsetof(struct log_opts, reverse), NULL,
      "the oldest of them first" },
    { 0, "graph", BAL_OPT_FLAG, offsetof(struct log_opts, graph), NULL,
      "draw the line of parents, and what views were made of" },
    { 0 },
};

/* The inputs of a view, one a line. */
static void show_inputs(bal_out *out, const bal_commit_info *info)
{
    BAL_OWN(json_t) recipe = NULL;
    size_t i;
    json_t *input;

    if (!info->recipe || bal_json_parse(&recipe, info->recipe,
                                        strlen(info->recipe), "recipe", NULL))
        return;
    json_array_foreach(json_object_get(recipe, "inputs"), i, input)
    {
        bal_out_text(out, "%s   ", info->has_parent ? "|" : " ");
        bal_cli_input(out, input);
        bal_out_text(out, "\n");
    }
}

static void show(bal_cli *cli, const bal_commit *commit, bool graph)
{
    const bal_commit_info *info = bal_commit_info_of(commit);
    bal_out *out = &cli->out;
    bal_json json;

    if (out->json) {
        bal_line_open(&json, out, cli->command->name);
        bal_json_members(&json, bal_commit_json(commit));
        bal_doc_close(&json, out);
        return;
    }
    if (graph)
        bal_out_text(out, "* ");
    bal_out_id(out, &info->id);
    bal_out_text(out, "  ");
    bal_out_paint(out, BAL_PAINT_KIND, info->kind);
    bal_out_text(out, "  ");
    bal_out_subject(out, info->message);
    bal_out_text(out, "\n");
    if (graph)
        show_inputs(out, info);
}

/* Entries are shown as they come, or held until the last one came. */
typedef struct history {
    bal_cli *cli;
    const struct log_opts *given;
    bal_buf starts; /* size_t: where each entry held begins */
    int rc;
    bal_error err;
} history;

static int next(void *ctx, const bal_commit *commit)
{
    history *self = ctx;
    size_t start = self->cli->out.buf.len;

    if (self->given->reverse)
        self->rc =
            bal_buf_append(&self->starts, &start, sizeof(start), &self->err);
    if (!self->rc)
        show(self->cli, commit, self->given->graph);
    return self->rc || bal_out_stopped(&self->cli->out);
}

/* What was held, the last entry first. */
static void release(bal_out *out, const bal_buf *starts)
{
    BAL_LOCAL(bal_buf) held = out->buf;
    size_t end = held.len;

    out->buf = (bal_buf){ 0 };
    out->held = false;
    for (size_t left = starts->len; left; left -= sizeof(size_t)) {
        size_t start;
        memcpy(&start, starts->data + left - sizeof(size_t), sizeof(start));
        bal_out_again(out, held.data + start, end - start);
        end = start;
    }
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct log_opts *given = values;
    history self = { .cli = cli, .given = given };
    bal_id from;

    if (given->reverse && given->graph)
        return bal_fail(err, BAL_EINVAL, "--reverse or --graph, not both");
    int rc =
        bal_cli_spec(&from, cli, cli->arg_count ? cli->args[0] : "main", err);
    if (rc || (given->count.given && !given->count.value))
        return rc;
    bal_out_page(&cli->out);
    cli->out.held = given->reverse;
    rc = bal_log(cli->tenant, &from, given->count.value, next, &self, err);
    if (given->reverse)
        release(&cli->out, &self.starts);
    bal_buf_done(&self.starts);
    if (!rc && self.rc) {
        *err = self.err;
        rc = self.rc;
    }
    return rc;
}

const bal_command bal_cmd_log = {
    .name = "log",
    .synopsis = "[SPEC] [-n N] [--reverse] [--graph]",
    .summary = "show history, the newest commit first",
    .about = "From SPEC (main if not told) back along parents: id, kind and "
             "the first line of the message. With --json one object a line.",
    .examples = "ballast log support -n 20\nballast log --graph blend\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct log_opts),
    .run = run,
};
