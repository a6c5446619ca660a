/* Nodes, looked at. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/yaml_inside.h"

int bal_yaml_fail(bal_error *err, int code, const bal_yaml_node *at,
                  const char *format, ...)
{
    char text[sizeof(err->text)];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return bal_fail(err, code, "line %u, column %u: %s", at->line, at->column,
                    text);
}

const bal_yaml_node *bal_yaml_get(const bal_yaml_node *self, const char *key)
{
    if (!self || self->type != BAL_YAML_MAP)
        return NULL;
    for (size_t i = 0; i < self->count; i++) {
        if (!strcmp(self->keys[i]->text, key))
            return self->items[i];
    }
    return NULL;
}

int bal_yaml_count(size_t *nodes, size_t more, const bal_yaml_node *at,
                   bal_error *err)
{
    if (more > BAL_YAML_NODES - *nodes)
        return bal_yaml_fail(err, BAL_EINVAL, at, "more than %zu values",
                             BAL_YAML_NODES);
    *nodes += more;
    return 0;
}

/* ---- as JSON ------------------------------------------------------------ */

static json_t *scalar_json(const bal_yaml_node *self)
{
    switch (self->type) {
    case BAL_YAML_NULL:
        return json_null();
    case BAL_YAML_BOOL:
        return json_boolean(self->integer);
    case BAL_YAML_INT:
        return json_integer(self->integer);
    case BAL_YAML_FLOAT:
        return json_real(self->number);
    default:
        return json_string(self->text);
    }
}

/* At most BAL_YAML_DEPTH deep, aliases included. */
static json_t *value_json(const bal_yaml_node *self) /* NOLINT: recursion */
{
    bool map = self->type == BAL_YAML_MAP;
    int rc = 0;

    if (self->type < BAL_YAML_LIST)
        return scalar_json(self);
    BAL_OWN(json_t) all = map ? json_object() : json_array();
    for (size_t i = 0; all && !rc && i < self->count; i++) {
        json_t *item = value_json(self->items[i]);
        rc = map ? json_object_set_new(all, self->keys[i]->text, item)
                 : json_array_append_new(all, item);
    }
    return rc ? NULL : BAL_TAKE(all);
}

int bal_yaml_json(json_t **out, const bal_yaml_node *self, bal_error *err)
{
    *out = value_json(self);
    return *out ? 0 : bal_fail_memory(err, "yaml");
}
