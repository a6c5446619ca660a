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
    size_t *starts; /* of an entry's tiles among all; count + 1 of them */
    bal_id *tiles;
} digest_job;

static void digest_job_done(digest_job *self)
{
    free(self->starts);
    free(self->tiles);
}

/* The entry whose tiles hold tile i. */
static size_t entry_of(const digest_job *job, size_t i)
{
    size_t low = 0;
    size_t high = bal_model_count(job->model);

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
    size_t entry = entry_of(job, i);
    const bal_tensor *tensor = bal_model_at(job->model, entry);
    uint64_t offset = (i - job->starts[entry]) * BAL_TILE;
    size_t len = (size_t)bal_min(BAL_TILE, tensor->size - offset);
    void *data = bal_pool_scratch(job->work, 0, len);
    if (!data)
        return bal_fail_memory(err, "hashing a model");

    int rc = bal_model_read(job->model, entry, offset, data, len, err);
    if (rc)
        return rc;
    bal_hash_of(&job->tiles[i], data, len);
    bal_work_advance(job->work, len);
    return 0;
}

int bal_digest_model(bal_id *out, bal_model *model, bal_work *work,
                     bal_error *err)
{
    size_t count = bal_model_count(model);
    BAL_LOCAL(digest_job) job = { .model = model, .work = work };
    uint64_t bytes = 0;

    job.starts = calloc(count + 1, sizeof(*job.starts));
    if (!job.starts)
        return bal_fail_memory(err, "hashing a model");
    for (size_t i = 0; i < count; i++) {
        uint64_t size = bal_model_at(model, i)->size;
        job.starts[i + 1] = job.starts[i] + bal_tiles(size);
        bytes += size;
    }
    job.tiles = calloc(job.starts[count] + 1, sizeof(*job.tiles));
    if (!job.tiles)
        return bal_fail_memory(err, "hashing a model");
    bal_work_expect(work, bytes);
    int rc = bal_pool_run(work, job.starts[count], hash_tile, &job, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++)
        bal_digest_of_tiles(&out[i], bal_model_at(model, i),
                            job.tiles + job.starts[i]);
    return 0;
}
