/* The view as a model: opening and closing. How entries come about is decided
 * in view_plan.c and its kin before anything is read, how their bytes do in
 * view_read.c. */
#include "merge/view.h"

#include <assert.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/str.h"
#include "merge/peft_types.h"

enum { TILE_ASKED_MOST = 1 << 20 };

static int view_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    bal_view *self = (bal_view *)model;
    bal_view_row *row = &self->rows[bal_model_tag(model, i)];

    assert(row->read);
    return row->read(self, i, row, offset, to, len, err);
}

static void view_free(bal_model *model)
{
    bal_view *self = (bal_view *)model;

    for (size_t i = 0; self->inputs && i < self->count; i++)
        bal_model_free(self->inputs[i]);
    for (size_t i = 0; i < self->row_count; i++) {
        free(self->rows[i].prepared);
        if (self->rows[i].text)
            bal_buf_done(self->rows[i].text);
        free(self->rows[i].text);
    }
    for (size_t i = 0; i < 2; i++)
        bal_map_done(&self->names[i]);
    bal_rules_done(&self->rules);
    bal_values_done(&self->values);
    bal_stacks_done(&self->stacks);
    bal_torch_stream_free(self->stream);
    for (size_t i = 0; i < BAL_VIEW_LOCKS; i++)
        pthread_mutex_destroy(&self->locks[i]);
    free(self->inputs);
    free(self->places);
    free(self->slices);
    free(self->shifts);
    free(self->rows);
}

static bal_model *view_source(bal_model *model, size_t *i)
{
    bal_view *self = (bal_view *)model;
    const bal_view_row *row = &self->rows[bal_model_tag(model, *i)];

    if (row->read != bal_view_pass)
        return NULL;
    *i = row->sources[row->from];
    return self->inputs[row->from];
}

static const bal_model_ops view_ops = {
    .read = view_read,
    .free = view_free,
    .source = view_source,
};

/* For tests that show that it does not show; anything else asks for nothing. */
static size_t tile_asked(void)
{
    const char *text = getenv("BAL_TILE");
    uint64_t size;

    if (!text || bal_parse_u64(&size, text, NULL) || size > TILE_ASKED_MOST)
        return 0;
    return size;
}

/* ---- inputs ------------------------------------------------------------- */

/* Where each slice's layers come to be in the result. */
static void number_layers(bal_view *self, const bal_recipe *recipe)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_input *input = &recipe->inputs[i];
        uint64_t count = input->end - input->first;
        bool next = !i || input[-1].slice != input->slice;
        self->shifts[i] = (bal_view_shift){
            input->first,
            next ? self->layers : self->shifts[i - 1].at,
            count,
        };
        self->layers += next ? count : 0;
    }
}

/* What is behind the layers is taken of as many of the last slice's sources as
 * the first slice has: so mergekit 0.1.5 does. */
static bool is_behind(const bal_view *self, size_t i)
{
    const bal_view_slice *first = &self->slices[0];
    const bal_view_slice *last = &self->slices[self->slice_count - 1];

    return i >= last->from && i - last->from < first->to - first->from;
}

static int take_input(bal_view *self, const bal_recipe *recipe,
                      bal_model *input, size_t i, bal_error *err)
{
    if (!recipe->sliced) {
        self->inputs[i] = bal_model_ref(input);
        return 0;
    }
    const bal_view_part part = {
        .shift = self->shifts[i],
        .before = recipe->inputs[i].slice == 0,
        .behind = is_behind(self, i),
    };
    int rc = bal_part_open(&self->inputs[i], input, &part, err);
    return rc ? bal_within(err, rc, "input %zu", i + 1) : 0;
}

static void group(bal_view *self, const bal_recipe *recipe)
{
    for (size_t i = 0; i < self->slice_count; i++) {
        bal_view_slice *slice = &self->slices[i];
        size_t base = recipe->slices[i].base;

        slice->from = i ? slice[-1].to : 0;
        slice->to = slice->from;
        while (slice->to < self->count && recipe->inputs[slice->to].slice == i)
            slice->to++;
        slice->base = base != BAL_NONE && bal_recipe_apart(recipe, base)
                          ? base
                          : BAL_NONE;
    }
}

static int take_inputs(bal_view *self, const bal_recipe *recipe,
                       bal_model *const *inputs, bal_error *err)
{
    self->sliced = recipe->sliced;
    self->slice_count = recipe->slice_count;
    self->count = bal_recipe_merged(recipe);
    self->inputs = calloc(self->count + 1, sizeof(bal_model *));
    self->places = calloc(recipe->count + 1, sizeof(*self->places));
    self->shifts = calloc(self->count + 1, sizeof(*self->shifts));
    self->slices = calloc(self->slice_count, sizeof(*self->slices));
    if (!self->inputs || !self->places || !self->shifts || !self->slices)
        return bal_fail_memory(err, "a view");
    group(self, recipe);
    number_layers(self, recipe);
    for (size_t i = 0; i < self->count; i++) {
        int rc = take_input(self, recipe, inputs[i], i, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int init(bal_view *self, const bal_recipe *recipe,
                bal_model *const *inputs, bal_error *err)
{
    self->method = recipe->method;
    self->recipe = recipe;
    self->strict = recipe->strict;
    self->dtype = recipe->dtype;
    self->out_dtype = recipe->out_dtype;
    self->mergekit = recipe->mergekit;
    self->seed = recipe->seed;
    self->streamed = recipe->streamed;
    self->stream_seed = recipe->stream;
    self->whole = recipe->space != BAL_SPACE_DELTA;
    self->weights = recipe->space == BAL_SPACE_WEIGHTS;
    self->tile = tile_asked();
    int rc = take_inputs(self, recipe, inputs, err);
    if (!rc)
        rc = bal_rules_init(&self->rules, recipe, err);
    return rc ? rc : bal_values_room(&self->values, &self->rules, err);
}

static int tiles_open(bal_model **out, const bal_recipe *recipe,
                      bal_model *const *inputs, bal_error *err)
{
    bal_view *self = bal_model_alloc(sizeof(*self), &view_ops);
    if (!self)
        return bal_fail_memory(err, "a view");
    for (size_t i = 0; i < BAL_VIEW_LOCKS; i++)
        pthread_mutex_init(&self->locks[i], NULL);
    BAL_OWN(bal_model) model = &self->model;

    int rc = init(self, recipe, inputs, err);
    if (!rc)
        rc = bal_view_plan(self, err);
    if (rc)
        return rc;
    self->recipe = NULL;
    *out = BAL_TAKE(model);
    return 0;
}

static int factors_open(bal_model **out, const bal_recipe *recipe,
                        bal_model *const *inputs, bal_error *err)
{
    if (recipe->method->info.flags & BAL_METHOD_PEFT)
        return bal_peft_factors(out, recipe, inputs, tiles_open, err);
    return tiles_open(out, recipe, inputs, err);
}

static int (*const openers[])(bal_model **out, const bal_recipe *recipe,
                              bal_model *const *inputs, bal_error *err) = {
    [BAL_SPACE_AUTO] = NULL,
    [BAL_SPACE_DELTA] = tiles_open,
    [BAL_SPACE_WEIGHTS] = tiles_open,
    [BAL_SPACE_PRODUCT] = bal_product_open,
    [BAL_SPACE_FACTORS] = factors_open,
};

int bal_view_open(bal_model **out, const bal_recipe *recipe,
                  bal_model *const *inputs, bal_work *work, bal_error *err)
{
    BAL_LOCAL(bal_dressed) models = { 0 };

    if (!openers[recipe->space] || !bal_recipe_merged(recipe))
        return bal_fail(err, BAL_ECORRUPT,
                        "a view of a recipe that is not complete");
    int rc = bal_view_dress(&models, recipe, inputs, work, err);
    return rc ? rc : openers[recipe->space](out, recipe, models.models, err);
}
