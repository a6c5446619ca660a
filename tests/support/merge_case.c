#include "support/merge_case.h"

#include <math.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/memory_model.h"

static bal_model *model_of(const merge_case *self, const double *values)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "made");
    size_t n = 1;

    for (uint32_t i = 0; i < self->rank; i++)
        n *= (size_t)self->shape[i];
    uint8_t *bytes = malloc(n * 8);
    CHECK(bytes != NULL);
    bal_kernels_use()->from_f64[self->dtype](bytes, values, n);
    memory_tensor(model, "w", self->dtype, self->rank, self->shape, bytes);
    memory_finish(model);
    free(bytes);
    return model;
}

static void add(bal_recipe *recipe, const merge_case *self, size_t i)
{
    bool even = true; /* all weights are 0 */
    bal_input input = { .tenant = "acme", .weight = 1 };

    for (size_t k = 0; k < MERGE_CASE_INPUTS; k++)
        even = even && self->weights[k] == 0;
    if (!even)
        input.weight = self->weights[i];
    if (self->scale)
        input.parameters = json_pack("{s:s}", "scale", self->scale);
    input.commit.bytes[0] = (uint8_t)i;
    CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
}

int merge_case_open(bal_model **out, const merge_case *self)
{
    bal_model *models[MERGE_CASE_INPUTS + 1] = { NULL };
    BAL_OWN(bal_recipe) recipe = NULL;
    size_t count = 0;

    CHECK_OK(bal_recipe_new(&recipe, self->method, &check_err));
    recipe->space = BAL_SPACE_WEIGHTS;
    recipe->mergekit = self->mergekit;
    for (size_t i = 0; self->settings[i].name; i++)
        CHECK_OK(bal_recipe_set(recipe, self->settings[i].name,
                                self->settings[i].value, &check_err));
    for (; count < MERGE_CASE_INPUTS && self->inputs[count]; count++) {
        add(recipe, self, count);
        models[count] = model_of(self, self->inputs[count]);
    }
    if (self->base) {
        bal_input input = { .tenant = "acme", .weight = 1 };
        input.commit.bytes[0] = 0xff;
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
        recipe->slices[0].base = count;
        models[count++] = model_of(self, self->base);
    }
    int rc = bal_recipe_settle(recipe, models, &check_err);
    if (!rc)
        rc = bal_view_open(out, recipe, models, NULL, &check_err);
    for (size_t i = 0; i < count; i++)
        bal_model_free(models[i]);
    return rc;
}

bal_dtype merge_case_run(double *out, const merge_case *self)
{
    BAL_OWN(bal_model) view = NULL;

    CHECK_OK(merge_case_open(&view, self));
    const bal_tensor *entry = bal_model_at(view, 0);
    size_t n = (size_t)entry->size * 8 / bal_dtype_bits(entry->dtype);
    uint8_t *bytes = malloc(entry->size + 1);
    CHECK(bytes != NULL);
    CHECK_OK(bal_model_read(view, 0, 0, bytes, entry->size, &check_err));
    bal_kernels_use()->to_f64[entry->dtype](out, bytes, n);
    free(bytes);
    return entry->dtype;
}

bool merge_case_near(const double *got, const double *want, size_t n,
                     double part)
{
    for (size_t k = 0; k < n; k++) {
        if (!(fabs(got[k] - want[k]) <= part * fabs(want[k]))) {
            printf("element %zu: %.17g, not %.17g\n", k, got[k], want[k]);
            return false;
        }
    }
    return true;
}

void merge_case_fill(double *out, size_t n, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;

    for (size_t k = 0; k < n; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out[k] = ((double)(state >> 50) - 8192) / 4096;
    }
}
