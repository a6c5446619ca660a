/* What a merge of differences remembers of the model that they are to. */
#include <stdlib.h>

#include "core/error.h"
#include "merge/view.h"
#include "model/digest.h"

static bool changes(const bal_tensor *entry)
{
    return entry->part == BAL_PART_TENSOR && entry->form != BAL_FORM_SAME &&
           entry->form != BAL_FORM_RESIDUAL;
}

/* Entries of the origin that an input changes. */
typedef struct touched {
    size_t *entries;
    bal_id *digests;
    size_t count;
} touched;

static void touched_done(touched *self)
{
    free(self->entries);
    free(self->digests);
}

static bool is_touched(const bal_dressed *all, const char *name)
{
    for (size_t k = 0; k < all->count; k++) {
        size_t at = bal_model_find(all->models[k], BAL_PART_TENSOR, name);
        if (at != BAL_NONE && changes(bal_model_at(all->models[k], at)))
            return true;
    }
    return false;
}

/* all: without the origin. */
static int find_touched(touched *out, const bal_model *origin,
                        const bal_dressed *all, bal_error *err)
{
    size_t count = bal_model_count(origin);

    out->entries = calloc(count + 1, sizeof(*out->entries));
    out->digests = calloc(count + 1, sizeof(*out->digests));
    if (!out->entries || !out->digests)
        return bal_fail_memory(err, "a recipe");
    for (size_t i = 0; i < count; i++) {
        const bal_tensor *entry = bal_model_at(origin, i);
        if (entry->part == BAL_PART_TENSOR && is_touched(all, entry->name))
            out->entries[out->count++] = i;
    }
    return 0;
}

static int list(json_t *to, const bal_model *origin, const touched *all,
                bal_error *err)
{
    char hex[BAL_ID_HEX + 1];

    for (size_t n = 0; n < all->count; n++) {
        bal_id_hex(hex, &all->digests[n]);
        if (json_object_set_new(to, bal_model_at(origin, all->entries[n])->name,
                                json_string(hex)))
            return bal_fail_memory(err, "a recipe");
    }
    return 0;
}

int bal_view_digests(bal_recipe *recipe, bal_model *const *inputs,
                     bal_work *work, bal_error *err)
{
    BAL_LOCAL(bal_dressed) models = { 0 };
    BAL_LOCAL(touched) all = { 0 };
    size_t at = bal_recipe_origin(recipe);
    if (at == BAL_NONE)
        return 0;

    int rc = bal_view_dress(&models, recipe, inputs, work, err);
    if (rc)
        return rc;
    bal_model *origin = inputs[at];
    const bal_dressed others = { models.models, at };
    rc = find_touched(&all, origin, &others, err);
    if (!rc)
        rc = bal_digest_entries(all.digests, origin, all.entries, all.count,
                                work, err);
    if (rc)
        return rc;
    json_decref(recipe->digests);
    recipe->digests = json_object();
    return recipe->digests ? list(recipe->digests, origin, &all, err)
                           : bal_fail_memory(err, "a recipe");
}
