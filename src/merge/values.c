/* One row type describes a parameter to the command line, the recipe and the
 * method, so checking is here once, for whoever sets it. */
#include "merge/values.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/str.h"

static const struct {
    const char *text;
    bool value;
} booleans[] = {
    { "true", true }, { "false", false }, { "1", true },  { "0", false },
    { "yes", true },  { "no", false },    { "on", true }, { "off", false },
};

static int parse_bool(bal_param_value *out, const bal_param *param,
                      const char *text, bal_error *err)
{
    for (size_t i = 0; i < sizeof(booleans) / sizeof(booleans[0]); i++) {
        if (strcasecmp(text, booleans[i].text))
            continue;
        out->number = booleans[i].value;
        snprintf(out->text, sizeof(out->text), "%s",
                 booleans[i].value ? "true" : "false");
        return 0;
    }
    return bal_fail(err, BAL_EINVAL, "%s: '%s' is not true or false",
                    param->name, text);
}

static int check_bounds(const bal_param *param, double value, const char *text,
                        bal_error *err)
{
    char low[32];
    char high[32];

    if (value >= param->low && value <= param->high)
        return 0;
    bal_f64_text(low, param->low);
    bal_f64_text(high, param->high);
    if (isinf(param->high))
        return bal_fail(err, BAL_EINVAL, "%s: %s is not %s or more",
                        param->name, text, low);
    return bal_fail(err, BAL_EINVAL, "%s: %s is not within %s … %s",
                    param->name, text, low, high);
}

static int parse_float(bal_param_value *out, const bal_param *param,
                       const char *text, bal_error *err)
{
    int rc = bal_parse_f64(&out->number, text, err);
    if (rc)
        return bal_within(err, rc, "%s", param->name);
    bal_f64_text(out->text, out->number);
    return check_bounds(param, out->number, text, err);
}

static int parse_int(bal_param_value *out, const bal_param *param,
                     const char *text, bal_error *err)
{
    int64_t value;
    int rc = bal_parse_i64(&value, text, err);
    if (rc)
        return bal_within(err, rc, "%s", param->name);
    out->number = (double)value;
    snprintf(out->text, sizeof(out->text), "%lld", (long long)value);
    return check_bounds(param, out->number, text, err);
}

static int parse_name(bal_param_value *out, const bal_param *param,
                      const char *text, bal_error *err)
{
    size_t len = strlen(text);
    double index = 0;

    for (const char *at = param->choices; at; index++) {
        size_t size = strcspn(at, "|");
        if (size == len && !strncmp(at, text, len)) {
            out->number = index;
            snprintf(out->text, sizeof(out->text), "%s", text);
            return 0;
        }
        at = at[size] ? at + size + 1 : NULL;
    }
    return bal_fail(err, BAL_EINVAL, "%s: '%s' is none of %s", param->name,
                    text, param->choices ? param->choices : "its names");
}

static int (*const parsers[])(bal_param_value *out, const bal_param *param,
                              const char *text, bal_error *err) = {
    [BAL_PARAM_FLOAT] = parse_float,
    [BAL_PARAM_INT] = parse_int,
    [BAL_PARAM_BOOL] = parse_bool,
    [BAL_PARAM_NAME] = parse_name,
};

int bal_value_parse(bal_param_value *out, const bal_param *param,
                    const char *text, bal_error *err)
{
    return parsers[param->type](out, param, text, err);
}

const bal_param *bal_param_find(const bal_param *params, const char *name)
{
    for (const bal_param *param = params; param->name; param++) {
        if (!strcmp(param->name, name))
            return param;
    }
    return NULL;
}

int bal_param_unknown(const bal_method *method, const char *name,
                      bal_error *err)
{
    BAL_LOCAL(bal_buf) names = { 0 };
    const bal_param *first = method->info.params;

    for (const bal_param *param = first; param->name; param++) {
        int rc = bal_buf_format(&names, err, "%s%s", param == first ? "" : " ",
                                param->name);
        if (rc)
            return rc;
    }
    return bal_fail(err, BAL_EINVAL,
                    "method '%s' has no parameter '%s', it has: %s",
                    method->info.name, name, bal_buf_string(&names));
}

/* ---- resolved ----------------------------------------------------------- */

/* The first of the input's own, the recipe's and the default that is told. */
static int resolve(double *out, const bal_param *param, const json_t *own,
                   const json_t *common, bal_error *err)
{
    const char *text = json_string_value(json_object_get(own, param->name));
    bal_param_value value = { 0 };

    if (!text)
        text = json_string_value(json_object_get(common, param->name));
    if (!text)
        text = param->fallback;
    if (!text)
        return bal_fail(err, BAL_EINVAL, "parameter '%s' is required",
                        param->name);
    int rc = bal_value_parse(&value, param, text, err);
    *out = value.number;
    return rc;
}

/* What an input has, or what all have for own NULL. */
static int resolve_all(double *out, const bal_recipe *recipe,
                       const bal_input *input, bal_error *err)
{
    const bal_param *params = recipe->method->info.params;

    for (size_t i = 0; params[i].name; i++) {
        assert(i < BAL_PARAMS_MAX);
        if (input && !strcmp(params[i].name, BAL_WEIGHT)) {
            out[i] = input->weight;
            continue;
        }
        /* A per-input one may be told by the inputs alone. */
        if (params[i].per_input != !!input)
            continue;
        int rc = resolve(&out[i], &params[i], input ? input->parameters : NULL,
                         recipe->parameters, err);
        if (rc)
            return rc;
    }
    return 0;
}

bool bal_recipe_apart(const bal_recipe *self, size_t input)
{
    return input == self->base && self->method->role != BAL_ROLE_NONE;
}

int bal_values_init(bal_values *out, const bal_recipe *recipe, bal_error *err)
{
    BAL_LOCAL(bal_values)
    self = { .params = recipe->method->info.params,
             .mergekit = recipe->mergekit };

    self.inputs =
        calloc(recipe->count + 1, BAL_PARAMS_MAX * sizeof(*self.inputs));
    if (!self.inputs)
        return bal_fail_memory(err, "a merge's parameters");
    self.count = recipe->count;
    int rc = resolve_all(self.common, recipe, NULL, err);
    for (size_t i = 0; !rc && i < recipe->count; i++) {
        if (bal_recipe_apart(recipe, i))
            continue;
        rc = resolve_all(self.inputs + i * BAL_PARAMS_MAX, recipe,
                         &recipe->inputs[i], err);
        if (rc)
            rc = bal_within(err, rc, "input %zu", i + 1);
    }
    if (rc)
        return rc;
    *out = self;
    self.inputs = NULL;
    return 0;
}

void bal_values_done(bal_values *self)
{
    free(self->inputs);
    self->inputs = NULL;
}

static size_t index_of(const bal_values *self, const char *name)
{
    const bal_param *param = bal_param_find(self->params, name);

    assert(param);
    return (size_t)(param - self->params);
}

double bal_value_float(const bal_values *self, const char *name)
{
    return self->common[index_of(self, name)];
}

bool bal_value_bool(const bal_values *self, const char *name)
{
    return bal_value_float(self, name) != 0;
}

bool bal_value_mergekit(const bal_values *self)
{
    return self->mergekit;
}

double bal_value_input(const bal_values *self, size_t input, const char *name)
{
    return self->inputs[input * BAL_PARAMS_MAX + index_of(self, name)];
}
