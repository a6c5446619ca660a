/* ballast wdelta: files of deltatensors, both ways. */
#include <stdlib.h>
#include <string.h>

#include "cli/wdelta.h"
#include "core/error.h"

static const bal_opt opts[] = {
    { 0, "base", BAL_OPT_STRING, offsetof(bal_wdelta_opts, base),
      "DIR|FILE|SPEC", "the model that the differences are to" },
    { 'o', "out", BAL_OPT_STRING, offsetof(bal_wdelta_opts, out), "PATH",
      "the file (save) or the folder (load) to write" },
    { 0, "strategy", BAL_OPT_ENUM, offsetof(bal_wdelta_opts, strategy),
      "int4|sparse|quantized|lossless", "how to store differences (int4)" },
    { 0, "outlier-fraction", BAL_OPT_DOUBLE,
      offsetof(bal_wdelta_opts, outlier_fraction), "F",
      "int4: the part of largest differences kept apart (0.01)" },
    { 0, "sparsity", BAL_OPT_DOUBLE, offsetof(bal_wdelta_opts, sparsity), "F",
      "sparse: the part of smallest differences dropped (0.9)" },
    { 0, "max-error", BAL_OPT_DOUBLE, offsetof(bal_wdelta_opts, max_error), "F",
      "for every tensor: error at most F of the difference" },
    { 0, "parent", BAL_OPT_LIST, offsetof(bal_wdelta_opts, parents), "FILE",
      "save: the links before this one, the oldest first" },
    { 0, "quality", BAL_OPT_FLAG, offsetof(bal_wdelta_opts, quality), NULL,
      "save: read it back and tell how near it comes" },
    { 0, "force", BAL_OPT_FLAG, offsetof(bal_wdelta_opts, force), NULL,
      "load: replace a folder that is there" },
    { 0 },
};

int bal_wdelta_files_open(bal_wdelta_files *out, const char *const *paths,
                          size_t count, bal_error *err)
{
    out->at = calloc(count + 1, sizeof(bal_wdelta *));
    if (!out->at)
        return bal_fail_memory(err, "opening files");
    for (size_t i = 0; i < count; i++) {
        int rc = bal_wdelta_open(&out->at[i], paths[i], err);
        if (rc)
            return rc;
        out->count++;
    }
    return 0;
}

void bal_wdelta_files_done(bal_wdelta_files *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_wdelta_free(self->at[i]);
    free(self->at);
}

/* ---- load, verify ------------------------------------------------------- */

/* Files and base, looked through. */
typedef struct loaded {
    bal_wdelta_files files;
    bal_named base;
    const char **how;
} loaded;

static void loaded_done(loaded *self)
{
    bal_wdelta_files_done(&self->files);
    bal_named_done(&self->base);
    free(self->how);
}

static int look_through(loaded *out, bal_cli *cli, const char *base,
                        bal_error *err)
{
    size_t count = cli->arg_count - 1;

    out->how = calloc(count + 1, sizeof(*out->how));
    if (!out->how)
        return bal_fail_memory(err, "opening files");
    int rc = bal_cli_work(cli, err);
    if (!rc)
        rc = bal_wdelta_files_open(&out->files, cli->args + 1, count, err);
    if (!rc)
        rc = bal_cli_model(&out->base, cli, base, err);
    if (!rc)
        rc = bal_wdelta_verify(out->files.at, count, out->base.model, cli->work,
                               out->how, err);
    return rc;
}

static void report_load(bal_cli *cli, const char *to, const bal_written *done)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "%llu tensors -> ",
                     (unsigned long long)done->tensors);
        bal_out_safe(out, to);
        bal_out_text(out, "\n");
        return;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "out");
    bal_json_string(&json, to);
    bal_json_key(&json, "tensors");
    bal_json_u64(&json, done->tensors);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, done->bytes);
    bal_doc_close(&json, out);
}

static int load(bal_cli *cli, const bal_wdelta_opts *given, bal_error *err)
{
    BAL_LOCAL(loaded) self = { 0 };
    BAL_OWN(bal_model) model = NULL;
    bal_written written = { 0 };
    int rc = given->force ? 0 : bal_cli_vacant(given->out, err);
    if (!rc)
        rc = look_through(&self, cli, given->base, err);
    if (!rc)
        rc = bal_model_from_wdelta(&model, self.base.model, self.files.at,
                                   self.files.count, err);
    if (rc)
        return rc;
    const bal_write_options options = {
        .avoid = &self.base.text,
        .avoid_count = self.base.is_commit ? 0 : 1,
        .sources = &self.base.model,
        .source_count = 1,
        .flags = given->force ? BAL_WRITE_FORCE : 0,
    };
    rc = bal_model_write(model, given->out, &options, &written, cli->work, err);
    if (rc)
        return rc;
    report_load(cli, given->out, &written);
    return 0;
}

static void report_verify(bal_cli *cli, const loaded *self)
{
    bal_out *out = &cli->out;
    bal_wdelta_info info;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "verified: %zu %s on ", self->files.count,
                     self->files.count == 1 ? "file" : "files");
        bal_out_safe(out, self->base.text);
        bal_out_text(out, "\n");
        return;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "verified");
    bal_json_bool(&json, true);
    bal_json_key(&json, "files");
    bal_json_array(&json);
    for (size_t i = 0; i < self->files.count; i++) {
        bal_wdelta_info_get(&info, self->files.at[i]);
        bal_json_object(&json);
        bal_json_key(&json, "path");
        bal_json_string(&json, info.path);
        bal_json_key(&json, "parent_hash");
        bal_json_string(&json, info.parent_hash);
        bal_json_key(&json, "hashed");
        bal_json_string(&json, self->how[i]);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    bal_doc_close(&json, out);
}

static int verify(bal_cli *cli, const bal_wdelta_opts *given, bal_error *err)
{
    BAL_LOCAL(loaded) self = { 0 };
    int rc = look_through(&self, cli, given->base, err);
    if (rc)
        return rc;

    report_verify(cli, &self);
    return 0;
}

/* ---- which ------------------------------------------------------------- */

enum { NEEDS_BASE = 1, NEEDS_OUT = 2, ONE_ARG = 4 };

static const struct {
    const char *word;
    unsigned needs;
    int (*run)(bal_cli *cli, const bal_wdelta_opts *given, bal_error *err);
} actions[] = {
    { "save", NEEDS_BASE | NEEDS_OUT | ONE_ARG, bal_cli_wdelta_save },
    { "load", NEEDS_BASE | NEEDS_OUT, load },
    { "inspect", 0, bal_cli_wdelta_inspect },
    { "verify", NEEDS_BASE, verify },
};

static int check_words(const bal_cli *cli, const bal_wdelta_opts *given,
                       size_t i, bal_error *err)
{
    unsigned needs = actions[i].needs;
    const char *word = actions[i].word;
    int rc = 0;

    if (cli->arg_count < 2)
        rc = bal_fail(err, BAL_EINVAL, "wdelta %s: an argument is missing",
                      word);
    else if (needs & ONE_ARG && cli->arg_count > 2)
        rc = bal_fail(err, BAL_EINVAL,
                      "wdelta %s: '%s' is one argument too many", word,
                      cli->args[2]);
    else if (needs & NEEDS_BASE && !given->base)
        rc = bal_fail(err, BAL_EINVAL, "wdelta %s: '--base' is missing", word);
    else if (needs & NEEDS_OUT && !given->out)
        rc = bal_fail(err, BAL_EINVAL, "wdelta %s: '-o' is missing", word);
    else if (!(needs & NEEDS_OUT) && given->out)
        rc = bal_fail(err, BAL_EINVAL, "wdelta %s writes nothing: no '-o'",
                      word);
    return rc ? bal_hint(err, rc, "usage: ballast wdelta %s",
                         bal_cmd_wdelta.synopsis)
              : 0;
}

static int unknown(const char *word, bal_error *err)
{
    bal_nearest nearest;
    int rc = bal_fail(err, BAL_EINVAL, "wdelta: no action '%s'", word);

    bal_nearest_begin(&nearest, word);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        bal_nearest_offer(&nearest, actions[i].word);
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "usage: ballast wdelta %s",
                    bal_cmd_wdelta.synopsis);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const char *word = cli->args[0];

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].word, word) != 0)
            continue;
        int rc = check_words(cli, values, i, err);
        return rc ? rc : actions[i].run(cli, values, err);
    }
    return unknown(word, err);
}

const bal_command bal_cmd_wdelta = {
    .name = "wdelta",
    .synopsis = "save TUNED | load FILE... | inspect FILE... | verify FILE... "
                "[OPTIONS]",
    .summary = "write and read the .wdelta files of deltatensors",
    .about =
        "save writes TUNED's difference to BASE as a file that deltatensors "
        "0.2.0 reads: int4, sparse and quantized lose a little, and --quality "
        "tells how much; lossless, which is read by ballast alone, loses "
        "nothing. With --max-error each tensor is stored in the smallest way "
        "that keeps the limit. With --parent the file is the next link of a "
        "chain.\n\n"
        "load writes the model that BASE and the files give, the oldest file "
        "first, in BASE's dtypes, each value rounded once. Before that it "
        "checks what verify does: that the files are as they were written, "
        "that BASE is the model they were made against, and that each link "
        "fits the ones before it. inspect reads what a file tells of itself. "
        "save, load and verify need --base; save and load need -o.",
    .examples = "ballast wdelta save ./support-ft --base ./llama-8b -o "
                "support.wdelta --quality\n"
                "ballast wdelta load support.wdelta --base ./llama-8b -o "
                "./support\n",
    .words = "save|load|inspect|verify",
    .arg = "FILE",
    .min_args = 1,
    .max_args = BAL_ANY_ARGS,
    .opts = opts,
    .opts_size = sizeof(bal_wdelta_opts),
    .run = run,
};
