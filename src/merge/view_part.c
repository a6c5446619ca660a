/* Some layers of a model under other numbers, as a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/view.h"

typedef struct part {
    bal_model model;
    bal_model *of;
    bal_view_part want;
    bal_stacks stacks;
    bool *seen; /* of the layers that are wanted */
} part;

static int part_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    part *self = (part *)model;

    return bal_model_read(self->of, bal_model_tag(model, i), offset, to, len,
                          err);
}

static void part_free(bal_model *model)
{
    part *self = (part *)model;

    bal_model_free(self->of);
    bal_stacks_done(&self->stacks);
    free(self->seen);
}

static void part_pass(bal_model *model, size_t i, uint64_t offset, uint64_t len)
{
    part *self = (part *)model;

    bal_model_pass(self->of, bal_model_tag(model, i), offset, len);
}

static bal_model *part_source(bal_model *model, size_t *i)
{
    part *self = (part *)model;

    *i = bal_model_tag(model, *i);
    return self->of;
}

static const bal_model_ops part_ops = {
    .read = part_read,
    .free = part_free,
    .pass = part_pass,
    .source = part_source,
};

/* ---- what there is ------------------------------------------------------ */

static const char *name_of(const part *self)
{
    const char *name = bal_model_facts(self->of)->name;

    return name ? name : "";
}

static int count_layers(part *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < bal_model_count(self->of); i++) {
        const bal_tensor *entry = bal_model_at(self->of, i);
        if (entry->part == BAL_PART_TENSOR)
            rc = bal_stacks_add(&self->stacks, entry->name, err);
    }
    if (!rc && self->stacks.count > 1)
        rc = bal_fail(err, BAL_EUNSUPPORTED,
                      "'%s' has %zu stacks of layers, and slices are of one",
                      name_of(self), self->stacks.count);
    return rc;
}

static int check_range(const part *self, bal_error *err)
{
    const bal_view_shift *shift = &self->want.shift;
    uint64_t there = self->stacks.count ? self->stacks.counts[0] : 0;

    bool fits = shift->count <= there && shift->first <= there - shift->count;
    if (fits && shift->count <= bal_model_count(self->of))
        return 0;
    /* A name can tell of more layers than there are tensors. */
    if (fits)
        return bal_fail(err, BAL_EINVAL,
                        "'%s' has %zu tensors, for %llu layers", name_of(self),
                        bal_model_count(self->of),
                        (unsigned long long)shift->count);
    return bal_fail(err, BAL_EINVAL,
                    "layers [%llu, %llu) of '%s', which has %llu",
                    (unsigned long long)shift->first,
                    (unsigned long long)(shift->first + shift->count),
                    name_of(self), (unsigned long long)there);
}

static int check_seen(const part *self, bal_error *err)
{
    const bal_view_shift *shift = &self->want.shift;

    for (uint64_t i = 0; i < shift->count; i++) {
        unsigned long long layer = shift->first + i;
        if (!self->seen[i])
            return bal_fail(err, BAL_EINVAL, "'%s' has no layer %llu",
                            name_of(self), layer);
    }
    return 0;
}

/* ---- what is taken ------------------------------------------------------ */

static int add_as(part *self, size_t i, const char *name, bal_error *err)
{
    bal_tensor entry = *bal_model_at(self->of, i);

    entry.name = name;
    return bal_model_add(&self->model, &entry, i, err);
}

static int add_layer(part *self, size_t i, const bal_layer *layer,
                     bal_error *err)
{
    const bal_view_shift *shift = &self->want.shift;
    const char *name = bal_model_at(self->of, i)->name;
    BAL_LOCAL(bal_buf) renamed = { 0 };

    if (layer->number < shift->first ||
        layer->number - shift->first >= shift->count)
        return 0;
    uint64_t at = layer->number - shift->first;
    unsigned long long now = shift->at + at;
    self->seen[at] = true;
    int rc = bal_buf_format(&renamed, err, "%.*s%llu%s", (int)layer->stack,
                            name, now, name + layer->rest);
    return rc ? rc : add_as(self, i, bal_buf_string(&renamed), err);
}

static int add_entry(part *self, size_t i, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->of, i);
    bal_layer layer;
    bool wanted = true;

    if (entry->part == BAL_PART_HEADER)
        return 0;
    if (entry->part == BAL_PART_TENSOR) {
        if (bal_layer_of(&layer, entry->name))
            return add_layer(self, i, &layer, err);
        wanted = bal_layer_behind(entry->name) ? self->want.behind
                                               : self->want.before;
    }
    return wanted ? add_as(self, i, entry->name, err) : 0;
}

static int fill(part *self, bal_error *err)
{
    int rc = bal_model_tell(&self->model, bal_model_facts(self->of), err);

    if (!rc)
        rc = count_layers(self, err);
    if (!rc)
        rc = check_range(self, err);
    if (rc)
        return rc;
    self->seen = calloc(self->want.shift.count + 1, sizeof(*self->seen));
    if (!self->seen)
        return bal_fail_memory(err, "a slice");
    for (size_t i = 0; !rc && i < bal_model_count(self->of); i++)
        rc = add_entry(self, i, err);
    if (!rc)
        rc = check_seen(self, err);
    return rc ? rc : bal_model_ready(&self->model, err);
}

int bal_part_open(bal_model **out, bal_model *of, const bal_view_part *want,
                  bal_error *err)
{
    part *self = bal_model_alloc(sizeof(*self), &part_ops);
    if (!self)
        return bal_fail_memory(err, "a slice");
    BAL_OWN(bal_model) model = &self->model;

    self->of = bal_model_ref(of);
    self->want = *want;
    int rc = fill(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
