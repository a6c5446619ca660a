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

static void text_of_name(char *out, size_t size, const char *choices,
                         size_t index)
{
    while (index--)
        choices += strcspn(choices, "|") + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

void bal_value_text(bal_param_value *out, const bal_param *param, double number)
{
    char text[32];

    out->number = number;
    bal_f64_text(text, number);
    if (param->type == BAL_PARAM_NAME)
        text_of_name(out->text, sizeof(out->text), param->choices,
                     (size_t)number);
    else if (param->type == BAL_PARAM_BOOL)
        snprintf(out->text, sizeof(out->text), "%s",
                 number != 0 ? "true" : "false");
    else if (param->type == BAL_PARAM_INT)
        snprintf(out->text, sizeof(out->text), "%.0f", number);
    else
        snprintf(out->text, sizeof(out->text), "%s", text);
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

/* ---- of one tensor ------------------------------------------------------ */

size_t bal_values_size(const bal_values *self)
{
    return (self->count + 1) * self->param_count * sizeof(double);
}

int bal_values_room(bal_values *out, const bal_rules *rules, bal_error *err)
{
    bal_values self = {
        .params = rules->params,
        .param_count = rules->param_count,
        .mergekit = rules->mergekit,
        .count = rules->count,
    };

    self.common = calloc(1, bal_values_size(&self) + 1);
    if (!self.common)
        return bal_fail_memory(err, "a merge's parameters");
    self.inputs = self.common + self.param_count;
    *out = self;
    return 0;
}

void bal_values_done(bal_values *self)
{
    free(self->common);
    *self = (bal_values){ 0 };
}

static int fill_one(double *out, const bal_gradient *told,
                    const bal_param *param, const bal_place *place,
                    bal_error *err)
{
    bool found = false;
    int rc = bal_gradient_at(out, &found, told, param, place, err);

    if (rc || found)
        return rc;
    return bal_fail(err, BAL_EINVAL, "no '%s' is told for tensor '%s'",
                    param->name, place->tensor);
}

/* The parameters that are for all inputs, or those that are for each. */
static int fill(double *out, const bal_values *self, const bal_gradient *told,
                const bal_place *place, bool per_input, bal_error *err)
{
    for (size_t i = 0; i < self->param_count; i++) {
        out[i] = 0;
        if (self->params[i].per_input != per_input)
            continue;
        int rc = fill_one(&out[i], &told[i], &self->params[i], place, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_values_fill(bal_values *self, const bal_rules *rules,
                    const bal_where *where, bal_error *err)
{
    size_t stride = self->param_count;
    int rc = fill(self->common, self, rules->common + where->slice * stride,
                  &where->place, false, err);

    for (size_t i = 0; !rc && i < self->count; i++) {
        double *out = self->inputs + i * stride;
        const bal_gradient *told = rules->inputs + i * stride;
        if (where->inputs[i].tensor && rules->takes[i])
            rc = fill(out, self, told, &where->inputs[i], true, err);
        else
            memset(out, 0, stride * sizeof(*out));
        if (rc)
            rc = bal_within(err, rc, "input %zu", i + 1);
    }
    return rc;
}

int bal_values_init(bal_values *out, const bal_recipe *recipe, bal_error *err)
{
    static const bal_place nowhere = { "", 0 };
    BAL_LOCAL(bal_rules) rules = { 0 };
    BAL_LOCAL(bal_values) self = { 0 };
    int rc = bal_rules_init(&rules, recipe, err);
    if (!rc)
        rc = bal_values_room(&self, &rules, err);
    if (rc)
        return rc;
    bal_place *places = calloc(recipe->count + 1, sizeof(*places));
    if (!places)
        return bal_fail_memory(err, "a merge's parameters");
    for (size_t i = 0; i < recipe->count; i++)
        places[i] = nowhere;
    const bal_where where = { 0, nowhere, places };
    rc = bal_values_fill(&self, &rules, &where, err);
    free(places);
    if (rc)
        return rc;
    *out = self;
    self = (bal_values){ 0 };
    return 0;
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
    return self->inputs[input * self->param_count + index_of(self, name)];
}

double bal_values_weight(const bal_values *self, size_t input)
{
    return bal_param_find(self->params, BAL_WEIGHT)
               ? bal_value_input(self, input, BAL_WEIGHT)
               : 1;
}
