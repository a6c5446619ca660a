/* A model whose floats are of another dtype. Headers stay as they were: the
 * writer makes new ones where they no longer fit. */
#include "core/error.h"
#include "kernel/dtype.h"
#include "model/model.h"
#include "model/wide.h"

typedef struct cast {
    bal_model model;
    bal_model *from;
    bal_dtype dtype;
} cast;

typedef struct cast_read {
    bal_dtype of, to, wide;
} cast_read;

/* Widening is exact, so that the narrowing is the one rounding. */
static void cast_chunk(const bal_chunk *chunk, void *ctx)
{
    const cast_read *self = ctx;
    const void *wide = bal_widened(self->wide, chunk->room[0], self->of,
                                   chunk->raw[0], chunk->n);

    bal_narrow(self->to, chunk->to, self->wide, wide, chunk->n);
}

static int cast_read_range(bal_model *model, size_t i, uint64_t offset,
                           void *to, size_t len, bal_error *err)
{
    cast *self = (cast *)model;
    bal_dtype of = bal_model_at(self->from, i)->dtype;
    bal_dtype now = bal_model_at(model, i)->dtype;
    size_t width = bal_dtype_bits(now) / 8;
    cast_read read = { of, now, bal_wide_of(of, now) };
    bal_wide_job job = {
        .sources = { { self->from, i, bal_dtype_bits(of) / 8 } },
        .count = 1,
        .width = width,
        .fn = cast_chunk,
        .ctx = &read,
    };

    if (of == now)
        return bal_model_read(self->from, i, offset, to, len, err);
    return bal_wide_run(&job, offset / width, len / width, to, err);
}

static void cast_free(bal_model *model)
{
    bal_model_free(((cast *)model)->from);
}

static bal_model *cast_source(bal_model *model, size_t *i)
{
    bal_model *from = ((cast *)model)->from;

    return bal_model_at(from, *i)->dtype == bal_model_at(model, *i)->dtype
               ? from
               : NULL;
}

static const bal_model_ops ops = {
    .read = cast_read_range,
    .free = cast_free,
    .source = cast_source,
};

/* Entries are added in the order of from, and keep their index. */
static int list(cast *self, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(self->from); i++) {
        bal_tensor entry = *bal_model_at(self->from, i);
        if (entry.form == BAL_FORM_WHOLE && bal_tensor_float(&entry) &&
            entry.dtype != self->dtype) {
            entry.dtype = self->dtype;
            entry.tuned = NULL;
        }
        int rc = bal_model_add(&self->model, &entry, i, err);
        if (rc)
            return rc;
    }
    return bal_model_ready(&self->model, err);
}

int bal_model_cast(bal_model **out, bal_model *from, bal_dtype dtype,
                   bal_error *err)
{
    if ((unsigned)dtype >= BAL_DTYPES ||
        bal_dtype_row_of(dtype)->class_of != BAL_CLASS_FLOAT)
        return bal_fail(err, BAL_EINVAL,
                        "no rounding to %s: BF16, F16, F32 or F64",
                        bal_dtype_name(dtype));
    cast *self = bal_model_alloc(sizeof(*self), &ops);
    if (!self)
        return bal_fail_memory(err, "rounding a model");
    BAL_OWN(bal_model) model = &self->model;
    self->from = bal_model_ref(from);
    self->dtype = dtype;
    int rc = bal_model_tell(model, bal_model_facts(from), err);
    if (rc)
        return rc;
    rc = list(self, err);
    if (rc)
        return rc;

    *out = BAL_TAKE(model);
    return 0;
}
