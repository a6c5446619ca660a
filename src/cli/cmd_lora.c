/* ballast lora: what is done to one adapter. */
#include "cli/commands.h"
#include "cli/lora.h"
#include "core/error.h"
#include "core/str.h"

struct lora_opts {
    const char *message, *ref, *dtype, *metadata, *author, *parent;
    bal_opt_u64 rank;
    bal_opt_f64 energy;
};

static const bal_opt opts[] = {
    { 0, "rank", BAL_OPT_U64, offsetof(struct lora_opts, rank), "R",
      "resize: the rank that every module gets, at most its shape's" },
    { 0, "energy", BAL_OPT_DOUBLE, offsetof(struct lora_opts, energy), "F",
      "resize: of each module the least rank that keeps this share, up to 1, "
      "of the sum of squares" },
    { 'm', "message", BAL_OPT_STRING, offsetof(struct lora_opts, message),
      "MSG", "what changed and why; what was done, if not told" },
    { 0, "ref", BAL_OPT_STRING, offsetof(struct lora_opts, ref), "REF",
      "the ref to move, main if not told" },
    { 0, "dtype", BAL_OPT_STRING, offsetof(struct lora_opts, dtype), "DTYPE",
      "of the factors, if not what they have" },
    { 0, "parent", BAL_OPT_STRING, offsetof(struct lora_opts, parent), "SPEC",
      "the commit that the ref must be at, else it is a conflict" },
    { 0, "metadata", BAL_OPT_STRING, offsetof(struct lora_opts, metadata),
      "JSON", "an object of your own, covered by the id" },
    { 0, "author", BAL_OPT_STRING, offsetof(struct lora_opts, author), "A",
      "who made it, if not you" },
    { 0 },
};

/* What a word of the command makes of an adapter: the result, and what it is
 * meant to be. */
typedef struct making {
    bal_cli *cli;
    const struct lora_opts *given;
    bal_model *adapter;
    bal_model *meant, *made;
    bal_buf done; /* "rank 8", for the message */
} making;

static void making_done(making *self)
{
    bal_model_free(self->adapter);
    bal_model_free(self->meant);
    bal_model_free(self->made);
    bal_buf_done(&self->done);
}

static int resize(making *self, bal_error *err)
{
    const struct lora_opts *given = self->given;
    bal_lora_options how = { .dtype = given->dtype };
    int rc = bal_lora_rank(&how, &given->rank, &given->energy, err);

    if (!rc)
        rc = how.rank
                 ? bal_buf_format(&self->done, err, "to rank %llu",
                                  (unsigned long long)how.rank)
                 : bal_buf_format(&self->done, err, "to energy %g", how.energy);
    if (rc)
        return rc;
    self->meant = bal_model_ref(self->adapter);
    return bal_lora_resize(&self->made, self->adapter, &how, self->cli->work,
                           err);
}

static int times(making *self, double factor, bal_error *err)
{
    int rc = bal_buf_format(&self->done, err, "by %g", factor);

    if (!rc)
        rc = bal_lora_scale(&self->meant, self->adapter, factor, "F64", err);
    if (!rc)
        rc = bal_lora_scale(&self->made, self->adapter, factor,
                            self->given->dtype, err);
    return rc;
}

static int scale(making *self, bal_error *err)
{
    double factor = 0;
    int rc = bal_parse_f64(&factor, self->cli->args[2], err);

    return rc ? bal_within(err, rc, "lora scale") : times(self, factor, err);
}

static int negate(making *self, bal_error *err)
{
    return times(self, -1, err);
}

static const struct action {
    const char *word;
    size_t args; /* the word and what is behind it */
    bool ranked; /* takes --rank and --energy */
    int (*make)(making *self, bal_error *err);
} actions[] = {
    { "resize", 2, true, resize },
    { "scale", 3, false, scale },
    { "negate", 2, false, negate },
};

static int find_action(const struct action **out, const char *word,
                       bal_error *err)
{
    bal_nearest nearest;

    bal_nearest_begin(&nearest, word);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        *out = &actions[i];
        if (!strcmp(actions[i].word, word))
            return 0;
        bal_nearest_offer(&nearest, actions[i].word);
    }
    int rc = bal_fail(err, BAL_EINVAL, "lora: no action '%s'", word);
    if (nearest.best[0])
        return bal_hint(err, rc, "did you mean '%s'?", nearest.best);
    return bal_hint(err, rc, "usage: ballast lora %s", bal_cmd_lora.synopsis);
}

static int check_words(const bal_cli *cli, const struct action *action,
                       const struct lora_opts *given, bal_error *err)
{
    int rc = 0;

    if (cli->arg_count < action->args)
        rc = bal_fail(err, BAL_EINVAL, "lora: an argument is missing");
    else if (cli->arg_count > action->args)
        rc = bal_fail(err, BAL_EINVAL, "lora: '%s' is one argument too many",
                      cli->args[action->args]);
    else if (!action->ranked && (given->rank.given || given->energy.given))
        rc = bal_fail(err, BAL_EINVAL,
                      "lora: --rank and --energy are for resize alone");
    return rc ? bal_hint(err, rc, "usage: ballast lora %s",
                         bal_cmd_lora.synopsis)
              : 0;
}

static void report(bal_cli *cli, const bal_commit *commit, const char *ref,
                   const bal_lora_report *made, const bal_commit_report *counts)
{
    bal_out *out = &cli->out;
    bal_json json;

    if (out->json) {
        bal_cli_commit_open(&json, cli, commit, ref);
        bal_lora_report_json(&json, made);
        bal_cli_anchor(&json, counts);
        bal_doc_close(&json, out);
        return;
    }
    bal_out_id(out, &bal_commit_info_of(commit)->id);
    bal_out_text(out, "  ");
    if (counts->nothing_changed)
        bal_out_text(out, "nothing changed");
    else
        bal_lora_report_text(cli, made);
    bal_out_text(out, "  ref ");
    bal_out_safe(out, ref);
    bal_out_text(out, "\n");
    bal_cli_tell_anchor(cli, counts);
}

static int record(making *self, const char *message, bal_error *err)
{
    BAL_OWN(bal_commit) commit = NULL;
    BAL_LOCAL(bal_lora_report) made = { 0 };
    const struct lora_opts *given = self->given;
    bal_cli *cli = self->cli;
    bal_commit_report counts = { 0 };
    bal_id parent;
    bal_draft draft = {
        .ref = given->ref ? given->ref : "main",
        .message = given->message ? given->message : message,
        .author = given->author,
        .metadata = given->metadata,
        .residual = &made.residual,
    };

    if (given->parent) {
        int rc = bal_cli_spec(&parent, cli, given->parent, err);
        if (rc)
            return rc;
        draft.parent = &parent;
    }
    int rc = bal_lora_report_fill(&made, cli, self->meant, self->made, err);
    if (!rc)
        rc = bal_commit_model(&commit, cli->tenant, self->made, &draft, &counts,
                              err);
    if (rc)
        return rc;
    report(cli, commit, draft.ref, &made, &counts);
    return 0;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_LOCAL(making) self = { .cli = cli, .given = values };
    BAL_LOCAL(bal_buf) message = { 0 };
    const struct action *action;
    bal_id id;
    int rc = find_action(&action, cli->args[0], err);
    if (!rc)
        rc = check_words(cli, action, self.given, err);
    if (!rc)
        rc = bal_cli_metadata(self.given->metadata, err);
    if (!rc)
        rc = bal_cli_spec(&id, cli, cli->args[1], err);
    if (!rc)
        rc = bal_model_from_commit(&self.adapter, cli->tenant, &id, err);
    if (!rc)
        rc = action->make(&self, err);
    if (rc)
        return rc;
    rc = bal_buf_format(&message, err, "%s %s %s", action->word, cli->args[1],
                        bal_buf_string(&self.done));
    return rc ? rc : record(&self, bal_buf_string(&message), err);
}

const bal_command bal_cmd_lora = {
    .name = "lora",
    .synopsis = "resize SPEC --rank R|--energy F | scale SPEC F | negate SPEC",
    .summary = "record an adapter of another rank, scaled, or negated",
    .about =
        "resize makes of each module's map the nearest one of lower rank, by "
        "singular values; a map whose own rank is lower is filled up with "
        "zeros, as far as its shape has ranks. scale multiplies an adapter by "
        "a number (a negative one behind '--'), negate by -1; the scale that "
        "the config told goes into B with it, which is rounded once.\n\n"
        "The residual is |made - meant| / |meant| in Frobenius' norm, rounding "
        "to the factors' dtype included, of all modules together and of the "
        "worst one. It is kept in the commit's metadata.",
    .examples = "ballast lora resize support --rank 8 --ref support-r8\n"
                "ballast lora resize support --energy 0.99 --ref small\n"
                "ballast lora scale support 0.5 --ref half\n"
                "ballast lora negate toxic --ref detox\n",
    .words = "resize|scale|negate",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 2,
    .max_args = 3,
    .opts = opts,
    .opts_size = sizeof(struct lora_opts),
    .run = run,
};
