/* Parameters' values: a scalar, a gradient over the layers, or a list of such
 * with filters. mergekit converts what YAML gives to the parameter's type, and
 * so is it done here: "0.5" and 1e-5, a text to YAML, are numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/str.h"
#include "merge/mergekit.h"

/* ---- scalars ------------------------------------------------------------ */

static bool number_of(double *out, const bal_yaml_node *node)
{
    if (node->type == BAL_YAML_TEXT)
        return !bal_parse_f64(out, node->text, NULL);
    *out = node->number;
    return node->type == BAL_YAML_BOOL || node->type == BAL_YAML_INT ||
           node->type == BAL_YAML_FLOAT;
}

static int put_float(bal_buf *to, const bal_yaml_node *node, bal_error *err)
{
    char text[32];
    double value;

    if (!number_of(&value, node))
        return bal_yaml_fail(err, BAL_EINVAL, node, "'%s' is not a number",
                             node->text);
    bal_f64_text(text, value);
    return bal_buf_text(to, text, err);
}

static int put_int(bal_buf *to, const bal_yaml_node *node, bal_error *err)
{
    double value;

    if (!number_of(&value, node) || trunc(value) != value ||
        fabs(value) >= 0x1p53)
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "'%s' is not a whole number", node->text);
    return bal_buf_format(to, err, "%.0f", value);
}

/* Beside 0 and 1. */
static const struct {
    const char *text;
    bool value;
} booleans[] = {
    { "true", true }, { "yes", true }, { "on", true },     { "t", true },
    { "y", true },    { "1", true },   { "false", false }, { "no", false },
    { "off", false }, { "f", false },  { "n", false },     { "0", false },
};

static bool bool_of(bool *out, const bal_yaml_node *node)
{
    if (node->type != BAL_YAML_TEXT) {
        *out = node->number != 0;
        return (node->type == BAL_YAML_BOOL || node->type == BAL_YAML_INT ||
                node->type == BAL_YAML_FLOAT) &&
               (node->number == 0 || node->number == 1);
    }
    for (size_t i = 0; i < sizeof(booleans) / sizeof(booleans[0]); i++) {
        *out = booleans[i].value;
        if (!strcasecmp(booleans[i].text, node->text))
            return true;
    }
    return false;
}

static int put_bool(bal_buf *to, const bal_yaml_node *node, bal_error *err)
{
    bool value;

    if (!bool_of(&value, node))
        return bal_yaml_fail(err, BAL_EINVAL, node, "'%s' is not true or false",
                             node->text);
    return bal_buf_text(to, value ? "true" : "false", err);
}

static int put_name(bal_buf *to, const bal_yaml_node *node, bal_error *err)
{
    return bal_buf_text(to, node->text, err);
}

static int (*const putters[])(bal_buf *to, const bal_yaml_node *node,
                              bal_error *err) = {
    [BAL_PARAM_FLOAT] = put_float,
    [BAL_PARAM_INT] = put_int,
    [BAL_PARAM_BOOL] = put_bool,
    [BAL_PARAM_NAME] = put_name,
};

static int put_scalar(bal_buf *to, const bal_param *param,
                      const bal_yaml_node *node, bal_error *err)
{
    if (!node->text)
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "a list or map where a value is wanted");
    return putters[param->type](to, node, err);
}

/* ---- gradients and filters ---------------------------------------------- */

/* A scalar, or a list of scalars. */
static int put_plain(bal_buf *to, const bal_param *param,
                     const bal_yaml_node *node, bal_error *err)
{
    if (node->type != BAL_YAML_LIST)
        return put_scalar(to, param, node, err);
    for (size_t i = 0; i < node->count; i++) {
        int rc = i ? bal_buf_text(to, ",", err) : 0;
        if (!rc)
            rc = put_scalar(to, param, node->items[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* What separates values cannot be told from a filter that holds it. */
static int put_filter(bal_buf *to, const bal_yaml_node *filter, bal_error *err)
{
    if (!filter->text)
        return bal_yaml_fail(err, BAL_EINVAL, filter,
                             "a filter that is no "
                             "text");
    if (!*filter->text || strchr(filter->text, ';'))
        return bal_yaml_fail(err, BAL_EUNSUPPORTED, filter,
                             "a filter of '%s' cannot be written down",
                             filter->text);
    return bal_buf_format(to, err, "%s:", filter->text);
}

static bool for_all(const bal_yaml_node *filter)
{
    return !filter || filter->type == BAL_YAML_NULL ||
           (filter->text && !strcmp(filter->text, "*"));
}

static int check_members(const bal_yaml_node *node, bal_error *err)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i]->text;
        if (strcmp(key, "filter") != 0 && strcmp(key, "value") != 0)
            return bal_yaml_fail(err, BAL_EINVAL, node->keys[i],
                                 "'%s' is neither filter nor value", key);
    }
    return 0;
}

/* {filter, value}; nothing is said by a value that is an empty list. */
static int put_condition(bal_buf *to, bool *whole, const bal_param *param,
                         const bal_yaml_node *node, bal_error *err)
{
    const bal_yaml_node *filter = bal_yaml_get(node, "filter");
    const bal_yaml_node *value = bal_yaml_get(node, "value");

    if (node->type != BAL_YAML_MAP || !value)
        return bal_yaml_fail(err, BAL_EINVAL, node,
                             "one of several values has to be '- value: x', "
                             "with a filter or without");
    int rc = check_members(node, err);
    if (rc || (value->type == BAL_YAML_LIST && !value->count))
        return rc;
    rc = to->len ? bal_buf_text(to, ";", err) : 0;
    *whole = for_all(filter);
    if (!rc && !*whole)
        rc = put_filter(to, filter, err);
    return rc ? rc : put_plain(to, param, value, err);
}

static bool has_conditions(const bal_yaml_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        if (node->items[i]->type == BAL_YAML_MAP)
            return true;
    }
    return false;
}

int bal_mergekit_value(bal_buf *to, bool *whole, const bal_param *param,
                       const bal_yaml_node *node, bal_error *err)
{
    bool list = node->type == BAL_YAML_LIST;
    int rc = 0;

    if (node->type == BAL_YAML_NULL || (list && !node->count))
        return 0;
    if (node->type == BAL_YAML_MAP)
        return put_condition(to, whole, param, node, err);
    if (list && has_conditions(node)) {
        for (size_t i = 0; !rc && !*whole && i < node->count; i++)
            rc = put_condition(to, whole, param, node->items[i], err);
        return rc;
    }
    *whole = true;
    rc = to->len ? bal_buf_text(to, ";", err) : 0;
    return rc ? rc : put_plain(to, param, node, err);
}

const bal_param *bal_mergekit_param(const bal_method *method, const char *name)
{
    const bal_param *param = method->info.params;

    for (; param && param->name; param++) {
        if (param->mergekit && !strcmp(param->mergekit, name))
            return param;
    }
    return NULL;
}
