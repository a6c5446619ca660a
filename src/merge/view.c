/* The view as a model: opening and closing. How entries come about is decided
 * in view_plan.c and its kin before anything is read, how their bytes do in
 * view_read.c. */
#include "merge/view.h"

#include <assert.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/str.h"

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

    for (size_t i = 0; i < self->count; i++)
        bal_model_free(self->inputs[i]);
    for (size_t i = 0; i < self->row_count; i++)
        free(self->rows[i].prepared);
    for (size_t i = 0; i < 2; i++)
        bal_map_done(&self->names[i]);
    bal_values_done(&self->values);
    bal_torch_stream_free(self->stream);
    for (size_t i = 0; i < BAL_VIEW_LOCKS; i++)
        pthread_mutex_destroy(&self->locks[i]);
    free(self->inputs);
    free(self->input_weights);
    free(self->rows);
}

static const bal_model_ops view_ops = {
    .read = view_read,
    .free = view_free,
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

static int init(bal_view *self, const bal_recipe *recipe,
                bal_model *const *inputs, bal_error *err)
{
    self->method = recipe->method;
    self->strict = recipe->strict;
    self->dtype = recipe->dtype;
    self->mergekit = recipe->mergekit;
    self->seed = recipe->seed;
    self->streamed = recipe->streamed;
    self->stream_seed = recipe->stream;
    self->whole = recipe->space != BAL_SPACE_DELTA;
    self->weights = recipe->space == BAL_SPACE_WEIGHTS;
    self->tile = tile_asked();
    self->base = BAL_NONE;
    if (recipe->base != BAL_NONE && bal_recipe_apart(recipe, recipe->base))
        self->base = recipe->base;
    self->inputs = calloc(recipe->count, sizeof(bal_model *));
    self->input_weights = calloc(recipe->count, sizeof(double));
    if (!self->inputs || !self->input_weights)
        return bal_fail_memory(err, "a view");
    for (; self->count < recipe->count; self->count++) {
        self->inputs[self->count] = bal_model_ref(inputs[self->count]);
        self->input_weights[self->count] = recipe->inputs[self->count].weight;
    }
    return bal_values_init(&self->values, recipe, err);
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
    *out = BAL_TAKE(model);
    return 0;
}

static int (*const openers[])(bal_model **out, const bal_recipe *recipe,
                              bal_model *const *inputs, bal_error *err) = {
    [BAL_SPACE_AUTO] = NULL,          [BAL_SPACE_DELTA] = tiles_open,
    [BAL_SPACE_WEIGHTS] = tiles_open, [BAL_SPACE_PRODUCT] = bal_concat_open,
    [BAL_SPACE_FACTORS] = tiles_open,
};

int bal_view_open(bal_model **out, const bal_recipe *recipe,
                  bal_model *const *inputs, bal_error *err)
{
    if (!openers[recipe->space] || !recipe->count)
        return bal_fail(err, BAL_ECORRUPT,
                        "a view of a recipe that is not complete");
    return openers[recipe->space](out, recipe, inputs, err);
}
