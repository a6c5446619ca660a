/* Reading a view: the range is cut into tiles, the same range of every input is
 * widened to double, the method makes one of them, and that is rounded once. A
 * range costs the same range of each input, so views of views cost no more than
 * their tensors. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "merge/view.h"
#include "model/elements.h"

enum {
    TILE_MOST = 64 * 1024, /* elements: small enough for a core's cache */
    TILE_LEAST = 1024,
    TILE_MEMORY = 4 << 20, /* bytes of all inputs' tiles together */
    PIECE = 128 * 1024,    /* bytes that are compared at once */
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

/* ---- tiles -------------------------------------------------------------- */

/* A tile's memory: for each input that takes part, then room for one more. */
typedef struct tiles {
    bal_tile tile;
    const double **inputs;
    double *memory;
    size_t most; /* elements */
} tiles;

static void tiles_done(tiles *self)
{
    free(self->memory);
    free(self->inputs);
}

static int tiles_init(tiles *self, const bal_view_row *row, uint64_t n,
                      bal_error *err)
{
    size_t most = TILE_MEMORY / sizeof(double) / (row->count + 1);

    most = bal_min(bal_max(most, TILE_LEAST), TILE_MOST);
    self->most = bal_min(most - most % 8, n);
    self->inputs = calloc(row->count, sizeof(*self->inputs));
    self->memory =
        malloc((row->count + 1) * self->most * sizeof(*self->memory));
    if (!self->inputs || !self->memory)
        return bal_fail_memory(err, "merging");
    self->tile = (bal_tile){
        .inputs = self->inputs,
        .weights = row->weights,
        .which = row->which,
        .count = row->count,
        .tensor = row->name,
        .prepared = row->prepared,
    };
    return 0;
}

/* Elements [start, start + n) of every input that takes part. */
static int tiles_fill(tiles *self, bal_view *view, const bal_view_row *row,
                      uint64_t start, size_t n, bal_error *err)
{
    for (size_t k = 0; k < row->count; k++) {
        double *to = self->memory + k * self->most;
        size_t input = row->which[k];
        const bal_tensor *source = bal_view_source(view, row, input);

        self->inputs[k] = to;
        if (!source || source->form == BAL_FORM_SAME ||
            source->form == BAL_FORM_REMOVED) {
            memset(to, 0, n * sizeof(*to));
            continue;
        }
        int rc = bal_elements_read(to, view->inputs[input], row->sources[input],
                                   start, n, err);
        if (rc)
            return rc;
    }
    self->tile.start = start;
    self->tile.n = n;
    return 0;
}

/* Call fn for the tiles of elements [start, start + n). */
static int each_tile(bal_view *view, const bal_view_row *row, uint64_t start,
                     uint64_t n, bal_tile_fn *fn, void *ctx, bal_error *err)
{
    BAL_LOCAL(tiles) self = { 0 };
    int rc = n ? tiles_init(&self, row, n, err) : 0;

    while (n && !rc) {
        size_t count = bal_min(n, self.most);
        rc = tiles_fill(&self, view, row, start, count, err);
        if (!rc)
            rc = fn(ctx, &self.tile, err);
        start += count;
        n -= count;
    }
    return rc;
}

int bal_view_tiles(bal_model *view, size_t i, bal_tile_fn *fn, void *ctx,
                   bal_error *err)
{
    bal_view *self = (bal_view *)view;
    const bal_view_row *row = &self->rows[bal_model_tag(view, i)];

    return each_tile(self, row, 0, bal_elements_of(bal_model_at(view, i)), fn,
                     ctx, err);
}

/* ---- merging ------------------------------------------------------------ */

/* Once a tensor, by whoever comes first; the others wait. */
static int prepare(bal_view *self, size_t i, bal_view_row *row, bal_error *err)
{
    if (!self->method->prepare ||
        atomic_load_explicit(&row->ready, memory_order_acquire))
        return 0;
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    if (!atomic_load_explicit(&row->ready, memory_order_relaxed))
        rc = self->method->prepare(&row->prepared, &self->model, i,
                                   &self->values, err);
    if (!rc)
        atomic_store_explicit(&row->ready, true, memory_order_release);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

typedef struct merging {
    const bal_view *view;
    double *result; /* TILE_MOST */
    uint8_t *to;
    bal_dtype dtype;
} merging;

/* NaNs of one sign and payload: which of two goes on through a sum is up to the
 * compiler. */
static void settle_nans(double *values, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (values[k] != values[k])
            values[k] = __builtin_nan("");
    }
}

static int merge_tile(void *ctx, const bal_tile *tile, bal_error *err)
{
    merging *self = ctx;
    const bal_view *view = self->view;
    int rc = view->method->merge(self->result, tile, &view->values, err);
    if (rc)
        return rc;

    settle_nans(self->result, tile->n);
    bal_kernels_use()->from_f64[self->dtype](self->to, self->result, tile->n);
    self->to += tile->n * (bal_dtype_bits(self->dtype) / 8);
    return 0;
}

int bal_view_merge(bal_view *self, size_t i, bal_view_row *row, uint64_t offset,
                   void *to, size_t len, bal_error *err)
{
    bal_dtype dtype = bal_model_at(&self->model, i)->dtype;
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t n = len / width;
    int rc = prepare(self, i, row, err);
    if (rc)
        return bal_within(err, rc, "tensor '%s'", row->name);

    merging job = { .view = self, .to = to, .dtype = dtype };
    job.result = malloc(bal_min(n, TILE_MOST) * sizeof(*job.result));
    if (!job.result)
        return bal_fail_memory(err, "merging");
    rc = each_tile(self, row, offset / width, n, merge_tile, &job, err);
    free(job.result);
    return rc;
}
