/* SHA-256 of models and files too large to be in memory: what .wdelta files
 * know their base and themselves by. */
#include <string.h>

#include "core/arith.h"
#include "core/crypto.h"
#include "core/error.h"
#include "core/pool.h"
#include "wdelta/chain.h"

enum { PIECE = 1 << 20, SLOT = 3 };

typedef struct stream {
    EVP_MD_CTX *context;
    uint8_t *room; /* PIECE bytes, of the thread's */
    bal_work *work;
} stream;

static void stream_done(stream *self)
{
    EVP_MD_CTX_free(self->context);
}

static int stream_open(stream *out, bal_work *work, bal_error *err)
{
    out->work = work;
    out->room = bal_pool_scratch(work, SLOT, PIECE);
    out->context = EVP_MD_CTX_new();
    if (!out->room || !out->context)
        return bal_fail_memory(err, "sha-256");
    if (!EVP_DigestInit_ex(out->context, EVP_sha256(), NULL))
        return bal_fail_crypto(err, "sha-256");
    return 0;
}

static int stream_add(stream *self, const void *data, size_t len,
                      bal_error *err)
{
    if (len && !EVP_DigestUpdate(self->context, data, len))
        return bal_fail_crypto(err, "sha-256");
    return 0;
}

static int stream_end(stream *self, bal_sha256 *out, bal_error *err)
{
    if (!EVP_DigestFinal_ex(self->context, out->bytes, NULL))
        return bal_fail_crypto(err, "sha-256");
    return 0;
}

static int add_entry(stream *self, bal_model *model, size_t i, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);
    int rc = stream_add(self, entry->name, strlen(entry->name), err);

    for (uint64_t at = 0; at < entry->size && !rc; at += PIECE) {
        size_t len = (size_t)bal_min(PIECE, entry->size - at);
        rc = bal_model_read(model, i, at, self->room, len, err);
        if (!rc)
            rc = stream_add(self, self->room, len, err);
        bal_work_advance(self->work, len);
    }
    return rc;
}

int bal_wd_hash(bal_sha256 *out, bal_model *model, const size_t *entries,
                size_t count, bal_work *work, bal_error *err)
{
    BAL_LOCAL(stream) self = { 0 };
    int rc = stream_open(&self, work, err);

    for (size_t i = 0; i < count && !rc; i++)
        rc = add_entry(&self, model, entries[i], err);
    return rc ? rc : stream_end(&self, out, err);
}

int bal_wd_hash_file(bal_sha256 *out, const bal_file *file, uint64_t size,
                     bal_work *work, bal_error *err)
{
    BAL_LOCAL(stream) self = { 0 };
    int rc = stream_open(&self, work, err);

    for (uint64_t at = 0; at < size && !rc; at += PIECE) {
        size_t len = (size_t)bal_min(PIECE, size - at);
        rc = bal_file_read(file, at, self.room, len, err);
        if (!rc)
            rc = stream_add(&self, self.room, len, err);
        bal_work_advance(work, len);
    }
    return rc ? rc : stream_end(&self, out, err);
}
