/* Both lists are sorted alike, so they are joined by walking along them. */
#include "model/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Some pieces of one pair, or all of several pairs. */
typedef struct bal_pairs_batch {
    size_t pair, pairs;
    size_t piece; /* where pairs is 1 */
} bal_pairs_batch;

static const uint64_t batch_bytes = (uint64_t)1 << 20;

/* The entry that comes first at or behind i and is not a residual. */
static size_t step_over(const bal_model *model, size_t i)
{
    size_t count = bal_model_count(model);

    while (i < count && bal_model_at(model, i)->form == BAL_FORM_RESIDUAL)
        i++;
    return i;
}

/* Which of two entries comes first: < 0, 0, > 0. */
static int order(const bal_tensor *a, const bal_tensor *b)
{
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int order_at(const bal_model *a, size_t i, const bal_model *b, size_t j)
{
    if (i == bal_model_count(a))
        return 1;
    if (j == bal_model_count(b))
        return -1;
    return order(bal_model_at(a, i), bal_model_at(b, j));
}

int bal_pairs_join(bal_pairs *out, const bal_model *a, const bal_model *b,
                   bal_error *err)
{
    size_t room = bal_model_count(a) + bal_model_count(b) + 1;
    size_t i = step_over(a, 0);
    size_t j = step_over(b, 0);

    out->rows = calloc(room, sizeof(*out->rows));
    if (!out->rows)
        return bal_fail_memory(err, "comparing two models");
    while (i < bal_model_count(a) || j < bal_model_count(b)) {
        int first = order_at(a, i, b, j);
        bal_pair *row = &out->rows[out->count++];

        *row = (bal_pair){ .a = BAL_NONE, .b = BAL_NONE, .pieces = 1 };
        if (first <= 0) {
            row->a = i;
            i = step_over(a, i + 1);
        }
        if (first >= 0) {
            row->b = j;
            j = step_over(b, j + 1);
        }
    }
    return 0;
}

/* How many batches there are; they are written where to is not NULL. */
static size_t cut(bal_pairs_batch *to, const bal_pairs *pairs)
{
    size_t count = 0;

    for (size_t i = 0; i < pairs->count;) {
        size_t from = i;
        uint64_t bytes = 0;

        while (i < pairs->count && pairs->rows[i].pieces == 1 &&
               bytes < batch_bytes)
            bytes += pairs->rows[i++].bytes;
        if (i > from) {
            if (to)
                to[count] =
                    (bal_pairs_batch){ .pair = from, .pairs = i - from };
            count++;
            continue;
        }
        for (size_t piece = 0; piece < pairs->rows[i].pieces; piece++) {
            if (to)
                to[count] = (bal_pairs_batch){ i, 1, piece };
            count++;
        }
        i++;
    }
    return count;
}

int bal_pairs_plan(bal_pairs *self, bal_error *err)
{
    self->pieces = 0;
    for (size_t i = 0; i < self->count; i++) {
        self->rows[i].first = self->pieces;
        self->pieces += self->rows[i].pieces;
    }
    self->batch_count = cut(NULL, self);
    self->batches = calloc(self->batch_count + 1, sizeof(*self->batches));
    if (!self->batches)
        return bal_fail_memory(err, "comparing two models");
    cut(self->batches, self);
    return 0;
}

typedef struct run_job {
    const bal_pairs *pairs;
    bal_work *work;
    bal_piece_fn *fn;
    void *ctx;
} run_job;

static int run_batch(size_t i, void *ctx, bal_error *err)
{
    const run_job *job = ctx;
    const bal_pairs_batch *batch = &job->pairs->batches[i];

    for (size_t n = 0; n < batch->pairs; n++) {
        const bal_pair *pair = &job->pairs->rows[batch->pair + n];
        int rc = job->fn(pair, batch->piece, job->ctx, err);
        if (rc)
            return rc;
        bal_work_advance(job->work, pair->bytes / pair->pieces);
    }
    return 0;
}

int bal_pairs_run(const bal_pairs *self, bal_work *work, bal_piece_fn *fn,
                  void *ctx, bal_error *err)
{
    run_job job = { self, work, fn, ctx };
    uint64_t total = 0;

    for (size_t i = 0; i < self->count; i++)
        total += self->rows[i].bytes;
    bal_work_expect(work, total);
    return bal_pool_run(work, self->batch_count, run_batch, &job, err);
}

void bal_pairs_done(bal_pairs *self)
{
    free(self->rows);
    free(self->batches);
    *self = (bal_pairs){ 0 };
}
