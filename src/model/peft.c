/* Tensor names tell which modules are adapted; the config is asked for scales
 * alone. What a name or a shape does not explain is refused by that name. */
#include "model/peft.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/peft_config.h"

/* What a name says once the prefix is off. */
typedef struct factor {
    const char *marker;
    size_t which; /* 0: A, 1: B */
} factor;

static const factor factors[] = {
    { ".lora_A.", 0 },
    { ".lora_B.", 1 },
};

/* In a name, these belong to kinds of adapters that are not folded yet. */
static const char *const not_plain[] = {
    ".lora_",
    ".base_layer.",
    ".token_adapter.",
    ".modules_to_save.",
};

/* Modules while they are put together from two tensors each. */
typedef struct gather {
    bal_loras *out;
    bal_model *adapter;
    bal_map modules;
} gather;

static const char *without_prefix(const char *name)
{
    size_t len = strlen(BAL_PEFT_PREFIX);

    return strncmp(name, BAL_PEFT_PREFIX, len) ? name : name + len;
}

/* "weight", or the name the adapter had in memory before it. */
static bool factor_tail(const char *tail)
{
    const char *dot = strchr(tail, '.');

    return !strcmp(tail, "weight") ||
           (dot && dot > tail && !strcmp(dot + 1, "weight"));
}

/* Which factor a name is of, NULL: of none; *len is the module's length. */
static const factor *factor_of(const char *name, size_t *len)
{
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
        const char *at = strstr(name, factors[i].marker);

        if (at && at > name && factor_tail(at + strlen(factors[i].marker))) {
            *len = (size_t)(at - name);
            return &factors[i];
        }
    }
    return NULL;
}

static int check_factor(const bal_tensor *tensor, bal_error *err)
{
    if (tensor->form != BAL_FORM_WHOLE || !bal_tensor_float(tensor))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter is not of floats",
                        tensor->name);
    if (tensor->rank != 2)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' has %u dimensions: only linear modules",
                        tensor->name, tensor->rank);
    return 0;
}

/* The row of a module, made if it is not there. */
static int row_of(gather *self, bal_lora **out, const char *module, size_t len,
                  bal_error *err)
{
    bal_loras *loras = self->out;
    size_t at = loras->count;
    bool there;
    const char *name = bal_arena_copy(&loras->arena, module, len);

    if (!name)
        return bal_fail_memory(err, "an adapter's modules");
    int rc = bal_map_add(&self->modules, name, len, &at, &there, err);
    if (rc)
        return rc;
    if (!there)
        loras->rows[loras->count++] =
            (bal_lora){ .module = name, .a = BAL_NONE, .b = BAL_NONE };
    *out = &loras->rows[at];
    return 0;
}

static int add_factor(gather *self, size_t i, const factor *which,
                      const char *module, size_t len, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->adapter, i);
    bal_lora *row = NULL;
    int rc = check_factor(tensor, err);
    if (rc)
        return rc;
    rc = row_of(self, &row, module, len, err);
    if (rc)
        return rc;

    size_t *entry = which->which ? &row->b : &row->a;
    if (*entry != BAL_NONE)
        return bal_fail(
            err, BAL_ECORRUPT, "tensors '%s' and '%s' are one factor",
            bal_model_at(self->adapter, *entry)->name, tensor->name);
    *entry = i;
    return 0;
}

static int add_tensor(gather *self, size_t i, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->adapter, i);
    const char *name = without_prefix(tensor->name);
    size_t len;
    const factor *which = factor_of(name, &len);

    if (which)
        return add_factor(self, i, which, name, len, err);
    for (size_t k = 0; k < sizeof(not_plain) / sizeof(not_plain[0]); k++) {
        if (strstr(tensor->name, not_plain[k]))
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "tensor '%s' is more than plain LoRA",
                            tensor->name);
    }
    self->out->wholes[self->out->whole_count++] =
        (bal_lora_whole){ .name = name, .entry = i };
    return 0;
}

static int add_tensors(gather *self, bal_error *err)
{
    size_t count = bal_model_count(self->adapter);
    bal_loras *out = self->out;

    out->rows = bal_arena_alloc(&out->arena, (count + 1) * sizeof(bal_lora));
    out->wholes =
        bal_arena_alloc(&out->arena, (count + 1) * sizeof(bal_lora_whole));
    if (!out->rows || !out->wholes)
        return bal_fail_memory(err, "an adapter's modules");
    for (size_t i = 0; i < count; i++) {
        if (bal_model_at(self->adapter, i)->part != BAL_PART_TENSOR)
            continue;
        int rc = add_tensor(self, i, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Both factors are there and fit; fills in the dimensions. */
static int check_row(bal_lora *row, bal_model *adapter, bal_error *err)
{
    if (row->a == BAL_NONE || row->b == BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT, "module '%s' has no lora_%c",
                        row->module, row->a == BAL_NONE ? 'A' : 'B');
    const uint64_t *a = bal_model_at(adapter, row->a)->shape;
    const uint64_t *b = bal_model_at(adapter, row->b)->shape;
    if (a[0] != b[1] || !a[0])
        return bal_fail(err, BAL_ECORRUPT,
                        "module '%s': lora_A is of rank %llu, lora_B of %llu",
                        row->module, (unsigned long long)a[0],
                        (unsigned long long)b[1]);
    if (a[0] > BAL_LORA_RANK_MAX)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s': rank %llu is over %u", row->module,
                        (unsigned long long)a[0], BAL_LORA_RANK_MAX);
    row->rank = a[0];
    row->in = a[1];
    row->out = b[0];
    return 0;
}

static int check_rows(bal_loras *self, bal_model *adapter, bal_error *err)
{
    bal_peft_scales scales = { 0 };
    int rc = bal_peft_scales_init(&scales, self->config, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        rc = check_row(&self->rows[i], adapter, err);
        if (!rc)
            rc = bal_peft_scale(&self->rows[i], &scales, err);
    }
    bal_peft_scales_done(&scales);
    return rc;
}

bool bal_peft_named(const char *module, const char *name)
{
    size_t len = strlen(module);
    size_t tail = strlen(name);

    if (tail > len || strcmp(module + len - tail, name))
        return false;
    return tail == len || module[len - tail - 1] == '.';
}

/* True if a whole tensor is of the module that name is of. */
static bool saved(const bal_loras *self, const char *name)
{
    for (size_t i = 0; i < self->whole_count; i++) {
        const char *whole = self->wholes[i].name;
        const char *dot = strrchr(whole, '.');
        size_t len = dot ? (size_t)(dot - whole) : 0;
        size_t tail = strlen(name);

        if (len >= tail && !strncmp(whole + len - tail, name, tail) &&
            (len == tail || whole[len - tail - 1] == '.'))
            return true;
    }
    return false;
}

/* What the config promises whole must be there, as PEFT insists: without it the
 * base's own would quietly stand in for a trained one. */
static int check_saved(const bal_loras *self, bal_error *err)
{
    const json_t *names = json_object_get(self->config, "modules_to_save");

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (name && !saved(self, name))
            return bal_fail(err, BAL_ECORRUPT,
                            "modules_to_save names '%s', which has no tensor",
                            name);
    }
    return 0;
}

static int by_module(const void *a, const void *b)
{
    const bal_lora *left = a;
    const bal_lora *right = b;

    return strcmp(left->module, right->module);
}

static int by_name(const void *a, const void *b)
{
    const bal_lora_whole *left = a;
    const bal_lora_whole *right = b;

    return strcmp(left->name, right->name);
}

static int read_all(bal_loras *self, bal_model *adapter, bal_error *err)
{
    int rc = bal_peft_config(&self->config, adapter, err);
    if (rc)
        return rc;
    gather all = { .out = self, .adapter = adapter };
    rc = add_tensors(&all, err);
    bal_map_done(&all.modules);
    if (rc)
        return rc;
    qsort(self->rows, self->count, sizeof(*self->rows), by_module);
    qsort(self->wholes, self->whole_count, sizeof(*self->wholes), by_name);
    rc = check_rows(self, adapter, err);
    if (rc)
        return rc;
    return check_saved(self, err);
}

int bal_loras_read(bal_loras *out, bal_model *adapter, bal_error *err)
{
    BAL_LOCAL(bal_loras) self = { 0 };
    int rc = read_all(&self, adapter, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_loras){ 0 };
    return 0;
}

void bal_loras_done(bal_loras *self)
{
    json_decref(self->config);
    bal_arena_done(&self->arena);
    *self = (bal_loras){ 0 };
}

const bal_lora *bal_loras_find(const bal_loras *self, const char *module)
{
    bal_lora key = { .module = module };

    if (!self->count)
        return NULL;
    return bsearch(&key, self->rows, self->count, sizeof(key), by_module);
}
