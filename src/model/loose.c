/* Names are taken apart as model/adapter_names.h does it; what does not fit is
 * kept with the kind that it looks like. */
#include "model/loose.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "model/adapter_names.h"

enum { CONFIG_MAX = 16 << 20 };

typedef struct gather {
    bal_loose *out;
    bal_map modules;
} gather;

/* ---- the config --------------------------------------------------------- */

static int parse_config(bal_loose *self, const bal_buf *text, bal_error *err)
{
    bal_error why = { 0 };
    BAL_OWN(json_t) config = NULL;
    int rc = bal_json_parse(&config, bal_buf_string(text), text->len,
                            BAL_PEFT_CONFIG, &why);

    if (rc == BAL_ECORRUPT) {
        self->trouble = why;
        return 0;
    }
    if (rc)
        return bal_fail(err, rc, "%s", why.text);
    if (json_is_object(config))
        self->config = BAL_TAKE(config);
    else
        (void)bal_fail(&self->trouble, BAL_ECORRUPT, "%s is not a JSON object",
                       BAL_PEFT_CONFIG);
    return 0;
}

static int read_config(bal_loose *self, bal_model *adapter, bal_error *err)
{
    size_t i = bal_model_find(adapter, BAL_PART_FILE, BAL_PEFT_CONFIG);
    BAL_LOCAL(bal_buf) text = { .ceiling = CONFIG_MAX + 1 };

    if (i == BAL_NONE)
        return 0;
    uint64_t size = bal_model_at(adapter, i)->size;
    if (size > CONFIG_MAX) {
        (void)bal_fail(&self->trouble, BAL_ECORRUPT, "%s is longer than 16 MiB",
                       BAL_PEFT_CONFIG);
        return 0;
    }
    int rc = bal_buf_reserve(&text, size, err);
    if (!rc)
        rc = bal_model_read(adapter, i, 0, text.data, size, err);
    if (rc)
        return rc;
    text.len = size;
    return parse_config(self, &text, err);
}

/* ---- tensors ------------------------------------------------------------ */

static const bal_loose_kind kinds[BAL_SLOTS] = {
    [BAL_SLOT_A] = BAL_LOOSE_FACTOR,
    [BAL_SLOT_B] = BAL_LOOSE_FACTOR,
    [BAL_SLOT_BIAS] = BAL_LOOSE_BIAS,
    [BAL_SLOT_MAGNITUDE] = BAL_LOOSE_MAGNITUDE,
    [BAL_SLOT_ROWS] = BAL_LOOSE_ROWS,
};

static bool ends(const char *text, const char *tail)
{
    size_t len = strlen(text);
    size_t n = strlen(tail);

    return len >= n && !strcmp(text + len - n, tail);
}

static bal_loose_kind kind_of(const char *bare)
{
    if (ends(bare, "embed_tokens.base_layer.weight") ||
        ends(bare, "lm_head.base_layer.weight"))
        return BAL_LOOSE_COPY;
    return bal_adapter_strange(bare) ? BAL_LOOSE_STRANGE : BAL_LOOSE_WHOLE;
}

/* The word between a factor's mark and its ending: its own name has none. */
static int name_inside(gather *self, const char **out,
                       const bal_adapter_name *name, bal_error *err)
{
    bool embedding = name->family == BAL_FAMILY_EMBEDDING;
    size_t mark = strlen(embedding ? ".lora_embedding_A" : ".lora_A");
    const char *tail = name->module + name->len + mark;

    *out = "";
    if (!strcmp(tail, embedding ? "" : ".weight") || !*tail)
        return 0;
    *out = bal_arena_copy(&self->out->arena, tail + 1, strcspn(tail + 1, "."));
    return *out ? 0 : bal_fail_memory(err, "an adapter's names");
}

static int module_of(gather *self, bal_loose_module **out,
                     const bal_adapter_name *name, bal_error *err)
{
    bal_loose *all = self->out;
    size_t at = all->module_count;
    bool there = false;
    const char *text = bal_arena_copy(&all->arena, name->module, name->len);
    if (!text)
        return bal_fail_memory(err, "an adapter's modules");
    int rc = bal_map_add(&self->modules, text, name->len, &at, &there, err);
    if (rc)
        return rc;

    *out = &all->modules[at];
    if (there)
        return 0;
    all->module_count++;
    **out = (bal_loose_module){
        .name = text,
        .embedding = name->family == BAL_FAMILY_EMBEDDING,
        .a = BAL_NONE,
        .b = BAL_NONE,
    };
    return 0;
}

static int add_factor(gather *self, bal_loose_tensor *tensor,
                      const bal_adapter_name *name, bal_error *err)
{
    bal_loose_module *module = NULL;
    bool embedding = name->family == BAL_FAMILY_EMBEDDING;
    int rc = name_inside(self, &tensor->inside, name, err);
    if (!rc)
        rc = module_of(self, &module, name, err);
    if (rc)
        return rc;

    size_t *slot = name->slot == BAL_SLOT_A ? &module->a : &module->b;
    if (*slot != BAL_NONE || module->embedding != embedding)
        tensor->kind = BAL_LOOSE_TWICE;
    else
        *slot = tensor->entry;
    return 0;
}

static int add_tensor(gather *self, const char *full, size_t entry,
                      bal_error *err)
{
    bal_loose_tensor *tensor = &self->out->tensors[self->out->count++];
    bal_adapter_name name;

    *tensor = (bal_loose_tensor){ .entry = entry, .inside = "" };
    tensor->bare = bal_adapter_bare(full, &tensor->prefixes);
    if (!bal_adapter_parse(&name, tensor->bare, "LORA")) {
        tensor->kind = kind_of(tensor->bare);
        return 0;
    }
    tensor->kind = kinds[name.slot];
    if (tensor->kind != BAL_LOOSE_FACTOR)
        return 0;
    return add_factor(self, tensor, &name, err);
}

static int by_name(const void *a, const void *b)
{
    const bal_loose_module *left = a;
    const bal_loose_module *right = b;

    return strcmp(left->name, right->name);
}

static int add_tensors(gather *self, bal_model *adapter, bal_error *err)
{
    bal_loose *out = self->out;
    size_t count = bal_model_count(adapter);
    int rc = 0;

    out->tensors =
        bal_arena_alloc(&out->arena, (count + 1) * sizeof(*out->tensors));
    out->modules =
        bal_arena_alloc(&out->arena, (count + 1) * sizeof(*out->modules));
    if (!out->tensors || !out->modules)
        return bal_fail_memory(err, "an adapter's modules");
    for (size_t i = 0; i < count && !rc; i++) {
        const bal_tensor *entry = bal_model_at(adapter, i);

        if (entry->part == BAL_PART_TENSOR)
            rc = add_tensor(self, entry->name, i, err);
    }
    qsort(out->modules, out->module_count, sizeof(*out->modules), by_name);
    return rc;
}

int bal_loose_read(bal_loose *out, bal_model *adapter, bal_error *err)
{
    BAL_LOCAL(bal_loose) self = { 0 };
    gather all = { .out = &self };
    int rc = read_config(&self, adapter, err);
    if (!rc)
        rc = add_tensors(&all, adapter, err);
    bal_map_done(&all.modules);
    if (rc)
        return rc;
    *out = self;
    self = (bal_loose){ 0 };
    return 0;
}

void bal_loose_done(bal_loose *self)
{
    json_decref(self->config);
    bal_arena_done(&self->arena);
    *self = (bal_loose){ 0 };
}

const bal_loose_module *bal_loose_find(const bal_loose *self, const char *name)
{
    bal_loose_module key = { .name = name };

    if (!self->module_count)
        return NULL;
    return bsearch(&key, self->modules, self->module_count, sizeof(key),
                   by_name);
}

const char *bal_loose_leaf(const char *module)
{
    const char *dot = strrchr(module, '.');

    return dot ? dot + 1 : module;
}
