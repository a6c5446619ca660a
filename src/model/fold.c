/* Entries are the base's, in order, and a head where one comes apart from its
 * embedding; each has an edit that says what its bytes are. */
#include "model/fold.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/elements.h"
#include "model/fold_dora.h"
#include "model/fold_edits.h"

enum { PIECE = 128 * 1024 };

typedef struct fold {
    bal_model model;
    bal_model *base, *adapter;
    bal_edits edits;
} fold;

/* Elements of a tensor of the adapter in the dtype of the base's. */
static int replace(const fold *self, size_t whole, bal_dtype dtype,
                   uint64_t start, uint64_t n, uint8_t *to, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = bal_dtype_bits(dtype) / 8;
    double *wide = malloc(bal_min(n, PIECE) * sizeof(*wide));
    if (!wide)
        return bal_fail_memory(err, "folding an adapter");

    int rc = 0;
    while (n && !rc) {
        size_t count = (size_t)bal_min(n, PIECE);
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

/* Elements [start, start + n) of a tensor, at `to`. */
typedef struct range {
    const bal_tensor *tensor;
    uint64_t start, n;
    uint8_t *to;
} range;

/* The part of a token's row that lies in the range. */
static int replace_row(const fold *self, const bal_edit *edit, size_t k,
                       const range *part, bal_error *err)
{
    uint64_t cols = part->tensor->shape[1];
    uint64_t row = edit->tokens[k].row * cols;
    uint64_t low = bal_max(part->start, row);
    uint64_t high = bal_min(part->start + part->n, row + cols);
    size_t width = bal_dtype_bits(part->tensor->dtype) / 8;

    if (low >= high)
        return 0;
    return replace(self, edit->token_entry, part->tensor->dtype,
                   edit->tokens[k].from * cols + (low - row), high - low,
                   part->to + (low - part->start) * width, err);
}

static int read_start(const fold *self, const bal_edit *edit, bal_dtype dtype,
                      uint64_t offset, void *to, size_t len, bal_error *err)
{
    size_t width = bal_dtype_bits(dtype) / 8;

    if (edit->whole == BAL_NONE)
        return bal_model_read(self->base, edit->base, offset, to, len, err);
    if (bal_model_at(self->adapter, edit->whole)->dtype == dtype)
        return bal_model_read(self->adapter, edit->whole, offset, to, len, err);
    return replace(self, edit->whole, dtype, offset / width, len / width, to,
                   err);
}

static int fold_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    fold *self = (fold *)model;
    const bal_edit *edit = &self->edits.rows[bal_model_tag(model, i)];
    const bal_tensor *tensor = bal_model_at(model, i);
    bal_dtype dtype = tensor->dtype;
    unsigned bits = bal_dtype_bits(dtype);
    range part = { tensor, offset * 8 / bits, (uint64_t)len * 8 / bits, to };

    if (edit->text) {
        memcpy(to, self->edits.config.data + offset, len);
        return 0;
    }
    int rc = read_start(self, edit, dtype, offset, to, len, err);
    if (!rc && edit->change) {
        rc = bal_update_apply(edit->change, self->adapter, dtype, part.start,
                              part.n, to, err);
        if (rc)
            return bal_within(err, rc, "tensor '%s'", tensor->name);
    }
    for (size_t k = 0; k < edit->token_count && !rc; k++)
        rc = replace_row(self, edit, k, &part, err);
    return rc;
}

static void fold_free(bal_model *model)
{
    fold *self = (fold *)model;

    bal_edits_done(&self->edits);
    bal_model_free(self->base);
    bal_model_free(self->adapter);
}

static bal_model *fold_source(bal_model *model, size_t *i)
{
    fold *self = (fold *)model;
    const bal_edit *edit = &self->edits.rows[bal_model_tag(model, *i)];

    if (edit->text || edit->change || edit->token_count ||
        edit->whole != BAL_NONE)
        return NULL;
    *i = edit->base;
    return self->base;
}

static const bal_model_ops fold_ops = {
    .read = fold_read,
    .free = fold_free,
    .source = fold_source,
};

const bal_edit *bal_fold_edit(const bal_model *folded, size_t i)
{
    const fold *self = (const fold *)folded;

    return &self->edits.rows[bal_model_tag(folded, i)];
}

/* ---- opening ------------------------------------------------------------ */

static int list_entry(fold *self, size_t i, bal_error *err)
{
    const bal_edit *edit = &self->edits.rows[i];
    bal_tensor entry = *bal_model_at(self->base, edit->base);

    if (edit->touched || edit->text || edit->whole != BAL_NONE)
        entry.tuned = NULL;
    if (edit->name)
        entry.name = edit->name;
    if (edit->text) { /* the base's length is in its shape too */
        entry.size = self->edits.config.len;
        entry.rank = 0;
        entry.shape = NULL;
    }
    if (edit->whole != BAL_NONE)
        entry.shape = bal_model_at(self->adapter, edit->whole)->shape;
    return bal_model_add(&self->model, &entry, i, err);
}

static int list(fold *self, bal_error *err)
{
    for (size_t i = 0; i < self->edits.count; i++) {
        int rc = list_entry(self, i, err);
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

int bal_fold_open(bal_model **out, bal_model *base, bal_model *adapter,
                  bal_work *work, bal_error *err)
{
    fold *self = bal_model_alloc(sizeof(*self), &fold_ops);
    if (!self)
        return bal_fail_memory(err, "folding an adapter");
    BAL_OWN(bal_model) model = &self->model;
    self->base = bal_model_ref(base);
    self->adapter = bal_model_ref(adapter);

    int rc = bal_edits_make(&self->edits, base, adapter, err);
    if (!rc)
        rc = bal_fold_dora(&self->edits, work, err);
    if (!rc)
        rc = list(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
