/* A delta as the nearest adapter. */
#include "merge/extract.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "merge/factored.h"
#include "merge/settings.h"
#include "merge/shrink.h"
#include "merge/sketch.h"
#include "model/elements.h"

static const char weight[] = ".weight";

/* Looked up rather than multiplied with: by the last part of a path. */
static const char *const embeddings[] = {
    "embed_tokens",
    "wte",
    "wpe",
    "word_embeddings",
    "position_embeddings",
    "embed_in",
    "embeddings",
    "tok_embeddings",
    "token_type_embeddings",
    "embedding",
    "embed_positions",
};

/* Modules that are Conv1D in models of GPT-2's kind. */
static const char *const turned[] = { "c_attn", "c_proj", "c_fc", "q_attn" };

typedef struct extract {
    bal_factored made;
    bal_model *delta;
    size_t *entries; /* beside the modules */
    uint64_t seed;
    double energy;
    const bal_extract *how; /* while it is planned */
} extract;

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "extracting an adapter");
}

/* ---- tensors ------------------------------------------------------------ */

static bool ends_with_one(const char *module, const char *const *names,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bal_peft_named(module, names[i]))
            return true;
    }
    return false;
}

int bal_extract_module(bool *is, bal_buf *out, const bal_tensor *tensor,
                       bal_error *err)
{
    size_t len = strlen(tensor->name);
    size_t tail = sizeof(weight) - 1;

    bal_buf_clear(out);
    *is = false;
    if (tensor->part != BAL_PART_TENSOR ||
        tensor->form != BAL_FORM_DIFFERENCE || tensor->rank != 2 ||
        !tensor->shape[0] || !tensor->shape[1] || len <= tail ||
        strcmp(tensor->name + len - tail, weight) != 0)
        return 0;
    int rc = bal_buf_append(out, tensor->name, len - tail, err);
    *is = !rc && !ends_with_one(bal_buf_string(out), embeddings,
                                sizeof(embeddings) / sizeof(embeddings[0]));
    return rc;
}

int bal_difference_rows(double *to, void *ctx, size_t start, size_t count,
                        bal_error *err)
{
    const bal_difference *self = ctx;

    return bal_elements_read(to, self->delta, self->entry,
                             (uint64_t)start * self->columns,
                             count * self->columns, err);
}

/* ---- factors ------------------------------------------------------------ */

static int search(bal_spectrum *out, extract *self, size_t i, size_t *rank,
                  bal_error *err)
{
    const bal_joined *module = &self->made.modules[i];
    bal_difference rows = { self->delta, self->entries[i], (size_t)module->in };
    const bal_sketch sketch = {
        .m = (size_t)module->out,
        .n = (size_t)module->in,
        .rows = bal_difference_rows,
        .ctx = &rows,
        .seed = self->seed,
        .name = module->module,
    };

    return bal_sketch_run(out, &sketch, rank, self->energy, err);
}

static int compute(bal_lowrank *out, bal_factored *made, size_t i,
                   bal_error *err)
{
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    size_t rank = (size_t)made->modules[i].rank;
    int rc = search(&spectrum, (extract *)made, i, &rank, err);

    return rc ? rc : bal_spectrum_cut(out, &spectrum, rank, err);
}

static void drop(bal_factored *made)
{
    extract *self = (extract *)made;

    bal_model_free(self->delta);
    free(self->entries);
}

static int find_rank(size_t i, void *ctx, bal_error *err)
{
    extract *self = ctx;
    BAL_LOCAL(bal_spectrum) spectrum = { 0 };
    size_t rank = 0;
    int rc = search(&spectrum, self, i, &rank, err);
    if (rc)
        return bal_within(err, rc, "module '%s'", self->made.modules[i].module);

    self->made.modules[i].rank = rank;
    return 0;
}

/* ---- modules ------------------------------------------------------------ */

static bool is_embedding(const bal_extract *how, const char *module)
{
    const bal_lora *lora = NULL;

    for (size_t i = 0; i < how->like_count && !lora; i++)
        lora = bal_loras_find(&how->like[i], module);
    return lora && lora->embedding;
}

static int add_module(extract *self, size_t entry, const char *name,
                      bal_error *err)
{
    bal_factored *made = &self->made;
    const bal_extract *how = self->how;
    const uint64_t *shape = bal_model_at(self->delta, entry)->shape;
    uint64_t most = bal_min(shape[0], shape[1]);
    uint64_t rank = bal_min(how->rank, most);
    const char *module = bal_arena_copy(&made->model.arena, name, strlen(name));
    if (!module)
        return no_memory(err);

    if (!how->like &&
        ends_with_one(module, turned, sizeof(turned) / sizeof(turned[0])))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s.weight' may be stored transposed (Conv1D), "
                        "which is not extracted",
                        name);
    int rc = !how->rank && how->ranks
                 ? bal_rank_told(&rank, how->ranks, module, most, err)
                 : 0;
    self->entries[made->count] = entry;
    made->modules[made->count++] = (bal_joined){
        .module = module,
        .rank = rank,
        .in = shape[1],
        .out = shape[0],
        .embedding = is_embedding(how, module),
    };
    return rc;
}

/* How many modules each target names: none is a slip of the pen. */
static int check_targets(const extract *self, bal_error *err)
{
    const bal_extract *how = self->how;

    for (size_t i = 0; i < how->target_count; i++) {
        bool used = false;
        for (size_t k = 0; k < self->made.count && !used; k++)
            used =
                bal_peft_named(self->made.modules[k].module, how->targets[i]);
        if (!used)
            return bal_fail(err, BAL_EINVAL,
                            "no linear module that changed is named '%s'",
                            how->targets[i]);
    }
    if (!self->made.count)
        return bal_fail(err, BAL_EINVAL,
                        "no weight of a linear module has changed");
    return 0;
}

/* A map of an adapter is a module, whatever its name is. */
static int module_of(bool *is, bal_buf *out, const extract *self,
                     const bal_tensor *tensor, bal_error *err)
{
    if (!self->how->like)
        return bal_extract_module(is, out, tensor, err);
    bal_buf_clear(out);
    *is = true;
    return bal_buf_append(out, tensor->name,
                          strlen(tensor->name) - (sizeof(weight) - 1), err);
}

static int find_modules(extract *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) module = { 0 };
    const bal_extract *how = self->how;
    size_t count = bal_model_count(self->delta);
    bool is;

    self->made.modules = calloc(count + 1, sizeof(*self->made.modules));
    self->entries = calloc(count + 1, sizeof(*self->entries));
    if (!self->made.modules || !self->entries)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        int rc =
            module_of(&is, &module, self, bal_model_at(self->delta, i), err);
        const char *name = bal_buf_string(&module);
        if (!rc && is &&
            (!how->target_count ||
             ends_with_one(name, how->targets, how->target_count)))
            rc = add_module(self, i, name, err);
        if (rc)
            return rc;
    }
    return check_targets(self, err);
}

/* ---- config ------------------------------------------------------------- */

/* Is every module that is linear and ends so adapted? Then its last name says
 * enough; else another one would get an adapter, too. */
static bool covered(const extract *self, const char *name)
{
    size_t adapted = 0;
    size_t all = 0;
    char ending[256];

    if (snprintf(ending, sizeof(ending), "%s%s", name, weight) >=
        (int)sizeof(ending))
        return false;
    for (size_t i = 0; i < self->made.count; i++)
        adapted += bal_peft_named(self->made.modules[i].module, name);
    for (size_t i = 0; i < bal_model_count(self->delta); i++) {
        const bal_tensor *tensor = bal_model_at(self->delta, i);
        all += tensor->part == BAL_PART_TENSOR &&
               tensor->form != BAL_FORM_RESIDUAL &&
               tensor->form != BAL_FORM_REMOVED &&
               bal_peft_named(tensor->name, ending);
    }
    return adapted == all;
}

static int add_targets(json_t *to, const extract *self, bal_error *err)
{
    BAL_OWN(json_t) seen = json_object();
    if (!seen)
        return no_memory(err);

    for (size_t i = 0; i < self->made.count; i++) {
        const char *module = self->made.modules[i].module;
        assert(module);
        const char *dot = strrchr(module, '.');
        const char *name = dot ? dot + 1 : module;
        bool told = json_object_get(seen, name) || !covered(self, name);
        if (json_object_set_new(seen, name, json_true()) ||
            (!told && json_array_append_new(to, json_string(name))))
            return no_memory(err);
    }
    return 0;
}

/* A config that no adapter was there for before. */
static int list_new(extract *self, const char *base_model, bal_error *err)
{
    bal_loras like = { 0 };
    BAL_OWN(json_t) config = bal_config_new(base_model);
    if (!config)
        return no_memory(err);
    int rc = add_targets(json_object_get(config, "target_modules"), self, err);
    like.config = config;
    return rc ? rc : bal_factored_list(&self->made, &like, 1, err);
}

static int list_like(extract *self, bal_error *err)
{
    const bal_extract *how = self->how;
    int rc = bal_factored_list(&self->made, how->like, how->like_count, err);

    return rc ? rc
              : bal_wholes_pass(&self->made.model, how->like, how->files, err);
}

/* ---- opening ------------------------------------------------------------ */

static int plan(extract *self, bal_work *work, bal_error *err)
{
    bal_factored *made = &self->made;
    const bal_extract *how = self->how;
    const bal_facts *of = bal_model_facts(self->delta);
    bal_facts facts = { .kind = BAL_KIND_ADAPTER,
                        .name = of->name,
                        .base_model =
                            how->base_model ? how->base_model : of->base_model,
                        .revision = of->revision };
    int rc = find_modules(self, err);

    if (!rc && !how->rank && !how->ranks)
        rc = bal_pool_run(work, made->count, find_rank, self, err);
    if (!rc)
        rc = how->like ? list_like(self, err)
                       : list_new(self, facts.base_model, err);
    if (!rc)
        rc = bal_model_tell(&made->model, &facts, err);
    return rc ? rc : bal_model_ready(&made->model, err);
}

int bal_extract_open(bal_model **out, bal_model *delta, const bal_extract *how,
                     bal_work *work, bal_error *err)
{
    extract *self = bal_factored_alloc(sizeof(*self), compute, drop);
    if (!self)
        return no_memory(err);
    self->delta = bal_model_ref(delta);
    self->made.dtype = how->dtype;
    self->made.others = bal_model_ref(how->files);
    self->seed = how->seed;
    self->energy = how->energy;
    self->how = how;
    BAL_OWN(bal_model) model = &self->made.model;
    int rc = plan(self, work, err);
    if (rc)
        return rc;
    self->how = NULL;
    *out = BAL_TAKE(model);
    return 0;
}

int bal_lora_extract(bal_model **out, bal_model *delta,
                     const bal_extract_options *options, bal_work *work,
                     bal_error *err)
{
    const bal_facts *facts = bal_model_facts(delta);
    const bal_lora_options *lora = &options->lora;
    int dtype = BAL_F32;
    int rc = bal_rank_choice(lora, err);
    if (rc)
        return rc;
    if (facts->kind != BAL_KIND_DELTA)
        return bal_fail(err, BAL_EINVAL, "'%s' is of kind '%s', not a delta",
                        facts->name ? facts->name : "",
                        bal_kind_name(facts->kind));
    rc = lora->dtype ? bal_setting_dtype(&dtype, lora->dtype, "dtype", err) : 0;
    if (rc)
        return rc;

    const bal_extract how = {
        .rank = lora->rank,
        .energy = lora->energy,
        .dtype = (bal_dtype)dtype,
        .seed = options->seed,
        .base_model = options->base_model,
        .targets = options->targets,
        .target_count = options->target_count,
    };
    return bal_extract_open(out, delta, &how, work, err);
}
