/* How far an adapter is from the delta that it was extracted from, row by row:
 * the difference of the two is of no low rank. */
#include <math.h>
#include <stdlib.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "merge/dense.h"
#include "merge/extract.h"
#include "merge/loss.h"
#include "merge/lowrank.h"

enum { ROWS = 16 };

typedef struct distance {
    bal_model *delta, *adapter;
    bal_loras loras;
    struct changed {
        size_t entry;
        const bal_lora *lora; /* NULL: the adapter has none */
        bal_lora_row row;
    } * changed;
    size_t count;
} distance;

static void distance_done(distance *self)
{
    bal_loras_done(&self->loras);
    free(self->changed);
}

static bool has_changed(const bal_tensor *tensor)
{
    return tensor->part == BAL_PART_TENSOR && tensor->form != BAL_FORM_SAME &&
           tensor->form != BAL_FORM_RESIDUAL;
}

static int find_changed(distance *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) module = { 0 };
    size_t count = bal_model_count(self->delta);
    bool is;

    self->changed = calloc(count + 1, sizeof(*self->changed));
    if (!self->changed)
        return bal_fail_memory(err, "comparing with a delta");
    for (size_t i = 0; i < count; i++) {
        const bal_tensor *tensor = bal_model_at(self->delta, i);
        int rc = bal_extract_module(&is, &module, tensor, err);
        if (rc)
            return rc;
        if (!has_changed(tensor))
            continue;
        const bal_lora *lora =
            is ? bal_loras_find(&self->loras, bal_buf_string(&module)) : NULL;
        bool fits = lora && lora->out == tensor->shape[0] &&
                    lora->in == tensor->shape[1];
        self->changed[self->count++] = (struct changed){
            .entry = i,
            .lora = fits ? lora : NULL,
            .row = { .module = tensor->name, .rank_b = fits ? lora->rank : 0 },
        };
    }
    return 0;
}

/* The squares of D, of s B A and of what is between them, in rows of D. */
static int add_rows(double sums[3], double *block, const bal_lowrank *map,
                    const bal_difference *rows, size_t start, bal_error *err)
{
    size_t n = map->n;
    size_t count = bal_min(map->m - start, ROWS);
    double *made = block + ROWS * n;
    int rc = bal_difference_rows(block, (void *)rows, start, count, err);

    for (size_t i = 0; i < count && !rc; i++) {
        double *row = block + i * n;
        for (size_t k = 0; k < n; k++)
            made[k] = 0;
        for (size_t k = 0; k < map->r; k++)
            bal_kernels_use()->axpy64(made, map->b[k * map->m + start + i],
                                      map->a + k * n, n);
        sums[0] += bal_dot(row, row, n);
        sums[1] += bal_dot(made, made, n);
        bal_kernels_use()->sub_f64(made, made, row, n);
        sums[2] += bal_dot(made, made, n);
    }
    return rc;
}

static int measure(size_t i, void *ctx, bal_error *err)
{
    distance *self = ctx;
    struct changed *of = &self->changed[i];
    const bal_lora *lora = of->lora;
    if (!lora)
        return 0;

    BAL_LOCAL(bal_lowrank) map = { 0 };
    const bal_difference rows = { self->delta, of->entry, (size_t)lora->in };
    double sums[3] = { 0 };
    double *block = calloc((ROWS + 1) * (size_t)lora->in, sizeof(*block));
    int rc = block ? bal_lowrank_init(&map, (size_t)lora->out, (size_t)lora->in,
                                      (size_t)lora->rank, err)
                   : bal_fail_memory(err, "comparing with a delta");

    if (!rc)
        rc = bal_lowrank_read(&map, 0, 1, self->adapter, lora, err);
    for (size_t start = 0; start < map.m && !rc; start += ROWS)
        rc = add_rows(sums, block, &map, &rows, start, err);
    free(block);
    of->row.norm_a = sqrt(sums[0]);
    of->row.norm_b = sqrt(sums[1]);
    of->row.difference = sqrt(sums[2]);
    return rc;
}

int bal_lora_distance(bal_residual *residual, bal_model *delta,
                      bal_model *adapter, bal_work *work, bal_lora_fn *fn,
                      void *ctx, bal_error *err)
{
    BAL_LOCAL(distance) self = { .delta = delta, .adapter = adapter };
    bal_loss sum = { 0 };
    int rc = bal_loras_read(&self.loras, adapter, err);

    if (!rc)
        rc = find_changed(&self, err);
    if (!rc)
        rc = bal_pool_run(work, self.count, measure, &self, err);
    for (size_t i = 0; i < self.count && !rc; i++)
        bal_loss_add(&sum, &self.changed[i].row);
    if (!rc && residual)
        *residual = bal_loss_residual(&sum);
    for (size_t i = 0; i < self.count && fn && !rc; i++) {
        if (fn(ctx, &self.changed[i].row))
            break;
    }
    return rc;
}
