/* What the parameters are for each tensor of a view. Where they are the same
 * for all, nothing is looked at; else a tensor's are kept once for all that
 * follow it and have the same. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "merge/view.h"

const bal_view_slice *bal_view_slice_of(const bal_view *self,
                                        const bal_view_row *row)
{
    return &self->slices[row->slice];
}

/* An input's number for the layer that is `number` in the result. */
static uint64_t own_layer(const bal_view_shift *shift, uint64_t number)
{
    return number - shift->at + shift->first;
}

const char *bal_view_label(bal_view *self, const bal_view_row *row,
                           size_t input)
{
    const bal_view_shift *shift = &self->shifts[input];
    bal_layer layer;

    if (!self->sliced || shift->first == shift->at ||
        !bal_layer_of(&layer, row->name))
        return row->name;
    size_t size = strlen(row->name) + 24;
    char *label = bal_arena_alloc(&self->model.arena, size);
    if (label)
        snprintf(label, size, "%.*s%llu%s", (int)layer.stack, row->name,
                 (unsigned long long)own_layer(shift, layer.number),
                 row->name + layer.rest);
    return label;
}

static double depth_of(const bal_view *self, const bal_view_row *row)
{
    const bal_view_shift *shift =
        &self->shifts[bal_view_slice_of(self, row)->from];
    bal_layer layer;

    if (!self->sliced)
        return bal_stacks_depth(&self->stacks, row->name);
    if (!bal_layer_of(&layer, row->name))
        return 0;
    return bal_layer_depth(layer.number - shift->at, shift->count);
}

/* Those of the row's slice, each by its own name. */
static int find_places(bal_view *self, const bal_view_row *row, double depth,
                       bal_error *err)
{
    const bal_view_slice *slice = bal_view_slice_of(self, row);

    memset(self->places, 0, self->rules.count * sizeof(*self->places));
    for (size_t k = slice->from; k < slice->to; k++) {
        const char *label = bal_view_label(self, row, k);
        if (!label)
            return bal_fail_memory(err, "planning a view");
        self->places[k] = (bal_place){ label, depth };
    }
    return 0;
}

static bool is_latest(const bal_view *self)
{
    return self->latest && !memcmp(self->latest->common, self->values.common,
                                   bal_values_size(&self->values));
}

static int keep(bal_view *self, bal_error *err)
{
    bal_arena *arena = &self->model.arena;
    size_t size = bal_values_size(&self->values);
    bal_values *copy = bal_arena_alloc(arena, sizeof(*copy));
    double *numbers = bal_arena_alloc(arena, size + 1);

    if (!copy || !numbers)
        return bal_fail_memory(err, "planning a view");
    *copy = self->values;
    copy->common = memcpy(numbers, self->values.common, size);
    copy->inputs = numbers + copy->param_count;
    self->latest = copy;
    return 0;
}

int bal_view_values(bal_view *self, bal_view_row *row, bal_error *err)
{
    double depth;

    row->values = &self->values;
    if (self->rules.plain)
        return 0;
    depth = depth_of(self, row);
    int rc = find_places(self, row, depth, err);
    if (rc)
        return rc;
    const bal_where where = { row->slice, { row->name, depth }, self->places };
    rc = bal_values_fill(&self->values, &self->rules, &where, err);
    if (!rc && !is_latest(self))
        rc = keep(self, err);
    row->values = self->latest;
    return rc;
}
