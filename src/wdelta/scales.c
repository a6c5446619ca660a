/* The mean magnitude of each row, bit for bit as numpy's mean of float32
 * computes it: a sum by halves down to blocks of 128, each in 8 lanes. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/pool.h"
#include "kernel/kernels.h"
#include "wdelta/plan.h"
#include "wdelta/reader.h"

enum { BLOCK = 128 };

/* The tensor's differences, one block after the other. */
typedef struct flow {
    const bal_wd_plan *plan;
    const bal_wd_source *from;
    float *d; /* a tile, and a block more */
    size_t at, len;
    uint64_t next; /* in the tensor */
    int rc;
    bal_error *err;
} flow;

static void fill(flow *self)
{
    size_t left = self->len - self->at;
    uint64_t n = bal_min(BAL_WD_TILE, self->plan->n - self->next);

    memmove(self->d, self->d + self->at, left * sizeof(*self->d));
    self->at = 0;
    self->len = left;
    self->rc = bal_wd_difference(self->d + left, self->from, self->plan,
                                 self->next, (size_t)n, self->err);
    self->len += (size_t)n;
    self->next += n;
}

/* The next n <= BLOCK of them. */
static const float *take(flow *self, size_t n)
{
    if (self->len - self->at < n && !self->rc)
        fill(self);
    if (self->rc)
        return self->d;
    self->at += n;
    return self->d + self->at - n;
}

static float sum_small(const float *d, size_t n)
{
    float sum = 0.0f;

    if (n >= 8)
        return bal_kernels_use()->sum_block(d, n);
    for (size_t i = 0; i < n; i++)
        sum += __builtin_fabsf(d[i]);
    return sum;
}

/* Halved each time, so not 60 deep whatever n is. */
static float sum_of(flow *self, uint64_t n)
{
    if (n <= BLOCK)
        return sum_small(take(self, (size_t)n), (size_t)n);
    uint64_t half = n / 2 - n / 2 % 8;
    float left = sum_of(self, half);

    return left + sum_of(self, n - half);
}

static uint16_t half_of(float sum, uint64_t n)
{
    return bal_wd_to_half((double)(sum / (float)n));
}

uint16_t bal_wd_scale_of(const float *d, size_t n)
{
    return half_of(sum_small(d, n), n);
}

int bal_wd_scales(bal_wd_plan *plan, const bal_wd_source *from, bal_error *err)
{
    uint64_t rows = plan->columns ? plan->n / plan->columns : 0;
    flow self = { .plan = plan, .from = from, .err = err };

    self.d = bal_pool_scratch(from->work, BAL_WD_SLOT_DELTA,
                              (BAL_WD_TILE + BLOCK) * sizeof(*self.d));
    plan->scales = calloc((size_t)rows + 1, sizeof(*plan->scales));
    if (!self.d || !plan->scales)
        return bal_fail_memory(err, "computing scales");
    for (uint64_t i = 0; i < rows && !self.rc; i++)
        plan->scales[i] = half_of(sum_of(&self, plan->columns), plan->columns);
    return self.rc;
}
