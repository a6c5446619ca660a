/* ballast import-lora: another trainer's LoRA file as a PEFT adapter. */
#include "cli/commands.h"
#include "core/error.h"

struct import_opts {
    const char *base, *out, *base_model;
    bool force;
};

static const bal_opt opts[] = {
    { 0, "base", BAL_OPT_STRING, offsetof(struct import_opts, base),
      "DIR|FILE|SPEC", "the model it is for, whose modules its names mean",
      BAL_OPT_REQUIRED },
    { 'o', "out", BAL_OPT_STRING, offsetof(struct import_opts, out), "DIR",
      "the folder to write", BAL_OPT_REQUIRED },
    { 0, "base-model", BAL_OPT_STRING, offsetof(struct import_opts, base_model),
      "NAME",
      "what the adapter says it is for, if not what the base is called" },
    { 0, "force", BAL_OPT_FLAG, offsetof(struct import_opts, force), NULL,
      "replace a folder that is there" },
    { 0 },
};

typedef struct job {
    bal_named file, base;
    bal_model *adapter;
} job;

static void job_done(job *self)
{
    bal_named_done(&self->file);
    bal_named_done(&self->base);
    bal_model_free(self->adapter);
}

static int save(job *self, bal_cli *cli, const struct import_opts *given,
                bal_error *err)
{
    const char *avoid[3];
    bal_model *const sources[] = { self->file.model };
    bal_write_options options = {
        .avoid = avoid,
        .sources = sources,
        .source_count = 1,
        .flags = given->force ? BAL_WRITE_FORCE : 0,
    };

    if (cli->store)
        avoid[options.avoid_count++] = bal_store_root(cli->store);
    if (!self->file.is_commit)
        avoid[options.avoid_count++] = self->file.text;
    if (!self->base.is_commit)
        avoid[options.avoid_count++] = self->base.text;
    int rc = bal_model_write(self->adapter, given->out, &options, NULL,
                             cli->work, err);
    if (!rc && self->file.is_commit)
        rc = bal_exported(cli->tenant, &self->file.commit, given->out, err);
    return rc;
}

static void report(bal_cli *cli, const job *self, const char *to)
{
    bal_out *out = &cli->out;
    uint64_t bytes;
    size_t modules = bal_cli_tensors(self->adapter, &bytes) / 2;
    bal_json json;

    if (out->json) {
        bal_doc_open(&json, out, cli->command->name);
        bal_json_key(&json, "out");
        bal_json_string(&json, to);
        bal_json_key(&json, "modules");
        bal_json_u64(&json, modules);
        bal_doc_close(&json, out);
        return;
    }
    bal_out_text(out, "adapter written to ");
    bal_out_safe(out, to);
    bal_out_text(out, ": %zu modules\n", modules);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct import_opts *given = values;
    BAL_LOCAL(job) self = { 0 };
    int rc = given->force ? 0 : bal_cli_vacant(given->out, err);

    if (!rc)
        rc = bal_cli_model(&self.file, cli, cli->args[0], err);
    if (!rc)
        rc = bal_cli_model(&self.base, cli, given->base, err);
    if (!rc)
        rc = bal_cli_work(cli, err);
    if (!rc)
        rc = bal_lora_import(&self.adapter, self.file.model, self.base.model,
                             given->base_model, err);
    if (!rc)
        rc = save(&self, cli, given, err);
    if (rc)
        return rc;
    bal_progress_clear(&cli->progress);
    report(cli, &self, given->out);
    return 0;
}

const bal_command bal_cmd_import_lora = {
    .name = "import-lora",
    .synopsis = "FILE --base BASE -o DIR [OPTIONS]",
    .summary = "write another trainer's LoRA file as a PEFT adapter",
    .about =
        "FILE has the names of kohya's sd-scripts (lora_unet_..._attn_q."
        "lora_down.weight, .alpha), of diffusers and ai-toolkit "
        "(transformer....attn_q.lora_A.weight) or of ComfyUI "
        "(diffusion_model....). Underscores are ambiguous, so each name is "
        "looked up among the base's modules: one that means none of them, or "
        "several, is refused, and nothing is written. A module's scale is "
        "alpha / rank, 1 where there is no alpha.\n\n"
        "The folder is one that PEFT loads, and that commit, apply and merge "
        "take. DoRA, LoHa, LoKr and convolutions of these dialects are refused "
        "by name.",
    .examples = "ballast import-lora ./style.safetensors --base ./flux "
                "-o ./style-lora\n",
    .arg = "FILE",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct import_opts),
    .run = run,
};
