/* Proofs: from a row, a bundle or an envelope to a handle, and what it tells.
 * Nothing here says whether to believe it; that is verify.c. */
#include "store/proof.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "store/named_id.h"
#include "store/statement.h"

#define FILE_MAX ((size_t)256 << 20)
#define LOG_MAX  ((size_t)256 << 10)

void bal_proof_free(bal_proof *self)
{
    if (!self)
        return;
    bal_buf_done(&self->envelope);
    bal_buf_done(&self->payload);
    bal_dsse_done(&self->dsse);
    json_decref(self->statement);
    json_decref(self->log);
    bal_arena_done(&self->arena);
    free(self);
}

const bal_proof_info *bal_proof_info_of(const bal_proof *self)
{
    return &self->info;
}

const json_t *bal_proof_predicate(const bal_proof *self)
{
    return json_object_get(self->statement, "predicate");
}

static const char *text_of(const json_t *object, const char *key,
                           const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : fallback;
}

const char *bal_proof_store(const bal_proof *self)
{
    return text_of(bal_proof_predicate(self), "store", "");
}

static uint64_t number_of(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));

    return number > 0 ? (uint64_t)number : 0;
}

/* ---- making ------------------------------------------------------------- */

/* What the statement tells of itself. */
static void fill(bal_proof *self, const json_t *predicate)
{
    bal_proof_info *info = &self->info;
    const json_t *signing = json_object_get(predicate, "signing");
    const char *at = text_of(predicate, "completed_at", NULL);

    info->tenant = text_of(predicate, "tenant", "");
    info->reason = text_of(predicate, "reason", "");
    info->algorithm = text_of(signing, "algorithm", "none");
    info->key_id = text_of(signing, "key_id", NULL);
    info->log_index = number_of(json_object_get(predicate, "log"), "index");
    info->commits = json_array_size(json_object_get(predicate, "commits"));
    info->manifests = json_array_size(json_object_get(predicate, "manifests"));
    info->blocks = json_array_size(json_object_get(predicate, "blocks"));
    info->bytes_freed = number_of(predicate, "bytes_freed");
    info->revoked_grants =
        json_array_size(json_object_get(predicate, "grants_revoked"));
    if (!bal_statement_time(&info->completed_at, at))
        info->completed_at = 0;
    if (self->why.code)
        return;
    info->statement = bal_buf_string(&self->payload);
    info->envelope = bal_buf_string(&self->envelope);
}

/* What the envelope holds, as far as it can be read. */
static int read_envelope(bal_proof *self, bal_error *err)
{
    const bal_bytes text = { self->envelope.data, self->envelope.len };
    int rc = bal_dsse_read(&self->dsse, text, err);
    if (rc)
        return rc;

    rc = bal_buf_append(&self->payload, self->dsse.payload.data,
                        self->dsse.payload.len, err);
    if (rc)
        return rc;
    const bal_bytes payload = { self->payload.data, self->payload.len };
    rc = bal_sha256_of(&self->attestation, &payload, 1, err);
    if (!rc)
        rc = bal_merkle_leaf(&self->leaf, payload, err);
    if (!rc)
        rc = bal_statement_read(&self->statement, payload, err);
    return rc;
}

static int make(bal_proof **out, bal_bytes envelope, bal_error *err)
{
    BAL_OWN(bal_proof) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "a proof");
    int rc = bal_buf_append(&self->envelope, envelope.data, envelope.len, err);
    if (rc)
        return rc;

    rc = read_envelope(self, &self->why);
    if (rc && rc != BAL_ECORRUPT && rc != BAL_EINVAL) {
        if (err)
            *err = self->why;
        return rc;
    }
    bal_sha256_hex(self->info.attestation, &self->attestation);
    fill(self, bal_proof_predicate(self));
    *out = BAL_TAKE(self);
    return 0;
}

int bal_proof_of_plan(bal_proof **out, json_t *plan, bal_error *err)
{
    BAL_OWN(bal_proof) self = calloc(1, sizeof(*self));
    BAL_OWN(json_t) shown = bal_json_copy(plan);
    if (!self || !shown)
        return bal_fail_memory(err, "a plan");

    json_object_del(shown, "private");
    int rc = bal_json_canonical(&self->payload, shown, err);
    if (rc)
        return rc;
    self->statement = json_pack("{s:O}", "predicate", shown);
    if (!self->statement)
        return bal_fail_memory(err, "a plan");
    fill(self, shown);
    self->info.envelope = NULL;
    *out = BAL_TAKE(self);
    return 0;
}

/* ---- from the store ----------------------------------------------------- */

static int keep_row(bal_proof *self, const bal_proof_row *row, bal_error *err)
{
    bal_proof_row *kept = &self->row;
    size_t len = strlen(row->tenant);

    *kept = *row;
    kept->envelope = (bal_bytes){ 0 };
    kept->tenant = bal_arena_copy(&self->arena, row->tenant, len);
    if (row->checkpoint)
        kept->checkpoint = bal_arena_copy(&self->arena, row->checkpoint,
                                          strlen(row->checkpoint));
    if (!kept->tenant || (row->checkpoint && !kept->checkpoint))
        return bal_fail_memory(err, "a proof");
    self->in_store = true;
    /* Under which it is asked for, whatever it says. */
    bal_sha256_hex(self->info.attestation, &row->attestation);
    if (!self->statement) {
        self->info.tenant = kept->tenant;
        self->info.log_index = row->index;
        self->info.completed_at = row->completed_at;
    }
    return 0;
}

static int of_row(bal_proof **out, const bal_proof_row *row, bal_error *err)
{
    BAL_OWN(bal_proof) self = NULL;
    int rc = make(&self, row->envelope, err);
    if (!rc)
        rc = keep_row(self, row, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

static int take_row(void *ctx, const bal_proof_row *row, bal_error *err)
{
    return of_row(ctx, row, err);
}

int bal_proof_open(bal_proof **out, bal_store *store, const char *attestation,
                   bal_error *err)
{
    bal_sha256 asked;
    bal_proof *found = NULL;
    int rc = bal_sha256_parse(&asked, attestation, NULL);
    if (rc)
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL, "'%s' is not an attestation",
                                 attestation),
                        "the 64 hex digits that 'ballast proofs' lists, or "
                        "a file");

    rc = bal_graph_proof(store->graph, &asked, take_row, &found, err);
    if (rc == BAL_ENOTFOUND)
        return bal_hint(
            err, bal_fail(err, BAL_ENOTFOUND, "no proof '%s'", attestation),
            "'ballast proofs' lists them");
    if (rc) {
        bal_proof_free(found);
        return rc;
    }
    *out = found;
    return 0;
}

/* Which there are first, then one at a time: fn may take its time, and all at
 * once may be much. */
static int keep_attestation(void *ctx, const bal_proof_row *row, bal_error *err)
{
    return bal_buf_append(ctx, &row->attestation, sizeof(row->attestation),
                          err);
}

int bal_proof_each(bal_store *store, bal_tenant *tenant, bal_proof_fn *fn,
                   void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_buf) all = { 0 };
    bal_sha256 attestation;
    int rc = bal_graph_proofs(store->graph, tenant ? tenant->name : NULL,
                              keep_attestation, &all, err);

    for (size_t at = 0; at < all.len && !rc; at += sizeof(attestation)) {
        BAL_OWN(bal_proof) proof = NULL;
        memcpy(&attestation, all.data + at, sizeof(attestation));
        rc = bal_graph_proof(store->graph, &attestation, take_row, &proof, err);
        if (!rc && fn(ctx, proof))
            break;
    }
    return rc;
}

/* ---- from a file -------------------------------------------------------- */

/* The members of a bundle, as slices: what is large is not parsed twice. */
typedef struct bundle {
    bal_bytes schema, envelope, log;
} bundle;

static const struct member_row {
    const char *name;
    size_t offset;
} members[] = {
    { "schema", offsetof(bundle, schema) },
    { "envelope", offsetof(bundle, envelope) },
    { "log", offsetof(bundle, log) },
};

static int take_member(bundle *self, bal_scan *scan, const char *key,
                       bal_error *err)
{
    bal_scan_peek(scan);
    size_t start = scan->at;
    int rc = bal_scan_skip(scan, 64, err);

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !rc; i++) {
        bal_bytes *slice = (bal_bytes *)((char *)self + members[i].offset);
        if (strcmp(members[i].name, key) != 0)
            continue;
        if (slice->data)
            return bal_fail(err, BAL_ECORRUPT, "%s: '%s' is there twice",
                            scan->what, key);
        *slice = (bal_bytes){ scan->data + start, scan->at - start };
    }
    return rc;
}

static bool is_bundle(const bundle *self)
{
    static const char word[] = "\"" BAL_PROOF_SCHEMA "\"";

    return self->schema.len == sizeof(word) - 1 &&
           !memcmp(self->schema.data, word, sizeof(word) - 1);
}

static int read_bundle(bundle *out, bal_arena *arena, const bal_buf *text,
                       const char *path, bal_error *err)
{
    bal_scan scan = { text->data, text->len, 0, arena, path };
    bool more = false;
    int rc = bal_scan_open(&scan, '{', err);
    if (rc)
        return rc;

    rc = bal_scan_more(&scan, '}', true, &more, err);
    while (!rc && more) {
        const char *key;
        size_t len;
        rc = bal_scan_key(&scan, &key, &len, err);
        if (!rc)
            rc = take_member(out, &scan, key, err);
        if (!rc)
            rc = bal_scan_more(&scan, '}', false, &more, err);
    }
    return rc ? rc : bal_scan_end(&scan, err);
}

/* The log is small; what is not is no log. */
static int take_log(bal_proof *self, const bundle *found, bal_error *err)
{
    self->bundled = true;
    if (found->log.len > LOG_MAX)
        return bal_fail(err, BAL_ECORRUPT, "its log is larger than 256 KiB");
    if (!found->log.len)
        return 0;
    return bal_json_parse(&self->log, found->log.data, found->log.len,
                          "its log", err);
}

static int of_text(bal_proof **out, const bal_buf *text, const char *path,
                   bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    BAL_OWN(bal_proof) self = NULL;
    bundle found = { 0 };
    int rc = read_bundle(&found, &arena, text, path, err);
    if (rc)
        return rc;

    const bal_bytes whole = { text->data, text->len };
    rc = make(&self, is_bundle(&found) ? found.envelope : whole, err);
    if (!rc && self->dsse.payload.data == NULL) {
        if (err)
            *err = self->why;
        return bal_within(err, BAL_ECORRUPT, "'%s' is not a proof", path);
    }
    if (!rc && is_bundle(&found))
        rc = bal_within(err, take_log(self, &found, err), "'%s'", path);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

int bal_proof_load(bal_proof **out, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(bal_file) file = NULL;
    int rc = bal_file_open(&file, path, err);
    if (rc)
        return rc;

    if (file->size > FILE_MAX)
        return bal_fail(err, BAL_ECORRUPT,
                        "'%s' has %llu bytes, a proof 256 MiB at most", path,
                        (unsigned long long)file->size);
    rc = bal_buf_reserve(&text, (size_t)file->size + 1, err);
    if (rc)
        return rc;
    rc = bal_file_read(file, 0, text.data, (size_t)file->size, err);
    if (rc)
        return rc;
    text.len = (size_t)file->size;
    text.data[text.len] = '\0';
    return of_text(out, &text, path, err);
}

/* ---- what it lists ------------------------------------------------------ */

int bal_proof_views(const bal_proof *self, bal_view_fn *fn, void *ctx,
                    bal_error *err)
{
    const json_t *views =
        json_object_get(bal_proof_predicate(self), "broken_views");

    for (size_t i = 0; i < json_array_size(views); i++) {
        bal_named_id view;
        int rc = bal_named_id_parse(
            &view, json_string_value(json_array_get(views, i)), err);
        if (rc)
            return bal_within(err, rc, "the proof's broken views");
        if (fn(ctx, view.tenant, &view.id))
            return 0;
    }
    return 0;
}

int bal_proof_retained(const bal_proof *self, bal_retained_fn *fn, void *ctx,
                       bal_error *err)
{
    const json_t *rows = json_object_get(bal_proof_predicate(self), "retained");

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *hex = text_of(row, "id", "");
        bal_id id;
        if (bal_id_parse(&id, hex, NULL))
            return bal_fail(err, BAL_ECORRUPT, "'%.80s' is not an id", hex);
        if (fn(ctx, text_of(row, "kind", ""), &id, text_of(row, "why", "")))
            return 0;
    }
    return 0;
}

void bal_text_free(char *text)
{
    free(text);
}
