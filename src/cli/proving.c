/* A proof as text or JSON, after it was verified. */
#include "cli/proving.h"

#include "core/error.h"
#include "core/str.h"
#include "report/proof.h"

int bal_cli_key(bal_key **out, const char *file, bal_error *err)
{
    return file ? bal_key_load(out, file, err) : bal_key_environment(out, err);
}

bool bal_cli_attestation(const char *text)
{
    return bal_hex_valid(text, 64);
}

/* ---- text --------------------------------------------------------------- */

void bal_cli_proof_sums(bal_out *out, const bal_proof_info *info)
{
    char bytes[32];

    bal_thousands(bytes, info->bytes_freed);
    bal_out_text(out, "tenant '");
    bal_out_safe(out, info->tenant);
    bal_out_text(
        out, "': %llu commits, %llu manifests, %llu blocks, %s bytes\n",
        (unsigned long long)info->commits, (unsigned long long)info->manifests,
        (unsigned long long)info->blocks, bytes);
}

static int count_view(void *ctx, const char *tenant, const bal_id *commit)
{
    size_t *count = ctx;

    (void)tenant;
    (void)commit;
    ++*count;
    return 0;
}

static int show_view(void *ctx, const char *tenant, const bal_id *commit)
{
    bal_out *out = ctx;

    bal_out_text(out, " ");
    bal_out_safe(out, tenant);
    bal_out_text(out, ":");
    bal_out_id(out, commit);
    return 0;
}

static int show_views(bal_out *out, const bal_proof *proof, bal_error *err)
{
    size_t count = 0;
    int rc = bal_proof_views(proof, count_view, &count, err);

    if (rc || !count)
        return rc;
    bal_out_text(out,
                 "%zu composite(s) now reference a deleted input and will "
                 "refuse to resolve:",
                 count);
    rc = bal_proof_views(proof, show_view, out, err);
    bal_out_text(out, "\n");
    return rc;
}

static int show_retained(void *ctx, const char *kind, const bal_id *id,
                         const char *why)
{
    bal_out *out = ctx;

    bal_out_text(out, "kept: ");
    bal_out_safe(out, kind);
    bal_out_text(out, " ");
    bal_out_id(out, id);
    bal_out_text(out, ": ");
    bal_out_safe(out, why);
    bal_out_text(out, "\n");
    return 0;
}

static void show_server(bal_out *out, const json_t *value)
{
    const char *server = json_string_value(json_object_get(value, "server"));
    const char *name = json_string_value(json_object_get(value, "name"));

    if (!server || !name)
        return;
    bal_out_text(out, "server: ");
    bal_out_safe(out, server);
    bal_out_text(out, " has loaded '");
    bal_out_safe(out, name);
    bal_out_text(out, "', not covered until it is restarted\n");
}

/* The copies that were there when it was deleted; they are none of the store's
 * to delete. Servers that may have it in memory neither. */
static int show_copies(bal_out *out, const char *statement, bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    int rc = statement ? bal_json_parse(&json, statement, strlen(statement),
                                        "the statement", err)
                       : 0;
    const json_t *predicate = json_object_get(json, "predicate");
    const json_t *copies = json_object_get(predicate, "exports");
    const json_t *servers = json_object_get(predicate, "servers");

    for (size_t i = 0; i < json_array_size(copies); i++) {
        const json_t *copy = json_array_get(copies, i);
        const char *path = json_string_value(json_object_get(copy, "path"));
        if (!path || !json_is_true(json_object_get(copy, "there")))
            continue;
        bal_out_text(out, "copy: ");
        bal_out_safe(out, path);
        bal_out_text(out, "\n");
    }
    for (size_t i = 0; i < json_array_size(servers); i++)
        show_server(out, json_array_get(servers, i));
    return rc;
}

static void show_findings(const bal_proving *self, const bal_findings *found)
{
    static const char *const words[] = {
        [BAL_FINDING_PROBLEM] = "PROBLEM: ",
        [BAL_FINDING_NOTE] = "note: ",
    };
    bal_out *out = &self->cli->out;

    for (const bal_found *at = found->first; at; at = at->next) {
        if (at->kind == BAL_FINDING_NOTE && !self->notes)
            continue;
        bal_out_text(out, "%s", words[at->kind]);
        bal_out_safe(out, at->text);
        bal_out_text(out, "\n");
    }
    if (!found->verdict.problems)
        bal_out_text(out, "verified\n");
}

static int show_text(const bal_proving *self, const bal_findings *found,
                     bal_error *err)
{
    const bal_proof_info *info = bal_proof_info_of(self->proof);
    bal_out *out = &self->cli->out;

    bal_cli_proof_sums(out, info);
    bal_out_text(out, "attestation %s  (%s)\n", info->attestation,
                 bal_proof_signed(info) ? "signed" : "unsigned");
    int rc = show_views(out, self->proof, err);
    if (!rc)
        rc = bal_proof_retained(self->proof, show_retained, out, err);
    if (!rc)
        rc = show_copies(out, info->statement, err);
    if (rc == BAL_ECORRUPT)
        rc = 0; /* a problem is told of it, or it is not asked about */
    if (!rc)
        show_findings(self, found);
    return rc;
}

static int show_json(const bal_proving *self, const bal_findings *found,
                     bal_error *err)
{
    bal_json json;

    bal_doc_open(&json, &self->cli->out, self->cli->command->name);
    int rc = bal_proof_json(&json, self->proof, found, self->notes, err);
    bal_doc_close(&json, &self->cli->out);
    return rc;
}

int bal_cli_prove(const bal_proving *self, bal_error *err)
{
    BAL_LOCAL(bal_findings) found = { 0 };
    int rc =
        bal_findings_fill(&found, self->proof, self->store, self->key, err);
    if (rc)
        return rc;
    self->cli->status = found.verdict.problems ? 1 : 0;
    return self->cli->out.json ? show_json(self, &found, err)
                               : show_text(self, &found, err);
}

/* ---- plans -------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "nothing";
}

static void put_id(bal_out *out, const json_t *value)
{
    bal_out_safe(out, json_string_value(value));
}

static void put_ref(bal_out *out, const json_t *value)
{
    bal_out_safe(out, text_of(value, "name"));
    bal_out_text(out, " -> %.12s", text_of(value, "to"));
}

static void put_grant(bal_out *out, const json_t *value)
{
    bal_out_safe(out, text_of(value, "owner"));
    bal_out_text(out, ":%.12s -> ", text_of(value, "manifest"));
    bal_out_safe(out, text_of(value, "grantee"));
}

static void put_copy(bal_out *out, const json_t *value)
{
    bool there = json_is_true(json_object_get(value, "there"));

    bal_out_safe(out, text_of(value, "path"));
    bal_out_text(out, " of %.12s%s", text_of(value, "commit"),
                 there ? "" : " (not there any more)");
}

static void put_server(bal_out *out, const json_t *value)
{
    bal_out_safe(out, text_of(value, "server"));
    bal_out_text(out, ": ");
    bal_out_safe(out, text_of(value, "name"));
}

static void put_kept(bal_out *out, const json_t *value)
{
    bal_out_text(out, "%s %.12s: ", text_of(value, "kind"),
                 text_of(value, "id"));
    bal_out_safe(out, text_of(value, "why"));
}

static const struct plan_row {
    const char *member;
    const char *word;
    void (*put)(bal_out *out, const json_t *value);
} plan_rows[] = {
    { "commits", "commit", put_id },
    { "manifests", "manifest", put_id },
    { "blocks", "block", put_id },
    { "refs", "ref", put_ref },
    { "grants_revoked", "grant", put_grant },
    { "grants_received", "grant received", put_grant },
    { "cache", "cached view", put_id },
    { "broken_views", "broken view", put_id },
    { "exports", "copy that stays", put_copy },
    { "servers", "server that may keep it", put_server },
    { "retained", "kept", put_kept },
};

int bal_cli_plan(bal_out *out, const char *plan, bal_error *err)
{
    BAL_OWN(json_t) json = NULL;
    int rc = bal_json_parse(&json, plan, strlen(plan), "the plan", err);
    if (rc)
        return rc;

    for (size_t i = 0; i < sizeof(plan_rows) / sizeof(plan_rows[0]); i++) {
        const json_t *array = json_object_get(json, plan_rows[i].member);
        for (size_t n = 0; n < json_array_size(array); n++) {
            bal_out_text(out, "%s: ", plan_rows[i].word);
            plan_rows[i].put(out, json_array_get(array, n));
            bal_out_text(out, "\n");
            bal_out_relax(out);
        }
    }
    return 0;
}
