/* Where in mergekit's stream of random numbers each tensor draws. mergekit
 * merges one tensor after another, in the order of their names' bytes (of equal
 * ones, where layers are used twice, in one that has no rule; here by the names
 * that they get), and for each draws for one model after another; so the place
 * of an input's numbers is how many were drawn for all before it, and that is
 * known from shapes and parameters alone. A tensor may then be read without the
 * others. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "merge/view.h"

/* A tensor by what mergekit orders it by: the last in order of the names that
 * its inputs have for it. */
typedef struct labelled {
    const char *label;
    bal_view_row *row;
} labelled;

static int by_label(const void *a, const void *b)
{
    const labelled *x = a;
    const labelled *y = b;
    int order = strcmp(x->label, y->label);

    return order ? order : strcmp(x->row->name, y->row->name);
}

/* What an input has for a tensor is in general of its name, or the embeddings
 * that are tied to it. NULL: no memory. */
static const char *label_of(bal_view *self, bal_view_row *row)
{
    const char *last = NULL;

    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *source = bal_view_source(self, row, k);
        bool tied = source && strcmp(source->name, row->name) != 0;
        const char *label = !source ? NULL
                            : tied  ? source->name
                                    : bal_view_label(self, row, k);
        if (source && !label)
            return NULL;
        if (source && (!last || strcmp(label, last) > 0))
            last = label;
    }
    return last ? last : row->name;
}

static int too_many(bal_error *err)
{
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "more random numbers of mergekit's stream than can be "
                    "counted through");
}

/* What one input draws is added to *at. */
static int count_input(const bal_view *self, const bal_view_row *row,
                       const bal_extent *extent, size_t input, uint64_t *at,
                       bal_error *err)
{
    const bal_values *values = row->values ? row->values : &self->values;
    uint64_t draws = self->method->draws(extent, input, values);

    return bal_add(at, *at, draws) && *at <= BAL_TORCH_STREAM_MOST
               ? 0
               : too_many(err);
}

static int count_merge(bal_view *self, bal_view_row *row, uint64_t *at,
                       bal_error *err)
{
    row->drawn = bal_arena_alloc(&self->model.arena,
                                 (row->count + 1) * sizeof(*row->drawn));
    if (!row->drawn)
        return bal_fail_memory(err, "planning a view");
    for (size_t i = 0; i < row->count; i++) {
        row->drawn[i] = *at;
        int rc = count_input(self, row, &row->extent, row->which[i], at, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The entry of a tensor of floats that no input changes, NULL: it is something
 * else. */
static const bal_tensor *unchanged(const bal_view *self,
                                   const bal_view_row *row)
{
    for (size_t k = 0; !self->whole && k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);

        if (entry && entry->part == BAL_PART_TENSOR &&
            entry->form == BAL_FORM_SAME)
            return bal_tensor_float(entry) ? entry : NULL;
    }
    return NULL;
}

/* mergekit knows no differences: it draws for the zeros that these are, too. */
static int count_unchanged(bal_view *self, bal_view_row *row,
                           const bal_tensor *entry, uint64_t *at,
                           bal_error *err)
{
    bal_extent extent = bal_view_extent(entry);
    int rc = 0;

    for (size_t k = 0; !rc && k < self->count; k++) {
        if (k != self->slices[0].base)
            rc = count_input(self, row, &extent, k, at, err);
    }
    return rc;
}

static int count_row(bal_view *self, bal_view_row *row, uint64_t *at,
                     bal_error *err)
{
    if (row->read == bal_view_merge)
        return count_merge(self, row, at, err);
    const bal_tensor *entry = unchanged(self, row);
    return entry ? count_unchanged(self, row, entry, at, err) : 0;
}

static int count_rows(bal_view *self, labelled *rows, bal_error *err)
{
    uint64_t at = 0;
    int rc = 0;

    for (size_t i = 0; i < self->row_count; i++) {
        rows[i].row = &self->rows[i];
        rows[i].label = label_of(self, rows[i].row);
        if (!rows[i].label)
            return bal_fail_memory(err, "planning a view");
    }
    qsort(rows, self->row_count, sizeof(*rows), by_label);
    for (size_t i = 0; !rc && i < self->row_count; i++) {
        rc = count_row(self, rows[i].row, &at, err);
        if (rc)
            rc = bal_within(err, rc, "tensor '%s'", rows[i].row->name);
    }
    return rc ? rc
              : bal_torch_stream_new(&self->stream, self->stream_seed, at, err);
}

int bal_view_order_draws(bal_view *self, bal_error *err)
{
    if (!self->streamed || !self->method->draws)
        return 0;
    labelled *rows = calloc(self->row_count + 1, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "planning a view");
    int rc = count_rows(self, rows, err);
    free(rows);
    return rc;
}
