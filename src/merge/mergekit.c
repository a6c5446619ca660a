/* A configuration taken apart. Which keys there are, and what becomes of each,
 * is in tables; what is in none of them mergekit passes over, and we say so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "merge/mergekit_read.h"

bool bal_mergekit_absent(const bal_yaml_node *node)
{
    return !node || node->type == BAL_YAML_NULL ||
           (!node->text && !node->count);
}

/* ---- keys --------------------------------------------------------------- */

static const bal_mergekit_key top_keys[] = {
    { "merge_method", NULL },
    { "base_model", NULL },
    { "models", NULL },
    { "slices", NULL },
    { "modules", NULL },
    { "parameters", NULL },
    { "dtype", NULL },
    { "out_dtype", NULL },
    { "name", NULL },
    { "tokenizer_source", NULL },
    { "tokenizer", NULL },
    { "chat_template", "another chat template" },
    { "gate_mode", "a mixture of experts, which is not a merge" },
    { "experts", "a mixture of experts, which is not a merge" },
    { 0 },
};

static const bal_mergekit_key module_keys[] = {
    { "models", NULL },
    { "slices", NULL },
    { "parameters", NULL },
    { 0 },
};

static const bal_mergekit_key slice_keys[] = {
    { "sources", NULL },
    { "base_model", NULL },
    { "parameters", NULL },
    { 0 },
};

int bal_mergekit_pass_over(bal_mergekit_reader *self, const char *path,
                           const char *key, bal_error *err)
{
    json_t *text = json_sprintf("%s%s%s", path, *path ? "." : "", key);

    if (!text || json_array_append_new(self->to->not_used, text))
        return bal_fail_memory(err, "a configuration");
    return 0;
}

static const bal_mergekit_key *find_key(const bal_mergekit_key *rows,
                                        const char *name)
{
    for (; rows->name; rows++) {
        if (!strcmp(rows->name, name))
            return rows;
    }
    return NULL;
}

/* node is a map, of these keys. */
int bal_mergekit_keys(bal_mergekit_reader *self, const bal_yaml_node *node,
                      const char *path, const bal_mergekit_key *rows,
                      bal_error *err)
{
    if (node->type != BAL_YAML_MAP)
        return bal_yaml_fail(err, BAL_EINVAL, node, "%s is not a map",
                             *path ? path : "a configuration");
    for (size_t i = 0; i < node->count; i++) {
        const bal_yaml_node *key = node->keys[i];
        const bal_mergekit_key *row = find_key(rows, key->text);
        int rc = 0;
        if (!row)
            rc = bal_mergekit_pass_over(self, path, key->text, err);
        else if (row->refused && node->items[i]->type != BAL_YAML_NULL)
            rc = bal_yaml_fail(err, BAL_EUNSUPPORTED, key,
                               "'%s' asks for %s, and that is not done",
                               key->text, row->refused);
        if (rc)
            return rc;
    }
    return 0;
}

/* A text that a key has, NULL: it is not there. */
static int text_of(const char **out, const bal_yaml_node *map, const char *key,
                   bal_error *err)
{
    const bal_yaml_node *node = bal_yaml_get(map, key);

    *out = NULL;
    if (bal_mergekit_absent(node))
        return 0;
    if (!node->text)
        return bal_yaml_fail(err, BAL_EINVAL, node, "'%s' is not a text", key);
    *out = node->text;
    return 0;
}

/* ---- slices and modules ------------------------------------------------- */

int bal_mergekit_range(bal_mergekit_model *out, const bal_yaml_node *source,
                       bal_error *err)
{
    const bal_yaml_node *range = bal_yaml_get(source, "layer_range");
    bool pair = range && range->type == BAL_YAML_LIST && range->count == 2 &&
                range->items[0]->type == BAL_YAML_INT &&
                range->items[1]->type == BAL_YAML_INT;

    if (!pair)
        return bal_yaml_fail(err, BAL_EINVAL, range ? range : source,
                             "'layer_range' is not [FIRST, END]");
    int64_t first = range->items[0]->integer;
    int64_t last = range->items[1]->integer;
    if (first < 0 || last < first)
        return bal_yaml_fail(err, BAL_EINVAL, range,
                             "layers %lld to %lld are no range",
                             (long long)first, (long long)last);
    out->first = (uint64_t)first;
    out->end = (uint64_t)last;
    return 0;
}

/* What the document or a slice names, which goes before. */
static int read_base(bal_mergekit_reader *self, const bal_yaml_node *from,
                     bal_error *err)
{
    const bal_yaml_node *node = bal_yaml_get(from, "base_model");

    if (bal_mergekit_absent(node))
        return 0;
    self->base_at = node;
    return bal_mergekit_reference(&self->base, &self->to->arena, node, err);
}

static int read_slice(bal_mergekit_reader *self, size_t i, bal_error *err)
{
    const bal_yaml_node *slice = self->slices->items[i];
    bal_mergekit_model base = self->base;
    const bal_yaml_node *base_at = self->base_at;
    char path[32];

    snprintf(path, sizeof(path), "slices[%zu]", i);
    int rc = bal_mergekit_keys(self, slice, path, slice_keys, err);
    if (rc)
        return rc;
    self->list = bal_yaml_get(slice, "sources");
    snprintf(self->path, sizeof(self->path), "%s.sources", path);
    if (bal_mergekit_absent(self->list))
        return bal_yaml_fail(err, BAL_EINVAL, slice, "a slice without sources");
    rc = read_base(self, slice, err);
    if (!rc)
        rc = bal_mergekit_models(self, bal_yaml_get(slice, "parameters"), err);
    self->base = base;
    self->base_at = base_at;
    return rc;
}

static int read_models(bal_mergekit_reader *self, bal_error *err)
{
    int rc = 0;

    if (!self->slices)
        return bal_mergekit_models(self, NULL, err);
    if (self->slices->type != BAL_YAML_LIST)
        return bal_yaml_fail(err, BAL_EINVAL, self->slices,
                             "'slices' is not a list");
    self->to->sliced = true;
    for (size_t i = 0; !rc && i < self->slices->count; i++)
        rc = read_slice(self, i, err);
    return rc;
}

/* The one module that models of one module have. */
static int read_module(bal_mergekit_reader *self, const bal_yaml_node *modules,
                       bal_error *err)
{
    if (modules->type != BAL_YAML_MAP || modules->count != 1 ||
        strcmp(modules->keys[0]->text, "default") != 0)
        return bal_yaml_fail(err, BAL_EUNSUPPORTED, modules,
                             "'modules' beside 'default'");
    self->module = modules->items[0];
    return bal_mergekit_keys(self, self->module, "modules.default", module_keys,
                             err);
}

/* Exactly one of what models can be listed in. */
static int find_list(bal_mergekit_reader *self, bal_error *err)
{
    const bal_yaml_node *modules = bal_yaml_get(self->document, "modules");
    const bal_yaml_node *models;
    const bal_yaml_node *slices;
    int rc = 0;

    self->module = self->document;
    if (!bal_mergekit_absent(modules))
        rc = read_module(self, modules, err);
    if (rc)
        return rc;
    models = bal_yaml_get(self->module, "models");
    slices = bal_yaml_get(self->module, "slices");
    if (bal_mergekit_absent(models) == bal_mergekit_absent(slices) ||
        (self->module != self->document &&
         (!bal_mergekit_absent(bal_yaml_get(self->document, "models")) ||
          !bal_mergekit_absent(bal_yaml_get(self->document, "slices")))))
        return bal_yaml_fail(err, BAL_EINVAL, self->module,
                             "it takes one of 'models', 'slices' and "
                             "'modules'");
    self->slices = bal_mergekit_absent(slices) ? NULL : slices;
    self->list = models;
    snprintf(self->path, sizeof(self->path), "%smodels",
             self->module == self->document ? "" : "modules.default.");
    return 0;
}

/* ---- the document ------------------------------------------------------- */

static int read_method(bal_mergekit_reader *self, bal_error *err)
{
    const bal_yaml_node *node = bal_yaml_get(self->document, "merge_method");
    const char *name;
    int rc = text_of(&name, self->document, "merge_method", err);

    if (rc)
        return rc;
    if (!name)
        return bal_yaml_fail(err, BAL_EINVAL, self->document,
                             "no 'merge_method'");
    self->to->method = bal_method_row(name);
    if (self->to->method && !(self->to->method->info.flags & BAL_METHOD_PEFT))
        return 0;
    return bal_yaml_fail(err, BAL_EINVAL, node, "no merge method '%s'", name);
}

/* int64 is a dtype to mergekit, of which nothing can come. */
static int read_dtype(const char **out, const bal_mergekit_reader *self,
                      const char *key, bal_error *err)
{
    const bal_yaml_node *node = bal_yaml_get(self->document, key);
    const char *name;
    int rc = text_of(&name, self->document, key, err);

    *out = NULL;
    if (rc || !name)
        return rc;
    *out = bal_mergekit_dtype(name);
    if (*out)
        return 0;
    return bal_yaml_fail(err, BAL_EINVAL, node,
                         "%s: '%s' is none of float32 float16 bfloat16 "
                         "float64",
                         key, name);
}

static int read_document(bal_mergekit_reader *self, bal_error *err)
{
    bal_mergekit *to = self->to;
    int rc = bal_mergekit_keys(self, self->document, "", top_keys, err);

    if (!rc)
        rc = text_of(&to->name, self->document, "name", err);
    if (!rc)
        rc = read_method(self, err);
    if (!rc)
        rc = read_dtype(&to->dtype, self, "dtype", err);
    if (!rc)
        rc = read_dtype(&to->out_dtype, self, "out_dtype", err);
    if (!rc)
        rc = find_list(self, err);
    if (!rc)
        rc = read_base(self, self->document, err);
    if (!rc)
        rc = bal_mergekit_common(self, err);
    if (!rc)
        rc = read_models(self, err);
    return rc ? rc : bal_mergekit_tokenizer(self, err);
}

int bal_mergekit_read(bal_mergekit *out, const bal_yaml_node *document,
                      bal_error *err)
{
    BAL_LOCAL(bal_mergekit)
    self = {
        .parameters = json_object(),
        .not_used = json_array(),
    };
    bal_mergekit_reader job = { .to = &self, .document = document };

    if (!self.parameters || !self.not_used)
        return bal_fail_memory(err, "a configuration");
    int rc = read_document(&job, err);
    if (rc)
        return rc;
    *out = self;
    self = (bal_mergekit){ 0 };
    return 0;
}

void bal_mergekit_done(bal_mergekit *self)
{
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->models[i].parameters);
    for (size_t i = 0; i < self->slice_count; i++)
        json_decref(self->slices[i].parameters);
    free(self->slices);
    free(self->models);
    json_decref(self->parameters);
    json_decref(self->not_used);
    json_decref(self->vocabulary);
    bal_arena_done(&self->arena);
    *self = (bal_mergekit){ 0 };
}
