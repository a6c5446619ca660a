/* ballast import-mergekit: a configuration of mergekit as a view. */
#include <unistd.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

#define FILE_MOST ((size_t)1 << 20)

struct import_opts {
    bal_opt_list map;
    const char *ref, *message, *arithmetic, *author;
    bal_opt_u64 stream;
};

static const bal_opt opts[] = {
    { 0, "map", BAL_OPT_LIST, offsetof(struct import_opts, map), "MODEL=SPEC",
      "the commit that a model of the file stands for" },
    { 0, "ref", BAL_OPT_STRING, offsetof(struct import_opts, ref), "REF",
      "the ref to move, main if not told" },
    { 'm', "message", BAL_OPT_STRING, offsetof(struct import_opts, message),
      "MSG", "what is merged and why, the file's name if not told" },
    { 0, "arithmetic", BAL_OPT_ENUM, offsetof(struct import_opts, arithmetic),
      "mergekit|precise",
      "mergekit if not told: each step rounded as it does it" },
    { 0, "mergekit_stream", BAL_OPT_U64, offsetof(struct import_opts, stream),
      "SEED", "draw the numbers that mergekit draws for --random-seed SEED" },
    { 0, "author", BAL_OPT_STRING, offsetof(struct import_opts, author), "A",
      "who made it, if not you" },
    { 0 },
};

/* What the library told. */
typedef struct job {
    bal_cli *cli;
    bal_buf views;  /* JSON members, or lines */
    json_t *unused; /* array of texts */
    char ref[65];   /* of the last view */
} job;

static int keep_view(void *ctx, const bal_commit *commit, const char *ref)
{
    job *self = ctx;

    snprintf(self->ref, sizeof(self->ref), "%s", ref);
    if (self->cli->out.json)
        return 0;
    const char *text = bal_commit_info_of(commit)->recipe;
    BAL_OWN(json_t) recipe = json_loads(text, 0, NULL);
    bal_out *out = &self->cli->out;
    bal_out_id(out, &bal_commit_info_of(commit)->id);
    bal_out_text(out, "  ");
    bal_out_safe(out, json_string_value(json_object_get(recipe, "method")));
    bal_out_text(out, " of %zu inputs  ref ",
                 json_array_size(json_object_get(recipe, "inputs")));
    bal_out_safe(out, ref);
    bal_out_text(out, "\n");
    return 0;
}

static int keep_unused(void *ctx, const char *name)
{
    job *self = ctx;

    return json_array_append_new(self->unused, json_string(name));
}

static void report_json(job *self, const bal_commit *commit)
{
    bal_cli *cli = self->cli;
    bal_json json;
    size_t i;
    json_t *name;

    bal_cli_commit_open(&json, cli, commit, self->ref);
    bal_json_key(&json, "not_used");
    bal_json_array(&json);
    json_array_foreach(self->unused, i, name)
    {
        bal_json_string(&json, json_string_value(name));
    }
    bal_json_close(&json);
    bal_doc_close(&json, &cli->out);
}

/* Said beside the result, which is on stdout. */
static int report_unused(const job *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) line = { 0 };
    size_t i;
    json_t *name;
    int rc = bal_buf_text(&line, "not used:", err);

    json_array_foreach(self->unused, i, name)
    {
        const char *text = json_string_value(name);
        if (!rc)
            rc = bal_buf_text(&line, " ", err);
        if (!rc)
            rc = bal_printable(&line, text, strlen(text), false, err);
    }
    if (!rc)
        rc = bal_buf_text(&line, "\n", err);
    if (rc || self->cli->globals.quiet || !json_array_size(self->unused))
        return rc;
    return bal_write_all(STDERR_FILENO, line.data, line.len, "stderr", err);
}

static int import(job *self, const struct import_opts *given, const char *path,
                  const bal_buf *text, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    BAL_LOCAL(bal_buf) message = { 0 };
    char seed[24];
    const char *base = strrchr(path, '/');
    int rc =
        bal_buf_format(&message, err, "import of %s", base ? base + 1 : path);
    if (rc)
        return rc;

    snprintf(seed, sizeof(seed), "%llu",
             (unsigned long long)given->stream.value);
    const bal_import what = {
        .text = bal_buf_string(text),
        .size = text->len,
        .what = path,
        .map = given->map.items,
        .map_count = given->map.count,
        .arithmetic = given->arithmetic,
        .stream = given->stream.given ? seed : NULL,
        .each = keep_view,
        .not_used = keep_unused,
        .ctx = self,
    };
    const bal_draft draft = {
        .ref = given->ref,
        .message = given->message ? given->message : bal_buf_string(&message),
        .author = given->author,
    };
    rc = bal_import_mergekit(&commit, self->cli->tenant, &what, &draft, err);
    if (rc)
        return rc;
    if (!self->cli->out.json)
        return report_unused(self, err);
    report_json(self, commit);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_OWN(json_t) unused = json_array();
    BAL_LOCAL(bal_buf) text = { 0 };
    job self = { .cli = cli, .unused = unused };
    const char *path = cli->args[0];

    if (!unused)
        return bal_fail_memory(err, "an import");
    int rc = bal_file_slurp(&text, path, FILE_MOST, err);
    if (!rc)
        rc = bal_cli_tenant(cli, 0, err);
    return rc ? rc : import(&self, values, path, &text, err);
}

const bal_command bal_cmd_import_mergekit = {
    .name = "import-mergekit",
    .synopsis = "FILE [--map MODEL=SPEC]... [OPTIONS]",
    .summary = "record a mergekit configuration as a view",
    .about =
        "Every model that the file names is a commit by --map, as the file "
        "writes it: a commit of whole weights. Of MODEL+ADAPTER both "
        "can be mapped, or the two as one. Nothing is computed. The view "
        "resolves to what mergekit 0.1.5 computes, except that of equal "
        "magnitudes at a density's cut the first is kept; --arithmetic precise "
        "rounds once instead.\n\n"
        "Of several documents each that has a name moves the ref of that name, "
        "and others may name it as a model.\n\n"
        "What the file says without effect is listed, a misspelt parameter "
        "refused; and so is what is not done yet, by its name.",
    .examples = "ballast import-mergekit ties.yml --map lab/base=base "
                "--map lab/chat=chat --ref ties\n",
    .arg = "PATH",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct import_opts),
    .run = run,
};
