/* LoRA files of other trainers as PEFT adapters. Their names are those of the
 * base's modules behind a prefix, with dots, or with underscores in their
 * place: what a name means is looked up in the base, and never guessed. Names
 * are those of kohya's sd-scripts (lora_unet_…lora_down.weight, .alpha),
 * diffusers and ai-toolkit (transformer.….lora_A.weight, .lora.down.weight) and
 * ComfyUI (diffusion_model.…). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "kernel/kernels.h"
#include "merge/concat.h"
#include "merge/join.h"
#include "model/elements.h"

enum { PIECE = 64 * 1024 };

/* Which tensor of a module. */
enum { A, B, ALPHA, PARTS };

typedef struct suffix {
    const char *text;
    int part;         /* PARTS: what is no LoRA */
    const char *what; /* then: what it is */
} suffix;

static const suffix suffixes[] = {
    { ".lora_down.weight", A, NULL },
    { ".lora_up.weight", B, NULL },
    { ".lora.down.weight", A, NULL },
    { ".lora.up.weight", B, NULL },
    { ".lora_A.weight", A, NULL },
    { ".lora_B.weight", B, NULL },
    { ".alpha", ALPHA, NULL },
    { ".lora_mid.weight", PARTS, "a convolution's middle factor" },
    { ".dora_scale", PARTS, "DoRA" },
    { ".diff", PARTS, "a whole difference" },
    { ".diff_b", PARTS, "a bias" },
    { ".hada_w1_a", PARTS, "LoHa" },
    { ".hada_w1_b", PARTS, "LoHa" },
    { ".hada_w2_a", PARTS, "LoHa" },
    { ".hada_w2_b", PARTS, "LoHa" },
    { ".lokr_w1", PARTS, "LoKr" },
    { ".lokr_w2", PARTS, "LoKr" },
};

/* The first is none: a name may be the base's as it is. */
static const char *const prefixes[] = {
    "",
    "base_model.model.",
    "diffusion_model.",
    "model.diffusion_model.",
    "transformer.",
    "unet.",
    "text_encoder.",
    "text_encoder_2.",
    "lora_unet_",
    "lora_te_",
    "lora_te1_",
    "lora_te2_",
    "lora_transformer_",
    "lora_",
};

typedef struct member {
    size_t entry[PARTS]; /* of the file, BAL_NONE: none */
} member;

typedef struct dialect {
    bal_model model;
    bal_model *file;
    /* While it is planned: keys are the base's. */
    bal_map names; /* of the base's modules, both ways to write them */
    size_t *bases; /* what a name is of: an entry of the base, or BAL_NONE: of
                      several */
    bal_map taken; /* the base's modules that are adapted */
    bal_joined *modules;
    member *members; /* beside modules */
    size_t count;
    bal_dtype dtype;
    bal_buf config;
} dialect;

static int no_memory(bal_error *err)
{
    return bal_fail_memory(err, "importing an adapter");
}

/* ---- reading ------------------------------------------------------------ */

static int convert(const dialect *self, size_t entry, uint64_t start,
                   uint64_t n, uint8_t *to, bal_error *err)
{
    size_t width = bal_dtype_bits(self->dtype) / 8;
    size_t most = (size_t)bal_min(n, PIECE);
    double *wide = malloc(most * sizeof(*wide) + 1);
    int rc = wide ? 0 : no_memory(err);

    while (n && !rc) {
        size_t count = (size_t)bal_min(n, most);
        rc = bal_elements_read(wide, self->file, entry, start, count, err);
        if (!rc)
            bal_kernels_use()->from_f64[self->dtype](to, wide, count);
        to += count * width;
        start += count;
        n -= count;
    }
    free(wide);
    return rc;
}

static int dialect_read(bal_model *model, size_t i, uint64_t offset, void *to,
                        size_t len, bal_error *err)
{
    dialect *self = (dialect *)model;
    size_t width = bal_dtype_bits(self->dtype) / 8;
    size_t index;
    bal_made what = bal_made_of(&index, model, i);

    if (what == BAL_MADE_CONFIG) {
        memcpy(to, self->config.data + offset, len);
        return 0;
    }
    size_t entry = self->members[index].entry[what == BAL_MADE_A ? A : B];
    if (bal_model_at(self->file, entry)->dtype == self->dtype)
        return bal_model_read(self->file, entry, offset, to, len, err);
    return convert(self, entry, offset / width, len / width, to, err);
}

static void dialect_free(bal_model *model)
{
    dialect *self = (dialect *)model;

    bal_map_done(&self->names);
    bal_map_done(&self->taken);
    bal_buf_done(&self->config);
    bal_model_free(self->file);
    free(self->bases);
    free(self->modules);
    free(self->members);
}

static const bal_model_ops dialect_ops = {
    .read = dialect_read,
    .free = dialect_free,
};

/* ---- the base's names --------------------------------------------------- */

static int add_name(dialect *self, const char *name, size_t len, size_t entry,
                    size_t *count, bal_error *err)
{
    size_t at = *count;
    bool there;
    int rc = bal_map_add(&self->names, name, len, &at, &there, err);

    if (rc)
        return rc;
    if (there && self->bases[at] != entry)
        self->bases[at] = BAL_NONE;
    if (there)
        return 0;
    self->bases[at] = entry;
    ++*count;
    return 0;
}

/* Length of a module's name: without ".weight"; 0: it is no matrix. */
static size_t module_length(const bal_tensor *tensor)
{
    static const char weight[] = ".weight";
    size_t len = strlen(tensor->name);
    size_t tail = sizeof(weight) - 1;

    if (tensor->part != BAL_PART_TENSOR || tensor->rank != 2 || len <= tail ||
        strcmp(tensor->name + len - tail, weight) != 0)
        return 0;
    return len - tail;
}

static int read_base(dialect *self, const bal_model *base, bal_error *err)
{
    size_t entries = bal_model_count(base);
    size_t count = 0;
    int rc = 0;

    self->bases = calloc(2 * entries + 1, sizeof(*self->bases));
    if (!self->bases)
        return no_memory(err);
    for (size_t i = 0; i < entries && !rc; i++) {
        const bal_tensor *tensor = bal_model_at(base, i);
        size_t len = module_length(tensor);
        if (!len)
            continue;
        char *flat = bal_arena_copy(&self->model.arena, tensor->name, len);
        if (!flat)
            return no_memory(err);
        rc = add_name(self, tensor->name, len, i, &count, err);
        for (char *at = flat; *at; at++) {
            if (*at == '.')
                *at = '_';
        }
        if (!rc)
            rc = add_name(self, flat, len, i, &count, err);
    }
    return rc;
}

/* Which module of the base a name means. */
static int look_up(size_t *out, const dialect *self, const char *name,
                   size_t len, bal_error *err)
{
    size_t found = BAL_NONE;
    size_t ways = 0;

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        size_t skip = strlen(prefixes[i]);
        if (len <= skip || strncmp(name, prefixes[i], skip) != 0)
            continue;
        size_t at = bal_map_find(&self->names, name + skip, len - skip);
        if (at == BAL_NONE)
            continue;
        ways += self->bases[at] == BAL_NONE || self->bases[at] != found;
        ways += self->bases[at] == BAL_NONE;
        found = self->bases[at];
    }
    *out = found;
    if (ways == 1)
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    ways ? "module '%.*s' may be several modules of the base"
                         : "module '%.*s' is no matrix of the base, by any "
                           "prefix that is known",
                    (int)len, name);
}

/* ---- the file's names --------------------------------------------------- */

static int find_suffix(const suffix **out, const bal_tensor *tensor,
                       bal_error *err)
{
    size_t len = strlen(tensor->name);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        size_t tail = strlen(suffixes[i].text);
        if (len <= tail ||
            strcmp(tensor->name + len - tail, suffixes[i].text) != 0)
            continue;
        *out = &suffixes[i];
        if (suffixes[i].part < PARTS)
            return 0;
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is %s, which is not imported",
                        tensor->name, suffixes[i].what);
    }
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "tensor '%s' is of no LoRA dialect that is known",
                    tensor->name);
}

static int add_tensor(dialect *self, const bal_model *base, size_t entry,
                      bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->file, entry);
    const suffix *tail = NULL;
    size_t of;
    int rc = find_suffix(&tail, tensor, err);
    if (rc)
        return rc;
    size_t len = strlen(tensor->name) - strlen(tail->text);
    rc = look_up(&of, self, tensor->name, len, err);
    if (rc)
        return rc;

    const bal_tensor *weight = bal_model_at(base, of);
    size_t length = module_length(weight);
    size_t at = self->count;
    bool there;
    rc = bal_map_add(&self->taken, weight->name, length, &at, &there, err);
    if (rc)
        return rc;
    if (!there) {
        self->modules[at].module =
            bal_arena_copy(&self->model.arena, weight->name, length);
        self->members[at] = (member){ { BAL_NONE, BAL_NONE, BAL_NONE } };
        self->count++;
        if (!self->modules[at].module)
            return no_memory(err);
    }
    size_t *slot = &self->members[at].entry[tail->part];
    if (*slot != BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT,
                        "tensors '%s' and '%s' are the same of module '%s'",
                        bal_model_at(self->file, *slot)->name, tensor->name,
                        self->modules[at].module);
    *slot = entry;
    return 0;
}

static int read_names(dialect *self, const bal_model *base, bal_error *err)
{
    size_t count = bal_model_count(self->file);
    int rc = 0;

    self->modules = calloc(count + 1, sizeof(*self->modules));
    self->members = calloc(count + 1, sizeof(*self->members));
    if (!self->modules || !self->members)
        return no_memory(err);
    for (size_t i = 0; i < count && !rc; i++) {
        if (bal_model_at(self->file, i)->part == BAL_PART_TENSOR)
            rc = add_tensor(self, base, i, err);
    }
    if (!rc && !self->count)
        rc = bal_fail(err, BAL_ECORRUPT, "the file holds no tensors");
    return rc;
}

/* ---- modules ------------------------------------------------------------ */

/* Without one the scale is 1. */
static int read_alpha(dialect *self, size_t i, bal_error *err)
{
    size_t entry = self->members[i].entry[ALPHA];
    bal_joined *module = &self->modules[i];

    module->scaled = entry != BAL_NONE;
    if (!module->scaled)
        return 0;
    const bal_tensor *tensor = bal_model_at(self->file, entry);
    int rc = BAL_EUNSUPPORTED;
    if (bal_tensor_float(tensor) && bal_elements_of(tensor) == 1)
        rc = bal_elements_read(&module->alpha, self->file, entry, 0, 1, err);
    if (rc == BAL_EUNSUPPORTED || (!rc && !isfinite(module->alpha)))
        return bal_fail(err, BAL_EUNSUPPORTED, "tensor '%s' is no alpha",
                        tensor->name);
    return rc;
}

static bool is_factor(const bal_tensor *tensor)
{
    return bal_tensor_float(tensor) && tensor->rank == 2 && tensor->shape[0] &&
           tensor->shape[1];
}

static int measure(dialect *self, const bal_model *base, size_t i,
                   bal_error *err)
{
    const member *one = &self->members[i];
    bal_joined *module = &self->modules[i];
    BAL_LOCAL(bal_buf) name = { 0 };

    if (one->entry[A] == BAL_NONE || one->entry[B] == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT, "module '%s' has one factor alone",
                        module->module);
    const bal_tensor *a = bal_model_at(self->file, one->entry[A]);
    const bal_tensor *b = bal_model_at(self->file, one->entry[B]);
    if (!is_factor(a) || !is_factor(b))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is no matrix of floats: only linear "
                        "modules are imported",
                        is_factor(a) ? b->name : a->name);
    int rc = bal_buf_format(&name, err, "%s.weight", module->module);
    if (rc)
        return rc;
    const uint64_t *shape =
        bal_model_at(
            base, bal_model_find(base, BAL_PART_TENSOR, bal_buf_string(&name)))
            ->shape;
    module->rank = a->shape[0];
    module->in = a->shape[1];
    module->out = b->shape[0];
    bool fits = (module->out == shape[0] && module->in == shape[1]) ||
                (module->out == shape[1] && module->in == shape[0]);
    if (!fits || b->shape[1] != module->rank ||
        module->rank > BAL_LORA_RANK_MAX)
        return bal_fail(
            err, BAL_ECORRUPT,
            "module '%s': factors [%llu, %llu] and [%llu, %llu] do "
            "not fit the base's [%llu, %llu]",
            module->module, (unsigned long long)b->shape[0],
            (unsigned long long)b->shape[1], (unsigned long long)a->shape[0],
            (unsigned long long)a->shape[1], (unsigned long long)shape[0],
            (unsigned long long)shape[1]);
    self->dtype = i ? bal_dtype_join(self->dtype, a->dtype) : a->dtype;
    self->dtype = bal_dtype_join(self->dtype, b->dtype);
    return read_alpha(self, i, err);
}

/* ---- opening ------------------------------------------------------------ */

static int list(dialect *self, const char *base_model, bal_error *err)
{
    bal_loras like = { 0 };
    BAL_OWN(json_t) config = bal_config_new(base_model);
    if (!config)
        return no_memory(err);
    like.config = config;
    const bal_entries entries = {
        .modules = self->modules,
        .count = self->count,
        .dtype = self->dtype,
        .config = &self->config,
    };
    int rc = bal_concat_config(&self->config, &like, 1, self->modules,
                               self->count, err);
    return rc ? rc : bal_entries_add(&self->model, &entries, err);
}

static int plan(dialect *self, const bal_model *base, const char *base_model,
                bal_error *err)
{
    const bal_facts *of = bal_model_facts(base);
    bal_facts facts = { .kind = BAL_KIND_ADAPTER,
                        .name = bal_model_facts(self->file)->name,
                        .base_model = base_model       ? base_model
                                      : of->base_model ? of->base_model
                                                       : of->name,
                        .revision = of->revision };
    int rc = read_base(self, base, err);

    if (!rc)
        rc = read_names(self, base, err);
    for (size_t i = 0; i < self->count && !rc; i++)
        rc = measure(self, base, i, err);
    if (!rc)
        rc = list(self, facts.base_model, err);
    if (!rc)
        rc = bal_model_tell(&self->model, &facts, err);
    return rc ? rc : bal_model_ready(&self->model, err);
}

int bal_lora_import(bal_model **out, bal_model *file, bal_model *base,
                    const char *base_model, bal_error *err)
{
    dialect *self = bal_model_alloc(sizeof(*self), &dialect_ops);
    if (!self)
        return no_memory(err);
    BAL_OWN(bal_model) model = &self->model;
    self->file = bal_model_ref(file);

    int rc = plan(self, base, base_model, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(model);
    return 0;
}
