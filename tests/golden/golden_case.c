/* A case is given to the merge the way a recipe is: parameters as text, each
 * input's own beside it. */
#include "golden/golden_case.h"

#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "support/memory_model.h"

enum { CEILING = 16 << 20 };

static const char tensor_name[] = "w";

json_t *golden_load(const char *name)
{
    const char *tree = getenv("BALLAST_TREE");
    BAL_LOCAL(bal_buf) path = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };
    json_t *json = NULL;
    bal_error err;

    int rc = bal_buf_format(&path, &err, "%s/tests/golden/mergekit/%s",
                            tree ? tree : ".", name);
    if (!rc)
        rc = bal_file_slurp(&text, path.data, CEILING, &err);
    if (!rc)
        rc = bal_json_parse(&json, text.data, text.len, name, &err);
    if (rc)
        printf("%s\n", err.text);
    return json;
}

/* ---- tensors ------------------------------------------------------------ */

static bool read_shape(golden_tensor *out, const json_t *shape)
{
    out->rank = (uint32_t)json_array_size(shape);
    if (out->rank > sizeof(out->shape) / sizeof(out->shape[0]))
        return false;
    for (uint32_t i = 0; i < out->rank; i++)
        out->shape[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    return true;
}

bool golden_tensor_read(golden_tensor *out, const json_t *json)
{
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    const char *data = json_string_value(json_object_get(json, "data"));
    uint64_t elements;
    uint64_t size;
    bal_error err;

    *out = (golden_tensor){ 0 };
    return dtype && data && bal_dtype_find(&out->dtype, dtype, strlen(dtype)) &&
           read_shape(out, json_object_get(json, "shape")) &&
           bal_shape_size(&elements, &size, out->dtype, out->shape,
                          out->rank) &&
           !bal_base64_decode(&out->bytes, data, strlen(data), &err) &&
           out->bytes.len == size;
}

void golden_tensor_done(golden_tensor *self)
{
    bal_buf_done(&self->bytes);
}

void golden_inputs_add(golden_inputs *self, const char *name,
                       const golden_tensor *tensor)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, name);

    memory_tensor(model, tensor_name, tensor->dtype, tensor->rank,
                  tensor->shape, tensor->bytes.data);
    memory_finish(model);
    self->models[self->count++] = model;
}

void golden_inputs_done(golden_inputs *self)
{
    for (size_t i = 0; i < self->count; i++)
        bal_model_free(self->models[i]);
    self->count = 0;
}

/* ---- recipes ------------------------------------------------------------ */

/* A value as a recipe takes it. */
static void value_text(char out[32], const json_t *value)
{
    if (json_is_boolean(value))
        snprintf(out, 32, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        snprintf(out, 32, "%lld", (long long)json_integer_value(value));
    else
        bal_f64_text(out, json_real_value(value));
}

static int set_params(bal_recipe *recipe, const json_t *params, bal_error *err)
{
    const char *name;
    json_t *value;
    char text[32];

    json_object_foreach((json_t *)params, name, value)
    {
        value_text(text, value);
        int rc = bal_recipe_set(recipe, name, text, err);
        if (rc)
            return rc;
    }
    return 0;
}

static json_t *own_params(const json_t *params)
{
    json_t *own = json_object();
    const char *name;
    json_t *value;
    char text[32];

    json_object_foreach((json_t *)params, name, value)
    {
        value_text(text, value);
        json_object_set_new(own, name, json_string(text));
    }
    return own;
}

static int add_inputs(bal_recipe *recipe, const json_t *one, bal_error *err)
{
    const json_t *order = json_object_get(one, "order");
    const char *base = json_string_value(json_object_get(one, "base"));

    recipe->slices[0].base = BAL_NONE;
    for (size_t i = 0; i < json_array_size(order); i++) {
        const char *name = json_string_value(json_array_get(order, i));
        const json_t *params =
            json_object_get(json_object_get(one, "model_params"), name);
        bal_input input = {
            .tenant = "golden",
            .weight = 1,
            .parameters = own_params(params),
        };
        int rc = bal_recipe_add(recipe, &input, err);
        if (rc)
            return rc;
        if (base && !strcmp(base, name))
            recipe->slices[0].base = i;
    }
    return 0;
}

/* mergekit's numbers are asked for as a user would. */
static int set_seed(bal_recipe *recipe, const json_t *seed, bool mergekit,
                    bal_error *err)
{
    uint64_t number = (uint64_t)json_integer_value(seed);
    char text[24];

    recipe->seed = number;
    recipe->seeded = !mergekit || !json_is_integer(seed);
    if (recipe->seeded)
        return 0;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return bal_recipe_set(recipe, "mergekit_stream", text, err);
}

static int make_recipe(bal_recipe **out, const json_t *one, bool mergekit,
                       bal_error *err)
{
    const char *method = json_string_value(json_object_get(one, "method"));
    const char *dtype = json_string_value(json_object_get(one, "dtype"));
    BAL_OWN(bal_recipe) recipe = NULL;

    int rc = bal_recipe_new(&recipe, method, err);
    if (rc)
        return rc;
    recipe->space = BAL_SPACE_WEIGHTS;
    recipe->mergekit = mergekit;
    rc = set_seed(recipe, json_object_get(one, "seed"), mergekit, err);
    if (!rc && dtype)
        rc = bal_recipe_set(recipe, "dtype", dtype, err);
    if (rc)
        return rc;
    rc = set_params(recipe, json_object_get(one, "params"), err);
    if (!rc)
        rc = add_inputs(recipe, one, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(recipe);
    return 0;
}

/* ---- running ------------------------------------------------------------ */

/* The part from somewhere on is read by itself, first: what is read must
 * depend on neither the range nor what was read before. */
static int read_twice(bal_buf *to, bal_model *view, size_t i, bal_error *err)
{
    const bal_tensor *entry = bal_model_at(view, i);
    size_t size = (size_t)entry->size;
    size_t group = bal_dtype_bits(entry->dtype); /* bytes of 8 elements */
    size_t from = size / 3 / group * group;
    BAL_LOCAL(bal_buf) part = { 0 };

    int rc = bal_buf_reserve(to, size + 1, err);
    if (!rc)
        rc = bal_buf_reserve(&part, size + 1, err);
    if (!rc)
        rc = bal_model_read(view, i, from, part.data, size - from, err);
    if (!rc)
        rc = bal_model_read(view, i, 0, to->data, size, err);
    if (rc)
        return rc;
    to->len = size;
    if (!memcmp(part.data, to->data + from, size - from))
        return 0;
    return bal_fail(err, BAL_ECORRUPT, "a range reads as something else");
}

int golden_read(golden_tensor *out, bal_model *view, const char *name,
                bal_error *err)
{
    size_t i = bal_model_find(view, BAL_PART_TENSOR, name);

    *out = (golden_tensor){ 0 };
    if (i == BAL_NONE)
        return bal_fail(err, BAL_ENOTFOUND, "the view has no tensor '%s'",
                        name);
    const bal_tensor *entry = bal_model_at(view, i);
    out->dtype = entry->dtype;
    out->rank = entry->rank;
    for (uint32_t k = 0; k < entry->rank && k < 8; k++)
        out->shape[k] = entry->shape[k];
    return read_twice(&out->bytes, view, i, err);
}

int golden_open(bal_model **out, const json_t *one, const golden_inputs *inputs,
                bool mergekit, bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;
    golden_inputs in = *inputs;

    int rc = make_recipe(&recipe, one, mergekit, err);
    if (!rc)
        rc = bal_recipe_settle(recipe, in.models, err);
    return rc ? rc : bal_view_open(out, recipe, in.models, NULL, err);
}

static int run(golden_result *out, const json_t *one,
               const golden_inputs *inputs, bool mergekit)
{
    BAL_OWN(bal_model) view = NULL;

    int rc = golden_open(&view, one, inputs, mergekit, &out->err);
    return rc ? rc : golden_read(&out->tensor, view, tensor_name, &out->err);
}

void golden_run(golden_result *out, const json_t *one,
                const golden_inputs *inputs, bool mergekit)
{
    *out = (golden_result){ 0 };
    out->rc = run(out, one, inputs, mergekit);
}
