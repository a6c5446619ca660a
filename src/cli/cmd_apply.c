/* ballast apply: base plus commit, as a folder. */
#include <strings.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/hash.h"

struct apply_opts {
    const char *base, *out, *dtype;
    bool force, verify;
};

static const bal_opt opts[] = {
    { 0, "base", BAL_OPT_STRING, offsetof(struct apply_opts, base),
      "DIR|FILE|SPEC", "the model that the change is for", BAL_OPT_REQUIRED },
    { 'o', "out", BAL_OPT_STRING, offsetof(struct apply_opts, out), "DIR",
      "the folder to write", BAL_OPT_REQUIRED },
    { 0, "dtype", BAL_OPT_STRING, offsetof(struct apply_opts, dtype), "DTYPE",
      "round floats to BF16, F16, F32 or F64" },
    { 0, "force", BAL_OPT_FLAG, offsetof(struct apply_opts, force), NULL,
      "go on with another base; replace a folder that is there" },
    { 0, "verify", BAL_OPT_FLAG, offsetof(struct apply_opts, verify), NULL,
      "read what was written and compare" },
    { 0 },
};

/* What an apply works with. */
typedef struct job {
    bal_cli *cli;
    const struct apply_opts *given;
    bal_id id;
    bal_commit *commit;
    bal_model *change;
    bal_named base;
    bal_model *result;
    bool exact;
} job;

static void job_done(job *self)
{
    bal_model_free(self->result);
    bal_named_done(&self->base);
    bal_model_free(self->change);
    bal_commit_free(self->commit);
}

static int find_dtype(bal_dtype *out, const char *name, bal_error *err)
{
    static const bal_dtype floats[] = { BAL_BF16, BAL_F16, BAL_F32, BAL_F64 };

    for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
        *out = floats[i];
        if (!strcasecmp(bal_dtype_name(floats[i]), name))
            return 0;
    }
    return bal_fail(err, BAL_EINVAL,
                    "--dtype: '%s' is not one of BF16, F16, F32, F64", name);
}

/* An adapter remembers its base by name only, and cannot be forced on another
 * shape. */
static int adapter_misfits(const job *self, int rc, bal_error *err)
{
    const char *made_for = bal_commit_info_of(self->commit)->base_model;

    if (err->hint[0] || !made_for || !made_for[0])
        return rc;
    return bal_hint(err, rc, "the adapter was made for '%s'", made_for);
}

static int plus(job *self, bal_error *err)
{
    bal_model *base = self->base.model;
    bal_work *work = self->cli->work;
    bool delta = !strcmp(bal_commit_info_of(self->commit)->kind, "delta");

    self->exact = delta && !self->given->dtype;
    int rc = bal_model_plus(&self->result, base, self->change, 0, work, err);
    if (rc != BAL_ECORRUPT)
        return rc;
    if (bal_model_facts(self->change)->kind == BAL_KIND_ADAPTER)
        return adapter_misfits(self, rc, err);
    if (!self->given->force) {
        return err->hint[0] ? rc
                            : bal_hint(err, rc,
                                       "the base must be the one that the "
                                       "commit was made from; --force goes on "
                                       "with this one");
    }
    self->exact = false;
    return bal_model_plus(&self->result, base, self->change, BAL_PLUS_ANY_BASE,
                          work, err);
}

static int cast(job *self, bal_error *err)
{
    BAL_OWN(bal_model) exact = BAL_TAKE(self->result);
    bal_dtype dtype;

    int rc = find_dtype(&dtype, self->given->dtype, err);
    if (rc)
        return rc;
    return bal_model_cast(&self->result, exact, dtype, err);
}

/* Has a digest that must come out again. */
static bool recorded(const bal_tensor *entry)
{
    return entry->part != BAL_PART_HEADER && entry->tuned &&
           !bal_cli_layout(entry);
}

/* A file that the fine-tune left alone is the base's, whichever that is: which
 * ones differ from what was recorded has been said. */
static bool is_base_file(const bal_tensor *want, const bal_model *again,
                         const bal_model *base)
{
    size_t i = bal_model_find(again, want->part, want->name);

    if (want->part != BAL_PART_FILE || want->form != BAL_FORM_SAME)
        return false;
    if (i == BAL_NONE)
        return bal_model_find(base, want->part, want->name) == BAL_NONE;
    return bal_model_at(again, i)->form == BAL_FORM_SAME;
}

/* Is each digest that the delta recorded of the tuned model that of what was
 * written? Taking the difference again takes the digests. */
static int same_digests(job *self, bal_model *there, bal_error *err)
{
    BAL_OWN(bal_model) again = NULL;

    int rc =
        bal_model_minus(&again, there, self->base.model, self->cli->work, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < bal_model_count(self->change); i++) {
        const bal_tensor *want = bal_model_at(self->change, i);
        if (!recorded(want) || is_base_file(want, again, self->base.model))
            continue;
        size_t j = bal_model_find(again, want->part, want->name);
        const bal_id *got =
            j == BAL_NONE ? NULL : bal_model_at(again, j)->tuned;
        if (!got || !bal_id_equal(got, want->tuned)) {
            return bal_fail(err, BAL_ECORRUPT,
                            "'%s' in '%s' is not what was recorded", want->name,
                            self->given->out);
        }
    }
    return 0;
}

static int verify(job *self, bal_error *err)
{
    BAL_OWN(bal_model) there = NULL;

    int rc = bal_model_from_path(&there, self->given->out, err);
    if (rc)
        return rc;
    if (self->exact)
        return same_digests(self, there, err);
    return bal_cli_same(self->result, there, err);
}

static int save(job *self, bal_written *written, bal_error *err)
{
    const char *avoid[] = { bal_store_root(self->cli->store), self->base.text };
    bal_model *const sources[] = { self->change, self->base.model };
    const bal_write_options options = {
        .provenance = bal_commit_provenance(self->commit),
        .avoid = avoid,
        .avoid_count = self->base.is_commit ? 1 : 2,
        .sources = sources,
        .source_count = 2,
        .flags = self->given->force ? BAL_WRITE_FORCE : 0,
    };

    int rc = bal_model_write(self->result, self->given->out, &options, written,
                             self->cli->work, err);
    if (!rc)
        rc = bal_exported(self->cli->tenant, &self->id, self->given->out, err);
    if (!rc && self->base.is_commit)
        rc = bal_exported(self->cli->tenant, &self->base.commit,
                          self->given->out, err);
    if (rc || !self->given->verify)
        return rc;
    return verify(self, err);
}

static void report(const job *self, const bal_written *written)
{
    bal_out *out = &self->cli->out;
    const char *resolving = bal_model_facts(self->result)->report;
    bal_json json;

    if (!out->json) {
        bal_out_text(out, "model written to ");
        bal_out_safe(out, self->given->out);
        bal_out_text(out, "\n");
        return;
    }
    bal_doc_open(&json, out, self->cli->command->name);
    bal_json_key(&json, "out");
    bal_json_string(&json, self->given->out);
    bal_json_key(&json, "commit");
    bal_json_id(&json, &self->id);
    bal_json_key(&json, "tensors");
    bal_json_u64(&json, written->tensors);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, written->bytes);
    bal_json_key(&json, "exact");
    bal_json_bool(&json, self->exact);
    if (resolving)
        bal_json_members(&json, resolving);
    bal_doc_close(&json, out);
}

static int open_all(job *self, bal_error *err)
{
    bal_cli *cli = self->cli;
    bal_dtype dtype;

    int rc =
        self->given->dtype ? find_dtype(&dtype, self->given->dtype, err) : 0;
    if (rc)
        return rc;
    rc = bal_cli_spec(&self->id, cli, cli->args[0], err);
    if (rc)
        return rc;
    rc = bal_commit_open(&self->commit, cli->tenant, &self->id, err);
    if (rc)
        return rc;
    rc = bal_model_from_commit(&self->change, cli->tenant, &self->id, err);
    if (rc)
        return rc;
    rc = bal_cli_model(&self->base, cli, self->given->base, err);
    if (rc || self->given->force)
        return rc;
    return bal_cli_vacant(self->given->out, err);
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    BAL_LOCAL(job) self = { .cli = cli, .given = values };
    bal_written written = { 0 };

    int rc = open_all(&self, err);
    if (rc)
        return rc;
    rc = plus(&self, err);
    if (rc)
        return rc;
    if (self.given->dtype) {
        rc = cast(&self, err);
        if (rc)
            return rc;
    }
    rc = save(&self, &written, err);
    if (rc)
        return rc;
    report(&self, &written);
    return 0;
}

const bal_command bal_cmd_apply = {
    .name = "apply",
    .synopsis = "SPEC --base BASE -o DIR [OPTIONS]",
    .summary = "write base plus commit as a model that loads",
    .about = "Of a delta the model that it was taken of, bit for bit: every "
             "tensor of the base is compared with what the delta recorded of "
             "it, and a wrong base is refused by the first tensor that "
             "differs. Adapters are folded in, views are resolved. The folder "
             "has the base's side files and shards, and a ballast.json.\n\n"
             "\"exact\" in the JSON is true where every tensor is that of the "
             "recorded model bit for bit: a delta on its own base, not "
             "rounded. A base whose tokenizer or chat template alone is "
             "another one is warned of, and its files are taken.",
    .examples = "ballast apply blend --base ./llama-8b -o ./blend --verify\n",
    .arg = "SPEC",
    .needs = BAL_NEEDS_TENANT,
    .min_args = 1,
    .max_args = 1,
    .opts = opts,
    .opts_size = sizeof(struct apply_opts),
    .run = run,
};
