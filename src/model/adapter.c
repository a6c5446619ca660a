/* Tensor names tell which modules are adapted; the config is asked for scales
 * alone. What a name or a shape does not explain is refused by that name. */
#include "model/adapter.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/adapter_names.h"
#include "model/adapter_shapes.h"
#include "model/peft_config.h"

static const char copy_mark[] = ".base_layer.";

/* Modules while they are put together from several tensors each. */
typedef struct gather {
    bal_adapter *out;
    bal_model *model;
    const char *type;
    unsigned prefixes; /* what was unusual about names */
    bal_map modules;
} gather;

static const char *type_of(const bal_adapter *self)
{
    return json_string_value(json_object_get(self->config, "peft_type"));
}

static int check_floats(const bal_tensor *tensor, bal_error *err)
{
    if (tensor->form != BAL_FORM_WHOLE || !bal_tensor_float(tensor))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' of the adapter is not of floats",
                        tensor->name);
    if (tensor->size)
        return 0;
    int rc = bal_fail(err, BAL_ECORRUPT,
                      "tensor '%s' of the adapter is empty: it was saved "
                      "without being gathered",
                      tensor->name);
    return bal_hint(err, rc,
                    "save it again from DeepSpeed ZeRO-3 or FSDP with the "
                    "parameters gathered");
}

/* The row of a module, made if it is not there. */
static int row_of(gather *self, bal_adapted **out, const bal_adapter_name *name,
                  bal_error *err)
{
    bal_adapter *adapter = self->out;
    size_t at = adapter->count;
    bool there;
    const char *module =
        bal_arena_copy(&adapter->arena, name->module, name->len);

    if (!module)
        return bal_fail_memory(err, "an adapter's modules");
    int rc = bal_map_add(&self->modules, module, name->len, &at, &there, err);
    if (rc)
        return rc;
    *out = &adapter->rows[at];
    if (there)
        return 0;
    adapter->count++;
    **out = (bal_adapted){ .module = module, .family = name->family };
    for (size_t i = 0; i < BAL_SLOTS; i++)
        (*out)->slots[i] = BAL_NONE;
    return 0;
}

static int add_slot(gather *self, size_t i, const bal_adapter_name *name,
                    bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->model, i);
    bal_adapted *row = NULL;
    int rc = row_of(self, &row, name, err);
    if (rc)
        return rc;

    /* An embedding's magnitude has the name of a linear module's. */
    if (row->family != name->family && name->slot != BAL_SLOT_MAGNITUDE)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "module '%s' is adapted in two ways", row->module);
    size_t *entry = &row->slots[name->slot];
    if (*entry != BAL_NONE)
        return bal_fail(err, BAL_ECORRUPT,
                        "tensors '%s' and '%s' are one factor",
                        bal_model_at(self->model, *entry)->name, tensor->name);
    *entry = i;
    return 0;
}

/* The name without ".base_layer", which is where PEFT keeps what it adapts. */
static int add_whole(gather *self, size_t i, const char *bare, bal_error *err)
{
    bal_adapter *out = self->out;
    const char *mark = strstr(bare, copy_mark);
    bal_lora_whole whole = { .name = bare, .entry = i };

    if (mark) {
        char *name = bal_arena_copy(&out->arena, bare, strlen(bare));
        const char *rest = mark + sizeof(copy_mark) - 2;
        if (!name)
            return bal_fail_memory(err, "an adapter's tensors");
        memmove(name + (mark - bare), rest, strlen(rest) + 1);
        whole.name = name;
        whole.copy = strcmp(rest, ".bias") != 0;
    }
    out->wholes[out->whole_count++] = whole;
    return 0;
}

static int add_tensor(gather *self, size_t i, bal_error *err)
{
    const bal_tensor *tensor = bal_model_at(self->model, i);
    const char *bare = bal_adapter_bare(tensor->name, &self->prefixes);
    bal_adapter_name name;

    int rc = check_floats(tensor, err);
    if (rc)
        return rc;
    if (bal_adapter_parse(&name, bare, self->type))
        return add_slot(self, i, &name, err);
    if (bal_adapter_strange(bare))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "tensor '%s' is of no kind that %s adapters are known "
                        "to have",
                        tensor->name, self->type);
    return add_whole(self, i, bare, err);
}

/* What loaders make of such names is nothing at all, without an error. */
static void warn_of_prefixes(unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *text;
    } rows[] = {
        { BAL_PREFIX_MISSING, "names lack base_model.model." },
        { BAL_PREFIX_TWICE, "names begin with base_model.model. twice" },
        { BAL_PREFIX_COMPILED, "names hold _orig_mod. or module." },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (flags & rows[i].flag)
            bal_warn("peft",
                     "names=unusual why=\"%s; taken as if they did "
                     "not\"",
                     rows[i].text);
    }
}

static int add_tensors(gather *self, bal_error *err)
{
    size_t count = bal_model_count(self->model);
    bal_adapter *out = self->out;

    out->rows = bal_arena_alloc(&out->arena, (count + 1) * sizeof(bal_adapted));
    out->wholes =
        bal_arena_alloc(&out->arena, (count + 1) * sizeof(bal_lora_whole));
    if (!out->rows || !out->wholes)
        return bal_fail_memory(err, "an adapter's modules");
    for (size_t i = 0; i < count; i++) {
        if (bal_model_at(self->model, i)->part != BAL_PART_TENSOR)
            continue;
        int rc = add_tensor(self, i, err);
        if (rc)
            return rc;
    }
    if (!out->count && !out->whole_count)
        return bal_fail(err, BAL_ECORRUPT, "the adapter holds no tensors");
    warn_of_prefixes(self->prefixes);
    return 0;
}

/* ---- what the config promises ------------------------------------------- */

/* True if a whole tensor is of the module that name is of. */
static bool saved(const bal_adapter *self, const char *name)
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
static int check_saved(const bal_adapter *self, bal_error *err)
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

/* True if target_parameters names a parameter of the module, whose factors PEFT
 * may have nested in each other. */
static bool is_stacked(const bal_adapter *self, const char *module)
{
    const json_t *names = json_object_get(self->config, "target_parameters");
    const size_t tail = sizeof(copy_mark) - 2; /* ".base_layer" */
    size_t len = strlen(module);

    while (len > tail && !memcmp(module + len - tail, copy_mark, tail))
        len -= tail;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *dot = name ? strrchr(name, '.') : NULL;
        size_t own = dot ? (size_t)(dot - name) : 0;

        if (own && own <= len && !strncmp(module + len - own, name, own) &&
            (own == len || module[len - own - 1] == '.'))
            return true;
    }
    return false;
}

static int check_rows(bal_adapter *self, bal_model *model, bal_error *err)
{
    bal_peft_scales scales = { 0 };
    int rc = bal_peft_scales_init(&scales, self->config, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        self->rows[i].stacked = self->rows[i].family == BAL_FAMILY_LORA &&
                                is_stacked(self, self->rows[i].module);
        rc = bal_adapted_shape(&self->rows[i], self->config, model, err);
        if (!rc)
            rc = bal_adapted_scale(&self->rows[i], &scales, err);
    }
    /* Patterns may be of parameters, whose names come with the base. */
    if (!rc && bal_peft_off(json_object_get(self->config, "target_parameters")))
        bal_peft_scales_remark(&scales);
    bal_peft_scales_done(&scales);
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

static int by_module(const void *a, const void *b)
{
    const bal_adapted *left = a;
    const bal_adapted *right = b;

    return strcmp(left->module, right->module);
}

static int by_name(const void *a, const void *b)
{
    const bal_lora_whole *left = a;
    const bal_lora_whole *right = b;

    return strcmp(left->name, right->name);
}

static int read_all(bal_adapter *self, bal_model *model, bal_error *err)
{
    int rc = bal_peft_config(&self->config, model, err);
    if (rc)
        return rc;
    gather all = { .out = self, .model = model, .type = type_of(self) };
    rc = add_tensors(&all, err);
    bal_map_done(&all.modules);
    if (rc)
        return rc;
    qsort(self->rows, self->count, sizeof(*self->rows), by_module);
    qsort(self->wholes, self->whole_count, sizeof(*self->wholes), by_name);
    rc = check_rows(self, model, err);
    if (rc)
        return rc;
    return check_saved(self, err);
}

int bal_adapter_read(bal_adapter *out, bal_model *model, bal_error *err)
{
    BAL_LOCAL(bal_adapter) self = { 0 };
    int rc = read_all(&self, model, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_adapter){ 0 };
    return 0;
}

void bal_adapter_done(bal_adapter *self)
{
    json_decref(self->config);
    bal_arena_done(&self->arena);
    *self = (bal_adapter){ 0 };
}

const bal_adapted *bal_adapter_find(const bal_adapter *self, const char *module)
{
    bal_adapted key = { .module = module };

    if (!self->count)
        return NULL;
    return bsearch(&key, self->rows, self->count, sizeof(key), by_module);
}
