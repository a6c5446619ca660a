/* A recipe as a configuration: mergekit's names for methods are ours, those of
 * parameters are in their rows. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "merge/mergekit.h"
#include "merge/settings.h"
#include "merge/values.h"

/* One that is being written. */
typedef struct writer {
    bal_buf *to;
    const bal_recipe *recipe;
    bal_mergekit_name_fn *name;
    void *ctx;
} writer;

/* ---- what mergekit has nothing for -------------------------------------- */

static int check_inputs(const bal_recipe *recipe, bal_error *err)
{
    for (size_t i = 0; i < recipe->count; i++) {
        const bal_input *input = &recipe->inputs[i];
        for (size_t k = 0; k < i; k++) {
            const bal_input *other = &recipe->inputs[k];
            if (!strcmp(other->tenant, input->tenant) &&
                bal_id_equal(&other->commit, &input->commit))
                return bal_fail(err, BAL_EUNSUPPORTED,
                                "inputs %zu and %zu are the same commit: "
                                "mergekit takes no model twice",
                                k + 1, i + 1);
        }
    }
    return 0;
}

static int check(const bal_recipe *recipe, bal_error *err)
{
    if (recipe->space != BAL_SPACE_WEIGHTS)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "a view in space '%s': mergekit merges whole models "
                        "only",
                        bal_space_name(recipe->space));
    return check_inputs(recipe, err);
}

/* ---- values ------------------------------------------------------------- */

/* To YAML 1e-05 is a text; a float has a point. */
static int put_number(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    const char *e = memchr(text, 'e', len);
    bool plain =
        !e || memchr(text, '.', len) || strspn(text, "+-0123456789e") < len;
    size_t head = plain ? len : (size_t)(e - text);
    int rc = bal_buf_append(to, text, head, err);

    if (rc || plain)
        return rc;
    rc = bal_buf_text(to, ".0", err);
    return rc ? rc : bal_buf_append(to, e, len - head, err);
}

/* "0.5", or "0,0.5,1" as a list. */
static int put_plain(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    bool list = memchr(text, ',', len) != NULL;
    int rc = list ? bal_buf_text(to, "[", err) : 0;

    for (size_t at = 0; !rc && at <= len;) {
        const char *comma = memchr(text + at, ',', len - at);
        size_t size = comma ? (size_t)(comma - text) - at : len - at;
        rc = at ? bal_buf_text(to, ", ", err) : 0;
        if (!rc)
            rc = put_number(to, text + at, size, err);
        at += size + 1;
    }
    if (rc || !list)
        return rc;
    return bal_buf_text(to, "]", err);
}

/* One of several: "FILTER:value" or "value". */
static int put_condition(bal_buf *to, const char *indent, const char *text,
                         size_t len, bal_error *err)
{
    const char *colon = memchr(text, ':', len);
    size_t head = colon ? (size_t)(colon - text) + 1 : 0;
    int rc = bal_buf_format(to, err, "\n%s  - ", indent);

    if (!rc && colon)
        rc = bal_buf_text(to, "filter: ", err);
    if (!rc && colon)
        rc = bal_json_quote(to, text, head - 1, err);
    if (!rc && colon)
        rc = bal_buf_format(to, err, "\n%s    ", indent);
    if (!rc)
        rc = bal_buf_text(to, "value: ", err);
    return rc ? rc : put_plain(to, text + head, len - head, err);
}

static int put_value(bal_buf *to, const char *indent, const char *name,
                     const char *text, bal_error *err)
{
    int rc = bal_buf_format(to, err, "%s%s:", indent, name);

    if (!rc && !strpbrk(text, ":;")) {
        rc = bal_buf_text(to, " ", err);
        if (!rc)
            rc = put_plain(to, text, strlen(text), err);
        return rc ? rc : bal_buf_text(to, "\n", err);
    }
    while (!rc && *text) {
        size_t len = strcspn(text, ";");
        rc = put_condition(to, indent, text, len, err);
        text += len + (text[len] == ';');
    }
    return rc ? rc : bal_buf_text(to, "\n", err);
}

/* Parameters by mergekit's names; one that it has not is refused unless it is
 * what it would be anyway. */
static int put_parameters(const writer *self, const char *indent,
                          const json_t *parameters, bal_error *err)
{
    const bal_param *param = self->recipe->method->info.params;

    for (; param && param->name; param++) {
        const char *text =
            json_string_value(json_object_get(parameters, param->name));
        if (!text)
            continue;
        if (!param->mergekit && param->fallback &&
            !strcmp(param->fallback, text))
            continue;
        if (!param->mergekit)
            return bal_fail(err, BAL_EUNSUPPORTED,
                            "mergekit has no parameter '%s'", param->name);
        int rc = put_value(self->to, indent, param->mergekit, text, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- models ------------------------------------------------------------- */

static int put_name(const writer *self, size_t i, bal_error *err)
{
    const bal_input *input = &self->recipe->inputs[i];
    const char *name = self->name(self->ctx, input);
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &input->commit);
    if (!name)
        return bal_fail(err, BAL_EUNSUPPORTED, "input '%s:%.12s' has no name",
                        input->tenant, hex);
    return bal_json_quote(self->to, name, strlen(name), err);
}

/* The weight is not among an input's parameters. */
static int put_own(const writer *self, const bal_input *input, bal_error *err)
{
    const bal_param *weight =
        bal_param_find(self->recipe->method->info.params, BAL_WEIGHT);
    bool own = json_object_get(input->parameters, BAL_WEIGHT) != NULL;
    char text[32];
    int rc = 0;

    if (!weight && !json_object_size(input->parameters))
        return 0;
    rc = bal_buf_text(self->to, "    parameters:\n", err);
    bal_f64_text(text, input->weight);
    if (!rc && weight && !own)
        rc = put_value(self->to, "      ", BAL_WEIGHT, text, err);
    return rc ? rc : put_parameters(self, "      ", input->parameters, err);
}

static int put_models(const writer *self, bool base_alone, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    int rc = bal_buf_text(self->to, "models:\n", err);

    for (size_t i = 0; !rc && i < recipe->count; i++) {
        bool apart = bal_recipe_apart(recipe, i);
        if (apart && !base_alone)
            continue;
        rc = bal_buf_text(self->to, "  - model: ", err);
        if (!rc)
            rc = put_name(self, i, err);
        if (!rc)
            rc = bal_buf_text(self->to, "\n", err);
        if (!rc && !apart)
            rc = put_own(self, &recipe->inputs[i], err);
    }
    return rc;
}

static int put_base(const writer *self, bal_error *err)
{
    int rc;

    if (self->recipe->base == BAL_NONE)
        return 0;
    rc = bal_buf_text(self->to, "base_model: ", err);
    if (!rc)
        rc = put_name(self, self->recipe->base, err);
    return rc ? rc : bal_buf_text(self->to, "\n", err);
}

/* ---- the document ------------------------------------------------------- */

static int put_remarks(const writer *self, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;
    int rc = 0;

    if (!recipe->mergekit)
        rc = bal_buf_text(self->to,
                          "# Recorded in arithmetic 'precise', which rounds "
                          "once; mergekit rounds at each step.\n",
                          err);
    if (!rc && recipe->method->info.flags & BAL_METHOD_SEEDED)
        rc = bal_buf_text(self->to, "# mergekit draws other random numbers.\n",
                          err);
    return rc;
}

static int put_dtype(const writer *self, bal_error *err)
{
    const bal_recipe *recipe = self->recipe;

    if (recipe->dtype < 0)
        return 0;
    const char *ours = bal_dtype_name((bal_dtype)recipe->dtype);
    const char *name = bal_mergekit_dtype_name(ours);
    if (!name)
        return bal_fail(err, BAL_EUNSUPPORTED, "mergekit has no dtype '%s'",
                        ours);
    return bal_buf_format(
        self->to, err, "%s: %s\n",
        recipe->mergekit && !recipe->method->f32 ? "dtype" : "out_dtype", name);
}

int bal_mergekit_write(bal_buf *to, const bal_recipe *recipe,
                       bal_mergekit_name_fn *name, void *ctx, bal_error *err)
{
    const writer self = { to, recipe, name, ctx };
    bool alone = recipe->count == 1 && bal_recipe_apart(recipe, 0);
    int rc = check(recipe, err);

    if (!rc)
        rc = put_remarks(&self, err);
    if (!rc)
        rc = bal_buf_format(to, err, "merge_method: %s\n",
                            recipe->method->info.name);
    if (!rc)
        rc = put_base(&self, err);
    if (!rc)
        rc = put_models(&self, alone, err);
    if (!rc && json_object_size(recipe->parameters))
        rc = bal_buf_text(to, "parameters:\n", err);
    if (!rc)
        rc = put_parameters(&self, "  ", recipe->parameters, err);
    return rc ? rc : put_dtype(&self, err);
}
