/* The sum of low-rank maps is a low-rank map: [s B, t D] [A; C] = s B A + t D
 * C. So a linear merge of LoRA adapters needs no arithmetic but the scaling of
 * the Bs, and its rank is the sum of the ranks. */
#include "merge/concat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"
#include "model/elements.h"

/* Elements at once; at least BAL_LORA_RANK_MAX, so that a row of B fits. */
enum { CHUNK = 128 * 1024 };

_Static_assert(CHUNK >= BAL_LORA_RANK_MAX, "a row of B fits in a chunk");

typedef struct concat {
    bal_model model;
    bal_model **inputs;
    bal_loras *adapters;
    size_t count;
    bal_joined *modules;
    size_t module_count;
    bal_map names; /* of modules */
    bal_dtype dtype;
    bal_buf config;
} concat;

/* ---- reading ------------------------------------------------------------ */

/* Elements of A: those of each adapter lie together. */
static int read_a(concat *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    const bal_joined *module = &self->modules[index];
    size_t width = bal_dtype_bits(self->dtype) / 8;
    uint64_t start = offset / width;
    uint64_t end = start + len / width;
    uint8_t *at = to;
    double *wide = malloc(bal_min(len / width, CHUNK) * sizeof(*wide));
    if (!wide)
        return bal_fail_memory(err, "merging adapters");

    int rc = 0;
    for (size_t i = 0; i < module->count && !rc; i++) {
        const bal_share *share = &module->shares[i];
        uint64_t first = share->at * module->in;
        uint64_t last = first + share->lora->rank * module->in;

        while (!rc && start < bal_min(end, last)) {
            size_t n = bal_min(bal_min(end, last) - start, CHUNK);
            rc = bal_elements_read(wide, self->inputs[share->input],
                                   share->lora->a, start - first, n, err);
            if (!rc)
                bal_kernels_use()->from_f64[self->dtype](at, wide, n);
            start += n;
            at += n * width;
        }
    }
    free(wide);
    return rc;
}

/* Rows of B, whole: each adapter's columns, scaled. */
static int fill_rows(concat *self, const bal_joined *module, double *to,
                     double *piece, uint64_t row, size_t rows, bal_error *err)
{
    for (size_t i = 0; i < module->count; i++) {
        const bal_share *share = &module->shares[i];
        size_t rank = (size_t)share->lora->rank;
        int rc =
            bal_elements_read(piece, self->inputs[share->input], share->lora->b,
                              row * rank, rows * rank, err);
        if (rc)
            return rc;
        bal_kernels_use()->scale(piece, share->scale, rows * rank);
        for (size_t k = 0; k < rows; k++)
            memcpy(to + k * module->rank + share->at, piece + k * rank,
                   rank * sizeof(*to));
    }
    return 0;
}

static int read_b(concat *self, size_t index, uint64_t offset, void *to,
                  size_t len, bal_error *err)
{
    const bal_joined *module = &self->modules[index];
    size_t width = bal_dtype_bits(self->dtype) / 8;
    uint64_t start = offset / width;
    uint64_t end = start + len / width;
    uint64_t most = CHUNK / module->rank;
    uint8_t *at = to;
    double *wide = malloc(2 * (size_t)CHUNK * sizeof(*wide));
    if (!wide)
        return bal_fail_memory(err, "merging adapters");

    int rc = 0;
    while (start < end && !rc) {
        uint64_t first = start / module->rank;
        uint64_t behind = (end - 1) / module->rank + 1;
        size_t rows = bal_min(most, behind - first);
        uint64_t origin = first * module->rank;
        size_t n = bal_min(end, origin + rows * module->rank) - start;

        rc = fill_rows(self, module, wide, wide + CHUNK, first, rows, err);
        if (!rc)
            bal_kernels_use()->from_f64[self->dtype](
                at, wide + (start - origin), n);
        start += n;
        at += n * width;
    }
    free(wide);
    return rc;
}

static int read_config(concat *self, size_t index, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    (void)index;
    (void)err;
    memcpy(to, self->config.data + offset, len);
    return 0;
}

static int read_file(concat *self, size_t index, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    return bal_model_read(self->inputs[0], index, offset, to, len, err);
}

static int (*const readers[])(concat *self, size_t index, uint64_t offset,
                              void *to, size_t len, bal_error *err) = {
    [BAL_MADE_A] = read_a,
    [BAL_MADE_B] = read_b,
    [BAL_MADE_CONFIG] = read_config,
    [BAL_MADE_OTHER] = read_file,
};

static int concat_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    size_t index;
    bal_made what = bal_made_of(&index, model, i);

    return readers[what]((concat *)model, index, offset, to, len, err);
}

static void concat_free(bal_model *model)
{
    concat *self = (concat *)model;

    for (size_t i = 0; i < self->count; i++) {
        bal_model_free(self->inputs[i]);
        bal_loras_done(&self->adapters[i]);
    }
    bal_map_done(&self->names);
    bal_buf_done(&self->config);
    free(self->inputs);
    free(self->adapters);
    free(self->modules);
}

static const bal_model_ops concat_ops = {
    .read = concat_read,
    .free = concat_free,
};

/* ---- modules ------------------------------------------------------------ */

static int within_input(const concat *self, bal_error *err, int rc,
                        size_t input)
{
    const char *name = bal_model_facts(self->inputs[input])->name;

    return bal_within(err, rc, "input %zu '%s'", input + 1, name ? name : "");
}

/* The module of the result that an adapter's module goes into. */
static int module_of(concat *self, bal_joined **out, const bal_lora *lora,
                     bal_error *err)
{
    size_t at = self->module_count;
    bool there;
    int rc = bal_map_add(&self->names, lora->module, strlen(lora->module), &at,
                         &there, err);
    if (rc)
        return rc;
    bal_joined *module = &self->modules[at];
    *out = module;
    if (there)
        return 0;
    *module = (bal_joined){ .module = lora->module,
                            .in = lora->in,
                            .out = lora->out,
                            .embedding = lora->embedding };
    module->shares = bal_arena_alloc(&self->model.arena,
                                     self->count * sizeof(*module->shares));
    if (!module->shares)
        return bal_fail_memory(err, "merging adapters");
    self->module_count++;
    return 0;
}

static int add_share(concat *self, size_t input, const bal_lora *lora,
                     double weight, bal_error *err)
{
    bal_joined *module = NULL;
    int rc = module_of(self, &module, lora, err);
    if (rc)
        return rc;
    if (module->in != lora->in || module->out != lora->out ||
        module->embedding != lora->embedding)
        return bal_fail(err, BAL_EINVAL,
                        "module '%s' has another shape than in input %zu",
                        lora->module, module->shares[0].input + 1);
    module->shares[module->count++] = (bal_share){
        .input = input,
        .lora = lora,
        .scale = weight * lora->scale,
        .at = module->rank,
    };
    module->rank += lora->rank;
    if (module->rank > BAL_LORA_RANK_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': the ranks add up to more than %u",
                        lora->module, BAL_LORA_RANK_MAX);
    return 0;
}

static int read_adapters(concat *self, bal_error *err)
{
    size_t most = 0;

    for (size_t k = 0; k < self->count; k++) {
        int rc = bal_loras_read(&self->adapters[k], self->inputs[k], err);
        if (rc)
            return within_input(self, err, rc, k);
        most += self->adapters[k].count;
    }
    self->modules = calloc(most + 1, sizeof(*self->modules));
    return self->modules ? bal_wholes_check(self->adapters, self->inputs,
                                            self->count, err)
                         : bal_fail_memory(err, "merging adapters");
}

static int join_modules(concat *self, bal_shares *shares, bal_error *err)
{
    for (size_t k = 0; k < self->count; k++) {
        for (size_t i = 0; i < self->adapters[k].count; i++) {
            const bal_lora *lora = &self->adapters[k].rows[i];
            double share;
            int rc = bal_share_of(&share, shares, lora->module, k, err);
            if (!rc)
                rc = add_share(self, k, lora, share, err);
            if (rc)
                return within_input(self, err, rc, k);
        }
    }
    return 0;
}

/* Strict: every adapter has every module. */
static int check_strict(const concat *self, bal_error *err)
{
    for (size_t i = 0; i < self->module_count; i++) {
        const bal_joined *module = &self->modules[i];

        for (size_t k = 0; k < self->count; k++) {
            if (bal_loras_find(&self->adapters[k], module->module))
                continue;
            return within_input(
                self, err,
                bal_fail(err, BAL_EINVAL, "no module '%s'", module->module), k);
        }
    }
    return 0;
}

/* The result's dtype: the one of all factors, F32 where they differ. */
static void choose_dtype(concat *self, int asked)
{
    int dtype = -1;

    for (size_t k = 0; k < self->count; k++)
        dtype = bal_loras_join(dtype, &self->adapters[k], self->inputs[k]);
    if (asked >= 0)
        dtype = asked;
    self->dtype = dtype >= 0 ? (bal_dtype)dtype : BAL_F32;
}

static int list(concat *self, bal_error *err)
{
    const bal_entries entries = {
        .modules = self->modules,
        .count = self->module_count,
        .dtype = self->dtype,
        .config = &self->config,
        .files = self->inputs[0],
    };
    int rc = bal_concat_config(&self->config, self->adapters, self->count,
                               self->modules, self->module_count, err);

    if (!rc)
        rc = bal_entries_add(&self->model, &entries, err);
    return rc ? rc
              : bal_wholes_pass(&self->model, &self->adapters[0],
                                self->inputs[0], err);
}

/* ---- opening ------------------------------------------------------------ */

/* What the adapters tell of their base: the configs agree by now. */
static int tell(concat *self, bal_error *err)
{
    bal_facts facts = { .kind = BAL_KIND_ADAPTER, .name = "view" };

    for (size_t k = 0; k < self->count; k++) {
        const bal_facts *input = bal_model_facts(self->inputs[k]);
        if (!facts.base_model)
            facts.base_model = input->base_model;
        if (!facts.revision)
            facts.revision = input->revision;
    }
    return bal_model_tell(&self->model, &facts, err);
}

static int take_inputs(concat *self, const bal_recipe *recipe,
                       bal_model *const *inputs, bal_error *err)
{
    self->inputs = calloc(recipe->count, sizeof(bal_model *));
    self->adapters = calloc(recipe->count, sizeof(*self->adapters));
    if (!self->inputs || !self->adapters)
        return bal_fail_memory(err, "merging adapters");
    for (; self->count < bal_recipe_merged(recipe); self->count++)
        self->inputs[self->count] = bal_model_ref(inputs[self->count]);
    return 0;
}

static int join_all(concat *self, const bal_recipe *recipe, bal_error *err)
{
    BAL_LOCAL(bal_shares) shares = { 0 };
    int rc = bal_shares_init(&shares, recipe, self->adapters, err);
    if (!rc)
        rc = join_modules(self, &shares, err);
    if (!rc && recipe->strict)
        rc = check_strict(self, err);
    choose_dtype(self, recipe->dtype);
    return rc;
}

/* dtype NULL: factors are of the result's. Else they are wide, and it is told.
 */
static int plan(concat *self, const bal_recipe *recipe,
                bal_model *const *inputs, int *dtype, bal_error *err)
{
    int rc = take_inputs(self, recipe, inputs, err);

    if (!rc)
        rc = read_adapters(self, err);
    if (!rc)
        rc = join_all(self, recipe, err);
    if (dtype) {
        *dtype = (int)self->dtype;
        self->dtype = BAL_F64;
    }
    if (!rc)
        rc = list(self, err);
    if (!rc)
        rc = tell(self, err);
    if (rc)
        return rc;
    return bal_model_ready(&self->model, err);
}

int bal_concat_exact(bal_model **out, int *dtype, const bal_recipe *recipe,
                     bal_model *const *inputs, bal_error *err)
{
    bool same = false;

    /* Settling refuses it, a recipe out of a database may still ask. */
    if (!recipe->method->share)
        return bal_fail(err, BAL_ECORRUPT,
                        "a recipe of method '%s' in product space",
                        recipe->method->info.name);
    int rc = bal_shares_same(&same, recipe, err);
    if (rc)
        return rc;
    /* One adapter that comes out as it went in is that adapter. */
    if (same) {
        *out = bal_model_ref(inputs[0]);
        if (dtype)
            *dtype = -1;
        return 0;
    }
    concat *self = bal_model_alloc(sizeof(*self), &concat_ops);
    if (!self)
        return bal_fail_memory(err, "merging adapters");
    BAL_OWN(bal_model) model = &self->model;
    rc = plan(self, recipe, inputs, dtype, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
