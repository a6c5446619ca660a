/* Reading a view: of a merge, the range is cut into tiles (view_tile.c), the
 * method makes one of them, and that is rounded once. A range costs the same
 * range of each input, so views of views cost no more than their tensors. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/join.h"
#include "merge/view.h"
#include "model/elements.h"

enum {
    PIECE = 128 * 1024, /* bytes that are compared at once */
    CAST = 8 * 1024,    /* elements that are cast at once */
    AHEAD = 3,          /* tensors that are prepared before their turn */
};

const bal_tensor *bal_view_source(const bal_view *self, const bal_view_row *row,
                                  size_t input)
{
    size_t entry = row->sources[input];

    return entry == BAL_NONE ? NULL : bal_model_at(self->inputs[input], entry);
}

const char *bal_view_input_name(const bal_view *self, size_t input)
{
    const char *name = bal_model_facts(self->inputs[input])->name;

    return name ? name : "";
}

int bal_view_pass(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                  void *to, size_t len, bal_error *err)
{
    (void)i;
    return bal_model_read(self->inputs[row->from], row->sources[row->from],
                          offset, to, len, err);
}

int bal_view_cast(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                  void *to, size_t len, bal_error *err)
{
    bal_dtype dtype = bal_model_at(&self->model, i)->dtype;
    size_t width = bal_dtype_bits(dtype) / 8;
    uint64_t start = offset / width;
    size_t n = len / width;
    uint8_t *out = to;
    double *values = malloc(CAST * sizeof(*values));
    int rc = 0;

    if (!values)
        return bal_fail_memory(err, "merging");
    while (n && !rc) {
        size_t count = bal_min(n, CAST);
        rc = bal_elements_read(values, self->inputs[row->from],
                               row->sources[row->from], start, count, err);
        if (!rc) {
            bal_arith_round(&row->arith, values, count);
            bal_kernels_use()->from_f64[dtype](out, values, count);
        }
        out += count * width;
        start += count;
        n -= count;
    }
    free(values);
    return rc;
}

int bal_view_zeros(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                   void *to, size_t len, bal_error *err)
{
    size_t width = bal_dtype_bits(bal_model_at(&self->model, i)->dtype) / 8;
    uint8_t *bytes = to;
    (void)row;
    (void)offset;
    (void)err;

    memset(to, 0, len);
    for (size_t at = width; at <= len; at += width)
        bytes[at - 1] = 0x80;
    return 0;
}

/* Input k's bytes are those at `want`. */
static int same_bytes(bal_view *self, bal_view_row *row, size_t k,
                      uint64_t offset, const uint8_t *want, size_t len,
                      bal_error *err)
{
    uint8_t *piece = malloc(bal_min(len, PIECE));
    if (!piece)
        return bal_fail_memory(err, "comparing inputs");
    int rc = 0;
    while (len && !rc) {
        size_t count = bal_min(len, PIECE);
        rc = bal_model_read(self->inputs[k], row->sources[k], offset, piece,
                            count, err);
        if (!rc && memcmp(piece, want, count))
            rc = bal_fail(err, BAL_EUNSUPPORTED,
                          "tensor '%s' is not the same in input %zu and in "
                          "input %zu, and only floats can be merged",
                          row->name, row->from + 1, k + 1);
        want += count;
        offset += count;
        len -= count;
    }
    free(piece);
    return rc;
}

int bal_view_compare(bal_view *self, size_t i, bal_view_row *row,
                     uint64_t offset, void *to, size_t len, bal_error *err)
{
    const bal_tensor *first = bal_view_source(self, row, row->from);
    int rc = bal_view_pass(self, i, row, offset, to, len, err);

    for (size_t k = row->from + 1; !rc && k < self->count; k++) {
        const bal_tensor *other = bal_view_source(self, row, k);
        bool known = other && first->tuned && other->tuned;

        /* Digests that are known were compared when the view was opened. */
        if (other && other->form == BAL_FORM_WHOLE && !known)
            rc = same_bytes(self, row, k, offset, to, len, err);
    }
    return rc;
}

/* ---- merging ------------------------------------------------------------ */

static int run_prepare(bal_view *self, bal_view_row *row, bal_error *err)
{
    bal_walk walk = { self, row };
    bal_tile tile = bal_view_no_tile(self, row);

    tile.prepared = NULL;
    return self->method->prepare(&row->prepared, &walk, &tile, row->values,
                                 err);
}

static pthread_mutex_t *lock_of(bal_view *self, const bal_view_row *row)
{
    return &self->locks[(size_t)(row - self->rows) % BAL_VIEW_LOCKS];
}

static bool is_ready(bal_view_row *row)
{
    return atomic_load_explicit(&row->ready, memory_order_acquire);
}

static int prepare_locked(bal_view *self, bal_view_row *row, bal_error *err)
{
    int rc = is_ready(row) ? 0 : run_prepare(self, row, err);

    if (!rc)
        atomic_store_explicit(&row->ready, true, memory_order_release);
    return rc;
}

/* One of the tensors behind a row that nobody is at. What is wrong with it is
 * told to who needs it. */
static void prepare_ahead(bal_view *self, const bal_view_row *row)
{
    size_t first = (size_t)(row - self->rows) + 1;
    size_t end = bal_min(first + AHEAD, self->row_count);

    for (size_t i = first; i < end; i++) {
        bal_view_row *next = &self->rows[i];

        if (next->read != bal_view_merge || is_ready(next) ||
            pthread_mutex_trylock(lock_of(self, next)))
            continue;
        bal_error err = { 0 };
        (void)prepare_locked(self, next, &err);
        pthread_mutex_unlock(lock_of(self, next));
        return;
    }
}

/* Once a tensor, by whoever comes first. The others prepare what is next and
 * then wait. */
static int prepare(bal_view *self, bal_view_row *row, bal_error *err)
{
    pthread_mutex_t *lock = lock_of(self, row);

    if (!self->method->prepare || is_ready(row))
        return 0;
    if (pthread_mutex_trylock(lock)) {
        prepare_ahead(self, row);
        pthread_mutex_lock(lock);
    }
    int rc = prepare_locked(self, row, err);
    pthread_mutex_unlock(lock);
    return rc;
}

typedef struct merging {
    const bal_view *view;
    bal_view_row *row;
    double *result; /* a tile's size */
    uint8_t *to;    /* where the next tile's part goes */
    uint64_t start, end;
    bal_dtype dtype;
    bal_arith sum; /* of base and result */
} merging;

/* NaNs of one sign and payload: which of two goes on through a sum is up to the
 * compiler. False: some are not finite. */
static bool settle_nans(double *values, size_t n)
{
    bool finite = true;

    for (size_t k = 0; k < n; k++) {
        double away = values[k] - values[k]; /* NaN of what is not finite */
        finite &= away == 0;
        values[k] = values[k] != values[k] ? __builtin_nan("") : values[k];
    }
    return finite;
}

static bool is_finite(const double *values, size_t n)
{
    bool finite = true;

    for (size_t k = 0; k < n; k++)
        finite &= values[k] - values[k] == 0;
    return finite;
}

/* Infinities and NaNs that no input has are told, once a tensor: there the
 * formula has broken down. */
static void tell_degenerate(bal_view_row *row, const bal_tile *tile)
{
    bool finite = !tile->base || is_finite(tile->base, tile->n);

    for (size_t i = 0; finite && i < tile->count; i++)
        finite = is_finite(tile->inputs[i], tile->n);
    if (finite && !atomic_exchange(&row->told, true))
        bal_warn("merge", "tensor=%s method=%s degenerate=not-finite",
                 row->name, tile->method->info.name);
}

/* A tile is merged whole; what of it was asked for is kept. */
static int merge_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    merging *self = ctx;
    const bal_method *method = self->view->method;
    uint64_t from = bal_max(self->start, tile->start);
    uint64_t to = bal_min(self->end, tile->start + tile->n);
    double *wanted = self->result + (from - tile->start);
    size_t n = (size_t)(to - from);

    int rc = method->merge(self->result, tile, self->row->values, err);
    if (rc)
        return bal_within(err, rc, "tensor '%s'", self->row->name);
    if (method->role == BAL_ROLE_ORIGIN && self->row->based)
        bal_op_add(&self->sum, wanted, tile->base + (from - tile->start),
                   wanted, n);
    if (self->row->rounds)
        bal_arith_round(&self->sum, wanted, n);
    if (!settle_nans(wanted, n))
        tell_degenerate(self->row, tile);
    bal_kernels_use()->from_f64[self->dtype](self->to, wanted, n);
    self->to += n * (bal_dtype_bits(self->dtype) / 8);
    return 0;
}

/* Elements [start, start + n) were merged: nobody walks over them any more. */
static void pass(bal_view *self, const bal_view_row *row, uint64_t start,
                 uint64_t n)
{
    const bal_view_slice *slice = bal_view_slice_of(self, row);

    for (size_t k = slice->from; self->method->prepare && k < slice->to; k++) {
        const bal_tensor *source = bal_view_source(self, row, k);
        uint64_t width = source ? bal_dtype_bits(source->dtype) / 8 : 0;

        if (width)
            bal_model_pass(self->inputs[k], row->sources[k], start * width,
                           n * width);
    }
}

int bal_view_merge(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                   void *to, size_t len, bal_error *err)
{
    bal_dtype dtype = bal_model_at(&self->model, i)->dtype;
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t n = len / width;
    uint64_t start = offset / width;

    if (!n)
        return 0;
    int rc = prepare(self, row, err);
    if (rc)
        return bal_within(err, rc, "tensor '%s'", row->name);
    merging job = { .view = self,
                    .row = row,
                    .to = to,
                    .start = start,
                    .end = start + n,
                    .dtype = dtype,
                    .sum = row->arith };
    if (self->method->f32)
        job.sum.work = bal_dtype_join(job.sum.work, BAL_F32);
    job.result = malloc(bal_view_tile_size(self, row, n) * sizeof(*job.result));
    if (!job.result)
        return bal_fail_memory(err, "merging");
    rc = bal_view_each(self, row, start, n, merge_tile, &job, err);
    free(job.result);
    pass(self, row, start, n);
    return rc;
}
