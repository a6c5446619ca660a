/* A read is cut into rectangles of the weight: part of one row, or several
 * whole rows, at most CHUNK elements. Each takes its rows of B at once and A in
 * blocks of k, so memory does not grow with rank or width, and since k rises
 * whatever the rectangles are, an element does not depend on how it is read. */
#include "model/fold.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/elements.h"
#include "model/fold_fit.h"

/* At least BAL_LORA_RANK_MAX, so that a row of B fits. */
enum { CHUNK = 128 * 1024 };

_Static_assert(CHUNK >= BAL_LORA_RANK_MAX, "a row of B fits in a chunk");

/* What happens to an entry of the base: NULL and BAL_NONE: nothing. */
typedef struct effect {
    const bal_lora *lora;
    size_t whole; /* entry of the adapter */
} effect;

typedef struct fold {
    bal_model model;
    bal_model *base;
    bal_model *adapter;
    bal_loras loras;
    effect *effects; /* by entry of the base, which is the tag */
} fold;

typedef struct rect {
    uint64_t row, col;
    size_t rows, cols;
} rect;

/* CHUNK doubles each. */
typedef struct scratch {
    double *sum, *a, *b;
} scratch;

/* The next rectangle of [start, start + n) of a matrix. */
static rect next_rect(const bal_lora *lora, uint64_t start, uint64_t n)
{
    rect next = { start / lora->in, start % lora->in, 1, 0 };

    next.cols = (size_t)bal_min(bal_min(lora->in - next.col, n), CHUNK);
    if (next.cols == lora->in) {
        uint64_t rows = bal_min(CHUNK / lora->in, CHUNK / lora->rank);
        next.rows = (size_t)bal_max(1, bal_min(rows, n / lora->in));
    }
    return next;
}

/* Rows k … k + count of A, the columns of the rectangle. */
static int read_a(const fold *self, const bal_lora *lora, const rect *area,
                  uint64_t k, size_t count, double *to, bal_error *err)
{
    if (area->cols == lora->in)
        return bal_elements_read(to, self->adapter, lora->a, k * lora->in,
                                 count * area->cols, err);
    for (size_t i = 0; i < count; i++) {
        uint64_t start = (k + i) * lora->in + area->col;
        int rc = bal_elements_read(to + i * area->cols, self->adapter, lora->a,
                                   start, area->cols, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* sum[r, c] = Σ_k B[r, k] A[k, c]. */
static int product(const fold *self, const bal_lora *lora, const rect *area,
                   const scratch *room, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t rank = (size_t)lora->rank;
    size_t block = (size_t)bal_max(1, CHUNK / area->cols);

    memset(room->sum, 0, area->rows * area->cols * sizeof(double));
    int rc = bal_elements_read(room->b, self->adapter, lora->b,
                               area->row * rank, area->rows * rank, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < rank; k += block) {
        size_t count = (size_t)bal_min(block, rank - k);
        rc = read_a(self, lora, area, k, count, room->a, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < area->rows * count; i++) {
            size_t row = i / count;
            size_t term = i % count;
            kernels->axpy64(room->sum + row * area->cols,
                            room->b[row * rank + k + term],
                            room->a + term * area->cols, area->cols);
        }
    }
    return 0;
}

/* W + s B A over the elements at `to`, which hold W. */
static int add_product(const fold *self, const bal_lora *lora, bal_dtype dtype,
                       uint64_t start, uint64_t n, uint8_t *to, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = bal_dtype_bits(dtype) / 8;
    double *memory = malloc(3 * (size_t)CHUNK * sizeof(*memory));
    if (!memory)
        return bal_fail_memory(err, "folding an adapter");
    scratch room = { memory, memory + CHUNK, memory + 2 * (size_t)CHUNK };

    int rc = 0;
    while (n && !rc) {
        rect area = next_rect(lora, start, n);
        size_t count = area.rows * area.cols;

        rc = product(self, lora, &area, &room, err);
        if (rc)
            break;
        kernels->scale(room.sum, lora->scale, count);
        kernels->to_f64[dtype](room.a, to, count);
        kernels->add_f64(room.sum, room.sum, room.a, count);
        kernels->from_f64[dtype](to, room.sum, count);
        to += count * width;
        start += count;
        n -= count;
    }
    free(memory);
    return rc;
}

/* Elements of a tensor of the adapter in the dtype of the base's. */
static int replace(const fold *self, size_t whole, bal_dtype dtype,
                   uint64_t start, uint64_t n, uint8_t *to, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = bal_dtype_bits(dtype) / 8;
    bal_dtype from = bal_model_at(self->adapter, whole)->dtype;

    if (from == dtype)
        return bal_model_read(self->adapter, whole, start * width, to,
                              n * width, err);
    double *wide = malloc(bal_min(n, CHUNK) * sizeof(*wide));
    if (!wide)
        return bal_fail_memory(err, "folding an adapter");
    int rc = 0;
    while (n && !rc) {
        size_t count = (size_t)bal_min(n, CHUNK);
        rc = bal_elements_read(wide, self->adapter, whole, start, count, err);
        if (!rc)
            kernels->from_f64[dtype](to, wide, count);
        to += count * width;
        start += count;
        n -= count;
    }
    free(wide);
    return rc;
}

static int fold_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    fold *self = (fold *)model;
    size_t entry = bal_model_tag(model, i);
    const effect *done_to = &self->effects[entry];
    bal_dtype dtype = bal_model_at(model, i)->dtype;
    size_t width = bal_dtype_bits(dtype) / 8;

    if (done_to->whole != BAL_NONE)
        return replace(self, done_to->whole, dtype, offset / width, len / width,
                       to, err);
    int rc = bal_model_read(self->base, entry, offset, to, len, err);
    if (rc || !done_to->lora)
        return rc;
    return add_product(self, done_to->lora, dtype, offset / width, len / width,
                       to, err);
}

static void fold_free(bal_model *model)
{
    fold *self = (fold *)model;

    bal_model_free(self->base);
    bal_model_free(self->adapter);
    bal_loras_done(&self->loras);
    free(self->effects);
}

static const bal_model_ops fold_ops = {
    .read = fold_read,
    .free = fold_free,
};

/* ---- opening ------------------------------------------------------------ */

static int match(fold *self, const bal_fit *fit, bal_error *err)
{
    for (size_t i = 0; i < self->loras.count; i++) {
        const bal_lora *lora = &self->loras.rows[i];
        size_t entry;
        int rc = bal_fit_lora(fit, lora, &entry, err);
        if (rc)
            return rc;
        self->effects[entry].lora = lora;
    }
    for (size_t i = 0; i < self->loras.whole_count; i++) {
        const bal_lora_whole *whole = &self->loras.wholes[i];
        const bal_tensor *tensor = bal_model_at(self->adapter, whole->entry);
        size_t entry;
        int rc = bal_fit_whole(fit, whole, tensor, &entry, err);
        if (rc)
            return rc;
        if (self->effects[entry].lora || self->effects[entry].whole != BAL_NONE)
            return bal_fail(err, BAL_ECORRUPT,
                            "the adapter changes tensor '%s' twice",
                            whole->name);
        self->effects[entry].whole = whole->entry;
    }
    return 0;
}

/* Entries are the base's: shapes and dtypes do not change. */
static int list(fold *self, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(self->base); i++) {
        bal_tensor entry = *bal_model_at(self->base, i);

        if (self->effects[i].lora || self->effects[i].whole != BAL_NONE)
            entry.tuned = NULL;
        int rc = bal_model_add(&self->model, &entry, i, err);
        if (rc)
            return rc;
    }
    bal_facts facts = *bal_model_facts(self->base);
    facts.kind = BAL_KIND_WEIGHTS;
    facts.name = bal_model_facts(self->adapter)->name;
    int rc = bal_model_tell(&self->model, &facts, err);
    if (rc)
        return rc;
    return bal_model_ready(&self->model, err);
}

static int plan(fold *self, bal_error *err)
{
    size_t count = bal_model_count(self->base);
    int rc = bal_loras_read(&self->loras, self->adapter, err);
    if (rc)
        return rc;
    self->effects = calloc(count + 1, sizeof(*self->effects));
    if (!self->effects)
        return bal_fail_memory(err, "folding an adapter");
    for (size_t i = 0; i < count; i++)
        self->effects[i].whole = BAL_NONE;

    bal_fit fit;
    rc = bal_fit_open(&fit, self->base, self->loras.config, err);
    if (!rc)
        rc = match(self, &fit, err);
    bal_fit_done(&fit);
    if (rc)
        return rc;
    return list(self, err);
}

int bal_fold_open(bal_model **out, bal_model *base, bal_model *adapter,
                  bal_work *work, bal_error *err)
{
    (void)work; /* nothing is read before it is asked for */
    fold *self = bal_model_alloc(sizeof(*self), &fold_ops);
    if (!self)
        return bal_fail_memory(err, "folding an adapter");
    BAL_OWN(bal_model) model = &self->model;
    self->base = bal_model_ref(base);
    self->adapter = bal_model_ref(adapter);

    int rc = plan(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
