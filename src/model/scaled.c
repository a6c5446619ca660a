/* By whole rows, as many as fit in a chunk; a part of a row is read as its
 * whole. */
#include "model/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/adapter.h"
#include "model/elements.h"

enum { CHUNK = BAL_LORA_RANK_MAX };

/* Twice what rounding to the shortest dtype takes of a value: more is lost
 * where values become too small for it. */
#define LOSS_MAX 0x1p-8

/* Which row of the adapter's is row i. */
static uint64_t source_row(const bal_scaled *self, uint64_t rows, uint64_t i)
{
    if (!self->heads)
        return i;
    uint64_t size = rows / self->heads;
    uint64_t within = i % size;

    return i - within + within % 2 * (size / 2) + within / 2;
}

static int read_rows(const bal_scaled *self, bal_model *model, uint64_t row,
                     size_t n, double *to, bal_error *err)
{
    uint64_t rows = bal_model_at(model, self->entry)->shape[0];
    size_t rank = (size_t)self->rank;
    int rc = 0;

    if (!self->heads)
        rc = bal_elements_read(to, model, self->entry, row * rank, n * rank,
                               err);
    for (size_t i = 0; self->heads && i < n && !rc; i++)
        rc = bal_elements_read(to + i * rank, model, self->entry,
                               source_row(self, rows, row + i) * rank, rank,
                               err);
    for (size_t i = 0; i < n * rank; i++)
        to[i] *= self->factor;
    return rc;
}

/* Columns [col, col + n) of a row whose values are there. */
static void put_part(const bal_scaled *self, const double *values, uint64_t col,
                     size_t n, char *to)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;
    size_t some = col < self->rank ? (size_t)bal_min(self->rank - col, n) : 0;

    if (some)
        bal_kernels_use()->from_f64[self->dtype](to, values + col, some);
    memset(to + some * width, 0, (n - some) * width);
}

int bal_scaled_read(const bal_scaled *self, bal_model *model, uint64_t start,
                    size_t n, void *to, bal_error *err)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;
    size_t wide = (size_t)self->wide;
    double *room = malloc(CHUNK * sizeof(*room));
    char *at = to;
    int rc = room ? 0 : bal_fail_memory(err, "an adapter's factors");

    while (n && !rc) {
        size_t col = (size_t)(start % wide);
        size_t rows = col || n < wide ? 1 : bal_min(n, CHUNK) / wide;
        size_t some = (size_t)bal_min(n, rows * wide - col);

        rc = read_rows(self, model, start / wide, rows, room, err);
        for (size_t i = 0; i < rows && !rc; i++)
            put_part(self, room + i * self->rank, col, rows == 1 ? some : wide,
                     at + i * wide * width);
        at += some * width;
        start += some;
        n -= some;
    }
    free(room);
    return rc;
}

/* What rounding does to a factor: to each value, and to each column beside the
 * largest value that it has. */
typedef struct losing {
    double worst;            /* part of a value */
    double *largest, *taken; /* of columns */
    size_t rank;
    double *exact, *near, *narrow;
} losing;

static bool lose(losing *self, uint64_t start, size_t n)
{
    bool finite = true;

    for (size_t i = 0; i < n; i++) {
        size_t col = (size_t)((start + i) % self->rank);
        double size = fabs(self->exact[i]);
        double taken = fabs(self->near[i] - self->exact[i]);

        finite &= self->near[i] - self->near[i] == 0;
        self->largest[col] = fmax(self->largest[col], size);
        self->taken[col] = fmax(self->taken[col], taken);
        /* False of 0 / 0. */
        if (taken / size > self->worst)
            self->worst = taken / size;
    }
    return finite;
}

static int check_columns(const losing *self, const char *tensor, double factor,
                         bal_dtype dtype, bal_error *err)
{
    for (size_t i = 0; i < self->rank; i++) {
        if (self->taken[i] > self->largest[i] * LOSS_MAX)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' times %g is too small for dtype %s",
                            tensor, factor, bal_dtype_name(dtype));
    }
    return 0;
}

int bal_scaled_loss(const bal_scaled *self, bal_model *model, double *out,
                    bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(model, self->entry);
    uint64_t total = bal_elements_of(tensor);
    double *room = calloc(5 * (size_t)CHUNK, sizeof(*room));
    losing all = { .rank = (size_t)self->rank };
    int rc = room ? 0 : bal_fail_memory(err, "an adapter's factors");
    double **parts[] = { &all.exact, &all.near, &all.narrow, &all.largest,
                         &all.taken };

    for (size_t i = 0; room && i < sizeof(parts) / sizeof(*parts); i++)
        *parts[i] = room + i * CHUNK;
    for (uint64_t at = 0; at < total && !rc; at += CHUNK) {
        size_t n = (size_t)bal_min(total - at, CHUNK);

        rc = bal_elements_read(all.exact, model, self->entry, at, n, err);
        if (rc)
            break;
        for (size_t i = 0; i < n; i++)
            all.exact[i] *= self->factor;
        bal_kernels_use()->from_f64[self->dtype](all.narrow, all.exact, n);
        bal_kernels_use()->to_f64[self->dtype](all.near, all.narrow, n);
        if (!lose(&all, at, n))
            rc = bal_fail(err, BAL_EUNSUPPORTED,
                          "tensor '%s' times %g is too large for dtype %s",
                          tensor->name, self->factor,
                          bal_dtype_name(self->dtype));
    }
    if (!rc)
        rc = check_columns(&all, tensor->name, self->factor, self->dtype, err);
    *out = all.worst;
    free(room);
    return rc;
}
