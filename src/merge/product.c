/* Adapters merged as the maps they are. A sum of maps is an adapter again, of
 * their ranks together (concat.c), and may be cut to a rank; what another
 * method makes of them is of no low rank and is always cut. What an energy
 * comes to depends on what the inputs hold, so it is found out once and
 * recorded: later the shapes of a view are known without computing anything. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/concat.h"
#include "merge/extract.h"
#include "merge/maps.h"
#include "merge/shrink.h"

static bool is_cut(const bal_recipe *recipe)
{
    return recipe->rank != 0 || recipe->energy != 0;
}

static bool is_sum(const bal_recipe *recipe)
{
    return recipe->method->share != NULL;
}

/* ---- sums --------------------------------------------------------------- */

static int cut_sum(bal_model **out, const bal_recipe *recipe,
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

static int residual_sum(bal_residual *out, const bal_recipe *recipe,
                        bal_model *view, bal_model *const *inputs,
                        bal_work *work, bal_error *err)
{
    BAL_OWN(bal_model) sum = NULL;
    int dtype;
    int rc = bal_concat_exact(&sum, &dtype, recipe, inputs, err);

    return rc ? rc : bal_lora_compare(out, sum, view, work, NULL, NULL, err);
}

/* ---- other methods ------------------------------------------------------ */

typedef struct adapters {
    bal_model **maps;
    bal_loras *loras;
    size_t count;
} adapters;

static void adapters_done(adapters *self)
{
    for (size_t i = 0; i < self->count; i++) {
        bal_model_free(self->maps[i]);
        bal_loras_done(&self->loras[i]);
    }
    free(self->maps);
    free(self->loras);
}

static int read_adapters(adapters *out, const bal_recipe *recipe,
                         bal_model *const *inputs, bal_error *err)
{
    size_t count = bal_recipe_merged(recipe);

    out->maps = calloc(count + 1, sizeof(bal_model *));
    out->loras = calloc(count + 1, sizeof(*out->loras));
    if (!out->maps || !out->loras)
        return bal_fail_memory(err, "merging adapters");
    for (size_t i = 0; i < count; i++) {
        const char *name = bal_model_facts(inputs[i])->name;
        out->count++;
        int rc = bal_maps_open(&out->maps[i], inputs[i], err);
        if (!rc)
            rc = bal_loras_read(&out->loras[i], inputs[i], err);
        if (rc)
            return bal_within(err, rc, "input %zu '%s'", i + 1,
                              name ? name : "");
    }
    return bal_wholes_check(out->loras, inputs, count, err);
}

/* The method's result over the maps, as differences. */
static int merge_maps(bal_model **out, adapters *all, const bal_recipe *recipe,
                      bal_model *const *inputs, bal_error *err)
{
    bal_recipe maps = *recipe;
    int rc = read_adapters(all, recipe, inputs, err);
    if (rc)
        return rc;

    maps.space = BAL_SPACE_DELTA;
    maps.dtype = -1;
    maps.count = all->count;
    return bal_view_open(out, &maps, all->maps, NULL, err);
}

static bal_dtype dtype_of(const bal_recipe *recipe, const adapters *all,
                          bal_model *const *inputs)
{
    int dtype = -1;

    for (size_t i = 0; i < all->count; i++)
        dtype = bal_loras_join(dtype, &all->loras[i], inputs[i]);
    if (recipe->dtype >= 0)
        dtype = recipe->dtype;
    return dtype >= 0 ? (bal_dtype)dtype : BAL_F32;
}

static int cut_maps(bal_model **out, const bal_recipe *recipe,
                    bal_model *const *inputs, bal_work *work, bal_error *err)
{
    BAL_LOCAL(adapters) all = { 0 };
    BAL_OWN(bal_model) merged = NULL;
    int rc = merge_maps(&merged, &all, recipe, inputs, err);
    if (rc)
        return rc;

    const bal_extract how = {
        .rank = recipe->rank,
        .energy = recipe->energy,
        .ranks = recipe->ranks,
        .dtype = dtype_of(recipe, &all, inputs),
        .like = all.loras,
        .like_count = all.count,
        .files = inputs[0],
    };
    return bal_extract_open(out, merged, &how, work, err);
}

/* A map is a tensor there. */
static void call_module(char *name)
{
    static const char weight[] = ".weight";
    size_t len = strlen(name);
    size_t tail = sizeof(weight) - 1;

    if (len > tail && !strcmp(name + len - tail, weight))
        name[len - tail] = '\0';
}

static int residual_maps(bal_residual *out, const bal_recipe *recipe,
                         bal_model *view, bal_model *const *inputs,
                         bal_work *work, bal_error *err)
{
    BAL_LOCAL(adapters) all = { 0 };
    BAL_OWN(bal_model) merged = NULL;
    int rc = merge_maps(&merged, &all, recipe, inputs, err);

    if (!rc)
        rc = bal_lora_distance(out, merged, view, work, NULL, NULL, err);
    if (!rc)
        call_module(out->module);
    return rc;
}

/* ---- both --------------------------------------------------------------- */

static int cut(bal_model **out, const bal_recipe *recipe,
               bal_model *const *inputs, bal_work *work, bal_error *err)
{
    return is_sum(recipe) ? cut_sum(out, recipe, inputs, work, err)
                          : cut_maps(out, recipe, inputs, work, err);
}

int bal_product_open(bal_model **out, const bal_recipe *recipe,
                     bal_model *const *inputs, bal_error *err)
{
    if (!is_cut(recipe) && is_sum(recipe))
        return bal_concat_exact(out, NULL, recipe, inputs, err);
    if (!recipe->rank && !recipe->ranks)
        return bal_fail(err, BAL_ECORRUPT,
                        "a recipe that does not tell the ranks of its result");
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
    *lossy = is_cut(recipe);
    if (!*lossy)
        return 0;
    return is_sum(recipe) ? residual_sum(out, recipe, view, inputs, work, err)
                          : residual_maps(out, recipe, view, inputs, work, err);
}
