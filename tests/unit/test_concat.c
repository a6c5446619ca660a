/* Adapters merged as the maps they are, on adapters that PEFT trained and
 * saved: the result's B A must be the weighted sum of the inputs' s B A. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/merge.h"
#include "model/peft.h"
#include "support/check.h"
#include "support/made_model.h"

enum { ADAPTERS = 3 };

/* What their configs say, read by eye. */
static const char *const folders[ADAPTERS] = {
    "lora_r8_qv",
    "lora_r4_patterns",
    "lora_r16_all_rslora",
};

static bool ends(const char *text, const char *tail)
{
    size_t len = strlen(text);
    size_t n = strlen(tail);

    return n <= len && !strcmp(text + len - n, tail);
}

static double scale_of(size_t adapter, const char *module)
{
    double alpha = 8;
    double rank = 4;

    if (adapter == 0)
        return 16.0 / 8.0;
    if (adapter == 2)
        return 16.0 / 4.0; /* the root of 16 */
    if (ends(module, "v_proj"))
        alpha = 4;
    if (!strcmp(module, "model.layers.3.mlp.down_proj"))
        alpha = 10;
    if (!strcmp(module, "model.layers.1.self_attn.o_proj") ||
        !strcmp(module, "model.layers.3.self_attn.o_proj"))
        alpha = 3;
    if (ends(module, "down_proj"))
        rank = 2;
    if (!strcmp(module, "model.layers.0.self_attn.q_proj"))
        rank = 12;
    if (!strcmp(module, "model.layers.2.self_attn.o_proj") ||
        !strcmp(module, "model.layers.3.self_attn.o_proj"))
        rank = 6;
    return alpha / rank;
}

static bal_model *open_adapter(const char *name)
{
    const char *tree = getenv("BALLAST_TREE");
    char path[512];
    bal_model *model = NULL;

    snprintf(path, sizeof(path), "%s/tests/data/adapters/%s", tree ? tree : ".",
             name);
    CHECK_OK(bal_model_from_path(&model, path, &check_err));
    CHECK(bal_model_facts(model)->kind == BAL_KIND_ADAPTER);
    return model;
}

static bal_recipe *linear_of(const double *weights, size_t count)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    for (size_t i = 0; i < count; i++) {
        bal_input input = { .tenant = "acme", .weight = weights[i] };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->space = BAL_SPACE_PRODUCT;
    return recipe;
}

/* A factor as floats, NULL: not there. To be freed. */
static float *factor(bal_model *model, const char *module, char letter,
                     const uint64_t **shape)
{
    char name[256];

    snprintf(name, sizeof(name), "base_model.model.%s.lora_%c.weight", module,
             letter);
    size_t i = bal_model_find(model, BAL_PART_TENSOR, name);
    if (i == BAL_NONE)
        return NULL;
    const bal_tensor *entry = bal_model_at(model, i);
    CHECK(entry->dtype == BAL_F32);
    *shape = entry->shape;
    float *values = malloc(entry->size);
    CHECK(values != NULL);
    CHECK_OK(bal_model_read(model, i, 0, values, entry->size, &check_err));
    return values;
}

typedef struct matrix {
    double *sum;  /* out x in: what B A adds up to */
    double *size; /* the same of magnitudes: what rounding is measured by */
    size_t rows, cols;
} matrix;

static void add_product(matrix *to, bal_model *model, const char *module,
                        double scale)
{
    const uint64_t *a_shape;
    const uint64_t *b_shape;
    float *a = factor(model, module, 'A', &a_shape);
    float *b = factor(model, module, 'B', &b_shape);

    if (!a || !b)
        return;
    CHECK(a_shape[0] == b_shape[1]);
    CHECK(to->rows == b_shape[0] && to->cols == a_shape[1]);
    for (size_t r = 0; r < to->rows; r++) {
        for (size_t k = 0; k < a_shape[0]; k++) {
            double left = scale * (double)b[r * a_shape[0] + k];
            for (size_t c = 0; c < to->cols; c++) {
                double term = left * (double)a[k * to->cols + c];
                to->sum[r * to->cols + c] += term;
                to->size[r * to->cols + c] += fabs(term);
            }
        }
    }
    free(a);
    free(b);
}

static matrix zeros(size_t rows, size_t cols)
{
    matrix made = { calloc(rows * cols, sizeof(double)),
                    calloc(rows * cols, sizeof(double)), rows, cols };

    CHECK(made.sum && made.size);
    return made;
}

/* The result's product against the sum, within what one rounding of B to f32
 * and the sums in double may be off. */
static void check_module(bal_model *merged, const bal_lora *lora,
                         bal_model *const *inputs, const double *shares)
{
    matrix want = zeros((size_t)lora->out, (size_t)lora->in);
    matrix got = zeros((size_t)lora->out, (size_t)lora->in);

    CHECK(lora->scale == 1);
    add_product(&got, merged, lora->module, 1);
    for (size_t i = 0; i < ADAPTERS; i++)
        add_product(&want, inputs[i], lora->module,
                    shares[i] * scale_of(i, lora->module));
    for (size_t k = 0; k < want.rows * want.cols; k++)
        CHECK(fabs(got.sum[k] - want.sum[k]) <= want.size[k] * 0x1p-24);
    free(want.sum);
    free(want.size);
    free(got.sum);
    free(got.size);
}

typedef struct weighting {
    double weights[ADAPTERS];
    const char *normalize;
} weighting;

static const weighting weightings[] = {
    { { 0.5, 0.3, 0.2 }, "true" },
    { { 1, 1, 1 }, "true" },
    { { 1, -0.5, 2 }, "false" },
    { { 0, 1, 0.25 }, "true" },
};

static void the_product_is_the_weighted_sum_of_the_products(void)
{
    bal_model *inputs[ADAPTERS];

    for (size_t i = 0; i < ADAPTERS; i++)
        inputs[i] = open_adapter(folders[i]);
    for (size_t w = 0; w < sizeof(weightings) / sizeof(weightings[0]); w++) {
        const weighting *row = &weightings[w];
        BAL_OWN(bal_recipe) recipe = linear_of(row->weights, ADAPTERS);
        BAL_OWN(bal_model) merged = NULL;
        BAL_LOCAL(bal_loras) loras = { 0 };
        double shares[ADAPTERS];
        double sum = 0;

        CHECK_OK(
            bal_recipe_set(recipe, "normalize", row->normalize, &check_err));
        CHECK_OK(bal_view_open(&merged, recipe, inputs, NULL, &check_err));
        CHECK_OK(bal_loras_read(&loras, merged, &check_err));
        CHECK(loras.count == 28);
        for (size_t i = 0; i < ADAPTERS; i++)
            sum += row->weights[i];
        for (size_t i = 0; i < ADAPTERS; i++)
            shares[i] = !strcmp(row->normalize, "true") ? row->weights[i] / sum
                                                        : row->weights[i];
        for (size_t i = 0; i < loras.count; i++)
            check_module(merged, &loras.rows[i], inputs, shares);
    }
    for (size_t i = 0; i < ADAPTERS; i++)
        bal_model_free(inputs[i]);
}

/* A bit for bit, B scaled in double and rounded once. */
static void factors_are_stacked_in_the_order_of_the_inputs(void)
{
    static const char module[] = "model.layers.1.self_attn.v_proj";
    static const double weights[] = { 0.3, 0.7 };
    static const size_t ranks[] = { 8, 4 };
    BAL_OWN(bal_model) first = open_adapter(folders[0]);
    BAL_OWN(bal_model) second = open_adapter(folders[1]);
    bal_model *inputs[] = { first, second };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2);
    BAL_OWN(bal_model) merged = NULL;
    const uint64_t *shape;
    size_t at = 0;

    CHECK_OK(bal_view_open(&merged, recipe, inputs, NULL, &check_err));
    float *a = factor(merged, module, 'A', &shape);
    CHECK(shape[0] == 12 && shape[1] == 192);
    float *b = factor(merged, module, 'B', &shape);
    CHECK(shape[0] == 96 && shape[1] == 12);
    for (size_t i = 0; i < 2; i++) {
        float *from_a = factor(inputs[i], module, 'A', &shape);
        float *from_b = factor(inputs[i], module, 'B', &shape);
        double share = weights[i] / (0.3 + 0.7) * scale_of(i, module);

        CHECK(!memcmp(a + at * 192, from_a, ranks[i] * 192 * sizeof(float)));
        for (size_t k = 0; k < 96 * ranks[i]; k++) {
            size_t cell = k / ranks[i] * 12 + at + k % ranks[i];
            CHECK(b[cell] == (float)((double)from_b[k] * share));
        }
        at += ranks[i];
        free(from_a);
        free(from_b);
    }
    free(a);
    free(b);
}

static void any_range_reads_as_the_whole_does(void)
{
    static const double weights[] = { 1, 1, 1 };
    bal_model *inputs[ADAPTERS];
    BAL_OWN(bal_recipe) recipe = linear_of(weights, ADAPTERS);
    BAL_OWN(bal_model) merged = NULL;

    for (size_t i = 0; i < ADAPTERS; i++)
        inputs[i] = open_adapter(folders[i]);
    CHECK_OK(bal_view_open(&merged, recipe, inputs, NULL, &check_err));
    for (size_t i = 0; i < bal_model_count(merged); i++) {
        uint64_t size = bal_model_at(merged, i)->size;
        uint8_t *whole = malloc(size);
        uint8_t *parts = malloc(size);
        const uint64_t step = 13 * 32;

        CHECK_OK(bal_model_read(merged, i, 0, whole, size, &check_err));
        for (uint64_t at = 0; at < size; at += step) {
            size_t len = (size_t)(size - at < step ? size - at : step);
            CHECK_OK(
                bal_model_read(merged, i, at, parts + at, len, &check_err));
        }
        CHECK(!memcmp(whole, parts, size));
        free(whole);
        free(parts);
    }
    for (size_t i = 0; i < ADAPTERS; i++)
        bal_model_free(inputs[i]);
}

static void one_adapter_passes_through(void)
{
    static const double weights[] = { 0.5 };
    BAL_OWN(bal_model) adapter = open_adapter(folders[1]);
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 1);
    BAL_OWN(bal_model) same = NULL;
    BAL_OWN(bal_model) half = NULL;

    CHECK_OK(bal_view_open(&same, recipe, &adapter, NULL, &check_err));
    CHECK(same == adapter);
    CHECK_OK(bal_recipe_set(recipe, "normalize", "false", &check_err));
    CHECK_OK(bal_view_open(&half, recipe, &adapter, NULL, &check_err));
    CHECK(half != adapter);
}

static void factors_are_merged_as_they_are_when_asked_for(void)
{
    static const double weights[] = { 0.5, 0.5 };
    static const char module[] = "model.layers.0.self_attn.q_proj";
    BAL_OWN(bal_model) adapter = open_adapter(folders[0]);
    BAL_OWN(bal_model) other = open_adapter(folders[1]);
    bal_model *inputs[] = { adapter, adapter };
    bal_model *unlike[] = { adapter, other };
    BAL_OWN(bal_recipe) recipe = linear_of(weights, 2);
    BAL_OWN(bal_model) view = NULL;
    BAL_OWN(bal_model) refused = NULL;
    const uint64_t *shape;

    recipe->space = BAL_SPACE_FACTORS;
    CHECK_OK(bal_view_open(&view, recipe, inputs, NULL, &check_err));
    float *got = factor(view, module, 'B', &shape);
    float *want = factor(adapter, module, 'B', &shape);
    CHECK(!memcmp(got, want, shape[0] * shape[1] * sizeof(float)));
    CHECK(bal_model_facts(view)->kind == BAL_KIND_ADAPTER);
    free(got);
    free(want);
    CHECK_RC(BAL_EINVAL,
             bal_view_open(&refused, recipe, unlike, NULL, &check_err));
    CHECK(strstr(check_err.text, "another shape") != NULL);
}

static const check_test tests[] = {
    { TEST(the_product_is_the_weighted_sum_of_the_products) },
    { TEST(factors_are_stacked_in_the_order_of_the_inputs) },
    { TEST(any_range_reads_as_the_whole_does) },
    { TEST(one_adapter_passes_through) },
    { TEST(factors_are_merged_as_they_are_when_asked_for) },
};

CHECK_MAIN(tests)
