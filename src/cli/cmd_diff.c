/* ballast diff: what changed from one model to another, in weights and in what
 * it answers. */
#include <math.h>
#include <string.h>

#include "cli/based.h"
#include "cli/commands.h"
#include "cli/diff_words.h"
#include "cli/plot.h"
#include "core/error.h"

struct diff_opts {
    const char *probe_set, *against_base, *plot;
    bal_opt_f64 threshold;
    bool exit_code, stat, layers, modules, probes;
};

static const bal_opt opts[] = {
    { 0, "probe-set", BAL_OPT_STRING, offsetof(struct diff_opts, probe_set),
      "ID", "the probes to compare answers to" },
    { 0, "against-base", BAL_OPT_STRING,
      offsetof(struct diff_opts, against_base), "DIR|FILE|SPEC",
      "put deltas and adapters onto this model and compare what comes of "
      "it; with A alone, compare that with the base" },
    { 0, "threshold", BAL_OPT_DOUBLE, offsetof(struct diff_opts, threshold),
      "F",
      "relative change above which some probe should move, 0.01 if not "
      "told" },
    { 0, "exit-code", BAL_OPT_FLAG, offsetof(struct diff_opts, exit_code), NULL,
      "exit status 1 if anything differs" },
    { 0, "stat", BAL_OPT_FLAG, offsetof(struct diff_opts, stat), NULL,
      "a line for each tensor that changed" },
    { 0, "layers", BAL_OPT_FLAG, offsetof(struct diff_opts, layers), NULL,
      "a line for each layer" },
    { 0, "modules", BAL_OPT_FLAG, offsetof(struct diff_opts, modules), NULL,
      "a line for each kind of module" },
    { 0, "probes", BAL_OPT_FLAG, offsetof(struct diff_opts, probes), NULL,
      "each probe, before and after side by side" },
    { 0, "plot", BAL_OPT_STRING, offsetof(struct diff_opts, plot), "FILE.svg",
      "draw layers by modules, and how far answers are apart" },
    { 0 },
};

typedef struct comparison {
    bal_cli *cli;
    const struct diff_opts *given;
    bal_named a, b;
    bal_diff_whole whole;
} comparison;

static void comparison_done(comparison *self)
{
    bal_named_done(&self->a);
    bal_named_done(&self->b);
    bal_diff_whole_done(&self->whole);
}

/* ---- telling ------------------------------------------------------------ */

static void text_name(bal_out *out, const bal_named *named)
{
    if (named->is_commit)
        bal_out_id(out, &named->commit);
    else
        bal_out_safe(out, named->text);
}

static void text(const comparison *self)
{
    const struct diff_opts *given = self->given;
    const bal_diff_weights *weights = &self->whole.weights;
    const bal_diff_answers *answers = &self->whole.answers;
    bal_out *out = &self->cli->out;

    text_name(out, &self->a);
    bal_out_text(out, " -> ");
    text_name(out, &self->b);
    bal_out_text(out, "\n");
    bal_diff_weights_text(out, weights);
    bal_diff_answers_text(out, answers, bal_diff_whole_moved(&self->whole),
                          weights->differing > 0);
    if (given->stat)
        bal_diff_weights_stat(out, weights);
    if (given->layers)
        bal_diff_groups_text(out, &weights->layers, "by layer");
    if (given->modules)
        bal_diff_groups_text(out, &weights->modules, "by kind of module");
    bal_diff_maps_text(out, &self->whole.maps, given->stat);
    if (given->probes)
        bal_diff_answers_table(out, answers);
}

static bal_diff_options options_of(const comparison *self)
{
    const struct diff_opts *given = self->given;

    return (bal_diff_options){
        .names = { self->a.text, self->b.text },
        .commits = { self->a.is_commit ? &self->a.commit : NULL,
                     self->b.is_commit ? &self->b.commit : NULL },
        .tenant = self->cli->tenant,
        .probe_set = given->probe_set,
        .threshold = given->threshold.given ? &given->threshold.value : NULL,
        .flags = given->probes ? BAL_DIFF_PROBES : 0,
        .work = self->cli->work,
    };
}

static void document(const comparison *self)
{
    const bal_diff_options options = options_of(self);
    bal_out *out = &self->cli->out;
    bal_json json;

    bal_doc_open(&json, out, self->cli->command->name);
    bal_diff_whole_json(&json, &self->whole, &options);
    bal_doc_close(&json, out);
}

/* ---- drawing ------------------------------------------------------------ */

/* What a commit or folder is called in the picture. */
static int title(bal_buf *to, const bal_named *named, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    if (!named->is_commit)
        return bal_buf_text(to, named->text, err);
    bal_id_hex(hex, &named->commit);
    return bal_buf_format(to, err, "%s (%.12s)", named->text, hex);
}

static int plot_rows(bal_buf *to, const bal_diff_weights *weights,
                     bal_error *err)
{
    const bal_diff_entry *entry = bal_diff_weights_at(weights, 0);
    int rc = 0;

    for (size_t i = 0; entry && !rc;
         entry = bal_diff_weights_at(weights, ++i)) {
        bal_plot_row row = {
            .name = entry->name,
            .change = entry->change,
            .relative = entry->relative,
        };
        /* Of what changed and has no number that says so. */
        if (entry->change == BAL_CHANGED && !(entry->relative > 0))
            row.relative = (double)INFINITY;
        rc = bal_buf_append(to, &row, sizeof(row), err);
    }
    return rc;
}

/* A name that says what it is: nothing else is written over by mistake. */
static int check_plot(const char *path, bal_error *err)
{
    size_t len = strlen(path);

    if (len > 4 && !strcmp(path + len - 4, ".svg"))
        return 0;
    return bal_fail(err, BAL_EINVAL, "--plot: '%.200s' does not end in .svg",
                    path);
}

static int draw(const comparison *self, bal_error *err)
{
    const bal_diff_answers *answers = &self->whole.answers;
    BAL_LOCAL(bal_buf) rows = { 0 };
    BAL_LOCAL(bal_buf) a = { 0 };
    BAL_LOCAL(bal_buf) b = { 0 };
    int rc = title(&a, &self->a, err);

    if (!rc)
        rc = title(&b, &self->b, err);
    if (!rc)
        rc = plot_rows(&rows, &self->whole.weights, err);
    if (rc)
        return rc;
    const bal_plot plot = {
        .a = bal_buf_string(&a),
        .b = bal_buf_string(&b),
        .rows = (const void *)rows.data,
        .count = rows.len / sizeof(bal_plot_row),
        .klds = (const void *)answers->klds.data,
        .kld_count = answers->klds.len / sizeof(double),
        .mean = answers->sums.kld,
        .p99 = answers->sums.kld_p99,
        .noise = answers->sums.kld_noise,
    };
    return bal_plot_write(self->given->plot, &plot, err);
}

/* ---- comparing ---------------------------------------------------------- */

static int compare(comparison *self, bal_error *err)
{
    const bal_diff_options options = options_of(self);
    int rc = bal_diff_whole_fill(&self->whole, self->a.model, self->b.model,
                                 &options, err);
    bool both = options.commits[0] && options.commits[1];

    if (rc != BAL_EINVAL || err->hint[0] || (options.probe_set && !both))
        return rc;
    return bal_hint(err, rc,
                    "--against-base BASE compares what they make of a base; "
                    "'./NAME' is the folder, NAME the ref");
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct diff_opts *given = values;
    BAL_LOCAL(comparison)
    both = {
        .cli = cli,
        .given = given,
    };

    int rc = given->plot ? check_plot(given->plot, err) : 0;
    if (rc)
        return rc;
    rc = bal_cli_both(&both.a, &both.b, cli, given->against_base, err);
    if (!rc)
        rc = bal_cli_work(cli, err);
    if (!rc)
        rc = compare(&both, err);
    if (!rc && given->plot)
        rc = draw(&both, err);
    if (rc)
        return rc;
    cli->status = given->exit_code && both.whole.weights.differing ? 1 : 0;
    bal_progress_clear(&cli->progress);
    bal_out_page(&cli->out);
    if (cli->out.json)
        document(&both);
    else
        text(&both);
    return 0;
}

const bal_command bal_cmd_diff = {
    .name = "diff",
    .synopsis = "A [B] [OPTIONS]",
    .summary = "compare two models, in weights and in what they answer",
    .about =
        "A and B are commits, folders or safetensors files; a folder that "
        "has the name of a ref is meant by './NAME'. The relative change "
        "is |b - a| / |a|, in 2-norms; a tensor that one of two "
        "deltas lacks counts as zero there. Side files are not compared. With "
        "--against-base the change is that of the weights, and a delta can be "
        "compared with an adapter or a whole model.\n\n"
        "Two commits that answered the same probes on the same terms ('ballast "
        "fingerprint') are compared by their answers, too: how many moved, how "
        "far, and, where log-probabilities were recorded, the KL divergence of "
        "the first model's from the second's. Weights that changed by more "
        "than the threshold while neither answers nor log-probabilities "
        "noticed are an UNOBSERVED CHANGE: other probes are needed.\n\n"
        "Two adapters are compared as maps, too, for factors may differ "
        "where the maps do not: norms, the cosine between the maps, and "
        "how their column and row spaces lie to each other (the mean of "
        "the squared cosines of the principal angles, 1 where one space "
        "lies in the other; with --stat the largest angle).",
    .examples = "ballast diff main~1 main\n"
                "ballast diff support ./support-ft --exit-code --stat\n"
                "ballast diff support --against-base ./llama-8b\n"
                "ballast diff main~1 main --probes --plot change.svg\n",
    .arg = "MODEL",
    .min_args = 1,
    .max_args = 2,
    .opts = opts,
    .opts_size = sizeof(struct diff_opts),
    .run = run,
};
