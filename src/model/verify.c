/* Base and change are walked along together, so that the tensor that is named
 * is the first one whichever way it differs. */
#include "model/verify.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "model/arithmetic.h"
#include "model/digest.h"
#include "model/pairs.h"
#include "model/path.h"

int bal_base_differs(const char *tensor, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT,
                    "tensor '%.200s': base differs from the one this delta "
                    "was made on",
                    tensor);
}

/* True if change lists what becomes of every tensor of its base: minus does, a
 * view of differences does not. */
static bool is_complete(const bal_model *change)
{
    if (bal_model_facts(change)->kind != BAL_KIND_DELTA)
        return false;
    for (size_t i = 0; i < bal_model_count(change); i++) {
        const bal_tensor *entry = bal_model_at(change, i);
        bool digest =
            entry->form != BAL_FORM_RESIDUAL && entry->form != BAL_FORM_REMOVED;
        if (entry->part != BAL_PART_TENSOR)
            return true;
        if (digest && !entry->tuned)
            return false;
    }
    return true;
}

static bool remembers(const bal_model *change)
{
    for (size_t i = 0; i < bal_model_count(change); i++) {
        const bal_tensor *entry = bal_model_at(change, i);
        if (entry->part == BAL_PART_TENSOR && entry->base)
            return true;
    }
    return false;
}

static bool needs_base(const bal_tensor *entry)
{
    return entry->base || entry->form == BAL_FORM_DIFFERENCE ||
           entry->form == BAL_FORM_SAME;
}

static bool pair_fits(const bal_pair *pair, const bal_model *change,
                      const bal_id *digests, bool complete)
{
    if (pair->b == BAL_NONE)
        return !complete;
    const bal_tensor *entry = bal_model_at(change, pair->b);
    if (pair->a == BAL_NONE)
        return !needs_base(entry);
    if (!entry->base)
        return !complete;
    return bal_id_equal(&digests[pair->a], entry->base);
}

static int compare(const bal_pairs *pairs, bal_model *base, bal_model *change,
                   const bal_id *digests, bal_error *err)
{
    bool complete = is_complete(change);

    for (size_t i = 0; i < pairs->count; i++) {
        const bal_pair *pair = &pairs->rows[i];
        const bal_tensor *entry = pair->a == BAL_NONE
                                      ? bal_model_at(change, pair->b)
                                      : bal_model_at(base, pair->a);
        if (entry->part != BAL_PART_TENSOR)
            return 0;
        if (!pair_fits(pair, change, digests, complete))
            return bal_base_differs(entry->name, err);
    }
    return 0;
}

int bal_base_verify(bal_model *base, bal_model *change, bal_work *work,
                    bal_error *err)
{
    BAL_LOCAL(bal_pairs) pairs = { 0 };

    if (!remembers(change))
        return 0;
    int rc = bal_pairs_join(&pairs, base, change, err);
    if (rc)
        return rc;
    bal_id *digests = calloc(bal_model_count(base) + 1, sizeof(*digests));
    if (!digests)
        return bal_fail_memory(err, "comparing a base");
    rc = bal_digest_model(digests, base, work, err);
    if (!rc)
        rc = compare(&pairs, base, change, digests, err);
    free(digests);
    return rc;
}

/* ---- files -------------------------------------------------------------- */

/* One entry, by the calling thread. */
static int digest_one(bal_id *out, bal_model *model, size_t i, bal_work *work,
                      bal_error *err)
{
    const bal_tensor *entry = bal_model_at(model, i);
    size_t tiles = bal_tiles(entry->size);
    size_t room = (size_t)bal_min(BAL_TILE, entry->size) + 1;
    bal_id *ids = calloc(tiles, sizeof(*ids));
    void *data = malloc(room);
    int rc = ids && data ? 0 : bal_fail_memory(err, "comparing files");

    for (size_t n = 0; n < tiles && !rc; n++) {
        uint64_t at = n * BAL_TILE;
        size_t len = (size_t)bal_min(BAL_TILE, entry->size - at);
        rc = bal_work_poll(work, err);
        if (!rc)
            rc = bal_model_read(model, i, at, data, len, err);
        if (!rc)
            bal_hash_of(&ids[n], data, len);
    }
    if (!rc)
        bal_digest_of_tiles(out, entry, ids);
    free(ids);
    free(data);
    return rc;
}

/* *same: base has the file as change remembers it, or neither has it. */
static int compare_file(bool *same, const bal_pair *pair, bal_model *base,
                        const bal_model *change, bal_work *work, bal_error *err)
{
    bal_id digest;
    const bal_id *want =
        pair->b == BAL_NONE ? NULL : bal_model_at(change, pair->b)->base;

    *same = (pair->a == BAL_NONE) == !want;
    if (!*same || !want)
        return 0;
    int rc = digest_one(&digest, base, pair->a, work, err);
    if (rc)
        return rc;
    *same = bal_id_equal(&digest, want);
    return 0;
}

int bal_base_files_differ(bal_buf *differ, bal_model *base, bal_model *change,
                          bal_work *work, bal_error *err)
{
    BAL_LOCAL(bal_pairs) pairs = { 0 };

    if (!is_complete(change))
        return 0;
    int rc = bal_pairs_join(&pairs, base, change, err);
    for (size_t i = 0; i < pairs.count && !rc; i++) {
        const bal_pair *pair = &pairs.rows[i];
        const bal_tensor *entry = pair->a == BAL_NONE
                                      ? bal_model_at(change, pair->b)
                                      : bal_model_at(base, pair->a);
        bool same = true;
        if (entry->part == BAL_PART_FILE && bal_side_identity(entry->name))
            rc = compare_file(&same, pair, base, change, work, err);
        if (!rc && !same)
            rc = bal_buf_format(differ, err, "%s\n", entry->name);
    }
    return rc;
}
