/* Digests by tile: each is a hash of hashes, so that threads take tiles in any
 * order and one large tensor is hashed by all of them. */
#include "model/digest.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"

void bal_digest_of_tiles(bal_id *out, const bal_tensor *tensor,
                         const bal_id *tiles)
{
    const char *dtype = bal_dtype_name(tensor->dtype);
    uint8_t number[8];
    bal_hash hash;

    bal_hash_init(&hash);
    bal_hash_add(&hash, dtype, strlen(dtype) + 1);
    bal_put32(number, tensor->rank);
    bal_hash_add(&hash, number, 4);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        bal_put64(number, tensor->shape[i]);
        bal_hash_add(&hash, number, 8);
    }
    bal_hash_add(&hash, tiles, bal_tiles(tensor->size) * sizeof(*tiles));
    bal_hash_end(&hash, out);
}

typedef struct digest_job {
    bal_model *model;
    bal_work *work;
    const size_t *entries; /* NULL: all of the model, in order */
    size_t count;
    size_t *starts; /* of an entry's tiles among all; count + 1 of them */
    bal_id *tiles;
} digest_job;

static void digest_job_done(digest_job *self)
{
    free(self->starts);
    free(self->tiles);
}

static size_t entry_at(const digest_job *job, size_t n)
{
    return job->entries ? job->entries[n] : n;
}

static const bal_tensor *tensor_at(const digest_job *job, size_t n)
{
    return bal_model_at(job->model, entry_at(job, n));
}

/* Which of the entries has tile i. */
static size_t owner_of(const digest_job *job, size_t i)
{
    size_t low = 0;
    size_t high = job->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->starts[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int hash_tile(size_t i, void *ctx, bal_error *err)
{
    digest_job *job = ctx;
    size_t n = owner_of(job, i);
    uint64_t offset = (i - job->starts[n]) * BAL_TILE;
    size_t len = (size_t)bal_min(BAL_TILE, tensor_at(job, n)->size - offset);
    void *data = bal_pool_scratch(job->work, 0, len);
    if (!data)
        return bal_fail_memory(err, "hashing a model");

    int rc =
        bal_model_read(job->model, entry_at(job, n), offset, data, len, err);
    if (rc)
        return rc;
    bal_hash_of(&job->tiles[i], data, len);
    bal_work_advance(job->work, len);
    return 0;
}

int bal_digest_entries(bal_id *out, bal_model *model, const size_t *entries,
                       size_t count, bal_work *work, bal_error *err)
{
    BAL_LOCAL(digest_job)
    job = { .model = model, .work = work, .entries = entries, .count = count };
    uint64_t bytes = 0;

    job.starts = calloc(count + 1, sizeof(*job.starts));
    if (!job.starts)
        return bal_fail_memory(err, "hashing a model");
    for (size_t n = 0; n < count; n++) {
        uint64_t size = tensor_at(&job, n)->size;
        job.starts[n + 1] = job.starts[n] + bal_tiles(size);
        bytes += size;
    }
    job.tiles = calloc(job.starts[count] + 1, sizeof(*job.tiles));
    if (!job.tiles)
        return bal_fail_memory(err, "hashing a model");
    bal_work_expect(work, bytes);
    int rc = bal_pool_run(work, job.starts[count], hash_tile, &job, err);
    if (rc)
        return rc;

    for (size_t n = 0; n < count; n++)
        bal_digest_of_tiles(&out[n], tensor_at(&job, n),
                            job.tiles + job.starts[n]);
    return 0;
}

int bal_digest_model(bal_id *out, bal_model *model, bal_work *work,
                     bal_error *err)
{
    return bal_digest_entries(out, model, NULL, bal_model_count(model), work,
                              err);
}
