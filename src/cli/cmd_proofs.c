/* ballast proofs: what was deleted, and the log that says so. */
#include "cli/commands.h"
#include "cli/proving.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"

struct proofs_opts {
    bool all;
    const char *key, *out;
    bal_opt_u64 from, to;
};

static const bal_opt opts[] = {
    { 0, "all", BAL_OPT_FLAG, offsetof(struct proofs_opts, all), NULL,
      "of every tenant" },
    { 0, "key", BAL_OPT_STRING, offsetof(struct proofs_opts, key), "FILE",
      "sign the log's head, and deletions that wait for this key" },
    { 'o', "out", BAL_OPT_STRING, offsetof(struct proofs_opts, out), "FILE",
      "export: where the bundle is written" },
    { 0, "from", BAL_OPT_U64, offsetof(struct proofs_opts, from), "N",
      "prove: that the first N entries are the beginning" },
    { 0, "to", BAL_OPT_U64, offsetof(struct proofs_opts, to), "M",
      "prove: of the first M; else of all" },
    { 0 },
};

/* ---- the list ----------------------------------------------------------- */

typedef struct list {
    bal_cli *cli;
    bal_tenant *tenant; /* NULL: of all */
    bal_json json;
} list;

static void proof_json(bal_json *json, const bal_proof_info *info)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        { "log_index", info->log_index },     { "commits", info->commits },
        { "manifests", info->manifests },     { "blocks", info->blocks },
        { "bytes_freed", info->bytes_freed },
    };
    char at[40];

    bal_clock_rfc3339(at, info->completed_at);
    const struct {
        const char *key, *value;
    } texts[] = {
        { "attestation", info->attestation }, { "tenant", info->tenant },
        { "reason", info->reason },           { "completed_at", at },
        { "key_id", info->key_id },
    };
    bal_json_object(json);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bal_json_key(json, texts[i].key);
        bal_json_string(json, texts[i].value);
    }
    bal_json_key(json, "signed");
    bal_json_bool(json, bal_proof_signed(info));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        bal_json_key(json, counts[i].key);
        bal_json_u64(json, counts[i].value);
    }
    bal_json_close(json);
}

static int show_proof(void *ctx, const bal_proof *proof)
{
    list *self = ctx;
    const bal_proof_info *info = bal_proof_info_of(proof);
    bal_out *out = &self->cli->out;

    if (out->json) {
        proof_json(&self->json, info);
        return 0;
    }
    bal_out_text(out, "%s  ", info->attestation);
    bal_out_time(out, info->completed_at);
    bal_out_text(out, "  %s  ", bal_proof_signed(info) ? "signed" : "unsigned");
    bal_cli_proof_sums(out, info);
    return bal_out_stopped(out);
}

static int show_pending(void *ctx, const char *tenant, const char *reason,
                        const char *key_id)
{
    list *self = ctx;
    bal_out *out = &self->cli->out;

    /* What others delete is not told. */
    if (self->tenant &&
        (!tenant || strcmp(bal_tenant_name(self->tenant), tenant) != 0))
        return 0;
    if (!out->json) {
        bal_out_text(out, "pending  tenant '");
        bal_out_safe(out, tenant ? tenant : "");
        bal_out_text(out, "' waits for key %s\n", key_id ? key_id : "");
        return bal_out_stopped(out);
    }
    bal_json_object(&self->json);
    bal_json_key(&self->json, "tenant");
    bal_json_string(&self->json, tenant);
    bal_json_key(&self->json, "reason");
    bal_json_string(&self->json, reason);
    bal_json_key(&self->json, "key_id");
    bal_json_string(&self->json, key_id);
    bal_json_close(&self->json);
    return 0;
}

static int list_all(bal_cli *cli, const struct proofs_opts *given,
                    bal_error *err)
{
    list self = { .cli = cli, .tenant = given->all ? NULL : cli->tenant };

    if (cli->out.json) {
        bal_doc_open(&self.json, &cli->out, cli->command->name);
        bal_json_key(&self.json, "proofs");
        bal_json_array(&self.json);
    }
    int rc = bal_proof_each(cli->store, self.tenant, show_proof, &self, err);
    if (rc)
        return rc;
    if (cli->out.json) {
        bal_json_close(&self.json);
        bal_json_key(&self.json, "pending");
        bal_json_array(&self.json);
    }
    rc = bal_forget_finish(cli->store, NULL, show_pending, &self, err);
    if (rc || !cli->out.json)
        return rc;
    bal_json_close(&self.json);
    bal_doc_close(&self.json, &cli->out);
    return 0;
}

/* ---- the rest ----------------------------------------------------------- */

/* A text of the library's, as it is or as a member of a document. */
static void show_text(bal_cli *cli, const char *member, const char *text,
                      bool is_json)
{
    bal_json json;

    if (!cli->out.json) {
        bal_out_puts(&cli->out, text);
        return;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, member);
    if (is_json)
        bal_json_raw(&json, text);
    else
        bal_json_string(&json, text);
    bal_doc_close(&json, &cli->out);
}

static int checkpoint(bal_cli *cli, const struct proofs_opts *given,
                      const bal_key *key, bal_error *err)
{
    char *text = NULL;
    int rc =
        bal_proof_checkpoint(&text, cli->store, given->key ? key : NULL, err);
    if (rc)
        return rc;
    show_text(cli, "checkpoint", text, false);
    bal_text_free(text);
    return 0;
}

/* Never over a file: it may be a key. */
static int vacant(const char *path, bal_error *err)
{
    if (bal_path_type_of(path) == BAL_PATH_ABSENT)
        return 0;
    return bal_fail(err, BAL_EEXISTS, "'%s' is there already", path);
}

static int export(bal_cli *cli, const struct proofs_opts *given,
                  const bal_key *key, bal_error *err)
{
    BAL_OWN(bal_proof) proof = NULL;
    char *text = NULL;
    bal_json json;

    (void)key;
    if (cli->arg_count < 2 || !given->out)
        return bal_fail(err, BAL_EINVAL, "export needs ATTESTATION -o FILE");
    int rc = bal_proof_open(&proof, cli->store, cli->args[1], err);
    if (!rc)
        rc = bal_proof_bundle(&text, cli->store, proof, err);
    if (!rc)
        rc = vacant(given->out, err);
    if (!rc)
        rc = bal_file_replace(given->out, text, strlen(text), err);
    bal_text_free(text);
    if (rc)
        return rc;
    if (!cli->out.json) {
        bal_out_text(&cli->out, "proof written to ");
        bal_out_safe(&cli->out, given->out);
        bal_out_text(&cli->out, "\n");
        return 0;
    }
    bal_doc_open(&json, &cli->out, cli->command->name);
    bal_json_key(&json, "attestation");
    bal_json_string(&json, bal_proof_info_of(proof)->attestation);
    bal_json_key(&json, "out");
    bal_json_string(&json, given->out);
    bal_doc_close(&json, &cli->out);
    return 0;
}

static int prove(bal_cli *cli, const struct proofs_opts *given,
                 const bal_key *key, bal_error *err)
{
    BAL_OWN(bal_proof) proof = NULL;
    char *text = NULL;
    int rc = 0;

    (void)key;
    if ((cli->arg_count == 2) == given->from.given ||
        (given->from.given && !given->from.value))
        return bal_fail(err, BAL_EINVAL,
                        "prove needs ATTESTATION, or --from N of 1 or more");
    if (cli->arg_count == 2)
        rc = bal_proof_open(&proof, cli->store, cli->args[1], err);
    if (!rc)
        rc = bal_proof_prove(&text, cli->store, proof, given->from.value,
                             given->to.value, err);
    if (rc)
        return rc;
    show_text(cli, "proof", text, true);
    bal_text_free(text);
    return 0;
}

static const struct verb {
    const char *name;
    int (*run)(bal_cli *cli, const struct proofs_opts *given,
               const bal_key *key, bal_error *err);
} verbs[] = {
    { "checkpoint", checkpoint },
    { "export", export },
    { "prove", prove },
};

static const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    }
    return NULL;
}

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const struct proofs_opts *given = values;
    const struct verb *verb = NULL;
    BAL_OWN(bal_key) key = NULL;

    if (cli->arg_count)
        verb = verb_find(cli->args[0]);
    if (cli->arg_count && !verb)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "no such thing as 'proofs "
                                 "%s'",
                                 cli->args[0]),
                        "proofs, proofs checkpoint, proofs export, proofs "
                        "prove");
    int rc = given->key ? bal_key_load(&key, given->key, err) : 0;
    if (!rc)
        rc = verb || given->all || (key && !cli->globals.tenant)
                 ? bal_cli_store(cli, 0, err)
                 : bal_cli_tenant(cli, 0, err);
    if (!rc && key)
        rc = bal_forget_finish(cli->store, key, NULL, NULL, err);
    if (rc)
        return rc;
    return verb ? verb->run(cli, given, key, err) : list_all(cli, given, err);
}

const bal_command bal_cmd_proofs = {
    .name = "proofs",
    .synopsis = "[checkpoint | export ATTESTATION -o FILE | prove ...]",
    .summary = "list proofs of deletion, and the log they are in",
    .about = "One a line: attestation, time, whether it is signed, what went. "
             "Deletions that wait for their signature come last; --key FILE "
             "signs them.\n\n"
             "'checkpoint' prints the head of the log as it was signed last "
             "(or signs it now with --key), 'export' writes a bundle that "
             "'ballast verify FILE --offline' and other tools can check, "
             "'prove' (ATTESTATION, or --from N, and --to M) prints the hashes "
             "that show that the log has a proof, "
             "or that it was only added to since it had N entries.",
    .examples = "ballast proofs --all\nballast proofs checkpoint\n"
                "ballast proofs prove --from 12\n",
    .words = "checkpoint|export|prove",
    .max_args = 2,
    .opts = opts,
    .opts_size = sizeof(struct proofs_opts),
    .run = run,
};
