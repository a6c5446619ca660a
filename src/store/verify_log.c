/* The proof in the log: in the store's own, or as a bundle tells it. */
#include <string.h>

#include "core/error.h"
#include "core/note.h"
#include "store/statement.h"
#include "store/verify.h"

static int problem(bal_verification *self, const char *text, bal_error *err)
{
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err, "%s", text);
}

static const char *log_text(const json_t *log, const char *key)
{
    const char *text = json_string_value(json_object_get(log, key));

    return text ? text : "";
}

int bal_verify_origin(bal_verification *self, bal_error *err)
{
    const char *ours = bal_buf_string(&self->log.store);
    const json_t *log = json_object_get(self->predicate, "log");
    int rc = 0;

    if (strcmp(bal_proof_store(self->proof), ours) != 0)
        rc = bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                             "it is of store '%.64s', this is '%s'",
                             bal_proof_store(self->proof), ours);
    if (!rc &&
        strcmp(log_text(log, "origin"), bal_buf_string(&self->log.origin)) != 0)
        rc = bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                             "it is of log '%.100s', this store's is '%s'",
                             log_text(log, "origin"),
                             bal_buf_string(&self->log.origin));
    return rc;
}

/* ---- checkpoints -------------------------------------------------------- */

typedef struct note_check {
    const bal_note *note;
    bool good;
} note_check;

static int try_key(void *ctx, const bal_key *key, bal_error *err)
{
    note_check *self = ctx;
    uint8_t bytes[32];

    /* Checkpoints are signed by pairs alone. */
    if (!bal_key_public_bytes(key, bytes))
        return 0;
    int rc = bal_note_verify(self->note, key, &self->good, err);
    return rc || !self->good ? rc : BAL_ROW_STOP;
}

static int note_signed(bal_verification *self, const bal_note *note, bool own,
                       bool *good, bal_error *err)
{
    note_check check = { note, false };
    int rc = own ? bal_verify_keys(self, try_key, &check, err)
                 : bal_verify_log_keys(self, try_key, &check, err);

    *good = check.good;
    return rc;
}

/* What must be known of a head. */
typedef struct head_wanted {
    const char *text;
    const char *origin;
    uint64_t size;
    const bal_sha256 *root; /* NULL: told by the head alone */
    bool by_key;            /* one of the keys that count signed it */
    bool own;               /* it is the proof's own */
} head_wanted;

/* Tells what is wrong with a checkpoint. */
static int check_head(bal_verification *self, const head_wanted *wanted,
                      bal_note *note, bal_error *err)
{
    const bal_bytes text = { wanted->text, strlen(wanted->text) };
    unsigned long long size = wanted->size;
    bool good = true;
    int rc = bal_note_read(note, text, err);

    if (rc && rc != BAL_ECORRUPT)
        return rc;
    if (rc)
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the checkpoint at %llu cannot be read", size);
    if (strcmp(note->origin, wanted->origin) != 0 ||
        note->head.size != wanted->size)
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the checkpoint at %llu is of another log",
                               size);
    if (wanted->root && !bal_sha256_equal(&note->head.root, wanted->root))
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "the log was changed: its first %llu entries "
                               "do not give the root of their checkpoint",
                               size);
    /* That there is no key is told with the signature. */
    if (wanted->by_key && self->keys)
        rc = note_signed(self, note, wanted->own, &good, err);
    if (rc || good)
        return rc;
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                           "the checkpoint at %llu is not signed by a trusted "
                           "key",
                           size);
}

/* ---- the store's log ---------------------------------------------------- */

typedef struct log_walk {
    bal_verification *verification;
    uint64_t index; /* of the proof */
    bal_merkle_tree tree;
    bool headed; /* the proof's own checkpoint is there */
} log_walk;

static int walk_row(void *ctx, const bal_proof_row *row, bal_error *err)
{
    log_walk *self = ctx;
    bal_verification *verification = self->verification;
    BAL_LOCAL(bal_note) note = { 0 };
    bal_sha256 root;

    int rc = bal_merkle_add(&self->tree, &row->leaf, err);
    if (rc || !row->checkpoint)
        return rc;
    if (self->tree.size != row->index + 1)
        return bal_verify_tell(verification, BAL_FINDING_PROBLEM, err,
                               "the log lacks an entry before %llu",
                               (unsigned long long)row->index);
    rc = bal_merkle_tree_root(&root, &self->tree, err);
    if (rc)
        return rc;
    const head_wanted wanted = {
        .text = row->checkpoint,
        .origin = bal_buf_string(&verification->log.origin),
        .size = self->tree.size,
        .root = &root,
        .by_key = true,
        .own = row->index == self->index,
    };
    if (row->index == self->index)
        self->headed = true;
    return check_head(verification, &wanted, &note, err);
}

/* The row that the store has of it. */
static const bal_proof *filed(const bal_verification *self)
{
    return self->proof->in_store ? self->proof : self->filed;
}

int bal_verify_log(bal_verification *self, bal_error *err)
{
    const bal_proof *own = filed(self);
    log_walk walk = { .verification = self };
    bool pair = !strcmp(self->proof->info.algorithm, "ed25519");

    if (!own)
        return problem(self, "the store's log has no such proof", err);
    walk.index = own->row.index;
    if (walk.index >= self->log.size ||
        !bal_sha256_equal(&bal_log_leaves(&self->log)[walk.index],
                          &self->proof->leaf))
        return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                               "entry %llu of the log is not this proof",
                               (unsigned long long)walk.index);
    int rc = bal_graph_proofs(self->store->graph, NULL, walk_row, &walk, err);
    if (rc || walk.headed || !pair)
        return rc;
    return bal_verify_tell(self, BAL_FINDING_PROBLEM, err,
                           "the log has no checkpoint at %llu",
                           (unsigned long long)walk.index + 1);
}

/* ---- the row ------------------------------------------------------------ */

/* A proof out of a file is looked up. */
static int look_up(bal_verification *self, bal_error *err)
{
    bal_error why;
    int rc = bal_proof_open(&self->filed, self->store,
                            self->proof->info.attestation, &why);

    if (!rc || rc == BAL_ENOTFOUND)
        return 0; /* told with the log */
    if (err)
        *err = why;
    return rc;
}

int bal_verify_row(bal_verification *self, bal_error *err)
{
    int rc = self->proof->in_store ? 0 : look_up(self, err);
    const bal_proof *own = filed(self);

    if (rc || !own)
        return rc;
    const bal_proof_row *row = &own->row;
    const bal_proof_info *info = &self->proof->info;
    if (!strcmp(row->tenant, self->tenant) && row->epoch == self->epoch &&
        row->index == info->log_index &&
        row->completed_at == info->completed_at)
        return 0;
    return problem(self,
                   "tenant, index, epoch or time in the database are not "
                   "those of the statement",
                   err);
}

/* ---- a bundle ----------------------------------------------------------- */

static int read_path(bal_merkle_path *out, const json_t *array)
{
    size_t count = json_array_size(array);

    if (!json_is_array(array) || count > BAL_MERKLE_PATH)
        return BAL_ECORRUPT;
    for (size_t i = 0; i < count; i++) {
        const char *hex = json_string_value(json_array_get(array, i));
        if (!hex || bal_sha256_parse(&out->hashes[i], hex, NULL))
            return BAL_ECORRUPT;
    }
    out->count = count;
    return 0;
}

static bool counts(const json_t *log, uint64_t *index, uint64_t *size)
{
    json_int_t i = json_integer_value(json_object_get(log, "index"));
    json_int_t n = json_integer_value(json_object_get(log, "size"));

    *index = (uint64_t)i;
    *size = (uint64_t)n;
    return i >= 0 && n > i;
}

static int check_inclusion(bal_verification *self, const bal_note *note,
                           uint64_t index, bal_error *err)
{
    bal_merkle_path path = { .count = 0 };
    bool good = false;
    int rc = read_path(&path, json_object_get(self->proof->log, "inclusion"));

    if (!rc)
        rc = bal_merkle_check_inclusion(&path, &self->proof->leaf, index,
                                        &note->head, &good, err);
    if (rc && rc != BAL_ECORRUPT && rc != BAL_EINVAL)
        return rc;
    if (!rc && good)
        return 0;
    return problem(self, "the bundle does not show that the log has it", err);
}

/* The store's log must begin with what the bundle's head is of. */
static int check_against_store(bal_verification *self, const bal_note *note,
                               bal_error *err)
{
    bal_sha256 root = { { 0 } };
    int rc = 0;

    if (!self->store || strcmp(bal_proof_store(self->proof),
                               bal_buf_string(&self->log.store)) != 0)
        return 0;
    if (note->head.size <= self->log.size)
        rc = bal_merkle_root(&root, bal_log_leaves(&self->log),
                             (size_t)note->head.size, err);
    if (rc || bal_sha256_equal(&root, &note->head.root))
        return rc;
    return problem(
        self, "the store's log does not begin as the bundle's head says", err);
}

/* Offline, the head is all that says so: it must be there. */
int bal_verify_bundle(bal_verification *self, bal_error *err)
{
    const json_t *log = self->proof->log;
    BAL_LOCAL(bal_buf) origin = { 0 };
    BAL_LOCAL(bal_note) note = { 0 };
    uint64_t index = 0;
    uint64_t problems = self->verdict->problems;

    if (!self->proof->bundled)
        return 0;
    bool pair = !strcmp(self->proof->info.algorithm, "ed25519");
    head_wanted wanted = { .text = log_text(log, "checkpoint"),
                           .by_key = pair,
                           .own = true };
    int rc = bal_log_origin(&origin, bal_proof_store(self->proof), err);
    if (rc)
        return rc;
    wanted.origin = bal_buf_string(&origin);
    if (!counts(log, &index, &wanted.size) ||
        index != self->proof->info.log_index ||
        strcmp(log_text(log, "origin"), wanted.origin) != 0)
        return problem(self, "the bundle's log is not the statement's", err);
    if (!wanted.text[0] && pair)
        return problem(self, "the bundle has no checkpoint", err);
    if (!wanted.text[0])
        return bal_verify_tell(self, BAL_FINDING_NOTE, err,
                               "nobody signed the log's head: that the log "
                               "has it cannot be told from this");
    rc = check_head(self, &wanted, &note, err);
    if (rc || self->verdict->problems != problems)
        return rc;
    rc = check_inclusion(self, &note, index, err);
    return rc ? rc : check_against_store(self, &note, err);
}
