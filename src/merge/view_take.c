/* Who takes part in merging a tensor, and in what arithmetic. What mergekit
 * does with a tensor that some of the inputs lack depends on the method; the
 * method's row says it, here it is decided. */
#include "core/arith.h"
#include "core/error.h"
#include "merge/join.h"
#include "merge/view.h"
#include "model/elements.h"

/* Longer ones of a method that needs them whole are refused: a tile is one of
 * every input. */
#define UNIT_MOST ((uint64_t)64 << 20)

/* The input that is set apart, BAL_NONE: none is. */
static size_t base_of(const bal_view *self, const bal_view_row *row)
{
    return bal_view_slice_of(self, row)->base;
}

/* How many have it. */
typedef struct present {
    size_t others; /* without the base */
    size_t last;   /* of them */
    bool base;
} present;

static present count_present(const bal_view *self, const bal_view_row *row)
{
    present all = { .last = BAL_NONE };

    for (size_t k = 0; k < self->count; k++) {
        if (row->sources[k] == BAL_NONE)
            continue;
        if (k == base_of(self, row)) {
            all.base = true;
            continue;
        }
        all.others++;
        all.last = k;
    }
    return all;
}

/* ---- a method's wants --------------------------------------------------- */

bal_extent bal_view_extent(const bal_tensor *tensor)
{
    uint64_t total = bal_elements_of(tensor);

    return (bal_extent){
        .rank = tensor->rank,
        .shape = tensor->shape,
        .total = total,
        .row = tensor->rank > 1 ? tensor->shape[tensor->rank - 1] : total,
    };
}

static int measure(bal_view *self, bal_view_row *row, const bal_tensor *tensor,
                   bal_error *err)
{
    uint64_t (*align)(const bal_extent *) = self->method->align;

    row->extent = bal_view_extent(tensor);
    row->unit =
        align && row->extent.total ? bal_max(align(&row->extent), 1) : 1;
    if (row->unit <= UNIT_MOST)
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' has rows of %llu elements, more than method "
                    "'%s' takes",
                    row->name, (unsigned long long)row->unit,
                    self->method->info.name);
}

static bool takes_part(const bal_view *self, const bal_view_row *row, size_t k,
                       bool zeros)
{
    return k != base_of(self, row) && (zeros || row->sources[k] != BAL_NONE);
}

/* Inputs that lack the tensor take part as zeros if zeros is set. */
static int take_part(bal_view *self, bal_view_row *row, bool zeros,
                     bal_error *err)
{
    bal_arena *arena = &self->model.arena;

    row->which = bal_arena_alloc(arena, self->count * sizeof(*row->which));
    row->weights = bal_arena_alloc(arena, self->count * sizeof(*row->weights));
    if (!row->which || !row->weights)
        return bal_fail_memory(err, "planning a view");
    for (size_t k = 0; k < self->count; k++) {
        if (!takes_part(self, row, k, zeros))
            continue;
        row->which[row->count] = k;
        row->weights[row->count++] = bal_values_weight(row->values, k);
    }
    if (!self->method->check)
        return 0;
    int rc = self->method->check(row->weights, row->count, row->values, err);
    return rc ? bal_within(err, rc, "tensor '%s'", row->name) : 0;
}

/* dtype: of what is merged, all of it together. */
static int take(bal_view *self, bal_view_row *row, bal_dtype dtype, bool zeros,
                bal_error *err)
{
    const bal_tensor *tensor = NULL;

    for (size_t k = 0; k < self->count && !tensor; k++) {
        tensor = bal_view_source(self, row, k);
        if (tensor && tensor->form == BAL_FORM_REMOVED)
            tensor = NULL;
    }
    if (!tensor)
        return bal_fail(err, BAL_ECORRUPT, "tensor '%s' is in no input",
                        row->name);
    row->read = bal_view_merge;
    row->arith = (bal_arith){ .mergekit = self->mergekit, .work = dtype };
    row->based = base_of(self, row) != BAL_NONE ||
                 self->method->role == BAL_ROLE_OPERAND;
    int rc = measure(self, row, tensor, err);
    return rc ? rc : take_part(self, row, zeros, err);
}

/* ---- what is lacking ---------------------------------------------------- */

static int too_few(const bal_view *self, const bal_view_row *row,
                   const present *all, bal_error *err)
{
    return bal_fail(err, BAL_EINVAL,
                    "tensor '%s' is in %zu inputs, method '%s' takes %zu",
                    row->name, all->others, self->method->info.name,
                    self->method->info.min_inputs);
}

static int base_lacks(const bal_view *self, const bal_view_row *row,
                      bal_error *err)
{
    size_t base = base_of(self, row);

    return bal_fail(err, BAL_EINVAL,
                    "tensor '%s' is not in the base (input %zu '%s')",
                    row->name, base + 1, bal_view_input_name(self, base));
}

/* In dtype, or in what follows it. */
static int pass_as(bal_view *self, bal_view_row *row, size_t from,
                   bal_dtype dtype)
{
    bool other = self->out_dtype >= 0 && (int)dtype != self->out_dtype;
    bool cast = other || dtype != bal_view_source(self, row, from)->dtype;

    row->from = from;
    row->arith = (bal_arith){ .mergekit = self->mergekit, .work = dtype };
    row->read = cast ? bal_view_cast : bal_view_pass;
    return 0;
}

/* The bytes of the one input that has them, as they are or in the dtype that
 * was asked for. */
static int pass_on(bal_view *self, bal_view_row *row, size_t from)
{
    const bal_tensor *source = bal_view_source(self, row, from);

    return pass_as(self, row, from,
                   self->dtype < 0 ? source->dtype : (bal_dtype)self->dtype);
}

/* An input that comes out as it went in does not go through a difference to the
 * base, which would be rounded. */
static bool is_same(const bal_view *self, const bal_view_row *row,
                    const present *all)
{
    const bal_method *method = self->method;

    return base_of(self, row) != BAL_NONE && method->role == BAL_ROLE_ORIGIN &&
           all->others == 1 && method->same &&
           method->same(bal_values_weight(row->values, all->last), row->values);
}

/* Fewer than the method takes. */
static int take_few(bal_view *self, bal_view_row *row, const present *all,
                    bool *kept, bal_error *err)
{
    if (self->mergekit && self->weights) {
        bal_warn("merge", "tensor=%s left-out inputs=%zu", row->name,
                 all->others + all->base);
        *kept = false;
        return 0;
    }
    if (all->base)
        return pass_on(self, row, base_of(self, row));
    return base_of(self, row) == BAL_NONE ? too_few(self, row, all, err)
                                          : base_lacks(self, row, err);
}

int bal_view_take(bal_view *self, bal_view_row *row, bal_dtype dtype,
                  bool *kept, bal_error *err)
{
    const bal_method *method = self->method;
    present all = count_present(self, row);
    bool based = base_of(self, row) != BAL_NONE;
    bool few = all.others < method->info.min_inputs;
    bool alone = all.others + all.base == 1;
    /* Where there is no base to keep, what is added by one is kept. */
    bool drop = method->few == BAL_FEW_DROP && few;
    bool copy = method->few == BAL_FEW_COPY || (drop && !self->weights);

    *kept = true;
    if (!all.others)
        return pass_on(self, row, base_of(self, row));
    if (alone && copy && (few || based))
        return pass_on(self, row, all.last);
    if (drop)
        return take_few(self, row, &all, kept, err);
    if (based && !all.base && self->weights)
        return base_lacks(self, row, err);
    if (few)
        return too_few(self, row, &all, err);
    if (is_same(self, row, &all))
        return pass_as(self, row, all.last, dtype);
    return take(self, row, dtype, false, err);
}

int bal_view_take_differences(bal_view *self, bal_view_row *row,
                              bal_dtype dtype, bal_error *err)
{
    bool zeros = self->method->absent == BAL_ABSENT_ZERO;
    present all = count_present(self, row);

    if (!zeros && all.others < self->method->info.min_inputs)
        return too_few(self, row, &all, err);
    return take(self, row, dtype, zeros, err);
}
