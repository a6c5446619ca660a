/* A sum of adapters cut to a rank. What an energy comes to depends on what the
 * inputs hold, so it is found out once and recorded: later the shapes of a view
 * are known without computing anything. */
#include "core/error.h"
#include "merge/concat.h"
#include "merge/shrink.h"

static bool is_cut(const bal_recipe *recipe)
{
    return recipe->rank != 0 || recipe->energy != 0;
}

static int cut(bal_model **out, const bal_recipe *recipe,
               bal_model *const *inputs, bal_work *work, bal_error *err)
{
    BAL_OWN(bal_model) sum = NULL;
    bal_shrink how = {
        .rank = recipe->rank,
        .energy = recipe->energy,
        .ranks = recipe->ranks,
    };
    int rc = bal_concat_exact(&sum, &how.dtype, recipe, inputs, err);

    return rc ? rc : bal_shrink_open(out, sum, &how, work, err);
}

int bal_concat_open(bal_model **out, const bal_recipe *recipe,
                    bal_model *const *inputs, bal_error *err)
{
    if (!is_cut(recipe))
        return bal_concat_exact(out, NULL, recipe, inputs, err);
    if (!recipe->rank && !recipe->ranks)
        return bal_fail(err, BAL_ECORRUPT,
                        "a recipe that does not tell what its energy came to");
    return cut(out, recipe, inputs, NULL, err);
}

static int list_ranks(json_t *to, bal_model *adapter, bal_error *err)
{
    BAL_LOCAL(bal_loras) loras = { 0 };
    int rc = bal_loras_read(&loras, adapter, err);

    for (size_t i = 0; i < loras.count && !rc; i++) {
        const bal_lora *lora = &loras.rows[i];
        if (json_object_set_new(to, lora->module,
                                json_integer((json_int_t)lora->rank)))
            rc = bal_fail_memory(err, "a recipe");
    }
    return rc;
}

int bal_view_ranks(bal_recipe *recipe, bal_model *const *inputs, bal_work *work,
                   bal_error *err)
{
    BAL_OWN(bal_model) model = NULL;

    if (recipe->energy == 0)
        return 0;
    json_decref(recipe->ranks);
    recipe->ranks = NULL;
    int rc = cut(&model, recipe, inputs, work, err);
    if (rc)
        return rc;
    recipe->ranks = json_object();
    return recipe->ranks ? list_ranks(recipe->ranks, model, err)
                         : bal_fail_memory(err, "a recipe");
}

int bal_view_residual(bal_residual *out, bool *lossy, const bal_recipe *recipe,
                      bal_model *view, bal_model *const *inputs, bal_work *work,
                      bal_error *err)
{
    BAL_OWN(bal_model) sum = NULL;
    int dtype;

    *lossy = is_cut(recipe);
    if (!*lossy)
        return 0;
    int rc = bal_concat_exact(&sum, &dtype, recipe, inputs, err);
    return rc ? rc : bal_lora_compare(out, sum, view, work, NULL, NULL, err);
}
