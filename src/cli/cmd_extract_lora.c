/* ballast extract-lora: a fine-tune as the nearest adapter. */
#include "cli/commands.h"
#include "cli/lora.h"
#include "core/error.h"

struct extract_opts {
    const char *base, *out, *dtype, *base_model;
    bal_opt_u64 rank, seed;
    bal_opt_f64 energy;
    bal_opt_list target;
    bool force;
};

static const bal_opt opts[] = {
    { 0, "base", BAL_OPT_STRING, offsetof(struct extract_opts, base),
      "DIR|FILE|SPEC", "the model it was made from; a delta needs none" },
    { 0, "rank", BAL_OPT_U64, offsetof(struct extract_opts, rank), "R",
      "the rank that every module gets, at most its shape's" },
    { 0, "energy", BAL_OPT_DOUBLE, offsetof(struct extract_opts, energy), "F",
      "of each module the least rank that keeps this share, up to 1, of the "
      "sum of squares" },
    { 'o', "out", BAL_OPT_STRING, offsetof(struct extract_opts, out), "DIR",
      "the folder to write", BAL_OPT_REQUIRED },
    { 0, "target", BAL_OPT_LIST, offsetof(struct extract_opts, target), "NAME",
      "only modules of this name, q_proj or a longer end of a path; may be "
      "given again" },
    { 0, "dtype", BAL_OPT_STRING, offsetof(struct extract_opts, dtype), "DTYPE",
      "of the factors, F32 if not told" },
    { 0, "seed", BAL_OPT_U64, offsetof(struct extract_opts, seed), "N",
      "of the numbers that the search begins with, 0 if not told" },
    { 0, "base-model", BAL_OPT_STRING,
      offsetof(struct extract_opts, base_model), "NAME",
      "what the adapter says it is for, if not what the base is called" },
    { 0, "force", BAL_OPT_FLAG, offsetof(struct extract_opts, force), NULL,
      "replace a folder that is there" },
    { 0 },
};

typedef struct job {
    bal_cli *cli;
    const struct extract_opts *given;
    bal_named tuned, base;
    bal_model *delta;
    bal_model *written;
    bal_lora_report report;
} job;

static void job_done(job *self)
{
    bal_named_done(&self->tuned);
    bal_named_done(&self->base);
    bal_model_free(self->delta);
    bal_model_free(self->written);
    bal_lora_report_done(&self->report);
}

static int find_delta(job *self, bal_error *err)
{
    bal_cli *cli = self->cli;
    int rc = bal_cli_model(&self->tuned, cli, cli->args[0], err);
    if (!rc)
        rc = bal_cli_work(cli, err);
    if (rc)
        return rc;

    bool delta = bal_model_facts(self->tuned.model)->kind == BAL_KIND_DELTA;
    if (delta && self->given->base)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' is a delta, and is taken without --base",
                        self->tuned.text);
    if (delta) {
        self->delta = bal_model_ref(self->tuned.model);
        return 0;
    }
    if (!self->given->base)
        return bal_hint(
            err,
            bal_fail(err, BAL_EINVAL, "'%s' needs its base", self->tuned.text),
            "--base SPEC|DIR");
    rc = bal_cli_model(&self->base, cli, self->given->base, err);
    return rc ? rc
              : bal_model_minus(&self->delta, self->tuned.model,
                                self->base.model, cli->work, err);
}

/* What a commit holds is in the folder, and so noted. */
static int save(job *self, bal_model *adapter, bal_error *err)
{
    bal_cli *cli = self->cli;
    const struct extract_opts *given = self->given;
    const char *avoid[3];
    bal_model *const sources[] = { self->tuned.model };
    bal_write_options options = {
        .avoid = avoid,
        .sources = sources,
        .source_count = 1,
        .flags = given->force ? BAL_WRITE_FORCE : 0,
    };

    if (cli->store)
        avoid[options.avoid_count++] = bal_store_root(cli->store);
    if (!self->tuned.is_commit)
        avoid[options.avoid_count++] = self->tuned.text;
    if (self->base.model && !self->base.is_commit)
        avoid[options.avoid_count++] = self->base.text;
    int rc =
        bal_model_write(adapter, given->out, &options, NULL, cli->work, err);
    if (!rc && self->tuned.is_commit)
        rc = bal_exported(cli->tenant, &self->tuned.commit, given->out, err);
    return rc ? rc : bal_model_from_path(&self->written, given->out, err);
}

static int make(job *self, bal_error *err)
{
    const struct extract_opts *given = self->given;
    BAL_OWN(bal_model) adapter = NULL;
    bal_extract_options options = {
        .lora.dtype = given->dtype,
        .seed = given->seed.value,
        .targets = given->target.items,
        .target_count = given->target.count,
        .base_model = given->base_model,
    };
    int rc = bal_lora_rank(&options.lora, &given->rank, &given->energy, err);

    if (!rc)
        rc = find_delta(self, err);
    if (!rc)
        rc = bal_lora_extract(&adapter, self->delta, &options, self->cli->work,
                              err);
    return rc ? rc : save(self, adapter, err);
}

static void report_json(job *self)
{
    bal_json json;

    bal_doc_open(&json, &self->cli->out, self->cli->command->name);
    bal_json_key(&json, "out");
    bal_json_string(&json, self->given->out);
    bal_lora_extract_json(&json, &self->report);
    bal_doc_close(&json, &self->cli->out);
}

static void report(job *self)
{
    bal_out *out = &self->cli->out;

    if (out->json) {
        report_json(self);
        return;
    }
    bal_out_text(out, "adapter written to ");
    bal_out_safe(out, self->given->out);
    bal_out_text(out, ": ");
    bal_lora_report_text(self->cli, &self->report);
    bal_out_text(out, "\n");
    bal_lora_left_text(out, &self->report);
}

/* Partly done: something changed that the adapter does not have, and nobody
 * asked for just some modules. */
enum { PARTLY = 4 };

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_LOCAL(job) self = { .cli = cli, .given = values };
    int rc = self.given->force ? 0 : bal_cli_vacant(self.given->out, err);

    if (!rc)
        rc = make(&self, err);
    if (!rc)
        rc = bal_lora_report_distance(&self.report, cli, self.delta,
                                      self.written, err);
    if (rc)
        return rc;
    bal_progress_clear(&cli->progress);
    report(&self);
    if (bal_lora_left(&self.report) && !self.given->target.count)
        cli->status = PARTLY;
    return 0;
}

const bal_command bal_cmd_extract_lora = {
    .name = "extract-lora",
    .synopsis = "TUNED --base BASE --rank R|--energy F -o DIR [OPTIONS]",
    .summary = "write a fine-tune as the nearest adapter",
    .about =
        "TUNED is a folder, a safetensors file or a commit; one that is a "
        "delta is taken as it is. Each weight matrix of a linear module that "
        "changed becomes the nearest map of the rank that is asked for, found "
        "by a randomised search that is the same for the same seed, to about "
        "1e-6 of what is left out. The folder is one that PEFT loads.\n\n"
        "The residual is |adapter - change| / |change| in Frobenius' norm, for "
        "each module, all together and the worst one. What changed and is not "
        "in the adapter (norms, biases, embeddings, what --target leaves out) "
        "is named and not in that sum; without --target it makes the exit "
        "status 4.",
    .examples = "ballast extract-lora ./support-ft --base ./llama-8b --rank 32 "
                "-o ./support-lora\n"
                "ballast extract-lora support-delta --energy 0.95 --target "
                "q_proj --target v_proj -o ./lora\n",
    .arg = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct extract_opts),
    .run = run,
};
