/* What a view consists of, decided from the inputs' lists alone. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "merge/view.h"

/* Entries of inputs that rows have room for, all together: 1 GiB. */
#define SOURCES_MOST ((uint64_t)128 << 20)

static size_t *no_sources(bal_view *self)
{
    size_t *sources =
        bal_arena_alloc(&self->model.arena, self->count * sizeof(size_t));

    for (size_t k = 0; sources && k < self->count; k++)
        sources[k] = BAL_NONE;
    return sources;
}

static size_t slice_of(const bal_view *self, size_t input)
{
    size_t slice = 0;

    while (input >= self->slices[slice].to)
        slice++;
    return slice;
}

/* A new row, whose first source is an input's; without sources. */
static int add_row(bal_view *self, size_t *out, const char *name, size_t input,
                   bal_error *err)
{
    if ((uint64_t)self->row_count * self->count > SOURCES_MOST)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view of %zu inputs that has more than %zu tensors",
                        self->count, self->row_count);
    bal_view_row *rows = bal_room_for_one(self->rows, self->row_count,
                                          &self->row_room, sizeof(*rows));
    if (!rows)
        return bal_fail_memory(err, "planning a view");
    self->rows = rows;
    bal_view_row *row = &self->rows[self->row_count];
    *row = (bal_view_row){ .name = name,
                           .slice = slice_of(self, input),
                           .sources = no_sources(self) };
    if (!row->sources)
        return bal_fail_memory(err, "planning a view");
    *out = self->row_count++;
    return 0;
}

/* ---- one input that comes out as it went in ----------------------------- */

static int add_passed(bal_view *self, size_t input, size_t i, bal_error *err)
{
    bal_tensor entry = *bal_model_at(self->inputs[input], i);
    const bal_id *base = NULL;
    size_t row = 0;
    int rc = add_row(self, &row, entry.name, input, err);
    if (!rc && entry.part == BAL_PART_TENSOR)
        rc = bal_view_origin(self, &base, entry.name, err);
    if (rc)
        return rc;
    self->rows[row].from = input;
    self->rows[row].sources[input] = i;
    self->rows[row].read = bal_view_pass;
    if (!entry.base && entry.form != BAL_FORM_RESIDUAL)
        entry.base = base;
    return bal_model_add(&self->model, &entry, row, err);
}

static bool passes(const bal_view *self)
{
    return self->count == 1 && !self->sliced && self->rules.plain &&
           self->dtype < 0 && self->out_dtype < 0 &&
           self->slices[0].base == BAL_NONE && self->method->same &&
           self->method->same(bal_values_weight(&self->values, 0),
                              &self->values);
}

static int pass_all(bal_view *self, bal_error *err)
{
    for (size_t i = 0; i < bal_model_count(self->inputs[0]); i++) {
        int rc = add_passed(self, 0, i, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- names -------------------------------------------------------------- */

/* Of whole models one gives its files, for these belong together: a tokenizer
 * to a config, an index to shards. It is the base, or the first. */
static bool gives_files(const bal_view *self, size_t input)
{
    size_t base = self->slices[0].base;

    return !self->weights || input == (base == BAL_NONE ? 0 : base);
}

/* The row of an entry's name, made when no input had it yet. Names are borrowed
 * from the inputs, which the view holds. */
static int collect_entry(bal_view *self, size_t input, size_t i, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(self->inputs[input], i);
    size_t row = self->row_count;
    bool there;

    if (entry->part == BAL_PART_HEADER || entry->form == BAL_FORM_RESIDUAL ||
        (entry->part == BAL_PART_FILE && !gives_files(self, input)))
        return 0;
    bool tensor = entry->part == BAL_PART_TENSOR;
    int rc = tensor ? bal_stacks_add(&self->stacks, entry->name, err) : 0;
    if (rc)
        return rc;
    rc = bal_map_add(&self->names[entry->part], entry->name,
                     strlen(entry->name), &row, &there, err);
    if (!rc && !there)
        rc = add_row(self, &row, entry->name, input, err);
    if (rc)
        return rc;
    self->rows[row].sources[input] = i;
    return 0;
}

static int collect(bal_view *self, bal_error *err)
{
    for (size_t input = 0; input < self->count; input++) {
        for (size_t i = 0; i < bal_model_count(self->inputs[input]); i++) {
            int rc = collect_entry(self, input, i, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* What the rows are of is known by their first source. */
static bal_part part_of(const bal_view *self, const bal_view_row *row)
{
    for (size_t k = 0; k < self->count; k++) {
        const bal_tensor *entry = bal_view_source(self, row, k);
        if (entry)
            return entry->part;
    }
    return BAL_PART_TENSOR;
}

static int decide_row(bal_view *self, size_t row, bal_error *err)
{
    static int (*const planners[])(bal_view *, size_t, bal_error *) = {
        [BAL_PART_TENSOR] = bal_plan_tensor,
        [BAL_PART_FILE] = bal_plan_file,
    };

    bal_part part = part_of(self, &self->rows[row]);
    int rc = part == BAL_PART_TENSOR
                 ? bal_view_values(self, &self->rows[row], err)
                 : 0;
    return rc ? rc : planners[part](self, row, err);
}

static int decide(bal_view *self, bal_error *err)
{
    int rc = self->weights ? bal_view_tie(self, err) : 0;

    for (size_t row = 0; !rc && row < self->row_count; row++)
        rc = decide_row(self, row, err);
    return rc;
}

/* ---- headers ------------------------------------------------------------ */

/* True if a model's headers describe the result: the same tensors, by name,
 * dtype and shape. Models are planned but not sorted yet, so the result's
 * entries are found through the rows. */
static bool headers_fit(const bal_view *self, bal_model *first)
{
    for (size_t i = 0; i < self->model.count; i++) {
        const bal_tensor *mine = &self->model.entries[i];
        if (mine->part != BAL_PART_TENSOR)
            continue;
        size_t at = bal_model_find(first, BAL_PART_TENSOR, mine->name);
        const bal_tensor *its = at == BAL_NONE ? NULL : bal_model_at(first, at);
        if (!its || its->dtype != mine->dtype ||
            !bal_tensor_same_shape(its, mine))
            return false;
    }
    return true;
}

/* A view of deltas has none: plus writes with the base's. */
static int add_headers(bal_view *self, bal_error *err)
{
    size_t base = self->slices[0].base;
    size_t input = base == BAL_NONE ? 0 : base;
    bal_model *first = self->inputs[input];

    if (!self->whole || self->sliced || !headers_fit(self, first))
        return 0;
    for (size_t i = 0; i < bal_model_count(first); i++) {
        const bal_tensor *entry = bal_model_at(first, i);
        if (entry->part != BAL_PART_HEADER)
            continue;
        int rc = add_passed(self, input, i, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- all ---------------------------------------------------------------- */

/* A text that all inputs tell alike, NULL otherwise. */
static const char *agreed(const char *a, const char *b)
{
    return a && b && !strcmp(a, b) ? a : NULL;
}

static int tell(bal_view *self, bal_error *err)
{
    bal_facts facts = *bal_model_facts(self->inputs[0]);

    for (size_t k = 1; k < self->count; k++) {
        const bal_facts *other = bal_model_facts(self->inputs[k]);
        facts.base_model = agreed(facts.base_model, other->base_model);
        facts.revision = agreed(facts.revision, other->revision);
    }
    facts.name = "view";
    facts.report = NULL;
    return bal_model_tell(&self->model, &facts, err);
}

/* Where all tensors have the same parameters, these are they. */
static int first_values(bal_view *self, bal_error *err)
{
    const bal_place anywhere = { "", 0 };
    const bal_where where = { 0, anywhere, self->places };

    if (!self->rules.plain)
        return 0;
    for (size_t i = 0; i < self->rules.count; i++)
        self->places[i] = anywhere;
    return bal_values_fill(&self->values, &self->rules, &where, err);
}

int bal_view_plan(bal_view *self, bal_error *err)
{
    int rc = first_values(self, err);

    if (rc)
        return rc;
    if (passes(self)) {
        rc = pass_all(self, err);
    } else {
        rc = collect(self, err);
        if (!rc)
            rc = decide(self, err);
        if (!rc)
            rc = add_headers(self, err);
        if (!rc)
            rc = bal_view_order_draws(self, err);
    }
    if (!rc)
        rc = tell(self, err);
    if (rc)
        return rc;
    return bal_model_ready(&self->model, err);
}
