/* What is told of the log to others: bundles, checkpoints, proofs of inclusion
 * and consistency. */
#include "store/proof_log.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/note.h"
#include "core/str.h"
#include "store/statement.h"
#include "store/trust.h"

/* ---- the log as it is ---------------------------------------------------- */

int bal_log_state_load(bal_log_state *out, bal_store *store, bal_error *err)
{
    int rc = bal_store_identity(&out->store, store, err);
    if (!rc)
        rc = bal_log_origin(&out->origin, bal_buf_string(&out->store), err);
    if (!rc)
        rc = bal_graph_log_size(store->graph, &out->size, err);
    if (!rc)
        rc = bal_graph_log_leaves(store->graph, out->size, &out->leaves, err);
    return rc;
}

void bal_log_state_done(bal_log_state *self)
{
    bal_buf_done(&self->store);
    bal_buf_done(&self->origin);
    bal_buf_done(&self->leaves);
}

const bal_sha256 *bal_log_leaves(const bal_log_state *self)
{
    return (const bal_sha256 *)(const void *)self->leaves.data;
}

/* ---- heads -------------------------------------------------------------- */

/* The last checkpoint that was kept. */
typedef struct last_head {
    bal_buf text;
    uint64_t size; /* 0: there is none */
} last_head;

static void last_head_done(last_head *self)
{
    bal_buf_done(&self->text);
}

static int take_head(void *ctx, const bal_proof_row *row, bal_error *err)
{
    last_head *self = ctx;

    if (!row->checkpoint)
        return 0;
    bal_buf_clear(&self->text);
    self->size = row->index + 1;
    return bal_buf_text(&self->text, row->checkpoint, err);
}

static int give(char **out, const bal_buf *text, bal_error *err)
{
    *out = bal_str_copy(bal_buf_string(text));
    return *out ? 0 : bal_fail_memory(err, "a text");
}

/* The head as it is now, signed. */
static int sign_head(char **out, bal_store *store, const bal_key *key,
                     bal_error *err)
{
    BAL_LOCAL(bal_log_state) log = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    bool any = false, trusted = false;
    int rc = bal_trust_any(store, &any, err);
    if (!rc)
        rc = bal_trusts(store, key, &trusted, err);
    if (!rc && any && !trusted)
        rc = bal_hint(err,
                      bal_fail(err, BAL_ECONFLICT,
                               "the store does not trust the key '%.20s…'",
                               bal_key_id(key)),
                      "'ballast key trust FILE' makes it one that is trusted");
    if (!rc)
        rc = bal_log_state_load(&log, store, err);
    if (rc)
        return rc;

    bal_merkle_head head = { .size = log.size };
    rc = bal_merkle_root(&head.root, bal_log_leaves(&log), (size_t)log.size,
                         err);
    if (!rc)
        rc =
            bal_note_write(&text, bal_buf_string(&log.origin), &head, key, err);
    return rc ? rc : give(out, &text, err);
}

int bal_proof_checkpoint(char **out, bal_store *store, const bal_key *key,
                         bal_error *err)
{
    BAL_LOCAL(last_head) last = { 0 };

    if (key)
        return sign_head(out, store, key, err);
    int rc = bal_graph_proofs(store->graph, NULL, take_head, &last, err);
    if (rc)
        return rc;
    if (!last.size)
        return bal_hint(
            err, bal_fail(err, BAL_ENOTFOUND, "nobody has signed the log yet"),
            "--key FILE signs it");
    return give(out, &last.text, err);
}

/* ---- JSON --------------------------------------------------------------- */

static void put_hash(bal_json *json, const char *key, const bal_sha256 *hash)
{
    char hex[65];

    bal_sha256_hex(hex, hash);
    if (key)
        bal_json_key(json, key);
    bal_json_string(json, hex);
}

static void put_path(bal_json *json, const char *key,
                     const bal_merkle_path *path)
{
    bal_json_key(json, key);
    bal_json_array(json);
    for (size_t i = 0; i < path->count; i++)
        put_hash(json, NULL, &path->hashes[i]);
    bal_json_close(json);
}

static void put_text(bal_json *json, const char *key, const char *text)
{
    bal_json_key(json, key);
    bal_json_string(json, text);
}

static void put_number(bal_json *json, const char *key, uint64_t number)
{
    bal_json_key(json, key);
    bal_json_u64(json, number);
}

static int finish(char **out, bal_json *json, bal_buf *text, bal_error *err)
{
    bal_json_close(json);
    int rc = bal_json_end(json, err);
    if (!rc)
        rc = bal_buf_text(text, "\n", err);
    return rc ? rc : give(out, text, err);
}

/* ---- bundles ------------------------------------------------------------ */

/* The trusted key that the statement names. */
typedef struct signer {
    const char *id;
    bal_buf pem;
} signer;

static void signer_done(signer *self)
{
    bal_buf_done(&self->pem);
}

static int find_signer(void *ctx, const bal_key *key, bal_error *err)
{
    signer *self = ctx;

    if (!self->id || strcmp(bal_key_id(key), self->id) != 0 ||
        !bal_key_public(key))
        return 0;
    int rc = bal_buf_text(&self->pem, bal_key_public(key), err);
    return rc ? rc : BAL_ROW_STOP;
}

typedef struct bundling {
    bal_log_state log;
    last_head head;
    signer signer;
    bal_merkle_path path;
    uint64_t size;
} bundling;

static void bundling_done(bundling *self)
{
    bal_log_state_done(&self->log);
    last_head_done(&self->head);
    signer_done(&self->signer);
}

static int gather(bundling *self, bal_store *store, const bal_proof *proof,
                  bal_error *err)
{
    uint64_t index = proof->row.index;
    int rc = bal_log_state_load(&self->log, store, err);
    if (!rc && proof->row.checkpoint)
        rc = take_head(&self->head, &proof->row, err);
    else if (!rc)
        rc = bal_graph_proofs(store->graph, NULL, take_head, &self->head, err);
    if (!rc)
        rc = bal_trust_each(store, find_signer, &self->signer, err);
    if (rc)
        return rc;

    /* Under its own head, for whoever believes its key may know no other. One
     * that was not signed by a pair has none: under the last that covers it, or
     * in the log as it is. */
    if (self->head.size <= index)
        self->head.size = 0;
    self->size = self->head.size ? self->head.size : self->log.size;
    return bal_merkle_inclusion(&self->path, bal_log_leaves(&self->log),
                                (size_t)self->size, (size_t)index, err);
}

static void put_log(bal_json *json, const bundling *self, uint64_t index)
{
    bool headed = self->head.size != 0;

    bal_json_key(json, "log");
    bal_json_object(json);
    put_text(json, "origin", bal_buf_string(&self->log.origin));
    put_number(json, "index", index);
    put_number(json, "size", self->size);
    put_path(json, "inclusion", &self->path);
    put_text(json, "checkpoint",
             headed ? bal_buf_string(&self->head.text) : NULL);
    bal_json_close(json);
}

/* Only what is in the store's log can be told about with its place there. */
static int in_log(const bal_proof *proof, bal_error *err)
{
    if (proof->in_store)
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "a proof out of a file has no place in the log");
}

int bal_proof_bundle(char **out, bal_store *store, const bal_proof *proof,
                     bal_error *err)
{
    BAL_LOCAL(bundling) parts = { .signer = { .id = proof->info.key_id } };
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;
    int rc = in_log(proof, err);
    if (!rc && proof->why.code)
        rc = bal_fail(err, BAL_ECORRUPT, "%s", proof->why.text);
    if (!rc)
        rc = gather(&parts, store, proof, err);
    if (rc)
        return rc;

    bal_json_begin(&json, &text, 0);
    bal_json_object(&json);
    put_text(&json, "schema", BAL_PROOF_SCHEMA);
    bal_json_key(&json, "envelope");
    bal_json_raw(&json, bal_buf_string(&proof->envelope));
    put_log(&json, &parts, proof->row.index);
    put_text(&json, "public_key",
             parts.signer.pem.len ? bal_buf_string(&parts.signer.pem) : NULL);
    return finish(out, &json, &text, err);
}

/* ---- proofs about the log ----------------------------------------------- */

static int prove_inclusion(bal_json *json, const bal_log_state *log,
                           const bal_proof *proof, uint64_t to, bal_error *err)
{
    bal_merkle_path path;
    int rc = in_log(proof, err);
    if (rc)
        return rc;
    if (proof->row.index >= to)
        return bal_fail(err, BAL_EINVAL, "the first %llu entries lack it",
                        (unsigned long long)to);
    rc = bal_merkle_inclusion(&path, bal_log_leaves(log), (size_t)to,
                              (size_t)proof->row.index, err);
    if (rc)
        return rc;
    put_number(json, "index", proof->row.index);
    put_hash(json, "leaf", &bal_log_leaves(log)[proof->row.index]);
    put_path(json, "inclusion", &path);
    return 0;
}

static int prove_consistency(bal_json *json, const bal_log_state *log,
                             uint64_t from, uint64_t to, bal_error *err)
{
    bal_merkle_path path;
    bal_sha256 root;
    int rc = bal_merkle_consistency(&path, bal_log_leaves(log), (size_t)to,
                                    (size_t)from, err);
    if (!rc)
        rc = bal_merkle_root(&root, bal_log_leaves(log), (size_t)from, err);
    if (rc)
        return rc;
    put_number(json, "from", from);
    put_hash(json, "from_root", &root);
    put_path(json, "consistency", &path);
    return 0;
}

int bal_proof_prove(char **out, bal_store *store, const bal_proof *proof,
                    uint64_t from, uint64_t to, bal_error *err)
{
    BAL_LOCAL(bal_log_state) log = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_sha256 root;
    bal_json json;
    int rc = bal_log_state_load(&log, store, err);
    if (rc)
        return rc;

    to = to ? to : log.size;
    if (to > log.size || from > to || (!from && !proof))
        return bal_fail(err, BAL_EINVAL, "the log has %llu entries",
                        (unsigned long long)log.size);
    rc = bal_merkle_root(&root, bal_log_leaves(&log), (size_t)to, err);
    if (rc)
        return rc;
    bal_json_begin(&json, &text, 0);
    bal_json_object(&json);
    put_text(&json, "schema", "ballast/log-proof/1");
    put_text(&json, "origin", bal_buf_string(&log.origin));
    put_number(&json, "size", to);
    put_hash(&json, "root", &root);
    if (proof)
        rc = prove_inclusion(&json, &log, proof, to, err);
    if (!rc && from)
        rc = prove_consistency(&json, &log, from, to, err);
    return rc ? rc : finish(out, &json, &text, err);
}
