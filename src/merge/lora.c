/* What is done to one adapter, as a model of another. */
#include <math.h>

#include "core/error.h"
#include "core/str.h"
#include "merge/merge.h"
#include "merge/settings.h"
#include "merge/shrink.h"
#include "model/peft.h"

int bal_rank_check(uint64_t rank, double energy, bal_error *err)
{
    if (rank > BAL_LORA_RANK_MAX)
        return bal_fail(err, BAL_EINVAL, "rank %llu is over %u",
                        (unsigned long long)rank, BAL_LORA_RANK_MAX);
    if (!(energy >= 0 && energy <= 1))
        return bal_fail(err, BAL_EINVAL, "an energy is above 0, and 1 at most");
    return 0;
}

int bal_rank_choice(const bal_lora_options *options, bal_error *err)
{
    bool ranked = options->rank != 0;
    bool energetic = options->energy != 0;

    if (ranked == energetic)
        return bal_fail(err, BAL_EINVAL, "a rank or an energy, one of them");
    return bal_rank_check(options->rank, options->energy, err);
}

static int check_kind(const bal_model *model, bal_error *err)
{
    const bal_facts *facts = bal_model_facts(model);

    if (facts->kind == BAL_KIND_ADAPTER)
        return 0;
    return bal_fail(err, BAL_EINVAL, "'%s' is of kind '%s', not an adapter",
                    facts->name ? facts->name : "", bal_kind_name(facts->kind));
}

int bal_lora_resize(bal_model **out, bal_model *adapter,
                    const bal_lora_options *options, bal_work *work,
                    bal_error *err)
{
    bal_shrink how = { .rank = options->rank,
                       .energy = options->energy,
                       .dtype = -1 };
    int rc = check_kind(adapter, err);

    if (!rc)
        rc = bal_rank_choice(options, err);
    if (!rc && options->dtype)
        rc = bal_setting_dtype(&how.dtype, options->dtype, "dtype", err);
    return rc ? rc : bal_shrink_open(out, adapter, &how, work, err);
}

/* A sum of one adapter with its weight. */
static int fill(bal_recipe *recipe, double factor, const char *dtype,
                bal_error *err)
{
    bal_input input = { .weight = factor };
    int rc = bal_recipe_set(recipe, "normalize", "false", err);

    if (!rc && dtype)
        rc = bal_recipe_set(recipe, "dtype", dtype, err);
    if (!rc)
        rc = bal_recipe_add(recipe, &input, err);
    recipe->space = BAL_SPACE_PRODUCT;
    return rc;
}

int bal_lora_scale(bal_model **out, bal_model *adapter, double factor,
                   const char *dtype, bal_error *err)
{
    BAL_OWN(bal_recipe) recipe = NULL;

    if (!isfinite(factor))
        return bal_fail(err, BAL_EINVAL, "a factor that is not finite");
    int rc = check_kind(adapter, err);
    if (!rc)
        rc = bal_recipe_new(&recipe, "linear", err);
    if (!rc)
        rc = fill(recipe, factor, dtype, err);
    return rc ? rc : bal_product_open(out, recipe, &adapter, err);
}
