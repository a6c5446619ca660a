/* How one tensor of a view comes about, by how each input stands to it. Where
 * any has a DIFFERENCE it is one: what is unchanged counts as zeros, and so
 * does what is absent or removed. Where any is WHOLE and of floats it is a
 * merge of the whole values, without those that have none, and not beside an
 * input that leaves it unchanged. WHOLE of other dtypes is passed on, and all
 * that have it must have the same. All SAME is unchanged, all REMOVED removed.
 *
 * Residuals are not merged: what two deltas add up to is rounded anyway. */
#include "core/arith.h"
#include "core/error.h"
#include "core/hash.h"
#include "kernel/dtype.h"
#include "merge/join.h"
#include "merge/view.h"

/* How many inputs have a tensor in which form, and the first of each. */
typedef struct census {
    size_t seen[BAL_FORM_REMOVED + 1];
    size_t first[BAL_FORM_REMOVED + 1];
    size_t absent;
    size_t absent_at;
} census;

/* The end of the inputs that could have it: what is outside of layers is taken
 * of as many sources as the first slice has (view.c). */
static size_t end_of(const bal_view *self, const bal_view_row *row)
{
    const bal_view_slice *slice = bal_view_slice_of(self, row);
    const bal_view_slice *first = &self->slices[0];
    bal_layer layer;

    if (!self->sliced || bal_layer_of(&layer, row->name))
        return slice->to;
    return bal_min(slice->to, slice->from + (first->to - first->from));
}

static census count_forms(const bal_view *self, const bal_view_row *row)
{
    const bal_view_slice *slice = bal_view_slice_of(self, row);
    census all = { 0 };

    for (size_t k = slice->from; k < end_of(self, row); k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);

        if (!entry) {
            all.absent_at = all.absent ? all.absent_at : k;
            all.absent++;
            continue;
        }
        if (!all.seen[entry->form]++)
            all.first[entry->form] = k;
    }
    return all;
}

/* ---- refusing ----------------------------------------------------------- */

int bal_view_origin(bal_view *self, const bal_id **out, const char *name,
                    bal_error *err)
{
    const char *hex =
        json_string_value(json_object_get(self->recipe->digests, name));

    *out = NULL;
    if (!hex)
        return 0;
    bal_id *id = bal_arena_alloc(&self->model.arena, sizeof(*id));
    if (!id)
        return bal_fail_memory(err, "planning a view");
    *out = id;
    return bal_id_parse(id, hex, err);
}

/* The base's digest that the inputs agree on, NULL: none knows one. */
static int common_base(bal_view *self, const bal_view_row *row,
                       const bal_id **out, bal_error *err)
{
    int rc = bal_view_origin(self, out, row->name, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);

        if (!entry || !entry->base)
            continue;
        if (*out && !bal_id_equal(*out, entry->base))
            return bal_fail(err, BAL_EINVAL,
                            "deltas of different bases: tensor '%s' (input %zu "
                            "'%s')",
                            row->name, k + 1, bal_view_input_name(self, k));
        *out = entry->base;
    }
    return 0;
}

/* Every input that has bytes of it, or has it as it is in the base, has it in
 * one shape. */
static int check_shapes(const bal_view *self, const bal_view_row *row,
                        bal_error *err)
{
    const bal_tensor *first = NULL;

    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);

        if (!entry || entry->form == BAL_FORM_REMOVED)
            continue;
        if (first && !bal_tensor_same_shape(first, entry))
            return bal_fail(err, BAL_EINVAL,
                            "tensor '%s' has another shape in input %zu '%s'",
                            row->name, k + 1, bal_view_input_name(self, k));
        first = first ? first : entry;
    }
    return 0;
}

static int check_strict(const bal_view *self, const bal_view_row *row,
                        const census *all, bal_error *err)
{
    if (!self->strict || !all->absent)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EINVAL,
                             "tensor '%s' is not in input %zu "
                             "'%s'",
                             row->name, all->absent_at + 1,
                             bal_view_input_name(self, all->absent_at)),
                    "--union takes what each input has");
}

/* One input replaced a tensor that another one kept or changed. */
static int check_replaced(const bal_view_row *row, const census *all,
                          bal_error *err)
{
    size_t whole = all->first[BAL_FORM_WHOLE];

    if (!all->seen[BAL_FORM_WHOLE])
        return 0;
    for (int form = 0; form <= BAL_FORM_REMOVED; form++) {
        if (form == BAL_FORM_WHOLE || !all->seen[form])
            continue;
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is replaced in input %zu and not in input "
                        "%zu, and cannot be merged",
                        row->name, whole + 1, all->first[form] + 1);
    }
    return 0;
}

/* What is no difference to the origin has no weight: part of a tensor that the
 * origin has not, or as another one (a head that is its embedding, other rows
 * of a vocabulary) is no tensor. */
static int check_origin(const bal_view *self, const bal_view_row *row,
                        const census *all, bal_error *err)
{
    size_t whole = all->first[BAL_FORM_WHOLE];

    if (bal_recipe_origin(self->recipe) == BAL_NONE ||
        !all->seen[BAL_FORM_WHOLE] ||
        !bal_tensor_float(bal_view_source(self, row, whole)))
        return 0;
    return bal_fail(
        err, BAL_EUNSUPPORTED,
        "tensor '%s' of input %zu is not in the base, or of another "
        "shape there: no difference to merge",
        row->name, whole + 1);
}

/* ---- differences -------------------------------------------------------- */

/* Where the dtype is asked for, what is unchanged is a difference of zeros:
 * only so does the base's tensor come out in another dtype. */
static void cast_same(bal_view *self, bal_tensor *entry, bal_view_row *row)
{
    const bal_dtype_row *dtype = bal_dtype_row_of(entry->dtype);

    if (self->dtype < 0 || dtype->class_of != BAL_CLASS_FLOAT ||
        (int)entry->dtype == self->dtype)
        return;
    entry->form = BAL_FORM_DIFFERENCE;
    entry->dtype = dtype->wide;
    entry->of = (bal_dtype)self->dtype;
    entry->tuned = NULL;
    row->read = bal_view_zeros;
}

static int plan_kept(bal_view *self, size_t row, const census *all,
                     bal_error *err)
{
    bool same = all->seen[BAL_FORM_SAME] != 0;
    bal_form form = same ? BAL_FORM_SAME : BAL_FORM_REMOVED;
    bal_view_row *plan = &self->rows[row];
    bal_tensor entry = *bal_view_source(self, plan, all->first[form]);

    if (same && all->seen[BAL_FORM_REMOVED])
        bal_warn("merge", "tensor=%s kept=input-%zu removed=input-%zu",
                 plan->name, all->first[BAL_FORM_SAME] + 1,
                 all->first[BAL_FORM_REMOVED] + 1);
    if (same)
        cast_same(self, &entry, plan);
    return bal_model_add(&self->model, &entry, row, err);
}

static int plan_difference(bal_view *self, size_t row, const bal_id *base,
                           const census *all, bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    size_t first = all->first[BAL_FORM_DIFFERENCE];
    bal_tensor entry = *bal_view_source(self, plan, first);
    int rc = check_shapes(self, plan, err);
    if (rc)
        return rc;

    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *source = bal_view_source(self, plan, k);
        if (source && source->form == BAL_FORM_DIFFERENCE &&
            source->dtype == BAL_F64)
            entry.dtype = BAL_F64;
    }
    if (all->seen[BAL_FORM_REMOVED])
        bal_warn("merge", "tensor=%s changed=input-%zu removed=input-%zu",
                 plan->name, first + 1, all->first[BAL_FORM_REMOVED] + 1);
    if (self->dtype >= 0)
        entry.of = (bal_dtype)self->dtype;
    entry.base = base;
    entry.tuned = NULL;
    rc = bal_view_take_differences(self, plan, entry.dtype, err);
    if (rc)
        return rc;
    return bal_model_add(&self->model, &entry, row, err);
}

/* ---- whole values ------------------------------------------------------- */

/* All that have it have it of floats; *dtype is what they are merged to. */
static bool all_floats(const bal_view *self, const bal_view_row *row,
                       bal_dtype *dtype)
{
    bool first = true;

    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);

        if (!entry)
            continue;
        if (!bal_tensor_float(entry))
            return false;
        *dtype = first ? entry->dtype : bal_dtype_join(*dtype, entry->dtype);
        first = false;
    }
    return true;
}

/* The dtype of a merge of inputs that have `joined` in common. mergekit works
 * in one dtype, to which a told one is a cast of the inputs, and a few of its
 * methods give F32 all the same; another one may be told for what comes out. */
static bal_dtype result_of(const bal_view *self, const bal_view_row *row,
                           bal_dtype joined)
{
    bool merged = row->read == bal_view_merge;
    bal_dtype dtype = self->dtype < 0 ? joined : (bal_dtype)self->dtype;

    if (self->out_dtype >= 0 && row->read != bal_view_pass)
        return (bal_dtype)self->out_dtype;
    if (!merged)
        return row->arith.work;
    return self->mergekit && self->method->f32 ? bal_dtype_join(dtype, BAL_F32)
                                               : dtype;
}

static int plan_floats(bal_view *self, size_t row, const bal_id *base,
                       bal_dtype dtype, bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    bool kept = true;
    int rc = check_shapes(self, plan, err);
    if (!rc)
        rc = bal_view_take(self, plan,
                           self->dtype < 0 ? dtype : (bal_dtype)self->dtype,
                           &kept, err);
    if (rc || !kept)
        return rc;

    bool passed = plan->read == bal_view_pass;
    size_t from = plan->read == bal_view_merge ? plan->which[0] : plan->from;
    bal_tensor entry = *bal_view_source(self, plan, from);
    entry.name = plan->name;
    entry.dtype = result_of(self, plan, dtype);
    plan->rounds = self->out_dtype >= 0;
    entry.of = entry.dtype;
    entry.base = base;
    entry.tuned = passed ? entry.tuned : NULL;
    return bal_model_add(&self->model, &entry, row, err);
}

/* Integers, booleans, FP8: one value for all, by digest where it is known and
 * byte by byte when it is read where it is not. */
static int plan_equal(bal_view *self, size_t row, const bal_id *base,
                      size_t from, bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    const bal_tensor *first = bal_view_source(self, plan, from);
    bal_tensor entry = *first;

    for (size_t k = from + 1; k < self->count; k++) {
        const bal_tensor *other = bal_view_source(self, plan, k);

        if (!other)
            continue;
        bool known = first->tuned && other->tuned;
        if (first->dtype != other->dtype ||
            !bal_tensor_same_shape(first, other) ||
            (known && !bal_id_equal(first->tuned, other->tuned)))
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' is not the same in input %zu and in "
                            "input %zu, and only floats can be merged",
                            plan->name, from + 1, k + 1);
        entry.tuned = entry.tuned ? entry.tuned : other->tuned;
    }
    entry.name = plan->name;
    entry.base = base;
    plan->from = from;
    plan->read = bal_view_compare;
    return bal_model_add(&self->model, &entry, row, err);
}

int bal_plan_tensor(bal_view *self, size_t row, bal_error *err)
{
    bal_view_row *plan = &self->rows[row];
    census all = count_forms(self, plan);
    const bal_id *base;
    bal_dtype dtype = BAL_F32;

    int rc = common_base(self, plan, &base, err);
    if (!rc)
        rc = check_strict(self, plan, &all, err);
    if (!rc)
        rc = check_replaced(plan, &all, err);
    if (!rc)
        rc = check_origin(self, plan, &all, err);
    if (rc)
        return rc;
    if (all.seen[BAL_FORM_DIFFERENCE])
        return plan_difference(self, row, base, &all, err);
    if (!all.seen[BAL_FORM_WHOLE])
        return plan_kept(self, row, &all, err);
    if (all_floats(self, plan, &dtype))
        return plan_floats(self, row, base, dtype, err);
    return plan_equal(self, row, base, all.first[BAL_FORM_WHOLE], err);
}
