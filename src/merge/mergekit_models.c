/* The models of a configuration, and the parameters of each and of all. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "merge/mergekit_read.h"
#include "merge/values.h"

static const bal_mergekit_key model_keys[] = {
    { "model", NULL },
    { "parameters", NULL },
    { 0 },
};

static const bal_mergekit_key source_keys[] = {
    { "model", NULL },
    { "layer_range", NULL },
    { "parameters", NULL },
    { 0 },
};

/* ---- parameters --------------------------------------------------------- */

/* Taken, and of no effect in mergekit either. method NULL: any. */
static const struct {
    const char *method, *name;
} idle[] = {
    { NULL, "int8_mask" },
    { "task_arithmetic", "density" },
    { "task_arithmetic", "rescale" },
};

static bool is_idle(const bal_method *method, const char *name)
{
    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
        if (!strcmp(idle[i].name, name) &&
            (!idle[i].method || !strcmp(idle[i].method, method->info.name)))
            return true;
    }
    return false;
}

/* A parameter of some method. */
static bool is_known(const char *name)
{
    for (size_t i = 0; i < bal_methods_count; i++) {
        if (bal_mergekit_param(&bal_methods[i], name))
            return true;
    }
    return false;
}

/* Of a model: what only all models have is not looked at there. */
static int check_parameters(bal_mergekit_reader *self,
                            const bal_yaml_node *node, const char *path,
                            bool of_model, bool looked_at, bal_error *err)
{
    const bal_method *method = self->to->method;

    if (bal_mergekit_absent(node))
        return 0;
    if (node->type != BAL_YAML_MAP)
        return bal_yaml_fail(err, BAL_EINVAL, node, "%s is not a map", path);
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->keys[i]->text;
        const bal_param *param = bal_mergekit_param(method, name);
        int rc = 0;
        if (!param && !is_known(name)) {
            rc = bal_param_unknown(method, name, err);
            return bal_within(err, rc, "line %u, column %u",
                              node->keys[i]->line, node->keys[i]->column);
        }
        if (!param || !looked_at || (of_model && !param->per_input) ||
            is_idle(method, name))
            rc = bal_mergekit_pass_over(self, path, name, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int put_text(json_t *to, const char *name, const bal_buf *text,
                    bal_error *err)
{
    if (json_object_set_new(to, name, json_string(bal_buf_string(text))))
        return bal_fail_memory(err, "a configuration");
    return 0;
}

/* One parameter's text from these scopes, the first of which goes first. */
static int read_value(json_t *to, bool *whole, const bal_param *param,
                      const bal_yaml_node *const *scopes, size_t count,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    *whole = false;
    for (size_t i = 0; i < count && !*whole; i++) {
        const bal_yaml_node *value = bal_yaml_get(scopes[i], param->mergekit);
        int rc =
            value ? bal_mergekit_value(&text, whole, param, value, err) : 0;
        if (rc)
            return bal_within(err, rc, "%s", param->mergekit);
    }
    return text.len ? put_text(to, param->name, &text, err) : 0;
}

/* Of one scope or several; of a model those alone that each model has. */
static int read_values(json_t *to, const bal_method *method, bool of_model,
                       const bal_yaml_node *const *scopes, size_t count,
                       bal_error *err)
{
    const bal_param *param = method->info.params;

    for (; param && param->name; param++) {
        bool whole = false;
        if (!param->mergekit || (of_model && !param->per_input))
            continue;
        int rc = read_value(to, &whole, param, scopes, count, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* A value whose last part, the one that would be looked at last, has no filter.
 */
static bool is_whole(const json_t *text)
{
    const char *value = json_string_value(text);
    const char *last = value ? strrchr(value, ';') : NULL;

    return value && !strchr(last ? last : value, ':');
}

/* mergekit has no default for a weight. One that is told for some tensors only
 * is judged tensor by tensor. */
static int check_weight(bal_mergekit_reader *self,
                        const bal_mergekit_model *model,
                        const bal_yaml_node *at, bal_error *err)
{
    const bal_mergekit *to = self->to;
    const json_t *told[] = {
        json_object_get(model->parameters, BAL_WEIGHT),
        json_object_get(to->slices[to->slice_count - 1].parameters, BAL_WEIGHT),
        json_object_get(to->parameters, BAL_WEIGHT),
    };
    bool any = false;

    if (!bal_param_find(to->method->info.params, BAL_WEIGHT))
        return 0;
    for (size_t i = 0; i < 3; i++) {
        any = any || told[i];
        if (is_whole(told[i]))
            return 0;
    }
    self->to->partial = true;
    if (any)
        return 0;
    return bal_yaml_fail(err, BAL_EINVAL, at, "model '%s' has no weight",
                         model->name);
}

int bal_mergekit_common(bal_mergekit_reader *self, bal_error *err)
{
    static const char *const paths[BAL_MERGEKIT_SCOPES] = {
        "modules.default.parameters",
        "parameters",
    };
    bal_mergekit *to = self->to;

    if (self->module != self->document)
        self->common[0] = bal_yaml_get(self->module, "parameters");
    self->common[1] = bal_yaml_get(self->document, "parameters");
    for (size_t i = 0; i < BAL_MERGEKIT_SCOPES; i++) {
        int rc =
            check_parameters(self, self->common[i], paths[i], false, true, err);
        if (rc)
            return rc;
    }
    return read_values(to->parameters, to->method, false, self->common,
                       BAL_MERGEKIT_SCOPES, err);
}

/* ---- models ------------------------------------------------------------- */

/* Is it the base, and not one of those that are merged? */
static bool is_apart(const bal_mergekit_reader *self, const char *name)
{
    return self->base.name && !strcmp(self->base.name, name) &&
           self->to->method->role != BAL_ROLE_NONE;
}

/* Among the models of the last slice. */
static bool is_there(const bal_mergekit *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->models[i].slice == self->slice_count - 1 &&
            !strcmp(self->models[i].name, name))
            return true;
    }
    return false;
}

/* Takes model->parameters, also when it fails. */
static int add_model(bal_mergekit_reader *self, bal_mergekit_model *model,
                     bal_error *err)
{
    bal_mergekit *to = self->to;
    bal_mergekit_model *models = NULL;

    if (to->count < BAL_INPUTS_MAX)
        models =
            bal_room_for_one(to->models, to->count, &to->room, sizeof(*models));
    if (!models) {
        json_decref(model->parameters);
        return to->count < BAL_INPUTS_MAX
                   ? bal_fail_memory(err, "a configuration")
                   : bal_fail(err, BAL_EINVAL, "more than %u models",
                              BAL_INPUTS_MAX);
    }
    if (self->base.name && !strcmp(self->base.name, model->name))
        to->slices[to->slice_count - 1].base = to->count;
    model->slice = to->slice_count - 1;
    to->models = models;
    models[to->count++] = *model;
    return 0;
}

static int read_own(bal_mergekit_reader *self, bal_mergekit_model *model,
                    const bal_yaml_node *node, const char *path, bal_error *err)
{
    const bal_yaml_node *parameters = bal_yaml_get(node, "parameters");
    bool apart = is_apart(self, model->name);
    char own[128];

    snprintf(own, sizeof(own), "%s.parameters", path);
    int rc = check_parameters(self, parameters, own, true, !apart, err);
    if (rc || apart)
        return rc;
    rc = read_values(model->parameters, self->to->method, true, &parameters, 1,
                     err);
    return rc ? rc : check_weight(self, model, node, err);
}

static int read_model(bal_mergekit_reader *self, const bal_yaml_node *node,
                      size_t i, bal_error *err)
{
    const bal_yaml_node *reference = bal_yaml_get(node, "model");
    bal_mergekit_model model = { 0 };
    char path[96];

    snprintf(path, sizeof(path), "%s[%zu]", self->path, i);
    int rc = bal_mergekit_keys(self, node, path,
                               self->slices ? source_keys : model_keys, err);
    if (rc)
        return rc;
    if (!reference)
        return bal_yaml_fail(err, BAL_EINVAL, node, "no model is named");
    rc = bal_mergekit_reference(&model, &self->to->arena, reference, err);
    if (rc)
        return rc;
    if (is_there(self->to, model.name))
        return bal_yaml_fail(err, BAL_EINVAL, reference,
                             "model '%s' is there twice", model.name);
    rc = self->slices ? bal_mergekit_range(&model, node, err) : 0;
    if (rc)
        return rc;
    model.parameters = json_object();
    if (!model.parameters)
        return bal_fail_memory(err, "a configuration");
    rc = read_own(self, &model, node, path, err);
    if (rc) {
        json_decref(model.parameters);
        return rc;
    }
    return add_model(self, &model, err);
}

/* A base that is not listed comes last; of a slice it has to be listed. */
static int add_base(bal_mergekit_reader *self, bal_error *err)
{
    bal_mergekit *to = self->to;
    const bal_yaml_node *at = self->base_at;
    bal_mergekit_model base = self->base;

    if (!base.name || to->slices[to->slice_count - 1].base != BAL_NONE)
        return 0;
    if (self->slices)
        return bal_yaml_fail(err, BAL_EINVAL, at,
                             "base model '%s' is not a source of the slice",
                             base.name);
    int rc = is_apart(self, base.name) ? 0 : check_weight(self, &base, at, err);
    if (rc)
        return rc;
    base.parameters = json_object();
    if (!base.parameters)
        return bal_fail_memory(err, "a configuration");
    return add_model(self, &base, err);
}

/* parameters: a slice's. */
static int add_slice(bal_mergekit_reader *self, const bal_yaml_node *parameters,
                     bal_error *err)
{
    bal_mergekit *to = self->to;
    char path[64];
    bal_mergekit_slice *slices = bal_room_for_one(
        to->slices, to->slice_count, &to->slice_room, sizeof(*slices));
    if (!slices)
        return bal_fail_memory(err, "a configuration");

    to->slices = slices;
    bal_mergekit_slice *slice = &slices[to->slice_count++];
    *slice = (bal_mergekit_slice){ BAL_NONE, json_object() };
    if (!slice->parameters)
        return bal_fail_memory(err, "a configuration");
    snprintf(path, sizeof(path), "slices[%zu].parameters", to->slice_count - 1);
    int rc = check_parameters(self, parameters, path, false, true, err);
    return rc ? rc
              : read_values(slice->parameters, to->method, false, &parameters,
                            1, err);
}

int bal_mergekit_models(bal_mergekit_reader *self,
                        const bal_yaml_node *parameters, bal_error *err)
{
    const bal_yaml_node *list = self->list;
    int rc = add_slice(self, parameters, err);

    if (rc)
        return rc;
    if (list->type != BAL_YAML_LIST)
        return bal_yaml_fail(err, BAL_EINVAL, list, "'%s' is not a list",
                             self->path);
    for (size_t i = 0; i < list->count; i++) {
        rc = read_model(self, list->items[i], i, err);
        if (rc)
            return rc;
    }
    return add_base(self, err);
}
