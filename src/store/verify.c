/* Is a proof what it says it is, and does it still hold? A table of checks, of
 * which none believes another; the statement's own are here.
 *
 * What decides how a signature is checked is the key that is trusted, never
 * what the envelope or the statement say of theirs. */
#include "store/verify.h"

#include <stdarg.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "store/statement.h"
#include "store/trust.h"
#include "store/view_cache.h"
#include "store/view_files.h"

enum { FINDING_ROOM = 768 };

static void bal_verification_done(bal_verification *self)
{
    bal_log_state_done(&self->log);
    bal_proof_free(self->filed);
    bal_buf_done(&self->blocks);
    bal_map_done(&self->wanted);
    bal_buf_done(&self->present);
}

int bal_verify_tell(bal_verification *self, bal_finding finding, bal_error *err,
                    const char *format, ...)
{
    char text[FINDING_ROOM];
    va_list args;

    if (finding == BAL_FINDING_PROBLEM)
        self->verdict->problems++;
    if (self->stopped || !self->fn)
        return 0;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0)
        return bal_fail(err, BAL_EINVAL, "a finding that cannot be told");
    self->stopped = self->fn(self->ctx, finding, text) != 0;
    return 0;
}

static int problem(bal_verification *self, const char *text, bal_error *err)
{
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err, "%s", text);
}

int bal_verify_log_keys(bal_verification *self, bal_verify_key_fn *fn,
                        void *ctx, bal_error *err)
{
    int rc = self->key ? fn(ctx, self->key, err) : 0;

    if (rc)
        return rc == BAL_ROW_STOP ? 0 : rc;
    return self->store ? bal_trust_each(self->store, fn, ctx, err) : 0;
}

int bal_verify_keys(bal_verification *self, bal_verify_key_fn *fn, void *ctx,
                    bal_error *err)
{
    if (self->key) {
        int rc = fn(ctx, self->key, err);
        return rc == BAL_ROW_STOP ? 0 : rc;
    }
    return self->store ? bal_trust_each(self->store, fn, ctx, err) : 0;
}

/* ---- the statement ------------------------------------------------------ */

static int check_envelope(bal_verification *self, bal_error *err)
{
    const bal_proof *proof = self->proof;

    if (proof->why.code)
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the proof cannot be read: %s", proof->why.text);
    if (!self->predicate || !self->tenant[0])
        return problem(self, "the statement names no tenant", err);
    return 0;
}

static int check_canonical(bal_verification *self, bal_error *err)
{
    const bal_buf *payload = &self->proof->payload;
    BAL_LOCAL(bal_buf) again = { 0 };
    int rc = bal_json_canonical(&again, self->proof->statement, err);

    if (rc && rc != BAL_EINVAL)
        return rc;
    if (!rc && again.len == payload->len &&
        !memcmp(again.data, payload->data, again.len))
        return 0;
    return problem(self, "the statement is not canonical JSON", err);
}

static int check_kind(bal_verification *self, bal_error *err)
{
    const bal_proof *proof = self->proof;
    const struct {
        const char *there, *wanted, *what;
    } words[] = {
        { proof->dsse.type, BAL_STATEMENT_PAYLOAD, "payload type" },
        { json_string_value(json_object_get(proof->statement, "_type")),
          BAL_STATEMENT_TYPE, "statement type" },
        { json_string_value(json_object_get(proof->statement, "predicateType")),
          BAL_STATEMENT_PREDICATE, "predicate type" },
        { json_string_value(json_object_get(self->predicate, "schema")),
          BAL_STATEMENT_SCHEMA, "schema" },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].there && !strcmp(words[i].there, words[i].wanted))
            continue;
        int rc = bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                                 "the %s is '%.100s', not '%s'", words[i].what,
                                 words[i].there ? words[i].there : "",
                                 words[i].wanted);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_attestation(bal_verification *self, bal_error *err)
{
    char hex[65];

    bal_sha256_hex(hex, &self->proof->attestation);
    if (!strcmp(hex, self->proof->info.attestation))
        return 0;
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                           "attestation %s does not match the statement, "
                           "whose is %s",
                           self->proof->info.attestation, hex);
}

/* The subject is what tools that know in-toto look at. */
static int check_subject(bal_verification *self, bal_error *err)
{
    json_t *subject = NULL;
    int rc = bal_statement_subject(&subject, self->predicate, err);
    bool same =
        !rc &&
        json_equal(subject, json_object_get(self->proof->statement, "subject"));

    json_decref(subject);
    if (rc && rc != BAL_ECORRUPT)
        return rc;
    return same ? 0
                : problem(self, "the subject is not what the predicate lists",
                          err);
}

/* ---- the signature ------------------------------------------------------ */

typedef struct signature_check {
    bal_verification *verification;
    bool good;
    bool named; /* the key is what the statement says signed it */
} signature_check;

static int try_key(void *ctx, const bal_key *key, bal_error *err)
{
    signature_check *self = ctx;
    const bal_proof_info *info = &self->verification->proof->info;
    int rc = bal_dsse_verify(&self->verification->proof->dsse, key, &self->good,
                             err);

    self->verification->keys++;
    if (rc || !self->good)
        return rc;
    self->named = info->key_id && !strcmp(info->key_id, bal_key_id(key)) &&
                  !strcmp(info->algorithm, bal_key_algorithm(key));
    return BAL_ROW_STOP;
}

static int unsigned_proof(bal_verification *self, bool trusting, bal_error *err)
{
    const bal_proof_info *info = &self->proof->info;

    if (info->key_id || strcmp(info->algorithm, "none") != 0)
        return problem(self, "the signature was taken away", err);
    if (self->key)
        return problem(self, "nobody signed it, and a key is given", err);
    if (trusting)
        return problem(self, "nobody signed it, and the store trusts a key",
                       err);
    return bal_verify_tell(self, BAL_FINDING_NOTE, err,
                           "nobody signed it: consistent at most");
}

static int check_signature(bal_verification *self, bal_error *err)
{
    signature_check check = { .verification = self };
    bool trusting = self->key != NULL;
    int rc = 0;

    if (self->store && !trusting)
        rc = bal_trust_any(self->store, &trusting, err);
    if (rc)
        return rc;
    /* Without a store nobody but the caller says whom to believe. */
    if (!self->store && !self->key)
        return problem(self, "unknown key: give --key", err);
    if (!self->proof->dsse.count)
        return unsigned_proof(self, trusting, err);
    rc = bal_verify_keys(self, try_key, &check, err);
    if (rc)
        return rc;
    if (!check.good && !self->key &&
        !strcmp(self->proof->info.algorithm, "hmac-sha256"))
        return problem(self,
                       "it is signed with a shared secret, which "
                       "BALLAST_SIGNING_KEY does not hold",
                       err);
    if (!self->keys)
        return problem(self, "unknown key: give --key", err);
    if (!check.good)
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the signature is not that of %s",
                               self->key ? "the key that is given"
                                         : "a key that the store trusts");
    self->verdict->signed_by_trusted = check.named;
    return check.named ? 0
                       : problem(self,
                                 "the statement names another key than the "
                                 "one that signed it",
                                 err);
}

/* ---- the table ---------------------------------------------------------- */

static const bal_check_row checks[] = {
    { "envelope", check_envelope, 0 },
    { "canonical", check_canonical, BAL_CHECK_STATEMENT },
    { "kind", check_kind, BAL_CHECK_STATEMENT },
    { "attestation", check_attestation, 0 },
    { "subject", check_subject, BAL_CHECK_STATEMENT },
    { "signature", check_signature, BAL_CHECK_STATEMENT },
    { "bundle", bal_verify_bundle, BAL_CHECK_STATEMENT },
    { "origin", bal_verify_origin, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "row", bal_verify_row, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "log", bal_verify_log, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "tombstones", bal_verify_tombstones,
      BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "journal", bal_verify_journal, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "facts", bal_verify_facts, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "blocks", bal_verify_blocks, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "cache", bal_verify_cache, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "grants", bal_verify_grants, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "refs", bal_verify_refs, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
    { "answers", bal_verify_answers, BAL_CHECK_STATEMENT | BAL_CHECK_STORE },
};

/* A log with a gap is a finding, and no log. */
static int load_log(bal_verification *self, bal_error *err)
{
    bal_error why;
    int rc = bal_log_state_load(&self->log, self->store, &why);

    if (!rc)
        return 0;
    if (rc != BAL_ECORRUPT)
        return bal_fail(err, rc, "%s", why.text);
    self->log.size = 0;
    return problem(self, why.text, err);
}

static int run(bal_verification *self, unsigned has, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int rc = 0;

    if (self->store)
        rc = bal_graph_begin(&tx, self->store->graph, 0, err);
    if (!rc && self->store)
        rc = load_log(self, err);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !rc; i++) {
        if ((checks[i].needs & has) != checks[i].needs)
            continue;
        rc = checks[i].run(self, err);
        if (rc)
            bal_within(err, rc, "checking the proof's %s", checks[i].name);
    }
    return rc;
}

/* What another root's deletion has left in this root's cache is read by nobody,
 * and goes now, unless somebody is at work. */
static int expire_cache(bal_store *store, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bal_error why;
    int rc = bal_view_lock(&lock, store, BAL_LOCK_EXCLUSIVE, &why);

    return rc ? 0 : bal_view_cache_expire(store, err);
}

static void begin(bal_verification *self)
{
    const json_t *predicate = bal_proof_predicate(self->proof);
    const char *tenant =
        json_string_value(json_object_get(predicate, "tenant"));
    json_int_t epoch = json_integer_value(json_object_get(predicate, "epoch"));

    self->predicate = json_is_object(predicate) ? predicate : NULL;
    /* It becomes a part of names: what is none is not looked for. */
    self->tenant = tenant && bal_name_valid(tenant) ? tenant : "";
    self->epoch = epoch > 0 ? (uint64_t)epoch : 0;
}

int bal_proof_verify(const bal_proof *self, bal_store *store,
                     const bal_key *key, bal_finding_fn *fn, void *ctx,
                     bal_verdict *verdict, bal_error *err)
{
    BAL_LOCAL(bal_verification)
    all = {
        .proof = self,
        .store = store,
        .key = key,
        .fn = fn,
        .ctx = ctx,
        .verdict = verdict,
    };
    unsigned has = store ? BAL_CHECK_STORE : 0;
    int rc = 0;

    *verdict = (bal_verdict){ 0 };
    if (!store && !self->bundled)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "an envelope alone does not say whether the "
                                 "log has it"),
                        "'ballast proofs export' writes a bundle that does");
    begin(&all);
    if (store)
        rc = expire_cache(store, err);
    if (rc)
        return rc;
    if (all.predicate && all.tenant[0])
        has |= BAL_CHECK_STATEMENT;
    if (store && (has & BAL_CHECK_STATEMENT))
        rc = bal_verify_list(&all, err);
    return rc ? rc : run(&all, has, err);
}
