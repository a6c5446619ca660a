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

static bool lose(double *worst, const double *exact, const double *near,
                 size_t n)
{
    bool finite = true;

    for (size_t i = 0; i < n; i++) {
        double part = fabs(near[i] - exact[i]) / fabs(exact[i]);

        finite &= near[i] - near[i] == 0;
        /* False of 0 / 0. */
        if (part > *worst)
            *worst = part;
    }
    return finite;
}

int bal_scaled_loss(const bal_scaled *self, bal_model *model, double *out,
                    bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(model, self->entry);
    uint64_t total = bal_elements_of(tensor);
    double *exact = malloc(3 * (size_t)CHUNK * sizeof(*exact));
    int rc = exact ? 0 : bal_fail_memory(err, "an adapter's factors");
    double *near = exact + CHUNK;
    double *narrow = near + CHUNK;

    *out = 0;
    for (uint64_t at = 0; at < total && !rc; at += CHUNK) {
        size_t n = (size_t)bal_min(total - at, CHUNK);

        rc = bal_elements_read(exact, model, self->entry, at, n, err);
        if (rc)
            break;
        for (size_t i = 0; i < n; i++)
            exact[i] *= self->factor;
        bal_kernels_use()->from_f64[self->dtype](narrow, exact, n);
        bal_kernels_use()->to_f64[self->dtype](near, narrow, n);
        if (!lose(out, exact, near, n))
            rc = bal_fail(err, BAL_EUNSUPPORTED,
                          "tensor '%s' times %g is too large for dtype %s",
                          tensor->name, self->factor,
                          bal_dtype_name(self->dtype));
    }
    free(exact);
    return rc;
}
