#include "support/watch_method.h"

#include "support/check.h"
#include "support/made_model.h"

watched watch_seen;

/* out = the sum of the inputs, and of the base of an OPERAND method. */
static int watch_merge(double *out, const bal_tile *tile,
                       const bal_values *values, bal_error *err)
{
    bool operand = tile->method->role == BAL_ROLE_OPERAND;
    (void)values;
    (void)err;

    watch_seen.count = tile->count;
    watch_seen.based = tile->base != NULL;
    watch_seen.base = tile->base ? tile->base[0] : -1;
    watch_seen.arith = *tile->arith;
    watch_seen.seed = tile->seed;
    for (size_t i = 0; i < tile->count && i < 4; i++)
        watch_seen.which[i] = tile->which[i];
    for (size_t k = 0; k < tile->n; k++) {
        out[k] = operand ? tile->base[k] : 0;
        for (size_t i = 0; i < tile->count; i++)
            out[k] += tile->inputs[i][k];
    }
    bal_arith_round(tile->arith, out, tile->n);
    return 0;
}

static const bal_param no_params[] = { { 0 } };

bal_method watch_method(bal_role role, size_t min)
{
    return (bal_method){
        .info = { .name = "watch", .min_inputs = min, .params = no_params },
        .role = role,
        .needs_base = role != BAL_ROLE_NONE,
        .merge = watch_merge,
    };
}

/* A recipe of count inputs. */
bal_recipe *watch_recipe(const bal_method *method, bal_space space,
                         size_t count, size_t base)
{
    bal_recipe *recipe = NULL;

    CHECK_OK(bal_recipe_new(&recipe, "linear", &check_err));
    recipe->method = method;
    recipe->space = space;
    for (size_t i = 0; i < count; i++) {
        bal_input input = { .tenant = "acme", .weight = 1 };
        CHECK_OK(bal_recipe_add(recipe, &input, &check_err));
    }
    recipe->slices[0].base = base;
    return recipe;
}

bal_model *watch_input(bal_kind kind, bal_dtype dtype, size_t n,
                       const void *bytes)
{
    made_row row = { .name = "w",
                     .dtype = dtype,
                     .of = BAL_BF16,
                     .rank = 1,
                     .shape = { n },
                     .bytes = bytes };

    row.form = kind == BAL_KIND_DELTA ? BAL_FORM_DIFFERENCE : BAL_FORM_WHOLE;
    return made_model(kind, NULL, &row, 1);
}

void watch_read(bal_model *view, void *to, size_t len)
{
    CHECK(bal_model_count(view) >= 1);
    CHECK(bal_model_at(view, 0)->size == len);
    CHECK_OK(bal_model_read(view, 0, 0, to, len, &check_err));
}

bal_kind watch_kind(bal_space space)
{
    static const bal_kind kinds[] = {
        [BAL_SPACE_AUTO] = BAL_KIND_WEIGHTS,
        [BAL_SPACE_DELTA] = BAL_KIND_DELTA,
        [BAL_SPACE_WEIGHTS] = BAL_KIND_WEIGHTS,
        [BAL_SPACE_PRODUCT] = BAL_KIND_ADAPTER,
        [BAL_SPACE_FACTORS] = BAL_KIND_ADAPTER,
    };

    return kinds[space];
}
