/* ballast commit: a model as it is. */
#include <string.h>

#include "cli/commands.h"
#include "core/error.h"

struct commit_opts {
    const char *message, *ref, *base_model, *metadata, *author;
    const char *parent, *base, *kind;
    bool allow_empty;
};

static const bal_opt opts[] = {
    { 'm', "message", BAL_OPT_STRING, offsetof(struct commit_opts, message),
      "MSG", "what changed and why", BAL_OPT_REQUIRED },
    { 0, "ref", BAL_OPT_STRING, offsetof(struct commit_opts, ref), "REF",
      "the ref to move, main if not told" },
    { 0, "base-model", BAL_OPT_STRING, offsetof(struct commit_opts, base_model),
      "NAME", "what it was made from, if the model does not tell" },
    { 0, "metadata", BAL_OPT_STRING, offsetof(struct commit_opts, metadata),
      "JSON", "an object of your own, covered by the id" },
    { 0, "author", BAL_OPT_STRING, offsetof(struct commit_opts, author), "A",
      "who made it, if not you" },
    { 0, "parent", BAL_OPT_STRING, offsetof(struct commit_opts, parent), "SPEC",
      "the commit that the ref must be at, else it is a conflict" },
    { 0, "base", BAL_OPT_STRING, offsetof(struct commit_opts, base), "SPEC|DIR",
      "with --kind delta what is subtracted, else recorded as the base "
      "model's name, and a commit is what it is stored by the distance from" },
    { 0, "kind", BAL_OPT_ENUM, offsetof(struct commit_opts, kind),
      "adapter|delta|weights",
      "what the model must be; delta: commit its difference to --base" },
    { 0, "allow-empty", BAL_OPT_FLAG, offsetof(struct commit_opts, allow_empty),
      NULL, "commit even if nothing changed" },
    { 0 },
};

/* The model to commit: what was named, or its difference to the base. */
static int choose(bal_model **out, bal_cli *cli, const bal_named *named,
                  const bal_named *base, const struct commit_opts *given,
                  bal_error *err)
{
    const char *kind = bal_kind_name(bal_model_facts(named->model)->kind);

    if (!given->kind || !strcmp(given->kind, kind)) {
        *out = bal_model_ref(named->model);
        return 0;
    }
    if (strcmp(given->kind, "delta") != 0) {
        return bal_fail(err, BAL_EINVAL, "'%s' is a model of kind %s, not %s",
                        named->text, kind, given->kind);
    }
    if (!base->model) {
        int rc = bal_fail(err, BAL_EINVAL, "--kind delta needs --base");
        return bal_hint(err, rc, "what is to be subtracted from '%s'",
                        named->text);
    }
    int rc = bal_cli_work(cli, err);
    if (rc)
        return rc;
    return bal_model_minus(out, named->model, base->model, cli->work, err);
}

static void report_json(bal_cli *cli, const bal_commit *commit, const char *ref,
                        const bal_commit_report *report)
{
    bal_json json;

    bal_cli_commit_open(&json, cli, commit, ref);
    bal_json_key(&json, "tensors");
    bal_json_u64(&json, report->tensors);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, report->bytes);
    bal_json_key(&json, "stored_bytes");
    bal_json_u64(&json, report->stored_bytes);
    bal_json_key(&json, "new_blocks");
    bal_json_u64(&json, report->new_blocks);
    bal_json_key(&json, "reused_blocks");
    bal_json_u64(&json, report->reused_blocks);
    bal_cli_anchor(&json, report);
    bal_doc_close(&json, &cli->out);
}

static void report_text(bal_cli *cli, const bal_commit *commit, const char *ref,
                        const bal_commit_report *report)
{
    bal_out *out = &cli->out;

    bal_out_id(out, &bal_commit_info_of(commit)->id);
    if (report->nothing_changed)
        bal_out_text(out, "  nothing changed  ref ");
    else
        bal_out_text(out, "  %llu tensors  ref ",
                     (unsigned long long)report->tensors);
    bal_out_safe(out, ref);
    bal_out_text(out, "\n");
}

static int commit(bal_cli *cli, bal_model *model, const bal_draft *draft,
                  bal_error *err)
{
    BAL_OWN(bal_commit) made = NULL;
    bal_commit_report report = { 0 };

    int rc = bal_commit_model(&made, cli->tenant, model, draft, &report, err);
    if (rc)
        return rc;
    if (cli->out.json)
        report_json(cli, made, draft->ref, &report);
    else
        report_text(cli, made, draft->ref, &report);
    if (!cli->out.json)
        bal_cli_tell_anchor(cli, &report);
    return 0;
}

/* A .wdelta that is being committed: it outlives the model. */
typedef struct delta_file {
    bal_wdelta *wdelta;
} delta_file;

static void delta_file_done(delta_file *self)
{
    bal_wdelta_free(self->wdelta);
}

static bool is_wdelta(const char *path)
{
    static const char ending[] = ".wdelta";
    size_t len = strlen(path);

    return len > sizeof(ending) - 1 &&
           !strcmp(path + len - (sizeof(ending) - 1), ending);
}

/* What is at the path; a .wdelta as the model that it makes of the base. */
static int open_named(bal_named *named, bal_cli *cli, delta_file *file,
                      const bal_named *base, bal_error *err)
{
    if (!is_wdelta(named->text))
        return bal_model_from_path(&named->model, named->text, err);
    if (!base->model)
        return bal_hint(
            err, bal_fail(err, BAL_EINVAL, "'%s' needs its base", named->text),
            "--base SPEC|DIR");
    int rc = bal_cli_work(cli, err);
    if (!rc)
        rc = bal_wdelta_open(&file->wdelta, named->text, err);
    if (!rc)
        rc = bal_wdelta_verify(&file->wdelta, 1, base->model, cli->work, NULL,
                               err);
    return rc ? rc
              : bal_model_from_wdelta(&named->model, base->model, &file->wdelta,
                                      1, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct commit_opts *given = values;
    BAL_LOCAL(bal_named) named = { 0 };
    BAL_LOCAL(bal_named) base = { 0 };
    BAL_LOCAL(delta_file) file = { 0 };
    BAL_OWN(bal_model) model = NULL;
    bal_id parent;
    bal_draft draft = {
        .ref = given->ref ? given->ref : "main",
        .message = given->message,
        .author = given->author,
        .base_model = given->base_model,
        .metadata = given->metadata,
        .flags = given->allow_empty ? BAL_DRAFT_ALLOW_EMPTY : 0,
    };

    int rc = bal_cli_metadata(given->metadata, err);
    if (rc)
        return rc;
    if (given->base) {
        rc = bal_cli_model(&base, cli, given->base, err);
        if (rc)
            return rc;
    }
    named.text = cli->args[0];
    rc = open_named(&named, cli, &file, &base, err);
    if (rc)
        return rc;
    rc = choose(&model, cli, &named, &base, given, err);
    if (rc)
        return rc;
    /* A delta knows its base by itself. */
    bool whole = bal_model_facts(model)->kind != BAL_KIND_DELTA;
    if (base.model && whole && !draft.base_model)
        draft.base_model = bal_model_facts(base.model)->name;
    rc = bal_cli_tenant(cli, given->parent ? 0 : BAL_OPEN_CREATE, err);
    if (rc)
        return rc;
    if (given->parent) {
        rc = bal_cli_spec(&parent, cli, given->parent, err);
        if (rc)
            return rc;
        draft.parent = &parent;
    }
    draft.anchor = base.is_commit ? &base.commit : NULL;
    return commit(cli, model, &draft, err);
}

const bal_command bal_cmd_commit = {
    .name = "commit",
    .synopsis = "DIR|FILE -m MSG [OPTIONS]",
    .summary = "record a model or an adapter as it is",
    .about = "Takes a PEFT adapter folder, a folder of safetensors or one "
             "safetensors file, with its side files (config, tokenizer, "
             "template, model card): they come back at checkout. A fine-tune "
             "of a base that you keep is better recorded with 'ballast "
             "delta'. A .wdelta file is taken as the model that it makes of "
             "--base.\n\n"
             "If content, message and parent are those of the ref's head, "
             "no commit is made and it says so.",
    .examples =
        "ballast commit ./adapter -m \"support, run 41\" --ref support\n"
        "ballast commit ./llama-8b -m base --ref base\n",
    .arg = "PATH",
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct commit_opts),
    .run = run,
};
