/* How much of a difference is lost: every element of three models, in double.
 */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "model/values.h"
#include "wdelta/file.h"

enum { CHUNK = 8192, SLOT = 3 };

typedef struct triple {
    bal_model *models[3]; /* base, tuned, got */
    size_t entries[3];
} triple;

typedef struct compare_job {
    bal_model *models[3];
    bal_work *work;
    size_t *entries; /* of tuned: tensors */
    bal_wdelta_quality *rows;
    size_t count;
} compare_job;

static void compare_job_done(compare_job *self)
{
    free(self->entries);
    free(self->rows);
}

/* What has no numbers is compared byte by byte: 0 if it is the same. */
static const bal_values_row *values_of(bal_dtype *dtype)
{
    const bal_values_row *row = bal_values_of(*dtype);

    if (row->read)
        return row;
    *dtype = BAL_U8;
    return bal_values_of(BAL_U8);
}

/* A range of an entry as doubles; raw has room for 8 bytes a value. */
static int read_values(double *to, void *raw, bal_model *model, size_t i,
                       uint64_t at, size_t n, bal_error *err)
{
    bal_dtype dtype = bal_model_at(model, i)->dtype;
    const bal_values_row *row = values_of(&dtype);
    int rc =
        bal_model_read(model, i, at * row->width, raw, n * row->width, err);

    if (!rc)
        row->read(to, raw, n, dtype);
    return rc;
}

static int compare_range(const triple *self, bal_compare sums[2], uint64_t at,
                         size_t n, double *room, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    double *values[3] = { room, room + CHUNK, room + (size_t)2 * CHUNK };

    for (size_t i = 0; i < 3; i++) {
        int rc = read_values(values[i], room + (size_t)3 * CHUNK,
                             self->models[i], self->entries[i], at, n, err);
        if (rc)
            return rc;
    }
    kernels->compare[BAL_F64](&sums[0], values[0], values[1], n);
    kernels->compare[BAL_F64](&sums[1], values[1], values[2], n);
    return 0;
}

static int compare_tensor(bal_wdelta_quality *out, const triple *self,
                          bal_work *work, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->models[1], self->entries[1]);
    bal_dtype dtype = entry->dtype;
    const bal_values_row *row = values_of(&dtype);
    double *room = bal_pool_scratch(work, SLOT, sizeof(*room) * 4 * CHUNK);
    bal_compare sums[2] = { 0 };
    bal_compared folds[2];

    if (!room)
        return bal_fail_memory(err, "comparing models");
    out->name = entry->name;
    for (uint64_t at = 0, n = entry->size / row->width; at < n; at += CHUNK) {
        size_t some = (size_t)bal_min(CHUNK, n - at);
        int rc = compare_range(self, sums, at, some, room, err);
        if (rc)
            return rc;
    }
    bal_compare_fold(&folds[0], &sums[0]);
    bal_compare_fold(&folds[1], &sums[1]);
    out->delta2 = folds[0].diff2;
    out->error2 = folds[1].diff2;
    out->max_abs = folds[1].max_abs;
    out->wrong = folds[1].wrong;
    bal_work_advance(work, entry->size);
    return 0;
}

/* Values an element. */
static unsigned values_each(bal_dtype dtype)
{
    unsigned each = values_of(&dtype)->each;

    return each ? each : 1;
}

static int compare_item(size_t i, void *ctx, bal_error *err)
{
    compare_job *self = ctx;
    const bal_tensor *entry = bal_model_at(self->models[1], self->entries[i]);
    triple three = { { self->models[0], self->models[1], self->models[2] },
                     { BAL_NONE, self->entries[i], BAL_NONE } };

    for (size_t k = 0; k < 3; k += 2) {
        three.entries[k] =
            bal_model_find(self->models[k], BAL_PART_TENSOR, entry->name);
        const bal_tensor *other =
            three.entries[k] == BAL_NONE
                ? NULL
                : bal_model_at(self->models[k], three.entries[k]);
        if (!other || !bal_tensor_same_shape(entry, other) ||
            values_each(other->dtype) != values_each(entry->dtype))
            return bal_fail(err, BAL_EINVAL,
                            "tensor '%.200s' is not the same in both models",
                            entry->name);
    }
    return compare_tensor(&self->rows[i], &three, self->work, err);
}

int bal_wdelta_compare(bal_model *got, bal_model *tuned, bal_model *base,
                       bal_work *work, bal_wdelta_quality_fn *fn, void *ctx,
                       bal_error *err)
{
    BAL_LOCAL(compare_job)
    self = { .models = { base, tuned, got }, .work = work };
    size_t entries = bal_model_count(tuned);
    uint64_t total = 0;

    self.entries = calloc(entries + 1, sizeof(*self.entries));
    self.rows = calloc(entries + 1, sizeof(*self.rows));
    if (!self.entries || !self.rows)
        return bal_fail_memory(err, "comparing models");
    for (size_t i = 0; i < entries; i++) {
        const bal_tensor *entry = bal_model_at(tuned, i);
        if (entry->part != BAL_PART_TENSOR)
            continue;
        self.entries[self.count++] = i;
        total += entry->size;
    }
    bal_work_expect(work, total);
    int rc = bal_pool_run(work, self.count, compare_item, &self, err);
    for (size_t i = 0; i < self.count && !rc; i++) {
        if (fn(ctx, &self.rows[i]))
            break;
    }
    return rc;
}
