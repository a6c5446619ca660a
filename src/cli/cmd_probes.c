/* ballast probes: the sets of probes that are recorded. */
#include "cli/commands.h"
#include "core/error.h"
#include "core/hash.h"

BAL_OWNABLE(bal_probes)

/* ---- all of them -------------------------------------------------------- */

static int list_one(void *ctx, const bal_probes_info *info)
{
    bal_listing *listing = ctx;
    bal_out *out = listing->out;
    bal_json *json = &listing->json;

    if (!out->json) {
        bal_out_id(out, &info->id);
        bal_out_text(out, "  %llu probes, %llu fingerprints  ",
                     (unsigned long long)info->probes,
                     (unsigned long long)info->fingerprints);
        bal_out_time(out, info->created_at);
        bal_out_text(out, "\n");
        return 0;
    }
    bal_json_object(json);
    bal_json_key(json, "id");
    bal_json_id(json, &info->id);
    bal_json_key(json, "probes");
    bal_json_u64(json, info->probes);
    bal_json_key(json, "fingerprints");
    bal_json_u64(json, info->fingerprints);
    bal_json_key(json, "created_at");
    bal_json_i64(json, info->created_at);
    bal_json_close(json);
    return 0;
}

static int walk(bal_cli *cli, bal_listing *listing, bal_error *err)
{
    return bal_probes_each(cli->tenant, list_one, listing, err);
}

static int list(bal_cli *cli, bal_error *err)
{
    return bal_cli_list(cli, "probe_sets", '[', walk, err);
}

/* ---- one ---------------------------------------------------------------- */

static void show_probe(bal_out *out, const bal_probe *probe)
{
    bal_out_safe(out, probe->id);
    bal_out_text(out, "  ");
    bal_out_safe(out, probe->prompt ? probe->prompt : probe->messages);
    bal_out_text(out, "\n");
}

/* Which commits answered it. */
typedef struct answered {
    bal_cli *cli;
    const bal_id *probes;
    bal_json *json;
} answered;

/* As it is, unless something else has written to it. */
static void json_terms(bal_json *json, const char *terms)
{
    json_t *value = json_loads(terms, JSON_REJECT_DUPLICATES, NULL);

    if (value)
        bal_json_raw(json, terms);
    else
        bal_json_string(json, terms);
    json_decref(value);
}

static int show_fingerprint(void *ctx, const bal_fingerprint_info *info)
{
    const answered *self = ctx;
    bal_out *out = &self->cli->out;

    if (!bal_id_equal(&info->probes, self->probes))
        return 0;
    if (self->json) {
        bal_json_object(self->json);
        bal_json_key(self->json, "commit");
        bal_json_id(self->json, &info->commit);
        bal_json_key(self->json, "terms");
        json_terms(self->json, info->terms);
        bal_json_key(self->json, "answers");
        bal_json_u64(self->json, info->answers);
        bal_json_key(self->json, "created_at");
        bal_json_i64(self->json, info->created_at);
        bal_json_close(self->json);
        return 0;
    }
    bal_out_text(out, "  ");
    bal_out_id(out, &info->commit);
    bal_out_text(out, "  %llu answers  ", (unsigned long long)info->answers);
    bal_out_safe(out, info->terms);
    bal_out_text(out, "\n");
    return 0;
}

static int show(bal_cli *cli, bal_error *err)
{
    BAL_OWN(bal_probes) probes = NULL;
    bal_out *out = &cli->out;
    bal_json json = { .to = NULL };
    answered self = { .cli = cli, .json = out->json ? &json : NULL };
    int rc = bal_probes_load(&probes, cli->tenant, cli->args[1], err);
    if (rc)
        return rc;

    self.probes = bal_probes_id(probes);
    if (out->json) {
        bal_doc_open(&json, out, cli->command->name);
        bal_json_key(&json, "id");
        bal_json_id(&json, self.probes);
        bal_json_key(&json, "set");
        bal_json_raw(&json, bal_probes_json(probes));
        bal_json_key(&json, "fingerprints");
        bal_json_array(&json);
    }
    for (size_t i = 0; i < bal_probes_count(probes) && !out->json; i++)
        show_probe(out, bal_probes_at(probes, i));
    rc = bal_fingerprint_each(cli->tenant, NULL, show_fingerprint, &self, err);
    if (out->json) {
        bal_json_close(&json);
        bal_doc_close(&json, out);
    }
    return rc;
}

static int forget(bal_cli *cli, bal_error *err)
{
    bal_out *out = &cli->out;
    uint64_t gone = 0;
    bal_json json;
    bal_id id;
    int rc = bal_probes_resolve(&id, cli->tenant, cli->args[1], err);

    if (!rc)
        rc = bal_probes_forget(cli->tenant, &id, &gone, err);
    if (rc)
        return rc;
    if (!out->json) {
        bal_out_text(out, "forgot probe set ");
        bal_out_id(out, &id);
        bal_out_text(out, ": %llu fingerprints\n", (unsigned long long)gone);
        return 0;
    }
    bal_doc_open(&json, out, cli->command->name);
    bal_json_key(&json, "probe_set");
    bal_json_id(&json, &id);
    bal_json_key(&json, "fingerprints");
    bal_json_u64(&json, gone);
    bal_doc_close(&json, out);
    return 0;
}

static const struct action {
    const char *word;
    size_t args; /* the word and what is behind it */
    int (*run)(bal_cli *cli, bal_error *err);
} actions[] = {
    { "list", 1, list },
    { "show", 2, show },
    { "forget", 2, forget },
};

static int run(bal_cli *cli, const void *values, bal_error *err)
{
    const char *word = cli->arg_count ? cli->args[0] : "list";

    (void)values;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].word, word) != 0)
            continue;
        if (cli->arg_count > actions[i].args)
            return bal_fail(err, BAL_EINVAL, "probes %s: too many arguments",
                            word);
        if (cli->arg_count < actions[i].args && actions[i].args > 1)
            return bal_fail(err, BAL_EINVAL, "probes %s: which set?", word);
        return actions[i].run(cli, err);
    }
    return bal_fail(err, BAL_EINVAL,
                    "probes: no action '%s'; there are list, show and forget",
                    word);
}

const bal_command bal_cmd_probes = {
    .name = "probes",
    .synopsis = "[show ID | forget ID]",
    .summary = "list the sets of probes, show one, forget one",
    .about =
        "A set is recorded with the first fingerprint of it, known by what "
        "it is, and belongs to the tenant; it goes with the tenant, or "
        "with the last commit that answered it. 'probes forget' takes a "
        "set away with every fingerprint of it, and leaves no word of "
        "them in the database.",
    .examples = "ballast probes\n"
                "ballast probes show 5c6d\n"
                "ballast probes forget 5c6d\n",
    .words = "list|show|forget",
    .needs = BAL_NEEDS_TENANT,
    .max_args = 2,
    .run = run,
};
