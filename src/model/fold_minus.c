/* What an adapter does to a base, as a delta. Entries are those of the folded
 * model, which is not read where a formula tells the difference itself. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/elements.h"
#include "model/fold.h"
#include "model/fold_edits.h"

enum { PIECE = 64 * 1024 };

/* Tags are indices of the folded model. */
typedef struct fold_minus {
    bal_model model;
    bal_model *base, *adapter, *folded;
} fold_minus;

/* ---- reading ------------------------------------------------------------ */

/* A tensor of floats, wherever it is. */
typedef struct source {
    bal_model *model;
    size_t entry;
} source;

/* Elements of one less those of another. */
static int subtract(source from, source less, bal_dtype dtype, uint64_t start,
                    uint64_t n, uint8_t *to, bal_error *err)
{
    const bal_kernels *kernels = bal_kernels_use();
    size_t width = bal_dtype_bits(dtype) / 8;
    size_t most = (size_t)bal_min(n, PIECE);
    double *wide = malloc(2 * most * sizeof(*wide) + 1);
    if (!wide)
        return bal_fail_memory(err, "folding an adapter");

    int rc = 0;
    while (n && !rc) {
        size_t count = (size_t)bal_min(n, most);
        rc = bal_elements_read(wide, from.model, from.entry, start, count, err);
        if (!rc)
            rc = bal_elements_read(wide + most, less.model, less.entry, start,
                                   count, err);
        if (rc)
            break;
        kernels->sub_f64(wide, wide, wide + most, count);
        kernels->from_f64[dtype](to, wide, count);
        to += count * width;
        start += count;
        n -= count;
    }
    free(wide);
    return rc;
}

/* What a tensor becomes, before it is rounded to the base's dtype where that is
 * to be had. */
static source tuned_of(const fold_minus *self, const bal_edit *edit, size_t i)
{
    if (edit->whole != BAL_NONE && !edit->change && !edit->token_count)
        return (source){ self->adapter, edit->whole };
    return (source){ self->folded, i };
}

/* Does a formula alone tell what is added? */
static bool by_formula(const bal_edit *edit)
{
    return edit->change && edit->whole == BAL_NONE && !edit->token_count;
}

static int fold_minus_read(bal_model *model, size_t i, uint64_t offset,
                           void *to, size_t len, bal_error *err)
{
    fold_minus *self = (fold_minus *)model;
    const bal_tensor *entry = bal_model_at(model, i);
    size_t tag = bal_model_tag(model, i);
    const bal_edit *edit = bal_fold_edit(self->folded, tag);
    size_t width = bal_dtype_bits(entry->dtype) / 8;

    if (entry->form == BAL_FORM_WHOLE)
        return bal_model_read(self->folded, tag, offset, to, len, err);
    if (!by_formula(edit))
        return subtract(tuned_of(self, edit, tag),
                        (source){ self->base, edit->base }, entry->dtype,
                        offset / width, len / width, to, err);
    const bal_update_sides sides = { self->adapter, self->base, edit->base };
    int rc = bal_update_difference(edit->change, &sides, entry->dtype,
                                   offset / width, len / width, to, err);
    return rc ? bal_within(err, rc, "tensor '%s'", entry->name) : 0;
}

static void fold_minus_free(bal_model *model)
{
    fold_minus *self = (fold_minus *)model;

    bal_model_free(self->folded);
    bal_model_free(self->base);
    bal_model_free(self->adapter);
}

static const bal_model_ops fold_minus_ops = {
    .read = fold_minus_read,
    .free = fold_minus_free,
};

/* ---- listing ------------------------------------------------------------ */

/* How an entry of the folded model stands to the base. */
static bal_form form_of(const fold_minus *self, size_t i)
{
    const bal_edit *edit = bal_fold_edit(self->folded, i);
    const bal_tensor *entry = bal_model_at(self->folded, i);

    if (edit->name || edit->text)
        return BAL_FORM_WHOLE;
    if (!edit->change && edit->whole == BAL_NONE && !edit->token_count)
        return BAL_FORM_SAME;
    bool fits =
        bal_tensor_float(entry) &&
        bal_tensor_same_shape(entry, bal_model_at(self->base, edit->base));
    return fits ? BAL_FORM_DIFFERENCE : BAL_FORM_WHOLE;
}

static int list_entry(fold_minus *self, size_t i, bal_error *err)
{
    bal_tensor entry = *bal_model_at(self->folded, i);

    if (entry.part == BAL_PART_HEADER)
        return 0;
    entry.form = form_of(self, i);
    entry.of = entry.dtype;
    entry.tuned = NULL;
    entry.base = NULL;
    if (entry.form == BAL_FORM_DIFFERENCE)
        entry.dtype = entry.dtype == BAL_F64 ? BAL_F64 : BAL_F32;
    return bal_model_add(&self->model, &entry, i, err);
}

static int list(fold_minus *self, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(self->folded); i++) {
        int rc = list_entry(self, i, err);
        if (rc)
            return rc;
    }
    return bal_model_ready(&self->model, err);
}

static int tell(fold_minus *self, bal_error *err)
{
    bal_facts facts = *bal_model_facts(self->folded);

    facts.kind = BAL_KIND_DELTA;
    return bal_model_tell(&self->model, &facts, err);
}

int bal_fold_minus(bal_model **out, bal_model *base, bal_model *adapter,
                   bal_work *work, bal_error *err)
{
    fold_minus *self = bal_model_alloc(sizeof(*self), &fold_minus_ops);
    if (!self)
        return bal_fail_memory(err, "folding an adapter");
    BAL_OWN(bal_model) model = &self->model;
    self->base = bal_model_ref(base);
    self->adapter = bal_model_ref(adapter);

    int rc = bal_fold_open(&self->folded, base, adapter, work, err);
    if (!rc)
        rc = tell(self, err);
    if (!rc)
        rc = list(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
