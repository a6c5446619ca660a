/* Findings are kept until the proof's own members are out. */
#include "report/proof.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

static int keep(void *ctx, bal_finding kind, const char *text)
{
    bal_findings *self = ctx;
    bal_found *next = bal_arena_alloc(&self->arena, sizeof(*next));
    const char *copy = bal_arena_copy(&self->arena, text, strlen(text));

    if (!next || !copy) {
        self->lost = true;
        return 1;
    }
    *next = (bal_found){ kind, copy, NULL };
    *self->last = next;
    self->last = &next->next;
    return 0;
}

int bal_findings_fill(bal_findings *out, const bal_proof *proof,
                      bal_store *store, const bal_key *key, bal_error *err)
{
    out->last = &out->first;
    int rc = bal_proof_verify(proof, store, key, keep, out, &out->verdict, err);

    return !rc && out->lost ? bal_fail_memory(err, "findings") : rc;
}

void bal_findings_done(bal_findings *self)
{
    bal_arena_done(&self->arena);
}

bool bal_proof_signed(const bal_proof_info *info)
{
    return info->key_id != NULL;
}

/* ---- JSON --------------------------------------------------------------- */

static int view_json(void *ctx, const char *tenant, const bal_id *commit)
{
    char text[160], hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, commit);
    snprintf(text, sizeof(text), "%s:%s", tenant, hex);
    bal_json_string(ctx, text);
    return 0;
}

static int retained_json(void *ctx, const char *kind, const bal_id *id,
                         const char *why)
{
    bal_json *json = ctx;

    (void)kind;
    bal_json_object(json);
    bal_json_key(json, "id");
    bal_json_id(json, id);
    bal_json_key(json, "why");
    bal_json_string(json, why);
    bal_json_close(json);
    return 0;
}

static void raw_member(bal_json *json, const char *key, const char *value)
{
    bal_json_key(json, key);
    if (value)
        bal_json_raw(json, value);
    else
        bal_json_null(json);
}

static void info_json(bal_json *json, const bal_proof_info *info)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        { "log_index", info->log_index },     { "commits", info->commits },
        { "manifests", info->manifests },     { "blocks", info->blocks },
        { "bytes_freed", info->bytes_freed },
    };

    bal_json_key(json, "attestation");
    bal_json_string(json, info->attestation);
    bal_json_key(json, "signed");
    bal_json_bool(json, bal_proof_signed(info));
    bal_json_key(json, "key_id");
    bal_json_string(json, info->key_id);
    raw_member(json, "statement", info->statement);
    raw_member(json, "envelope", info->envelope);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        bal_json_key(json, counts[i].key);
        bal_json_u64(json, counts[i].value);
    }
}

static void findings_json(bal_json *json, const char *key, bal_finding kind,
                          const bal_findings *found)
{
    bal_json_key(json, key);
    bal_json_array(json);
    for (const bal_found *at = found->first; at; at = at->next) {
        if (at->kind == kind)
            bal_json_string(json, at->text);
    }
    bal_json_close(json);
}

int bal_proof_json(bal_json *json, const bal_proof *proof,
                   const bal_findings *found, bool notes, bal_error *err)
{
    const bal_proof_info *info = bal_proof_info_of(proof);

    info_json(json, info);
    bal_json_key(json, "retained");
    bal_json_array(json);
    int rc = bal_proof_retained(proof, retained_json, json, err);
    bal_json_close(json);
    bal_json_key(json, "broken_views");
    bal_json_array(json);
    if (!rc || rc == BAL_ECORRUPT)
        rc = bal_proof_views(proof, view_json, json, err);
    bal_json_close(json);
    bal_json_key(json, "revoked_grants");
    bal_json_u64(json, info->revoked_grants);
    bal_json_key(json, "verified");
    bal_json_bool(json, !found->verdict.problems);
    findings_json(json, "problems", BAL_FINDING_PROBLEM, found);
    if (notes)
        findings_json(json, "notes", BAL_FINDING_NOTE, found);
    return rc == BAL_ECORRUPT ? 0 : rc;
}
