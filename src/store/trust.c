/* The keys that a store trusts. The first that signs is trusted from then on,
 * others by `ballast key trust` alone: whoever can write to the store cannot
 * sign in its name later. */
#include "store/trust.h"

#include <string.h>

#include "core/base64.h"
#include "core/error.h"
#include "graph/proofs.h"
#include "store/forget_finish.h"

#define SETTING "trusted_keys"

/* The words, as they are recorded; *there false where nothing is. */
static int read_words(bal_buf *to, bool *there, bal_store *self, bal_error *err)
{
    bal_error why;
    int rc = bal_graph_setting(self->graph, SETTING, to, &why);

    *there = !rc;
    if (rc && rc != BAL_ENOTFOUND)
        return bal_fail(err, rc, "%s", why.text);
    return 0;
}

/* What was signed once was trusted then: a setting that is gone since is
 * damage. */
static int load(bal_buf *to, bal_store *self, bal_error *err)
{
    bool there = false;
    bool any = false;
    int rc = read_words(to, &there, self, err);
    if (rc || there)
        return rc;
    rc = bal_graph_log_signed(self->graph, &any, err);
    if (rc || !any)
        return rc;
    return bal_hint(
        err,
        bal_fail(err, BAL_ECORRUPT, "the keys that the store trusts are gone"),
        "restore the database; its log was signed");
}

/* Append the word that stands for a key. */
static int word_of(bal_buf *to, const bal_key *key, bal_error *err)
{
    uint8_t bytes[32];

    if (!bal_key_public_bytes(key, bytes))
        return bal_buf_text(to, bal_key_id(key), err);
    return bal_base64_encode(to, bytes, sizeof(bytes), err);
}

/* The word that starts at or behind *at, and its length; 0 at the end. */
static size_t next_word(const char **at)
{
    *at += strspn(*at, " ");
    return strcspn(*at, " ");
}

static bool has_word(const char *words, const char *word)
{
    size_t len;

    for (const char *at = words; (len = next_word(&at)) > 0; at += len) {
        if (len == strlen(word) && !memcmp(at, word, len))
            return true;
    }
    return false;
}

int bal_trust_any(bal_store *self, bool *any, bal_error *err)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    int rc = load(&words, self, err);
    if (rc)
        return rc;
    const char *at = bal_buf_string(&words);
    *any = next_word(&at) > 0;
    return 0;
}

int bal_trusts(bal_store *self, const bal_key *key, bool *trusted,
               bal_error *err)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    BAL_LOCAL(bal_buf) word = { 0 };
    int rc = load(&words, self, err);
    if (rc)
        return rc;
    rc = word_of(&word, key, err);
    if (rc)
        return rc;
    *trusted = has_word(bal_buf_string(&words), bal_buf_string(&word));
    return 0;
}

int bal_trusts_secret(bal_store *self, const char *id, bool *trusted,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    int rc = load(&words, self, err);

    *trusted = !rc && strchr(id, ':') && has_word(bal_buf_string(&words), id);
    return rc;
}

int bal_trust_add(bal_store *self, const bal_key *key, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    BAL_LOCAL(bal_buf) words = { 0 };
    BAL_LOCAL(bal_buf) word = { 0 };
    bool there = false;
    int rc = bal_graph_begin(&tx, self->graph, BAL_TX_WRITE, err);
    if (rc)
        return rc;

    rc = read_words(&words, &there, self, err);
    if (!rc)
        rc = word_of(&word, key, err);
    if (rc || has_word(bal_buf_string(&words), bal_buf_string(&word)))
        return rc;
    rc = bal_buf_format(&words, err, "%s%s", words.len ? " " : "",
                        bal_buf_string(&word));
    if (rc)
        return rc;
    rc = bal_graph_set(self->graph, SETTING, bal_buf_string(&words), err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}

/* From here on nobody believes an unsigned plan: those that wait for a reader
 * are finished before. */
int bal_key_trust(bal_store *store, const bal_key *key, bal_error *err)
{
    BAL_OWN(bal_db_lock) lock = NULL;
    bool pending = false;
    int rc = bal_graph_journal_any(store->graph, &pending, err);
    if (!rc && pending)
        rc = bal_store_lock(&lock, store, BAL_LOCK_EXCLUSIVE, err);
    if (!rc && pending)
        rc = bal_forget_resume_with(store, NULL, 0, err);
    return rc ? rc : bal_trust_add(store, key, err);
}

/* The key of a word; NULL in *out for a secret that is not at hand. */
static int key_of(bal_key **out, const char *word, size_t len, bal_error *err)
{
    BAL_LOCAL(bal_buf) bytes = { 0 };

    *out = NULL;
    if (memchr(word, ':', len)) {
        BAL_OWN(bal_key) key = NULL;
        int rc = bal_key_environment(&key, err);
        if (!rc && key && strlen(bal_key_id(key)) == len &&
            !memcmp(bal_key_id(key), word, len))
            *out = BAL_TAKE(key);
        return 0; /* what else the variable holds is not asked for */
    }
    int rc = bal_base64_decode(&bytes, word, len, err);
    if (!rc && bytes.len != 32)
        rc = bal_fail(err, BAL_ECORRUPT, "%zu bytes are no key", bytes.len);
    if (rc)
        return bal_within(err, rc, "setting '" SETTING "'");
    return bal_key_of_public(out, (const uint8_t *)bytes.data, err);
}

int bal_trust_each(bal_store *self, bal_trust_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(bal_buf) words = { 0 };
    size_t len;
    int rc = load(&words, self, err);
    if (rc)
        return rc;

    const char *at = bal_buf_string(&words);
    for (; (len = next_word(&at)) > 0; at += len) {
        BAL_OWN(bal_key) key = NULL;
        rc = key_of(&key, at, len, err);
        if (!rc && key)
            rc = fn(ctx, key, err);
        if (rc)
            return rc == BAL_ROW_STOP ? 0 : rc;
    }
    return 0;
}
